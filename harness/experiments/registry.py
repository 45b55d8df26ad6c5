"""Which experiments there are, and the table or figure of the SAP paper each stands for. Nothing heavy is imported."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pruners.core.errors import PruneBoardError

if TYPE_CHECKING:
    from harness.experiments.outcome import Outcome
    from harness.experiments.workbench import Workbench


@dataclass(frozen=True)
class Experiment:
    """`target` is `module:function` below `harness.experiments`; the function makes an `Outcome` from a `Workbench`."""

    name: str
    stands_for: str
    about: str
    target: str
    reproduces: str
    """Which rows of the paper's table or figure come out, and what is added to them."""
    cannot: str
    """Which do not, or have no printed figure to be compared with."""
    measured_on: Literal["benchmark", "calibration", "backbone"] = "benchmark"
    """What the figures depend on, which a figure's title names: evaluated pages, calibration pairs, no pages at all."""
    takes_pruner: bool = False
    """Whether `--pruner` names its method, with a codec or without: others show the paper's methods."""

    def load(self) -> Callable[[Workbench], Outcome]:
        module, function = self.target.split(":")
        return getattr(importlib.import_module(f"harness.experiments.{module}"), function)


_ALL = (
    Experiment(
        "main-table",
        "Table `global_results` (App. F) and Tables `v1_*`, `v2_*` (App. G)",
        "retention of the paper's methods at three budgets, by data set and averaged",
        "retrieval:main_table",
        'every cell, by data set and averaged, with intervals; "Cluster" twice: K-Means as the text says, average '
        "linkage as the paper's scripts run; SAP-Adaptive is added",
        "nothing is left out",
    ),
    Experiment(
        "budget-curve",
        "Figure 4",
        "retention against the budget, all methods",
        "retrieval:budget_curve",
        "the curves of SAP, Random, Cluster (K-Means) and Adaptive-EOS against the realised ratio, at twelve budgets, "
        "three of them below 0.05; EOS at a fixed ratio is added",
        "the paper prints its figures at 0.05, 0.10 and 0.20 only; other budgets stand alone",
    ),
    Experiment(
        "layer-curve",
        "Figure 5 and Table `layer_instantiation` (App. E)",
        "Score Retention of every layer alone, with the window and the alignment region",
        "windows:layer_curve",
        "R(l), its median, window and alignment region; the backbone's row of the table: l*, layers, snap, Gap (mean) "
        "and Gap (worst)",
        "the curve's own values, which the paper draws and does not print",
        "calibration",
    ),
    Experiment(
        "window-ablation",
        "Table 1, Tables `window_ablation_g020`, `window_ablation_g005` (App. K) and the gaps of "
        "`layer_instantiation` (App. E)",
        "nine sliding windows and the one that SAP uses here at three budgets",
        "windows:window_ablation",
        "all nine windows at three budgets on each benchmark and their mean, in one pass over the pages; both gaps; "
        "the window itself is added, which the paper only has as the nearest of the nine",
        "the paper prints the mean over v1 and v2, and the gaps, at γ = 0.10 only",
    ),
    Experiment(
        "width-robustness",
        "Figure 7 (App. I)",
        "the window's width from one layer to all, evaluated exactly",
        "windows:width_robustness",
        "every width from one layer to all, each evaluated",
        "the paper's own values, which are not printed and are those of the nearest of nine windows",
    ),
    Experiment(
        "calibration-robustness",
        "Table `calib_robustness` (App. J) and the paragraph on two distributions (App. K)",
        "the window chosen from N pairs, seeds and distributions",
        "calibrations:calibration_robustness",
        "for every N the window that most seeds choose and how many agree, exactly and snapped to the nine; each seed "
        "draws its N pairs from the whole training corpus; a second distribution beside it",
        "an N that the corpus is not larger than: every seed would draw the same pairs; the paper's own seeds, which "
        "it does not print",
        "calibration",
    ),
    Experiment(
        "base-probe",
        "Figure 6 and Table `base_probe` (App. L)",
        "the same vectors pruned by the retriever's attention and by its base model's",
        "probes:base_probe",
        "in-window, after and drop of both attention sources at two budgets, and the factor between the drops; "
        "`nano` is compared with its own weights before contrastive training",
        "Jina v4, which has no base model of its own; a factor where the base does not drop",
        "calibration",
    ),
    Experiment(
        "v2v-ablation",
        "Table `v2v_ablation` (App. N)",
        "in-degree from visual rows against in-degree from all rows",
        "probes:v2v_ablation",
        "both columns at three budgets, with the interval of their difference",
        "the paper prints nothing for Jina v4",
        "calibration",
    ),
    Experiment(
        "sap-adaptive",
        "Table `sap_adaptive` (App. M)",
        "one threshold for all pages against the same ratio on every page",
        "retrieval:sap_adaptive",
        "both methods at three budgets, with the ratios that they realise",
        "the paper prints ViDoRe v2 only",
    ),
    Experiment(
        "docpruner-native",
        "Table `docpruner_native` and the paragraph before it (App. B)",
        "DocPruner at its native threshold, SAP at the ratio it realises, and DocPruner matched to that ratio",
        "native:docpruner_native",
        "λ = 0 beside SAP at the same ratio on each data set; native beside matched; six λ, plain and IQR-clipped "
        "statistics",
        "the paper prints λ = 0 for each backbone, and λ = 0.5 beside matched γ = 0.05 for ColPali; nothing "
        "IQR-clipped",
    ),
    Experiment(
        "ndcg-cutoffs",
        "Tables `ndcg_cutoffs_v1`, `ndcg_cutoffs_v2` (App. H)",
        "SAP's retention of NDCG@1, 5, 10, 50 and 100",
        "retrieval:ndcg_cutoffs",
        "every cell",
        "nothing is left out",
    ),
    Experiment(
        "sr-ndcg",
        "Figure 8 (App. Q) and Section 4.6",
        "Score Retention against NDCG@5 retention, and how closely they go together",
        "correlation:sr_ndcg",
        "the points of one backbone, their Pearson's r and Spearman's ρ, with intervals from resampled data sets; both "
        "also over the points of the paper's four methods alone",
        "the paper's r ≈ 0.60 is over the points of all its backbones: no difference to it is given for one",
    ),
    Experiment(
        "pruning-latency",
        "Table `latency_benchmark` (App. O)",
        "milliseconds of pruning a page beside those of encoding it",
        "cost:pruning_latency",
        "each method's time and its share of the time to encode a page, on the chosen backbone and device",
        "the times of an H200: encoding is timed on your device, pruning always on the CPU: compare shares",
    ),
    Experiment(
        "peak-memory",
        "Table `memory_benchmark` (App. O)",
        "peak memory of reading attention while a page is encoded",
        "cost:peak_memory",
        "plain, streaming and naive reading by the number of tokens, at the depth of the chosen backbone, on the "
        "chosen device",
        "GPU memory without a GPU; vision tower and embeddings, so that growth can be compared and totals cannot",
        "backbone",
    ),
    Experiment(
        "trained-comparison",
        "Table `trained_comparison` (App. P)",
        "exact 1/4, 1/9, 1/25 of the vectors, beside what trained Light-ColPali reports",
        "trained:trained_comparison",
        "SAP at exactly 1/4, 1/9, 1/25, and at the nearest budgets that the paper took (0.25, 0.10, 0.05), with its "
        "cells beside those; training-free Ward pooling is added",
        "Light-ColPali is not run: its figures are quoted and marked as reported",
    ),
    Experiment(
        "kept-patches",
        "Figure 1",
        "one page with the patches that each method keeps",
        "mechanism:kept_patches",
        "the paper's methods at three budgets on the first page of the benchmark that answers a query: kept patches "
        "clear, merged ones in colours; with the share of the query's hits that is kept",
        "the paper's own page; `harness show` draws any page and method",
    ),
    Experiment(
        "mechanism",
        "Figures 2 and 3",
        "where attention goes layer by layer, and what each layer alone would keep",
        "mechanism:mechanism",
        "heat maps of in-degree and EOS attention by layer with the window framed, on one page; over calibration "
        "pairs, the share of query hits and of blank patches among the 10 % that each layer ranks first",
        "the paper's own page, and its values, which it draws and does not print",
    ),
    # last: its engines run threads, after which this process should not be forked
    Experiment(
        "storage-retrieval",
        "Table `storage_latency` (App. O)",
        "index size, load time, latency and throughput by budget and engine",
        "storage:storage_retrieval",
        "size in MiB, load, latency, queries/s and NDCG@5 on one corpus: all data sets' pages by hash, the union of "
        "their qrels, all queries; numpy, torch, LanceDB and Qdrant's own engine (`pip install 'pruneboard[engines]'`)."
        " `--pruner` takes any method, with a codec or without",
        "the times of a V100: those here are of your machine; the paper keeps round(γN) vectors a page, here ⌈γN⌉; its "
        "NDCG@5 is that of separate corpora",
        takes_pruner=True,
    ),
)

EXPERIMENTS = {experiment.name: experiment for experiment in _ALL}


def find(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        near = difflib.get_close_matches(name, EXPERIMENTS, n=2, cutoff=0.4)
        hint = f"did you mean {' or '.join(near)}?" if near else "`harness experiment --list` shows them"
        raise PruneBoardError(f"there is no experiment {name!r}; {hint}")
    return EXPERIMENTS[name]
