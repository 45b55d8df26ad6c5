"""Text encoders as backbones: vectors as sentence-transformers gives them, signals as eager attention has them."""

from __future__ import annotations

import harness.compat  # noqa: F401

import itertools
import json
import shutil
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from harness.backbones import minilm, registry
from harness.backbones.checkpoint import CheckpointError
from harness.backbones.contract import Options
from harness.backbones.text_windows import pieces_of, windows
from harness.benchmarks.embedded import BenchmarkError
from harness.benchmarks.folder import read_folder
from harness.encode import encode
from harness.importing.from_outline import Settings, import_outlines
from pruners.core.errors import PruneBoardError
from tests.harness.benchmark_folder import write_benchmark
from tests.harness.importing.tiny_pdf import write_pdf
from tests.harness.published_layouts import in_shards, without

SHORT = "The R environment is an integrated suite of software facilities, for data manipulation."
LONG = " ".join(f"Line {i} says that vector {i * 7} holds {i % 13} values." for i in range(100))


@pytest.fixture(scope="module")
def backbone():
    return registry.load("minilm", Options(device="cpu"))


def eager_attention(backbone, ids):
    """All attention maps of one sequence, [layers, heads, T, T]."""
    from transformers import AutoModel

    model = AutoModel.from_pretrained(backbone.checkpoint.folder, attn_implementation="eager").eval()
    with torch.inference_mode():
        found = model(input_ids=torch.tensor([ids]), output_attentions=True)
    return torch.stack([layer[0] for layer in found.attentions])


def tokens_of(backbone, text):
    return backbone.tokenizer(text, add_special_tokens=False, truncation=False, verbose=False)["input_ids"]


def test_vectors_are_the_token_embeddings_of_sentence_transformers(backbone):
    from sentence_transformers import SentenceTransformer

    reference = SentenceTransformer(str(backbone.checkpoint.folder), device="cpu")
    reference.max_seq_length = 512
    texts = [SHORT, SHORT * 20, "R"]
    wanted = reference.encode(texts, output_value="token_embeddings")
    pages, queries = backbone.encode_pages(texts), backbone.encode_queries(texts)
    for embeddings, page, query in zip(wanted, pages, queries, strict=True):
        unit = torch.nn.functional.normalize(embeddings.float(), dim=-1)
        assert (page.vectors - unit[1:-1]).abs().max() <= 1e-5
        assert (query - unit[1:-1]).abs().max() <= 1e-5
        assert page.prompt is not None
        assert (page.prompt - unit[[0, -1]]).abs().max() <= 1e-5, "[CLS] and [SEP] are the prompt"


def test_signals_are_those_of_eager_attention(backbone):
    page, _ = backbone.encode_pages([SHORT, SHORT * 3])  # padded beside the longer one
    maps = eager_attention(backbone, backbone.tokenizer(SHORT)["input_ids"])
    text = maps[:, :, 1:-1, 1:-1]
    wanted = {
        "indegree": text.sum(2).mean(1),
        "indegree_max": text.sum(2).amax(1),
        "all_to_visual": maps[:, :, :, 1:-1].sum(2).mean(1),
        "eos": maps[:, :, -1, 1:-1].mean(1),
    }
    assert page.signals.keys() == wanted.keys()
    for name, signal in wanted.items():
        assert (page.signals[name] - signal).abs().max() <= 2e-5, name


def test_a_long_page_is_read_to_its_end_in_overlapping_windows(backbone):
    (page,) = backbone.encode_pages([LONG])
    tokens = tokens_of(backbone, LONG)
    assert len(page.vectors) == len(tokens) > 900
    cls, sep = backbone.before[0], backbone.after[0]
    for start, stop, first, last in windows(len(tokens), 510)[1:]:
        maps = eager_attention(backbone, [cls, *tokens[start:stop], sep])
        taken = slice(first - start, last - start)
        wanted = maps[:, :, 1:-1, 1:-1].sum(2).mean(1)[:, taken]
        assert (page.signals["indegree"][:, first:last] - wanted).abs().max() <= 2e-5
        assert (page.signals["eos"][:, first:last] - maps[:, :, -1, 1:-1].mean(1)[:, taken]).abs().max() <= 2e-5


@given(st.integers(0, 3000), st.integers(4, 510), st.integers(0, 300))
def test_every_token_is_taken_once_from_a_window_of_full_length(tokens, size, overlap):
    found = windows(tokens, size, overlap)
    assert [first for _, _, first, _ in found] == [0, *(last for *_, last in found[:-1])]
    assert found[-1][3] == tokens
    for start, stop, first, last in found:
        assert start <= first <= last <= stop <= tokens
        assert stop - start == found[0][1] <= size, "all of one length"
    for left, right in itertools.pairwise(found):
        assert left[1] - right[0] >= min(overlap, size // 2), "neighbours overlap"


def test_a_page_without_text_keeps_one_vector(backbone):
    empty, blank, page = backbone.encode_pages(["", " \n", SHORT])
    for nothing in (empty, blank):
        assert nothing.vectors.shape == (1, 384)
        assert nothing.signals["indegree"].shape == (6, 1)
    assert len(page.vectors) == len(tokens_of(backbone, SHORT))
    with pytest.raises(PruneBoardError, match="no token in the query"):
        backbone.encode_queries(["\u200b"])


def test_skipped_tokens_are_read_but_not_taken():
    (piece,) = pieces_of([5, 6, 7], [1], [2], 10, skipped={6})
    assert piece.ids == (1, 5, 6, 7, 2)
    assert piece.own == piece.taken == (False, True, False, True, False)
    (piece,) = pieces_of([6], [1], [2], 10, skipped={6})
    assert piece.own == piece.taken == (False, False, True)


def test_the_card_says_what_it_is(backbone):
    card = backbone.card
    assert (card.kind, card.layers, card.heads, card.dim) == ("text tokens", 6, 12, 384)
    assert card.eos_token == "'[SEP]' (id 102)"
    assert "/" not in card.checkpoint.replace("sentence-transformers/all-MiniLM-L6-v2", ""), "no path of this machine"


def test_another_file_in_the_package_is_refused(tmp_path, monkeypatch):
    copy = tmp_path / minilm.PACKAGE / "model"
    shutil.copytree(minilm.packaged_copy(), copy)
    (copy.parent / "__init__.py").write_text("raise RuntimeError('the package is located, never executed')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, minilm.PACKAGE, raising=False)
    assert minilm.packaged_copy() == copy
    with (copy / "tokenizer.json").open("a") as file:
        file.write(" ")
    with pytest.raises(CheckpointError, match=r"tokenizer\.json is not the file"):
        minilm.packaged_copy()


def test_a_folder_is_a_checkpoint(backbone, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(backbone.checkpoint.folder, copy)
    loaded = registry.load(f"minilm={copy}", Options(device="cpu"))
    assert torch.equal(loaded.encode_queries(["data frames"])[0], backbone.encode_queries(["data frames"])[0])
    (copy / "tokenizer.json").unlink()
    (copy / "vocab.txt").unlink()
    with pytest.raises(CheckpointError, match="no tokenizer"):
        registry.load(f"minilm={copy}")


@pytest.fixture(scope="module")
def tiny_encoder(backbone, tmp_path_factory):
    """`tiny_encoder(config)` is a folder with a random encoder and MiniLM's tokenizer."""
    from transformers import AutoModel

    def save(config, name):
        folder = tmp_path_factory.mktemp(name)
        torch.manual_seed(0)
        AutoModel.from_config(config).save_pretrained(folder)
        for file in ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json"):
            shutil.copy(backbone.checkpoint.folder / file, folder)
        return folder

    return save


def bert_config(**changes):
    from transformers import BertConfig

    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    return BertConfig(**{**sizes, "vocab_size": 30522, **changes})


def test_encoders_that_do_not_number_their_layers_are_probed_too(tiny_encoder):
    from transformers import DistilBertConfig

    config = DistilBertConfig(dim=32, n_layers=3, n_heads=4, hidden_dim=64, vocab_size=30522)
    loaded = registry.load(f"minilm={tiny_encoder(config, 'distilbert')}", Options(device="cpu"))
    (page,) = loaded.encode_pages([SHORT])
    maps = eager_attention(loaded, loaded.tokenizer(SHORT)["input_ids"])
    assert page.signals["indegree"].shape == (3, len(page.vectors))
    assert (page.signals["indegree"] - maps[:, :, 1:-1, 1:-1].sum(2).mean(1)).abs().max() <= 2e-5


def colbert_folder(folder, layout):
    """A tiny encoder as a ColBERT checkpoint, in Stanford's or in PyLate's files."""
    weight = torch.randn(16, 32, generator=torch.Generator().manual_seed(1))
    if layout == "stanford":
        weights = {f"bert.{name}": value for name, value in load_file(folder / "model.safetensors").items()}
        save_file({**weights, "linear.weight": weight}, folder / "model.safetensors", metadata={"format": "pt"})
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, "architectures": ["HF_ColBERT"]}))
        (folder / "artifact.metadata").write_text(
            json.dumps({"query_token_id": "[unused0]", "doc_token_id": "[unused1]", "query_maxlen": 24, "dim": 16})
        )
        return folder
    (folder / "1_Dense").mkdir()
    save_file({"linear.weight": weight}, folder / "1_Dense" / "model.safetensors")
    dense = {"in_features": 32, "out_features": 16, "bias": False}
    dense["activation_function"] = "torch.nn.modules.linear.Identity"
    (folder / "1_Dense" / "config.json").write_text(json.dumps(dense))
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Dense", "type": "pylate.models.Dense.Dense"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    settings = {"query_prefix": "[unused0]", "document_prefix": "[unused1]", "query_length": 24}
    settings |= {"attend_to_expansion_tokens": True, "skiplist_words": [",", "."]}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    return folder


@pytest.mark.parametrize("layout", ["stanford", "pylate"])
def test_colbert_checkpoints_give_the_vectors_of_sentence_transformers(tiny_encoder, layout):
    from sentence_transformers import MultiVectorEncoder

    folder = colbert_folder(tiny_encoder(bert_config(), layout), layout)
    loaded = registry.load(f"minilm={folder}", Options(device="cpu"))
    reference = MultiVectorEncoder(str(folder), device="cpu")
    text, query = "Pumps move water, and oil.", "fire pumps"
    (page,), (vectors,) = loaded.encode_pages([text]), loaded.encode_queries([query])
    wanted = reference.encode_document([text], normalize_embeddings=True)[0].cpu()
    # The reference keeps [CLS], the marker and [SEP] among a page's vectors; here they are its prompt.
    assert (page.vectors - wanted[2:-1]).abs().max() <= 1e-5
    assert len(page.vectors) == len(tokens_of(loaded, text)) - 2, "the comma and the full stop are skipped"
    wanted = reference.encode_query([query], normalize_embeddings=True)[0].cpu()
    assert vectors.shape == wanted.shape == (24, 16)
    assert (vectors - wanted).abs().max() <= 1e-5


@pytest.mark.parametrize("layout", ["plain", "stanford", "pylate"])
def test_a_hole_in_a_text_encoder_is_an_error(tiny_encoder, tmp_path, layout):
    folder = tiny_encoder(bert_config(), f"hole-{layout}")
    folder = folder if layout == "plain" else colbert_folder(folder, layout)
    broken, _ = without(folder, tmp_path / "broken", r"layer\.1\.attention\.self\.query\.weight")
    with pytest.raises(CheckpointError, match=r"layer\.1\.attention\.self\.query\.weight; they would be random"):
        _ = registry.load(f"minilm={broken}", Options(device="cpu")).model
    headless, _ = without(folder, tmp_path / "headless", r"pooler")
    assert registry.load(f"minilm={headless}", Options(device="cpu")).model is not None, "token vectors need no pooler"


@pytest.mark.parametrize("layout", ["plain", "stanford"])
def test_a_layer_that_a_text_encoders_config_does_not_know_is_an_error(tiny_encoder, layout):
    folder = tiny_encoder(bert_config(num_hidden_layers=3), f"larger-{layout}")
    folder = folder if layout == "plain" else colbert_folder(folder, layout)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 2}))
    with pytest.raises(CheckpointError, match=r"no place for: .*layer\.2\.attention"):
        _ = registry.load(f"minilm={folder}", Options(device="cpu")).model


def test_heads_of_other_tasks_are_left_aside(tiny_encoder, backbone):
    """BERT as it is published, with the head that it was trained with."""
    folder = tiny_encoder(bert_config(), "with-head")
    before = registry.load(f"minilm={folder}", Options(device="cpu")).encode_queries(["data"])[0]
    weights = {f"bert.{name}": value for name, value in load_file(folder / "model.safetensors").items()}
    weights |= {"cls.predictions.bias": torch.zeros(30522), "bert.embeddings.position_ids": torch.arange(512)[None]}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    assert torch.equal(registry.load(f"minilm={folder}", Options(device="cpu")).encode_queries(["data"])[0], before)


def test_a_colbert_checkpoint_without_its_projection_is_refused(tiny_encoder):
    """Without it vectors would be hidden states of another width, and nothing would say so."""
    folder = colbert_folder(tiny_encoder(bert_config(), "no-dense"), "pylate")
    dense = folder / "1_Dense" / "model.safetensors"
    weight = load_file(dense)["linear.weight"]
    save_file({"linear.weight": weight, "linear.bias": torch.ones(16)}, dense)
    with pytest.raises(CheckpointError, match=r"linear\.bias"):
        registry.load(f"minilm={folder}", Options(device="cpu"))
    save_file({"linear.other": weight}, dense)
    with pytest.raises(CheckpointError, match=r"no linear\.weight"):
        registry.load(f"minilm={folder}", Options(device="cpu"))
    (folder / "modules.json").unlink()
    with pytest.raises(CheckpointError, match=r"modules\.json"):
        registry.load(f"minilm={folder}", Options(device="cpu"))


def test_a_projection_is_found_among_shards(tiny_encoder, tmp_path):
    folder = colbert_folder(tiny_encoder(bert_config(), "sharded"), "stanford")
    whole = registry.load(f"minilm={folder}", Options(device="cpu"))
    shards = registry.load(f"minilm={in_shards(folder, tmp_path / 'shards')}", Options(device="cpu"))
    assert torch.equal(shards.encode_queries(["data"])[0], whole.encode_queries(["data"])[0])


def test_a_benchmark_without_text_is_refused_by_name(backbone, tmp_path):
    benchmark = read_folder(write_benchmark(tmp_path / "pictures"))
    with pytest.raises(BenchmarkError, match="pictures has none"):
        encode(backbone, benchmark, tmp_path / "stores")
    with pytest.raises(BenchmarkError, match="pictures has none"):  # images, imported without OCR
        encode(backbone, replace(benchmark, texts=("", " ") * 5), tmp_path / "stores")
    assert not (tmp_path / "stores").exists()


def test_imported_pages_are_encoded_by_their_text(backbone, tmp_path):
    outline = [(0, "Fire pumps", 0), (0, "Fuel oil", 1)]
    for place, last in (("in", "Diesel."), ("in2", "Petrol.")):
        write_pdf(tmp_path / place / "a.pdf", [["1 Fire pumps", "Water."], ["2 Fuel oil", last]], outline)
    stores = []
    for place, dpi in (("in", 36), ("in2", 48)):
        import_outlines([tmp_path / place], tmp_path / "out" / place, Settings(dpi=dpi))
        stores.append(encode(backbone, read_folder(tmp_path / "out" / place), tmp_path / "stores"))
    first, second = stores
    assert first.key != second.key
    assert torch.allclose(first.page(0).vectors, backbone.encode_pages(["1 Fire pumps\nWater."])[0].vectors, atol=1e-3)
    assert first.image_hashes[0] == second.image_hashes[0] != first.image_hashes[1], "pages are known by their text"
    assert first.image_hashes[1] != second.image_hashes[1]
