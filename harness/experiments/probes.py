"""Where attention is read from: the retriever or its base model, visual rows or all rows. On calibration pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from harness import paper
from harness.calibration.window import choose_window, mean_retention, pair_retention
from harness.drawing.figures import bars, layer_bands, legend, looks, panels
from harness.experiments.outcome import Outcome
from harness.experiments.workbench import Workbench
from harness.store.reader import Store
from pruners import STANDARD, Page, Window
from pruners.core.errors import PruneBoardError

PROBE_BUDGETS = (0.10, 0.05)
RESAMPLES = 1_000
OWN, BASE = "fine-tuned", "base"


def base_probe(workbench: Workbench) -> Outcome:
    """The same vectors, pairs and budgets; only the attention comes from another model."""
    probed, origin = _with_base_attention(workbench)
    chosen = workbench.pairs()
    stores = {
        OWN: workbench.calibration_store,
        BASE: workbench.store(workbench.calibration, probed),
    }
    curves: dict[str, np.ndarray] = {}
    for source, store in stores.items():
        with workbench.progress(f"curve over layers, {source}", total=len(chosen), done=0) as advance:
            curves[source] = mean_retention(pair_retention(store, chosen, gammas=PROBE_BUDGETS, advance=advance))[0]
    choice = choose_window(curves[OWN][:, 0])
    inside, after = slice(choice.window.start, choice.window.stop), slice(choice.boundary, None)
    rows: list[dict[str, Any]] = []
    for g, gamma in enumerate(PROBE_BUDGETS):
        here: list[dict[str, Any]] = []
        for source, curve in curves.items():
            within = float(curve[inside, g].mean())
            beyond = None if choice.empty_suffix else float(curve[after, g].mean())
            drop = None if beyond is None else within - beyond
            here.append({"budget": gamma, "attention": source, "in_window": within, "after": beyond, "drop": drop})
        factor = drop_factor(*(row["drop"] for row in here))
        rows += [{**row, "drop_factor": factor, **printed_probe(workbench.backbone.card.name, row)} for row in here]
    curves_as_lists = {source: curve.T.tolist() for source, curve in curves.items()}
    facts = {"window": str(choice.window), "l_star": choice.boundary, "base": origin, "curves": curves_as_lists}
    notes = [f"Attention of {BASE} is read from {origin}."]
    if choice.empty_suffix:
        notes.append("There is no alignment region after the window, so no drop across its end can be given.")
    elif any(row["drop_factor"] is None for row in rows):
        notes.append("Where the base model does not drop there is no factor between the drops.")

    def draw(figure: Figure) -> None:
        places = panels(figure, ["the window and after it", f"every layer, γ = {PROBE_BUDGETS[0]:g}"], share_y=False)
        draw_drops(places[0], rows)
        layer_bands(places[1], (choice.window.start, choice.window.stop or 0), choice.boundary, len(curves[OWN]))
        for source, curve in curves.items():
            places[1].plot(curve[:, 0], **probe_style(source, PROBE_BUDGETS[0]))
        places[1].set_xlabel("decoder layer [index from 0]")
        places[1].set_ylabel("Score Retention\n[MaxSim pruned / full]")
        legend(figure, places[0], 2, also=places[1])

    columns = {"budget": "γ", "attention": "attention", "in_window": "in window", "after": "after", "drop": "drop"}
    columns |= {
        "drop_factor": "factor",
        "difference_in_window": "in window − paper",
        "difference_after": "after − paper",
    }
    return Outcome(rows, columns, draw, facts, notes)


def drop_factor(own: float | None, base: float | None) -> float | None:
    """How many times larger the fine-tuned model's drop is; none without a drop of the base."""
    return None if own is None or base is None or base <= 0 else own / base


def draw_drops(axes: Axes, rows: Sequence[dict[str, Any]]) -> None:
    """The paper's figure: in the window against after it, by attention source; filled and hollow by budget."""
    for row in rows:
        y = [row["in_window"]] if row["after"] is None else [row["in_window"], row["after"]]
        axes.plot(range(len(y)), y, **probe_style(row["attention"], row["budget"]))
    for row in [row for row in rows if row["attention"] == OWN and row["drop_factor"] is not None]:
        text = f"{row['drop_factor']:.1f} × the base's drop"
        axes.annotate(text, (1, row["after"]), (6, -3), textcoords="offset points", fontsize=8)
    if any(row["after"] is None for row in rows):
        middle = float(np.mean([row["in_window"] for row in rows]))
        axes.annotate("no layers come\nafter the window", (1, middle), ha="center", va="center", fontsize=8)
    axes.set_xticks([0, 1], ["in window", "after"])
    axes.set_xlim(-0.25, 1.8)
    axes.set_xlabel("layers")
    axes.set_ylabel("mean Score Retention\n[MaxSim pruned / full]")


def probe_style(source: str, budget: float) -> dict[str, Any]:
    """Red and circles: fine-tuned; blue and squares: base. Filled and solid: the larger budget; hollow: the smaller."""
    color, marker = {OWN: ("#D55E00", "o"), BASE: ("#0072B2", "s")}[source]
    first = budget == PROBE_BUDGETS[0]
    return {
        "label": f"attention of the {source} model, γ = {budget:g}",
        "color": color,
        "marker": marker,
        "linestyle": "-" if first else "--",
        "markerfacecolor": color if first else "white",
    }


def printed_probe(backbone: str, row: dict[str, Any]) -> dict[str, float]:
    """The paper's row beside ours, with the differences of both means and of their drop."""
    key = "fine_tuned" if row["attention"] == OWN else "base"
    found: dict[str, float] = {}
    for said in [r for r in paper.of_model("base_probe", backbone) if r["gamma"] == row["budget"]]:
        within, beyond = said[key]
        figures = {"in_window": within, "after": beyond, "drop": said[f"{key}_drop"]}
        found = {f"paper_{name}": value for name, value in figures.items()}
        found |= {f"difference_{name}": row[name] - v for name, v in figures.items() if row[name] is not None}
        found["paper_drop_factor"] = said["fine_tuned_drop"] / said["base_drop"]
    return found


def v2v_ablation(workbench: Workbench) -> Outcome:
    """In-degree over the window from visual rows only, and from all rows."""
    window, chosen, store = workbench.bound.window, workbench.pairs(), workbench.calibration_store
    _require(store, "all_to_visual")
    with workbench.progress("window of layers", total=len(chosen), done=0) as advance:
        ratios = pair_retention(store, chosen, _both(window), STANDARD, advance)
    means, left_out = mean_retention(ratios)
    name = paper.MODELS.get(workbench.backbone.card.name, "")
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
                row |= {"difference_all_rows": row["all_rows"] - everything}
        rows.append(row)

    def draw(figure: Figure) -> None:
        (axes,) = panels(figure, [""])
        series = {"visual rows (V2V)": [r["visual_rows"] for r in rows], "all rows": [r["all_rows"] for r in rows]}
        bars(axes, [f"{gamma:g}" for gamma in STANDARD], series, looks(series))
        axes.set_xlabel("keep ratio γ [fraction of a page's vectors]")
        axes.set_ylabel("Score Retention\n[MaxSim pruned / full]")
        legend(figure, axes)

    columns = {"budget": "γ", "visual_rows": "visual rows", "all_rows": "all rows", "visual_minus_all": "difference"}
    facts = {
        "window": str(window),
        "source": workbench.bound.origin["source"],
        "pairs": len(chosen),
        "pairs_left_out": left_out,
    }
    return Outcome(rows, columns, draw, facts)


def _both(window: Window) -> Callable[[Page], torch.Tensor]:
    return lambda page: torch.stack([window.mean(page.signals[s].float()) for s in ("indegree", "all_to_visual")])


def _require(store: Store, signal: str) -> None:
    if signal not in store.signals:
        raise PruneBoardError(f"this backbone gives no {signal!r} signal (it has {', '.join(store.signals) or 'none'})")


def _mean_interval(values: np.ndarray) -> list[float]:
    """95 % interval of a mean over pairs, by the percentile bootstrap."""
    rng = np.random.default_rng(42)
    draws = [values[rng.integers(len(values), size=len(values))].mean() for _ in range(RESAMPLES)]
    return [float(bound) for bound in np.quantile(draws, [0.025, 0.975])]


def _with_base_attention(workbench: Workbench) -> tuple[Any, str]:
    """The backbone with another model's attention, and what that model is."""
    from harness.backbones.attention_source import with_attention_from

    source = workbench.settings.attention_from
    if source is None and workbench.backbone.card.name == "nano":
        from harness.nano.checkpoint import BASE as BEFORE_CONTRAST

        told = "nano before its first contrast step (harness/nano/base), whose decoder is not trained yet"
        return with_attention_from(workbench.backbone, str(BEFORE_CONTRAST)), told
    probed = with_attention_from(workbench.backbone, source or "base")
    return probed, probed.checkpoint.name
