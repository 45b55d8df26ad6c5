"""LoRA adapters: the published form of ColPali and ColQwen2. Every tensor of the file must arrive, and no hole be left.

`target_modules` of the adapter's config says which layers are adapted. A layer without both halves in the file would be
adapted by random or zero weights; upstream has also lost whole adapters whose layers had been renamed.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

import re
from dataclasses import dataclass
from typing import Any

import torch
from safetensors import safe_open

from harness.backbones.checkpoint import ADAPTER, Checkpoint, CheckpointError
from harness.backbones.tensor_names import by_plain_name, plain_name, some

_NAME = "default"
_LORA = re.compile(r"(?P<module>.+?)\.(?P<half>lora_[^.]+)(?P<rest>\..+)?")


@dataclass(frozen=True)
class Lora:
    """An adapter's tensors, by plain names: halves of LoRA, and tensors that replace the base model's as a whole."""

    checkpoint: Checkpoint
    tensors: dict[str, torch.Tensor]

    @property
    def whole(self) -> tuple[str, ...]:
        return tuple(name for name in self.tensors if not _LORA.fullmatch(name))


def read_lora(checkpoint: Checkpoint) -> Lora:
    """The adapter in the files of a checkpoint."""
    with safe_open(checkpoint.folder / ADAPTER[1], framework="pt") as file:
        return Lora(checkpoint, {plain_name(key): file.get_tensor(key) for key in file.keys()})  # noqa: SIM118


def add_lora(model: Any, lora: Lora, dtype: torch.dtype) -> None:
    """Put the adapter into the network of its base model; stop if a tensor has no place or a place has no tensor."""
    from peft import PeftConfig

    weights = by_plain_name(model.state_dict())
    given, homeless = {}, []
    for name, tensor in lora.tensors.items():
        place = _place(name, weights)
        if place is None:
            homeless.append(name)
        else:
            given[place] = tensor
    if homeless:
        raise _lost(homeless, lora)
    model.load_adapter(
        peft_config=PeftConfig.from_pretrained(str(lora.checkpoint.folder)),
        adapter_state_dict=dict(given),
        adapter_name=_NAME,
        dtype=dtype,
        ignore_mismatched_sizes=True,  # reported below
    )
    loaded = {_as_in_file(name): value for name, value in model.state_dict().items() if f".{_NAME}" in name}
    if lost := [name for name, tensor in given.items() if not _is_there(tensor, loaded.get(name))]:
        raise _lost(lost, lora)
    if holes := loaded.keys() - given.keys():
        raise CheckpointError(
            f"the adapter {lora.checkpoint.name!r} adapts layers for which it has no weights: {some(holes)}; "
            "they would be random. Download it again, all files"
        )


def _lost(names: list[str], lora: Lora) -> CheckpointError:
    return CheckpointError(
        f"{len(names)} tensors of the adapter {lora.checkpoint.name!r} did not arrive in the model: {some(names)}. "
        "Its layer names and those of this transformers release differ; merge the adapter into its base model and "
        "use that"
    )


def _place(name: str, weights: dict[str, str]) -> str | None:
    """Where a tensor of the adapter belongs, in the names of this network; None if there is no such place."""
    half = _LORA.fullmatch(name)
    if half is None:
        return weights.get(name)
    weight = weights.get(f"{half['module']}.weight")
    return weight and f"{weight.removesuffix('.weight')}.{half['half']}{half['rest'] or ''}"


def _as_in_file(name: str) -> str:
    """peft inserts the adapter's name, and `modules_to_save` for tensors that replace the base model's."""
    return name.replace(f".modules_to_save.{_NAME}", "").replace(f".{_NAME}", "")


def _is_there(wanted: torch.Tensor, found: torch.Tensor | None) -> bool:
    return found is not None and torch.equal(found, wanted.to(found))
