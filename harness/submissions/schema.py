"""What a submission says: one method on one backbone and one benchmark, at several budgets.

A submission is a JSON file of this form and, if it was measured, two parquet files of the same name: a row for each
data set, budget, trial and query (`.parquet`), and the vectors kept of each page (`.kept.parquet`). Budget 1.0 is the
full model of the same run: every other cell is relative to it, so a submission can be checked alone. Averages are never
stored; who shows them derives them.
"""

from __future__ import annotations

import hashlib
import json
from datetime import date
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, StringConstraints

_LINE = r"^[^\u0000-\u001F\u007F-\u009F\u2028\u2029]*$"  # one line: no control characters, which a terminal would obey
_PLAIN = r"^[ -~]*$"  # ASCII: Python takes some other letters for these, and a reader does too
_LINES = r"^[^\u0000-\u0008\u000B-\u001F\u007F-\u009F\u2028\u2029]*$"
Text = Annotated[str, StringConstraints(strip_whitespace=True, max_length=2000, pattern=_LINES)]
Word = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200, pattern=_LINE)]
Expression = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1000, pattern=_PLAIN)]
Language = Annotated[str, StringConstraints(max_length=40, pattern=_LINE)]
Slug = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.=-]{0,119}$")]
"""Names a file or a folder, so it can never leave the one it belongs to."""
Link = Annotated[str, StringConstraints(pattern=r"^https?://[^\s<>\"'`{}\\]+$", max_length=500)]
Hash = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+-[0-9a-f]{16,64}$")]
Source = Annotated[str, StringConstraints(max_length=200_000)]
Share = Annotated[float, Field(ge=0, le=1)]
Amount = Annotated[float, Field(ge=0, le=1e12)]
Percent = Annotated[float, Field(ge=0, le=1000)]
Ratio = Annotated[float, Field(ge=-100, le=100)]
Count = Annotated[int, Field(ge=1, le=10**9)]
Whole = Annotated[int, Field(ge=-(2**53), le=2**53)]
MOST_VALUES, MOST_TEXT, DEEPEST = 5000, 2000, 8


def _budget(value: float) -> float:
    if value != round(value, 4) and value * round(1 / value) != 1:
        raise ValueError("a budget has at most four decimals, or is one of so many: 1/9")
    return value


def _bounded(value: JsonValue) -> JsonValue:
    """Any JSON, but not much of it."""
    waiting, seen = [(value, 1)], 0
    while waiting:
        one, depth = waiting.pop()
        seen += 1
        inside: list[JsonValue] = []
        if isinstance(one, dict):
            inside = [*one, *one.values()]
        elif isinstance(one, list):
            inside = one
        if seen + len(inside) > MOST_VALUES or depth > DEEPEST:
            raise ValueError(f"has more than {MOST_VALUES} values, or is more than {DEEPEST} deep")
        if isinstance(one, str) and len(one) > MOST_TEXT:
            raise ValueError(f"a text in it has at most {MOST_TEXT} characters")
        if isinstance(one, int | float) and not abs(one) <= 2**53:  # also what is no number, or has no end
            raise ValueError("a number in it is too large")
        waiting += [(item, depth + 1) for item in inside]
    return value


Budget = Annotated[float, Field(gt=0, le=1), AfterValidator(_budget)]
Json = Annotated[JsonValue, AfterValidator(_bounded)]
SharedBytes = Annotated[int, Field(ge=0, le=10**12)]


class Strict(BaseModel):
    """Unknown fields are mistakes; numbers are numbers, finite, and not written as text."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class Track(StrEnum):
    """What kind of index a method leaves, and what it may have seen. Only equals are ranked together."""

    subset = "query-agnostic subset"
    merging = "merging"
    quantised = "quantised"
    trained = "trained"
    diagnostic = "diagnostic"

    def may_be_called(self, said: Track) -> bool:
        """Whether a method that is of this track by its own declaration may be submitted under `said`.

        That a model was trained for it no declaration tells; that it sees the queries nothing takes back.
        """
        return said is self or (said is Track.trained and self is not Track.diagnostic)


class Origin(Strict):
    """Who answers for the figures."""

    submitter: Word
    """A person, a group, or the project itself."""
    account: Word | None = None
    """On the platform where it was submitted: only this account, or a maintainer, may reword it or take it back."""
    submitted: Annotated[date, Field(strict=False)]
    """The day of submission, as 2026-11-16."""
    paper: Link | None = None
    """Where the method, or the figures, are published."""
    code: Link | None = None
    """Where the method's code is, if it is not this project's."""
    note: Text = ""
    """Anything a reader must know, such as the table a figure was copied from."""


class DataSetFacts(Strict):
    """A data set that was really read."""

    name: Word
    """Within the benchmark; MTEB's task name where there is one."""
    revision: Word | None = None
    """Of the data set on its hub; none for local folders."""
    pages: Count | None = None
    """Pages in the corpus."""
    queries: Count | None = None
    """Queries that have a relevant page, over all languages."""
    languages: tuple[Word, ...] = ()
    """Of the queries; empty where they have one only."""
    corpus: Hash | None = None
    """Content hash of the pages that were read, not of those asked for. None only where figures are reported."""
    page_texts: Hash | None = None
    """Content hash of the pages' texts, which retrievers over text tokens read; none where a corpus has none."""
    query_texts: Hash | None = None
    """Content hash of the queries."""
    qrels: Hash | None = None
    """Content hash of the relevance judgements. It can be computed again from `qrels.parquet`."""


class BenchmarkFacts(Strict):
    """A named collection of data sets."""

    name: Slug
    """Folder, and choice on the leaderboard."""
    data_sets: Annotated[tuple[DataSetFacts, ...], Field(min_length=1)]
    """In a submission: those that were measured."""


class BackboneFacts(Strict):
    """The retriever whose page vectors were pruned."""

    name: Slug
    """The project's short name: nano, colpali, colqwen2, jina-v4, minilm …"""
    checkpoint: Word
    """Hub id or a description of the local checkpoint."""
    revision: Word | None = None
    """A commit, or a hash of the files."""
    kind: Literal["visual", "text tokens"] = "visual"
    """What a vector stands for: a patch of a page, or a token of a text."""
    dtype: Word | None = None
    """In which it computed."""
    attention: Word | None = None
    """How attention signals were captured."""
    query_template: Text | None = None
    """What was put around a query's text."""
    profile: Literal["visual", "native"] | None = None
    """What is indexed: visual tokens only, or prompt tokens too."""
    layers: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Of the decoder."""
    dim: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Numbers in a vector."""


class MethodFacts(Strict):
    """The pruning method."""

    name: Slug
    """Folder and page on the leaderboard; parameters that differ from the defaults make another name."""
    expression: Expression
    """What `--pruner` takes to run it again; for reported figures the method's name in its paper."""
    title: Word
    """For people."""
    track: Track
    """Only methods of one track are ranked together."""
    composition: Expression | None = None
    """What really ran: presets unfolded, windows bound."""
    adaptive: bool = False
    """Whether pages keep different fractions."""
    snapped: bool = False
    """Whether the number of vectors is bound to something else than the budget, such as the grid of patches."""
    version: Word | None = None
    """Version of this project that holds the method, or of the package it comes from."""
    file_hash: Hash | None = None
    """Fingerprint of the file, for a method from a user's file: its code, with what it imports from its folder."""
    source: dict[Word, Source] = {}
    """The file of a method that is in no package, and what it imports from its folder: text by path, to run again."""
    source_hash: Hash | None = None
    """Fingerprint of that file's code, also where its text is not given: who has the file can show that it is it."""
    code: Hash | None = None
    """Fingerprint of all code that measured it: the method's and this project's. Every cell below 1.0 has the same."""
    signals: tuple[Word, ...] = ()
    """What it reads beside the vectors: attention signals, the patch grid."""
    parameters: dict[Word, Text | Whole | float | bool | tuple[Whole | float | Word, ...] | None] = {}
    """Every hyper-parameter, those at their default too."""
    calibrated: dict[Word, Json] = {}
    """What it learned: window, thresholds by budget; and the calibration set with its content hashes."""
    shared_bytes: SharedBytes = 0
    """What the index holds once for all pages in a form of the method's own; a codec's is its own."""


class CodecFacts(Strict):
    """How vectors are stored."""

    expression: Expression
    """What `--codec` takes."""
    parameters: dict[Word, Text | Whole | float | bool | None] = {}
    """Every parameter, those at their default too."""
    bytes_per_vector: Count
    """Of one stored vector. It follows from the codec and the vectors' width."""
    shared_bytes: SharedBytes = 0
    """What the index holds once for all pages, such as a codebook; a page's share of it is in its bytes."""


class Cell(Strict):
    """One data set, in one language, at one budget."""

    data_set: Word
    """Its name in `benchmark`."""
    language: Language = ""
    """Empty where a data set has one language, or where only the mean over languages was reported."""
    budget: Budget
    """Nominal. 1.0 is the full model."""
    realised: Share | None = None
    """Vectors kept, as a share of the corpus's, as counted."""
    vectors_per_page: Amount | None = None
    """Mean over the corpus."""
    bytes_per_page: Amount | None = None
    """All that must be stored for a page: vectors at the index's precision, and whatever else the method needs."""
    prune_ms: Amount | None = None
    """Milliseconds of pruning a page, all budgets of the run together."""
    ndcg: dict[Literal["1", "5", "10", "50", "100"], Share]
    """Mean over the queries, by cutoff. Those at 1, 5 and 10 are computed again from the rankings."""
    retention: Percent | None = None
    """NDCG@5 in % of the full model's, only where a paper printed it and its NDCG is rounded; derived otherwise."""
    score_retention: Ratio | None = None
    """Mean over gold pairs of MaxSim(pruned) / MaxSim(full)."""
    score_retention_micro: Ratio | None = None
    """The ratio of means instead; over the whole data set, all its languages."""
    pairs_left_out: Annotated[int, Field(ge=0, le=10**9)] = 0
    """Gold pairs of the whole data set whose full score is not above 0, so that they have no ratio."""
    trials: Annotated[int, Field(ge=1, le=1000)] = 1
    """Seeds over which a stochastic method was averaged."""
    trial_deviation: Share = 0.0
    """Standard deviation of NDCG@5 over trials."""
    code: Hash | None = None
    """Fingerprint of the code that measured this cell, as the run noted it then."""


class Settings(Strict):
    """Choices of the run that change a number, and stand nowhere else in a submission."""

    seed: Annotated[int, Field(ge=0, le=2**53)]
    """Of random draws and of the calibration pages."""
    calibration: Word | None = None
    """The benchmark that methods were calibrated on, by its name; none: the one that belongs to the benchmark."""
    calibration_pages: Count
    """Pages drawn of it."""
    window: Word | None = None
    """Layers that were given to methods which left theirs open; none: found on the calibration set, or saved before."""
    window_pairs: Count
    """Pairs of a query and a page that the search for a window reads."""
    trials: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Seeds of stochastic methods; none: as many as each method says."""
    dtype: Word | None = None
    """Asked for; none: the backbone's own."""
    max_visual_tokens: Count | None = None
    """Of a page; none: the backbone's own."""


class Environment(Strict):
    """Where it was measured. Nothing of it should change a number."""

    python: Word
    """Version."""
    platform: Word
    """Operating system and processor."""
    libraries: dict[Word, Word]
    """Versions, by name."""
    code: Word
    """Commit of this project, with `+changes` if the tree differed from it."""


class Submission(Strict):
    """One method on one backbone and one benchmark."""

    format: Literal[1]
    """Of this schema."""
    id: Slug
    """A hash of all that was measured (`content_id`), so a changed score has another id. Names the file."""
    claim: Literal["reported", "self-reported", "reproduced"]
    """`reported`: a paper's figures. `self-reported`: measured by who submits. `reproduced`: measured by another."""
    origin: Origin
    """Who answers for it."""
    benchmark: BenchmarkFacts
    """What was read."""
    backbone: BackboneFacts
    """Which retriever."""
    method: MethodFacts
    """Which pruning method."""
    codec: CodecFacts | None = None
    """How vectors are stored below budget 1.0; none: as float16, in which the full model always is."""
    cells: Annotated[tuple[Cell, ...], Field(min_length=1, max_length=20_000)]
    """The results: one for each data set, language and budget."""
    environment: Environment | None = None
    """None where figures are reported."""
    per_query: Hash | None = None
    """Checksum of the `.parquet` file beside it; none where only figures are reported."""
    kept: Hash | None = None
    """Checksum of the `.kept.parquet` file beside it."""
    reproduces: Slug | None = None
    """The id of the submission that a `reproduced` one measures again."""
    settings: Settings | None = None
    """What it takes to measure it again, beside the method; none where figures are reported, or were before 0.2."""

    @property
    def shared_bytes(self) -> int:
        """What its index holds once for all pages: the method's and the codec's."""
        return self.method.shared_bytes + (self.codec.shared_bytes if self.codec else 0)


MEASURED = (
    *("format", "claim", "benchmark", "backbone", "method", "codec", "cells", "per_query", "kept", "reproduces"),
    "settings",
)
"""In the id. Who submits, when, with which links and remarks, and on which machine, may be corrected."""


def content_id(submission: Submission) -> str:
    """The id that belongs to this content: a changed score cannot keep its id, and no list of known ids has to be kept.

    Defaults are left out, so that a new optional field changes no old id.
    """
    return hashlib.sha256(content_text(submission).encode()).hexdigest()[:16]


def content_text(submission: Submission) -> str:
    """All that was measured, as one text. Times are not in it where settings are: the same measured twice is one id."""
    content = submission.model_dump(mode="json", include=set(MEASURED), exclude_defaults=True)
    if submission.settings is not None:
        for cell in content["cells"]:
            cell.pop("prune_ms", None)
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def with_id(submission: Submission) -> Submission:
    return submission.model_copy(update={"id": content_id(submission)})
