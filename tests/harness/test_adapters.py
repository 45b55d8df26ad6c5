"""Checkpoints that are more than one set of weights: LoRA adapters, Jina's task adapters, and borrowed attention."""

from __future__ import annotations

import harness.compat  # noqa: F401

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from harness.backbones import colqwen2, registry
from harness.backbones.attention_source import with_attention_from
from harness.backbones.checkpoint import CheckpointError
from harness.backbones.contract import Options
from harness.backbones.tensor_names import plain_name
from harness.encode import store_folder
from pruners.core.errors import PruneBoardError
from tests.harness import published_layouts as published
from tests.harness import tiny_adapters
from tests.harness import tiny_checkpoints as tiny
from tests.harness.test_backbones import PAGES, QUERIES, ROUNDING

CPU = Options(device="cpu")


@pytest.fixture(scope="module", params=[False, True], ids=["new names", "old names"])
def lora(request, checkpoints, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lora") / "adapter"
    return tiny_adapters.save_lora(checkpoints("colqwen2"), folder, old_names=request.param)


def test_every_lora_tensor_arrives(lora):
    saved = load_file(lora / "adapter_model.safetensors")
    backbone = registry.load(f"colqwen2={lora}", CPU)
    loaded = [tensor for name, tensor in backbone.model.state_dict().items() if "lora_" in name]
    assert len(saved) == len(loaded) == 2 * (4 * 7 + 1)  # 7 projections in 4 layers, and the output projection
    for tensor in saved.values():
        assert any(torch.equal(tensor, other) for other in loaded if other.shape == tensor.shape)


def test_lora_vectors_are_those_of_merged_weights(checkpoints, lora, tmp_path):
    """The adapter changes the vectors, and by exactly scale · B · A in every weight."""
    merged = tmp_path / "merged"
    shutil.copytree(checkpoints("colqwen2"), merged)
    state, halves = load_file(merged / "model.safetensors"), load_file(lora / "adapter_model.safetensors")
    for key, down in halves.items():
        if "lora_A" in key:
            module = key.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
            module = module.replace("model.layers", "language_model.layers").replace("language_language_", "language_")
            (weight,) = [name for name in state if name.endswith(f"{module}.weight")]
            state[weight] += 2.0 * halves[key.replace("lora_A", "lora_B")] @ down  # alpha / r = 8 / 4
    save_file(state, merged / "model.safetensors", metadata={"format": "pt"})
    with_adapter, without = registry.load(f"colqwen2={lora}", CPU), registry.load(f"colqwen2={merged}", CPU)
    plain = registry.load(f"colqwen2={checkpoints('colqwen2')}", CPU)
    for page, truth, other in zip(*(b.encode_pages(PAGES[:2]) for b in (with_adapter, without, plain)), strict=True):
        torch.testing.assert_close(page.vectors, truth.vectors, atol=ROUNDING, rtol=0)
        torch.testing.assert_close(page.signals["indegree"], truth.signals["indegree"], atol=1e-4, rtol=0)
        assert (page.vectors - other.vectors).abs().max() > 0.05


def test_a_lost_lora_tensor_is_an_error(lora, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(lora, broken)
    tensors = load_file(broken / "adapter_model.safetensors")
    key = sorted(tensors)[5]
    tensors[key.replace("layers.0", "layers.77")] = tensors.pop(key)
    save_file(tensors, broken / "adapter_model.safetensors")
    with pytest.raises(CheckpointError, match=r"1 tensors of the adapter .* did not arrive"):
        _ = registry.load(f"colqwen2={broken}", CPU).model


def test_an_adapter_without_its_base_model_says_so(lora, tmp_path):
    orphan = tmp_path / "orphan"
    shutil.copytree(lora, orphan)
    config = json.loads((orphan / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = str(tmp_path / "nowhere")
    (orphan / "adapter_config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=r"no checkpoint folder .*nowhere"):
        registry.load(f"colqwen2={orphan}", CPU)


@pytest.mark.parametrize("old_names", [False, True])
def test_jina_vectors_are_those_of_its_unmerged_adapter(tmp_path, old_names):
    """Jina's forward by hand: the base model, LoRA applied to activations by hooks, its projector, unit norm."""
    from colpali_engine.models import ColQwen2_5
    from transformers import Qwen2_5_VLModel

    folder = tiny_adapters.save_jina_v4(tmp_path / "jina", old_names=old_names)
    backbone = registry.load(f"jina-v4={folder}", CPU)
    state = {plain_name(k): v for k, v in load_file(folder / "model.safetensors").items()}
    state = {k: v for k, v in state.items() if k.split(".")[0] not in ("lm_head", "single_vector_projector")}
    reference = ColQwen2_5(backbone.config).eval()
    reference.load_state_dict(state)
    halves = {plain_name(k): v for k, v in load_file(folder / "adapters/adapter_model.safetensors").items()}
    modules = dict(reference.named_modules())
    for key, down in halves.items():
        if key.endswith(".lora_A.retrieval.weight"):
            up = halves[key.replace("lora_A", "lora_B")]
            modules[key.removesuffix(".lora_A.retrieval.weight")].register_forward_hook(
                lambda module, args, out, down=down, up=up: out + 2.0 * args[0] @ down.T @ up.T
            )
    reference.config._attn_implementation = "sdpa"
    inputs = backbone.page_inputs(PAGES)
    assert backbone.processor.tokenizer.decode(inputs["input_ids"][0]).endswith("Describe the image.<|im_end|>\n")
    with torch.inference_mode():
        kwargs = dict(inputs)
        counts = kwargs["image_grid_thw"].prod(-1).tolist()
        kwargs["pixel_values"] = torch.cat([p[:n] for p, n in zip(kwargs["pixel_values"], counts, strict=True)])
        hidden = Qwen2_5_VLModel.forward(reference, **kwargs, use_cache=False).last_hidden_state
        truth = torch.nn.functional.normalize(reference.custom_text_proj(hidden), dim=-1)
    visual = backbone.processor.get_image_mask(inputs)
    for row, page in enumerate(backbone.encode_pages(PAGES)):
        torch.testing.assert_close(page.vectors, truth[row][visual[row]], atol=ROUNDING, rtol=0)


def test_jina_without_its_adapter_is_refused(checkpoints, tmp_path):
    folder = tmp_path / "jina"
    shutil.copytree(checkpoints("jina-v4"), folder)
    (folder / "adapters" / "adapter_model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"lacks adapters/adapter_model\.safetensors"):
        _ = registry.load(f"jina-v4={folder}", CPU).model


@pytest.mark.parametrize("name", ["colpali", "colqwen2", "colqwen2.5"])
def test_attention_from_the_base_model(checkpoints, tiny_backbone, tmp_path, name):
    """Vectors and ink stay the retriever's; attention is that of the base model, which is another one."""
    from harness.benchmarks.data_set import read_folder
    from tests.harness.benchmark_folder import write_benchmark

    retriever = tiny_backbone(name)
    base = tiny.save_base_model(checkpoints(name), tmp_path / "base")
    probed = with_attention_from(retriever, str(base))
    for page, own in zip(probed.encode_pages(PAGES), retriever.encode_pages(PAGES), strict=True):
        assert torch.equal(page.vectors, own.vectors)
        assert torch.equal(page.signals["ink"], own.signals["ink"])
        for signal in ("indegree", "indegree_max", "all_to_visual", "eos"):
            assert page.signals[signal].shape == own.signals[signal].shape
            assert (page.signals[signal] - own.signals[signal]).abs().max() > 1e-3
    assert torch.equal(probed.encode_queries(QUERIES)[1], retriever.encode_queries(QUERIES)[1])
    benchmark = read_folder(write_benchmark(tmp_path / "pages"))
    assert store_folder(tmp_path, probed, benchmark) != store_folder(tmp_path, retriever, benchmark)


@pytest.mark.parametrize("name", ["colpali", "colqwen2"])
def test_base_is_the_model_that_the_retrievers_own_adapter_names(checkpoints, tmp_path, name):
    """A published adapter over its published base: attention is the base's, without the adapter and its projection."""
    saved = {"colpali": published.published_colpali_base, "colqwen2": published.published_colqwen2_base}[name]
    base = saved(checkpoints(name), tmp_path / "base")
    retriever = registry.load(f"{name}={published.published_adapter(base, tmp_path / 'adapter', name)}", CPU)
    probed = with_attention_from(retriever, "base")
    assert probed.checkpoint == retriever.checkpoint.base
    assert probed.checkpoint.name == str(base)
    alone = registry.load(f"{name}={base}", CPU)  # the base read as a retriever: the same decoder
    for page, truth, own in zip(*(b.encode_pages(PAGES[:2]) for b in (probed, alone, retriever)), strict=True):
        torch.testing.assert_close(page.signals["indegree"], truth.signals["indegree"], atol=1e-4, rtol=0)
        assert (page.signals["indegree"] - own.signals["indegree"]).abs().max() > 1e-3
        assert torch.equal(page.vectors, own.vectors)


def test_a_retriever_that_names_no_base_gets_the_one_of_its_kind(tiny_backbone, tmp_path, monkeypatch):
    """Not on this disk, so it is asked for by name: ColPali was made of pt-448, not of mix-448."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(CheckpointError, match="'google/paligemma-3b-pt-448'"):
        with_attention_from(tiny_backbone("colpali"), "base")


@pytest.mark.parametrize("name", ["colpali", "colqwen2", "colqwen2.5"])
def test_a_hole_in_the_base_model_is_an_error(checkpoints, tiny_backbone, tmp_path, name):
    base = tiny.save_base_model(checkpoints(name), tmp_path / "base")
    broken, _ = published.without(base, tmp_path / "broken", r"layers\.1\.self_attn\.q_proj\.weight")
    with pytest.raises(CheckpointError, match=r"layers\.1\.self_attn\.q_proj\.weight; they would be random"):
        _ = with_attention_from(tiny_backbone(name), str(broken)).model


@pytest.mark.parametrize("name", ["colpali", "colqwen2"])
def test_the_retrievers_own_weights_as_base_give_its_own_signals(checkpoints, tiny_backbone, tmp_path, name):
    """Alignment: a base model with the retriever's decoder weights must reproduce the retriever's signals."""
    retriever = tiny_backbone(name)
    base = tiny.save_base_model(checkpoints(name), tmp_path / "base")
    probed = with_attention_from(retriever, str(base))
    inner = retriever.model.model.model if name == "colpali" else retriever.model
    weights = {k: v for k, v in inner.state_dict().items() if not k.startswith("custom_text_proj")}
    probed.model.model.load_state_dict(weights)
    for page, own in zip(probed.encode_pages(PAGES), retriever.encode_pages(PAGES), strict=True):
        for signal in retriever.card.signals:
            torch.testing.assert_close(page.signals[signal], own.signals[signal], atol=ROUNDING, rtol=0)


def test_a_base_model_of_another_geometry_is_refused(checkpoints, tiny_backbone, tmp_path):
    other = tiny.save_colpali(tmp_path / "other", image_size=84)
    base = tiny.save_base_model(other, tmp_path / "base")
    with pytest.raises(PruneBoardError, match="image size 84 there, 56 here"):
        with_attention_from(tiny_backbone("colpali"), str(base))
    with pytest.raises(PruneBoardError, match="knows no base model for colsmol"):
        with_attention_from(tiny_backbone("colsmol"), str(base))
    assert colqwen2.ColQwen2Backbone.signals_from.startswith("the retriever's own")


def test_an_adapter_may_bring_the_projection_over_a_plain_base_model(checkpoints, tmp_path):
    """As retrievers trained straight from Qwen2.5-VL are published: the base has no projection, the adapter has it."""
    from colpali_engine.models import ColQwen2_5, ColQwen2_5_Processor
    from peft import LoraConfig, get_peft_model

    whole, base, adapter = checkpoints("colqwen2.5"), tmp_path / "base", tmp_path / "adapter"
    model = get_peft_model(
        ColQwen2_5.from_pretrained(str(whole), dtype=torch.float32),
        LoraConfig(r=4, target_modules=r".*language_model.*(q_proj|v_proj)$", modules_to_save=["custom_text_proj"]),
    )
    model.save_pretrained(adapter)
    ColQwen2_5_Processor.from_pretrained(str(whole)).save_pretrained(adapter)
    config = json.loads((adapter / "adapter_config.json").read_text()) | {"base_model_name_or_path": str(base)}
    (adapter / "adapter_config.json").write_text(json.dumps(config))
    shutil.copytree(whole, base)
    state = {k: v for k, v in load_file(base / "model.safetensors").items() if "custom_text_proj" not in k}
    save_file(state, base / "model.safetensors", metadata={"format": "pt"})
    found, expected = (registry.load(f"colqwen2.5={f}", CPU).encode_pages(PAGES[:2]) for f in (adapter, whole))
    for one, other in zip(found, expected, strict=True):  # a new adapter changes nothing yet, a random projection would
        torch.testing.assert_close(one.vectors, other.vectors, atol=ROUNDING, rtol=0)
    with pytest.raises(CheckpointError, match="custom_text_proj"):
        _ = registry.load(f"colqwen2.5={published_alone(base, adapter)}", CPU).model


def published_alone(base, adapter):
    """The base model with the adapter's processor, as if it were a retriever."""
    for file in adapter.iterdir():
        if not file.name.startswith("adapter"):
            shutil.copy(file, base)
    return base
