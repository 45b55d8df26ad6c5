"""DocPruner as its authors run it, with a threshold of λ standard deviations, and SAP at the ratio that comes out."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from harness import paper
from harness.experiments.figures import legend, line, looks, panels
from harness.experiments.lab import Lab
from harness.experiments.outcome import Outcome
from harness.experiments.printed import SIZES
from harness.experiments.retrieval import RETENTION
from pruners.eos import docpruner

STATISTICS = {False: "plain", True: "IQR-clipped"}


def docpruner_native(lab: Lab) -> Outcome:
    """Plain and IQR-clipped statistics at every λ; the partner is evaluated at the same ratio on every data set."""
    methods = {(z, clip): str(docpruner(z=z, clip=clip)) for clip in STATISTICS for z in lab.settings.lambdas}
    cells = lab.evaluate(list(methods.values()), (1.0,), partners=("sap",))
    rows: list[dict[str, Any]] = []
    for group in lab.groups:
        found = {row["method"]: row for row in cells.averages if row["benchmark"] == group}
        for (z, clip), text in methods.items():
            own, partner = found[text], found[f"sap @ {text}"]
            gap = partner["native_minus_partner"]
            row = {
                "benchmark": group,
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
            }
            rows.append({**row, **_paper(lab.backbone.card.name, group, own, row)})
    groups = list(lab.groups)
    names = [*(f"DocPruner, {kind}" for kind in STATISTICS.values()), *(f"SAP beside {k}" for k in STATISTICS.values())]

    def draw(figure: Figure) -> None:
        places = panels(figure, groups)
        look = looks(names)
        for axes, group in zip(places, groups, strict=True):
            for kind in STATISTICS.values():
                here = [row for row in rows if (row["benchmark"], row["statistics"]) == (group, kind)]
                for name, x, y in (("DocPruner, ", "realised", "docpruner"), ("SAP beside ", "sap_realised", "sap")):
                    points = sorted((row[x], row[y]) for row in here)
                    label = f"{name}{kind}"
                    size = 5 if kind == STATISTICS[True] else 9  # both are seen where they coincide
                    line(axes, [p[0] for p in points], [p[1] for p in points], look[label], label, markersize=size)
            axes.set_xlabel("realised keep ratio [fraction of vectors]")
        places[0].set_ylabel(RETENTION)
        legend(figure, places[0], 2)

    columns = {
        "benchmark": "benchmark",
        "statistics": "statistics",
        "lambda": "λ",
        "realised": "kept",
        "docpruner": "DocPruner %",
        "sap": "SAP %",
        "docpruner_minus_sap": "difference",
    }
    notes = [f"left out: {method}: {reason}" for method, reason in cells.failures.items()]
    return Outcome(rows, columns, draw, notes=notes)


def _paper(backbone: str, group: str, own: dict[str, Any], row: dict[str, Any]) -> dict[str, float]:
    """The paper prints λ = 0 with plain statistics."""
    if (row["lambda"], row["statistics"]) != (0.0, "plain") or own["data_sets"] != SIZES.get(group):
        return {}
    tables = paper.of_model("docpruner_native_lambda0", backbone)
    v = group.removeprefix("vidore-")
    return {
        name: value
        for table in tables
        for name, value in (
            ("paper_realised", table[f"eff_gamma_{v}"]),
            ("paper_docpruner", table[f"docpruner_{v}"]),
            ("paper_sap", table[f"sap_{v}"]),
            ("difference", row["docpruner"] - table[f"docpruner_{v}"]),
        )
    }
