"""Weights of colpali-engine's models: from files on disk only, and with nothing lost on the way."""

from __future__ import annotations

import harness.compat  # noqa: F401

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from safetensors import safe_open

from harness.backbones.checkpoint import ADAPTER, Checkpoint, CheckpointError


def load_engine_model(
    model_class: Any, checkpoint: Checkpoint, dtype: torch.dtype, unused: tuple[str, ...] = ("lm_head.weight",)
) -> Any:
    """`from_pretrained` of a model class, from files on disk only, with nothing lost on the way.

    `unused` are parts of names of weights that may be absent, because nothing here uses them.
    """
    with _quiet_transformers():
        model, info = model_class.from_pretrained(
            str(checkpoint.folder),
            dtype=dtype,
            attn_implementation="sdpa",
            local_files_only=True,
            ignore_mismatched_sizes=True,  # reported below, in one line instead of a traceback
            output_loading_info=True,
        )
    mismatched = {key if isinstance(key, str) else key[0] for key in info["mismatched_keys"]}
    absent = sorted({key for key in info["missing_keys"] if not any(part in key for part in unused)} | mismatched)
    if absent and checkpoint.base is None:
        raise CheckpointError(
            f"checkpoint {checkpoint.name!r} has no fitting weights for {_some(absent)}; they would be random. "
            f"Is it a {model_class.__name__} checkpoint?"
        )
    if checkpoint.base is not None:
        _check_adapter_arrived(model, checkpoint)
    return model


@contextmanager
def _quiet_transformers() -> Iterator[None]:
    """Loading reports and progress bars of transformers; what matters in them is checked and said by us."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def _check_adapter_arrived(model: Any, checkpoint: Checkpoint) -> None:
    """Every tensor of a LoRA checkpoint must be in the model: upstream has lost some of them silently."""
    name = model.active_adapters()[0]
    loaded = {key.replace(f".{name}.", "."): value for key, value in model.state_dict().items()}
    lost = []
    with safe_open(checkpoint.folder / ADAPTER[1], framework="pt") as file:
        for key in file.keys():  # noqa: SIM118 (not a dict)
            ending = key.removeprefix("base_model.model.").removeprefix("model.")
            # Layers were renamed between releases of transformers: compare by the part that kept its name.
            tail = ending.split("language_model.")[-1].removeprefix("model.")
            wanted = file.get_tensor(key)
            found = [value for other, value in loaded.items() if other.endswith(tail) and value.shape == wanted.shape]
            if not any(torch.equal(value, wanted.to(value)) for value in found):
                lost.append(key)
    if lost:
        rank = json.loads((checkpoint.folder / ADAPTER[0]).read_text()).get("r")
        raise CheckpointError(
            f"{len(lost)} tensors of the adapter {checkpoint.name!r} (rank {rank}) did not arrive in the model: "
            f"{_some(lost)}. Its layer names and those of this transformers release differ; "
            "merge the adapter into its base model and use that."
        )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
