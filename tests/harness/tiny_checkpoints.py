"""Tiny checkpoints with random weights of the real classes, saved with real processors and locally trained tokenizers.

They load with the production loaders and nothing in them was downloaded. The numbers are the smallest that keep every
feature of the big ones: grouped-query attention, several layers, more than one patch row, rotary sections.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

import json
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

CORPUS = [
    "Query: what is the total revenue of the energy report in 2021?",
    "Describe the image.",
    "user assistant User: Assistant: Passage: {query}",
    "the quick brown fox jumps over the lazy dog 0123456789",
    "renewable electricity production in France by region, table 3",
] * 4

QWEN_SPECIAL = ["endoftext", "im_start", "im_end", "vision_start", "vision_end", "image_pad", "video_pad"]


def trained_tokenizer(
    special: list[str],
    *,
    pad: str,
    bos: str | None = None,
    eos: str | None = None,
    side: str,
    named: dict | None = None,
):
    """`named` are special tokens that a processor asks for by name."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=pad,
        bos_token=bos,
        eos_token=eos,
        padding_side=side,
        extra_special_tokens=named or {},
    )


def randomise(model: torch.nn.Module, seed: int) -> torch.nn.Module:
    """Weights large enough that attention is far from uniform: a wrong mask or a lost layer must show."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.device.type == "meta":
                continue
            scale = 0.02 if parameter.ndim < 2 else 1.6 * parameter.shape[-1] ** -0.5
            noise = torch.randn(parameter.shape, generator=generator) * scale
            parameter.copy_(parameter + noise if parameter.ndim < 2 else noise)
    return model


def save_colpali(folder: Path, *, seed: int = 0, image_size: int = 56, dim: int = 128) -> Path:
    from colpali_engine.models import ColPali, ColPaliProcessor
    from transformers import GemmaConfig, PaliGemmaConfig, SiglipImageProcessor, SiglipVisionConfig

    from harness.backbones.base import _of_dim

    patch = 14
    tokens = (image_size // patch) ** 2
    images = SiglipImageProcessor(
        size={"height": image_size, "width": image_size}, image_mean=[0.5] * 3, image_std=[0.5] * 3
    )
    images.image_seq_length = tokens
    tokenizer = trained_tokenizer(
        ["<pad>", "<eos>", "<bos>", "<unk>"], pad="<pad>", bos="<bos>", eos="<eos>", side="left"
    )
    processor = ColPaliProcessor(image_processor=images, tokenizer=tokenizer)
    config = PaliGemmaConfig(
        vision_config=SiglipVisionConfig(
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=2,
            image_size=image_size,
            patch_size=patch,
            vision_use_head=False,
        ).to_dict(),
        text_config=GemmaConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=1,
            head_dim=16,
        ).to_dict(),
        projection_dim=32,
        image_token_index=processor.image_token_id,
    )
    model = randomise(_of_dim(ColPali, "custom_text_proj.weight", dim)(config), seed)
    _save(model, folder)
    processor.save_pretrained(folder)
    return folder


def qwen_processor(processor_class):
    from transformers import Qwen2VLImageProcessor, Qwen2VLVideoProcessor

    tokenizer = trained_tokenizer(
        [f"<|{name}|>" for name in QWEN_SPECIAL],
        pad="<|endoftext|>",
        eos="<|im_end|>",
        side="left",
    )
    pixels = {"min_pixels": 4 * 28 * 28, "max_pixels": 48 * 28 * 28}
    return processor_class(
        image_processor=Qwen2VLImageProcessor(**pixels),
        tokenizer=tokenizer,
        video_processor=Qwen2VLVideoProcessor(**pixels),
    )


def qwen_config(processor, *, generation: str):
    ids = processor.tokenizer.convert_tokens_to_ids
    text = {
        "vocab_size": len(processor.tokenizer),
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]},
        "bos_token_id": None,
        "eos_token_id": ids("<|im_end|>"),
        "pad_token_id": ids("<|endoftext|>"),
    }
    special = {
        "image_token_id": ids("<|image_pad|>"),
        "video_token_id": ids("<|video_pad|>"),
        "vision_start_token_id": ids("<|vision_start|>"),
        "vision_end_token_id": ids("<|vision_end|>"),
    }
    if generation == "2":
        from transformers import Qwen2VLConfig

        vision = {"depth": 2, "embed_dim": 32, "hidden_size": 64, "num_heads": 2, "mlp_ratio": 2, "patch_size": 14}
        return Qwen2VLConfig(text_config=text, vision_config=vision, **special)
    from transformers import Qwen2_5_VLConfig

    vision = {
        "depth": 2,
        "hidden_size": 32,
        "out_hidden_size": 64,
        "num_heads": 2,
        "intermediate_size": 48,
        "patch_size": 14,
        "window_size": 56,
        "fullatt_block_indexes": [1],
    }
    return Qwen2_5_VLConfig(text_config=text, vision_config=vision, **special)


def save_colqwen2(folder: Path, *, seed: int = 0) -> Path:
    from colpali_engine.models import ColQwen2, ColQwen2Processor

    processor = qwen_processor(ColQwen2Processor)
    _save(randomise(ColQwen2(qwen_config(processor, generation="2")), seed), folder)
    processor.save_pretrained(folder)
    return folder


def save_colqwen25(folder: Path, *, seed: int = 0) -> Path:
    from colpali_engine.models import ColQwen2_5, ColQwen2_5_Processor

    processor = qwen_processor(ColQwen2_5_Processor)
    _save(randomise(ColQwen2_5(qwen_config(processor, generation="2.5")), seed), folder)
    processor.save_pretrained(folder)
    return folder


def idefics_processor(processor_class):
    """A processor that cuts pages into tiles; sizes of a tile and a patch, and how many patches a side make a token."""
    from transformers import Idefics3ImageProcessor

    tiles = [f"<row_{row + 1}_col_{col + 1}>" for row in range(6) for col in range(6)]
    tokenizer = trained_tokenizer(
        ["<pad>", "<|im_start|>", "<end_of_utterance>", "<image>", "<fake_token_around_image>", "<global-img>", *tiles],
        pad="<pad>",
        eos="<end_of_utterance>",
        side="left",
    )
    tile, patch, merged = 56, 14, 2
    per_tile = (tile // patch // merged) ** 2
    images = Idefics3ImageProcessor(size={"longest_edge": 3 * tile}, max_image_size={"longest_edge": tile})
    processor = processor_class(image_processor=images, tokenizer=tokenizer, image_seq_len=per_tile)
    return processor, tile, patch, merged


def save_colidefics3(folder: Path, *, seed: int = 0) -> Path:
    from colpali_engine.models import ColIdefics3, ColIdefics3Processor
    from transformers import Idefics3Config

    processor, tile, patch, merged = idefics_processor(ColIdefics3Processor)
    tokenizer = processor.tokenizer
    vision = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = Idefics3Config(
        vision_config={**vision, "image_size": tile, "patch_size": patch},
        text_config={
            "model_type": "llama",
            "vocab_size": len(tokenizer),
            "hidden_size": 48,
            "intermediate_size": 64,
            "num_hidden_layers": 3,
            "num_attention_heads": 6,
            "num_key_value_heads": 2,
            "pad_token_id": 0,
            "bos_token_id": None,
            "eos_token_id": 2,
        },
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        scale_factor=merged,
    )
    _save(randomise(ColIdefics3(config), seed), folder)
    processor.save_pretrained(folder)
    return folder


def save_base_model(retriever: Path, folder: Path, *, seed: int = 9) -> Path:
    """A pre-retrieval base model with the geometry of a tiny retriever, as the base-backbone probe reads it."""
    import transformers
    from transformers import AutoConfig

    from harness.backbones.attention_source import BASE_MODELS

    config = AutoConfig.from_pretrained(str(retriever))
    model_class = getattr(transformers, BASE_MODELS[config.model_type][0])
    _save(randomise(model_class(config), seed), folder)
    return folder


def _save(model, folder: Path) -> None:
    model.save_pretrained(folder)
    assert json.loads((folder / "config.json").read_text())
