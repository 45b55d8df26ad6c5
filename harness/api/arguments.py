"""What the functions of the interface share: how methods may be given, and who is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pruners import Pruner

Say = Callable[[str], None]


def chosen_pruners(pruners: Sequence[Any]) -> tuple[list[str], list[Pruner]]:
    """Text forms of all pruners, for the record, and the pruners that were given as objects."""
    from pruners.core.single_page import as_pruner

    if isinstance(pruners, (str, Path)) or not isinstance(pruners, Sequence):
        pruners = [pruners]
    texts, own = [], []
    for pruner in pruners:
        if isinstance(pruner, (str, Path)):
            texts.append(str(pruner))
        else:
            own.append(as_pruner(pruner))
            texts.append(str(own[-1]))
    return texts, own


def nobody(text: str) -> None:
    """Nobody is told."""
