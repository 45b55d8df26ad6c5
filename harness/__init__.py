"""The harness: benchmarks, backbones, stores, scoring, metrics, evaluation, and the command line over them.

`harness.evaluate`, `harness.load_run` and the rest of the Python interface live in `api/`, loaded on first use.
They are not imported here by name: what this file imports would count as code of every backbone, and each edit of the
interface would have all pages encoded again. Type checkers read `__init__.pyi`.
"""

import importlib
import os
import sys
import types
from typing import Any

# Idle threads of OpenMP spin unless told to sleep. On a machine that does anything else they then take the cores that
# the working ones need: encoding with two threads on two busy cores took four to twelve times as long (measured).
# The variable is read once, when torch is first imported, so it is set here.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("pruneboard")
    if not name.startswith("_") and name in (api := importlib.import_module("harness.api")).__all__:
        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*importlib.import_module("harness.api").__all__, "__version__"])


class _Package(types.ModuleType):
    """`harness.encode` is the function of the interface, also after the file of that name was imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "encode":
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
