"""What tells a method from any other: its code, its parameters, and what it learned."""

from __future__ import annotations

import hashlib
import pickle
from functools import cache
from pathlib import Path
from typing import Any

import torch

from . import plugins, source
from .contract import Pruner
from .errors import PruneBoardError
from .text_form import TextForm
from .value_text import value_text
from .window import Window


def all_parts(pruner: Pruner) -> list[Pruner]:
    """A pruner, its parts, and theirs."""
    return [pruner, *(inner for part in pruner.parts() for inner in all_parts(part))]


def codes(pruner: Pruner) -> list[str]:
    """The code of a pruner and of its parts."""
    return sorted({code for part in all_parts(pruner) for code in codes_of_class(type(part))})


def codes_of_class(cls: type[Pruner]) -> list[str]:
    """The code of a class and of methods it inherits from. One of a user may call any built-in method."""
    own = [base for base in cls.__mro__ if issubclass(base, Pruner) and not base.__module__.startswith("pruners.core.")]
    found = [plugins.code_of_class(base) for base in own]
    return found if cls.__module__.startswith("pruners.") else [*found, built_in_methods()]


@cache
def built_in_methods() -> str:
    folder = Path(__file__).parents[1]
    return source.fingerprint(folder.glob("*.py"), folder)


def parameters(form: TextForm) -> dict[str, Any]:
    """Its hyper-parameters; pruners and windows among them as text."""
    return {
        name: str(value) if isinstance(value, (Pruner, Window)) else value for name, value in form.parameters().items()
    }


def state_text(value: Any) -> str | None:
    """All fields of a pruner or codec, learned ones too, as a text that tells any two of them apart."""
    return value_text(value, _state_of_object)


def _state_of_object(value: Any) -> str:
    if isinstance(value, TextForm):
        return f"{value.name} {state_text(value.fields())}"
    if isinstance(value, torch.nn.Module):
        return f"{type(value).__qualname__} {state_text(dict(value.state_dict()))}"
    try:
        return hashlib.sha256(pickle.dumps(value)).hexdigest()
    except Exception as error:  # whatever a class raises when it cannot be pickled
        raise PruneBoardError(
            f"it learned a {type(value).__name__}, of which cannot be told whether it changed ({error}); let it learn "
            "numbers, texts, tensors, arrays, or lists and dictionaries of these"
        ) from error
