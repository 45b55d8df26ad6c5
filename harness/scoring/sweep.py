"""The sweep: MaxSim of one page against all queries, for every method and every budget at once.

Kept sets are prefixes of one order a method (`Subset`), so budgets nest: similarities of the page are computed once, a
tile of query tokens at a time, and while a tile is in cache the running maximum along each order is read off where a
budget ends. Merged vectors share nothing with the page; a method's are stacked, multiplied once, and their maxima taken
segment by segment. Float32, ragged, no padding: a page's score depends on nothing but that page.

Written by hand because no library has it: scoring cell by cell multiplies the same vectors once a cell.
"""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np
import torch

from harness.scoring import torch_sweep
from harness.scoring.queries import QueryTiles
from pruners.core.contract import Merged, Subset


def score_page(vectors: torch.Tensor, results: Sequence[Subset | Merged], queries: QueryTiles) -> np.ndarray:
    """Scores `[1 + cells, queries]` of one page: the full page first, then every result's budgets in turn."""
    if queries.on_gpu:
        return torch_sweep.score_page(vectors, results, queries)
    subsets = [result for result in results if isinstance(result, Subset)]
    orders, starts, counts = _pack(subsets)
    # Stacked by method and never across methods: the last bits of a product may depend on how many rows it has, and
    # a method's scores must not depend on which others run beside it.
    merged = [result.vectors for result in results if isinstance(result, Merged)]
    stacks = [(torch.cat(parts), np.cumsum([0, *map(len, parts)])) for parts in merged]

    nested = np.empty((1 + len(counts), len(queries)), np.float32)
    flat = np.empty((sum(map(len, merged)), len(queries)), np.float32)
    for tile in queries.tiles:
        columns = slice(tile.first, tile.last)
        similarity = torch.mm(vectors, tile.tokens).numpy()
        _nested_maxima(similarity, orders, starts, counts, tile.offsets, nested[:, columns])
        row = 0
        for stacked, ends in stacks:
            cells = slice(row, row + len(ends) - 1)
            _segment_maxima(torch.mm(stacked, tile.tokens).numpy(), ends, tile.offsets, flat[cells, columns])
            row = cells.stop
    return _in_order(results, nested, flat)


def _pack(subsets: Sequence[Subset]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Orders end to end, as far as a budget reads them; and for each cell the order's start and its count.

    Cells of one order stand by rising count, which is how the kernel walks them; `_in_order` undoes it.
    """
    orders, starts, counts, at = [np.empty(0, np.int64)], [], [], 0
    for subset in subsets:
        longest = max(subset.counts)
        orders.append(subset.order[:longest])
        starts += [at] * len(subset.counts)
        counts += sorted(subset.counts)
        at += longest
    return np.concatenate(orders).astype(np.int64), np.array(starts, np.int64), np.array(counts, np.int64)


def _in_order(results: Sequence[Subset | Merged], nested: np.ndarray, flat: np.ndarray) -> np.ndarray:
    """The rows of both kernels in the order of `results`."""
    rows, next_nested, next_flat = [nested[:1]], 1, 0
    for result in results:
        if isinstance(result, Subset):
            place = np.argsort(np.argsort(result.counts, kind="stable"), kind="stable")
            rows.append(nested[next_nested + place])
            next_nested += len(result.counts)
        else:
            rows.append(flat[next_flat : next_flat + len(result.vectors)])
            next_flat += len(result.vectors)
    return np.concatenate(rows)


NO_NAN = {"nnan", "ninf", "nsz"}  # similarities are finite: a maximum may become one vector instruction


@numba.njit(cache=True, nogil=True)
def _nested_maxima(
    similarity: np.ndarray,
    orders: np.ndarray,
    starts: np.ndarray,
    counts: np.ndarray,
    offsets: np.ndarray,
    out: np.ndarray,
) -> None:
    """Row 0 of `out`: all patches. Row 1 + c: the first `counts[c]` patches of the order that begins at `starts[c]`.

    `similarity [N, tokens]`; a query's score is the sum over its tokens of the maximum over patches.
    """
    n, tokens = similarity.shape
    best = np.empty(tokens, np.float32)
    best[:] = similarity[0]
    _raise(best, similarity, np.arange(1, n))
    _sum_queries(best, offsets, out[0])
    done, start = 0, -1
    for c in range(len(counts)):
        if starts[c] != start:  # another order begins
            start, done = starts[c], 1
            best[:] = similarity[orders[start]]
        _raise(best, similarity, orders[start + done : start + counts[c]])
        done = max(done, counts[c])
        _sum_queries(best, offsets, out[1 + c])


@numba.njit(cache=True, nogil=True)
def _segment_maxima(similarity: np.ndarray, ends: np.ndarray, offsets: np.ndarray, out: np.ndarray) -> None:
    """Row c of `out`: the rows `ends[c] .. ends[c + 1]` of `similarity`."""
    best = np.empty(similarity.shape[1], np.float32)
    for c in range(len(ends) - 1):
        best[:] = similarity[ends[c]]
        _raise(best, similarity, np.arange(ends[c] + 1, ends[c + 1]))
        _sum_queries(best, offsets, out[c])


@numba.njit(cache=True, nogil=True, fastmath=NO_NAN)
def _raise(best: np.ndarray, similarity: np.ndarray, rows: np.ndarray) -> None:
    """Raise `best` to the maximum over `rows`, four at a time: one at a time is three times slower (measured)."""
    i, tokens = 0, np.uint64(similarity.shape[1])
    while i + 4 <= len(rows):
        # unsigned, so that no index is checked for counting from the end
        a, b, c, d = np.uint64(rows[i]), np.uint64(rows[i + 1]), np.uint64(rows[i + 2]), np.uint64(rows[i + 3])
        for t in range(tokens):
            pair = max(similarity[a, t], similarity[b, t])
            best[t] = max(best[t], max(pair, max(similarity[c, t], similarity[d, t])))
        i += 4
    while i < len(rows):
        a = np.uint64(rows[i])
        for t in range(tokens):
            best[t] = max(best[t], similarity[a, t])
        i += 1


@numba.njit(cache=True, nogil=True)
def _sum_queries(best: np.ndarray, offsets: np.ndarray, out: np.ndarray) -> None:
    for q in range(len(offsets) - 1):
        total = np.float32(0)
        for t in range(offsets[q], offsets[q + 1]):
            total += best[t]
        out[q] = total
