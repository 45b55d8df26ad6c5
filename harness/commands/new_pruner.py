"""`harness new-pruner`: a file to start from, and its test."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from harness.console import people

SCORER = '''"""{name}: say here what it does and why it should work."""

from pruners import scorer


@scorer("{name}", needs=(), paper="")
def {name}(page):
    """One line for `harness list pruners`."""
    return (page.vectors - page.vectors.mean(0)).norm(dim=-1)
'''

REDUCER = '''"""{name}: say here what it does and why it should work."""

from pruners import reducer, unit


@reducer("{name}", needs=(), paper="")
def {name}(page, k, renormalize=True):
    """One line for `harness list pruners`."""
    means = [chunk.mean(0) for chunk in page.vectors.tensor_split(k)]
    return unit(page.vectors.new_tensor([mean.tolist() for mean in means]))
'''

TEST = """from pathlib import Path

from pruners import check_contract, prune, resolve, synthetic_page

FILE = Path(__file__).with_name("{name}.py")


def test_{name}_keeps_the_contract():
    (pruner,) = resolve([str(FILE)])
    check_contract(pruner)


def test_{name}_does_what_it_says():
    (pruner,) = resolve([str(FILE)])
    result = prune(pruner, synthetic_page(4, 4), budgets=[0.25])
    assert {count} == 4  # replace with a case you can compute by hand
"""


class Kind(enum.StrEnum):
    scorer = "scorer"
    reducer = "reducer"


def new_pruner(
    name: Annotated[str, typer.Argument(help="The method's name: a word of letters, digits and _.")],
    kind: Annotated[Kind, typer.Option(help="A scorer ranks patches; a reducer makes new vectors.")] = Kind.scorer,
    folder: Annotated[Path, typer.Option("--dir", help="Where to write the two files.")] = Path(),
) -> None:
    """Write NAME.py, a working pruner to start from, and test_NAME.py."""
    from pruners.core.catalog import catalogue
    from pruners.core.errors import CatalogError

    if not name.isidentifier() or not name.isascii():
        raise CatalogError(f"{name!r} cannot be a pruner's name: use letters, digits and _, and start with a letter")
    if (taken := catalogue().get(name)) is not None:
        raise CatalogError(f"the name {name!r} is taken by {taken.place}; choose another")
    count = "len(result.kept(0))" if kind is Kind.scorer else "len(result.vectors[0])"
    files = {
        folder / f"{name}.py": (SCORER if kind is Kind.scorer else REDUCER).format(name=name),
        folder / f"test_{name}.py": TEST.format(name=name, count=count),
    }
    for path in files:
        if path.exists():
            raise CatalogError(f"{path} exists; it is left as it is. Choose another name or --dir")
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    first, test = map(str, files)
    people.print(f"wrote {escape(first)} and {escape(test)}\nnext: [bold]harness check {escape(first)}[/]")
