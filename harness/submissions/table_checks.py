"""The tables of a measured submission: are they whole, and do they give the figures of the JSON file?

Computed again: NDCG@1, 5 and 10 of every query from its ranking; every cell's means; Score Retention's means; the
realised budget from the vectors kept of each page, which for methods with a fixed budget must be ⌈γN⌉ page by page.
Declared: NDCG@50 and 100 (only held against bounds that the first ten pages set), Score Retention of a query,
how many vectors an adaptive method kept of a page, bytes beyond the vectors' own, times.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from harness.metrics.ranking import CUTOFFS, TOP
from harness.metrics.results_table import CellKey, ResultsTable
from harness.submissions.checks import AGAIN, TOLERANCE, where
from harness.submissions.judgements import (
    RANKED,
    Judgements,
    Rankings,
    deeper_bounds,
    gains,
    ndcg,
    pair_mean,
    pair_mean_bounds,
    rankings,
)
from harness.submissions.problems import Notes, printable
from harness.submissions.schema import Cell, Submission, Track
from harness.submissions.tables import PerQuery
from pruners.core.budget import keep_count

HEADLINE = CUTOFFS.index(5)
FEW_QUERIES = 10  # so few rankings may coincide at two budgets
ROUNDING = 1e-3  # of a ratio of scores between vectors of 16 bits
MOST_RETENTION = 100  # of a method that makes vectors of its own: a full score may be almost 0
Blocks = dict[tuple[str, float], np.ndarray]
"""(data set, budget) -> rows of the table as `[trials, queries]`, queries in the order of the pinned qrels."""


@dataclass(frozen=True)
class Recomputed:
    """Figures that came out."""

    submission: Submission
    scores: ResultsTable
    rankings: Mapping[tuple[str, float], str]
    """(data set, budget below 1) -> digest of the rankings, where they are many."""
    content: str
    """Digest of all rows below budget 1, however their file is packed."""


def check_per_query(
    submission: Submission, table: PerQuery, judged: Mapping[str, Judgements], notes: Notes
) -> Recomputed | None:
    """Check the rows and compute NDCG again; None if they cannot be used."""
    before = len(notes.found)
    _check_values(submission, table, notes)
    stated = {(cell.data_set, cell.budget) for cell in submission.cells}
    held = {
        (name, float(budget))
        for code, name in enumerate(table.data_set.names)
        for budget in np.unique(table.budget[table.data_set.codes == code])
    }
    for name, budget in sorted(held ^ stated):
        what = "the cells have them, the rows not" if (name, budget) in stated else "the rows have them, the cells not"
        notes.error("per_query", f"{printable(name)} at {budget:g}: {what}", AGAIN)
    if len(notes.found) > before:
        return None
    found = {name: rankings(table, name, judged[name]) for name in dict.fromkeys(name for name, _ in sorted(held))}
    blocks: Blocks = {}
    for name, ranked in found.items():
        blocks |= _blocks(submission, table, name, ranked, judged[name], notes)
    if len(notes.found) > before:
        return None
    again = np.stack([table.ndcg[k] for k in CUTOFFS])
    for name, ranked in found.items():
        _recompute(table, name, ranked, judged[name], again, notes)
        _warn_reused(submission, name, table, blocks, notes)
    _check_left_out(submission, judged, notes)
    cells, scores = [], {}
    for i, cell in enumerate(submission.cells):
        asked = judged[cell.data_set].asked.get(cell.language)
        if asked is None:
            notes.error(where(i, cell), "has no rows in the table of queries", AGAIN)
            continue
        rows = blocks[cell.data_set, cell.budget][:, asked.at]
        cells.append(_check_cell(i, cell, rows, table, again, judged[cell.data_set].relevant[asked.at], notes))
        values = _over_trials(again[HEADLINE, rows])[asked.by_name]
        scores[CellKey(cell.data_set, cell.language, cell.budget)] = asked.names, values
    many = {key: rows for key, rows in blocks.items() if key[1] < 1 and rows.shape[1] > FEW_QUERIES}
    digests = {key: _digest(found[key[0]], rows) for key, rows in many.items()}
    again_as = submission.model_copy(update={"cells": tuple(cells)})
    content = _content(table, found, {key: rows for key, rows in blocks.items() if key[1] < 1})
    return Recomputed(again_as, ResultsTable.of_means(scores), digests, content)


def _digest(found: Rankings, rows: np.ndarray) -> str:
    top = np.ascontiguousarray(found.top[np.searchsorted(found.rows, rows)], np.int32)
    return hashlib.sha256(top.tobytes()).hexdigest()[:16]


def _content(table: PerQuery, found: Mapping[str, Rankings], blocks: Blocks) -> str:
    """Of all that was measured: rankings and what is declared beside them, in the order of the qrels."""
    digest = hashlib.sha256()
    for (name, budget), rows in sorted(blocks.items()):
        declared = [table.score_retention[rows].astype(np.float32), *(table.ndcg[k][rows] for k in CUTOFFS)]
        digest.update(f"{name}\0{budget}\0{_digest(found[name], rows)}".encode())
        digest.update(b"".join(np.ascontiguousarray(values).tobytes() for values in declared))
    return digest.hexdigest()


def _check_values(submission: Submission, table: PerQuery, notes: Notes) -> None:
    for k, values in table.ndcg.items():
        if wrong := int((~((values >= 0) & (values <= 1 + TOLERANCE))).sum()):
            notes.error(f"per_query.ndcg@{k}", f"{wrong} rows are no number from 0 to 1", AGAIN)
    share, full = table.score_retention, table.budget == 1.0
    if (np.abs(share) > MOST_RETENTION).any():
        notes.error("per_query.score_retention", f"some rows are infinite, or beyond {MOST_RETENTION}", AGAIN)
    if (np.abs(share[full] - 1) > ROUNDING).any():
        notes.error("per_query.score_retention", "the full model retains 1 of itself, not another share", AGAIN)
    if submission.method.track is Track.subset and (share > 1 + ROUNDING).any():
        notes.error("per_query.score_retention", "no subset of the vectors scores above all of them", AGAIN)
    if np.isnan(table.budget).any():
        notes.error("per_query.budget", "some rows have none", AGAIN)


def _blocks(
    submission: Submission, table: PerQuery, name: str, found: Rankings, judged: Judgements, notes: Notes
) -> Blocks:
    """Every query of a data set once for each budget and trial, ranking pages that exist, none of them twice."""
    field = f"per_query ({printable(name)})"
    if (found.query < 0).any():
        query = table.query[int(found.rows[np.argmax(found.query < 0)])]
        notes.error(field, f"the query {printable(query)} is not in qrels.parquet, or has no relevant page", AGAIN)
        return {}
    _check_rankings(table, field, found, judged, notes)
    codes = {language: code for code, language in enumerate(judged.asked)}
    code_at = np.array([codes.get(language, -1) for language in table.language.names])
    if (code_at[table.language.codes[found.rows]] != judged.language_code[found.query]).any():
        notes.error(f"{field}.language", "is not the queries' language in qrels.parquet", AGAIN)
    blocks: Blocks = {}
    stated = {cell.budget: cell.trials for cell in submission.cells if cell.data_set == name}
    queries = np.arange(len(judged.queries))
    budget_of, trial_of = table.budget[found.rows], table.trial[found.rows]
    order = np.lexsort((found.query, trial_of, budget_of))
    for budget, trials in stated.items():
        here = order[budget_of[order] == budget]
        query, trial, shape = found.query[here], trial_of[here], (trials, len(queries))
        whole = len(here) == trials * len(queries) and (query.reshape(shape) == queries).all()
        if whole and (trial.reshape(shape) == np.arange(trials)[:, None]).all():
            blocks[name, budget] = found.rows[here].reshape(shape)
        else:
            _explain(field, budget, trials, (query, trial), len(queries), notes)
    return blocks


def _explain(field: str, budget: float, trials: int, got: tuple[np.ndarray, ...], queries: int, notes: Notes) -> None:
    """Why rows are not every query once for each trial."""
    pairs, times = np.unique(np.stack(got), axis=1, return_counts=True)
    if twice := int((times > 1).sum()):
        notes.error(field, f"{twice} queries have more than one row at {budget:g}", AGAIN)
    found, counts = np.unique(pairs[1], return_counts=True)
    if found.tolist() != list(range(trials)):
        notes.error(field, f"trials at {budget:g} are {found.tolist()[:6]}, the cells say {trials}", AGAIN)
    for trial, count in zip(found, counts, strict=True):
        if count != queries:
            what = f"{count} of {queries} queries at {budget:g}, trial {trial}"
            notes.error(field, what, "every query with a relevant page must be there: leaving some out flatters")


def _check_rankings(table: PerQuery, field: str, found: Rankings, judged: Judgements, notes: Notes) -> None:
    length, given = min(TOP, len(judged.page_ids)), table.length[found.rows]
    if wrong := int((given != length).sum()):
        notes.error(f"{field}.top_10", f"{wrong} rankings do not have {length} pages", AGAIN)
    if unknown := int(((found.top >= 0).sum(1) < np.minimum(given, TOP)).sum()):
        notes.error(f"{field}.top_10", f"{unknown} rankings name pages that pages.parquet has not", AGAIN)
    ordered = np.sort(found.top, axis=1)
    if repeated := int(((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(1).sum()):
        notes.error(f"{field}.top_10", f"{repeated} rankings name a page twice", AGAIN)


def _recompute(
    table: PerQuery, name: str, found: Rankings, judged: Judgements, again: np.ndarray, notes: Notes
) -> None:
    """Put the recomputed NDCG into `again [cutoffs, rows]`; say where it is not what was stored."""
    gained = gains(found, judged)
    computed = ndcg(gained, found, judged)
    for k in RANKED:
        stored = table.ndcg[k][found.rows]
        if (off := np.abs(stored - computed[k]) > TOLERANCE).any():
            first = int(np.argmax(off))
            query = printable(table.query[int(found.rows[first])])
            what = f"{off.sum()} rows differ from their rankings, the first is query {query}: "
            what += f"{stored[first]:.5f} stored, {computed[k][first]:.5f} computed"
            notes.error(f"per_query ({printable(name)}).ndcg@{k}", what, AGAIN)
        again[CUTOFFS.index(k), found.rows] = computed[k]
    for k, (low, high) in deeper_bounds(gained, found, judged).items():
        stored = table.ndcg[k][found.rows]
        if wrong := int(((stored < low - TOLERANCE) | (stored > high + TOLERANCE)).sum()):
            what = f"{wrong} rows cannot be, given their first ten pages"
            notes.error(f"per_query ({printable(name)}).ndcg@{k}", what, AGAIN)


def _check_cell(
    i: int, cell: Cell, rows: np.ndarray, table: PerQuery, again: np.ndarray, pairs: np.ndarray, notes: Notes
) -> Cell:
    """The cell with the figures that its rows `[trials, queries]` give; `pairs`: relevant pages of each query."""
    figures = again[:, rows]
    found: dict[Any, float] = {str(k): value for k, value in zip(CUTOFFS, figures.mean((1, 2)).tolist(), strict=True)}
    for k, value in found.items():
        if k not in cell.ndcg or abs(cell.ndcg[k] - value) > TOLERANCE:
            what = f"is {cell.ndcg.get(k)}, but the rankings give {value:.5f}"
            notes.error(f"{where(i, cell)}.ndcg.{k}", what, AGAIN)
    _check_retention(i, cell, _over_trials(table.score_retention[rows]), pairs, notes)
    deviation = float(np.std(figures[HEADLINE].mean(1))) if len(rows) > 1 else 0.0
    if abs(cell.trial_deviation - deviation) > TOLERANCE:
        what = f"is {cell.trial_deviation}, its trials give {deviation:.5f}"
        notes.error(f"{where(i, cell)}.trial_deviation", what, AGAIN)
    return cell.model_copy(update={"ndcg": found, "trial_deviation": deviation})


def _check_retention(i: int, cell: Cell, by_query: np.ndarray, pairs: np.ndarray, notes: Notes) -> None:
    """Score Retention is its queries' mean over gold pairs; with pairs left out, what it can be without them."""
    stated, field = cell.score_retention, f"{where(i, cell)}.score_retention"
    if stated is not None and cell.pairs_left_out == 0:
        value = pair_mean(by_query, pairs)
        if not abs(stated - value) <= TOLERANCE:  # also where a query has none
            notes.error(field, f"is {stated}, its queries give {value:.5f}", AGAIN)
    elif stated is not None:
        low, high = pair_mean_bounds(by_query, pairs, cell.pairs_left_out)
        if not low - TOLERANCE <= stated <= high + TOLERANCE:  # also where no query has one
            notes.error(field, f"is {stated}, its queries give {low:.5f} to {high:.5f}", AGAIN)
    if np.dot(np.isnan(by_query), pairs) > cell.pairs_left_out:
        notes.error(field, "more queries have none than there are pairs left out", AGAIN)


def _check_left_out(submission: Submission, judged: Mapping[str, Judgements], notes: Notes) -> None:
    """A pair is left out for its full score, so at every budget; and a subset's ratio of means is at most 1."""
    first = {cell.data_set: cell.pairs_left_out for cell in submission.cells}
    for i, cell in enumerate(submission.cells):
        field, pairs = f"{where(i, cell)}.pairs_left_out", int(judged[cell.data_set].relevant.sum())
        if cell.pairs_left_out > pairs:
            notes.error(field, f"is {cell.pairs_left_out}, there are {pairs} gold pairs", AGAIN)
        elif cell.pairs_left_out != first[cell.data_set]:
            notes.error(field, "is not the same at every budget, as it must be", AGAIN)
        limit = 1 if submission.method.track is Track.subset or cell.budget == 1.0 else MOST_RETENTION
        if cell.score_retention_micro is not None and cell.score_retention_micro > limit + ROUNDING:
            what = f"is {cell.score_retention_micro}: no subset of the vectors scores above all of them"
            notes.error(f"{where(i, cell)}.score_retention_micro", what, AGAIN)


def _over_trials(values: np.ndarray) -> np.ndarray:
    """The mean of rows `[trials, queries]`; most methods have one, which is its own."""
    return values[0].astype(np.float64) if len(values) == 1 else values.mean(0, dtype=np.float64)


def _warn_reused(submission: Submission, name: str, table: PerQuery, blocks: Blocks, notes: Notes) -> None:
    """Two budgets that keep different vectors hardly rank every page alike."""
    realised = {cell.budget: cell.realised for cell in submission.cells if cell.data_set == name}
    top = {budget: table.top.codes[blocks[name, budget][0]] for budget in realised}
    for a, b in combinations(sorted(realised), 2):
        if realised[a] != realised[b] and len(top[a]) > FEW_QUERIES and np.array_equal(top[a], top[b]):
            what = f"all {len(top[a])} rankings at {a:g} and {b:g} are the same"
            notes.warn(f"per_query ({printable(name)}).top_10", what, "were they copied from one budget to another?")


def check_kept(
    submission: Submission, table: pa.Table, judged: Mapping[str, Judgements], notes: Notes
) -> dict[str, str]:
    """The rows are whole, their counts possible, and their sums what the cells say.

    Given back: data set -> digest of the vectors of each full page.
    """
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
        elif _check_counts(submission, field, budget, np.stack(rows), full[0], notes):
            _check_realised(submission, here, np.stack(rows), full[0], notes)
    whole = {name: rows[0] for (name, budget), rows in kept.items() if budget == 1.0}
    return {name: hashlib.sha256(row.astype(np.int64).tobytes()).hexdigest()[:16] for name, row in whole.items()}


def _check_counts(
    submission: Submission, field: str, budget: float, rows: np.ndarray, full: np.ndarray, notes: Notes
) -> bool:
    """Whether every page keeps as many vectors as the contract allows: ⌈γN⌉, at most that (snapped), any (adaptive)."""
    if (rows < 1).any() or (rows > full).any():
        notes.error(field, "a page keeps fewer than one or more than all of its vectors", AGAIN)
        return False
    if not submission.method.adaptive:
        keep = {n: keep_count(budget, n) for n in set(full.tolist())}
        expected = np.array([keep[n] for n in full.tolist()])
        off = rows > expected if submission.method.snapped else rows != expected
        if wrong := int(off.any(0).sum()):
            what = f"{wrong} pages do not keep ⌈γN⌉ vectors, as a fixed budget must"
            if submission.method.snapped:
                what = f"{wrong} pages keep more than ⌈γN⌉ vectors, which no snapped budget may"
            notes.error(field, what, "declare what the method is, or keep the budget")
            return False
    return True


def _check_realised(
    submission: Submission, cells: Sequence[tuple[int, Cell]], rows: np.ndarray, full: np.ndarray, notes: Notes
) -> None:
    mean = float(rows.sum(1).mean())
    found = {"realised": mean / float(full.sum())}
    found["vectors_per_page"] = mean / len(full)
    for i, cell in cells:
        for what, value in found.items():
            stated = getattr(cell, what)
            more = (
                what == "vectors_per_page" and submission.backbone.profile == "native"
            )  # prompt vectors are stored too
            if stated is None or (stated < value if more else abs(stated - value) > TOLERANCE * max(1, value)):
                field = f"{where(i, cell)}.{what}"
                notes.error(field, f"is {stated}, but the kept vectors give {value:.6f}", AGAIN)
