"""What scoring costs: five methods at several budgets, one cell at a time as libraries do it, and as one sweep.

Everything runs in this process on the same pages, kept sets and queries, with one thread, in CPU time. Ours runs first,
because the peak memory of a process never goes down again. Scores are compared before a time is printed.
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
from pruners import SWEEP, Merged, Page, Subset, prune, resolve, synthetic_page, unit

COLUMNS = {"scorer": "scorer", "seconds": "CPU s", "ratio": "x one full pass", "ours": "x ours", "peak_mb": "peak MB"}
METHODS = ("random", "eos", "sap(layers=11-14)", "ink", "uniform_grid")
BUDGETS = SWEEP[1:]  # eleven
DIM = 128

Cells = Sequence[Sequence[torch.Tensor]]
"""For each cell, the kept vectors of every page."""


def measure(pages: int, queries: int, tokens: int, budgets: Sequence[float] = BUDGETS) -> list[dict]:
    """One row a scorer."""
    torch.set_num_threads(1)
    made = [synthetic_page(32, 32, dim=DIM, layers=18, seed=i) for i in range(pages)]
    asked = _queries(queries, tokens)
    pruners = resolve(list(METHODS))
    results = [[_kept(prune(method, page, budgets)) for method in pruners] for page in made]
    before = _peak_mb()
    ours, scores = _timed(lambda: _sweep(made, results, asked))
    rows = [_row("ours: one sweep", ours, _peak_mb() - before)]
    full, _ = _timed(lambda: _flat(asked, [page.vectors for page in made]))
    rows.insert(0, _row("one full pass, flat GEMM + max", full, _peak_mb() - before))
    cells = _cells(made, results)
    peers = {"flat GEMM + max, cell by cell": _flat, "mteb max_sim, cell by cell": _mteb}
    for name, scorer in {**peers, "colpali-engine, cell by cell": _colpali_engine}.items():
        taken, found = _timed(lambda scorer=scorer: _cell_by_cell(scorer, asked, cells))  # type: ignore[misc]
        worst = float(np.abs(found - scores[1:]).max())
        rows.append(_row(name, taken, _peak_mb() - before) | {"largest_difference": worst})
    for row in rows:
        row["ratio"], row["ours"] = round(row["seconds"] / full, 2), round(row["seconds"] / ours, 2)
        row["seconds"] = round(row["seconds"], 3)
    return rows


def _kept(result: Subset | Merged) -> Subset:
    assert isinstance(result, Subset)
    return result


def _queries(count: int, tokens: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [unit(torch.randn(tokens, DIM, generator=generator)) for _ in range(count)]


def _sweep(pages: Sequence[Page], results: Sequence[Sequence[Subset]], asked: Sequence[torch.Tensor]) -> np.ndarray:
    tiles = tile_queries(asked)
    return np.stack([score_page(p.vectors, r, tiles) for p, r in zip(pages, results, strict=True)], axis=-1)


def _cells(pages: Sequence[Page], results: Sequence[Sequence[Subset]]) -> Cells:
    return [
        [page.vectors[of_page[method].kept(b)] for page, of_page in zip(pages, results, strict=True)]
        for method in range(len(METHODS))
        for b in range(len(results[0][method].counts))
    ]


def _cell_by_cell(scorer: Callable, asked: Sequence[torch.Tensor], cells: Cells) -> np.ndarray:
    return np.stack([scorer(asked, cell) for cell in track(cells, "peer", console=people, transient=True)])


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


def _timed(work: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    """CPU seconds of the faster of two runs; the first also compiles and warms up."""
    taken = []
    for _ in range(2):
        start = time.process_time()
        found = work()
        taken.append(time.process_time() - start)
    return min(taken), found


def _row(name: str, seconds: float, peak: float) -> dict:
    return {"scorer": name, "seconds": seconds, "peak_mb": round(peak)}


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
