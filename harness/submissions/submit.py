"""From a run folder to submissions: one for each method, with all that the run folder knows of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from harness.evaluation.methods import FULL
from harness.evaluation.results import Result
from harness.files import checksum
from harness.metrics.ranking import CUTOFFS
from harness.submissions import pinned
from harness.submissions.described import backbone, code_of, environment, method
from harness.submissions.finished_run import FinishedRun
from harness.submissions.identity import with_id
from harness.submissions.recompute import pair_mean
from harness.submissions.rows import PER_QUERY, pack_kept, pack_per_query
from harness.submissions.schema import BenchmarkFacts, Cell, Origin, Submission, Track
from pruners.core.errors import PruneBoardError


@dataclass(frozen=True)
class NewSubmission:
    """A submission and its two tables, not yet on disk."""

    submission: Submission
    per_query: bytes
    kept: bytes


@dataclass(frozen=True)
class WantedMethods:
    """What the submitter decides."""

    origin: Origin
    methods: tuple[str, ...] = ()
    """Text forms, as in the run; none: all."""
    backbone: str | None = None
    """Name on the leaderboard, if it should not be the run's."""
    track: Track | None = None
    reproduces: str | None = None


def make(run: FinishedRun, choice: WantedMethods) -> Iterator[NewSubmission]:
    """The run's submissions."""
    possible = run.submittable
    chosen = choice.methods or possible
    if unknown := [text for text in chosen if text not in possible]:
        reason = f"; it has {', '.join(possible)}"
        if unknown[0] in run.methods:
            reason = " with budgets of its own choosing: a native threshold keeps another ratio on every data set"
        raise PruneBoardError(f"the run has no method {unknown[0]!r}{reason}")
    benchmark = run.pinned()
    full = {data_set: run.files.read_result(data_set, FULL) for data_set in run.stores}
    for text in chosen:
        slug = run.methods[text]["slug"]
        found = {
            data_set: run.files.read_result(data_set, slug) for data_set in run.stores if run.files.has(data_set, slug)
        }
        _require_same_code(run, text, found)
        if found:  # a method that failed everywhere has nothing to submit
            yield _made(run, choice, text, benchmark, found, full)


def _require_same_code(run: FinishedRun, text: str, found: Mapping[str, Result]) -> None:
    """What the run says of a method must be what measured every one of its results."""
    recorded: dict[str, str] = run.methods[text].get("made_by") or {}
    again = "Run the same `harness evaluate` again, which measures what changed"
    if found and not recorded:
        raise PruneBoardError(
            f"{run.files.folder} is of an earlier release, which left no note of what measured {text}. {again}"
        )
    for data_set, result in found.items():
        measuring = {name: value for name, value in result.made_by.items() if name not in ("store", "judgements")}
        if measuring != recorded:
            differ = next((name for name, value in recorded.items() if measuring.get(name) != value), "code")
            raise PruneBoardError(
                f"{text} on {data_set} was not measured by the {differ} that the run names: its figures are of "
                f"something else. {again}"
            )
        if result.made_by.get("store") != run.stores[data_set]["store"]:
            raise PruneBoardError(f"{text} on {data_set} was measured on other pages than the run names. {again}")


def _made(
    run: FinishedRun,
    choice: WantedMethods,
    text: str,
    benchmark: pinned.Pinned,
    found: Mapping[str, Result],
    full: Mapping[str, Result],
) -> NewSubmission:
    frames, kept, cells = [], [], []
    for data_set, result in found.items():
        parts = [_Part(full[data_set], 0, 1.0)]
        parts += [_Part(result, i, e["budget"]) for i, e in enumerate(result.summary) if e["budget"] != 1.0]
        milliseconds = run.timings.get(data_set, {}).get(text)
        for part in parts:
            rows = part.rows()
            frames.append(rows.assign(data_set=data_set))
            kept += [(data_set, part.budget, t, counts) for t, counts in enumerate(part.result.kept[:, part.index])]
            full_model = part.budget == 1.0
            timing, code = (None, None) if full_model else (milliseconds, code_of(result.made_by))
            cells += _cells(data_set, part, rows, benchmark.judged[data_set], timing, code)
    per_query = pack_per_query(pd.concat(frames, ignore_index=True)[list(PER_QUERY)])
    kept_bytes = pack_kept(kept)
    data_sets = tuple(d for d in benchmark.benchmark.data_sets if d.name in found)
    submission = Submission(
        format=1,
        id="unnamed",
        claim="reproduced" if choice.reproduces else "self-reported",
        origin=choice.origin,
        benchmark=BenchmarkFacts(name=benchmark.benchmark.name, data_sets=data_sets),
        backbone=backbone(run, choice.backbone),
        method=method(run, text, choice.track),
        cells=tuple(cells),
        environment=environment(run),
        per_query=checksum(per_query),
        kept=checksum(kept_bytes),
        reproduces=choice.reproduces,
    )
    return NewSubmission(with_id(submission), per_query, kept_bytes)


@dataclass(frozen=True)
class _Part:
    """One budget of a result."""

    result: Result
    index: int
    budget: float

    def rows(self) -> pd.DataFrame:
        frame = self.result.per_query
        return frame[frame["budget"] == self.budget]

    @property
    def summary(self) -> dict[str, Any]:
        return self.result.summary[self.index]


def _cells(
    data_set: str,
    part: _Part,
    rows: pd.DataFrame,
    judged: pinned.Judgements,
    milliseconds: float | None,
    code: str | None,
) -> list[Cell]:
    """A cell a language. What concerns pages is the same in all of them."""
    entry, languages = part.summary, sorted(rows["language"].unique())
    cells = []
    for language in languages:
        here = rows[rows["language"] == language]
        by_trial = here.groupby("trial")[[f"ndcg@{k}" for k in CUTOFFS]].mean()
        retention: float | None = entry["score_retention"]
        if len(languages) > 1:  # the run has it for the whole data set
            pairs = judged.relevant[[judged.queries[query] for query in here["query"]]]
            retention = None if entry["pairs_left_out"] else pair_mean(here["score_retention"].to_numpy(), pairs)
        cells.append(
            Cell(
                data_set=data_set,
                language=language,
                budget=part.budget,
                realised=entry["realised"],
                vectors_per_page=entry["vectors_per_page"],
                bytes_per_page=entry["bytes_per_page"],
                prune_ms=milliseconds,
                ndcg={str(k): float(by_trial[f"ndcg@{k}"].mean()) for k in CUTOFFS},  # type: ignore[misc]
                score_retention=_known(retention),
                score_retention_micro=_known(entry["score_retention_micro"]),
                pairs_left_out=entry["pairs_left_out"],
                trials=len(by_trial),
                trial_deviation=float(np.std(by_trial["ndcg@5"])),
                code=code,
            )
        )
    return cells


def _known(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else value
