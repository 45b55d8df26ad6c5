"""By what a backbone was loaded, so that another process or machine loads the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from harness.backbones.contract import Options

T = TypeVar("T")

_RECIPE = "_pruneboard_recipe"


@dataclass(frozen=True)
class BackboneRecipe:
    """What a user typed after `--backbone`, and the options beside it."""

    selector: str
    options: Options
    attention_from: str | None = None


def recipe_of(backbone: Any) -> BackboneRecipe | None:
    """None of a backbone that was made by hand."""
    return getattr(backbone, _RECIPE, None)


def with_recipe(backbone: T, recipe: BackboneRecipe) -> T:
    """The backbone, which knows its recipe from now on."""
    object.__setattr__(backbone, _RECIPE, recipe)  # also of a frozen dataclass: it is no part of what it computes
    return backbone
