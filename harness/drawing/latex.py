r"""Tables and figures as LaTeX that a paper reads with `\input`: booktabs, nothing else but what the first line names.

Cells of `table` are LaTeX already; `from_columns` makes one of plain rows, as a person is shown them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.drawing import labels

LONG = 40  # rows that fit on a page; more of them go on the next one

SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
SYMBOLS = {
    "γ": r"$\gamma$",
    "λ": r"$\lambda$",
    "μ": r"$\mu$",
    "σ": r"$\sigma$",
    "ρ": r"$\rho$",
    "−": "$-$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "±": r"$\pm$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "→": r"$\to$",
    "†": r"$^\dagger$",
    "–": "--",
    "…": r"\ldots{}",
}
_ESCAPES = str.maketrans(SPECIAL | SYMBOLS)

WORDS: Mapping[str, Callable[[str], str]] = {
    "method": labels.method,
    "backbone": labels.backbone,
    "benchmark": labels.benchmark,
}
"""Columns whose ids a paper writes in other words."""


def escape(text: object) -> str:
    """Any text as LaTeX prints it. Letters with accents stay: LaTeX reads UTF-8."""
    return str(text).translate(_ESCAPES)


def number(value: float | None, digits: int) -> str:
    """Rounded, with a real minus sign, never minus zero; a dash for what is not known."""
    if value is None or value != value:
        return "--"
    text = f"{value:.{digits}f}"
    if text.startswith("-"):
        return f"$-{text[1:]}$" if float(text) else text[1:]
    return text


def bold(text: str) -> str:
    return rf"\textbf{{{text}}}"


def table(
    body: Sequence[Sequence[str] | str],
    head: Sequence[str],
    *,
    align: str,
    caption: str,
    label: str,
    wide: bool = False,
) -> str:
    """A table. A row that is one string is put in as it is: a rule, a heading over all columns. So are lines of `head`.

    `wide` goes over both columns of a page that has two.
    """
    lines = [row if isinstance(row, str) else f"{' & '.join(row)} \\\\" for row in body]
    if sum(not isinstance(row, str) for row in body) > LONG:
        return _long(lines, head, align, caption, label)
    kind = "table*" if wide else "table"
    return _file(
        "booktabs",
        [
            rf"\begin{{{kind}}}[t]",
            r"\centering",
            r"\footnotesize",
            r"\setlength{\tabcolsep}{3.5pt}",
            rf"\caption{{{caption}}}",
            rf"\label{{tab:{label}}}",
            r"\smallskip",
            rf"\begin{{tabular}}{{{align}}}",
            r"\toprule",
            *head,
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            rf"\end{{{kind}}}",
        ],
    )


def _long(lines: Sequence[str], head: Sequence[str], align: str, caption: str, label: str) -> str:
    """The same over several pages, the head again on each."""
    return _file(
        "booktabs, longtable",
        [
            r"\begingroup",
            r"\footnotesize",
            r"\setlength{\tabcolsep}{3.5pt}",
            rf"\begin{{longtable}}{{{align}}}",
            rf"\caption{{{caption}}}\label{{tab:{label}}}\\[3pt]",
            *(r"\toprule", *head, r"\midrule", r"\endfirsthead"),
            *(r"\toprule", *head, r"\midrule", r"\endhead"),
            *(r"\bottomrule", r"\endfoot"),
            *lines,
            r"\end{longtable}",
            r"\endgroup",
        ],
    )


def from_columns(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str], *, caption: str, label: str) -> str:
    """What a person is shown of plain rows: names to the left, numbers to the right, digits as on the screen."""
    shown = {key: heading for key, heading in columns.items() if any(row.get(key) is not None for row in rows)}
    numeric = {key for key in shown if all(_is_number(row.get(key)) for row in rows)}
    align = "".join("r" if key in numeric else "l" for key in shown)
    head = [" & ".join(bold(escape(heading)) for heading in shown.values()) + r" \\"]
    body = [[cell(key, row.get(key)) for key in shown] for row in rows]
    return table(body, head, align=align, caption=caption, label=label)


def cell(key: str, value: Any) -> str:
    if value is None:
        return "--"
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, (list, tuple)):
        return ", ".join(cell(key, part) for part in value)
    if isinstance(value, str):
        return escape(WORDS.get(key, str)(value))
    return escape(f"{value:.4g}".replace("-", "−")) if _is_number(value) else escape(value)


def figure(file: str, *, caption: str, label: str, wide: bool = False) -> str:
    """A figure that stands beside its LaTeX file."""
    kind = "figure*" if wide else "figure"
    lines = [rf"\begin{{{kind}}}[t]", r"\centering", rf"\includegraphics[width=\linewidth]{{{file}}}"]
    return _file("graphicx", [*lines, rf"\caption{{{caption}}}", rf"\label{{fig:{label}}}", rf"\end{{{kind}}}"])


def document(files: Sequence[str]) -> str:
    """A whole document that shows the given files: to look at, and to see that they compile."""
    packages = [rf"\usepackage{{{name}}}" for name in ("booktabs", "longtable", "graphicx")]
    start = [r"\documentclass{article}", r"\usepackage[margin=2cm]{geometry}", *packages, r"\begin{document}"]
    return "\n".join([*start, *(rf"\input{{{file}}}" for file in files), r"\end{document}", ""])


def _file(packages: str, lines: Sequence[str]) -> str:
    return "\n".join([rf"% needs \usepackage{{{packages}}}", *lines, ""])


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)) or hasattr(value, "item")
