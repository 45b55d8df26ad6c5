"""What the machine decides (device, precision, batch), and what is pinned so that it decides nothing else."""

from __future__ import annotations

import harness.compat  # noqa: F401

import json

import pytest
import torch

from harness.backbones import base, batching, jina_v4, minilm, registry
from harness.backbones.attention_source import with_attention_from
from harness.backbones.checkpoint import CheckpointError
from harness.backbones.contract import Options
from pruners.core.errors import PruneBoardError
from tests.harness import tiny_adapters
from tests.harness import tiny_checkpoints as tiny
from tests.harness.page_images import page_image

GB = 2**30


@pytest.mark.parametrize(("card", "expected"), [(24, 20), (80, 64), (141, 64)])
def test_weights_are_no_part_of_what_a_page_takes(monkeypatch, card, expected):
    """Weights of 5 GB arrive with the first page; a page then takes 0.75 GB for a moment."""

    class Lazy:
        device, held, peak = "cuda", 0.0, 0.0

        def encode_pages(self, images):
            self.held = 5.0
            self.peak = max(self.peak, self.held + 0.75 * len(images))

    lazy = Lazy()
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda device: setattr(lazy, "peak", lazy.held))
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: lazy.held * GB)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: lazy.peak * GB)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: ((card - lazy.held) * GB, card * GB))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    assert batching.batch_size_for(lazy, lambda: "page") == expected


def test_memory_that_can_be_had_is_what_the_kernel_says():
    """Not what is free: files in the cache would count as taken."""
    import psutil

    assert batching.available_memory() == pytest.approx(psutil.virtual_memory().available, rel=0.2)


def test_a_device_that_is_not_there(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.version, "cuda", None)
    with pytest.raises(PruneBoardError, match=r"no device 'cuda' here: torch .* is a build for the CPU"):
        base.choose_device("cuda")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    assert base.choose_device("cuda:1").index == 1
    with pytest.raises(PruneBoardError, match=r"no device 'cuda:2' here: torch sees 2 cuda device"):
        base.choose_device("cuda:2")
    with pytest.raises(PruneBoardError, match="is no device"):
        base.choose_device("gpu")


@pytest.mark.parametrize(("instructions", "width", "dtype"), [(True, 2048, "bfloat16"), (True, 512, "float32")])
def test_precision_on_a_cpu_by_what_it_has(monkeypatch, instructions, width, dtype):
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: instructions)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    assert base.choose_dtype(None, torch.device("cpu"), width) == getattr(torch, dtype)
    assert base.choose_dtype("float16", torch.device("cpu"), width) == torch.float16
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    assert base.choose_dtype(None, torch.device("cpu"), width) == torch.float32
    assert base.choose_dtype(None, torch.device("cuda"), width) == torch.bfloat16


@pytest.mark.parametrize("name", ["colpali", "colqwen2", "colqwen2.5", "colsmol", "jina-v4"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_rotary_frequencies_are_never_rounded(checkpoints, tiny_backbone, name, dtype):
    half = registry.load(f"{name}={checkpoints(name)}", Options(device="cpu", dtype=dtype)).model
    assert next(half.parameters()).dtype == getattr(torch, dtype)
    exact = {k: v for k, v in tiny_backbone(name).model.named_buffers() if "inv_freq" in k}
    assert exact
    for key, frequencies in half.named_buffers():
        if "inv_freq" in key:
            assert torch.equal(frequencies, exact[key])


@pytest.mark.parametrize(
    "name", [entry.name for entry in registry.catalogue().values() if "/" in entry.options["checkpoint"]]
)
def test_default_names_are_pinned_to_mtebs_revisions(name):
    import mteb

    choice = registry.choose(name)
    pinned = minilm.PINNED if name == "minilm" else choice.revision
    assert pinned == mteb.get_model_meta(choice.checkpoint).revision
    assert registry.choose(f"{name}=owner/other").revision is None
    assert registry.choose(f"{name}=owner/other@main").revision == "main"


def test_an_adapter_whose_base_is_absent_says_what_helps(checkpoints, tmp_path, monkeypatch):
    """`--backbone NAME=FOLDER` would not help: the adapter is there. Its base is not."""
    from huggingface_hub import constants

    adapter = tiny_adapters.save_lora(checkpoints("colqwen2"), tmp_path / "adapter")
    file = adapter / "adapter_config.json"
    config = json.loads(file.read_text())
    file.write_text(json.dumps({**config, "base_model_name_or_path": "vidore/colqwen2-base"}))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(CheckpointError) as caught:
        registry.load(f"colqwen2={adapter}", Options(device="cpu"))
    text = str(caught.value)
    for part in ("LoRA adapter of the base model 'vidore/colqwen2-base'", "hf download vidore/colqwen2-base"):
        assert part in text
    assert "--backbone NAME=FOLDER" not in text
    file.write_text(json.dumps({**config, "base_model_name_or_path": str(checkpoints("colqwen2"))}))  # as it advises
    base_revision = registry.load(f"colqwen2={adapter}", Options(device="cpu")).checkpoint.base.revision
    assert registry.load(f"colqwen2={adapter}", Options(device="cpu")).card.revision.endswith(f"+{base_revision}")


def test_attention_from_another_family_is_refused_in_a_sentence(checkpoints, tiny_backbone, tmp_path):
    base_model = tiny.save_base_model(checkpoints("colqwen2"), tmp_path / "qwen")
    with pytest.raises(PruneBoardError, match="it is a qwen2_vl model, and colpali was made of a paligemma model"):
        with_attention_from(tiny_backbone("colpali"), str(base_model))


def test_attention_from_a_base_prepares_pages_once(checkpoints, tiny_backbone, tmp_path, monkeypatch):
    retriever = tiny_backbone("colqwen2")
    probed = with_attention_from(retriever, str(tiny.save_base_model(checkpoints("colqwen2"), tmp_path / "base")))
    _ = probed.card  # which a page is prepared for too
    prepared = []
    monkeypatch.setattr(
        type(retriever), "page_inputs", lambda self, images: prepared.append(1) or self.processor.process_images(images)
    )
    probed.encode_pages([page_image((120, 120))])
    assert len(prepared) == 1


def test_jinas_resolution_can_be_that_of_mteb(checkpoints, tmp_path):
    """MTEB's wrapper has `max_pixels=37788800`; the checkpoint's own processor here has 48 visual tokens at most."""
    import inspect

    from mteb.models.model_implementations.jina_models import JinaV4Wrapper

    (of_mteb,) = [
        parameter.default
        for _, function in inspect.getmembers(JinaV4Wrapper, inspect.isfunction)
        for name, parameter in inspect.signature(function).parameters.items()
        if name == "max_pixels"
    ]
    assert of_mteb == jina_v4.MTEB_VISUAL_TOKENS * 28**2
    page = page_image((900, 600))
    own = registry.load(f"jina-v4={checkpoints('jina-v4')}", Options(device="cpu"))
    options = Options(device="cpu", max_visual_tokens=jina_v4.MTEB_VISUAL_TOKENS)
    high = registry.load(f"jina-v4={checkpoints('jina-v4')}", options)
    (few,), (many,) = own.encode_pages([page]), high.encode_pages([page])
    assert len(few.vectors) <= 48
    assert many.grid == (round(600 / 28), round(900 / 28))
    assert high.card.max_visual_tokens == jina_v4.MTEB_VISUAL_TOKENS
