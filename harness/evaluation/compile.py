"""The compiled loops of methods, scoring and metrics, made while pages are encoded.

Freshly installed code compiles for a quarter of a minute, once. Where pages must be encoded first, that happens beside
it: a process of its own takes made-up pages through all stages, and what it compiles is on disk when it is wanted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from harness.evaluation.methods import Method, is_built_in
from harness.metrics.ranking import Evaluator
from harness.metrics.uncertainty import compare
from harness.progress import Progress
from harness.scoring.queries import tile_queries
from harness.scoring.sweep import score_page
from harness.workers import beside
from pruners import Merged, Subset, Window, prune
from pruners.core.apply import calibrate
from pruners.core.errors import PruneBoardError
from pruners.core.proof import synthetic_page


@contextmanager
def compiling(methods: Sequence[Method], budgets: Sequence[float], progress: Progress) -> Iterator[None]:
    """Compile while this block runs; at its end, wait until that is done."""
    with beside(lambda: compile_loops(methods, budgets)) as done:
        yield
        if not done(0):
            with progress("compile, once after installation", total=1, done=0) as advance:
                done(None)
                advance(1)


def compile_loops(methods: Sequence[Method], budgets: Sequence[float]) -> None:
    """Prune, score and measure made-up pages. Methods from a user's file see no pages but those to evaluate."""
    page, other = synthetic_page(16, 12), synthetic_page(16, 12, seed=1)
    queries = [page.vectors[:5], page.vectors[5:7]]
    results: list[Subset | Merged] = []
    for method in methods:
        if not is_built_in(method.pruner):
            continue
        try:
            pruner = calibrate(method.pruner.with_window(Window(0, None)), [page, other], budgets)
            gold = queries if method.diagnostic else None
            results.append(prune(pruner, page, method.budgets(tuple(budgets)), queries=gold))
        except PruneBoardError:
            continue  # the evaluation itself will meet it and say so; here it only was not compiled
    scores = score_page(page.vectors, results, tile_queries(queries))[..., np.newaxis]
    evaluate = Evaluator({"a": {"page": 1}, "b": {"page": 1}}, ["a", "b"], ["page"])
    evaluate(scores)
    evaluate.best(scores)
    compare([[np.ones((2, 2))]], resamples=1)
