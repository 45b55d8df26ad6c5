"""What experiments work with: one backbone, one benchmark, a calibration set, and evaluations that are run once.

Experiments share runs: the same methods at the same budgets are evaluated once and read by all that need them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from harness.backbones import registry
from harness.backbones.contract import Backbone, Options
from harness.backbones.made_with import made_with
from harness.benchmarks.benchmark import Benchmark, load_benchmark
from harness.benchmarks.data_set import DataSet
from harness.calibration.calibrate import BoundWindow, as_reported, given_or_saved, measured
from harness.calibration.data import calibration_data_set, check_disjoint, draw, gold_pairs
from harness.encode_on import encode_on
from harness.engine.engine import PROCESSES, WorkEngine
from harness.evaluation.config import Config
from harness.evaluation.evaluate import RunPaths, evaluate, run_name
from harness.evaluation.head import head_of_encoding
from harness.evaluation.made_by import codes_of, measuring
from harness.evaluation.own_threshold import methods_of
from harness.evaluation.summary import summarise
from harness.experiments.cells import Cells, read_cells
from harness.progress import Progress
from harness.store.format import store_key
from harness.store.reader import Store
from pruners.core import plugins, source
from pruners.core.catalog import resolve_stored
from pruners.core.errors import PruneBoardError
from pruners.core.seed import SEED

PAPER_METHODS = ("sap", "random", "kmeans(renormalize=false)", "agglomerative", "docpruner", "sap_adaptive")
"""The paper's methods. Its "Cluster" is K-Means in its text and average linkage in its scripts: both are here."""


@dataclass(frozen=True)
class ExperimentSettings:
    """What determines an experiment's figures."""

    backbone: str = "nano"
    benchmark: str = "minidocs"
    calibration: str | None = None
    second_calibration: str | None = None
    """Another distribution to calibrate on; None: pairs of the evaluated data sets, as in the paper's first one."""
    attention_from: str | None = None
    """Base model of the base probe; None: the one the retriever was made of."""
    window: str | None = None
    trials: int | None = None
    pairs: int = 500
    sizes: tuple[int, ...] = (50, 100, 200, 500, 1000)
    seeds: int = 5
    lambdas: tuple[float, ...] = (-0.5, -0.25, 0.0, 0.5, 1.0, 1.5)
    tokens: tuple[int, ...] | None = None
    """Visual tokens of peak-memory; None: the paper's for its backbone on a GPU, else three lengths."""
    timed_pages: int = 64
    timed_queries: int | None = None
    """Queries that storage-retrieval times; None: all. Every query counts for its quality."""
    pruner: str = "sap"
    """The method that storage-retrieval indexes, with a codec if its text names one."""
    seed: int = SEED
    device: str | None = None
    dtype: str | None = None
    max_visual_tokens: int | None = None


@dataclass(frozen=True)
class Workbench:
    """Settings, places, and what was already loaded or measured."""

    settings: ExperimentSettings
    stores: Path
    root: Path
    """Where folders of experiments go."""
    workers: int
    progress: Progress
    say: Callable[[str], None] = lambda text: None
    engine: WorkEngine = PROCESSES

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What the figures are of: settings, retriever and what it runs on, the content of what is read, the window."""
        calibration = self.settings.calibration or self.benchmark.calibration
        second = self.settings.second_calibration
        return {
            "settings": dataclasses.asdict(self.settings),
            "backbone": self.backbone.card.as_dict(),
            "benchmark": {data_set.name: dict(data_set.content) for data_set in self.benchmark.data_sets},
            "calibration": dict(self.calibration.content) if calibration else None,
            "second_calibration": dict(calibration_data_set(second).content) if second else None,
            "window": dict(self.chosen.origin) if self.chosen else "measured on the calibration set",
            "made_with": made_with(self.backbone),
            "pruner": self._pruner_codes(),
            "attention_from": self._base() if self.settings.attention_from else None,
        }

    def _pruner_codes(self) -> list[str]:
        """The code of `--pruner`, and of the codec that its text names."""
        found = resolve_stored([self.settings.pruner])
        codecs = [plugins.code_of_class(type(codec)) for _, codec in found if codec is not None]
        return [*(code for pruner, _ in found for code in codes_of(pruner)), *codecs]

    def _base(self) -> str:
        from harness.backbones.attention_source import with_attention_from

        return with_attention_from(self.backbone, str(self.settings.attention_from)).card.signals_from

    @cached_property
    def folder(self) -> Path:
        """Another identity, another folder: what is found there was made with just this."""
        key = store_key(self.identity)[:10]
        words = [self.backbone.card.name, Path(self.settings.benchmark).name, key]
        return self.root / "--".join("".join(c if c.isalnum() or c in "._-" else "_" for c in word) for word in words)

    @cached_property
    def chosen(self) -> BoundWindow | None:
        """The window if it is known before anything is measured: given, or saved for this retriever."""
        return given_or_saved(self.settings.window, self.backbone, self.stores, {})

    @cached_property
    def options(self) -> Options:
        s = self.settings
        return Options(device=s.device, dtype=s.dtype, max_visual_tokens=s.max_visual_tokens)

    @cached_property
    def backbone(self) -> Backbone:
        return registry.load(self.settings.backbone, self.options)

    @cached_property
    def benchmark(self) -> Benchmark:
        return load_benchmark(self.settings.benchmark)

    @cached_property
    def evaluated(self) -> dict[str, Store]:
        """The stores of the benchmark's data sets."""
        data_sets = self.benchmark.data_sets
        return {each.name: made for each, made in zip(data_sets, self._encoded(data_sets, self.backbone), strict=True)}

    def store(self, data_set: DataSet, backbone: Backbone | None = None) -> Store:
        """Of the workbench's backbone, or of another."""
        (made,) = self._encoded([data_set], backbone or self.backbone)
        return made

    def _encoded(self, data_sets: Sequence[DataSet], backbone: Backbone) -> list[Store]:
        """What is long to encode begins with its plan."""
        if line := head_of_encoding(data_sets, backbone, self.stores, self.engine):
            self.say(line)
        more: dict[str, Any] = {"progress": self.progress, "say": self.say}
        return [encode_on(self.engine, backbone, each, self.stores, **more) for each in data_sets]

    @cached_property
    def calibration(self) -> DataSet:
        name = self.settings.calibration or self.benchmark.calibration
        if name is None:
            raise PruneBoardError(
                f"{self.benchmark.name} brings no calibration set: name one with --calibration (name, or folder)"
            )
        return calibration_data_set(name)

    @cached_property
    def calibration_store(self) -> Store:
        store = self.store(self.calibration)
        check_disjoint(self.calibration.name, store.image_hashes, self.evaluated)
        return store

    def pairs(self, count: int | None = None, seed: int | None = None) -> list[tuple[int, int]]:
        """Calibration pairs, drawn as `harness calibrate` draws them."""
        s = self.settings
        everything = gold_pairs(self.calibration, self.calibration_store)
        return draw(everything, count or s.pairs, s.seed if seed is None else seed)

    @cached_property
    def bound(self) -> BoundWindow:
        """The window that `sap` uses here: the same rule as in `harness evaluate`."""
        s, card = self.settings, self.backbone.card
        found = given_or_saved(s.window, self.backbone, self.stores, self.evaluated)
        if found is None and (s.calibration or self.benchmark.calibration):
            data_set, store = self.calibration, self.calibration_store
            found = measured(data_set, store, self.backbone, pairs=s.pairs, seed=s.seed, progress=self.progress)
        if found is None:
            found = as_reported(card)
        if found is None:
            raise PruneBoardError(f"no window is known for {card.name}: name a calibration set with --calibration")
        return found

    def evaluate(self, pruners: Sequence[str], budgets: Sequence[float], partners: Sequence[str] = ()) -> Cells:
        """Methods at budgets on all data sets, from a run in the folder of experiments."""
        s = self.settings
        config = Config(
            backbone=s.backbone,
            benchmark=s.benchmark,
            calibration=s.calibration,
            pruners=tuple(pruners),
            partners=tuple(partners),
            budgets=tuple(sorted(budgets)),
            trials=s.trials,
            seed=s.seed,
            window=str(self.bound.window),
            window_pairs=s.pairs,
            device=s.device,
            dtype=s.dtype,
            max_visual_tokens=s.max_visual_tokens,
        )
        places = RunPaths(self.stores, self.folder / "runs" / run_name(config), self.workers, self.engine)
        found = evaluate(config, places, self.progress, self.say)
        for method, reason in found.failures.items():
            self.say(f"left out: {method}: {reason}")
        methods = methods_of(config)
        summaries = {
            group: summarise(found.run, data_sets, methods, config.budgets) for group, data_sets in self.groups.items()
        }
        return read_cells(found.run, self.groups, methods, config.budgets, summaries, found.failures)

    @cached_property
    def groups(self) -> dict[str, list[str]]:
        """The data sets by benchmark: figures are averaged within v1 and v2, never across."""
        groups: dict[str, list[str]] = {}
        for data_set in self.benchmark.data_sets:
            groups.setdefault(group_of(data_set.name, self.benchmark.name), []).append(data_set.name)
        return groups


@cache  # of the code that runs: what stands in the files later is not it
def measured_with() -> dict[str, str]:
    """The code and libraries behind an experiment's figures: if others made it, it is made again."""
    root = Path(__file__).parents[2]
    folders = ("harness/experiments", "harness/calibration", "pruners")
    files = [file for folder in folders for file in (root / folder).glob("*.py")]
    return {**measuring(), "experiments": source.fingerprint(files, root)}


def group_of(data_set: str, benchmark: str) -> str:
    """The benchmark a data set belongs to, by its name."""
    for mark, group in (("Vidore2", "vidore-v2"), ("Vidore3", "vidore-v3"), ("Vidore", "vidore-v1")):
        if data_set.startswith(mark):
            return group
    return data_set.split("/")[0] if data_set.startswith("minidocs") else benchmark
