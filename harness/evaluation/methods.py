"""Which methods run: from text to pruners with a window and calibrated, or a stated reason why one does not run."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.store.reader import Store
from harness.workers import spread
from pruners import Page, Pruner, Window, catalogue, require
from pruners.core.apply import calibrate
from pruners.core.errors import PruneBoardError
from pruners.guests.host import USUAL, Isolation, host, is_built_in

COMPOSITIONS = ("adaptive", "merge")  # need a part to be a method; their named presets stand for them


FULL = "full"
"""The unpruned page index: the upper bound of every other row, always evaluated in the same run."""


@dataclass(frozen=True)
class Method:
    """A pruner in an evaluation. `failure` says why it has no results."""

    text: str
    pruner: Pruner
    trials: int
    failure: str | None = None
    own_threshold: bool = False
    """Its threshold is given: it has one cell, at the ratio that comes out (see `own_threshold.py`)."""
    partner_of: str | None = None
    """The method with its own threshold at whose ratio this one is evaluated, and nowhere else."""
    at: tuple[float, ...] | None = None
    """Budgets of its own."""

    def budgets(self, of_run: tuple[float, ...]) -> tuple[float, ...]:
        """Where it is evaluated."""
        return self.at or ((1.0,) if self.own_threshold else of_run)

    @property
    def diagnostic(self) -> bool:
        return self.pruner.declaration.diagnostic

    @property
    def budget_kind(self) -> str:
        return self.pruner.budget_kind

    @property
    def slug(self) -> str:
        """A file name: the text itself where it is a plain word."""
        return "".join(c if c.isalnum() or c in "._-=" else "_" for c in self.text)


def choose_methods(
    texts: Sequence[str], trials: int | None, own: Sequence[Pruner] = (), apart: Isolation = USUAL
) -> list[Method]:
    """The methods a user named, and those given as objects; of neither, every built-in one."""
    if not texts and not own:
        texts = [e.name for e in catalogue().values() if e.source == "built-in" and e.name not in COMPOSITIONS]
    chosen: dict[str, Method] = {}
    for pruner in host(texts, own, apart):
        if str(pruner) in chosen:
            raise PruneBoardError(f"the pruner {str(pruner)!r} is asked for twice")
        count = pruner.trials if trials is None or pruner.trials == 1 else trials
        chosen[str(pruner)] = Method(str(pruner), pruner, count)
    slugs = [method.slug.casefold() for method in chosen.values()]  # some disks do not tell A from a
    if len(set(slugs)) != len(slugs):
        raise PruneBoardError(f"two of these pruners would share a file: {', '.join(sorted(slugs))}")
    if FULL in slugs:
        raise PruneBoardError(f"{FULL!r} is what the unpruned index is called in a run; give your method another name")
    return list(chosen.values())


def refuse_unfit(methods: Sequence[Method], store: Store) -> list[Method]:
    """Methods whose signals the store has not are refused by name, before any work."""
    available = {*store.signals, "grid"} if store.page(0).grid else set(store.signals)
    fit = []
    for method in methods:
        try:
            require(method.pruner, available, "this store")
            fit.append(method)
        except PruneBoardError as error:
            fit.append(replace(method, failure=str(error)))
    return fit


def prepare(
    methods: Sequence[Method], window: Window | None, pages: Sequence[Page], budgets: Sequence[float], workers: int = 1
) -> list[Method]:
    """Methods with their window bound, and calibrated on `pages`. Built-in ones learn side by side; what others learn
    may not be fit to be sent from process to process.
    """
    learners = [m for m in methods if m.pruner.needs_calibration and is_built_in(m.pruner)]

    def learn(method: Method) -> bytes:  # torch would send a tensor as an open file, of a process that ends
        return pickle.dumps(_ready(method, window, pages, budgets))

    with spread(learn, learners, min(workers, len(learners)), first_here=False) as results:
        learned = {m.text: pickle.loads(found) for m, found in zip(learners, results, strict=True)}
    return [learned.get(method.text) or _ready(method, window, pages, budgets) for method in methods]


def _ready(method: Method, window: Window | None, pages: Sequence[Page], budgets: Sequence[float]) -> Method:
    if method.failure is not None:
        return method
    try:
        pruner = method.pruner.with_window(window) if window else method.pruner
        return replace(method, pruner=calibrate(pruner, pages, budgets))
    except PruneBoardError as error:
        return replace(method, failure=str(error))
    except Exception as error:  # of a user's `calibrate`: that method's failure, not the others'
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{last.filename}:{last.lineno}"
        return replace(method, failure=f"{method.text}: failed with {type(error).__name__}: {error} ({place})")
