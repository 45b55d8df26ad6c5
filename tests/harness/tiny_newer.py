"""Tiny checkpoints of the families that came after ColQwen2.5 and ColSmol, made as those in `tiny_checkpoints.py`."""

from __future__ import annotations

import harness.compat  # noqa: F401

from pathlib import Path
from typing import Any

import torch

from tests.harness.tiny_checkpoints import (
    QWEN_SPECIAL,
    _save,
    idefics_processor,
    qwen_config,
    randomise,
    trained_tokenizer,
)

ROPE = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3], "mrope_interleaved": True}
GEMMA_CHAT = (
    "{{ bos_token }}{% for message in messages %}<start_of_turn>{{ message['role'] }}\n"
    "{% for part in message['content'] %}{% if part['type'] == 'image' %}<start_of_image>{% else %}{{ part['text'] }}"
    "{% endif %}{% endfor %}<end_of_turn>\n{% endfor %}"
)


def save_colqwen3(folder: Path, *, seed: int = 0) -> Path:
    from colpali_engine.models import ColQwen3, ColQwen3Processor
    from transformers import Qwen3VLConfig

    return _save_qwen3(folder, ColQwen3, ColQwen3Processor, Qwen3VLConfig, {"deepstack_visual_indexes": [0]}, {}, seed)


def save_colqwen35(folder: Path, *, seed: int = 0) -> Path:
    """Eight layers, of which the fourth and the last have attention."""
    from colpali_engine.models import ColQwen3_5, ColQwen3_5Processor
    from transformers import Qwen3_5Config

    text = {"num_hidden_layers": 8, "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 2}
    text |= {"linear_key_head_dim": 8, "linear_value_head_dim": 8, "linear_num_key_heads": 2}
    text |= {"linear_num_value_heads": 4, "rope_parameters": {**ROPE, "partial_rotary_factor": 1.0}}
    return _save_qwen3(folder, ColQwen3_5, ColQwen3_5Processor, Qwen3_5Config, {}, text, seed)


def _save_qwen3(folder: Path, model: Any, processor_class: Any, config_class: Any, vision: Any, text: Any, seed: int):
    from transformers import Qwen2VLImageProcessor, Qwen3VLVideoProcessor

    tokenizer = trained_tokenizer(
        [f"<|{name}|>" for name in QWEN_SPECIAL], pad="<|endoftext|>", eos="<|im_end|>", side="left"
    )
    pixels = {"min_pixels": 4 * 32 * 32, "max_pixels": 48 * 32 * 32}
    processor = processor_class(
        image_processor=Qwen2VLImageProcessor(patch_size=16, **pixels),
        tokenizer=tokenizer,
        video_processor=Qwen3VLVideoProcessor(),
    )
    fields = qwen_config(processor, generation="2.5").to_dict()
    special = {key: fields[key] for key in fields if key.endswith("_token_id") and "vision" in key}
    special |= {"image_token_id": fields["image_token_id"], "video_token_id": fields["video_token_id"]}
    own = {"vocab_size": len(tokenizer), "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4}
    own |= {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "rope_parameters": ROPE}
    eyes = {"depth": 2, "hidden_size": 32, "intermediate_size": 48, "num_heads": 2, "out_hidden_size": 64}
    eyes |= {"num_position_embeddings": 64, "patch_size": 16}
    config = config_class(text_config={**own, **text}, vision_config={**eyes, **vision}, **special)
    with torch.random.fork_rng():  # decay rates of the recurrent layers are drawn when the model is made
        torch.manual_seed(seed)
        made = model(config)
    _save(randomise(made, seed), folder)
    processor.save_pretrained(folder)
    return folder


def save_colgemma3(folder: Path, *, seed: int = 0) -> Path:
    from colpali_engine.models import ColGemma3, ColGemmaProcessor3
    from transformers import Gemma3Config, Gemma3ImageProcessor

    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"]
    special += ["<start_of_image>", "<end_of_image>", "<image_soft_token>"]
    named = {"boi_token": "<start_of_image>", "eoi_token": "<end_of_image>", "image_token": "<image_soft_token>"}
    tokenizer = trained_tokenizer(special, pad="<pad>", bos="<bos>", eos="<eos>", side="left", named=named)
    tokenizer.chat_template = GEMMA_CHAT
    images = Gemma3ImageProcessor(size={"height": 112, "width": 112})
    processor = ColGemmaProcessor3(image_processor=images, tokenizer=tokenizer, image_seq_length=16)
    text = {"vocab_size": len(tokenizer), "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 4}
    text |= {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "sliding_window": 8}
    text |= {"layer_types": ["sliding_attention", "full_attention"] * 2, "query_pre_attn_scalar": 16}
    vision = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
    ids = {f"{name.replace('_token', '')}_token_index": tokenizer.convert_tokens_to_ids(t) for name, t in named.items()}
    config = Gemma3Config(
        text_config=text, vision_config={**vision, "image_size": 112, "patch_size": 14}, mm_tokens_per_image=16, **ids
    )
    _save(randomise(ColGemma3(config), seed), folder)
    processor.save_pretrained(folder)
    return folder


def save_colmodernvbert(folder: Path, *, seed: int = 0) -> Path:
    from colpali_engine.models import ColModernVBert, ColModernVBertProcessor
    from transformers import ModernVBertConfig

    processor, tile, patch, merged = idefics_processor(ColModernVBertProcessor)
    vocabulary = processor.tokenizer
    vision = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
    text = {"vocab_size": len(vocabulary), "hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 3}
    text |= {"num_attention_heads": 6, "pad_token_id": 0, "local_attention": 8, "model_type": "modernbert"}
    text |= {"layer_types": ["full_attention", "sliding_attention", "full_attention"]}
    text |= dict.fromkeys(("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"), 2)
    vision |= {"model_type": "siglip_vision_model", "image_size": tile, "patch_size": patch}
    config = ModernVBertConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=vocabulary.convert_tokens_to_ids("<image>"),
        pixel_shuffle_factor=merged,
    )
    _save(randomise(ColModernVBert(config), seed), folder)
    processor.save_pretrained(folder)
    return folder


OMNI_CHAT = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def save_colqwen_omni(folder: Path, *, seed: int = 0) -> Path:
    from colpali_engine.models import ColQwen2_5OmniProcessor
    from transformers import Qwen2VLImageProcessor, Qwen2VLVideoProcessor, WhisperFeatureExtractor
    from transformers.models.qwen2_5_omni import Qwen2_5OmniThinkerConfig

    from harness.backbones.colqwen_omni import ColQwenOmniBackbone

    names = [*QWEN_SPECIAL, "audio_pad", "audio_start", "audio_end"]
    named = {"image_token": "image_pad", "video_token": "video_pad", "audio_token": "audio_pad"}
    named |= {"vision_bos_token": "vision_start", "vision_eos_token": "vision_end"}
    named |= {"audio_bos_token": "audio_start", "audio_eos_token": "audio_end"}
    tokenizer = trained_tokenizer(
        [f"<|{name}|>" for name in names],
        pad="<|endoftext|>",
        eos="<|im_end|>",
        side="left",
        named={key: f"<|{name}|>" for key, name in named.items()},
    )
    tokenizer.chat_template = OMNI_CHAT
    pixels = {"min_pixels": 4 * 28 * 28, "max_pixels": 48 * 28 * 28}
    processor = ColQwen2_5OmniProcessor(
        image_processor=Qwen2VLImageProcessor(**pixels),
        video_processor=Qwen2VLVideoProcessor(**pixels),
        feature_extractor=WhisperFeatureExtractor(feature_size=128),
        tokenizer=tokenizer,
        chat_template=OMNI_CHAT,
    )
    fields = qwen_config(processor, generation="2.5").to_dict()
    special = {key: fields[key] for key in fields if key.endswith("_token_id") and "vision" in key}
    special |= {"image_token_id": fields["image_token_id"], "video_token_id": fields["video_token_id"]}
    special |= {"audio_token_id": tokenizer.convert_tokens_to_ids("<|audio_pad|>")}
    text = {key: fields["text_config"][key] for key in ("vocab_size", "hidden_size", "intermediate_size")}
    text |= {"num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2}
    text |= {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]}}
    eyes = {"depth": 2, "hidden_size": 32, "out_hidden_size": 64, "num_heads": 2, "intermediate_size": 48}
    eyes |= {"window_size": 56, "fullatt_block_indexes": [1]}
    ears = {"d_model": 32, "encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 32, "output_dim": 64}
    config = Qwen2_5OmniThinkerConfig(text_config=text, vision_config=eyes, audio_config=ears, **special)
    _save(randomise(ColQwenOmniBackbone.classes()[0](config), seed), folder)
    processor.save_pretrained(folder)
    return folder
