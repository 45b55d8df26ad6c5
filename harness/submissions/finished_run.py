"""A finished run folder, read for submission."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.evaluation.config import Config, read_config
from harness.evaluation.run_folder import RunFolder
from harness.submissions import pinned
from harness.submissions.schema import BenchmarkFacts, DataSetFacts
from pruners.core.errors import PruneBoardError


class FinishedRun:
    """What the files of a run say."""

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
            text for text, facts in self.methods.items() if not (facts.get("own_threshold") or facts.get("partner_of"))
        )

    def pinned(self) -> pinned.Pinned:
        """The benchmark of the run, with its relevance."""
        name = slug(self.card["benchmark"])
        data_sets = tuple(_data_set(data_set, facts) for data_set, facts in self.stores.items())
        judged = pinned.read_tables(self.files.folder / "benchmark")
        return pinned.Pinned(BenchmarkFacts(name=name, data_sets=data_sets), judged)


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


def slug(text: str) -> str:
    """A name that can be a folder."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-=") else "_" for c in text).strip("_.-=")
    return plain[:120] or "unnamed"
