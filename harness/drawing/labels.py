"""The words that tables and figures use for methods, backbones and benchmarks: a paper's, not this project's ids."""

from __future__ import annotations

METHODS = {
    "sap": "SAP",
    "sap_adaptive": "SAP-Adaptive",
    "random": "Random",
    "docpruner": "EOS-Adaptive",
    "eos": "EOS",
    "kmeans(renormalize=false)": "K-Means",
    "kmeans": "K-Means, unit norm",
    "agglomerative": "Average linkage",
    "token_pooling": "Ward pooling",
}
BACKBONES = {
    "colpali": "ColPali",
    "colqwen2": "ColQwen2",
    "colqwen2.5": "ColQwen2.5",
    "jina-v4": "Jina v4",
    "colsmol": "ColSmol",
    "minilm": "MiniLM",
}
BENCHMARKS = {
    "vidore-v1": "ViDoRe v1",
    "vidore-v2": "ViDoRe v2",
    "vidore-v3": "ViDoRe v3",
    "minidocs-v1": "minidocs v1",
    "minidocs-v2": "minidocs v2",
    "minidocs-calibration": "minidocs calibration",
    "minidocs-calibration/calibration": "minidocs calibration",
    "colpali-train": "ColPali's training set",
    "vidore-v1-mix": "ViDoRe v1, five data sets",
}


def method(text: str) -> str:
    """A method's name in a figure; one that no paper named keeps its own."""
    return METHODS.get(text, text)


def backbone(name: str) -> str:
    return BACKBONES.get(name, name)


def benchmark(name: str) -> str:
    return BENCHMARKS.get(name, name)


def title(backbone_name: str, data: str | None) -> str:
    """What stands over a figure: whose figures these are, and on which pages, if they depend on pages."""
    return backbone(backbone_name) + (f" on {benchmark(data)}" if data else "")
