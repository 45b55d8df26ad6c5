"""Which methods run: from text to pruners with a window and calibrated, or a stated reason why one does not run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from harness.store.reader import Store
from pruners import Page, Pruner, Window, catalogue, require, resolve
from pruners.adaptive import Adaptive
from pruners.core.errors import PruneBoardError
from pruners.sap import with_window

COMPOSITIONS = ("adaptive", "merge")  # need a part to be a method; their named presets stand for them


@dataclass(frozen=True)
class Method:
    """A pruner in an evaluation. `failure` says why it has no results."""

    text: str
    pruner: Pruner
    trials: int
    failure: str | None = None
    native: bool = False
    """Its threshold is given: it has one cell, at the ratio that comes out (see `native.py`)."""
    partner_of: str | None = None
    """The native method at whose ratio this one is evaluated, and nowhere else."""
    at: tuple[float, ...] | None = None
    """Budgets of its own."""

    def budgets(self, of_run: tuple[float, ...]) -> tuple[float, ...]:
        """Where it is evaluated."""
        return self.at or ((1.0,) if self.native else of_run)

    @property
    def slug(self) -> str:
        """A file name: the text itself where it is a plain word."""
        return "".join(c if c.isalnum() or c in "._-=" else "_" for c in self.text)


def choose_methods(texts: Sequence[str], trials: int | None) -> list[Method]:
    """The methods a user named, or every built-in one."""
    if not texts:
        texts = [e.name for e in catalogue().values() if e.source == "built-in" and e.name not in COMPOSITIONS]
    chosen: dict[str, Method] = {}
    for pruner in resolve(texts):
        if str(pruner) in chosen:
            raise PruneBoardError(f"the pruner {str(pruner)!r} is asked for twice")
        count = pruner.trials if trials is None or pruner.trials == 1 else trials
        chosen[str(pruner)] = Method(str(pruner), pruner, count)
    slugs = [method.slug for method in chosen.values()]
    if len(set(slugs)) != len(slugs):
        raise PruneBoardError(f"two of these pruners would share a file: {', '.join(sorted(slugs))}")
    return list(chosen.values())


def has_open_window(pruner: Pruner) -> bool:
    known = pruner.fields()
    return ("layers" in known and known["layers"] is None) or any(map(has_open_window, pruner.parts()))


def needs_calibration(pruner: Pruner) -> bool:
    """Whether a pruner learns from pages: it, or a part of it, has a learned field (presets wrap their parts)."""
    if isinstance(pruner, Adaptive) and pruner.z is not None:  # its threshold is given
        return needs_calibration(pruner.of)
    own = any(f.metadata.get("learned") and f.name != "inner" for f in fields(pruner))  # type: ignore[arg-type]
    return own or any(map(needs_calibration, pruner.parts()))


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
    methods: Sequence[Method], window: Window | None, pages: Sequence[Page], budgets: Sequence[float]
) -> list[Method]:
    """Methods with their window bound and calibrated on `pages`."""
    ready = []
    for method in methods:
        if method.failure is None:
            try:
                pruner = with_window(method.pruner, window) if window else method.pruner
                method = replace(method, pruner=pruner.calibrate(pages, budgets))
            except PruneBoardError as error:
                method = replace(method, failure=str(error))
        ready.append(method)
    return ready
