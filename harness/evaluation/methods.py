"""Which methods run: from text to pruners with a window and calibrated, or a stated reason why one does not run."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from harness.backbones.contract import Card
from harness.evaluation.index_size import FLOAT16
from harness.store.reader import Store
from harness.workers import spread
from pruners import Codec, Page, Pruner, Window, catalogue, require
from pruners.core.apply import calibrate
from pruners.core.budget import UNPRUNED
from pruners.core.by_value import packed, unpacked
from pruners.core.codec_catalog import read_codecs
from pruners.core.errors import PruneBoardError
from pruners.guests.host import USUAL, Isolation, host, is_built_in

FULL = "full"
"""The unpruned page index: the upper bound of every other row, always evaluated in the same run."""

COMPOSITIONS = ("adaptive", "merge", FULL)  # need a part, or a codec, to be a method; presets stand for the first two
QUANTISED = "quantised"  # the output of a method that stores vectors in a form of its own


@dataclass(frozen=True)
class Method:
    """A pruner and a codec in an evaluation. `failure` says why it has no results."""

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
    codec: Codec = FLOAT16

    def __reduce__(self) -> tuple[Any, ...]:
        """Sent to another process or machine with all that is not installed there."""
        return _received, (
            packed(self.pruner),
            {f.name: getattr(self, f.name) for f in fields(self) if f.name != "pruner"},
        )

    def budgets(self, of_run: tuple[float, ...]) -> tuple[float, ...]:
        """Where it is evaluated."""
        return self.at or ((1.0,) if self.own_threshold else of_run)

    @property
    def diagnostic(self) -> bool:
        return self.pruner.declaration.diagnostic

    @property
    def output(self) -> str:
        """What comes out of it: subset, merged or quantised."""
        return self.pruner.declaration.output

    @property
    def budget_kind(self) -> str:
        return self.pruner.budget_kind

    @property
    def unpruned(self) -> bool:
        """Whether it is a codec alone: `full | int8`."""
        return self.pruner.name == FULL

    @property
    def pruner_text(self) -> str:
        """Its text form without the codec's."""
        return self.text.removesuffix(f" | {self.codec}")

    @property
    def codec_text(self) -> str:
        return str(self.codec)

    @property
    def needs_calibration(self) -> bool:
        return self.pruner.needs_calibration or self.codec.needs_calibration

    def shared_bytes(self, dim: int) -> int:
        """What its index holds once for all pages."""
        return self.pruner.shared_bytes + self.codec.shared_bytes(dim)

    def pruned_as(self, other: Method) -> bool:
        """Whether they keep the same of a page, so that one pruning serves both."""
        return self.pruner is other.pruner and all(
            getattr(self, name) == getattr(other, name) for name in ("trials", "at", "own_threshold")
        )

    @property
    def slug(self) -> str:
        """A file name: the text itself where it is a plain word."""
        return slug(self.text)


def _received(pruner: bytes, others: dict[str, Any]) -> Method:
    return Method(pruner=unpacked(pruner), **others)


def slug(text: str) -> str:
    return "".join(c if c.isalnum() or c in "._-=" else "_" for c in text)


def choose_methods(
    texts: Sequence[str],
    trials: int | None,
    own: Sequence[Pruner] = (),
    codecs: Sequence[str] | None = None,
    apart: Isolation = USUAL,
) -> list[Method]:
    """The methods a user named, and those given as objects; of neither, every built-in one.

    Each with every one of `codecs` (None: float16), unless its text names its own. Those that are not built in are
    guests, kept `apart`.
    """
    if not texts and not own:
        texts = [e.name for e in catalogue().values() if e.source == "built-in" and e.name not in COMPOSITIONS]
    crossed = [codec for text in codecs or () for codec in read_codecs(text)] or [FLOAT16]
    chosen: dict[str, Method] = {}
    for pruner, codec in host(texts, own, apart):
        stored = pruner.declaration.output == QUANTISED
        if stored and codec not in (None, FLOAT16):
            raise PruneBoardError(
                f"{pruner} stores vectors in a form of its own: there is nothing for {codec} to store"
            )
        for each in [codec] if codec is not None else [FLOAT16] if stored else crossed:
            text = stored_text(str(pruner), each)
            if text in chosen:
                raise PruneBoardError(f"the pruner {text!r} is asked for twice")
            count = pruner.trials if trials is None or pruner.trials == 1 else trials
            at = (UNPRUNED,) if pruner.name == FULL else None
            chosen[text] = Method(text, pruner, count, codec=each, at=at)
    slugs = [method.slug.casefold() for method in chosen.values()]  # some disks do not tell A from a
    if len(set(slugs)) != len(slugs):
        raise PruneBoardError(f"two of these pruners would share a file: {', '.join(sorted(slugs))}")
    if FULL in slugs:
        raise PruneBoardError(f"{FULL!r} is what the unpruned index is called in a run; give your method another name")
    return list(chosen.values())


def codecs_alone(codecs: Sequence[str] | None) -> list[str]:
    """The text forms that measure what codecs do by themselves, with no vector pruned."""
    found = [codec for text in codecs or () for codec in read_codecs(text)]
    return [stored_text(FULL, codec) for codec in found if codec != FLOAT16]


def stored_text(pruner: str, codec: Codec) -> str:
    """The text form of a method: `sap | int8`, and of float16 the pruner's alone."""
    return pruner if codec == FLOAT16 else f"{pruner} | {codec}"


def unfit(methods: Sequence[Method], card: Card) -> dict[str, str]:
    """Methods that need what a backbone does not give, and why they fail: known before a page is encoded.

    Whether pages have a grid only pages tell.
    """
    return _unfit(methods, {*card.signals, "grid"}, card.dim, f"the backbone {card.name}")


def refuse_unfit(methods: Sequence[Method], store: Store) -> list[Method]:
    """Methods, those that need what a store does not have with their failure."""
    available = {*store.signals, "grid"} if store.page(0).grid else set(store.signals)
    failures = _unfit(methods, available, store.dim, "this store")
    return [replace(method, failure=failures.get(method.text, method.failure)) for method in methods]


def _unfit(methods: Sequence[Method], available: Collection[str], dim: int, giver: str) -> dict[str, str]:
    found = {}
    for method in methods:
        try:
            require(method.pruner, available, giver)
            method.codec.row(dim)
        except PruneBoardError as error:
            found[method.text] = str(error)
    return found


def prepare(
    methods: Sequence[Method], window: Window | None, pages: Sequence[Page], budgets: Sequence[float], workers: int = 1
) -> list[Method]:
    """Methods with their window bound, and calibrated on `pages`. Built-in ones learn side by side; what others learn
    may not be fit to be sent from process to process. A pruner learns once, and so does a codec, however many methods
    they are in.
    """
    first: dict[str, Method] = {}
    for method in methods:
        if method.failure is None:
            first.setdefault(str(method.pruner), method)
    learners = [m for m in first.values() if m.pruner.needs_calibration and is_built_in(m.pruner)]

    def learn(method: Method) -> bytes:  # torch would send a tensor as an open file, of a process that ends
        return pickle.dumps(_ready(method, window, pages, budgets))

    with spread(learn, learners, min(workers, len(learners)), first_here=False) as results:
        ready = {str(m.pruner): pickle.loads(found) for m, found in zip(learners, results, strict=True)}
    for text, method in first.items():
        if text not in ready:
            ready[text] = _ready(method, window, pages, budgets)
    codecs = _learned_codecs(methods, pages)
    return [m if m.failure else _with_learned(m, ready[str(m.pruner)], codecs[m.codec_text]) for m in methods]


def _with_learned(method: Method, ready: Method, codec: Codec | str) -> Method:
    if ready.failure or isinstance(codec, str):
        return replace(method, failure=ready.failure or str(codec))
    return replace(method, pruner=ready.pruner, codec=codec)


def _learned_codecs(methods: Sequence[Method], pages: Sequence[Page]) -> dict[str, Codec | str]:
    """Codecs by their text, calibrated on the vectors of whole pages; in place of one that fails, the reason."""
    found: dict[str, Codec | str] = {}
    for codec in {method.codec_text: method.codec for method in methods if method.failure is None}.values():
        try:
            vectors = np.concatenate([page.vectors.numpy() for page in pages]) if codec.needs_calibration else None
            found[str(codec)] = codec if vectors is None else codec.calibrate(vectors)
        except PruneBoardError as error:
            found[str(codec)] = str(error)
    return found


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
