"""Stored submissions measured again from scratch, and compared ranking by ranking.

What counts as the same: the same ten pages in the same order for every query, budget and trial. Another processor may
round otherwise, so two pages may change places if the scores measured here differ by less than `NEAR` of the score;
such rankings are counted. The vectors kept of each page must be the same numbers, bytes and Score Retention the same
but for rounding. A method that turns a last digit into another choice (which patches to merge first) may therefore not
verify on another kind of processor: that is said, and is no proof of a forgery.
"""

from __future__ import annotations

import random
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from harness import parquet
from harness.evaluation.config import Config
from harness.evaluation.evaluate import Evaluation, RunPaths, evaluate
from harness.evaluation.methods import Method
from harness.evaluation.pruned_pages import Job
from harness.evaluation.scores import load_queries, score_pages
from harness.metrics.ranking import TOP
from harness.progress import Progress, quiet
from harness.submissions.folder import read_submission
from harness.submissions.measured_again import Verification, fingerprint
from harness.submissions.rerun import Given, Rerun, rerun, together
from harness.submissions.run_facts import FinishedRun, environment_facts
from harness.submissions.schema import Environment, Origin, Submission
from harness.submissions.submit import NewSubmission, WantedMethods, new_submissions, write
from harness.submissions.tables import KEPT, PER_QUERY, kept_path, per_query_path
from pruners.core.errors import PruneBoardError
from pruners.guests.host import ON, Isolation

NEAR = 1e-4
"""Of a score: pages whose scores differ by less may change places between processors."""
RATIO = 1e-3
"""Score Retention of a query, and the mean of NDCG@50 and @100, may differ by so much."""
CLOSE, FEW = 0.01, 0.05
"""Of a cell's mean NDCG and Score Retention, and a share of the rankings: where no more differs it may be another
processor's rounding, and proves nothing. Between two kinds of processor 0.0063 and 0.024 were seen (`tome`, binary)."""
SLACK = {**dict.fromkeys(("bytes_per_page", "realised", "vectors_per_page"), 1e-6), "pairs_left_out": 0.0}
"""What is counted of a cell, and how far it may be from what is counted here."""
FIGURES = ("score_retention", "score_retention_micro")
"""What is measured of a cell beside NDCG."""
KEY = ["data_set", "language", "budget", "trial", "query"]
RANKING = f"top_{TOP}"
WHOLE = 1.0


@dataclass(frozen=True)
class Reproduction:
    """What came out for one submission. `difference` is empty if it is verified."""

    id: str
    method: str
    benchmark: str
    backbone: str
    rankings: int
    near_ties: int
    difference: str
    environment: Environment | None
    path: Path
    was_run: bool = True
    """False: it could not be run here, for want of data, source or checkpoint; `difference` says why."""
    close: bool = False
    """Whether no more differs than another processor's rounding may do: few rankings, and no cell's mean by much."""

    @property
    def verified(self) -> bool:
        return not self.difference

    @property
    def status(self) -> str:
        if self.verified or not self.was_run:
            return "verified" if self.verified else "not run"
        return "close" if self.close else "differs"

    def record(self, by: str, day: date | None = None) -> Verification:
        """What a maintainer signs."""
        if not self.verified or self.environment is None:
            raise PruneBoardError(f"{self.id} did not come out the same: {self.difference}")
        content, files = fingerprint(read_submission(self.path), self.path)
        return Verification(
            by=by,
            on=day or datetime.now(UTC).date(),
            content=content,
            files=files,
            rankings=self.rankings,
            near_ties=self.near_ties,
            environment=self.environment,
        )


def reproduce(
    paths: Sequence[Path],
    given: Given,
    out: Path,
    *,
    store: Path | None = None,
    workers: int = 1,
    apart: Isolation = Isolation(ON),  # noqa: B008
    sample: int | None = None,
    progress: Progress = quiet,
    say: Callable[[str], None] = lambda text: None,
) -> Iterator[Reproduction]:
    """Measure submissions again, and compare. Runs are written into `out`; pages are encoded anew unless a `store` of
    one's own is named. With `sample` only so many of those that can be run here are measured, others every time.
    """
    with tempfile.TemporaryDirectory(prefix="pruneboard-") as scratch:
        reruns, impossible = [], []
        for path in paths:
            try:
                submission = read_submission(path)
            except PruneBoardError as error:
                impossible.append(_unreadable(path, str(error)))
                continue
            try:
                reruns.append(rerun(path, submission, given, Path(scratch)))
            except PruneBoardError as error:
                impossible.append(_nothing(path, submission, str(error), was_run=False))
        yield from impossible
        if sample is not None:
            reruns = random.SystemRandom().sample(reruns, min(sample, len(reruns)))
        waiting, i = deque(together(reruns)), 0
        while waiting:
            i += 1
            config, members = waiting.popleft()
            folders = RunPaths(store or out / "stores", out / f"run-{i}-{config.key}", workers, apart=apart)
            try:
                found = evaluate(config, folders, progress, say)
            except PruneBoardError as error:  # one of them cannot be run: which one shows when each runs by itself
                if len(members) == 1:
                    yield _nothing(members[0].path, members[0].submission, str(error), was_run=False)
                waiting.extendleft((one.config, [one]) for one in members if len(members) > 1)
                continue
            for one in members:
                yield _compared_safely(one, config, found, FinishedRun(folders.run), Path(scratch) / "again")


def _compared_safely(one: Rerun, config: Config, found: Evaluation, run: FinishedRun, scratch: Path) -> Reproduction:
    """What is wrong with one submission's tables is no reason to stop."""
    try:
        return _compared(one, config, found, run, scratch)
    except PruneBoardError as error:
        return _nothing(one.path, one.submission, str(error))


def _compared(one: Rerun, config: Config, found: Evaluation, run: FinishedRun, scratch: Path) -> Reproduction:
    """One submission beside what was measured just now."""
    stated = one.submission
    if one.text in found.failures:
        return _nothing(one.path, stated, f"it failed: {found.failures[one.text]}")
    origin = Origin(submitter="measured again", submitted=stated.origin.submitted)
    (made,) = new_submissions(run, WantedMethods(origin, (one.text,), stated.backbone.name))
    if reason := _other_thing(stated, made.submission):
        return _nothing(one.path, stated, reason)
    path, _ = write(made, scratch)
    rows, again = (parquet.read(per_query_path(p), PER_QUERY, optional=("score_retention",)) for p in (one.path, path))
    method = next(m for m in found.methods if m.text == one.text)
    measuring = _Scores(config, found, method)
    theirs, ours = rows.to_pandas(), again.to_pandas()
    ties, difference = _rankings(theirs, ours, measuring)
    kept = _kept(one.path, path)
    difference = difference or kept or _cells(stated, made, RATIO)
    little = not kept and not _cells(stated, made, CLOSE) and _differs_little(_joined(theirs, ours))
    facts = stated.benchmark.name, stated.backbone.name, len(rows), ties, difference, environment_facts(run)
    return Reproduction(stated.id, stated.method.name, *facts, one.path, close=bool(difference) and little)


def _other_thing(stated: Submission, measured: Submission) -> str:
    """Why the two cannot be compared at all: other data, another checkpoint, another method than was said."""
    ours = {data_set.name: data_set for data_set in measured.benchmark.data_sets}
    for theirs in stated.benchmark.data_sets:
        for what in ("corpus", "query_texts", "qrels"):
            if theirs.name not in ours or getattr(theirs, what) != getattr(ours[theirs.name], what):
                return f"{theirs.name}: the {what} read here are not those that it was measured on"
    if stated.backbone.revision != measured.backbone.revision:
        return f"the checkpoint here is {measured.backbone.revision}, it was measured with {stated.backbone.revision}"
    called, track = stated.method.track, measured.method.track
    if not track.may_be_called(called):
        return f"it is called {called.value}, and what ran is of the track {track.value}"
    for what in ("adaptive", "snapped", "composition", "parameters", "signals", "shared_bytes"):
        said, ran = getattr(stated.method, what), getattr(measured.method, what)
        if said != ran and (what in ("adaptive", "snapped") or said):
            return f"its {what} is said to be {said!r}, and what ran has {ran!r}"
    return ""


def _rankings(stated: pd.DataFrame, measured: pd.DataFrame, scores: _Scores) -> tuple[int, str]:
    """Rankings that differ by near ties alone, and the first real difference in words."""
    both = _joined(stated, measured)
    if len(lost := both[both["_merge"] != "both"]):
        return 0, f"{_where(lost.iloc[0])} was not measured again: there is no such query, budget or trial"
    ties = 0
    for row in both.to_dict("records"):
        theirs, ours = list(row[RANKING]), list(row[f"{RANKING}_again"])
        if theirs != ours:
            if (at := scores.out_of_order(row, theirs, ours)) is not None:
                shown = [pages[at] if at < len(pages) else "nothing" for pages in (theirs, ours)]
                place = f"{_where(row)}, position {at + 1}: submitted is {shown[0]}, measured is {shown[1]}"
                return ties, f"{place}. {_how_much(both)}"
            ties += 1
        gap = abs(_number(row["score_retention"]) - _number(row["score_retention_again"]))
        if gap > RATIO:
            was, is_ = row["score_retention"], row["score_retention_again"]
            said = f"{_where(row)}: the Score Retention submitted is {was:.4f}, measured is {is_:.4f}"
            return ties, f"{said}. {_how_much(both)}"
    return ties, ""


def _joined(stated: pd.DataFrame, measured: pd.DataFrame) -> pd.DataFrame:
    """Row beside row."""
    return stated.merge(measured, on=KEY, how="left", suffixes=("", "_again"), indicator=True)


def _how_much(both: pd.DataFrame) -> str:
    """Whether two measurements of one thing are before us, or two things: for whoever must judge a difference."""
    others, gap = _other_rankings(both), _largest_gap(both)
    return f"In all {others} of {len(both)} rankings differ, and a cell's mean NDCG@5 by {100 * gap:.2f} points at most"


def _differs_little(both: pd.DataFrame) -> bool:
    whole = bool((both["_merge"] == "both").all())
    return whole and _other_rankings(both) <= FEW * len(both) and _largest_gap(both) <= CLOSE


def _other_rankings(both: pd.DataFrame) -> int:
    return sum(list(a) != list(b) for a, b in zip(both[RANKING], both[f"{RANKING}_again"], strict=True))


def _largest_gap(both: pd.DataFrame) -> float:
    """Between the means of a cell's NDCG@5."""
    means = both.groupby(["data_set", "language", "budget"])[["ndcg@5", "ndcg@5_again"]].mean()
    return float((means["ndcg@5"] - means["ndcg@5_again"]).abs().max())


def _number(value: Any) -> float:
    return -1.0 if value is None or np.isnan(value) else float(value)


def _where(row: Any) -> str:
    language = f" ({row['language']})" if row["language"] else ""
    return f"{row['data_set']}{language}, query {row['query']}, budget {row['budget']:g}, trial {row['trial']}"


class _Scores:
    """Scores of single pages as they come out here, for rankings that differ."""

    def __init__(self, config: Config, found: Evaluation, method: Method) -> None:
        self.config, self.found, self.method = config, found, method
        self.jobs: dict[str, Job] = {}
        self.pages: dict[tuple[str, str], np.ndarray] = {}

    def out_of_order(self, row: dict[str, Any], theirs: list[str], ours: list[str]) -> int | None:
        """The first position where a ranking differs by more than rounding; None: all differences are near ties."""
        try:
            values = {page: self._of(row, page) for page in {*theirs, *ours}}
        except KeyError:  # a page that is not in the corpus
            return next(i for i, page in enumerate(theirs) if i >= len(ours) or page != ours[i])
        near = NEAR * max(abs(value) for value in values.values())
        if len(theirs) != len(ours):
            return min(len(theirs), len(ours))
        for i, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            if abs(values[one] - values[other]) > near:
                return i
        return None

    def _of(self, row: dict[str, Any], page: str) -> float:
        job = self._job(row["data_set"])
        key = row["data_set"], page
        if key not in self.pages:
            self.pages[key] = score_pages(job, [job.store.page_ids.index(page)])[0].scores
        budgets = self.method.budgets(job.budgets)
        cell = 0 if row["budget"] == WHOLE else 1 + int(row["trial"]) * len(budgets) + budgets.index(row["budget"])
        return float(self.pages[key][cell, job.store.query_ids.index(row["query"])])

    def _job(self, data_set: str) -> Job:
        if data_set not in self.jobs:
            store, config = self.found.stores[data_set], self.config
            queries = load_queries(store, range(len(store.query_ids)), config.device)
            self.jobs[data_set] = Job(store, (self.method,), config.budgets, config.seed, queries, {}, config.profile)
        return self.jobs[data_set]


def _kept(stated: Path, measured: Path) -> str:
    """Where a page keeps another number of vectors."""
    theirs, ours = (parquet.read(kept_path(path), KEPT).to_pylist() for path in (stated, measured))
    known = {(row["data_set"], row["budget"], row["trial"]): row["kept"] for row in ours}
    for row in theirs:
        again = known.get((row["data_set"], row["budget"], row["trial"]))
        place = f"{row['data_set']}, budget {row['budget']:g}, trial {row['trial']}"
        if again is None or len(again) != len(row["kept"]):
            return f"{place}: the vectors kept of pages were not measured again"
        for page, (was, is_) in enumerate(zip(row["kept"], again, strict=True)):
            if was != is_:
                return f"{place}, page {page + 1}: submitted is {was} vectors kept, measured is {is_}"
    return ""


def _cells(stated: Submission, made: NewSubmission, near: float) -> str:
    """Where what is said of a cell does not come out: what is counted, and figures by more than `near`."""
    ours = {(c.data_set, c.language, c.budget): c for c in made.submission.cells}
    for cell in stated.cells:
        place, again = f"{cell.data_set} at {cell.budget:g}", ours.get((cell.data_set, cell.language, cell.budget))
        if again is None:
            return f"{place}: there is no such cell{f' in {cell.language}' if cell.language else ''}"
        for what, slack in {**SLACK, **dict.fromkeys(FIGURES, near)}.items():
            was, is_ = getattr(cell, what), getattr(again, what)
            if was is not None and (is_ is None or abs(was - is_) > slack * max(1.0, abs(is_))):
                return f"{place}: the {what} submitted is {was:.6g}, measured is {is_}"
        for k in ("50", "100"):
            if k in cell.ndcg and abs(cell.ndcg[k] - again.ndcg[k]) > near:
                return f"{place}: submitted is an NDCG@{k} of {cell.ndcg[k]:.4f}, measured {again.ndcg[k]:.4f}"
    return ""


def _unreadable(path: Path, reason: str) -> Reproduction:
    backbone, benchmark = path.parents[1].name, path.parents[2].name
    return Reproduction(path.stem, path.parent.name, benchmark, backbone, 0, 0, reason, None, path, was_run=False)


def _nothing(path: Path, stated: Submission, reason: str, was_run: bool = True) -> Reproduction:
    """A submission that could not be measured again, or not as the same thing."""
    names = stated.method.name, stated.benchmark.name, stated.backbone.name
    return Reproduction(stated.id, *names, 0, 0, reason, None, path, was_run)
