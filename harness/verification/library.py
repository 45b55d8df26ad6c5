"""The library's own way: a model as colpali-engine loads it, and the inputs that MTEB's own wrapper makes.

MTEB's code runs as it is, on the stock processor, with a stand-in for the model that writes down what it is given.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

import contextlib
import inspect
import io
from collections.abc import Sequence
from typing import Any

import torch

from harness.backbones.base import EngineBackbone
from harness.backbones.engine_weights import quiet_transformers
from harness.backbones.vectors_only import OneBatch


def stock_model(backbone: EngineBackbone) -> Any:
    """The model as a user of colpali-engine has it: its class, its loader, plain SDPA."""
    model_class, _ = backbone.classes()
    with quiet_transformers():
        model = model_class.from_pretrained(
            str(backbone.checkpoint.folder), dtype=backbone.dtype, attn_implementation="sdpa"
        )
    for path in backbone.unused:  # a head that no file has; vectors do not depend on it
        owner, _, name = path.rpartition(".")
        setattr(model.get_submodule(owner), name, torch.nn.Identity())
    return model.to(backbone.device).eval()


class _WrittenDown:
    """In the place of a model."""

    def __init__(self) -> None:
        self.inputs: dict[str, torch.Tensor] = {}

    def __call__(self, **inputs: torch.Tensor) -> torch.Tensor:
        self.inputs = inputs
        return torch.zeros(*inputs["input_ids"].shape, 1)


def mteb_inputs(backbone: EngineBackbone, column: str, values: Sequence[Any]) -> dict[str, torch.Tensor]:
    """What MTEB's wrapper of this family gives its model for texts (`text`) or pages (`image`)."""
    import mteb

    wrapper_class: Any = mteb.get_model_meta(str(backbone.mteb_model)).loader
    wrapper = object.__new__(wrapper_class)
    wrapper.device, wrapper.mdl = "cpu", _WrittenDown()
    wrapper.model = wrapper.mdl
    wrapper.processor = backbone.classes()[1].from_pretrained(str(backbone.checkpoint.folder), local_files_only=True)
    prefix = inspect.signature(wrapper_class.__init__).parameters.get("query_prefix")
    if prefix is not None and isinstance(prefix.default, str):
        wrapper.processor.query_prefix = prefix.default
    with contextlib.redirect_stderr(io.StringIO()):  # its progress bars
        wrapper.encode(OneBatch(column, values), task_metadata=None, hf_split="", hf_subset="")
    return dict(wrapper.mdl.inputs)
