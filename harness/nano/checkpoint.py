"""The nano model in colpali-engine's own classes: configuration, tokenizer, processor, and their folder.

ColPali hard-codes an output dimension of 128; everything else is small. One word is one token.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

from pathlib import Path

import torch
from colpali_engine.models import ColPali, ColPaliProcessor
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers
from transformers import PaliGemmaConfig, PreTrainedTokenizerFast, SiglipImageProcessor

from harness.minidocs.drawing import ROW, SIDE
from harness.minidocs.vocabulary import all_words

FOLDER = Path(__file__).parent / "checkpoint"
BASE = Path(__file__).parent / "base"
"""The same run before its first contrast step: what `base-probe` compares the checkpoint with."""

WIDTH = 128
GRID = SIDE // ROW
SPECIAL = ("<pad>", "<bos>", "<eos>", "<unk>", "<image>")
PROMPT = ("\n", "query", ":", "describe", "image", ".")
"""Tokens of ColPali's two templates, `Query: …` and `Describe the image.\\n`, beyond the vocabulary of minidocs."""

PIXEL_MEAN, PIXEL_STD = 1.0, 0.35
"""White paper becomes exactly 0, so an empty patch adds nothing to the patch embedding but its position."""


def build_tokenizer() -> PreTrainedTokenizerFast:
    words = dict.fromkeys((*SPECIAL, *PROMPT, *all_words()))
    tokenizer = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    # Whitespace splitting would lose the newline that ends ColPali's page prompt.
    tokenizer.add_tokens([AddedToken("\n", normalized=False)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        bos_token="<bos>",
        eos_token="<eos>",
        unk_token="<unk>",
        extra_special_tokens={"image_token": "<image>"},
        padding_side="right",
    )


def build_image_processor() -> SiglipImageProcessor:
    processor = SiglipImageProcessor(
        size={"height": SIDE, "width": SIDE}, image_mean=[PIXEL_MEAN] * 3, image_std=[PIXEL_STD] * 3
    )
    # PaliGemma's processor asks its image processor how many tokens an image becomes.
    processor.image_seq_length = GRID * GRID  # type: ignore[attr-defined]
    return processor


def build_config(tokenizer: PreTrainedTokenizerFast) -> PaliGemmaConfig:
    vocabulary = -(-len(tokenizer) // 8) * 8
    return PaliGemmaConfig(
        vision_config={
            "model_type": "siglip_vision_model",
            "image_size": SIDE,
            "patch_size": ROW,
            "hidden_size": WIDTH,
            "intermediate_size": 2 * WIDTH,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "vision_use_head": False,
        },
        text_config={
            "model_type": "gemma",
            "vocab_size": vocabulary,
            "hidden_size": WIDTH,
            "intermediate_size": 2 * WIDTH,
            "num_hidden_layers": 8,
            "num_attention_heads": 4,
            "num_key_value_heads": 1,
            "head_dim": WIDTH // 4,
            "max_position_embeddings": 512,
            "pad_token_id": tokenizer.pad_token_id,
            "bos_token_id": tokenizer.bos_token_id,
            "eos_token_id": tokenizer.eos_token_id,
        },
        projection_dim=WIDTH,
        hidden_size=WIDTH,
        vocab_size=vocabulary,
        image_token_index=SPECIAL.index("<image>"),
    )


def build_model(seed: int) -> ColPali:
    torch.manual_seed(seed)
    return ColPali(build_config(build_tokenizer()))


def build_processor() -> ColPaliProcessor:
    return ColPaliProcessor(image_processor=build_image_processor(), tokenizer=build_tokenizer())


def save(model: ColPali, folder: Path) -> None:
    """Write weights in half precision, configuration, tokenizer and processor."""
    save_weights(model, folder)
    build_processor().save_pretrained(folder)


def save_weights(model: ColPali, folder: Path) -> None:
    """Weights in half precision and configuration: all that a base needs, which never sees a query."""
    folder.mkdir(parents=True, exist_ok=True)
    half = ColPali(model.config)
    half.load_state_dict(model.state_dict())
    half.half().save_pretrained(folder)


def load(folder: Path = FOLDER) -> tuple[ColPali, ColPaliProcessor]:
    """The plain colpali-engine way, in float32, without the vocabulary logits nobody reads."""
    model = ColPali.from_pretrained(folder, dtype=torch.float32).eval()
    model.model.lm_head = torch.nn.Identity()
    return model, ColPaliProcessor.from_pretrained(folder)
