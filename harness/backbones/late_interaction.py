"""How a checkpoint of a text encoder wants to be used for late interaction, read from the files it comes with.

plain encoder          nothing but the encoder: vectors are its last hidden states, special tokens are no vectors
ColBERT (Stanford)     `artifact.metadata`, and a projection `linear.weight` among the encoder's weights
ColBERT (PyLate)       `config_sentence_transformers.json` with prefixes, and projections in `1_Dense/`, …
"""

from __future__ import annotations

import json
import string
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from harness.backbones.checkpoint import CheckpointError, weight_files
from harness.backbones.tensor_names import some
from harness.backbones.text_windows import Piece

COLBERT_QUERY_TOKENS = 32


@dataclass(frozen=True)
class LateInteraction:
    """Markers are single tokens put before the text; `query_tokens` the length that queries are filled up to."""

    page_marker: int | None = None
    query_marker: int | None = None
    query_tokens: int | None = None
    filler: int | None = None
    attend_to_filler: bool = False
    skipped: frozenset[int] = frozenset()
    """Tokens of pages that are no vectors (punctuation)."""
    query_specials: bool = False
    """Whether a query's special tokens count as its vectors, as in ColBERT."""
    projections: tuple[torch.Tensor, ...] = ()

    def as_query(self, piece: Piece) -> Piece:
        """A piece of a query: filled up, and with its special tokens counted, where the checkpoint wants that."""
        if not self.query_specials:
            return piece
        missing = max(0, (self.query_tokens or 0) - len(piece.ids))
        filler = () if self.filler is None else (self.filler,) * missing
        length = len(piece.ids) + len(filler)
        attended = (*piece.attended, *(self.attend_to_filler for _ in filler))
        return Piece((*piece.ids, *filler), (True,) * length, (True,) * length, attended)

    def query_template(self, token: Callable[[int], str]) -> str:
        """For the card; `token` turns an id into text."""
        marker = "" if self.query_marker is None else f"{token(self.query_marker)} "
        filler = "" if self.filler is None else f", filled up to {self.query_tokens} tokens with {token(self.filler)}"
        return f"{marker}{{query}}{filler}"


def read_late_interaction(folder: Path, tokenizer: Any) -> LateInteraction:
    """What the files of a checkpoint say."""
    metadata = _json(folder / "artifact.metadata")
    settings = _json(folder / "config_sentence_transformers.json")
    if metadata:
        markers = metadata.get("query_token_id", "[unused0]"), metadata.get("doc_token_id", "[unused1]")
        weight = next(
            (found for file in weight_files(folder) if (found := _tensor(file, "linear.weight")) is not None), None
        )
        if weight is None:
            raise CheckpointError(f"{folder} has artifact.metadata but no projection linear.weight: no ColBERT weights")
        return _colbert(
            tokenizer,
            markers,
            fill=True,
            query_tokens=metadata.get("query_maxlen"),
            attend=metadata.get("attend_to_mask_tokens"),
            skip=list(string.punctuation) if metadata.get("mask_punctuation", True) else [],
            projections=(weight,),
        )
    if "query_prefix" in settings or "document_prefix" in settings:
        return _colbert(
            tokenizer,
            (settings.get("query_prefix"), settings.get("document_prefix")),
            fill=settings.get("do_query_expansion", True),
            query_tokens=settings.get("query_length"),
            attend=settings.get("attend_to_expansion_tokens"),
            skip=settings.get("skiplist_words", list(string.punctuation)),
            projections=_dense_layers(folder),
        )
    return LateInteraction()


def _colbert(
    tokenizer: Any,
    markers: tuple[str | None, str | None],
    *,
    fill: bool,
    query_tokens: int | None,
    attend: bool | None,
    skip: list[str],
    projections: tuple[torch.Tensor, ...],
) -> LateInteraction:
    query_marker, page_marker = (_token_id(tokenizer, marker) for marker in markers)
    if fill and tokenizer.mask_token_id is None:
        raise CheckpointError("this ColBERT checkpoint fills queries up with a mask token, but its tokenizer has none")
    ids = {tokenizer.convert_tokens_to_ids(word) for word in skip}
    return LateInteraction(
        page_marker=page_marker,
        query_marker=query_marker,
        query_tokens=(query_tokens or COLBERT_QUERY_TOKENS) if fill else None,
        filler=tokenizer.mask_token_id if fill else None,
        attend_to_filler=bool(attend),
        skipped=frozenset(ids - {tokenizer.unk_token_id, None}),
        query_specials=True,
        projections=projections,
    )


def _token_id(tokenizer: Any, marker: str | None) -> int | None:
    """The id of a marker. PyLate stores them with a blank behind (`[Q] `) and adds them to the vocabulary so."""
    if not marker:
        return None
    for spelling in (marker, marker.strip()):
        found = tokenizer.convert_tokens_to_ids(spelling)
        if found is not None and found != tokenizer.unk_token_id:
            return int(found)
    raise CheckpointError(f"the marker {marker!r} of this ColBERT checkpoint is not in its tokenizer's vocabulary")


def _dense_layers(folder: Path) -> tuple[torch.Tensor, ...]:
    """The projections that follow the encoder, in order. One that is more than a matrix is refused."""
    weights = []
    for module in _json(folder / "modules.json") or []:
        if not module.get("type", "").endswith(".Dense"):
            continue
        place = folder / module["path"]
        config = _json(place / "config.json")
        activation = config.get("activation_function", "torch.nn.modules.linear.Identity")
        if config.get("bias") or config.get("use_residual") or not activation.endswith("Identity"):
            raise CheckpointError(
                f"{place} is more than a matrix (bias, residual or activation), which is not supported"
            )
        weight = _tensor(place / "model.safetensors", "linear.weight")
        if weight is None:
            raise CheckpointError(f"{place} has no linear.weight in model.safetensors")
        if left_over := _names(place / "model.safetensors") - {"linear.weight"}:
            raise CheckpointError(f"{place} has weights that its config.json does not speak of: {some(left_over)}")
        weights.append(weight)
    if not weights:  # vectors would be hidden states of another width, and nothing would say so
        raise CheckpointError(f"{folder} is a ColBERT checkpoint, but its modules.json names no projection (Dense)")
    return tuple(weights)


def _names(path: Path) -> set[str]:
    with safe_open(path, framework="pt") as file:
        return set(file.keys())


def _tensor(path: Path, name: str) -> torch.Tensor | None:
    if not path.is_file():
        return None
    with safe_open(path, framework="pt") as file:
        return file.get_tensor(name).float() if name in file.keys() else None  # noqa: SIM118 (not a dict)


def _json(path: Path) -> Any:
    """The content of a JSON file; an empty dict if there is none."""
    if not path.is_file():
        return {}
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CheckpointError(f"{path} is no JSON: {error}") from error
