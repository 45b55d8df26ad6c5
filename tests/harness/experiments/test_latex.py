"""LaTeX: what a cell holds is printed as it is, numbers as papers print them, and the files compile."""

import shutil
import subprocess
from pathlib import Path

import pytest

from harness.drawing.latex import LONG, document, escape, figure, from_columns, number, table


def structure(text: str) -> None:
    """What a LaTeX run would stop at: environments that do not close, rows that do not fit their columns."""
    open_ones = []
    for line in text.splitlines():
        for part in line.split("\\")[1:]:
            if part.startswith("begin{"):
                open_ones.append(part[6 : part.index("}")])
            elif part.startswith("end{"):
                assert open_ones.pop() == part[4 : part.index("}")]
    assert open_ones == []
    plain = text.replace(r"\{", "").replace(r"\}", "")
    assert plain.count("{") == plain.count("}")
    assert text.replace(r"\$", "").count("$") % 2 == 0


def compiles(folder: Path, files: dict[str, str]) -> str:
    """The log of a LaTeX run over the files, if there is LaTeX here."""
    for name, text in files.items():
        structure(text)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "all.tex").write_text(document([name.removesuffix(".tex") for name in files]), encoding="utf-8")
    if shutil.which("pdflatex") is None:
        return ""
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout[-2000:]
    return done.stdout


def test_every_sign_that_latex_reads_as_its_own_is_escaped() -> None:
    assert escape("kmeans(x_y=1) & 50% #1") == r"kmeans(x\_y=1) \& 50\% \#1"
    assert escape("a\\b{c}") == r"a\textbackslash{}b\{c\}", "one pass: the braces of an escape are not escaped again"
    assert escape("γ = 0.1, ours − paper") == r"$\gamma$ = 0.1, ours $-$ paper"


@pytest.mark.parametrize(
    ("value", "digits", "printed"),
    [(93.876, 1, "93.9"), (-0.3, 1, "$-0.3$"), (-0.04, 1, "0.0"), (None, 1, "--"), (float("nan"), 2, "--")],
)
def test_numbers_are_rounded_and_never_minus_zero(value: float | None, digits: int, printed: str) -> None:
    assert number(value, digits) == printed


def test_rows_are_shown_with_a_papers_words_and_numbers_to_the_right() -> None:
    rows = [
        {"method": "kmeans(renormalize=false)", "budget": 0.1, "retention": 91.23456, "extra": 1},
        {"method": "sap_adaptive", "budget": 0.1, "retention": None},
    ]
    text = from_columns(rows, {"method": "method", "budget": "γ", "retention": "%"}, caption="c", label="x")
    assert r"\begin{tabular}{lrr}" in text
    assert r"\textbf{method} & \textbf{$\gamma$} & \textbf{\%} \\" in text
    assert r"K-Means & 0.1 & 91.23 \\" in text
    assert r"SAP-Adaptive & 0.1 & -- \\" in text


def test_a_table_longer_than_a_page_goes_on_the_next_one() -> None:
    short = table([["1"]] * LONG, [r"x \\"], align="r", caption="c", label="l")
    long = table([["1"]] * (LONG + 1), [r"x \\"], align="r", caption="c", label="l")
    assert "longtable" not in short
    assert long.startswith(r"% needs \usepackage{booktabs, longtable}")


def test_all_kinds_of_files_compile_as_they_are(tmp_path: Path) -> None:
    import io

    from matplotlib.figure import Figure

    drawn = io.BytesIO()
    Figure().savefig(drawn, format="png")
    (tmp_path / "f.png").write_bytes(drawn.getvalue())
    odd = "".join(chr(c) for c in range(32, 127)) + "γλμσρ−×·±≤≥→†–…é"
    rows = [{"a": odd, "b": -1.5}] * 3
    log = compiles(
        tmp_path,
        {
            "short.tex": from_columns(rows, {"a": "text", "b": odd[:20]}, caption=escape(odd), label="short"),
            "long.tex": from_columns(rows * 20, {"b": "number"}, caption="long", label="long"),
            "picture.tex": figure("f.png", caption="a figure", label="f", wide=True),
        },
    )
    assert "undefined" not in log.lower().replace("no undefined", "")
