"""The sweep: MaxSim of one page against all queries, for every method and every budget at once.

Similarities of the page are computed once, a tile of query tokens at a time, and all that follows reads them while they
are in cache. Kept sets are prefixes of one order a method (`Subset`), so budgets nest: the running maximum along each
order is read off where a budget ends. Where merged vectors are means of patches (`Groups`), their similarities are
means of the page's. Only vectors made in another way need a product of their own; a method's are stacked for it, and
their maxima taken in the same way. Float32, ragged, no padding: a page's score depends on nothing but that page.

Written by hand because no library has it: scoring cell by cell multiplies the same vectors once a cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from harness.scoring import torch_sweep
from harness.scoring.kernels import group_maxima, list_members, nested_maxima
from harness.scoring.queries import QueryTiles
from pruners.core.contract import Merged, Subset
from pruners.core.groups import Groups

Packed = tuple[np.ndarray, ...]
"""Results of one kind as flat arrays, as a kernel walks them; the last says which row of the scores each cell fills."""
_Order = tuple[np.ndarray, list[tuple[int, int]]]
"""Rows of a matrix in the order in which budgets keep them, and for each budget its count and the row it fills."""


def score_page(vectors: torch.Tensor, results: Sequence[Subset | Merged], queries: QueryTiles) -> np.ndarray:
    """Scores `[1 + cells, queries]` of one page: the full page first, then every result's budgets in turn."""
    if queries.on_gpu:
        return torch_sweep.score_page(vectors, results, queries)
    plan = _Plan.of(len(vectors), results)
    scores = np.empty((plan.cells, len(queries)), np.float32)
    for tile in queries.tiles:
        similarity = torch.mm(vectors, tile.tokens).numpy()
        nested_maxima(similarity, tile.offsets, scores, tile.first, *plan.nested)
        group_maxima(similarity, tile.offsets, scores, tile.first, *plan.groups)
        for stacked, orders in plan.stacks:
            nested_maxima(torch.mm(stacked, tile.tokens).numpy(), tile.offsets, scores, tile.first, *orders)
    return scores


@dataclass(frozen=True)
class _Plan:
    """The cells of a page by the way they are scored, each with the row of the scores it fills. The first is the full
    page: all patches in any order, so it is read off where a method's order ends.
    """

    cells: int
    nested: Packed
    groups: Packed
    stacks: list[tuple[torch.Tensor, Packed]]

    @classmethod
    def of(cls, patches: int, results: Sequence[Subset | Merged]) -> _Plan:
        groups, stacks, row = [], [], 1
        orders: list[_Order] = []
        for result in results:
            if isinstance(result, Subset):
                orders.append((result.order, [(count, row + i) for i, count in enumerate(result.counts)]))
                row += len(result.counts)
                continue
            parts = list(enumerate(result.parts, row))
            groups += [(at, part) for at, part in parts if isinstance(part, Groups)]
            # Stacked by method and never across methods: the last bits of a product may depend on how many rows it
            # has, and a method's scores must not depend on which others run beside it.
            if made := [(at, part) for at, part in parts if not isinstance(part, Groups)]:
                stacks.append(_stack(made))
            row += len(parts)
        if not any(len(order) == patches for order, _ in orders):  # a pruner may end its order earlier
            orders.append((np.arange(patches), []))
        next(cells for order, cells in orders if len(order) == patches).append((patches, 0))
        return cls(row, _pack_orders(orders), _pack_groups(groups), stacks)


def _pack_orders(orders: Sequence[_Order]) -> Packed:
    """Orders end to end, as far as a cell reads them; for each cell its order's start, its count and its row."""
    read, starts, counts, rows, at = [np.empty(0, np.int64)], [], [], [], 0
    for order, cells in orders:
        for count, row in sorted(cells):  # by rising count, the way a kernel walks them
            starts.append(at)
            counts.append(count)
            rows.append(row)
        read.append(order[: counts[-1]])
        at += counts[-1]
    return np.concatenate(read).astype(np.int64), *(np.array(column, np.int64) for column in (starts, counts, rows))


def _stack(parts: Sequence[tuple[int, torch.Tensor]]) -> tuple[torch.Tensor, Packed]:
    """A method's vectors, with the rows they fill, as one matrix. Budgets nest too where they are the first rows of one
    tensor.
    """
    longest = max((part for _, part in parts), key=len)
    if all(part.data_ptr() == longest.data_ptr() and part.stride() == longest.stride() for _, part in parts):
        return longest, _pack_orders([(np.arange(len(longest)), [(len(part), row) for row, part in parts])])
    ends = np.cumsum([len(part) for _, part in parts])
    orders = [
        (np.arange(end - len(part), end), [(len(part), row)]) for end, (row, part) in zip(ends, parts, strict=True)
    ]
    return torch.cat([part for _, part in parts]), _pack_orders(orders)


def _pack_groups(groups: Sequence[tuple[int, Groups]]) -> Packed:
    """Patches by group, end to end; where each group's begin, and its scale; where each cell's groups begin, and its
    row.
    """
    rows = np.array([row for row, _ in groups], np.int64)
    cells = np.cumsum([0, *(len(each) for _, each in groups)])
    labels = np.array([each.labels for _, each in groups], np.int64, ndmin=2)  # [1, 0] if there are none
    members, starts = list_members(labels, cells)
    return members, starts, np.concatenate([np.empty(0, np.float32), *(each.scales for _, each in groups)]), cells, rows
