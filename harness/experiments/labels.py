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
}


def method(text: str) -> str:
    """A method's name in a figure; one that no paper named keeps its own."""
    return METHODS.get(text, text)


def backbone(name: str) -> str:
    return BACKBONES.get(name, name)


def benchmark(name: str) -> str:
    return BENCHMARKS.get(name, name)
