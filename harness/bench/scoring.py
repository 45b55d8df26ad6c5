"""What scoring costs: five methods at several budgets, one cell at a time as libraries do it, and as one sweep.

Everything runs in this process on the same pages, kept sets and queries, with one thread, in CPU time, from the vectors
of pages and what methods keep of them to scores. Scorers take turns, ours and the full pass between any two others, and
of each piece of work (a cell, or all cells at once; a fraction of a second either way) the median counts: machines are
not equally fast all the time, and the first turn also compiles. Ours runs first, because the peak memory of a process
never goes down again. Scores are compared before a time is printed.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

import resource
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
from rich.progress import track

from harness.console import people
from harness.scoring.queries import tile_queries
from harness.scoring.sweep import score_page
from pruners import Merged, Page, PruneBoardError, Subset, prune, resolve, synthetic_page, unit

COLUMNS = {"scorer": "scorer", "seconds": "CPU s", "ratio": "x one full pass", "ours": "x ours", "peak_mb": "peak MB"}
METHODS = ("random", "eos", "sap(layers=11-14)", "ink", "uniform_grid")
BUDGETS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # from one end to the other
DIM = 128
ROUNDS = 3
TOLERANCE = 1e-4  # of a score, a sum of some twenty similarities in float32
OURS, FULL = "ours: one sweep", "one full pass, flat GEMM + max"

Scorer = Callable[[Sequence[torch.Tensor], Sequence[torch.Tensor]], np.ndarray]
"""Queries and pages to scores."""
Piece = Callable[[], np.ndarray]
"""A part of a scorer's work, timed by itself."""


def measure(pages: int, queries: int, tokens: int, budgets: Sequence[float] = BUDGETS) -> list[dict]:
    """One row a scorer."""
    torch.set_num_threads(1)
    made = [synthetic_page(32, 32, dim=DIM, layers=18, seed=i) for i in range(pages)]
    asked = _queries(queries, tokens)
    pruners = resolve(list(METHODS))
    results = [[_kept(prune(method, page, budgets)) for method in pruners] for page in made]
    cells = [(m, b) for m in range(len(METHODS)) for b in range(len(budgets))]

    def by_cell(scorer: Scorer) -> list[Piece]:
        return [lambda m=m, b=b: scorer(asked, _pruned(made, results, m, b)) for m, b in cells]  # type: ignore[misc]

    peers = {
        "flat GEMM + max, cell by cell": by_cell(_flat),
        "mteb max_sim, cell by cell": by_cell(_mteb),
        "colpali-engine, cell by cell": by_cell(_colpali_engine),
    }
    scorers: dict[str, list[Piece]] = {
        OURS: [lambda: _sweep(made, results, asked)],
        FULL: [lambda: _flat(asked, [page.vectors for page in made])],
        **peers,
    }
    before = _peak_mb()
    peak: dict[str, float] = {}
    turns: dict[str, list[tuple[float, ...]]] = {name: [] for name in scorers}
    scores: dict[str, np.ndarray] = {}
    order = [name for peer in [*peers] * ROUNDS for name in (OURS, FULL, peer)]
    for name in track(order, "score", console=people, transient=True):
        taken, found = zip(*map(_timed, scorers[name]), strict=True)
        turns[name].append(taken)
        peak.setdefault(name, _peak_mb() - before)
        scores[name] = np.stack(found)
    apart = {name: float(np.abs(scores[name] - _same_cells(scores[OURS][0], name)).max()) for name in scorers}
    if wrong := [f"{name} by {found:.2g}" for name, found in apart.items() if not found < TOLERANCE]:
        raise PruneBoardError(f"scores differ from ours, so times mean nothing: {', '.join(wrong)}")
    seconds = {name: float(np.median(taken, axis=0).sum()) for name, taken in turns.items()}
    return [
        {
            "scorer": name,
            "seconds": round(seconds[name], 3),
            "ratio": round(seconds[name] / seconds[FULL], 2),
            "ours": round(seconds[name] / seconds[OURS], 2),
            "peak_mb": round(peak[name]),
            "largest_difference": apart[name],
        }
        for name in (FULL, *(name for name in scorers if name != FULL))
    ]


def _same_cells(ours: np.ndarray, name: str) -> np.ndarray:
    """What a scorer should have found, from our scores: the full page first, then all cells."""
    return {FULL: ours[:1], OURS: ours[np.newaxis]}.get(name, ours[1:])


def _kept(result: Subset | Merged) -> Subset:
    assert isinstance(result, Subset)
    return result


def _queries(count: int, tokens: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [unit(torch.randn(tokens, DIM, generator=generator)) for _ in range(count)]


def _sweep(pages: Sequence[Page], results: Sequence[Sequence[Subset]], asked: Sequence[torch.Tensor]) -> np.ndarray:
    tiles = tile_queries(asked)
    return np.stack([score_page(p.vectors, r, tiles) for p, r in zip(pages, results, strict=True)], axis=-1)


def _pruned(pages: Sequence[Page], results: Sequence[Sequence[Subset]], method: int, b: int) -> list[torch.Tensor]:
    """The pages of one cell: what a method keeps of each at a budget."""
    return [page.vectors[of_page[method].kept(b)] for page, of_page in zip(pages, results, strict=True)]


def _flat(asked: Sequence[torch.Tensor], pages: Sequence[torch.Tensor]) -> np.ndarray:
    """What one would write by hand: a matrix product and a maximum for each page."""
    tokens = torch.cat(list(asked)).T.contiguous()
    shape = len(asked), len(asked[0])
    return torch.stack([(page @ tokens).amax(0).view(shape).sum(1) for page in pages], dim=1).numpy()


def _mteb(asked: Sequence[torch.Tensor], pages: Sequence[torch.Tensor]) -> np.ndarray:
    from mteb.similarity_functions import max_sim

    return max_sim(list(asked), list(pages)).numpy()


def _colpali_engine(asked: Sequence[torch.Tensor], pages: Sequence[torch.Tensor]) -> np.ndarray:
    from colpali_engine.utils.processing_utils import BaseVisualRetrieverProcessor

    return BaseVisualRetrieverProcessor.score_multi_vector(list(asked), list(pages), device="cpu").numpy()


def _timed(work: Piece) -> tuple[float, np.ndarray]:
    """CPU seconds, and what was found."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
