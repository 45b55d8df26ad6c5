"""Every weight of a network comes from a file, in the layouts in which retrievers are published, or loading stops."""

from __future__ import annotations

import harness.compat  # noqa: F401

import json
import re
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from harness.backbones import registry
from harness.backbones.checkpoint import CheckpointError
from harness.backbones.contract import Options
from tests.harness import published_layouts as published
from tests.harness.test_backbones import PAGES, ROUNDING

CPU = Options(device="cpu")
BASES = {"colpali": published.published_colpali_base, "colqwen2": published.published_colqwen2_base}
ADAPTER_FILE = "adapter_model.safetensors"


def load(name, folder):
    return registry.load(f"{name}={folder}", CPU)


def assert_same_pages(backbone, reference):
    for page, truth in zip(backbone.encode_pages(PAGES[:2]), reference.encode_pages(PAGES[:2]), strict=True):
        torch.testing.assert_close(page.vectors, truth.vectors, atol=ROUNDING, rtol=0)
        torch.testing.assert_close(page.signals["indegree"], truth.signals["indegree"], atol=1e-4, rtol=0)


def stops_and_names(backbone, names):
    """Loading stops, and the error has the first of the names (without what classes put before them)."""
    with pytest.raises(CheckpointError) as caught:
        _ = backbone.model
    text = str(caught.value)
    for name in names[:2]:
        assert re.split(r"model\.|layers\.", name)[-1] in text, text
    return text


@pytest.fixture(scope="module")
def base(checkpoints, tmp_path_factory):
    """`base("colpali")` is a published base in its layout of 2024."""
    root, made = tmp_path_factory.mktemp("bases"), {}

    def folder(name):
        if name not in made:
            made[name] = BASES[name](checkpoints(name), root / name)
        return made[name]

    return folder


@pytest.fixture(scope="module")
def adapter(base, tmp_path_factory):
    """`adapter("colpali")` is a published adapter over that base."""
    root, made = tmp_path_factory.mktemp("adapters"), {}

    def folder(name):
        if name not in made:
            made[name] = published.published_adapter(base(name), root / name, name)
        return made[name]

    return folder


def over(adapter, base, folder):
    """The same adapter over another base."""
    shutil.copytree(adapter, folder)
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps({**config, "base_model_name_or_path": str(base)}))
    return folder


@pytest.mark.parametrize("name", BASES)
def test_a_published_base_gives_the_vectors_of_todays_layout(checkpoints, base, tiny_backbone, name):
    assert_same_pages(load(name, base(name)), tiny_backbone(name))


@pytest.mark.parametrize("name", BASES)
def test_a_published_adapter_gives_the_vectors_of_merged_weights(base, adapter, tiny_backbone, tmp_path, name):
    """Merged by hand in the names of the files: scale · B · A added to every weight it belongs to."""
    merged = tmp_path / "merged"
    shutil.copytree(base(name), merged)
    state, halves = load_file(merged / "model.safetensors"), load_file(adapter(name) / ADAPTER_FILE)
    for key, down in halves.items():
        if key.endswith(".lora_A.weight"):
            module = key.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
            state[f"{module}.weight"] += 2.0 * halves[key.replace("lora_A", "lora_B")] @ down  # alpha / r = 8 / 4
    save_file(state, merged / "model.safetensors", metadata={"format": "pt"})
    backbone = load(name, adapter(name))
    assert_same_pages(backbone, load(name, merged))
    plain = tiny_backbone(name).encode_pages(PAGES[:1])[0]
    assert (backbone.encode_pages(PAGES[:1])[0].vectors - plain.vectors).abs().max() > 0.05


@pytest.mark.parametrize("name", BASES)
def test_a_published_adapter_gives_the_vectors_of_the_engine(adapter, tiny_backbone, name):
    """The adapter as colpali-engine's users load it."""
    from colpali_engine import models

    engine_class = {"colpali": models.ColPali, "colqwen2": models.ColQwen2}[name]
    engine = engine_class.from_pretrained(str(adapter(name)), dtype=torch.float32).eval()
    if name == "colpali":
        engine.model.lm_head = torch.nn.Identity()
    backbone = load(name, adapter(name))
    inputs = backbone.page_inputs(PAGES[:2])
    visual = backbone.processor.get_image_mask(inputs)
    with torch.inference_mode():
        vectors = engine(**inputs)
    for row, page in enumerate(backbone.encode_pages(PAGES[:2])):
        assert torch.equal(page.vectors, vectors[row][visual[row]])


@pytest.mark.parametrize("hole", [r"layers\.1\.self_attn", "custom_text_proj", "embed_tokens", "vis.*patch_embed"])
@pytest.mark.parametrize("name", BASES)
def test_a_hole_in_the_base_of_an_adapter_is_an_error(base, adapter, tmp_path, name, hole):
    broken, gone = published.without(base(name), tmp_path / "base", hole)
    text = stops_and_names(load(name, over(adapter(name), broken, tmp_path / "adapter")), gone)
    assert "would be random" in text
    assert str(broken) in text, "the base is what is incomplete, not the adapter"


@pytest.mark.parametrize("hole", [r"layers\.1\.self_attn\.v_proj\.lora_B", r"custom_text_proj", r"layers\.2\."])
@pytest.mark.parametrize("name", BASES)
def test_a_hole_in_an_adapter_is_an_error(adapter, tmp_path, name, hole):
    broken, gone = published.without(adapter(name), tmp_path / "adapter", hole, ADAPTER_FILE)
    stops_and_names(load(name, broken), [key.removesuffix(".weight") for key in gone])


@pytest.mark.parametrize("name", BASES)
def test_a_renamed_layer_is_named_on_both_sides(base, adapter, tmp_path, name):
    """What is missing under one name is often there under another: the error has both."""
    renamed = tmp_path / "base"
    shutil.copytree(base(name), renamed)
    state = load_file(renamed / "model.safetensors")
    state = {key.replace("layers.1.self_attn", "layers.1.attention"): tensor for key, tensor in state.items()}
    save_file(state, renamed / "model.safetensors", metadata={"format": "pt"})
    text = stops_and_names(load(name, over(adapter(name), renamed, tmp_path / "adapter")), ["1.self_attn"])
    assert "layers.1.attention" in text


@pytest.mark.parametrize("name", BASES)
def test_a_layer_that_the_config_does_not_know_is_an_error(base, tmp_path, name):
    """All weights arrive, and some are left over: config.json and weights are not of one model."""
    larger = tmp_path / "larger"
    shutil.copytree(base(name), larger)
    state = load_file(larger / "model.safetensors")
    state |= {key.replace("layers.1.", "layers.9."): tensor.clone() for key, tensor in state.items()}
    save_file(state, larger / "model.safetensors", metadata={"format": "pt"})
    stops_and_names(load(name, larger), ["9.input_layernorm.weight"])


@pytest.mark.parametrize("name", BASES)
def test_an_adapter_may_bring_the_projection_whole(base, adapter, tiny_backbone, tmp_path, name):
    """`modules_to_save`: the base has no projection, the adapter has all of it, and nothing is missing."""
    headless, gone = published.without(base(name), tmp_path / "base", "custom_text_proj")
    whole = over(adapter(name), headless, tmp_path / "adapter")
    config = json.loads((whole / "adapter_config.json").read_text())
    config |= {"modules_to_save": ["custom_text_proj"]}
    config["target_modules"] = config["target_modules"].replace("|.*(custom_text_proj).*$", "")
    (whole / "adapter_config.json").write_text(json.dumps(config))
    halves = {k: torch.zeros_like(v) for k, v in load_file(whole / ADAPTER_FILE).items() if "custom_text" not in k}
    full = load_file(base(name) / "model.safetensors")
    halves |= {f"base_model.model.{key}": full[key] for key in gone}
    save_file(halves, whole / ADAPTER_FILE, metadata={"format": "pt"})
    assert_same_pages(load(name, whole), tiny_backbone(name))
    del halves[f"base_model.model.{gone[0]}"]
    save_file(halves, whole / ADAPTER_FILE, metadata={"format": "pt"})
    stops_and_names(load(name, whole), gone[:1])


@pytest.mark.parametrize("name", ["colpali", "colqwen2", "colqwen2.5", "colsmol", "jina-v4"])
def test_shards_give_the_vectors_of_one_file(checkpoints, tiny_backbone, tmp_path, name):
    shards = published.in_shards(checkpoints(name), tmp_path / "shards")
    assert_same_pages(load(name, shards), tiny_backbone(name))
    first, *_ = sorted(shards.glob("model-*.safetensors"))
    state = load_file(first)
    gone = sorted(key for key in state if "self_attn" in key)[:2]
    save_file({k: v for k, v in state.items() if k not in gone}, first, metadata={"format": "pt"})
    stops_and_names(load(name, shards), gone)


@pytest.mark.parametrize("name", ["colpali", "colqwen2", "jina-v4"])
def test_a_shard_that_the_index_does_not_know_is_named(checkpoints, tmp_path, name):
    shards = published.in_shards(checkpoints(name), tmp_path / "shards")
    index = shards / "model.safetensors.index.json"
    *_, last = sorted(shards.glob("model-*.safetensors"))
    places = {key: file for key, file in json.loads(index.read_text())["weight_map"].items() if file != last.name}
    index.write_text(json.dumps({"weight_map": places}))
    assert last.name in stops_and_names(load(name, shards), [])


@pytest.mark.parametrize("name", ["colpali", "colqwen2", "colqwen2.5", "jina-v4"])
def test_a_processor_may_come_as_the_files_of_2024(checkpoints, tiny_backbone, tmp_path, name):
    """preprocessor_config.json and tokenizer, no processor_config.json: the same pages and queries go in."""
    folder = tmp_path / "checkpoint"
    shutil.copytree(checkpoints(name), folder)
    published.published_processor(checkpoints(name), folder)
    backbone = load(name, folder)
    reference = tiny_backbone(name)
    for made, truth in (
        (backbone.page_inputs(PAGES), reference.page_inputs(PAGES)),
        (backbone.query_inputs(["revenue"]), reference.query_inputs(["revenue"])),
    ):
        assert made.keys() == truth.keys()
        for key in truth:  # this way a failure says which key, and how far apart
            torch.testing.assert_close(
                made[key], truth[key], rtol=0, atol=0, msg=lambda text, key=key: f"{key}: {text}"
            )


@pytest.mark.parametrize("hole", ["lora_B.retrieval", "lora_A.retrieval"])
def test_a_hole_in_jinas_adapter_is_an_error(checkpoints, tmp_path, hole):
    file = "adapters/adapter_model.safetensors"
    pattern = rf"layers\.1\.self_attn\.q_proj\.{hole}"
    broken, _ = published.without(checkpoints("jina-v4"), tmp_path / "half", pattern, file)
    stops_and_names(load("jina-v4", broken), ["language_model.layers.1.self_attn.q_proj"])
    broken, _ = published.without(
        checkpoints("jina-v4"), tmp_path / "both", r"layers\.1\.self_attn\.q_proj\.lora_.\.retrieval", file
    )
    stops_and_names(load("jina-v4", broken), ["language_model.layers.1.self_attn.q_proj"])


@pytest.mark.parametrize("hole", ["multi_vector_projector.bias", r"layers\.1\.mlp", "visual.merger"])
def test_a_hole_in_jinas_base_is_an_error(checkpoints, tmp_path, hole):
    broken, gone = published.without(checkpoints("jina-v4"), tmp_path / "jina", hole)
    stops_and_names(
        load("jina-v4", broken), [name.replace("multi_vector_projector", "custom_text_proj") for name in gone]
    )


@pytest.mark.parametrize("hole", ["linear.bias", r"text_model\.layers\.1\.mlp", "connector", "post_layernorm"])
def test_a_hole_in_colsmol_is_an_error(checkpoints, tmp_path, hole):
    broken, gone = published.without(checkpoints("colsmol"), tmp_path / "colsmol", hole)
    stops_and_names(load("colsmol", broken), gone)


def test_half_precision_adapters_have_the_dtype_of_their_base(adapter):
    backbone = registry.load(f"colqwen2={adapter('colqwen2')}", Options(device="cpu", dtype="bfloat16"))
    assert {tensor.dtype for tensor in backbone.model.state_dict().values()} == {torch.bfloat16}
