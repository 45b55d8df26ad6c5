"""Text encoders as backbones: vectors as sentence-transformers gives them, signals as eager attention has them."""

from __future__ import annotations

import harness.compat  # noqa: F401

import itertools
import shutil
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness.backbones import minilm, registry
from harness.backbones.checkpoint import CheckpointError
from harness.backbones.contract import Options
from harness.backbones.text_windows import pieces_of, windows
from harness.benchmarks.data_set import read_folder
from harness.benchmarks.embedded import BenchmarkError
from harness.encode import encode
from harness.importing.from_outline import OutlineSettings, import_outlines
from pruners.core.errors import PruneBoardError
from tests.harness.benchmark_folder import write_benchmark
from tests.harness.importing.tiny_pdf import write_pdf
from tests.harness.tiny_encoders import bert_config, colbert_folder, save_encoder

SHORT = "The R environment is an integrated benchmark of software facilities, for data manipulation."
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
    assert set(page.signals) == {*wanted, "token", "stopword"} == set(backbone.card.signals)
    for name, signal in wanted.items():
        assert (page.signals[name] - signal).abs().max() <= 2e-5, name


def test_signals_say_which_tokens_a_page_has_and_which_are_stop_words(backbone):
    text = "The environment isn't a preprocessing step, of all steps: 3 above-mentioned steps."
    (page,) = backbone.encode_pages([text])
    assert page.signals["token"].tolist() == [tokens_of(backbone, text)]
    spelled = backbone.tokenizer.convert_ids_to_tokens(tokens_of(backbone, text))
    idle = [token for token, flag in zip(spelled, page.signals["stopword"][0].tolist(), strict=True) if flag]
    assert idle == ["the", "'", "a", ",", "of", "all", ":", "above", "-", "."]
    (page,) = backbone.encode_pages(
        ["androgynous"]
    )  # and ##ro ##gy ##nous: what spells a stop word is a part of another
    assert backbone.tokenizer.convert_ids_to_tokens(page.signals["token"][0].long().tolist())[0] == "and"
    assert not page.signals["stopword"].any()


def test_token_signals_follow_the_windows_of_a_long_page(backbone):
    (page,) = backbone.encode_pages([LONG])
    assert page.signals["token"].tolist() == [tokens_of(backbone, LONG)]
    spelled = backbone.tokenizer.convert_ids_to_tokens(tokens_of(backbone, LONG))
    assert page.signals["stopword"].tolist() == [[float(token in ("that", ".")) for token in spelled]]


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
        assert nothing.signals["stopword"].tolist() == [[1]]
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
def tiny_encoder(tmp_path_factory):
    """`tiny_encoder(config, name)` is a folder with a random encoder and MiniLM's tokenizer."""
    return lambda config, name: save_encoder(config, tmp_path_factory.mktemp(name))


def test_encoders_that_do_not_number_their_layers_are_probed_too(tiny_encoder):
    from transformers import DistilBertConfig

    config = DistilBertConfig(dim=32, n_layers=3, n_heads=4, hidden_dim=64, vocab_size=30522)
    loaded = registry.load(f"minilm={tiny_encoder(config, 'distilbert')}", Options(device="cpu"))
    (page,) = loaded.encode_pages([SHORT])
    maps = eager_attention(loaded, loaded.tokenizer(SHORT)["input_ids"])
    assert page.signals["indegree"].shape == (3, len(page.vectors))
    assert (page.signals["indegree"] - maps[:, :, 1:-1, 1:-1].sum(2).mean(1)).abs().max() <= 2e-5


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
        import_outlines([tmp_path / place], tmp_path / "out" / place, OutlineSettings(dpi=dpi))
        stores.append(encode(backbone, read_folder(tmp_path / "out" / place), tmp_path / "stores"))
    first, second = stores
    assert first.key != second.key
    assert torch.allclose(first.page(0).vectors, backbone.encode_pages(["1 Fire pumps\nWater."])[0].vectors, atol=1e-3)
    assert first.image_hashes[0] == second.image_hashes[0] != first.image_hashes[1], "pages are known by their text"
    assert first.image_hashes[1] != second.image_hashes[1]
