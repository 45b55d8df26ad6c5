"""`harness verify-backbone` passes on every family, and names the cause of each thing that can be wrong."""

from __future__ import annotations

import harness.compat  # noqa: F401

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from harness import cli
from harness.backbones import registry
from harness.backbones.colpali import ColPaliBackbone
from harness.backbones.contract import Options
from harness.progress import quiet
from harness.store.import_vectors import import_vectors
from harness.submissions import mteb_figures
from harness.verification import published as table
from harness.verification import report
from harness.verification.listing import rows
from harness.verification.verify import verify
from pruners.core.errors import PruneBoardError
from tests.harness import tiny_adapters
from tests.harness.benchmark_folder import write_benchmark
from tests.harness.tiny_encoders import bert_config, save_encoder

CPU = Options(device="cpu")
FAMILIES = ["colpali", "colqwen2", "colqwen2.5", "colsmol", "jina-v4", "colqwen3", "colqwen3.5", "colgemma3"]
FAMILIES += ["colmodernvbert", "colqwen-omni", "nano"]
NO_DATA = {"published figure", "revision"}
OPEN = {
    "jina-v4": {"vectors of the library", "query tokens of MTEB", "page tokens of MTEB"},
    "colgemma3": {"query tokens of MTEB", "page tokens of MTEB"},
    "colsmol": {"grid"},
    "colmodernvbert": {"grid"},
}
"""What cannot be asked of a family; `nano` and every tiny checkpoint are unknown to MTEB by name."""


@pytest.fixture
def offline(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "datasets")


@pytest.fixture
def verified(tmp_path, offline):
    def run(backbone, options=CPU, **more):
        return verify(backbone, options, stores=tmp_path / "stores", progress=quiet, **more)

    return run


def verdicts(found):
    return {check.name: check.verdict for check in found.checks}


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_passes_without_data_and_says_what_it_could_not_do(verified, tiny_backbone, checkpoints, name):
    found = verified("nano" if name == "nano" else f"{name}={checkpoints(name)}")
    assert not found.failed, found.text()
    open_ = {check for check, verdict in verdicts(found).items() if verdict == report.NOT_DONE}
    assert open_ == NO_DATA | OPEN.get(name, set())
    assert detail(found, "published figure").startswith("no published figure for this checkpoint")


def detail(found, check):
    return {each.name: each.detail for each in found.checks}[check]


@pytest.mark.parametrize(("task", "said"), [(None, "VidoreTabfquadRetrieval"), ("VidoreDocVQARetrieval",) * 2])
def test_without_its_data_the_published_figure_is_not_compared(verified, checkpoints, tmp_path, task, said):
    hub_snapshot(checkpoints("colqwen2"), tmp_path / "hub", registry.choose("colqwen2").revision)
    found = verified("colqwen2", task=task)
    assert not found.failed
    assert f"{said} cannot be loaded" in detail(found, "published figure")


def test_an_encoder_of_texts_is_given_texts(verified, tmp_path):
    found = verified(f"minilm={save_encoder(bert_config(), tmp_path / 'encoder')}")
    assert not found.failed, found.text()
    assert {name for name, verdict in verdicts(found).items() if verdict == report.PASSED} == {
        "every tensor",
        "finite numbers",
        "page alone and in a batch",
        "query alone and in a batch",
    }


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_passes_too(verified, checkpoints, dtype):
    for name in ("colpali", "colqwen2.5"):
        found = verified(f"{name}={checkpoints(name)}", Options(device="cpu", dtype=dtype))
        assert not found.failed, found.text()
        assert found.dtype == dtype


def failures(found):
    return {check.name: check.detail for check in found.failed}


def test_a_renamed_base_key(verified, checkpoints, tmp_path):
    broken = shutil.copytree(checkpoints("colqwen2"), tmp_path / "broken")
    state = load_file(broken / "model.safetensors")
    key = next(name for name in state if name.endswith("layers.1.self_attn.q_proj.weight"))
    state[key.replace("q_proj", "query_proj")] = state.pop(key)
    save_file(state, broken / "model.safetensors", metadata={"format": "pt"})
    found = verified(f"colqwen2={broken}")
    assert list(failures(found)) == ["every tensor"]
    assert "layers.1.self_attn.query_proj.weight; a renamed layer looks so" in failures(found)["every tensor"]
    assert verdicts(found)["grid"] == report.NOT_DONE


def test_a_lost_lora_tensor(verified, checkpoints, tmp_path):
    adapter = tiny_adapters.save_lora(checkpoints("colqwen2"), tmp_path / "adapter")
    assert not verified(f"colqwen2={adapter}").failed  # whole, it passes: the library's own loader gives the same
    tensors = load_file(adapter / "adapter_model.safetensors")
    lost = sorted(name for name in tensors if "lora_B" in name)[3]
    del tensors[lost]
    save_file(tensors, adapter / "adapter_model.safetensors", metadata={"format": "pt"})
    found = verified(f"colqwen2={adapter}")
    assert list(failures(found)) == ["every tensor"]
    assert (
        lost.removeprefix("base_model.model.").rpartition(".weight")[0].split(".", 2)[2]
        in failures(found)["every tensor"]
    )


def test_a_wrong_prompt(verified, checkpoints):
    backbone = registry.load(f"colqwen2={checkpoints('colqwen2')}", CPU)
    backbone.processor.visual_prompt_prefix = backbone.processor.visual_prompt_prefix.replace("Describe", "Read")
    found = failures(verified(backbone))
    assert list(found) == ["page tokens of MTEB"]
    assert "Read the image" in found["page tokens of MTEB"]
    assert "Describe the image" in found["page tokens of MTEB"]


def test_a_wrong_query_template(verified, checkpoints, monkeypatch):
    backbone = registry.load(f"colqwen2.5={checkpoints('colqwen2.5')}", CPU)
    monkeypatch.setattr(type(backbone), "query_suffix_tokens", 5)
    assert list(failures(verified(backbone))) == ["query tokens of MTEB"]


def test_a_query_that_depends_on_its_batch(verified, checkpoints, monkeypatch):
    """As the engine calls ColPali: a padded query is read causally, an unpadded one is not."""
    monkeypatch.setattr(ColPaliBackbone, "query_inputs", ColPaliBackbone.__mro__[1].query_inputs)
    found = failures(verified(f"colpali={checkpoints('colpali')}"))
    assert list(found) == ["query alone and in a batch"]


def test_a_swapped_grid(verified, checkpoints, monkeypatch):
    backbone = registry.load(f"colqwen2={checkpoints('colqwen2')}", CPU)
    right = type(backbone).grid_and_ink

    def swapped(self, inputs, page):
        (rows, cols), ink = right(self, inputs, page)
        return (cols, rows), ink

    monkeypatch.setattr(type(backbone), "grid_and_ink", swapped)
    found = failures(verified(backbone))
    assert list(found) == ["grid"]
    assert "rows and columns swapped" in found["grid"]


def hub_snapshot(checkpoint, hub, commit):
    folder = hub / "models--vidore--colqwen2-v1.0"
    shutil.copytree(checkpoint, folder / "snapshots" / commit)
    (folder / "refs").mkdir(exist_ok=True)
    (folder / "refs" / "main").write_text(commit)


def test_another_revision(verified, checkpoints, tmp_path):
    pinned, other = registry.choose("colqwen2").revision, "f" * 40
    hub_snapshot(checkpoints("colqwen2"), tmp_path / "hub", pinned)
    assert verdicts(verified("colqwen2"))["revision"] == report.PASSED
    hub_snapshot(checkpoints("colqwen2"), tmp_path / "hub", other)
    found = failures(verified("colqwen2=vidore/colqwen2-v1.0@main"))
    assert found == {"revision": f"revision {other} was read, MTEB's figures are of {pinned}"}


def test_vectors_that_are_not_the_librarys(verified, checkpoints):
    backbone = registry.load(f"colsmol={checkpoints('colsmol')}", CPU)
    with torch.no_grad():
        backbone.model.linear.weight[0] += 0.5
    assert list(failures(verified(backbone))) == ["vectors of the library"]


def test_signals_that_are_not_those_of_eager_attention(verified, checkpoints, monkeypatch):
    monkeypatch.setattr("harness.backbones.attention_sums.LOG2_E", 1.43)
    found = failures(verified(f"colqwen2={checkpoints('colqwen2')}"))
    assert list(found) == ["signals of eager attention"]


@pytest.fixture
def published(monkeypatch, tmp_path):
    """A table with a figure of ours for a small folder of pages."""

    def write(task, ndcg):
        file = tmp_path / "official.csv"
        file.write_text(f"task,hf_subset,queries,model,ndcg_at_5\n{task},default,3,colqwen2,{ndcg}\n")
        monkeypatch.setattr(mteb_figures, "MTEB", file)
        mteb_figures.mteb_table.cache_clear()

    yield write
    mteb_figures.mteb_table.cache_clear()


@pytest.mark.slow
def test_the_published_figure(verified, checkpoints, published, tmp_path):
    """Prompt tokens are indexed too, as the stock retriever does: colpali-engine's own scores give the figure."""
    pages = str(write_benchmark(tmp_path / "pages"))
    published(pages, stock_ndcg(checkpoints("colqwen2"), pages))
    hub_snapshot(checkpoints("colqwen2"), tmp_path / "hub", registry.choose("colqwen2").revision)
    found = verified("colqwen2", task=pages)
    assert verdicts(found)["published figure"] == report.PASSED, found.text()
    assert found.figure["ours"] == pytest.approx(found.figure["official"], abs=1e-6)
    published(pages, stock_ndcg(checkpoints("colqwen2"), pages) + 0.06)
    assert list(failures(verified("colqwen2", task=pages))) == ["published figure"]
    other = verified(f"colqwen2={checkpoints('colqwen2')}", task=pages)  # a finetune is not held to it
    assert other.figure["official"] is None
    assert "no published figure for this checkpoint" in detail(other, "published figure")
    assert not other.failed


def stock_ndcg(checkpoint, pages):
    """By the library alone: its model, its scores, a plain NDCG@5."""
    import numpy as np
    from colpali_engine.models import ColQwen2, ColQwen2Processor
    from sklearn.metrics import ndcg_score

    from harness.benchmarks.data_set import read_folder

    data_set = read_folder(pages)
    model = ColQwen2.from_pretrained(str(checkpoint), dtype=torch.float32).eval()
    processor = ColQwen2Processor.from_pretrained(str(checkpoint))
    texts = [f"Query: {text}" + "<|endoftext|>" * 10 for text in data_set.queries.values()]
    with torch.inference_mode():
        asked = [model(**processor.process_texts([text]))[0] for text in texts]
        index = [model(**processor.process_images([data_set.image(i)]))[0] for i in range(len(data_set.page_ids))]
    scores = processor.score_multi_vector(asked, index).numpy()
    graded = np.array([[qrels.get(page, 0) for page in data_set.page_ids] for qrels in data_set.qrels.values()])
    judged = [row for row, query in enumerate(data_set.queries) if data_set.qrels[query]]
    return float(np.mean([ndcg_score(graded[[row]], scores[[row]], k=5) for row in judged]))


def test_the_command_prints_a_report_and_keeps_it(offline, monkeypatch, tmp_path):
    monkeypatch.setenv("PRUNEBOARD_STORES", str(tmp_path / "cache" / "stores"))
    ran = CliRunner().invoke(cli.app, ["verify-backbone", "nano", "--device", "cpu"])
    assert ran.exit_code == 0, ran.output
    assert "### verify-backbone nano: passed" in ran.stdout
    (kept,) = report.stored()
    assert kept.backbone == "nano"
    assert kept.text() == ran.stdout.removesuffix("\n")
    listed = CliRunner().invoke(cli.app, ["list", "backbones", "--json"])
    (nano,) = [row for row in json.loads(listed.stdout) if row["name"] == "nano"]
    assert nano["verified"].startswith("here: ")
    assert "checks on cpu (float32)" in nano["verified"]


def test_every_listed_backbone_names_the_figure_that_verifies_it_or_has_none():
    """Only these have no figure at MTEB: no visual retriever, shipped here, not listed there or without a published
    result, or any model at all.
    """
    none = {"nano", "minilm", "colgemma3", "colqwen-omni", "mteb", "st", "store"}
    for name in registry.catalogue():
        tasks = table.published(name)
        assert bool(tasks) == (name not in none), name


def kept(tmp_path, monkeypatch, **facts):
    """A report in the cache of this test."""
    monkeypatch.setenv("PRUNEBOARD_STORES", str(tmp_path / "cache" / "stores"))
    checks = (report.Check("every tensor", report.PASSED, "all"),)
    made = report.VerificationReport(**{"dtype": "float32", "device": "cpu", "checks": checks, **facts})
    return made.save(report.folder() / report.file_name(made))


def listed(name):
    (row,) = [row for row in rows() if row["name"] == name]
    return row["verified"]


def test_what_was_verified_of_another_checkpoint_is_listed_under_its_name(tmp_path, monkeypatch):
    kept(tmp_path, monkeypatch, backbone="colqwen2", checkpoint="my_finetune", revision="xxh3-1")
    assert listed("colqwen2").startswith("not this checkpoint, but my_finetune: here: 1 checks")
    pinned = registry.choose("colqwen2").revision
    kept(tmp_path, monkeypatch, backbone="colqwen2", checkpoint="vidore/colqwen2-v1.0", revision=f"{pinned}+base")
    kept(tmp_path, monkeypatch, backbone="colqwen2", checkpoint="my_finetune", revision="xxh3-2")
    assert listed("colqwen2").startswith("here: 1 checks")
    for name in ("nano", "minilm"):  # signed
        assert "recorded by" in listed(name)
        assert "not this checkpoint" not in listed(name)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1, "checks": []}', '{"format": 1, "checks": 3}'])
def test_what_is_no_report_is_not_listed(tmp_path, monkeypatch, text):
    path = kept(tmp_path, monkeypatch, backbone="colqwen2", checkpoint="my_finetune", revision="xxh3-1")
    (path.parent / "damaged.json").write_text(text)
    assert [each.checkpoint for each in report.stored()] == ["my_finetune"]


OWN = """
import torch
from PIL import Image
from harness.backbones.contract import Card, EncodedPage, backbone


class Mine:
    card = Card("mine", "none", "1", 0, 0, 3, "float32", ("ink",), "nothing", "", "cells", "", "{}")

    def encode_pages(self, images):
        return [self.page(image, len(images)) for image in images]

    def page(self, image, beside):
        small = image.convert("L").resize((2, 4), Image.Resampling.BOX)
        ink = torch.tensor([[1 - small.getpixel((i % 2, i // 2)) / 255 for i in range(8)]])
        vectors = torch.rand(8, 3, generator=torch.Generator().manual_seed(1))
        return EncodedPage(vectors, (4, 2), {'ink': ink})

    def encode_queries(self, texts):
        return [torch.ones(2, 3) for _ in texts]


@backbone("mine", checkpoint="none", signals=("ink",))
def load(checkpoint, options):
    return Mine()
"""


ALONE = "vectors / float(beside > 1)"


@pytest.mark.parametrize(
    ("change", "check", "said"),
    [
        (("Page(vectors", f"Page({ALONE}"), "page alone and in a batch", "24 of the numbers that are compared are NaN"),
        (("{'ink': ink}", "{'ink': ink / 0}"), "finite numbers", "of the ink of a page are NaN or infinite"),
        (("torch.ones(2, 3)", "torch.ones(2, 3) / 0"), "finite numbers", "6 of the vectors of a query"),
        (("self.page(image, len(images))", "1 / 0"), "finite numbers", "ZeroDivisionError: division by zero"),
        (("return Mine()", "raise ValueError('no weights')"), "every tensor", "ValueError: no weights"),
        (("{'ink': ink}", "{'ink': ink.flip(1)}"), "grid", "rows and columns swapped"),
    ],
)
def test_what_is_wrong_with_a_backbone_of_ones_own_is_said(verified, tmp_path, change, check, said):
    path = tmp_path / "mine_bb.py"
    path.write_text(OWN)
    assert not verified(str(path)).failed, verified(str(path)).text()
    assert detail(verified(str(path)), "grid") == "4 x 2; ink where the text is"
    path = tmp_path / "wrong_bb.py"
    path.write_text(OWN.replace(*change))
    assert said in failures(verified(str(path)))[check]


def test_a_store_that_cannot_be_written_is_no_failure_of_the_model(offline, tmp_path):
    (tmp_path / "mine_bb.py").write_text(OWN)
    (tmp_path / "file").write_text("in the way")
    pages = str(write_benchmark(tmp_path / "pages"))
    found = verify(str(tmp_path / "mine_bb.py"), CPU, task=pages, stores=tmp_path / "file" / "stores", progress=quiet)
    assert not found.failed
    assert "cannot be written" in detail(found, "published figure")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nano", "--task", "VidoreTabfquadRetrievall"], "did you mean VidoreTabfquadRetrieval"),
        (["store={store}"], "holds vectors and no model, so there is nothing to verify"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_any_check(tmp_path, words, said):
    store = imported(tmp_path)
    with pytest.raises(PruneBoardError, match=said):
        CliRunner().invoke(
            cli.app, ["verify-backbone", *(word.format(store=store) for word in words)], catch_exceptions=False
        )


def imported(tmp_path):
    vectors = {"vectors": np.ones((4, 3), np.float32), "offsets": np.array([0, 2, 4])}
    np.savez(tmp_path / "vectors.npz", **vectors)
    files = [tmp_path / "vectors.npz"] * 2
    return import_vectors(*files, tmp_path / "imported", name="mine").folder
