"""The compiled loops of the sweep: maxima over patches, summed over each query's tokens.

`similarity` is [N, tokens], `offsets` says where each query's tokens begin and end, and cell c fills row `rows[c]` of
`out` from the column `first` on. `best`, the running maximum of every token, goes from one buffer to another: where old
and new are the same array, the compiler stores only what changed, number by number, which is five times slower
(measured).
"""

from __future__ import annotations

import numba
import numpy as np

NO_NAN = {"nnan", "nsz"}  # similarities are numbers: a maximum may become one vector instruction


@numba.njit(cache=True, nogil=True)
def nested_maxima(
    similarity: np.ndarray,
    offsets: np.ndarray,
    out: np.ndarray,
    first: int,
    orders: np.ndarray,
    starts: np.ndarray,
    counts: np.ndarray,
    rows: np.ndarray,
) -> None:
    """Row `rows[c]` of `out`: the first `counts[c]` patches of the order that begins at `starts[c]`."""
    best, spare = _buffers(similarity)
    done, start = 0, -1
    for c in range(len(counts)):
        if starts[c] != start:  # another order begins
            start, done = starts[c], 0
            _fill(best, -np.inf)
        best, spare = _raise(best, spare, similarity, orders[start + done : start + counts[c]])
        done = max(done, counts[c])
        _sum_queries(best, offsets, out[rows[c]], first)


@numba.njit(cache=True)
def list_members(labels: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Patches by group, and where each group's begin; one more for where the last one's end.

    `labels [cells, N]` count from 0 in every cell, whose groups are `cells[c] .. cells[c + 1]`; -1 is in none.
    """
    starts = np.zeros(cells[-1] + 1, np.int64)
    for c in range(len(labels)):
        for label in labels[c]:
            if label >= 0:
                starts[cells[c] + label + 1] += 1
    for group in range(cells[-1]):
        starts[group + 1] += starts[group]
    place, members = starts.copy(), np.empty(starts[-1], np.int64)
    for c in range(len(labels)):
        for i in range(labels.shape[1]):
            if labels[c, i] >= 0:
                group = cells[c] + labels[c, i]
                members[place[group]] = i
                place[group] += 1
    return members, starts


@numba.njit(cache=True, nogil=True)
def group_maxima(
    similarity: np.ndarray,
    offsets: np.ndarray,
    out: np.ndarray,
    first: int,
    members: np.ndarray,
    starts: np.ndarray,
    scales: np.ndarray,
    cells: np.ndarray,
    rows: np.ndarray,
) -> None:
    """Row `rows[c]` of `out`: the groups `cells[c] .. cells[c + 1]`, each the scaled sum of its patches."""
    best, spare = _buffers(similarity)
    total = np.empty_like(best)
    for c in range(len(rows)):
        _fill(best, -np.inf)
        for g in range(cells[c], cells[c + 1]):
            _add_up(total, similarity, members[starts[g] : starts[g + 1]])
            _raise_to(spare, best, total, scales[g])
            best, spare = spare, best
        _sum_queries(best, offsets, out[rows[c]], first)


@numba.njit(cache=True, nogil=True)
def _buffers(similarity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    tokens = similarity.shape[1]
    return np.empty(tokens, np.float32), np.empty(tokens, np.float32)


@numba.njit(cache=True, nogil=True)
def _fill(best: np.ndarray, value: float) -> None:
    for t in range(len(best)):
        best[t] = value


@numba.njit(cache=True, nogil=True, fastmath=NO_NAN)
def _raise(
    best: np.ndarray, spare: np.ndarray, similarity: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`best` raised to the maximum over `rows`, eight at a time; it and the other buffer."""
    i, n, tokens = 0, len(rows), np.uint64(similarity.shape[1])
    while i < n and n >= 8:
        i = min(i, n - 8)  # the last eight may contain some of those before: a maximum does not mind
        # unsigned, so that no index is checked for counting from the end
        a, b, c, d = np.uint64(rows[i]), np.uint64(rows[i + 1]), np.uint64(rows[i + 2]), np.uint64(rows[i + 3])
        e, f, g, h = np.uint64(rows[i + 4]), np.uint64(rows[i + 5]), np.uint64(rows[i + 6]), np.uint64(rows[i + 7])
        for t in range(tokens):
            four = max(max(similarity[a, t], similarity[b, t]), max(similarity[c, t], similarity[d, t]))
            more = max(max(similarity[e, t], similarity[f, t]), max(similarity[g, t], similarity[h, t]))
            spare[t] = max(best[t], max(four, more))
        best, spare = spare, best
        i += 8
    while i < n:
        a = np.uint64(rows[i])
        for t in range(tokens):
            spare[t] = max(best[t], similarity[a, t])
        best, spare = spare, best
        i += 1
    return best, spare


@numba.njit(cache=True, nogil=True)
def _add_up(total: np.ndarray, similarity: np.ndarray, rows: np.ndarray) -> None:
    """The sum over `rows`, four at a time too."""
    tokens = np.uint64(similarity.shape[1])
    a = np.uint64(rows[0])
    for t in range(tokens):
        total[t] = similarity[a, t]
    i = 1
    while i + 4 <= len(rows):
        a, b, c, d = np.uint64(rows[i]), np.uint64(rows[i + 1]), np.uint64(rows[i + 2]), np.uint64(rows[i + 3])
        for t in range(tokens):
            total[t] += (similarity[a, t] + similarity[b, t]) + (similarity[c, t] + similarity[d, t])
        i += 4
    while i < len(rows):
        a = np.uint64(rows[i])
        for t in range(tokens):
            total[t] += similarity[a, t]
        i += 1


@numba.njit(cache=True, nogil=True, fastmath=NO_NAN)
def _raise_to(new: np.ndarray, best: np.ndarray, total: np.ndarray, scale: np.float32) -> None:
    for t in range(np.uint64(len(best))):
        new[t] = max(best[t], total[t] * scale)


@numba.njit(cache=True, nogil=True)
def _sum_queries(best: np.ndarray, offsets: np.ndarray, out: np.ndarray, first: int) -> None:
    for q in range(len(offsets) - 1):
        total = np.float32(0)
        for t in range(offsets[q], offsets[q + 1]):
            total += best[t]
        out[first + q] = total
