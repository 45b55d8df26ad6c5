"""Vectors from a retriever, attention from the base model it was made of (the seed paper's base-backbone probe).

A retriever reuses its base model's processor and patch layout, so the very same inputs go through both models, and
position j of the signals is position j of the vectors. That is checked: the two must agree on the image token, the
patch geometry and the vocabulary, or the probe is refused before any page is encoded.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from PIL import Image

from harness.backbones.base import EngineBackbone
from harness.backbones.checkpoint import Checkpoint, find_checkpoint
from harness.backbones.contract import Backbone, Card
from harness.backbones.engine_weights import LM_HEAD, load_engine_model
from harness.backbones.prepared import Empty, Prepared
from harness.backbones.probe import attach, capturing
from harness.backbones.recipe import recipe_of, with_recipe
from harness.store.encoded_page import EncodedPage
from pruners.core.errors import PruneBoardError

BASE_MODELS = {
    "paligemma": ("PaliGemmaForConditionalGeneration", "google/paligemma-3b-pt-448"),
    "qwen2_vl": ("Qwen2VLForConditionalGeneration", "Qwen/Qwen2-VL-2B-Instruct"),
    "qwen2_5_vl": ("Qwen2_5_VLForConditionalGeneration", "Qwen/Qwen2.5-VL-3B-Instruct"),
}
"""By model type: transformers' class, and the base model of the published retriever, for one that names none itself."""


def with_attention_from(retriever: Backbone, source: str) -> ProbedByBase:
    """The retriever with its attention read from `source`: a checkpoint[@revision], or `base` for its own base."""
    if not isinstance(retriever, EngineBackbone):
        raise PruneBoardError(f"--attention-from needs a colpali-engine retriever, not {retriever.card.name}")
    kind = retriever.config.model_type
    if kind not in BASE_MODELS:
        raise PruneBoardError(f"--attention-from knows no base model for {retriever.name} ({kind})")
    probed = ProbedByBase(retriever, _base_of(retriever, kind) if source == "base" else _named(source))
    recipe = recipe_of(retriever)
    return probed if recipe is None else with_recipe(probed, replace(recipe, attention_from=source))


def _base_of(retriever: EngineBackbone, kind: str) -> Checkpoint:
    """What the retriever was made of: the base of its adapter; without one, the published base model of its kind."""
    return retriever.checkpoint.base or _named(BASE_MODELS[kind][1])


def _named(source: str) -> Checkpoint:
    name, at, revision = source.rpartition("@")
    return find_checkpoint(name if at else revision, revision if at else None, processor=False)


class ProbedByBase:
    """A backbone whose attention comes from another model over the same tokens."""

    def __init__(self, retriever: EngineBackbone, checkpoint: Checkpoint) -> None:
        self.retriever, self.device, self.attention_path = retriever, retriever.device, retriever.attention_path
        self.checkpoint = checkpoint
        theirs = json.loads((checkpoint.folder / "config.json").read_text()).get("model_type")
        if theirs != retriever.config.model_type:
            raise PruneBoardError(
                f"attention of {checkpoint.name!r} cannot be aligned with {retriever.name}'s patches: it is a {theirs} "
                f"model, and {retriever.name} was made of a {retriever.config.model_type} model"
            )
        self.config = retriever.config_class().from_pretrained(str(checkpoint.folder))
        _check_alignment(retriever.config, self.config, retriever.name, checkpoint.name)

    @cached_property
    def model(self) -> Any:
        import transformers

        model_class = getattr(transformers, BASE_MODELS[self.config.model_type][0])
        # A retriever's base may have the projection in its files already; this network ends before it.
        model = load_engine_model(
            model_class,
            self.checkpoint,
            self.retriever.dtype,
            unused=(LM_HEAD,),
            foreign=(LM_HEAD, "custom_text_proj"),
        )
        model = model.to(self.device).eval()
        model.lm_head = torch.nn.Identity()  # attention is all that is wanted of it
        attach(model)
        return model

    @cached_property
    def card(self) -> Card:
        text = self.config.get_text_config()
        return replace(
            self.retriever.card,
            layers=text.num_hidden_layers,
            heads=text.num_attention_heads,
            signals_from=f"all layers of the base model, revision {self.checkpoint.identity}, over the same tokens",
        )

    def encode_pages(self, images: Sequence[Image.Image]) -> list[EncodedPage]:
        return self.encode_prepared(self.prepare(images))

    def prepare(self, images: Sequence[Image.Image]) -> Prepared:
        return self.retriever.prepare(images)

    def side_by_side(self, pages: Sequence[Prepared], empty: Empty) -> Prepared:
        return self.retriever.side_by_side(pages, empty)

    @torch.inference_mode()
    def encode_prepared(self, prepared: Prepared) -> list[EncodedPage]:
        inputs, pages = prepared.inputs, self.retriever.encode_prepared(prepared)
        visual, valid = self.retriever.processor.get_image_mask(inputs), inputs["attention_mask"]
        on_device = {name: tensor.to(self.device, non_blocking=True) for name, tensor in inputs.items()}
        if "image_grid_thw" in on_device:  # the engine pads the patches of a batch; transformers wants them in a row
            counts = on_device["image_grid_thw"].prod(-1).tolist()
            patches = zip(on_device["pixel_values"], counts, strict=True)
            on_device["pixel_values"] = torch.cat([page[:count] for page, count in patches])
        on_device["pixel_values"] = on_device["pixel_values"].to(self.retriever.dtype)
        with capturing(visual.to(self.device), valid.to(self.device)) as recorder:
            self.model(**on_device, use_cache=False)
        signals = recorder.signals(range(self.card.layers))
        for page, own in zip(pages, signals, strict=True):
            if own["indegree"].shape[1] != len(page.vectors):
                raise PruneBoardError(
                    f"the base model saw {own['indegree'].shape[1]} visual tokens, the retriever {len(page.vectors)}"
                )
        return [replace(page, signals={**page.signals, **own}) for page, own in zip(pages, signals, strict=True)]

    def encode_queries(self, texts: Sequence[str]) -> list[torch.Tensor]:
        return self.retriever.encode_queries(texts)


def _check_alignment(retriever: Any, base: Any, name: str, source: str) -> None:
    """Same image token, same patches: only then is position j the same patch in both models."""
    facts = {
        "image token": lambda c: c.image_token_id,
        "patch size": lambda c: c.vision_config.patch_size,
        "image size": lambda c: getattr(c.vision_config, "image_size", None),
        "patches merged": lambda c: getattr(c.vision_config, "spatial_merge_size", 1),
    }
    for fact, get in facts.items():
        ours, theirs = get(retriever), get(base)
        if ours != theirs:
            raise PruneBoardError(
                f"attention of {source!r} cannot be aligned with {name}'s patches: {fact} {theirs} there, {ours} here"
            )
    if base.get_text_config().vocab_size < retriever.get_text_config().vocab_size:
        raise PruneBoardError(f"{source!r} has a smaller vocabulary than {name}: its prompt cannot be read there")
