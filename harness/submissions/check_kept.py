"""Realised budgets, counted again from the vectors kept of each page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from harness.submissions.checks import AGAIN, TOLERANCE, where
from harness.submissions.entry import printable
from harness.submissions.pinned import Judgements
from harness.submissions.problems import Notes
from harness.submissions.schema import Cell, Submission
from pruners.core.budget import keep_count


def check_kept(submission: Submission, table: pa.Table, judged: Mapping[str, Judgements], notes: Notes) -> None:
    """The rows are whole, their counts possible, and their sums what the cells say."""
    kept: dict[tuple[str, float], list[np.ndarray]] = {}
    lists = table["kept"].combine_chunks()
    flat, ends = lists.flatten().to_numpy().astype(np.int64), np.cumsum(lists.value_lengths().to_numpy())
    counts = np.split(flat, ends)[: len(ends)]
    for name, budget, row in zip(table["data_set"].to_pylist(), table["budget"].to_pylist(), counts, strict=True):
        kept.setdefault((name, budget), []).append(row)
    cells: dict[tuple[str, float], list[tuple[int, Cell]]] = {}
    for i, cell in enumerate(submission.cells):
        cells.setdefault((cell.data_set, cell.budget), []).append((i, cell))
    for name, budget in sorted(kept.keys() ^ cells.keys()):
        notes.error("kept", f"{printable(name)} at {budget:g} is in the rows or in the cells only", AGAIN)
    for (name, budget), here in cells.items():
        rows, full, trials = kept.get((name, budget)), kept.get((name, 1.0)), here[0][1].trials
        field, pages = f"kept ({printable(name)} at {budget:g})", len(judged[name].page_ids)
        if rows is None or full is None:
            continue  # said above
        if any(len(row) != pages for row in [*rows, full[0]]):
            notes.error(field, f"has {len(rows[0])} pages, the benchmark {pages}", AGAIN)
        elif len(rows) != trials:
            notes.error(field, f"has {len(rows)} trials, the cells say {trials}", AGAIN)
        else:
            trial_rows = np.stack(rows)
            _check_counts(submission, field, budget, trial_rows, full[0], notes)
            _check_realised(submission, here, trial_rows, full[0], notes)


def _check_counts(
    submission: Submission, field: str, budget: float, rows: np.ndarray, full: np.ndarray, notes: Notes
) -> None:
    if (rows < 1).any() or (rows > full).any():
        notes.error(field, "a page keeps fewer than one or more than all of its vectors", AGAIN)
    elif not (submission.method.adaptive or submission.method.snapped):
        keep = {n: keep_count(budget, n) for n in set(full.tolist())}
        expected = np.array([keep[n] for n in full.tolist()])
        if wrong := int((rows != expected).any(0).sum()):
            what = f"{wrong} pages do not keep ⌈γN⌉ vectors, as a fixed budget must"
            notes.error(field, what, "declare the method adaptive or snapped, or keep the budget")


def _check_realised(
    submission: Submission, cells: Sequence[tuple[int, Cell]], rows: np.ndarray, full: np.ndarray, notes: Notes
) -> None:
    mean = float(rows.sum(1).mean())
    found = {"realised": mean / float(full.sum())}
    if submission.backbone.profile != "native":  # there prompt vectors are stored too, of which nothing is kept here
        found["vectors_per_page"] = mean / len(full)
    for i, cell in cells:
        for what, value in found.items():
            stated = getattr(cell, what)
            if stated is None or abs(stated - value) > TOLERANCE * max(1, value):
                field = f"{where(i, cell)}.{what}"
                notes.error(field, f"is {stated}, but the kept vectors give {value:.6f}", AGAIN)
