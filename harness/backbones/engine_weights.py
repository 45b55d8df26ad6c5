"""Weights of the networks that make vectors: each from a file on disk, or loading stops and names what is missing.

Transformers gives a tensor that it does not find random values and goes on. So every tensor of a network is accounted
for here: by the names in the files, and by what the loader itself reports.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from safetensors import safe_open

from harness.backbones.checkpoint import Checkpoint, CheckpointError, weight_files
from harness.backbones.lora import add_lora, read_lora
from harness.backbones.tensor_names import by_plain_name, inside, plain_name, some

LM_HEAD = "lm_head"
"""The head that predicts words. Nothing here uses it, so a file may have it or not."""
_COMPUTED = re.compile(r"\.(inv_freq|position_ids)$")
"""Constants that older releases wrote into files, and that every network computes for itself."""


def load_engine_model(
    model_class: Any,
    checkpoint: Checkpoint,
    dtype: torch.dtype,
    *,
    unused: tuple[str, ...] = (),
    foreign: tuple[str, ...] = (LM_HEAD,),
) -> Any:
    """A network of a visual retriever (or of its base model), with the LoRA adapter if the checkpoint is one.

    `unused` are modules of the network that vectors do not depend on, by their full path: their weights may be absent.
    `foreign` are modules that files may hold and the network does not have, by their plain name.
    """
    base = checkpoint.base or checkpoint
    config = model_class.config_class.from_pretrained(str(base.folder), local_files_only=True)
    lora = read_lora(checkpoint) if checkpoint.base else None
    model = load_state(
        model_class,
        config,
        read_weights(base),
        base,
        dtype,
        unused=unused,
        foreign=foreign,
        whole=lora.whole if lora else (),
    )
    if lora is not None:
        with quiet_transformers():
            add_lora(model, lora, dtype)
    return model


def load_state(
    model_class: Any,
    config: Any,
    tensors: Mapping[str, torch.Tensor],
    source: Checkpoint,
    dtype: torch.dtype,
    *,
    unused: tuple[str, ...] = (),
    foreign: tuple[str, ...] = (LM_HEAD,),
    whole: Iterable[str] = (),
) -> Any:
    """A network with these tensors. `whole` are plain names of those that an adapter will bring."""
    with torch.device("meta"):
        wanted = by_plain_name(model_class(config).state_dict())
    state: dict[str, torch.Tensor] = {}
    strays = set()
    for name, tensor in tensors.items():
        place = wanted.get(plain_name(name))
        if place in state:
            raise CheckpointError(f"checkpoint {source.name!r} has {place} twice, under two names (one is {name})")
        if place is not None:
            state[place] = tensor
        elif not inside(plain_name(name), foreign) and not _COMPUTED.search(name):
            strays.add(name)
    with quiet_transformers():
        model, info = model_class.from_pretrained(
            None,
            config=config,
            state_dict=state,
            dtype=dtype,
            attn_implementation="sdpa",
            ignore_mismatched_sizes=True,  # reported below, in one line instead of a traceback
            output_loading_info=True,
        )
    holes = {name for plain, name in wanted.items() if name not in state and plain not in set(whole)}
    holes |= _reported(info) - {wanted[plain] for plain in whole if plain in wanted}
    refuse_holes({name for name in holes if not inside(name, unused)}, strays, source, model_class.__name__)
    return model


def load_text_encoder(checkpoint: Checkpoint, dtype: torch.dtype) -> Any:
    """An encoder of texts, whatever its architecture: transformers knows the names that its files may use."""
    from transformers import AutoModel

    with quiet_transformers():
        model, info = AutoModel.from_pretrained(
            str(checkpoint.folder),
            dtype=dtype,
            attn_implementation="sdpa",
            local_files_only=True,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
    holes = {name for name in _reported(info) if not inside(name, ("pooler",))}  # token vectors are taken before it
    # Heads of other tasks come with many encoders; a tensor *inside* one of the encoder's parts belongs to it.
    prefix = f"{model.base_model_prefix}."
    own = [name for name, _ in model.named_children() if name != "pooler"]
    strays = {name for name in info["unexpected_keys"] if inside(name.removeprefix(prefix), own)}
    refuse_holes(holes, strays, checkpoint, type(model).__name__)
    return model


def read_weights(source: Checkpoint) -> dict[str, torch.Tensor]:
    """Every tensor in the files of a checkpoint, by the name it has there. Pages of the files are read when used."""
    tensors: dict[str, torch.Tensor] = {}
    for path in weight_files(source.folder):
        with safe_open(path, framework="pt") as file:
            tensors |= {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    return tensors


def refuse_holes(holes: set[str], strays: set[str], source: Checkpoint, network: str) -> None:
    """Stop if a weight never arrived, or if one was left over that belongs to the network."""
    if not holes and not strays:
        return
    left_over = f"its files hold {len(strays)} tensors that {network} has no place for: {some(strays)}"
    if not holes:
        raise CheckpointError(
            f"checkpoint {source.name!r}: {left_over}. Its config.json and its weights are not of one model"
        )
    read = weight_files(source.folder)
    unread = [path.name for path in source.folder.glob("*.safetensors") if path not in read]
    raise CheckpointError(
        f"checkpoint {source.name!r} has no fitting weights for {some(holes)}; they would be random. "
        + (f"Also, {left_over}; a renamed layer looks so. " if strays else "")
        + (f"Its index does not name {some(unread)}. " if unread else "")
        + f"Download it again, all files; or is it no {network} checkpoint?"
    )


def _reported(info: Mapping[str, Any]) -> set[str]:
    """What the loader itself says that it did not find, or found in another size."""
    mismatched = {key if isinstance(key, str) else key[0] for key in info["mismatched_keys"]}
    return set(info["missing_keys"]) | mismatched


@contextmanager
def quiet_transformers() -> Iterator[None]:
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
