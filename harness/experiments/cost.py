"""What pruning costs while an index is made: milliseconds a page, and memory of reading attention."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from harness import paper
from harness.backbones.base import EngineBackbone
from harness.backbones.contract import TEXT_TOKENS
from harness.backbones.text_encoder import LONGEST
from harness.bench.capture import LENGTHS, PROMPT, WAYS, measure
from harness.bench.decoder import Decoder
from harness.benchmarks.data_set import DataSet
from harness.calibration.data import draw
from harness.calibration.window import GAMMA
from harness.drawing import labels
from harness.drawing.figures import legend, line, looks, panels
from harness.experiments.outcome import Outcome
from harness.experiments.ready import ready
from harness.experiments.workbench import Workbench
from pruners.core.context import PruneContext
from pruners.core.errors import PruneBoardError
from pruners.core.seed import SEED

TIMED = ("random", "docpruner", "sap", "kmeans", "agglomerative", "token_pooling")
FORWARD = "encode a page"
PRINTED = {FORWARD: "full_forward", "random": "random", "docpruner": "eos_adaptive", "sap": "sap", "kmeans": "kmeans"}
ENCODED = 8  # pages encoded to see what that costs
PAPER_WAYS = {WAYS["sdpa"]: "sdpa", WAYS["eager-layer"]: "streaming", WAYS["eager-all"]: "naive"}
"""Ours -> the paper's, whose streaming is eager attention of a layer at a time."""


def pruning_latency(workbench: Workbench) -> Outcome:
    """The median over pages of pruning one of them at γ = 0.10, beside encoding it."""
    places = [(data_set, i) for data_set in workbench.benchmark.data_sets for i in range(len(data_set.page_ids))]
    places = draw(places, workbench.settings.timed_pages, workbench.settings.seed)
    pages = [workbench.evaluated[data_set.name].page(i) for data_set, i in places]
    methods = ready(workbench, TIMED, (GAMMA,))
    times = {FORWARD: _encoding(workbench, places[:ENCODED])}
    with workbench.progress("time the methods", total=len(methods), done=0) as advance:
        for method in methods:
            if method.failure is None:
                contexts = [PruneContext(page.id, SEED, 0) for page in pages]
                method.pruner.prune(pages[0], (GAMMA,), contexts[0])  # compiles what is not compiled yet
                times[method.text] = [
                    _milliseconds(method.pruner.prune, page, (GAMMA,), c)
                    for page, c in zip(pages, contexts, strict=True)
                ]
            advance(1)
    forward = float(np.median(times[FORWARD]))
    encoder = str(getattr(workbench.backbone, "device", "cpu"))
    said = paper.printed()["pruning_latency_ms_h200"] if workbench.backbone.card.name == "jina-v4" else {}
    rows: list[dict[str, Any]] = []
    for name, values in times.items():
        median = float(np.median(values))
        share = None if name == FORWARD else 100 * median / forward
        row = {"what": name, "device": encoder if name == FORWARD else "cpu", "milliseconds": median}
        row |= {"quartiles": np.quantile(values, [0.25, 0.75]).round(4).tolist()}
        known = said.get(PRINTED.get(name, ""))
        rows.append({**row, "overhead_percent": share, **({"paper_h200": known} if known is not None else {})})

    def draw_figure(figure: Figure) -> None:
        (axes,) = panels(figure, [""])
        names, medians = [labels.method(r["what"]) for r in rows][::-1], [r["milliseconds"] for r in rows][::-1]
        axes.barh(names, medians, color="0.75", edgecolor="black", hatch="//", label="median of the pages timed")
        for place, value in enumerate(medians):
            axes.annotate(f"{value:.3g}", (value, place), xytext=(3, 0), textcoords="offset points", va="center")
        axes.set_xscale("log")
        axes.set_xlim(right=max(medians) * 4)
        axes.set_xlabel("time a page [ms, log scale]")
        axes.grid(axis="y", visible=False)
        legend(figure, axes)

    card = workbench.backbone.card
    notes = [
        f"{len(pages)} pages of {int(np.mean([len(p) for p in pages]))} vectors on average, one at a time, by "
        f"{card.name}. Pruning runs on the CPU, whatever the device: methods take a page from the store.",
        f"Encoding: {len(times[FORWARD])} of these pages on {encoder} in {card.dtype}, with the reading "
        "of attention of all layers, which is what SAP needs of a forward pass.",
        *(f"left out: {method.text}: {method.failure}" for method in methods if method.failure),
    ]
    if said:
        notes.append("The paper's times are those of an H200, where it also pruned: compare shares, not milliseconds.")
    columns = {"what": "what", "device": "device", "milliseconds": "ms", "overhead_percent": "% of encoding"}
    return Outcome(rows, {**columns, "paper_h200": "paper, H200"}, draw_figure, {"encoded_on": encoder}, notes)


def peak_memory(workbench: Workbench) -> Outcome:
    """Peak memory of four ways to read attention in a decoder of the backbone's own shape, each in its own process."""
    decoder = _decoder(workbench)
    on_gpu = decoder.device.startswith("cuda")
    printed = paper.printed()["peak_gpu_memory_gb_colqwen2"] if workbench.backbone.card.name == "colqwen2" else []
    lengths = workbench.settings.tokens or (tuple(r["visual_tokens"] for r in printed) if on_gpu else ()) or LENGTHS
    found = measure(
        [visual + PROMPT for visual in lengths], repeats=1, threads=1, progress=workbench.progress, decoder=decoder
    )
    rows: list[dict[str, Any]] = []
    for row in found:
        row = {"visual_tokens": row["tokens"] - PROMPT, **row}
        said: dict[str, Any] = next((r for r in printed if on_gpu and r["visual_tokens"] == row["visual_tokens"]), {})
        known = said.get(PAPER_WAYS.get(row["way"], ""))
        rows.append({**row, **({} if known is None else {"paper_gb_whole_model": known})})
    shape = decoder.shape()
    notes = [
        f"A decoder of {workbench.backbone.card.name}'s shape ({shape['num_hidden_layers']} layers, hidden "
        f"{shape['hidden_size']}, {shape['num_attention_heads']} heads, {shape['num_key_value_heads']} of keys and "
        f"values) with random weights, {shape['dtype']} on {shape['device']}: memory does not depend on their values. "
        "Vision tower, token embeddings and projection are left out of it.",
        "Memory is what torch allocated on the device."
        if on_gpu
        else "Memory is the peak of the process; seconds are CPU seconds of one thread. On CUDA it would be what torch "
        "allocated there, a path that this project's tests do not run.",
        *(f"{row['visual_tokens']} visual tokens, {row['way']}: {row['note']}" for row in rows if row["note"]),
    ]
    ways = list(dict.fromkeys(row["way"] for row in rows))

    def draw_figure(figure: Figure) -> None:
        (axes,) = panels(figure, [""])
        look = looks(ways)
        for way in ways:
            here = [row for row in rows if row["way"] == way and "extra_mb" in row]
            x, y = [row["visual_tokens"] for row in here], [row["extra_mb"] for row in here]
            line(axes, x, y, look[way], way)
        axes.set_yscale("log")
        axes.set_xlabel(f"visual tokens of a page, {labels.backbone(workbench.backbone.card.name)}'s decoder")
        axes.set_ylabel("peak memory above the\nloaded model [MiB, log scale]")
        legend(figure, axes, 2)

    facts = {"decoder": shape, "paper_gpu_gb_colqwen2": paper.printed()["peak_gpu_memory_gb_colqwen2"]}
    columns = {"visual_tokens": "visual tokens", "way": "way", "peak_mb": "peak MiB", "extra_mb": "extra MiB"}
    return Outcome(rows, {**columns, "extra_mb_ratio": "x"}, draw_figure, facts, notes)


def _decoder(workbench: Workbench) -> Decoder:
    """The shape of the backbone's text decoder, as its own config states it."""
    backbone, card = workbench.backbone, workbench.backbone.card
    if card.kind == TEXT_TOKENS:
        raise PruneBoardError(
            f"{card.name} reads text in windows of at most {LONGEST} tokens, whose attention maps take no memory to "
            "speak of: peak-memory is about the text decoders of visual retrievers, such as colpali or colqwen2"
        )
    if not isinstance(backbone, EngineBackbone):
        raise PruneBoardError(
            f"{card.name} has no text decoder that peak-memory could read the shape of: it is no colpali-engine "
            "retriever. Name one, such as colpali or colqwen2"
        )
    both_ways = backbone.config.model_type == "paligemma"  # its prefix, which is the whole page, sees all of itself
    return Decoder.of(
        backbone.text_config, bidirectional=both_ways, device=str(backbone.device), dtype=backbone.dtype_name
    )


def _encoding(workbench: Workbench, places: Sequence[tuple[DataSet, int]]) -> list[float]:
    """Milliseconds of encoding pages one at a time. Vectors end on the CPU, so a GPU is done when the call is."""
    as_text = workbench.backbone.card.kind == TEXT_TOKENS
    pages = [(data_set.texts or ())[i] if as_text else data_set.image(i) for data_set, i in places]
    workbench.backbone.encode_pages(pages[:1])
    with workbench.progress("time the backbone", total=len(pages), done=0) as advance:
        times = []
        for page in pages:
            times.append(_milliseconds(workbench.backbone.encode_pages, [page]))
            advance(1)
    return times


def _milliseconds(call: Any, *arguments: Any) -> float:
    start = time.perf_counter()
    call(*arguments)
    return 1000 * (time.perf_counter() - start)
