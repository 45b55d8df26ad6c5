"""What a submission says: one method on one backbone and one benchmark, at several budgets.

A submission is a JSON file of this form and, if it was measured, a parquet file of the same name with a row for each
data set, budget, trial and query. Budget 1.0 is the full model of the same run: every other cell is relative to it, so
a submission can be checked alone. Averages are never stored; who shows them derives them.
"""

from __future__ import annotations

from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Text = Annotated[str, StringConstraints(strip_whitespace=True, max_length=2000)]
Word = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Slug = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._=-]{0,119}$")]
"""Names a file or a folder, so it can never leave the one it belongs to."""
Link = Annotated[str, StringConstraints(pattern=r"^https?://[^\s<>\"'`{}\\]+$", max_length=500)]
Hash = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+-[0-9a-f]{16,64}$")]
Fraction = Annotated[float, Field(gt=0, le=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Amount = Annotated[float, Field(ge=0)]


class Strict(BaseModel):
    """Unknown fields are mistakes; numbers are numbers, finite, and not written as text."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class Track(str, Enum):
    """What kind of index a method leaves, and what it may have seen. Only equals are ranked together."""

    subset = "query-agnostic subset"
    merging = "merging"
    quantised = "quantised"
    trained = "trained"
    diagnostic = "diagnostic"


class Origin(Strict):
    """Who answers for the figures."""

    submitter: Word
    """A person, a group, or the project itself."""
    submitted: Annotated[date, Field(strict=False)]
    """The day of submission, as 2026-11-16."""
    paper: Link | None = None
    code: Link | None = None
    note: Text = ""
    """Anything a reader must know, such as the table a figure was copied from."""


class DataSet(Strict):
    """A data set that was really read."""

    name: Word
    """Within the benchmark; MTEB's task name where there is one."""
    revision: Word | None = None
    """Of the data set on its hub; none for local folders."""
    pages: Annotated[int, Field(ge=1)] | None = None
    queries: Annotated[int, Field(ge=1)] | None = None
    """Queries that have a relevant page, over all languages."""
    languages: tuple[Word, ...] = ()
    corpus: Hash | None = None
    """Content hashes of what was read, not of what was asked for. None only where figures are reported."""
    query_texts: Hash | None = None
    qrels: Hash | None = None


class Benchmark(Strict):
    name: Slug
    data_sets: Annotated[tuple[DataSet, ...], Field(min_length=1)]


class Backbone(Strict):
    """The retriever whose page vectors were pruned."""

    name: Slug
    """The project's short name: nano, colpali, colqwen2, jina-v4, minilm …"""
    checkpoint: Word
    """Hub id or a description of the local checkpoint."""
    revision: Word | None = None
    kind: Literal["visual", "text tokens"] = "visual"
    dtype: Word | None = None
    attention: Word | None = None
    """How attention signals were captured."""
    query_template: Text | None = None
    profile: Literal["visual", "native"] | None = None
    """What is indexed: visual tokens only, or prompt tokens too."""
    layers: Annotated[int, Field(ge=1)] | None = None
    dim: Annotated[int, Field(ge=1)] | None = None


class Method(Strict):
    """The pruning method."""

    name: Slug
    """Folder and page on the leaderboard; parameters that differ from the defaults make another name."""
    expression: Word
    """What `--pruner` takes to run it again; for reported figures the method's name in its paper."""
    title: Word
    """For people."""
    track: Track
    adaptive: bool = False
    """Whether pages keep different fractions."""
    version: Word | None = None
    """Version of this project that holds the method, or of the package it comes from."""
    file_hash: Hash | None = None
    """Of the file, for a method from a user's file."""
    signals: tuple[Word, ...] = ()
    parameters: dict[Word, str | int | float | bool | tuple[int | float | str, ...] | None] = {}
    calibrated: dict[Word, Any] = {}
    """What it learned: window, thresholds by budget; and the calibration set with its content hashes."""


class Cell(Strict):
    """One data set, in one language, at one budget."""

    data_set: Word
    language: Annotated[str, StringConstraints(max_length=40)] = ""
    """Empty where a data set has one language, or where only the mean over languages was reported."""
    budget: Fraction
    """Nominal. 1.0 is the full model."""
    realised: Share | None = None
    """Vectors kept over the corpus, as measured."""
    vectors_per_page: Amount | None = None
    bytes_per_page: Amount | None = None
    """All that must be stored for a page: vectors at the index's precision, and whatever else the method needs."""
    prune_ms: Amount | None = None
    """Milliseconds of pruning a page, all budgets of the run together."""
    ndcg: dict[Literal["1", "5", "10", "50", "100"], Share]
    """By cutoff."""
    retention: Amount | None = None
    """NDCG@5 in % of the full model's, only where a paper printed it and its NDCG is rounded; derived otherwise."""
    score_retention: float | None = None
    score_retention_micro: float | None = None
    pairs_left_out: Annotated[int, Field(ge=0)] = 0
    trials: Annotated[int, Field(ge=1)] = 1
    trial_deviation: Amount = 0.0
    """Standard deviation of NDCG@5 over trials."""


class Environment(Strict):
    python: Word
    platform: Word
    libraries: dict[Word, Word]
    code: Word
    """Commit of this project, with `+changes` if the tree differed from it."""


class Submission(Strict):
    """One method on one backbone and one benchmark."""

    format: Literal[1]
    id: Slug
    """Unique for ever: a changed score needs a new one."""
    claim: Literal["reported", "self-reported", "reproduced"]
    """`reported`: a paper's figures. `self-reported`: measured by who submits. `reproduced`: measured by another."""
    origin: Origin
    benchmark: Benchmark
    backbone: Backbone
    method: Method
    cells: Annotated[tuple[Cell, ...], Field(min_length=1)]
    environment: Environment | None = None
    per_query: Hash | None = None
    """Content hash of the parquet file beside it; none where only figures are reported."""
    reproduces: Slug | None = None
    """The id of the submission that a `reproduced` one measures again."""


PER_QUERY = ("data_set", "language", "budget", "trial", "query", "ndcg@1", "ndcg@5", "ndcg@10", "ndcg@50", "ndcg@100")
"""Columns of the parquet file; `score_retention` and `top_10` (page ids, best first) follow."""
