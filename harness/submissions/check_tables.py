"""The tables of a measured submission: are they whole, and do they give the figures of the JSON file?

Computed again: NDCG@1, 5 and 10 of every query from its ranking; every cell's means; Score Retention's means; the
realised budget from the vectors kept of each page, which for methods with a fixed budget must be ⌈γN⌉ page by page.
Declared: NDCG@50 and 100 (only held against bounds that the first ten pages set), Score Retention of a query,
how many vectors an adaptive method kept of a page, bytes beyond the vectors' own, times.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from harness.metrics.ranking import CUTOFFS
from harness.submissions.checks import TOLERANCE, where
from harness.submissions.entry import printable
from harness.submissions.pinned import Judged
from harness.submissions.problems import Notes
from harness.submissions.recompute import DEEPER, RANKED, TOP, Rankings, deeper_bounds, ndcg, pair_mean, rankings
from harness.submissions.rows import figures
from harness.submissions.schema import Cell, Submission
from pruners.core.budget import keep_count

AGAIN = "submit the run again with `harness submit`"
FEW_QUERIES = 10  # so few rankings may coincide at two budgets


@dataclass(frozen=True)
class Recomputed:
    """Figures that came out: cells with their NDCG, and the table of queries with theirs."""

    submission: Submission
    per_query: pd.DataFrame


def check_per_query(
    submission: Submission, table: pa.Table, judged: Mapping[str, Judged], notes: Notes
) -> Recomputed | None:
    """Check the rows and compute NDCG again; None if they cannot be used."""
    frame, before = figures(table), len(notes.found)
    _check_values(frame, notes)
    by_data_set = rankings(table, judged)
    stated = {(cell.data_set, cell.budget) for cell in submission.cells}
    pairs = frame[["data_set", "budget"]].drop_duplicates().astype({"data_set": str}).itertuples(index=False)
    held = {(str(name), float(budget)) for name, budget in pairs}
    for name, budget in sorted(held ^ stated):
        what = "the cells have them, the rows not" if (name, budget) in stated else "the rows have them, the cells not"
        notes.error("per_query", f"{printable(name)} at {budget:g}: {what}", AGAIN)
    for name, found in by_data_set.items():
        _check_rows(submission, name, frame.iloc[found.rows], found, judged[name], notes)
    if len(notes.found) > before:
        return None
    frame = frame.copy()
    for name, found in by_data_set.items():
        _recompute(name, frame, found, judged[name], notes)
        _warn_reused(submission, name, frame.iloc[found.rows], found, notes)
    cells = tuple(_check_cell(submission, cell, frame, judged[cell.data_set], notes) for cell in submission.cells)
    return Recomputed(submission.model_copy(update={"cells": cells}), frame)


def check_kept(submission: Submission, table: pa.Table, judged: Mapping[str, Judged], notes: Notes) -> None:
    """The realised budget from the vectors kept of each page."""
    kept: dict[tuple[str, float], list[np.ndarray]] = {}
    for row in table.to_pylist():
        kept.setdefault((row["data_set"], row["budget"]), []).append(np.array(row["kept"], np.int64))
    for key in sorted(kept.keys() ^ {(cell.data_set, cell.budget) for cell in submission.cells}):
        notes.error("kept", f"{printable(key[0])} at {key[1]:g} is in the rows or in the cells only", AGAIN)
    for (name, budget), rows in kept.items():
        field, full = f"kept ({printable(name)} at {budget:g})", kept.get((name, 1.0))
        cells = [cell for cell in submission.cells if (cell.data_set, cell.budget) == (name, budget)]
        if name not in judged or full is None or not cells:
            continue
        if any(len(row) != len(judged[name].page_ids) for row in [*rows, full[0]]):
            notes.error(field, f"has {len(rows[0])} pages, the benchmark {len(judged[name].page_ids)}", AGAIN)
            continue
        if len(rows) != cells[0].trials:
            notes.error(field, f"has {len(rows)} trials, the cells say {cells[0].trials}", AGAIN)
            continue
        _check_counts(submission, field, budget, np.stack(rows), full[0], notes)
        _check_realised(submission, cells, np.stack(rows), full[0], notes)


def _check_counts(
    submission: Submission, field: str, budget: float, rows: np.ndarray, full: np.ndarray, notes: Notes
) -> None:
    if (full < 1).any() or (rows < 1).any() or (rows > full).any():
        notes.error(field, "a page keeps fewer than one or more than all of its vectors", AGAIN)
    elif not (submission.method.adaptive or submission.method.snapped):
        counts = {n: keep_count(budget, n) for n in set(full.tolist())}
        expected = np.array([counts[n] for n in full.tolist()])
        if wrong := int((rows != expected).any(0).sum()):
            what = f"{wrong} pages do not keep ⌈γN⌉ vectors, as a fixed budget must"
            notes.error(field, what, "declare the method adaptive or snapped, or keep the budget")


def _check_realised(
    submission: Submission, cells: Iterable[Cell], rows: np.ndarray, full: np.ndarray, notes: Notes
) -> None:
    mean = float(rows.sum(1).mean())
    for cell in cells:
        found = {"realised": mean / float(full.sum()), "vectors_per_page": mean / len(full)}
        for what, value in found.items():
            stated = getattr(cell, what)
            if stated is None or abs(stated - value) > TOLERANCE * max(1, value):
                field = f"{where(submission, cell)}.{what}"
                notes.error(field, f"is {stated}, but the kept vectors give {value:.6f}", AGAIN)


def _check_values(frame: pd.DataFrame, notes: Notes) -> None:
    for k in CUTOFFS:
        values = frame[f"ndcg@{k}"].to_numpy()
        if wrong := int((~((values >= 0) & (values <= 1 + TOLERANCE))).sum()):
            notes.error(f"per_query.ndcg@{k}", f"{wrong} rows are no number from 0 to 1", AGAIN)
    if np.isinf(frame["score_retention"].to_numpy(np.float64)).any():
        notes.error("per_query.score_retention", "some rows are infinite", AGAIN)


def _check_rows(
    submission: Submission, name: str, rows: pd.DataFrame, found: Rankings, judged: Judged, notes: Notes
) -> None:
    """Every query of a data set once for each budget and trial, ranking pages that exist, none of them twice."""
    field = f"per_query ({printable(name)})"
    if (found.query < 0).any():
        query = rows["query"].iloc[int(np.argmax(found.query < 0))]
        notes.error(field, f"the query {printable(query)} is not in qrels.parquet, or has no relevant page", AGAIN)
        return
    if (rows["language"].astype(object).to_numpy() != judged.language_of[found.query]).any():
        notes.error(f"{field}.language", "is not the queries' language in qrels.parquet", AGAIN)
    keys = pd.DataFrame({"budget": rows["budget"].to_numpy(), "trial": rows["trial"].to_numpy(), "query": found.query})
    if twice := int(keys.duplicated().sum()):
        notes.error(field, f"{twice} rows occur twice", AGAIN)
    counts = keys.drop_duplicates().groupby(["budget", "trial"]).size()
    for (budget, trial), count in counts.items():
        if count != len(judged.queries):
            what = f"{count} of {len(judged.queries)} queries at {budget:g}, trial {trial}"
            notes.error(field, what, "every query with a relevant page must be there: leaving some out flatters")
    for budget, trials in keys.groupby("budget")["trial"].unique().items():
        stated = {c.trials for c in submission.cells if c.data_set == name and c.budget == budget}
        if sorted(trials) != list(range(len(trials))) or stated - {len(trials)}:
            notes.error(field, f"trials at {budget:g} are {sorted(trials)[:5]}, the cells say {sorted(stated)}", AGAIN)
    length = min(TOP, len(judged.page_ids))
    if wrong := int((found.length != length).sum()):
        notes.error(f"{field}.top_10", f"{wrong} rankings do not have {length} pages", AGAIN)
    if unknown := int((found.unknown > 0).sum()):
        notes.error(f"{field}.top_10", f"{unknown} rankings name pages that pages.parquet has not", AGAIN)
    ordered = np.sort(found.top, axis=1)
    if repeated := int(((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(1).sum()):
        notes.error(f"{field}.top_10", f"{repeated} rankings name a page twice", AGAIN)


def _recompute(name: str, frame: pd.DataFrame, found: Rankings, judged: Judged, notes: Notes) -> None:
    """Put the recomputed NDCG into the frame; say where it is not what was stored."""
    again = ndcg(found, judged)
    for k in RANKED:
        column = frame.columns.get_loc(f"ndcg@{k}")
        stored = frame.iloc[found.rows, column].to_numpy()
        if (off := np.abs(stored - again[k]) > TOLERANCE).any():
            first = int(np.argmax(off))
            query = printable(frame["query"].iloc[found.rows[first]])
            what = f"{off.sum()} rows differ from their rankings, the first is query {query}: "
            what += f"{stored[first]:.5f} stored, {again[k][first]:.5f} computed"
            notes.error(f"per_query ({printable(name)}).ndcg@{k}", what, AGAIN)
        frame.iloc[found.rows, column] = again[k]
    for k in DEEPER:
        stored = frame[f"ndcg@{k}"].to_numpy()[found.rows]
        low, high = deeper_bounds(found, judged, k)
        if wrong := int(((stored < low - TOLERANCE) | (stored > high + TOLERANCE)).sum()):
            what = f"{wrong} rows cannot be, given their first ten pages"
            notes.error(f"per_query ({printable(name)}).ndcg@{k}", what, AGAIN)


def _check_cell(submission: Submission, cell: Cell, frame: pd.DataFrame, judged: Judged, notes: Notes) -> Cell:
    """The cell with the figures that its rows give."""
    field = where(submission, cell)
    rows = frame[
        (frame["data_set"] == cell.data_set) & (frame["language"] == cell.language) & (frame["budget"] == cell.budget)
    ]
    if rows.empty:
        notes.error(field, "has no rows in the table of queries", AGAIN)
        return cell
    found: dict[Any, float] = {str(k): float(rows[f"ndcg@{k}"].mean()) for k in CUTOFFS}
    for k, value in found.items():
        if k not in cell.ndcg or abs(cell.ndcg[k] - value) > TOLERANCE:
            notes.error(f"{field}.ndcg.{k}", f"is {cell.ndcg.get(k)}, but the rankings give {value:.5f}", AGAIN)
    retention = rows["score_retention"].to_numpy(np.float64)
    if cell.score_retention is not None and cell.pairs_left_out == 0:
        at = np.array([judged.queries[query] for query in rows["query"]])
        value = pair_mean(retention, judged.relevant[at])
        if not abs(cell.score_retention - value) <= TOLERANCE:
            notes.error(f"{field}.score_retention", f"is {cell.score_retention}, its queries give {value:.5f}", AGAIN)
    deviation = float(np.std(rows.groupby("trial")["ndcg@5"].mean()))
    if abs(cell.trial_deviation - deviation) > TOLERANCE:
        notes.error(f"{field}.trial_deviation", f"is {cell.trial_deviation}, its trials give {deviation:.5f}", AGAIN)
    return cell.model_copy(update={"ndcg": found, "trial_deviation": deviation})


def _warn_reused(submission: Submission, name: str, rows: pd.DataFrame, found: Rankings, notes: Notes) -> None:
    """Two budgets that keep different vectors hardly rank every page alike."""
    realised = {c.budget: c.realised for c in submission.cells if c.data_set == name}
    order = {}
    for budget in realised:
        here = np.flatnonzero((rows["budget"].to_numpy() == budget) & (rows["trial"].to_numpy() == 0))
        order[budget] = found.top[here[np.argsort(found.query[here])]]
    for a, b in combinations(sorted(realised), 2):
        if realised[a] != realised[b] and len(order[a]) > FEW_QUERIES and np.array_equal(order[a], order[b]):
            what = f"all {len(order[a])} rankings at {a:g} and {b:g} are the same"
            notes.warn(f"per_query ({printable(name)}).top_10", what, "were they copied from one budget to another?")
