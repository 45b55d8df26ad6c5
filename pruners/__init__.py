"""Training-free pruning methods for multi-vector page indexes, and the contract a new one keeps.

Every file beside this one holds a method or a small family of them and is found by itself; `core/` holds what they
stand on. Names are loaded on first use, because listing methods must not cost the import of torch. Methods are names
here too, as `harness list pruners` shows them: `from pruners import kmeans`. Type checkers read `__init__.pyi`.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

_HOMES = {
    "apply": ("prune", "require"),
    "budget": ("STANDARD", "SWEEP", "keep_count"),
    "catalog": ("catalogue", "parse", "resolve"),
    "contract": ("Diagnostic", "Merged", "Preset", "Pruner", "Reducer", "Scorer", "Subset", "unit"),
    "decorators": ("diagnostic", "preset", "pruner", "reducer", "scorer"),
    "errors": ("PruneBoardError", "PrunerError"),
    "page": ("SIGNALS", "Page"),
    "single_page": ("Pruned",),
    "text_form": ("learned",),
    "codec": ("Codec", "codec"),
    "contract_check": ("check_contract", "synthetic_page"),
    "window": ("Window",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = list(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(importlib.import_module(f".core.{_HOME_OF[name]}", __name__), name)
    if not name.startswith("_"):
        from .core import catalog, plugins

        if name in (known := catalog.catalogue()):
            return plugins.load(known[name])
        if f"{__name__}.{name}" in sys.modules:
            return sys.modules[f"{__name__}.{name}"]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    from .core import catalog

    return sorted({*__all__, *catalog.catalogue()})


class _Package(types.ModuleType):
    """`pruners.kmeans` is the method, also after its file, which has the same name, was imported.

    Python makes a submodule an attribute of its package. Not here: `__getattr__` finds files that are no method.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not isinstance(value, types.ModuleType) or name in ("core", "kernels", "codecs"):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
