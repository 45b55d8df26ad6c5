"""Whether another node would measure the same: this project's code, Python, the libraries that compute, and with which
of a processor's instructions they do.

Compared before a worker does anything, because a node with another checkout would silently give other figures.
"""

from __future__ import annotations

import hashlib
import platform
import sys
from functools import cache
from pathlib import Path

import harness
import pruners
from harness.files import library_versions
from harness.instructions import VARIABLES, processor
from pruners.core.errors import PruneBoardError

LIBRARIES = (
    *("torch", "numpy", "numba", "scipy", "scikit-learn", "transformers", "colpali-engine", "peft", "pillow"),
    *("torchvision", "safetensors", "cloudpickle"),
)
PROCESSOR = "processor"


@cache
def whereabouts() -> dict[str, str]:
    """What this process computes with."""
    version = library_versions(["pruneboard"])["pruneboard"]
    return {
        "PruneBoard": f"{version}, code {_code()}",
        "Python": ".".join(map(str, sys.version_info[:2])),
        PROCESSOR: processor(),
        **library_versions(LIBRARIES),
    }


def _code() -> str:
    digest = hashlib.sha256()
    for package in (harness, pruners):
        root = Path(str(package.__file__)).parent
        for file in sorted(root.rglob("*.py")):
            digest.update(f"{file.relative_to(root)}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def require_same(expected: dict[str, str]) -> None:
    """Refuse to work where anything is another than where the work was begun."""
    here = whereabouts()
    wrong = [f"{name} {here.get(name, 'absent')} instead of {there}" for name, there in expected.items()]
    if differs := [text for text, name in zip(wrong, expected, strict=True) if here.get(name) != expected[name]]:
        told = " ".join(f"{name}={value}" for name, value in VARIABLES["avx2"].items())
        way_out = f"start Ray on every node, and this command, with {told}"
        if here.get(PROCESSOR) == expected.get(PROCESSOR):
            way_out = "install the same on every node"
        raise PruneBoardError(f"it has {'; '.join(differs)}. A result would differ: {way_out}")


def node_name() -> str:
    """This machine, as an error names it."""
    return platform.node() or "a node without a name"
