"""Index size, load time, latency and throughput by budget, on the union of all pages of a benchmark."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from harness import paper
from harness.calibration.data import draw
from harness.experiments.engines import Engine, available
from harness.experiments.figures import legend, line, looks, panels
from harness.experiments.lab import Lab
from harness.experiments.outcome import Outcome
from harness.metrics.aggregate import retention
from harness.metrics.ranking import Evaluator
from pruners import STANDARD, prune
from pruners.core.contract import Subset
from pruners.sap import sap

BUDGETS = (*STANDARD, 1.0)
TOP = 5
WARM_UP = 5
PATIENCE = 20_000  # ms of answering queries


@dataclass(frozen=True)
class Union:
    """All pages of a benchmark as one corpus, pruned by SAP at every budget; and some of its queries."""

    pages: dict[float, list[np.ndarray]]
    page_ids: list[str]
    queries: list[np.ndarray]
    query_ids: list[str]
    qrels: dict[str, dict[str, int]]


def storage_retrieval(lab: Lab) -> Outcome:
    """Every engine at every budget: written, loaded, asked; rankings are compared with those of numpy."""
    union = _union(lab)
    engines, missing = available()
    rows: list[dict[str, Any]] = []
    quality: dict[float, float] = {}
    with lab.progress("engines", total=len(engines) * len(BUDGETS), done=0) as advance:
        for budget in sorted(BUDGETS, reverse=True):
            truth: list[list[int]] = []
            for name, engine in engines.items():
                row, answers = _measure(lab.folder / "indexes", engine, union.pages[budget], union.queries)
                truth = truth or answers
                same = float(np.mean([set(a) == set(b) for a, b in zip(answers, truth, strict=False)]))
                rows.append({"engine": name, "budget": budget, **row, "same_top_5_as_numpy": same})
                advance(1, note=f"{name}, γ = {budget:g}")
            quality[budget] = _ndcg(union, truth)
    for row in rows:
        row["retention"] = float(retention(quality[row["budget"]], quality[1.0]))
        row |= _paper(lab.backbone.card.name, row)
    notes = [
        f"{len(union.page_ids)} pages and {len(union.queries)} queries, one after another; top {TOP}. Retention is "
        "over this union of corpora, with the queries that were timed.",
        "Qdrant's local mode is the Python client without its server: its latency is not the server's, and it keeps "
        "its index in memory.",
        *missing,
    ]

    def draw_figure(figure: Figure) -> None:
        figures = {"size_mb": "index on disk [MB, log scale]", "latency_ms": "latency a query [ms, log scale]"}
        places = panels(figure, ["size", "latency"], share_y=False)
        look = looks(engines)
        for axes, (column, label) in zip(places, figures.items(), strict=True):
            for name in engines:
                here = sorted((r["budget"], r[column]) for r in rows if r["engine"] == name and r[column] is not None)
                line(axes, [p[0] for p in here], [p[1] for p in here], look[name], name)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xticks(BUDGETS, [f"{budget:g}" for budget in BUDGETS])
            axes.minorticks_off()
            axes.set_xlabel("keep ratio γ [fraction, log scale]")
            axes.set_ylabel(label)
        legend(figure, places[0])

    columns = {
        "engine": "engine",
        "budget": "γ",
        "size_mb": "MB",
        "load_ms": "load ms",
        "latency_ms": "ms a query",
        "queries_per_second": "queries/s",
        "retention": "%",
        "same_top_5_as_numpy": "same top 5",
    }
    return Outcome(rows, columns, draw_figure, {"window": str(lab.bound.window)}, notes)


def _union(lab: Lab) -> Union:
    """Page ids are prefixed by their data set; data sets that share a corpus bring their pages twice."""
    scorer = sap(layers=lab.bound.window)
    pages: dict[float, list[np.ndarray]] = {budget: [] for budget in BUDGETS}
    page_ids: list[str] = []
    asked: list[tuple[str, np.ndarray]] = []
    qrels: dict[str, dict[str, int]] = {}
    with lab.progress("prune", total=sum(map(len, lab.evaluated.values())), done=0) as advance:
        for task in lab.suite.tasks:
            store = lab.evaluated[task.name]
            for page in store.pages():
                result = prune(scorer, page, BUDGETS)
                assert isinstance(result, Subset)
                for b, budget in enumerate(BUDGETS):
                    pages[budget].append(page.vectors.numpy()[np.sort(result.kept(b))])
                page_ids.append(f"{task.name}/{page.id}")
                advance(1)
            for i, query in enumerate(store.query_ids):
                gold = {f"{task.name}/{page}": grade for page, grade in task.qrels.get(query, {}).items()}
                if any(grade > 0 for grade in gold.values()):
                    asked.append((f"{task.name}/{query}", store.query(i).numpy()))
                    qrels[f"{task.name}/{query}"] = gold
    chosen = draw(asked, lab.settings.timed_queries, lab.settings.seed)
    return Union(pages, page_ids, [vectors for _, vectors in chosen], [name for name, _ in chosen], qrels)


def _measure(
    folder: Path, engine: Engine, pages: Sequence[np.ndarray], queries: Sequence[np.ndarray]
) -> tuple[dict[str, Any], list[list[int]]]:
    """Write, load, ask. A slow engine answers as many queries as `PATIENCE` allows; numpy, which ranks, all of them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        engine.write(folder, pages)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
        load_ms, search = _timed(engine.load, folder)
        for query in queries[:WARM_UP]:
            search(query, TOP)
        found: list[tuple[float, list[int]]] = []
        for query in queries:
            if engine.package and sum(spent for spent, _ in found) > PATIENCE:
                break
            found.append(_timed(search, query, TOP))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    latency = float(np.mean([spent for spent, _ in found]))
    row = {"size_mb": size if engine.own_files else None, "load_ms": load_ms, "latency_ms": latency}
    return {**row, "queries_per_second": 1000 / latency, "queries": len(found)}, [answer for _, answer in found]


def _timed(call: Any, *arguments: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    answer = call(*arguments)
    return 1000 * (time.perf_counter() - start), answer


def _ndcg(union: Union, answers: Sequence[Sequence[int]]) -> float:
    """NDCG@5 of rankings over the union: pages that were not returned score below all that were."""
    scores = np.zeros((len(answers), len(union.page_ids)), np.float32)
    for row, answer in enumerate(answers):
        scores[row, answer] = np.arange(len(answer), 0, -1)
    evaluator = Evaluator({q: union.qrels[q] for q in union.query_ids}, union.query_ids, union.page_ids)
    return float(evaluator(scores)["ndcg@5"].mean())


def _paper(backbone: str, row: dict[str, Any]) -> dict[str, Any]:
    """The paper's figures are ColPali's on ViDoRe v2's pages and a V100: sizes can be compared, times cannot."""
    if backbone != "colpali" or row["engine"] != "torch, exact":
        return {}
    rows = paper.printed()["storage_retrieval_colpali_v2_union"]["rows"]
    return {f"paper_v100_{n}": v for r in rows if r["gamma"] == row["budget"] for n, v in r.items() if n != "gamma"}
