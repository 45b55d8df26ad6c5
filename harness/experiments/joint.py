"""Several folders of experiments as one: rows of all backbones, and the words that captions use for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from harness.drawing import labels
from harness.experiments.joint_sources import MEAN, JoinedFolder, titles
from harness.experiments.windows import NINE, snap
from pruners import Window

Row = dict[str, Any]

ON_PAIRS = ("layer-curve", "base-probe")
"""Measured on calibration pairs, not on a benchmark: folders of one backbone have it again, and the first is read."""


@dataclass(frozen=True)
class Joint:
    """Backbones in the order in which their folders were named, benchmarks by name."""

    sources: Sequence[JoinedFolder]

    @cached_property
    def backbones(self) -> dict[str, list[JoinedFolder]]:
        """Title -> its folders: one backbone may have several, of different benchmarks."""
        words = titles(self.sources)
        found: dict[str, list[JoinedFolder]] = {title: [] for title in words.values()}
        for source in self.sources:
            found[words[source.checkpoint]].append(source)
        return found

    def rows(self, experiment: str) -> list[Row]:
        """An experiment's rows of all backbones, without a folder's own means over its benchmarks."""
        found = []
        for title in self.having(experiment):
            records = [s.records[experiment] for s in self.backbones[title] if experiment in s.records]
            for record in records[:1] if experiment in ON_PAIRS else records:
                found += [{"backbone": title, **row} for row in record["rows"] if row.get("benchmark") != MEAN]
        return found

    def record(self, title: str, experiment: str) -> Mapping[str, Any]:
        """What the first folder of a backbone wrote that has the experiment."""
        return next(s.records[experiment] for s in self.backbones[title] if experiment in s.records)

    def having(self, *experiments: str) -> list[str]:
        """The backbones for which all of these are finished."""
        return [
            title
            for title, sources in self.backbones.items()
            if all(any(name in source.records for source in sources) for name in experiments)
        ]

    def missing(self, *experiments: str) -> list[str]:
        """What is left out because it is not finished."""
        return [
            f"left out: {title} from {source.folder.name}, where {name} is not finished"
            for title, sources in self.backbones.items()
            for source in sources
            for name in experiments
            if name not in source.records and not (name in ON_PAIRS and title in self.having(name))
        ]

    def unlike(self) -> list[str]:
        """Folders of one backbone whose calibration pairs chose different windows."""
        found = []
        for title, sources in self.backbones.items():
            chosen = {s.records["layer-curve"]["facts"]["window"] for s in sources if "layer-curve" in s.records}
            if len(chosen) > 1:
                found.append(
                    f"folders of {title} chose different windows ({listed(sorted(chosen))}): the first is shown"
                )
        return found

    def card(self, title: str) -> Mapping[str, Any]:
        return self.backbones[title][0].card

    def ablation(self, title: str, budget: float) -> dict[str, dict[str, Row]]:
        """Benchmark -> window -> row of the window ablation."""
        found: dict[str, dict[str, Row]] = {}
        for row in self.rows("window-ablation"):
            if (row["backbone"], row["budget"]) == (title, budget):
                found.setdefault(row["benchmark"], {})[row["window"]] = row
        return {benchmark: found[benchmark] for benchmark in sorted(found)}

    def used(self, title: str) -> tuple[str, str]:
        """The layers that SAP read in the window ablation, and the one of the nine windows that they snap to."""
        rows = [row for row in self.rows("window-ablation") if row["backbone"] == title]
        guided = guided_row(row["window"] for row in rows)
        layers = next(row["layers"] for row in rows if row["window"] == guided)
        return layers, snap(Window.parse(layers), self.card(title)["layers"])

    def alignment(self, title: str) -> str | None:
        """The layers from l* on, which align with the retrieval objective; none if the window ends the backbone."""
        start, depth = self.record(title, "layer-curve")["facts"]["l_star"], self.card(title)["layers"]
        return str(Window(start, depth)) if start < depth else None

    def calibrated(self, title: str) -> bool:
        """Was the window that SAP read measured, rather than given or taken from a paper?"""
        return self.record(title, "window-ablation")["window"]["source"] in ("sr-guided", "saved")


def guided_row(windows: Iterable[str]) -> str:
    """The row of a window ablation that is none of the nine: the SR-guided window, or else the one that was given."""
    others = [window for window in windows if window not in NINE]
    return "SR-guided" if "SR-guided" in others else others[0]


def benchmarks_of(rows: Iterable[Row]) -> list[str]:
    return sorted({row["benchmark"] for row in rows})


def listed(words: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *rest, last = words
    return f"{', '.join(rest)} and {last}" if rest else last


def where(backbones: Iterable[str], benchmarks: Iterable[str] = ()) -> str:
    """What a caption says of whose figures these are."""
    of, on = listed(dict.fromkeys(backbones)), [labels.benchmark(name) for name in benchmarks]
    return f"{of} on {listed(on)}" if on else of


def uneven(rows: Sequence[Row]) -> list[str]:
    """Backbones that lack a benchmark which others have: a mean over benchmarks is then not over the same ones."""
    everything = benchmarks_of(rows)
    found = []
    for title in dict.fromkeys(row["backbone"] for row in rows):
        lacking = [b for b in everything if b not in benchmarks_of(r for r in rows if r["backbone"] == title)]
        if lacking:
            found.append(f"{title} has no figures on {listed(map(labels.benchmark, lacking))}")
    return found
