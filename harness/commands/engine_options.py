"""The options of commands that work on several cores or machines."""

from __future__ import annotations

from typing import Annotated

import typer

EngineName = Annotated[
    str | None, typer.Option("--engine", help="processes (this machine; the default), or ray (a cluster).")
]
RayAddress = Annotated[
    str | None,
    typer.Option("--ray-address", help="auto (the cluster this machine belongs to), local (begin one), or HOST:PORT."),
]
RayGpus = Annotated[
    float | None,
    typer.Option("--ray-gpus-per-worker", help="GPUs of each worker that encodes; 0.5 puts two on one. Default: 1."),
]
