"""DocPruner as its authors run it, with a threshold of λ standard deviations; SAP at the ratio that comes out, and
DocPruner calibrated to that ratio, as the main table has it ("matched")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from harness import paper
from harness.drawing import labels
from harness.drawing.figures import legend, line, looks, panels
from harness.experiments.outcome import Outcome
from harness.experiments.printed import SIZES
from harness.experiments.retrieval import RETENTION, failures
from harness.experiments.workbench import Workbench
from pruners.eos import docpruner

STATISTICS = {False: "plain", True: "IQR-clipped"}
MATCHED = {clip: str(docpruner(clip=clip)) for clip in STATISTICS}
MATCHED_GAMMA = 0.05
"""The budget at which the paper compares the two ways to run DocPruner."""


def docpruner_native(workbench: Workbench) -> Outcome:
    """Plain and IQR-clipped statistics at every λ; SAP at the same ratio on every data set, matched on the average."""
    methods = {(z, clip): str(docpruner(z=z, clip=clip)) for clip in STATISTICS for z in workbench.settings.lambdas}
    cells = workbench.evaluate(list(methods.values()), (1.0,), partners=("sap",))
    found = {(row["benchmark"], row["method"]): row for row in cells.averages}
    budgets = {
        key: _budget(found[key]["realised"])
        for group in workbench.groups
        for text in methods.values()
        if (key := (group, text))
    }
    matched = workbench.evaluate(list(MATCHED.values()), sorted({*budgets.values(), MATCHED_GAMMA}))
    name = workbench.backbone.card.name
    rows: list[dict[str, Any]] = []
    for group in workbench.groups:
        for (z, clip), text in methods.items():
            own, partner = found[group, text], found[group, f"sap @ {text}"]
            beside = matched.average(group, MATCHED[clip], budgets[group, text])
            gap = partner["minus_partner"]
            row = {
                "benchmark": group,
                "operating_point": "native",
                "lambda": z,
                "statistics": STATISTICS[clip],
                "realised": own["realised"],
                "docpruner": own["retention"],
                "docpruner_interval": own["retention_interval"],
                "sap_realised": partner["realised"],
                "sap": partner["retention"],
                "sap_interval": partner["retention_interval"],
                "docpruner_minus_sap": gap[0],
                "docpruner_minus_sap_interval": gap[1:],
                "matched_budget": budgets[group, text],
                "matched_realised": beside["realised"],
                "matched": beside["retention"],
                "matched_interval": beside["retention_interval"],
                "docpruner_minus_matched": own["retention"] - beside["retention"],
            }
            rows.append({**row, **_paper(name, own["data_sets"], row)})
        alone = matched.average(group, MATCHED[False], MATCHED_GAMMA)
        row = {
            "benchmark": group,
            "operating_point": "matched",
            "statistics": STATISTICS[False],
            "matched_budget": MATCHED_GAMMA,
            "realised": alone["realised"],
            "docpruner": alone["retention"],
            "docpruner_interval": alone["retention_interval"],
        }
        rows.append({**row, **_paper(name, alone["data_sets"], row)})
    columns = {
        "benchmark": "benchmark",
        "operating_point": "threshold",
        "statistics": "statistics",
        "lambda": "λ",
        "realised": "kept",
        "docpruner": "DocPruner %",
        "sap": "SAP %",
        "matched": "matched %",
    }
    return Outcome(rows, columns, _figure(rows, list(workbench.groups)), notes=[*failures(cells), *failures(matched)])


def _budget(realised: float) -> float:
    """A budget that reads well: three figures are closer than calibration meets it anyway."""
    return float(f"{realised:.3g}")


def _paper(backbone: str, data_sets: int, row: Mapping[str, Any]) -> dict[str, float]:
    """The paper prints plain statistics at λ = 0, and in a sentence ColPali's λ = 0.5 beside its matched γ = 0.05."""
    if row["statistics"] != "plain" or data_sets != SIZES.get(row["benchmark"]):
        return {}
    v = row["benchmark"].removeprefix("vidore-")
    said: dict[str, float] = {}
    for table in paper.of_model("docpruner_native_lambda0", backbone) if row.get("lambda") == 0 else []:
        said = {"realised": table[f"eff_gamma_{v}"], "docpruner": table[f"docpruner_{v}"], "sap": table[f"sap_{v}"]}
    for table in paper.of_model("docpruner_native_and_matched", backbone):
        if row["operating_point"] == "matched":
            said = {"docpruner": table[f"matched_{v}"]}
        elif row["lambda"] == table["native_lambda"]:
            said = {"docpruner": table[f"native_{v}"], "matched": table[f"matched_{v}"]}
    found = {f"paper_{key}": value for key, value in said.items()}
    if "docpruner" in said:
        found["difference"] = row["docpruner"] - said["docpruner"]
    if "sap" in said:
        found["difference_sap"] = row["sap"] - said["sap"]
    return found


def _figure(rows: list[dict[str, Any]], groups: list[str]) -> Any:
    native = [row for row in rows if row["operating_point"] == "native"]
    series = {
        **{f"DocPruner, native λ, {kind}": ("realised", "docpruner", kind) for kind in STATISTICS.values()},
        **{f"DocPruner, matched, {kind}": ("matched_realised", "matched", kind) for kind in STATISTICS.values()},
        "SAP at the native ratios": ("sap_realised", "sap", None),
    }

    def draw(figure: Figure) -> None:
        places = panels(figure, [labels.benchmark(group) for group in groups])
        look = looks(series)
        for axes, group in zip(places, groups, strict=True):
            for label, (x, y, kind) in series.items():
                here = [r for r in native if r["benchmark"] == group and kind in (None, r["statistics"])]
                points = sorted((row[x], row[y]) for row in here)
                size = 5 if kind == STATISTICS[True] else 9  # both are seen where they coincide
                line(axes, [p[0] for p in points], [p[1] for p in points], look[label], label, markersize=size)
            axes.set_xlabel("realised keep ratio [fraction of vectors]")
        places[0].set_ylabel(RETENTION)
        legend(figure, places[0], 3)

    return draw
