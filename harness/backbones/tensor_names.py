"""One name for one tensor, whatever the release that wrote the file called it.

Libraries moved the parts of these models about: the decoder of a ColPali is `model.language_model.model.layers…` in the
published files and `model.model.language_model.layers…` in today's class. Two names mean the same tensor if they have
the same `plain_name`; every loader here matches files and networks by it, and by nothing looser.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

SHOWN = 12
_STEPS = (
    (r"^base_model\.model\.", ""),  # the wrapper of peft
    (r"^(model\.)+", ""),  # classes that hold the network as `model`, once or twice
    (r"^(layers|embed_tokens|norm)\.", r"language_model.\1."),  # Qwen2-VL of 2024: the decoder was `model` itself
    (r"^language_model\.model\.", "language_model."),  # PaliGemma of 2024: the decoder had one more `model`
    (r"^language_model\.lm_head\.", "lm_head."),
    (r"^vision_tower\.vision_model\.", "vision_tower."),  # SigLIP of 2024
    (r"^multi_vector_projector\.", "custom_text_proj."),  # Jina's name of the projection
)


def plain_name(name: str) -> str:
    """The name of a tensor without what wrappers and releases put around it."""
    for pattern, replacement in _STEPS:
        name = re.sub(pattern, replacement, name)
    return name


def by_plain_name(names: Iterable[str]) -> dict[str, str]:
    """The names of a network's own tensors by their plain names."""
    return {plain_name(name): name for name in names}


def inside(name: str, modules: Iterable[str]) -> bool:
    """Whether a tensor belongs to one of the modules, each given by its full path."""
    return any(name.startswith(f"{module}.") for module in modules)


def some(names: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    listed = sorted(names)
    return ", ".join(listed[:SHOWN]) + (f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else "")
