"""`harness encode`: every tiny backbone, killed at any moment, ends with the same bytes."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from harness.backbones import registry
from harness.backbones.batching import OutOfMemoryError, in_batches
from harness.backbones.contract import Card, Options
from harness.benchmarks.benchmark import load_benchmark
from harness.benchmarks.data_set import BenchmarkError, read_folder
from harness.cli import app
from harness.encode import encode, store_folder
from harness.store.encoded_page import EncodedPage
from harness.store.format import StoreError, write_manifest
from harness.store.reader import Store
from harness.store.sidecar import read_manifest
from pruners.core.errors import CatalogError, PruneBoardError
from tests.harness.benchmark_folder import write_benchmark
from tests.harness.evaluation.toy import write_backbone, write_data_set

BACKBONES = ["colpali", "colqwen2", "colqwen2.5", "colsmol", "jina-v4"]


@pytest.fixture(scope="module")
def benchmark_folder(tmp_path_factory):
    return write_benchmark(tmp_path_factory.mktemp("benchmarks") / "tiny_pages")


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("name", BACKBONES)
def test_encode_command(tmp_path, checkpoints, benchmark_folder, tiny_backbone, name):
    options = ["--benchmark", str(benchmark_folder), "--store", str(tmp_path), "--device", "cpu", "--json"]
    result = CliRunner().invoke(app, ["encode", "--backbone", f"{name}={checkpoints(name)}", *options])
    assert result.exit_code == 0, result.output
    row = json.loads(result.stdout)[0]
    assert (row["pages"], row["queries"]) == (10, 3)
    store = Store(row["store"])
    benchmark = read_folder(benchmark_folder)
    (page,) = tiny_backbone(name).encode_pages([benchmark.image(1)])
    torch.testing.assert_close(store.page(1).vectors, page.vectors, atol=1e-3, rtol=0)
    for signal_name, rows in store.signals.items():
        assert rows == (1 if signal_name == "ink" else tiny_backbone(name).card.layers)
        torch.testing.assert_close(store.page(1).signals[signal_name], page.signals[signal_name], atol=2e-5, rtol=0)
    (query,) = tiny_backbone(name).encode_queries([benchmark.queries["2"]])
    torch.testing.assert_close(store.query(store.query_ids.index("2")), query, atol=1e-3, rtol=0)
    identity = read_manifest(store.folder).identity["backbone"]
    assert identity["query_template"].startswith("Query: {query}")
    assert identity["eos_token"]


def fork_encode(backbone, benchmark, root: Path) -> int:
    """Start `encode` in a child process and return its id."""
    pid = os.fork()
    if pid == 0:
        try:
            encode(backbone, benchmark, root, shard_pages=2, batch_size=2)
        finally:
            os._exit(0)
    return pid


@pytest.mark.slow
@pytest.mark.parametrize("name", ["colpali", "colqwen2"])
def test_killed_at_random_moments_it_ends_byte_identical(tmp_path, tiny_backbone, benchmark_folder, name):
    """SIGKILL, 20 times: a few shards into a run, and then between or during any step; then one run to the end."""
    backbone, benchmark = tiny_backbone(name), read_folder(benchmark_folder)
    whole = encode(backbone, benchmark, tmp_path / "whole", shard_pages=2, batch_size=2)
    runs = []
    for timed in ("first", "second", "third"):  # the quickest: another one may have waited for the machine
        started = time.perf_counter()
        os.waitpid(fork_encode(backbone, benchmark, tmp_path / timed), 0)
        runs.append(time.perf_counter() - started)
    a_step = min(runs) / (whole.manifest.shard_count + 1)
    folder = store_folder(tmp_path / "killed", backbone, benchmark, shard_pages=2)

    def shards_done() -> int:
        return len(read_manifest(folder).shards) if (folder / "manifest.json").is_file() else 0

    rng, kills, stages = random.Random(7), 0, set()
    while kills < 20:
        wanted = shards_done() + rng.randrange(3)
        pid = fork_encode(backbone, benchmark, tmp_path / "killed")
        status = None
        while shards_done() < wanted and status is None:
            ended, how = os.waitpid(pid, os.WNOHANG)
            status = how if ended else None
            time.sleep(0.001)
        if status is None:
            time.sleep(rng.uniform(0, a_step))
            os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
        kills += os.WIFSIGNALED(status)
        stages.add(shards_done())
        if shards_done() and read_manifest(folder).complete:
            shutil.rmtree(folder)  # nothing is left to interrupt: begin anew
    encode(backbone, benchmark, tmp_path / "killed", shard_pages=2, batch_size=2)
    assert content(folder) == content(whole.folder)
    assert len(stages) >= 3, f"the kills fell only where {stages} shards were done"


def test_damage_is_named_and_repaired_on_request(tmp_path, tiny_backbone, benchmark_folder):
    backbone, benchmark = tiny_backbone("colpali"), read_folder(benchmark_folder)
    store = encode(backbone, benchmark, tmp_path, shard_pages=4)
    good, path = content(store.folder), store.folder / "pages-00001.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(StoreError, match=r"pages-00001\.safetensors .*--repair"):
        encode(backbone, benchmark, tmp_path, shard_pages=4)
    encode(backbone, benchmark, tmp_path, shard_pages=4, repair=True)
    assert content(store.folder) == good


def test_a_finished_store_needs_no_weights(tmp_path, checkpoints, tiny_backbone, benchmark_folder):
    benchmark = read_folder(benchmark_folder)
    encode(tiny_backbone("colpali"), benchmark, tmp_path)
    again = registry.load(f"colpali={checkpoints('colpali')}", Options(device="cpu"))
    encode(again, benchmark, tmp_path)
    assert "model" not in vars(again)


def test_other_settings_get_another_store(tmp_path, checkpoints, tiny_backbone, benchmark_folder):
    benchmark = read_folder(benchmark_folder)
    fewer = registry.load(f"colqwen2={checkpoints('colqwen2')}", Options(device="cpu", max_visual_tokens=20))
    half = registry.load(f"colqwen2={checkpoints('colqwen2')}", Options(device="cpu", dtype="bfloat16"))
    folders = {
        store_folder(tmp_path, tiny_backbone("colqwen2"), benchmark),
        store_folder(tmp_path, fewer, benchmark),
        store_folder(tmp_path, half, benchmark),
        store_folder(tmp_path, tiny_backbone("colqwen2"), benchmark, "float32"),
    }
    assert len(folders) == 4


def test_benchmarks_with_the_same_pages_share_the_work(tmp_path, tiny_backbone, benchmark_folder, monkeypatch):
    """A twin with other queries links the page shards, and is the store it would have been."""
    backbone, benchmark = tiny_backbone("colpali"), read_folder(benchmark_folder)
    twin = replace(benchmark, name="twin", queries={"9": "table 3"}, content={**benchmark.content, "queries": "other"})
    alone = encode(backbone, twin, tmp_path / "alone", shard_pages=4)
    encode(backbone, benchmark, tmp_path / "shared", shard_pages=4)

    def refuse(*_: object) -> None:
        raise AssertionError("a page was encoded twice")  # one that comes back from another process

    monkeypatch.setattr(type(backbone), "encode_pages", refuse)
    shared = encode(backbone, twin, tmp_path / "shared", shard_pages=4)
    assert content(shared.folder) == content(alone.folder)
    other_precision = store_folder(tmp_path / "shared", backbone, twin, "float32", 4)
    with pytest.raises(AssertionError, match="encoded twice"):
        encode(backbone, twin, tmp_path / "shared", shard_pages=4, vector_dtype="float32")
    assert not read_manifest(other_precision).shards


def test_a_twin_that_lost_a_shard_does_not_stop_another_benchmark(tmp_path, tiny_backbone, benchmark_folder):
    backbone, benchmark = tiny_backbone("colpali"), read_folder(benchmark_folder)
    first = encode(backbone, benchmark, tmp_path, shard_pages=4)
    good = content(first.folder)
    (first.folder / "pages-00001.safetensors").unlink()
    twin = replace(benchmark, name="twin", queries={"9": "table 3"}, content={**benchmark.content, "queries": "other"})
    found = content(encode(backbone, twin, tmp_path, shard_pages=4).folder)
    assert found["pages-00001.safetensors"] == good["pages-00001.safetensors"]


def test_pages_without_queries_are_refused_by_name(tmp_path, tiny_backbone, benchmark_folder):
    benchmark = replace(read_folder(benchmark_folder), queries={})
    with pytest.raises(StoreError, match="at least one query"):
        encode(tiny_backbone("colpali"), benchmark, tmp_path)


def test_the_example_in_the_documentation_works(tmp_path, benchmark_folder):
    text = (Path(__file__).parents[2] / "docs" / "backbones.md").read_text()
    code = text.split("```python\n# my_retriever.py\n")[1].split("```")[0]
    (tmp_path / "my_retriever.py").write_text(code)
    store = encode(registry.load(str(tmp_path / "my_retriever.py")), read_folder(benchmark_folder), tmp_path)
    assert store.page(0).vectors.shape == (4, 3)


def test_an_unreadable_image_is_named_and_what_was_done_stays(tmp_path, tiny_backbone):
    folder = write_benchmark(tmp_path / "bad", bad_page=6)
    benchmark, backbone = read_folder(folder), tiny_backbone("colpali")
    with pytest.raises(BenchmarkError, match="the image of page 'doc_6' cannot be read"):
        encode(backbone, benchmark, tmp_path, shard_pages=2)
    manifest = read_manifest(store_folder(tmp_path, backbone, benchmark, shard_pages=2))
    assert sorted(manifest.shards) == [0, 1, 2]


class Shouting:
    """A retriever of one's own, of no framework at all: the mean colour of a page's quarters."""

    card = Card(
        name="shouting",
        checkpoint="none",
        revision="1",
        layers=0,
        heads=0,
        dim=3,
        dtype="float32",
        signals=(),
        signals_from="nothing",
        page_prompt="",
        token_layout="four quarters",
        eos_token="",
        query_template="{query}",
    )

    def encode_pages(self, images):
        if len(images) > 2:
            raise torch.OutOfMemoryError("too many")
        quarters = [torch.from_numpy(np.array(image.resize((2, 2)))).reshape(4, 3) for image in images]
        return [EncodedPage(colours / 255, (2, 2)) for colours in quarters]

    def encode_queries(self, texts):
        return [torch.tensor([[len(text), 0.0, 1.0]]) / 100 for text in texts]


def test_out_of_memory_halves_the_batch(tmp_path, benchmark_folder):
    store = encode(Shouting(), read_folder(benchmark_folder), tmp_path, batch_size=8)
    assert len(store) == 10
    assert store.page(3).grid == (2, 2)


def test_one_page_too_large_is_named():
    def never(batch):
        raise MemoryError

    with pytest.raises(OutOfMemoryError, match=r"page 'x' alone does not fit.*--max-visual-tokens"):
        list(in_batches(never, [1, 2], 2, lambda i: f"page {'xy'[i]!r}"))


def test_other_errors_are_not_taken_for_memory():
    def broken(batch):
        raise RuntimeError("shapes differ")

    with pytest.raises(RuntimeError, match="shapes differ"):
        list(in_batches(broken, [1, 2], 2, str))


def test_a_backbone_by_path(tmp_path, benchmark_folder):
    file = tmp_path / "my_retriever.py"
    file.write_text(
        "from tests.harness.test_encode import Shouting\n"
        "from harness.backbones.contract import backbone\n\n"
        '@backbone("mine", checkpoint="none", signals=())\n'
        "def load(checkpoint, options):\n    return Shouting()\n"
    )
    options = ["--benchmark", str(benchmark_folder), "--store", str(tmp_path), "--json"]
    result = CliRunner().invoke(app, ["encode", "--backbone", str(file), *options])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)[0]["vectors"] == 40


def test_selectors_are_read():
    choice = registry.choose("colqwen2.5=someone/else@v2")
    assert (choice.entry.name, choice.checkpoint, choice.revision) == ("colqwen2.5", "someone/else", "v2")
    assert registry.choose("colpali").checkpoint == "vidore/colpali-v1.3"
    with pytest.raises(CatalogError, match=r"no backbone 'colpally'; did you mean colpali"):
        registry.choose("colpally")
    with pytest.raises(CatalogError, match="no file"):
        registry.choose("absent.py")


def test_listing_backbones_imports_no_model():
    import subprocess
    import sys

    code = (
        "import sys; from harness.backbones.registry import catalogue; names = catalogue();"
        "assert {'colpali', 'colqwen2', 'colqwen2.5'} <= set(names), names;"
        "assert not {'torch', 'transformers', 'colpali_engine'} & set(sys.modules), 'imported a model library'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_offline_error_reaches_the_user(tmp_path, benchmark_folder, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(PruneBoardError, match=r"hf download vidore/colqwen2-v1\.0.*`--backbone nano` works offline"):
        CliRunner().invoke(
            app, ["encode", "--backbone", "colqwen2", "--benchmark", str(benchmark_folder)], catch_exceptions=False
        )


def test_benchmark_folder_is_read(benchmark_folder):
    benchmark = read_folder(benchmark_folder)
    assert benchmark.page_ids[:2] == ("doc_0", "doc_1")
    assert benchmark.queries == {"0": "revenue", "2": "energy report in 2021?", "3": "table 3"}
    assert benchmark.dropped_queries == 1
    assert benchmark.qrels == {"0": {"doc_0": 1}, "2": {"doc_2": 1}, "3": {"doc_3": 2, "doc_4": 1}}
    assert benchmark.image(7).size == (260, 200)
    assert benchmark.content == read_folder(benchmark_folder).content


def test_an_edited_backbone_file_and_another_library_encode_again_and_say_so(tmp_path: Path) -> None:
    write_data_set(tmp_path / "pages", range(6), queries=3)
    file, (data_set,) = write_backbone(tmp_path), load_benchmark(str(tmp_path / "pages")).data_sets
    said: list[str] = []
    first = encode(registry.load(str(file)), data_set, tmp_path / "stores", say=said.append)
    assert encode(registry.load(str(file)), data_set, tmp_path / "stores", say=said.append).key == first.key
    assert said == []

    file.write_text(file.read_text() + "\n# a comment\n")
    assert encode(registry.load(str(file)), data_set, tmp_path / "stores", say=said.append).key == first.key

    file.write_text(file.read_text().replace("vectors = rng.standard_normal", "vectors = -rng.standard_normal"))
    second = encode(registry.load(str(file)), data_set, tmp_path / "stores", say=said.append)
    assert second.key != first.key
    assert (second.page(0).vectors == -first.page(0).vectors).all(), "new vectors, not those of the code before"
    assert "pages was encoded before with other code of the backbone; it is encoded again" in said[0]

    identity = {**second.manifest.identity, "made_with": {**second.manifest.identity["made_with"], "libraries": "x 1"}}
    older = tmp_path / "stores" / second.folder.name.replace(second.key, "1" * 16)
    shutil.copytree(second.folder, older)
    shutil.rmtree(second.folder)
    write_manifest(older, replace(second.manifest, identity=identity))
    third = encode(registry.load(str(file)), data_set, tmp_path / "stores", say=said.append)
    assert third.key == second.key
    assert "encoded before with other libraries (x 1)" in said[-1]
