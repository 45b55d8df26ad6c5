"""Index size, load time, latency and throughput by budget, on all pages of a benchmark as one corpus."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from harness import paper
from harness.backbones.base import choose_device
from harness.calibration.data import draw
from harness.drawing import labels
from harness.drawing.figures import legend, line, looks, panels
from harness.evaluation.index_size import FLOAT16
from harness.experiments.engines import TORCH, Engine, available, disk_bytes
from harness.experiments.indexed import BUDGETS, Indexed, index_corpus, one_method
from harness.experiments.outcome import Outcome
from harness.experiments.union import Union, union
from harness.experiments.workbench import Workbench
from harness.metrics.results_table import retention

TOP = 5
WARM_UP = 5
PATIENCE = 10_000  # ms that an engine, other than numpy, may answer queries at one budget
PAPER_INDEX = "3,006 pages x 1,024 vectors x 128 x 2 bytes = 788,004,864 bytes = 751.5 MiB"


def storage_retrieval(workbench: Workbench) -> Outcome:
    """Every engine at every budget: written, loaded, asked. All queries count for quality, whatever was timed."""
    device = choose_device(workbench.settings.device)
    corpus = union(workbench.benchmark.data_sets, workbench.evaluated)
    method = one_method(workbench)
    coded = method.codec != FLOAT16
    indexed = index_corpus(workbench, corpus, method, device)
    timed = [corpus.queries[i].numpy() for i in _timed_queries(workbench, corpus)]
    engines, missing = available(device)
    rows: list[dict[str, Any]] = []
    with workbench.progress("engines", total=len(engines) * len(BUDGETS) * len(timed), done=0) as advance:
        for budget in BUDGETS:
            truth: list[list[int]] = []
            asked = [indexed.asked(query, budget) for query in timed]
            for name, engine in engines.items():
                advance(0, note=f"{name}, γ = {budget:g}")
                found, answers = _measure(workbench.folder / "indexes", engine, indexed.pages[budget], asked, advance)
                truth = truth or answers  # numpy is the first, and answers all
                same = float(np.mean([set(a) == set(b) for a, b in zip(answers, truth, strict=False)]))
                row = {"engine": name, "device": engine.device, "method": method.text, "budget": budget}
                packed = {"packed_mib": indexed.packed_bytes(budget) / 2**20} if coded else {}
                rows.append({**row, **found, **packed, "same_top_5_as_numpy": same, **_quality(indexed, budget)})
    for row in rows:
        row |= _paper(workbench, row)

    def draw_figure(figure: Figure) -> None:
        figures = {"size_mib": "index on disk [MiB, log scale]", "latency_ms": "latency a query [ms, log scale]"}
        places = panels(figure, ["size", "latency"], share_y=False)
        look = looks(engines)
        for axes, (column, label) in zip(places, figures.items(), strict=True):
            for name in engines:
                here = sorted((r["budget"], r[column]) for r in rows if r["engine"] == name)
                line(axes, [p[0] for p in here], [p[1] for p in here], look[name], name)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xticks(BUDGETS, [f"{budget:g}" for budget in BUDGETS])
            axes.minorticks_off()
            axes.set_xlabel(f"keep ratio γ of {labels.method(method.text)} [fraction, log scale]")
            axes.set_ylabel(label)
        legend(figure, places[0])

    columns = {
        "engine": "engine",
        "device": "device",
        "budget": "γ",
        "size_mib": "MiB",
        **({"packed_mib": "MiB packed"} if coded else {}),
        "load_ms": "load ms",
        "latency_ms": "ms a query",
        "queries_per_second": "queries/s",
        "ndcg@5": "NDCG@5",
        "retention": "%",
        "same_top_5_as_numpy": "same top 5",
    }
    facts = {**corpus.about, "method": method.text, "timed_queries": len(timed), "unit_of_sizes": "MiB (2^20 bytes)"}
    if coded:
        facts["codec"] = method.codec_text
    if "bound" in vars(workbench):
        facts["window"] = str(workbench.bound.window)
    if any("paper_v100_size_mib" in row for row in rows):
        facts["paper_sizes"] = f"its MB are MiB: {PAPER_INDEX}; below, round(γ·1,024) vectors a page, here ⌈γ·N⌉"
    return Outcome(rows, columns, draw_figure, facts, [*_notes(corpus, indexed, rows, len(timed)), *missing])


def _timed_queries(workbench: Workbench, corpus: Union) -> list[int]:
    every = range(len(corpus.queries))
    return draw(every, workbench.settings.timed_queries or len(every), workbench.settings.seed)


def _measure(
    folder: Path,
    engine: Engine,
    pages: Sequence[np.ndarray],
    queries: Sequence[np.ndarray],
    advance: Callable[[int], None],
) -> tuple[dict[str, Any], list[list[int]]]:
    """Write, load, ask. A slow engine answers as many queries as `PATIENCE` allows; numpy all of them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        engine.write(folder, pages)
        size = disk_bytes(folder) / 2**20
        load_ms, search = _timed(engine.load, folder)
        for query in queries[:WARM_UP]:
            search(query, TOP)
        found: list[tuple[float, list[int]]] = []
        for query in queries:
            if engine.package and sum(spent for spent, _ in found) > PATIENCE:
                break
            found.append(_timed(search, query, TOP))
            advance(1)
        advance(len(queries) - len(found))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    latency = float(np.mean([spent for spent, _ in found]))
    row = {"size_mib": size, "load_ms": load_ms, "latency_ms": latency, "queries_per_second": 1000 / latency}
    return {**row, "timed_queries": len(found)}, [answer for _, answer in found]


def _timed(call: Any, *arguments: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    answer = call(*arguments)
    return 1000 * (time.perf_counter() - start), answer


def _quality(indexed: Indexed, budget: float) -> dict[str, Any]:
    """The same for all engines: it is a matter of what is indexed."""
    kept, full = indexed.vectors(budget), indexed.vectors(1.0)
    ndcg = indexed.ndcg[budget]
    share = float(retention(ndcg, indexed.ndcg[1.0]))
    return {"vectors": kept, "realised": kept / full, "ndcg@5": ndcg, "retention": share}


def _paper(workbench: Workbench, row: dict[str, Any]) -> dict[str, Any]:
    """Printed for SAP with ColPali on ViDoRe v2's pages and a V100: sizes can be compared, times only on a V100."""
    whole_v2 = {name: len(data_sets) for name, data_sets in workbench.groups.items()} == {"vidore-v2": 4}
    if (workbench.backbone.card.name, row["engine"], row["method"]) != ("colpali", TORCH, "sap") or not whole_v2:
        return {}
    known = next(
        r for r in paper.printed()["storage_retrieval_colpali_v2_union"]["rows"] if r["gamma"] == row["budget"]
    )
    names = {"size_mb": "size_mib", "load_ms": "load_ms", "latency_ms": "latency_ms", "qps": "queries_per_second"}
    return {f"paper_v100_{ours}": known[theirs] for theirs, ours in names.items()} | {
        "paper_retention_of_separate_corpora": known["ndcg5_pct"]
    }


def _notes(corpus: Union, indexed: Indexed, rows: Sequence[dict[str, Any]], timed: int) -> list[str]:
    about = corpus.about
    notes = [
        f"{about['pages']} pages in one corpus ({about['pages_listed']} listed by {len(about['data_sets'])} data sets; "
        f"{about['pages_in_several_data_sets']} are in several, {about['twins_within_a_data_set']} occur again within "
        "one). NDCG@5 and retention: the mean over all "
        f"{about['queries']} queries on it. The paper's retention is that of its separate corpora.",
        f"{timed} queries timed one after another, after {WARM_UP} to warm up; top {TOP}.",
        "Sizes are what files take on disk, without the space an engine reserves ahead: numpy, torch and Qdrant keep "
        "float16, LanceDB float32. Qdrant has no graph and no log of updates here.",
    ]
    for row in rows:
        if row["timed_queries"] < timed:
            notes.append(
                f"{row['engine']}, γ = {row['budget']:g}: {row['timed_queries']} of {timed} queries timed "
                f"({PATIENCE / 1000:.0f} s were up)"
            )
    if indexed.codec != FLOAT16:
        notes.append(
            "Engines are handed decoded vectors, as float16 or float32 numbers, because none here is set up for "
            f"{indexed.codec}: sizes and times are of those. What {indexed.codec} itself takes, with what all pages "
            "share, is packed_mib. γ = 1 is the full model in float16. LanceDB compares by cosine, which leaves out "
            "the lengths that a codec gives to vectors."
        )
    if indexed.quantised:
        notes.append("this method quantises: its vectors are indexed as float16 here, so sizes do not show its bits")
    return notes
