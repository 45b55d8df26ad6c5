"""What vectors are made with beside the checkpoint: the backbone's own code, and the libraries that run it.

It is part of a store's key and of a saved window's, so what another release of transformers encoded, or another
version of one's own backbone file, is never taken for what this one would.
"""

from __future__ import annotations

from harness.backbones.contract import Backbone
from harness.files import library_versions
from pruners.core import plugins

ENCODING = ("torch", "torchvision", "transformers", "colpali-engine", "peft", "pillow")


def made_with(backbone: Backbone) -> dict[str, str]:
    """`code` is a fingerprint (comments do not count), `libraries` names versions."""
    versions = library_versions(ENCODING).items()
    return {
        "code": plugins.code_of(type(backbone).__module__),
        "libraries": ", ".join(f"{name} {version}" for name, version in versions),
    }
