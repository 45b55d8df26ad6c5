"""A method written in a notebook cell or at a prompt is known by its code: an edited one is another method."""

import linecache
import sys
import textwrap
from pathlib import Path

import pytest

from pruners.core import live_code
from pruners.core.plugins import code_of_class

CELL = """
from pruners import scorer

SIGN = 1

def away(vectors):
    return (vectors - vectors.mean(0)).norm(dim=-1)

@scorer("mine")
def mine(page, power=2.0):
    '''Distance from the mean.'''
    return SIGN * away(page.vectors) ** power
"""

CLASS = """
from dataclasses import dataclass
from pruners import Scorer, scorer

@scorer("mine")
@dataclass(frozen=True)
class Mine(Scorer):
    power: float = 2.0

    @property
    def exponent(self):
        return self.power

    def score(self, page):
        return page.vectors.norm(dim=-1) ** self.exponent
mine = Mine
"""


def run(cell: str, keep_source: bool) -> type:
    """The class that a cell makes, as a notebook runs it (which keeps the source) or a prompt (which does not)."""
    run.count += 1
    name = f"<cell {run.count}>"
    if keep_source:
        linecache.cache[name] = (len(cell), None, cell.splitlines(keepends=True), name)
    space = {"__name__": "__main__"}
    exec(compile(textwrap.dedent(cell), name, "exec"), space)
    return space["mine"]


run.count = 0


@pytest.mark.parametrize("keep_source", [True, False])
@pytest.mark.parametrize(
    ("cell", "old", "new"),
    [
        (CELL, "** power", "** -power"),
        (CELL, "SIGN = 1", "SIGN = -1"),
        (CELL, "vectors.mean(0)", "vectors.mean(1)"),
        (CLASS, "page.vectors.norm(dim=-1)", "page.vectors.sum(dim=-1)"),
        (CLASS, "return self.power", "return -self.power"),
    ],
)
def test_an_edited_cell_is_other_code_and_the_same_cell_the_same(keep_source, cell, old, new) -> None:
    assert old in cell
    first = code_of_class(run(cell, keep_source))
    assert code_of_class(run(cell, keep_source)) == first
    assert code_of_class(run(cell.replace(old, new), keep_source)) != first


def test_a_comment_in_a_cell_is_no_change() -> None:
    commented = CELL.replace("Distance from the mean.", "How far out.").replace("SIGN *", "SIGN * \\\n  ")
    assert code_of_class(run(commented, True)) == code_of_class(run(CELL, True))


def test_a_function_beside_the_notebook_belongs_to_the_method(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    cell = "from helper_beside import away\n" + CELL.replace("def away", "def unused")
    codes = []
    for sign in ("", "-"):
        Path("helper_beside.py").write_text(f"def away(vectors):\n    return {sign}vectors.norm(dim=-1)\n")
        sys.modules.pop("helper_beside", None)
        codes.append(code_of_class(run(cell, True)))
    assert codes[0] != codes[1]


def test_methods_of_files_are_known_by_their_file() -> None:
    from pruners import hpc, kmeans

    assert not live_code.is_live(kmeans)
    assert not live_code.is_live(hpc)
    assert live_code.is_live(run(CELL, True))
