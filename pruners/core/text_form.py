"""What pruners and codecs have in common: a frozen dataclass with a name and a text form.

Its fields are hyper-parameters, which the text form shows; `learned()` fields hold what `calibrate` found.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any, ClassVar, Self

from . import plugins


class TextForm:
    """Something that a user names as `name(param=value)`."""

    declaration: ClassVar[Any]

    def fields(self) -> dict[str, Any]:
        """Hyper-parameters and learned state, by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]

    def parameters(self) -> dict[str, Any]:
        """Hyper-parameters alone."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {f.name: getattr(self, f.name) for f in fields if not f.metadata.get("learned")}

    def replace(self, **changes: Any) -> Self:
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by its class, hyper-parameters and what it learned. A class from a user's file goes by that file."""
        return _rebuilt, (plugins.address(type(self)), self.fields())

    @property
    def name(self) -> str:
        return self.declaration.name

    @property
    def learns(self) -> bool:
        """Whether it has a `learned()` field itself."""
        return any(f.metadata.get("learned") for f in dataclasses.fields(self))  # type: ignore[arg-type]

    @cached_property
    def text(self) -> str:
        """The expression that makes this, as `parse` reads it."""
        from . import expression

        return expression.write(self)

    def __str__(self) -> str:
        return self.text


def learned() -> Any:
    """A dataclass field that `calibrate` fills. It is no hyper-parameter: text cannot set it and does not show it."""
    return dataclasses.field(default=None, repr=False, compare=False, metadata={"learned": True})


def _rebuilt(address: type | plugins.InFile, fields: dict[str, Any]) -> Any:
    return (address.load() if isinstance(address, plugins.InFile) else address)(**fields)
