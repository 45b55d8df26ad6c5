"""From a run folder to submissions: one for each method, with all that the run folder knows of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from harness.backbones import registry
from harness.evaluation.config import Config, read_config
from harness.evaluation.results import FULL, Result
from harness.evaluation.run_folder import RunFolder
from harness.metrics.ranking import CUTOFFS
from harness.store.format import checksum, library_versions
from harness.submissions import pinned
from harness.submissions.identity import with_id
from harness.submissions.recompute import pair_mean
from harness.submissions.rows import PER_QUERY, pack_kept, pack_per_query
from harness.submissions.schema import (
    Backbone,
    Benchmark,
    Cell,
    DataSet,
    Environment,
    Method,
    Origin,
    Submission,
    Track,
)
from pruners.core.errors import PruneBoardError

WINDOW = ("window", "source", "curve", "median", "boundary", "empty_suffix", "pairs", "gamma", "rho")
"""What a submission says of a window; the curve is drawn on the backbone's page."""
TRACKS = {"subset": Track.subset, "merged": Track.merging, "quantised": Track.quantised}


@dataclass(frozen=True)
class Made:
    """A submission and its two tables, not yet on disk."""

    submission: Submission
    per_query: bytes
    kept: bytes


@dataclass(frozen=True)
class Choice:
    """What the submitter decides."""

    origin: Origin
    methods: tuple[str, ...] = ()
    """Text forms, as in the run; none: all."""
    backbone: str | None = None
    """Name on the leaderboard, if it should not be the run's."""
    track: Track | None = None
    reproduces: str | None = None


class Run:
    """A finished run, read for submission."""

    def __init__(self, folder: Path) -> None:
        if not (folder / "config.toml").is_file():
            raise PruneBoardError(f"{folder} is no run folder: it has no config.toml. `harness evaluate` makes one")
        self.files = RunFolder(folder)
        self.config: Config = read_config(folder / "config.toml")
        self.methods: dict[str, dict[str, Any]] = self._json("methods.json")
        self.stores: dict[str, dict[str, Any]] = self._json("stores.json")
        self.card: dict[str, Any] = self._json("backbone.json")
        self.environment: dict[str, Any] = self._json("environment.json")
        self.timings: dict[str, dict[str, float]] = self.files.read_json("timings.json") or {}
        self.calibration: dict[str, Any] | None = self.files.read_json("calibration.json")
        if self.files.read_json("failures.json") is None:
            raise PruneBoardError(
                f"{folder} is not finished; run its `harness evaluate` again: it goes on where it was"
            )

    def _json(self, name: str) -> Any:
        found = self.files.read_json(name)
        if found is None:
            raise PruneBoardError(
                f"{self.files.folder} has no {name}: it is not finished, or an earlier release made it; evaluate again"
            )
        return found

    @property
    def submittable(self) -> tuple[str, ...]:
        """Methods at the run's budgets. Native thresholds and their partners have a budget for each data set."""
        return tuple(
            text for text, facts in self.methods.items() if not (facts.get("native") or facts.get("partner_of"))
        )

    def pinned(self) -> pinned.Pinned:
        """The benchmark of the run, with its relevance."""
        name = _slug(self.card["benchmark"])
        data_sets = tuple(_data_set(task, facts) for task, facts in self.stores.items())
        judged = pinned.read_tables(self.files.folder / "benchmark")
        return pinned.Pinned(Benchmark(name=name, data_sets=data_sets), judged)


def make(run: Run, choice: Choice) -> Iterator[Made]:
    """The run's submissions."""
    possible = run.submittable
    chosen = choice.methods or possible
    if unknown := [text for text in chosen if text not in possible]:
        reason = f"; it has {', '.join(possible)}"
        if unknown[0] in run.methods:
            reason = " with budgets of its own choosing: a native threshold keeps another ratio on every data set"
        raise PruneBoardError(f"the run has no method {unknown[0]!r}{reason}")
    benchmark = run.pinned()
    full = {task: run.files.read_result(task, FULL) for task in run.stores}
    for text in chosen:
        slug = run.methods[text]["slug"]
        found = {task: run.files.read_result(task, slug) for task in run.stores if run.files.has(task, slug)}
        if found:  # a method that failed everywhere has nothing to submit
            yield _made(run, choice, text, benchmark, found, full)


def _made(
    run: Run,
    choice: Choice,
    text: str,
    benchmark: pinned.Pinned,
    found: Mapping[str, Result],
    full: Mapping[str, Result],
) -> Made:
    frames, kept, cells = [], [], []
    for task, result in found.items():
        parts = [_Part(full[task], 0, 1.0)]
        parts += [_Part(result, i, e["budget"]) for i, e in enumerate(result.summary) if e["budget"] != 1.0]
        milliseconds = run.timings.get(task, {}).get(text)
        for part in parts:
            rows = part.rows()
            frames.append(rows.assign(data_set=task))
            kept += [(task, part.budget, t, counts) for t, counts in enumerate(part.result.kept[:, part.index])]
            timing = None if part.budget == 1.0 else milliseconds
            cells += _cells(task, part, rows, benchmark.judged[task], timing)
    per_query = pack_per_query(pd.concat(frames, ignore_index=True)[list(PER_QUERY)])
    kept_bytes = pack_kept(kept)
    data_sets = tuple(d for d in benchmark.benchmark.data_sets if d.name in found)
    submission = Submission(
        format=1,
        id="unnamed",
        claim="reproduced" if choice.reproduces else "self-reported",
        origin=choice.origin,
        benchmark=Benchmark(name=benchmark.benchmark.name, data_sets=data_sets),
        backbone=_backbone(run.card, run.config.backbone, choice.backbone),
        method=_method(run, text, choice.track),
        cells=tuple(cells),
        environment=_environment(run.environment),
        per_query=checksum(per_query),
        kept=checksum(kept_bytes),
        reproduces=choice.reproduces,
    )
    return Made(with_id(submission), per_query, kept_bytes)


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


def _cells(task: str, part: _Part, rows: pd.DataFrame, judged: pinned.Judged, milliseconds: float | None) -> list[Cell]:
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
                data_set=task,
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
            )
        )
    return cells


def _known(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else value


def _method(run: Run, text: str, track: Track | None) -> Method:
    facts = run.methods[text]
    declared = Track.diagnostic if facts["diagnostic"] else TRACKS[facts["output"]]
    calibrated: dict[str, Any] = {}
    if facts["thresholds"]:
        calibrated["thresholds"] = facts["thresholds"]
    window = (run.calibration or {}).get("window")
    if window and "layers=" in facts["composition"] and "layers=" not in text:
        calibrated["window"] = {key: window[key] for key in WINDOW if key in window}
    if run.calibration and (calibrated or facts["shared_bytes"]):
        calibrated["on"] = {key: run.calibration[key] for key in ("benchmark", "content", "pages")}
    return Method(
        name=_slug(text),
        expression=f"{facts['file']}:{text}" if facts["file"] else text,
        title=facts["summary"].rstrip(".")[:200] or facts["name"],
        track=track or declared,
        composition=facts["composition"],
        adaptive=facts["budget"] == "adaptive",
        snapped=facts["budget"] == "snapped",
        version=None if facts["file_hash"] else library_versions(["pruneboard"])["pruneboard"],
        file_hash=facts["file_hash"],
        signals=tuple(facts["needs"]),
        parameters={k: tuple(v) if isinstance(v, list) else v for k, v in facts["parameters"].items()},
        calibrated=calibrated,
    )


def _backbone(card: Mapping[str, Any], selector: str, name: str | None) -> Backbone:
    """The card of the retriever. Where a local checkpoint lies is nobody's business: its folder's name is enough."""
    _, other, checkpoint = selector.partition("=")
    if not other:  # the loader's own checkpoint: an id, or `embedded`
        declared = registry.catalogue().get(card["name"])
        checkpoint = declared.options["checkpoint"] if declared else card["checkpoint"]
    plain = Path(checkpoint).name if Path(checkpoint).exists() or Path(checkpoint).is_absolute() else checkpoint
    named = f"{card['name']}-{Path(plain).name}" if other else card["name"]
    return Backbone(
        name=name or _slug(named),
        checkpoint=plain,
        revision=card["revision"],
        kind=card.get("kind", "visual"),
        dtype=card["dtype"],
        attention=card["attention"],
        query_template=card["query_template"],
        profile=card.get("profile", "visual"),
        layers=card["layers"] or None,
        dim=card["dim"],
    )


def _environment(facts: Mapping[str, Any]) -> Environment:
    return Environment(
        python=facts["python"],
        platform=f"{facts['platform']} {facts['processor']}",
        libraries=facts["libraries"],
        code=facts["code"],
    )


def _data_set(task: str, facts: Mapping[str, Any]) -> DataSet:
    return DataSet(
        name=task,
        revision=facts["revision"] or None,
        pages=facts["pages"],
        queries=facts["queries"],
        languages=tuple(facts["languages"]),
        corpus=facts["content"]["corpus"],
        page_texts=facts["content"].get("texts"),
        query_texts=facts["content"]["queries"],
        qrels=facts["content"]["qrels"],
    )


def _slug(text: str) -> str:
    """A name that can be a folder."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-=") else "_" for c in text).strip("_.-=")
    return plain[:120] or "unnamed"
