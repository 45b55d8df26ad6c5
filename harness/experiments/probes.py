"""Where attention is read from: the retriever or its base model, visual rows or all rows. On calibration pairs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from harness import paper
from harness.calibration.window import choose_window, mean_retention, pair_retention
from harness.encode import encode
from harness.experiments.figures import bars, layer_bands, legend, line, looks, panels
from harness.experiments.lab import Lab
from harness.experiments.outcome import Outcome
from harness.store.reader import Store
from pruners import STANDARD, Page, Window
from pruners.core.errors import PruneBoardError

PROBE_BUDGETS = (0.10, 0.05)
RESAMPLES = 1_000
OWN, BASE = "fine-tuned", "base"


def base_probe(lab: Lab) -> Outcome:
    """The same vectors, pairs and budgets; only the attention comes from another model."""
    probed, origin = _with_base_attention(lab)
    chosen = lab.pairs()
    stores = {OWN: lab.calibration_store, BASE: encode(probed, lab.calibration, lab.stores, progress=lab.progress)}
    curves: dict[str, np.ndarray] = {}
    for source, store in stores.items():
        with lab.progress(f"curve over layers, {source}", total=len(chosen), done=0) as advance:
            curves[source] = mean_retention(pair_retention(store, chosen, gammas=PROBE_BUDGETS, advance=advance))[0]
    choice = choose_window(curves[OWN][:, 0])
    inside, after = _layers(choice.window), slice(choice.boundary, None)
    rows: list[dict[str, Any]] = []
    for g, gamma in enumerate(PROBE_BUDGETS):
        said = [r for r in paper.of_model("base_probe", lab.backbone.card.name) if r["gamma"] == gamma]
        for source, curve in curves.items():
            row = {"budget": gamma, "attention": source, "in_window": curve[inside, g].mean()}
            row |= {"after": None, "drop": None} if choice.empty_suffix else {"after": curve[after, g].mean()}
            if not choice.empty_suffix:
                row["drop"] = row["in_window"] - row["after"]
            if said:
                within, beyond = said[0]["fine_tuned" if source == OWN else "base"]
                row |= {"paper_in_window": within, "paper_after": beyond, "difference": row["in_window"] - within}
            rows.append(row)
    curves_as_lists = {source: curve.T.tolist() for source, curve in curves.items()}
    facts = {"window": str(choice.window), "l_star": choice.boundary, "base": origin, "curves": curves_as_lists}
    notes = [f"Attention of {BASE} is read from {origin}."]
    if choice.empty_suffix:
        notes.append("There is no alignment region after the window, so no drop across its end can be given.")

    def draw(figure: Figure) -> None:
        places = panels(figure, [f"γ = {gamma:g}" for gamma in PROBE_BUDGETS])
        look = looks(curves)
        for g, axes in enumerate(places):
            layer_bands(axes, (choice.window.start, choice.window.stop or 0), choice.boundary, len(curves[OWN]))
            for source, curve in curves.items():
                line(axes, range(len(curve)), curve[:, g].tolist(), look[source], f"attention of the {source} model")
            axes.set_xlabel("decoder layer [index from 0]")
        places[0].set_ylabel("Score Retention [MaxSim pruned / full]")
        legend(figure, places[0])

    columns = {"budget": "γ", "attention": "attention", "in_window": "in window", "after": "after", "drop": "drop"}
    return Outcome(rows, columns, draw, facts, notes)


def v2v_ablation(lab: Lab) -> Outcome:
    """In-degree over the window from visual rows only, and from all rows."""
    window, chosen, store = lab.bound.window, lab.pairs(), lab.calibration_store
    _require(store, "all_to_visual")
    with lab.progress("window of layers", total=len(chosen), done=0) as advance:
        ratios = pair_retention(store, chosen, _both(window), STANDARD, advance)
    means, left_out = mean_retention(ratios)
    name = paper.MODELS.get(lab.backbone.card.name, "")
    rows: list[dict[str, Any]] = []
    for g, gamma in enumerate(STANDARD):
        gap = ratios[:, 0, g] - ratios[:, 1, g]
        row = {
            "budget": gamma,
            "visual_rows": means[0, g],
            "all_rows": means[1, g],
            "visual_minus_all": means[0, g] - means[1, g],
            "visual_minus_all_interval": _mean_interval(gap[~np.isnan(gap)]),
        }
        for table in paper.printed()["v2v_vs_all_to_visual_sr"]:
            if table["gamma"] == gamma and name in table:
                visual, everything = table[name]
                row |= {"paper_visual_rows": visual, "paper_all_rows": everything}
                row |= {"difference": row["visual_rows"] - visual}
        rows.append(row)

    def draw(figure: Figure) -> None:
        (axes,) = panels(figure, [""])
        series = {"visual rows (V2V)": [r["visual_rows"] for r in rows], "all rows": [r["all_rows"] for r in rows]}
        bars(axes, [f"{gamma:g}" for gamma in STANDARD], series, looks(series))
        axes.set_xlabel("keep ratio γ [fraction of a page's vectors]")
        axes.set_ylabel("Score Retention [MaxSim pruned / full]")
        legend(figure, axes)

    columns = {"budget": "γ", "visual_rows": "visual rows", "all_rows": "all rows", "visual_minus_all": "difference"}
    facts = {"window": str(window), "pairs": len(chosen), "pairs_left_out": left_out}
    return Outcome(rows, columns, draw, facts)


def _both(window: Window) -> Callable[[Page], torch.Tensor]:
    return lambda page: torch.stack([window.mean(page.signals[s].float()) for s in ("indegree", "all_to_visual")])


def _layers(window: Window) -> slice:
    return slice(window.start, window.stop)


def _require(store: Store, signal: str) -> None:
    if signal not in store.signals:
        raise PruneBoardError(f"this backbone gives no {signal!r} signal (it has {', '.join(store.signals) or 'none'})")


def _mean_interval(values: np.ndarray) -> list[float]:
    """95 % interval of a mean over pairs, by the percentile bootstrap."""
    rng = np.random.default_rng(42)
    draws = [values[rng.integers(len(values), size=len(values))].mean() for _ in range(RESAMPLES)]
    return [float(bound) for bound in np.quantile(draws, [0.025, 0.975])]


def _with_base_attention(lab: Lab) -> tuple[Any, str]:
    """The backbone with another model's attention, and what that model is."""
    from harness.backbones.attention_source import with_attention_from

    source = lab.settings.attention_from
    if source is None and lab.backbone.card.name == "nano":
        folder = _untrained(lab.folder / "untrained-nano", lab.settings.seed)
        return with_attention_from(
            lab.backbone, str(folder)
        ), "the same network with random weights, before any training"
    probed = with_attention_from(lab.backbone, source or "base")
    return probed, probed.checkpoint.name


def _untrained(folder: Path, seed: int) -> Path:
    """nano ships no checkpoint from before its contrastive training: its untrained network stands in, and is named."""
    import harness.compat  # noqa: F401

    from transformers import PaliGemmaForConditionalGeneration

    from harness.backbones.nano import EMBEDDED

    if not (folder / "config.json").is_file():
        from transformers import PaliGemmaConfig

        torch.manual_seed(seed)
        PaliGemmaForConditionalGeneration(PaliGemmaConfig.from_pretrained(str(EMBEDDED))).save_pretrained(folder)
    return folder
