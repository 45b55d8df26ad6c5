"""Draw and pin the minidocs benchmark and its contact sheet again: `python scripts/build_minidocs.py`.

Needed only after a change to `harness/minidocs`; it changes the content hashes, and with them every figure measured.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.minidocs.files import DATA, write_all
from harness.minidocs.sheet import contact_sheet


def main(
    folder: Annotated[Path, typer.Option(help="Where to pin the datasets.")] = DATA,
    sheet: Annotated[Path, typer.Option(help="The contact sheet.")] = Path("docs/minidocs.png"),
) -> None:
    write_all(folder)
    contact_sheet(sheet)


if __name__ == "__main__":
    typer.run(main)
