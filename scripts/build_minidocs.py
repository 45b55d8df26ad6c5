"""Draw and pin the minidocs benchmark again: `python scripts/build_minidocs.py [folder]`. Changes the hashes."""

from __future__ import annotations

from pathlib import Path

import typer

from harness.minidocs.pinned import DATA, write_all


def main(folder: Path = DATA) -> None:
    write_all(folder)


if __name__ == "__main__":
    typer.run(main)
