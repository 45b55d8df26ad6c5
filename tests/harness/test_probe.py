"""The captured signals are those of eager attention with all its maps, and capturing changes no bit of the vectors."""

from __future__ import annotations

import harness.compat  # noqa: F401

import math

import pytest
import torch
from transformers import AttentionMaskInterface

from harness.backbones import attention_sums, probe, registry
from harness.backbones.contract import Options
from harness.backbones.probe import ATTENTION_NAME, ATTENTION_SIGNALS, Recorder
from harness.verification import eager
from tests.harness.page_images import page_image

BACKBONES = ["colpali", "colqwen2", "colqwen2.5", "colsmol", "jina-v4"]
BACKBONES += ["colqwen3", "colqwen3.5", "colgemma3", "colmodernvbert", "colqwen-omni"]
TOLERANCE = 2e-5
SIZES = [(200, 260), (300, 150), (120, 120)]


def padded(inputs, side: str, amount: int = 5):
    """The same batch with more padding tokens: ColPali pages are all equally long, so none arise by themselves."""
    for name in ("input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids"):
        if name in inputs:
            where = (amount, 0) if side == "left" else (0, amount)
            inputs[name] = torch.nn.functional.pad(inputs[name], where, value=0)
    return inputs


@pytest.fixture
def eager_signals():
    """Signals by the textbook: every attention map held, padding rows left out, summed in float64."""

    def compute(backbone, inputs):
        visual, valid = backbone.visual_tokens(inputs), inputs["attention_mask"].bool()
        return eager.eager_signals(backbone.model, inputs, visual, valid, backbone.attention_layers)

    return compute


def captured_signals(backbone, inputs):
    visual = backbone.visual_tokens(inputs)
    with torch.inference_mode(), probe.capturing(visual, inputs["attention_mask"]) as recorder:
        vectors = backbone.model(**inputs)
    return recorder.signals(backbone.attention_layers), vectors


def worst_difference(got, expected):
    return max(
        float((page[name].double() - truth[name]).abs().max())
        for page, truth in zip(got, expected, strict=True)
        for name in ATTENTION_SIGNALS
    )


@pytest.mark.parametrize("name", BACKBONES)
@pytest.mark.parametrize("side", ["left", "right", None])
@pytest.mark.parametrize("batch", [1, 3])
def test_signals_equal_eager_attention(tiny_backbone, eager_signals, name, side, batch):
    backbone = tiny_backbone(name)
    backbone.processor.tokenizer.padding_side = side or "left"
    images = [page_image(size, seed) for seed, size in enumerate(SIZES[:batch])]
    inputs = backbone.page_inputs(images)
    inputs = padded(inputs, side) if side else inputs
    got, _ = captured_signals(backbone, inputs)
    assert worst_difference(got, eager_signals(backbone, inputs)) <= TOLERANCE


@pytest.mark.parametrize("name", BACKBONES)
def test_row_block_path_equals_eager_attention(tiny_backbone, eager_signals, monkeypatch, name):
    monkeypatch.setattr(probe, "_has_flash_with_lse", lambda *_: False)
    monkeypatch.setattr(attention_sums, "BLOCK_BYTES", 3000)  # several blocks even for these short sequences
    backbone = tiny_backbone(name)
    inputs = backbone.page_inputs([page_image(size, seed) for seed, size in enumerate(SIZES)])
    got, _ = captured_signals(backbone, inputs)
    assert worst_difference(got, eager_signals(backbone, inputs)) <= TOLERANCE


@pytest.mark.parametrize("name", BACKBONES)
@pytest.mark.parametrize("side", ["left", "right"])
def test_all_pages_at_once_as_on_a_gpu_equal_eager_attention(tiny_backbone, eager_signals, monkeypatch, name, side):
    monkeypatch.setattr(Recorder, "all_at_once", True)
    monkeypatch.setattr(attention_sums, "BATCH_BLOCK_BYTES", 100_000)  # several blocks of rows
    monkeypatch.setattr(probe, "page_signals", None)  # nothing is done page by page
    backbone = tiny_backbone(name)
    inputs = padded(backbone.page_inputs([page_image(size, seed) for seed, size in enumerate(SIZES)]), side)
    got, _ = captured_signals(backbone, inputs)
    assert worst_difference(got, eager_signals(backbone, inputs)) <= TOLERANCE


@pytest.mark.parametrize("name", BACKBONES)
def test_a_lost_mask_would_be_noticed(tiny_backbone, eager_signals, name):
    """Negative control: without its mask function transformers silently passes no mask, and the comparison fails."""
    backbone = tiny_backbone(name)
    inputs = padded(backbone.page_inputs([page_image(size, seed) for seed, size in enumerate(SIZES)]), "left")
    expected = eager_signals(backbone, inputs)
    mapping = AttentionMaskInterface._global_mapping
    function = mapping.pop(ATTENTION_NAME)
    try:
        got, _ = captured_signals(backbone, inputs)
    finally:
        mapping[ATTENTION_NAME] = function
    assert worst_difference(got, expected) > 100 * TOLERANCE


@pytest.mark.parametrize("name", BACKBONES)
@pytest.mark.parametrize("batch", [1, 3])
def test_vectors_are_bit_identical_to_plain_sdpa(tiny_backbone, name, batch):
    backbone = tiny_backbone(name)
    inputs = backbone.page_inputs([page_image(size, seed) for seed, size in enumerate(SIZES[:batch])])
    _, vectors = captured_signals(backbone, inputs)
    backbone.model.set_attn_implementation("sdpa")
    try:
        with torch.inference_mode():
            plain = backbone.model(**inputs)
    finally:
        probe.attach(backbone.model)
    assert torch.equal(vectors, plain)


@pytest.mark.parametrize("name", ["colpali", "colqwen2"])
def test_half_precision_weights_keep_vectors_and_float32_signals(checkpoints, eager_signals, name):
    """bfloat16 weights: the vectors are still SDPA's bit for bit; signals are float32 sums."""
    backbone = registry.load(f"{name}={checkpoints(name)}", Options(device="cpu", dtype="bfloat16"))
    inputs = backbone.page_inputs([page_image(size, seed) for seed, size in enumerate(SIZES)])
    got, vectors = captured_signals(backbone, inputs)
    assert all(signal.dtype == torch.float32 for page in got for signal in page.values())
    # Eager attention rounds every weight to bfloat16, so deeper layers drift apart; the first sees the same input.
    for page, truth in zip(got, eager_signals(backbone, inputs), strict=True):
        for signal in ATTENTION_SIGNALS:
            torch.testing.assert_close(page[signal][0].double(), truth[signal][0], atol=0.01, rtol=0.01)
    backbone.model.set_attn_implementation("sdpa")
    with torch.inference_mode():
        assert torch.equal(vectors, backbone.model(**inputs))


@pytest.mark.parametrize("name", BACKBONES)
def test_only_the_text_decoder_is_probed(tiny_backbone, name):
    config = tiny_backbone(name).model.config
    assert config.text_config._attn_implementation == ATTENTION_NAME
    assert config.vision_config._attn_implementation == "sdpa"


@pytest.mark.parametrize("heads_kv", [(8, 8), (8, 2), (6, 1)])
@pytest.mark.parametrize("pattern", [attention_sums.FULL, attention_sums.CAUSAL, attention_sums.OTHER])
@pytest.mark.parametrize("scattered", [False, True])
def test_tiles_and_blocks_equal_dense_attention(heads_kv, pattern, scattered):
    """Longer than one tile in both directions, lengths that divide nothing, visual tokens in one run or in several."""
    heads, kv = heads_kv
    tokens, dim, scale = 701, 24, 0.31
    generator = torch.Generator().manual_seed(1)
    query = torch.randn(1, heads, tokens, dim, generator=generator)
    key, value = (torch.randn(1, kv, tokens, dim, generator=generator) for _ in range(2))
    visual = torch.zeros(1, tokens, dtype=torch.bool)
    visual[0, 5:690] = True
    if scattered:
        visual[0, 300:307] = False
    past = torch.ones(tokens, tokens).tril().bool()
    mask = {
        attention_sums.FULL: torch.ones(tokens, tokens, dtype=torch.bool),
        attention_sums.CAUSAL: past,
        attention_sums.OTHER: past & (torch.rand(tokens, tokens, generator=generator) < 0.7),
    }[pattern][None, None]
    mask = mask | torch.eye(tokens, dtype=torch.bool)
    recorder = Recorder(visual, torch.ones_like(visual))
    assert recorder._pattern(0, mask, False) == pattern
    _, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        query, key, value, 0.0, False, attn_mask=probe._additive(mask, torch.float32), scale=scale
    )
    recorder.record(0, query, key, scale=scale, mask=mask, causal=False, lse=lse)
    (got,) = recorder.signals(range(1))

    repeated = key.repeat_interleave(heads // kv, 1).double()
    logits = (query.double() @ repeated.transpose(2, 3) * scale).masked_fill(~mask, -math.inf)
    attention = logits.softmax(-1)[0]
    truth = attention[:, visual[0]][..., visual[0]].sum(1)
    # Column sums reach into the tens here, so the bound is relative as well.
    torch.testing.assert_close(got["indegree"][0].double(), truth.mean(0), atol=TOLERANCE, rtol=1e-5)
    torch.testing.assert_close(got["indegree_max"][0].double(), truth.amax(0), atol=TOLERANCE, rtol=1e-5)


def test_signals_stay_float32_under_bfloat16_weights():
    tokens, generator = 300, torch.Generator().manual_seed(2)
    query, key = (torch.randn(1, 4, tokens, 16, generator=generator).bfloat16() for _ in range(2))
    everything = torch.ones(1, tokens, dtype=torch.bool)
    recorder = Recorder(everything, everything)
    recorder.record(0, query, key, scale=0.25, mask=None, causal=False, lse=None)
    (got,) = recorder.signals(range(1))
    logits = query.double() @ key.double().transpose(2, 3) * 0.25
    assert got["indegree"].dtype == torch.float32
    torch.testing.assert_close(
        got["indegree"][0].double(), logits.softmax(-1)[0].sum(1).mean(0), atol=TOLERANCE, rtol=1e-5
    )
