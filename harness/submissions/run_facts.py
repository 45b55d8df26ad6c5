"""What a submission says of a finished run folder: its benchmark, methods, backbone and environment."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.backbones import registry
from harness.evaluation.config import Config, read_config
from harness.evaluation.run_folder import RunFolder
from harness.submissions.benchmark import BenchmarkRecord, read_tables
from harness.submissions.checks import TRACKS
from harness.submissions.names import slug
from harness.submissions.schema import (
    BackboneFacts,
    BenchmarkFacts,
    CodecFacts,
    DataSetFacts,
    Environment,
    MethodFacts,
    Settings,
    Track,
)
from pruners.core.errors import PruneBoardError

WINDOW = ("window", "source", "curve", "median", "boundary", "empty_suffix", "pairs", "gamma", "rho")
"""What a submission says of a window; the curve is drawn on the backbone's page."""


class FinishedRun:
    """What the files of a run say."""

    def __init__(self, folder: Path) -> None:
        if not (folder / "config.toml").is_file():
            raise PruneBoardError(f"{folder} is no run folder: it has no config.toml. `harness evaluate` makes one")
        self.files = RunFolder(folder)
        self.files.read_bytes("config.toml")  # is what was written
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
        """Methods at the run's budgets. Thresholds of their own and their partners have a budget for each data set."""
        return tuple(
            text for text, facts in self.methods.items() if not (facts.get("own_threshold") or facts.get("partner_of"))
        )

    def benchmark(self) -> BenchmarkRecord:
        """The benchmark of the run, with its relevance."""
        name = slug(self.card["benchmark"])
        data_sets = tuple(_data_set(data_set, facts) for data_set, facts in self.stores.items())
        for table in ("pages", "qrels"):
            self.files.read_bytes(f"benchmark/{table}.parquet")  # an error if it is not what was written
        judged = read_tables(self.files.folder / "benchmark")
        return BenchmarkRecord(BenchmarkFacts(name=name, data_sets=data_sets), judged)


def _data_set(data_set: str, facts: Mapping[str, Any]) -> DataSetFacts:
    return DataSetFacts(
        name=data_set,
        revision=facts["revision"] or None,
        pages=facts["pages"],
        queries=facts["queries"],
        languages=tuple(facts["languages"]),
        corpus=facts["content"]["corpus"],
        page_texts=facts["content"].get("texts"),
        query_texts=facts["content"]["queries"],
        qrels=facts["content"]["qrels"],
    )


def method_facts(run: FinishedRun, text: str, track: Track | None, with_source: bool = True) -> MethodFacts:
    """A method with its parameters and what it learned."""
    facts, codec = run.methods[text], codec_facts(run, text)
    declared = Track.diagnostic if facts["diagnostic"] else Track.quantised if codec else TRACKS[facts["output"]]
    if track is not None and not declared.may_be_called(track):
        raise PruneBoardError(f"{text} is of the track {declared.value}, by its own declaration, and not {track}")
    title = facts["summary"].rstrip(".")[:150] or facts["name"]
    calibrated: dict[str, Any] = {}
    if facts["thresholds"]:
        calibrated["thresholds"] = facts["thresholds"]
    window = (run.calibration or {}).get("window")
    if window and "layers=" in facts["composition"] and "layers=" not in text:
        calibrated["window"] = {key: window[key] for key in WINDOW if key in window}
    if run.calibration and (calibrated or facts["shared_bytes"]):
        calibrated["on"] = {key: run.calibration[key] for key in ("benchmark", "content", "pages")}
    return MethodFacts(
        name=slug(text.replace(" | ", "--") if codec else text),
        expression=expression_of(facts["file"], text),
        title=f"{title}, stored as {codec.expression}"[:200] if codec else facts["summary"].rstrip(".")[:200] or title,
        track=track or declared,
        composition=facts["composition"],
        adaptive=facts["budget"] == "adaptive",
        snapped=facts["budget"] == "snapped",
        version=_version(facts),
        file_hash=facts["file_hash"],
        source=facts.get("texts", {}) if with_source else {},
        source_hash=facts.get("source_hash"),
        code=code_of(facts["made_by"]),
        signals=tuple(facts["needs"]),
        parameters={k: tuple(v) if isinstance(v, list) else v for k, v in facts["parameters"].items()},
        calibrated=calibrated,
        shared_bytes=facts["shared_bytes"] - (codec.shared_bytes if codec else 0),
    )


def expression_of(file: str | None, text: str) -> str:
    """How a submission names a method: in plain letters, since others look alike, and some are the same to Python."""
    found = f"{file}:{text}" if file else text
    if not found.isascii():
        raise PruneBoardError(
            f"{found}: a submission names a method in plain letters; rename the file and run it again"
        )
    return found


def codec_facts(run: FinishedRun, text: str) -> CodecFacts | None:
    """How a method's vectors were stored; None: as float16."""
    facts = run.methods[text].get("codec")
    if facts is None:
        return None
    return CodecFacts(
        expression=facts["text"],
        parameters=facts["parameters"],
        bytes_per_vector=facts["bytes_per_vector"],
        shared_bytes=facts["shared_bytes"],
    )


def _version(facts: Mapping[str, Any]) -> str | None:
    """Of the package that brings a method, or of this project as it measured; a user's file has none."""
    if facts["file_hash"]:
        return None
    package = facts["source"].removeprefix("package ")
    return facts["made_by"]["project"].split()[0] if package == "built-in" else package


def code_of(made_by: Mapping[str, str]) -> str:
    """One fingerprint of the method's code and of this project's."""
    return f"sha256-{hashlib.sha256((made_by['project'] + made_by['code']).encode()).hexdigest()}"


def backbone_facts(run: FinishedRun, name: str | None) -> BackboneFacts:
    """The card of the retriever. Where a local checkpoint lies is nobody's business: its folder's name is enough."""
    card = run.card
    _, other, checkpoint = run.config.backbone.partition("=")
    if not other:  # the loader's own checkpoint: an id, or `embedded`
        declared = registry.catalogue().get(card["name"])
        checkpoint = declared.options["checkpoint"] if declared else card["checkpoint"]
    plain = Path(checkpoint).name if Path(checkpoint).exists() or Path(checkpoint).is_absolute() else checkpoint
    named = f"{card['name']}-{Path(plain).name}" if other else card["name"]
    return BackboneFacts(
        name=name or slug(named),
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


def settings_facts(run: FinishedRun) -> Settings:
    """The run's choices that change a number; of a folder its name is enough."""
    config = run.config
    return Settings(
        seed=config.seed,
        calibration=None if config.calibration is None else Path(config.calibration).name,
        calibration_pages=config.calibration_pages,
        window=None if config.window is None else Path(config.window).name,
        window_pairs=config.window_pairs,
        trials=config.trials,
        dtype=config.dtype,
        max_visual_tokens=config.max_visual_tokens,
    )


def environment_facts(run: FinishedRun) -> Environment:
    facts = run.environment
    return Environment(
        python=facts["python"],
        platform=f"{facts['platform']} {facts['processor']}",
        libraries=facts["libraries"],
        code=facts["code"],
    )
