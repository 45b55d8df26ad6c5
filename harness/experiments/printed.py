"""What the SAP paper printed for a cell, if it printed it: for its three retrievers on ViDoRe v1 and v2, nothing else.

A difference is ours minus the paper's, in the paper's unit. Its figures are rounded, and its protocol differs in places
that `docs/measurement.md` names, so small differences mean nothing.
"""

from __future__ import annotations

from typing import Any

from harness import paper

BENCHMARKS = {"vidore-v1": "vidore_v1", "vidore-v2": "vidore_v2"}
METHODS = {
    "sap": "sap",
    "random": "random",
    "docpruner": "eos_adaptive",
    "kmeans(renormalize=false)": "kmeans",
    "agglomerative": "kmeans",
}
"""Ours -> the paper's. Its "Cluster" is K-Means by its text and average linkage by its scripts."""

DATA_SETS = {
    "VidoreArxivQARetrieval": "ArxivQA",
    "VidoreDocVQARetrieval": "DocVQA",
    "VidoreInfoVQARetrieval": "InfoVQA",
    "VidoreTabfquadRetrieval": "TabFQuAD",
    "VidoreTatdqaRetrieval": "TAT-DQA",
    "VidoreShiftProjectRetrieval": "Shift Project",
    "VidoreSyntheticDocQAAIRetrieval": "SynDocQA-AI",
    "VidoreSyntheticDocQAEnergyRetrieval": "SynDocQA-Energy",
    "VidoreSyntheticDocQAGovernmentReportsRetrieval": "SynDocQA-Gov",
    "VidoreSyntheticDocQAHealthcareIndustryRetrieval": "SynDocQA-Health",
    "Vidore2ESGReportsRetrieval": "ESG (Multi)",
    "Vidore2EconomicsReportsRetrieval": "Econ. Reports",
    "Vidore2BioMedicalLecturesRetrieval": "Biomed Lec.",
    "Vidore2ESGReportsHLRetrieval": "ESG (Human)",
}
"""MTEB's tasks -> the paper's names."""

SIZES = {"vidore-v1": 10, "vidore-v2": 4}  # data sets: an average over fewer is no average of the benchmark


def beside(ours: float | None, printed: float | None) -> dict[str, float]:
    """The columns `paper` and `difference`, or none where the paper printed nothing."""
    if printed is None or ours is None:
        return {}
    return {"paper": printed, "difference": ours - printed}


def cell(backbone: str, data_set: str, method: str, gamma: float) -> dict[str, Any] | None:
    """A cell of the per-data-set tables."""
    wanted = (DATA_SETS.get(data_set), METHODS.get(method), gamma)
    rows = paper.of_model("per_dataset", backbone)
    return next((r for r in rows if (r["dataset"], r["method"], r["gamma"]) == wanted), None)


def average(backbone: str, row: dict[str, Any]) -> dict[str, Any] | None:
    """The printed average of a row of ours over a whole benchmark."""
    if row["data_sets"] != SIZES.get(row["benchmark"]):
        return None
    wanted = (BENCHMARKS[row["benchmark"]], METHODS.get(row["method"]), row["budget"])
    rows = paper.of_model("averages", backbone)
    return next((r for r in rows if (r["benchmark"], r["method"], r["gamma"]) == wanted), None)


def in_benchmark(table: str, backbone: str, row: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of a table that are about this backbone and a whole benchmark."""
    if row["data_sets"] != SIZES.get(row["benchmark"]):
        return []
    return [r for r in paper.of_model(table, backbone) if r["benchmark"] == BENCHMARKS[row["benchmark"]]]
