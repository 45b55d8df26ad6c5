"""Train the embedded `nano` retriever: `python scripts/train_nano.py --out runs/nano`.

Killed and started again with the same `--out`, it goes on where it was. Before the first contrast step the base is
written (what `base-probe` compares with); at the end the checkpoint folder, with the log of the run and a card of what
was measured on the pinned benchmark.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.nano.card import write_card
from harness.nano.checkpoint import BASE, FOLDER
from harness.nano.training import TrainingSettings, train

DEFAULTS = TrainingSettings()


def main(
    out: Annotated[Path, typer.Option(help="Folder of the run: state to resume from, log.")] = Path("runs/nano"),
    ship_to: Annotated[Path, typer.Option(help="Checkpoint folder to write at the end.")] = FOLDER,
    base_to: Annotated[Path, typer.Option(help="Folder of the weights before the first contrast step.")] = BASE,
    base_only: Annotated[bool, typer.Option("--base-only", help="Stop when the base is written.")] = False,
    seed: int = DEFAULTS.seed,
    threads: Annotated[int, typer.Option(help="Torch threads; drawing has its own.")] = DEFAULTS.threads,
    reading_steps: int = DEFAULTS.reading_steps,
    contrast_steps: int = DEFAULTS.contrast_steps,
) -> None:
    settings = TrainingSettings(seed=seed, threads=threads, reading_steps=reading_steps, contrast_steps=contrast_steps)
    train(settings, out, base_to, None if base_only else ship_to)
    if not base_only:
        write_card(out / "log.jsonl", ship_to)


if __name__ == "__main__":
    typer.run(main)
