"""Which experiments there are, and the table or figure of the SAP paper each stands for. Nothing heavy is imported."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pruners.core.errors import PruneBoardError

if TYPE_CHECKING:
    from harness.experiments.lab import Lab
    from harness.experiments.outcome import Outcome


@dataclass(frozen=True)
class Experiment:
    """`target` is `module:function` below `harness.experiments`; the function makes an `Outcome` from a `Lab`."""

    name: str
    stands_for: str
    about: str
    target: str

    def load(self) -> Callable[[Lab], Outcome]:
        module, function = self.target.split(":")
        return getattr(importlib.import_module(f"harness.experiments.{module}"), function)


_ALL = (
    Experiment(
        "main-table",
        "Table `global_results` (App. F) and Tables `v1_*`, `v2_*` (App. G)",
        "retention of the paper's methods at three budgets, by data set and averaged",
        "retrieval:main_table",
    ),
    Experiment("budget-curve", "Figure 4", "retention against the budget, all methods", "retrieval:budget_curve"),
    Experiment(
        "layer-curve",
        "Figure 5 and Table `layer_instantiation` (App. E)",
        "Score Retention of every layer alone, with the window and the alignment region",
        "windows:layer_curve",
    ),
    Experiment(
        "window-ablation",
        "Table 1 and Tables `window_ablation_g020`, `window_ablation_g005` (App. K)",
        "nine sliding windows and the SR-guided one at three budgets",
        "windows:window_ablation",
    ),
    Experiment(
        "width-robustness",
        "Figure 7 (App. I)",
        "the window's width from one layer to all, evaluated exactly",
        "windows:width_robustness",
    ),
    Experiment(
        "calibration-robustness",
        "Table `calib_robustness` (App. J) and the paragraph on two distributions (App. K)",
        "the window chosen from N pairs, seeds and distributions",
        "calibrations:calibration_robustness",
    ),
    Experiment(
        "base-probe",
        "Figure 6 and Table `base_probe` (App. L)",
        "the same vectors pruned by the retriever's attention and by its base model's",
        "probes:base_probe",
    ),
    Experiment(
        "v2v-ablation",
        "Table `v2v_ablation` (App. N)",
        "in-degree from visual rows against in-degree from all rows",
        "probes:v2v_ablation",
    ),
    Experiment(
        "sap-adaptive",
        "Table `sap_adaptive` (App. M)",
        "one threshold for all pages against the same ratio on every page",
        "retrieval:sap_adaptive",
    ),
    Experiment(
        "docpruner-native",
        "Table `docpruner_native` (App. B)",
        "DocPruner at its native threshold, and SAP at the ratio it realises",
        "native:docpruner_native",
    ),
    Experiment(
        "ndcg-cutoffs",
        "Tables `ndcg_cutoffs_v1`, `ndcg_cutoffs_v2` (App. H)",
        "SAP's retention of NDCG@1, 5, 10, 50 and 100",
        "retrieval:ndcg_cutoffs",
    ),
    Experiment(
        "sr-ndcg",
        "Figure 8 (App. Q) and Section 4.6",
        "Score Retention against NDCG@5 retention, and how closely they go together",
        "correlation:sr_ndcg",
    ),
    Experiment(
        "pruning-latency",
        "Table `latency_benchmark` (App. O)",
        "milliseconds of pruning a page beside those of encoding it",
        "cost:pruning_latency",
    ),
    Experiment(
        "peak-memory",
        "Table `memory_benchmark` (App. O)",
        "peak memory of reading attention while a page is encoded",
        "cost:peak_memory",
    ),
    Experiment(
        "storage-retrieval",
        "Table `storage_latency` (App. O)",
        "index size, load time, latency and throughput by budget and engine",
        "storage:storage_retrieval",
    ),
    Experiment(
        "trained-comparison",
        "Table `trained_comparison` (App. P)",
        "exact 1/4, 1/9, 1/25 of the vectors, beside what trained Light-ColPali reports",
        "retrieval:trained_comparison",
    ),
)

EXPERIMENTS = {experiment.name: experiment for experiment in _ALL}


def find(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        near = difflib.get_close_matches(name, EXPERIMENTS, n=2, cutoff=0.4)
        hint = f"did you mean {' or '.join(near)}?" if near else "`harness experiment --list` shows them"
        raise PruneBoardError(f"there is no experiment {name!r}; {hint}")
    return EXPERIMENTS[name]
