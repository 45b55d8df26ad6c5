"""A run folder becomes submissions, one for each method, written where they belong; earlier ones go if asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pydantic

from harness.evaluation.methods import FULL
from harness.evaluation.results import Result
from harness.files import alone_with, checksum, write_atomically
from harness.metrics.ranking import CUTOFFS
from harness.submissions.benchmark import BenchmarkRecord, read_benchmark
from harness.submissions.folder import (
    BENCHMARK,
    ENDINGS,
    REMOVED,
    Removal,
    Removals,
    own_folder,
    read_removals,
    read_submission,
    submission_path,
    to_json,
)
from harness.submissions.judgements import Judgements, pair_mean
from harness.submissions.problems import SubmissionError
from harness.submissions.run_facts import (
    FinishedRun,
    backbone_facts,
    code_of,
    codec_facts,
    environment_facts,
    method_facts,
    settings_facts,
)
from harness.submissions.schema import BenchmarkFacts, Cell, Origin, Submission, Track, with_id
from harness.submissions.tables import PER_QUERY, kept_path, pack_kept, pack_per_query, per_query_path
from pruners.core.errors import PruneBoardError


@dataclass(frozen=True)
class Submitted:
    """A submission on disk."""

    method: str
    id: str
    file: Path
    new: bool
    """False if the same was there before: it stays as it is."""
    replaces: list[str]
    kilobytes: float


def submit(
    folder: Path,
    submitter: str,
    *,
    account: str | None = None,
    methods: Sequence[str] = (),
    paper: str | None = None,
    code: str | None = None,
    note: str = "",
    backbone_name: str | None = None,
    track: str | None = None,
    reproduces: str | None = None,
    replace: str | None = None,
    with_source: bool = True,
    date: str | None = None,
    out: Path | str | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> list[Submitted]:
    """One submission for each of `methods`, in the folder `out` (None: the project's own).

    None: all, but for built-in methods that another has on the board already, which `say` is told. `replace` is the
    reason for which the submitter's earlier submissions of the same are taken back. The text of a method's own file
    goes along unless `with_source` is False: only who has it can measure the method again.
    """
    day = date or datetime.now(UTC).date().isoformat()
    fields = {"submitter": submitter, "account": account, "paper": paper, "code": code, "note": note, "submitted": day}
    try:
        origin = Origin.model_validate(fields)
        chosen = None if track is None else Track(track)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        option = {"submitted": "date"}.get(str(first["loc"][0]), first["loc"][0])
        raise SubmissionError(Path(f"--{option}"), [("", first["msg"])]) from error
    except ValueError as error:
        raise SubmissionError(Path("--track"), [("", f"{track!r} is none of {', '.join(Track)}")]) from error
    home, run = Path(out) if out else own_folder("name a folder with --out"), FinishedRun(folder)
    write_benchmark(run, home)
    done, known = [], []
    for made in new_submissions(
        run, WantedMethods(origin, tuple(methods), backbone_name, chosen, reproduces, with_source)
    ):
        if not methods and not reproduces and _is_on_the_board(made.submission, home):
            known.append(made.submission.method.name)
            continue
        path, new = write(made, home)
        gone = remove_earlier(made.submission, home, replace, origin.submitted) if replace else []
        size = (len(made.per_query) + len(made.kept) + path.stat().st_size) / 1000
        done.append(Submitted(made.submission.method.name, made.submission.id, path, new, gone, round(size, 1)))
    if known:
        say(
            f"left out, since the board has them from others: {', '.join(known)}. To measure one again for it: "
            "--method NAME --reproduces ID"
        )
    return done


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
    with_source: bool = True
    """Whether the text of a method's own file goes along, so that others can run it."""


def new_submissions(run: FinishedRun, choice: WantedMethods) -> Iterator[NewSubmission]:
    """The run's submissions."""
    possible = run.submittable
    chosen = choice.methods or possible
    if unknown := [text for text in chosen if text not in possible]:
        reason = f"; it has {', '.join(possible)}"
        if unknown[0] in run.methods:
            reason = " with budgets of its own choosing: a threshold of its own keeps another ratio on every data set"
        raise PruneBoardError(f"the run has no method {unknown[0]!r}{reason}")
    benchmark = run.benchmark()
    full = {data_set: run.files.read_result(data_set, FULL) for data_set in run.stores}
    for text in chosen:
        slug = run.methods[text]["slug"]
        found = {
            data_set: run.files.read_result(data_set, slug) for data_set in run.stores if run.files.has(data_set, slug)
        }
        _require_same_code(run, text, found)
        if found:  # a method that failed everywhere has nothing to submit
            yield _new(run, choice, text, benchmark, found, full)


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


def _new(
    run: FinishedRun,
    choice: WantedMethods,
    text: str,
    benchmark: BenchmarkRecord,
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
            counts = part.result.kept
            kept += [(data_set, part.budget, trial, counts[trial, part.index]) for trial in range(counts.shape[0])]
            full_model = part.budget == 1.0
            timing, code = (None, None) if full_model else (milliseconds, code_of(result.made_by))
            cells += _cells(data_set, part, rows, benchmark.judged[data_set], timing, code)
    per_query = pack_per_query(pd.concat(frames, ignore_index=True)[list(PER_QUERY)])
    kept_bytes = pack_kept(kept)
    data_sets = tuple(d for d in benchmark.facts.data_sets if d.name in found)
    submission = Submission(
        format=1,
        id="unnamed",
        claim="reproduced" if choice.reproduces else "self-reported",
        origin=choice.origin,
        benchmark=BenchmarkFacts(name=benchmark.facts.name, data_sets=data_sets),
        backbone=backbone_facts(run, choice.backbone),
        method=method_facts(run, text, choice.track, choice.with_source),
        codec=codec_facts(run, text),
        cells=tuple(cells),
        environment=environment_facts(run),
        per_query=checksum(per_query),
        kept=checksum(kept_bytes),
        reproduces=choice.reproduces,
        settings=settings_facts(run),
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
    judged: Judgements,
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


def write(made: NewSubmission, folder: Path) -> tuple[Path, bool]:
    """Put a submission where it belongs; the JSON file goes last. Whether it is new: one that is there stays."""
    path = folder / submission_path(made.submission)  # named by its content
    if all(path.with_suffix(ending).exists() for ending in ENDINGS):
        return path, False
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(per_query_path(path), made.per_query)
    write_atomically(kept_path(path), made.kept)
    write_atomically(path, to_json(made.submission))
    return path, True


def write_benchmark(run: FinishedRun, folder: Path) -> Path:
    """Pin the run's benchmark beside its submissions, or see that the pinned one is the same."""
    ours = run.benchmark()
    home = folder / ours.facts.name
    if (home / BENCHMARK).exists():
        theirs = read_benchmark(home)
        _check_same(ours, theirs, home)
        if theirs.judged:
            return home
        names = list(theirs.data_sets)  # figures were reported before anyone measured: keep the order
        ordered = tuple(ours.data_sets.get(name, theirs.data_sets[name]) for name in names)
        ours = BenchmarkRecord(BenchmarkFacts(name=ours.facts.name, data_sets=ordered), ours.judged)
    home.mkdir(parents=True, exist_ok=True)
    for name in ("pages.parquet", "qrels.parquet"):
        write_atomically(home / name, (run.files.folder / "benchmark" / name).read_bytes())
    write_atomically(home / BENCHMARK, to_json(ours.facts))
    return home


def remove_earlier(submission: Submission, folder: Path, reason: str, day: date) -> list[str]:
    """Take back what the same submitter measured of the same before: listed with the reason first, then removed."""
    home = (folder / submission_path(submission)).parent
    earlier = [
        path
        for path in sorted(home.glob("*.json"))
        if path.stem != submission.id and _is_by(read_submission(path), submission.origin.submitter)
    ]
    if earlier:
        gone = {path.stem: Removal(removed=day, reason=reason) for path in earlier}
        with alone_with(folder):
            write_atomically(folder / REMOVED, to_json(Removals({**read_removals(folder), **gone})))
    for path in earlier:
        for ending in ENDINGS:
            path.with_suffix(ending).unlink(missing_ok=True)
    return [path.stem for path in earlier]


def _is_on_the_board(submission: Submission, folder: Path) -> bool:
    """Whether it is of a built-in method that somebody else has measured on the same revision of the backbone."""
    others = [read_submission(path) for path in (folder / submission_path(submission)).parent.glob("*.json")]
    return submission.method.file_hash is None and any(
        other.claim != "reported"
        and other.origin.submitter != submission.origin.submitter
        and other.backbone.revision == submission.backbone.revision
        and other.method.parameters == submission.method.parameters
        for other in others
    )


def _is_by(submission: Submission, submitter: str) -> bool:
    return submission.claim != "reported" and submission.origin.submitter == submitter


def _check_same(ours: BenchmarkRecord, theirs: BenchmarkRecord, home: Path) -> None:
    for name, data_set in ours.data_sets.items():
        known = theirs.data_sets.get(name)
        if known is None:
            raise SubmissionError(home / BENCHMARK, [(name, "is no data set of the benchmark that is pinned here")])
        for what, value in known.model_dump().items():
            mine = getattr(data_set, what)
            if value not in (None, ()) and value != mine:
                raise SubmissionError(
                    home / BENCHMARK,
                    [(f"{name}.{what}", f"{value} is pinned, the run has {mine}; give it a benchmark of another name")],
                )
