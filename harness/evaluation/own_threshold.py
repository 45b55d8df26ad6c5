"""A threshold of its own: an adaptive method given its λ (`docpruner(z=0.5)`) keeps what it keeps at any budget.

Such a method has one cell, at the ratio it really kept. To say anything about it, a fixed-ratio partner is evaluated
beside it at that same ratio, data set by data set (SAP paper, App. "Baseline Implementation Details").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.engine.engine import PROCESSES, WorkEngine
from harness.evaluation.config import Config
from harness.evaluation.methods import Method, choose_methods, codecs_alone
from harness.evaluation.shared_store import SharedStore
from harness.evaluation.tally import BLOCK, portions
from harness.progress import Progress
from harness.store.reader import Store
from pruners import Merged, Pruner, Subset, prune
from pruners.core.errors import PruneBoardError, PrunerError
from pruners.guests.host import USUAL, Isolation

ANY_BUDGET = (1.0,)  # such a method is asked once, and does not listen


def methods_of(
    config: Config, texts: Sequence[str] | None = None, own: Sequence[Pruner] = (), apart: Isolation = USUAL
) -> list[Method]:
    """All that a configuration asks for: methods, the codecs by themselves, partners. `own` are pruners given as
    objects; `texts` then are the others.
    """
    chosen = choose_methods(config.pruners if texts is None else texts, config.trials, own, config.codecs, apart)
    if alone := [text for text in codecs_alone(config.codecs) if text not in {method.text for method in chosen}]:
        chosen += choose_methods(alone, config.trials)
    return add_partners(chosen, config.partners, config.trials, apart)


def add_partners(
    methods: Sequence[Method], partners: Sequence[str], trials: int | None, apart: Isolation = USUAL
) -> list[Method]:
    """Methods with such ones marked, each followed by its partners: those named, or the one it names itself."""
    found: list[Method] = []
    for method in methods:
        if not method.pruner.own_threshold:
            found.append(method)
            continue
        found.append(replace(method, own_threshold=True))
        own = [method.pruner.partner] if method.pruner.partner and not partners else []
        codecs = [method.codec_text]  # a partner is stored as the method is
        for partner in choose_methods(partners, trials, own, codecs, apart) if partners or own else []:
            if partner.pruner.budget_kind != "fixed":
                raise PruneBoardError(f"a partner keeps a fixed ratio; {partner.text} is {partner.pruner.budget_kind}")
            found.append(replace(partner, text=f"{partner.text} @ {method.text}", partner_of=method.text))
    if partners and len(found) == len(methods):
        raise PruneBoardError(
            "--partner belongs to methods with a threshold of their own, such as docpruner(z=0); none was asked for"
        )
    return found


def at_realised_ratio(
    missing: Sequence[Method],
    methods: Sequence[Method],
    store: Store,
    seed: int,
    data_set: str,
    progress: Progress,
    workers: int = 1,
    engine: WorkEngine = PROCESSES,
) -> tuple[list[Method], dict[str, str]]:
    """The `missing` of a data set's methods, partners bound to the ratio that their method keeps there.

    Partners whose method fails have no ratio to be evaluated at: they come back as failures.
    """
    leading = tuple(m for m in methods if any(partner.partner_of == m.text for partner in missing))
    kept, vectors = dict.fromkeys((m.text for m in leading), 0), 0
    if leading:
        blocks = portions(range(len(store)), block=BLOCK)
        with (
            progress(f"{data_set}: ratios kept", total=len(store), done=0) as advance,
            engine.spread(_KeptOf(store, leading, seed), blocks, workers, ordered=False) as results,
        ):
            for found, counts, pages in results:
                vectors += found
                kept = {text: kept[text] + counts[text] for text in kept if text in counts}
                advance(pages)
    bound: list[Method] = []
    lost: dict[str, str] = {}
    for method in missing:
        if method.partner_of is None:
            bound.append(method)
        elif method.partner_of in kept:
            bound.append(replace(method, at=(kept[method.partner_of] / vectors,)))
        else:
            lost[method.text] = f"{method.partner_of} failed, so there is no ratio to evaluate it at"
    return bound, lost


@dataclass(frozen=True)
class _KeptOf:
    """What a worker does with some pages: vectors of all, and kept by each method that did not fail; how many pages."""

    store: Store
    methods: tuple[Method, ...]
    seed: int

    def __call__(self, pages: Sequence[int]) -> tuple[int, dict[str, int], int]:
        vectors, kept = 0, dict.fromkeys((m.text for m in self.methods), 0)
        for page in map(self.store.page, pages):
            vectors += len(page)
            for method in [m for m in self.methods if m.text in kept]:
                try:
                    kept[method.text] += _count(prune(method.pruner, page, ANY_BUDGET, seed=self.seed))
                except PrunerError:  # scoring meets the same page, and reports it
                    del kept[method.text]
        return vectors, kept, len(pages)

    def __reduce__(self) -> tuple[Any, ...]:
        """To another machine go names: pages are read from the store there."""
        return _received, (SharedStore.of(self.store), self.methods, self.seed)


def _received(sent: Any, methods: tuple[Method, ...], seed: int) -> _KeptOf:
    return _KeptOf(SharedStore.open(sent), methods, seed)


def _count(result: Subset | Merged) -> int:
    return result.counts[0] if isinstance(result, Subset) else len(result.parts[0])
