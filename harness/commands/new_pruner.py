"""`harness new-pruner`: a file to start from, and its test."""

from __future__ import annotations

import enum
import keyword
from pathlib import Path
from string import Template
from typing import Annotated

import typer
from rich.markup import escape

from harness.console import people

SCORER = Template('''"""$name: say here what it does and why it should work."""

from __future__ import annotations

import torch

from pruners import Page, scorer


@scorer("$name", needs=(), paper="unpublished")
def $name(page: Page) -> torch.Tensor:
    """One line for `harness list pruners`.

    Formula:
        s_{j} = ‖e_{j} − mean(E)‖
        keep the k largest s_{j}
    """
    return (page.vectors - page.vectors.mean(0)).norm(dim=-1)
''')

REDUCER = Template('''"""$name: say here what it does and why it should work."""

from __future__ import annotations

import torch

from pruners import Page, reducer


@reducer("$name", needs=(), paper="unpublished")
def $name(page: Page, k: int, renormalize: bool = True) -> torch.Tensor:
    """One line for `harness list pruners`.

    Formula:
        C = k runs of patches of about the same length
        v_{C} = mean of e_{i}, i ∈ C
    """
    return torch.arange(len(page)) * k // len(page)  # the group of each patch; the harness makes the means
''')

TEST = Template("""from pathlib import Path

from pruners import check_contract, parse, prune, synthetic_page

BESIDE = Path(__file__).with_name("$name.py")
METHOD = parse(str(BESIDE) if BESIDE.is_file() else "$name")  # in tests/pruners/ it is found by its name


def test_${name}_keeps_the_contract() -> None:
    check_contract(METHOD)


def test_${name}_does_what_it_says() -> None:
    result = prune(METHOD, synthetic_page(4, 4), budgets=[0.25])
    assert $count == 4  # replace with a case you can compute by hand
""")


class Kind(enum.StrEnum):
    scorer = "scorer"
    reducer = "reducer"


def new_pruner(
    name: Annotated[str, typer.Argument(help="The method's name: a word of letters, digits and _.")],
    kind: Annotated[Kind, typer.Option(help="A scorer ranks patches; a reducer makes new vectors.")] = Kind.scorer,
    folder: Annotated[Path, typer.Option("--dir", help="Where to write the two files.")] = Path(),
    tests: Annotated[Path | None, typer.Option(help="Where to write the test instead, such as tests/pruners.")] = None,
) -> None:
    """Write NAME.py, a working pruner to start from, and test_NAME.py."""
    from pruners.core.catalog import catalogue
    from pruners.core.errors import CatalogError

    if not name.isidentifier() or not name.isascii() or keyword.iskeyword(name):
        raise CatalogError(f"{name!r} cannot be a pruner's name: use letters, digits and _, and start with a letter")
    if (taken := catalogue().get(name)) is not None:
        raise CatalogError(f"the name {name!r} is taken by {taken.place}; choose another")
    count = "len(result.kept(0))" if kind is Kind.scorer else "len(result.vectors[0])"
    files = {
        folder / f"{name}.py": (SCORER if kind is Kind.scorer else REDUCER).substitute(name=name),
        (tests or folder) / f"test_{name}.py": TEST.substitute(name=name, count=count),
    }
    for path in files:
        if path.exists():
            raise CatalogError(f"{path} exists; it is left as it is. Choose another name or --dir")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    first, test = map(str, files)
    people.print(f"wrote {escape(first)} and {escape(test)}\nnext: [bold]harness check {escape(first)}[/]")
