"""Benchmarks through mteb's own, unmodified task code: offline, twice in one process, lazily."""

from __future__ import annotations

import harness.compat  # noqa: F401

import gc
import importlib.util
import json
import os
import subprocess
import sys
import weakref
from dataclasses import replace
from pathlib import Path

import pytest

from harness.benchmarks.known import known, snake_case
from tests.harness.benchmarks.local_tasks import LANGUAGES, local_task, write_layout
from tests.harness.evaluation.toy import write_backbone

pytestmark = pytest.mark.slow

V1, V2 = "VidoreArxivQARetrieval", "Vidore2ESGReportsRetrieval"


@pytest.fixture(scope="module")
def layouts(tmp_path_factory, datasets_cache):
    folder = tmp_path_factory.mktemp("layouts")
    v1 = write_layout(folder / "LocalV1", pages=60, queries=24)
    v2 = write_layout(folder / "LocalV2", pages=40, queries=8, languages=LANGUAGES)
    return {V1: v1, V2: v2}


def test_the_manifest_is_what_mteb_says_and_what_is_published():
    spec = importlib.util.spec_from_file_location("pin", Path(__file__).parents[3] / "scripts" / "pin_benchmarks.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    now, pinned = script.gather(), json.loads(json.dumps(known()))
    for task in pinned["tasks"].values():
        task.pop("content", None)
    assert now["benchmarks"] == pinned["benchmarks"]
    assert now["tasks"] == pinned["tasks"]
    assert [len(pinned["benchmarks"][name]) for name in ("vidore-v1", "vidore-v2")] == [10, 4]
    table = {  # pages, queries, qrels, noted apart from mteb's metadata
        "VidoreTatdqaRetrieval": (277, 1646, 1663),
        "VidoreShiftProjectRetrieval": (1000, 100, 100),
        "Vidore2ESGReportsHLRetrieval": (1538, 52, 128),
    }
    for name, counts in table.items():
        found = pinned["tasks"][name]["subsets"]["default"]
        assert (found["pages"], found["queries"], found["qrels"]) == counts


def test_folders_of_the_cache_are_named_as_datasets_names_them():
    from datasets.naming import camelcase_to_snakecase

    for facts in known()["tasks"].values():
        name = facts["dataset"].partition("/")[2]
        assert snake_case(name) == camelcase_to_snakecase(name)


def test_both_layouts_load_twice_in_one_process_and_leave_nothing_behind(layouts):
    import mteb

    from harness.benchmarks.mteb_tasks import from_task

    before = {name: mteb.get_task(name).metadata.model_dump_json() for name in (V1, V2)}
    first: dict[str, dict] = {}
    for _ in range(2):
        for name, folder in layouts.items():
            task = local_task(name, folder)
            task.load_data()
            (found,) = from_task(task)
            assert first.setdefault(name, found.content) == found.content
            task.unload_data()
            task.load_data()  # the very same instance again
            assert from_task(task)[0].content == found.content
    assert {name: mteb.get_task(name).metadata.model_dump_json() for name in (V1, V2)} == before
    assert first[V1] != first[V2]


def test_v1_is_one_data_set_with_mteb_s_ids_and_queries_without_text_are_counted(layouts):
    from harness.benchmarks.data_set import read_folder
    from harness.benchmarks.mteb_tasks import from_task

    task = local_task(V1, layouts[V1])
    task.load_data()
    (found,) = from_task(task)
    ours = read_folder(layouts[V1])
    assert found.page_ids == tuple(f"corpus-test-{page}" for page in ours.page_ids)
    assert found.file_hashes == ours.file_hashes
    assert list(found.queries.values()) == list(ours.queries.values())
    assert found.dropped_queries == ours.dropped_queries == 1
    assert found.languages == {}
    assert {grade for row in found.qrels.values() for grade in row.values()} == {1, 2}
    assert found.image(7).tobytes() == ours.image(7).tobytes()


def test_v2_is_one_data_set_its_corpus_is_read_once_and_its_queries_speak_four_languages(layouts, monkeypatch):
    from harness.benchmarks import mteb_tasks

    reads = []
    corpus_of = mteb_tasks._Corpus.of
    monkeypatch.setattr(mteb_tasks._Corpus, "of", lambda rows: reads.append(rows) or corpus_of(rows))
    task = local_task(V2, layouts[V2])
    task.load_data()
    (found,) = mteb_tasks.from_task(task)
    assert len(reads) == 1
    assert (len(found.page_ids), len(found.queries)) == (40, 32)
    assert set(found.languages.values()) == set(LANGUAGES)
    assert all(query.startswith(f"{language}:query-test-") for query, language in found.languages.items())


def test_languages_with_pages_of_their_own_are_data_sets_of_one_task(layouts, tmp_path):
    from datasets import Dataset

    from harness.benchmarks.mteb_tasks import from_task

    task = local_task(V2, layouts[V2])
    task.load_data()
    task.convert_v1_dataset_format_to_v2(num_proc=None)
    german = task.dataset["german"]["test"]["corpus"]
    changed = [{**row, "image": row["image"].rotate(90).resize((9, 9))} for row in german]
    task.dataset["german"]["test"]["corpus"] = Dataset.from_list(changed, features=german.features)
    several, alone = from_task(task)
    assert (several.name, alone.name) == ("LocalV2/french+spanish+english", "LocalV2/german")
    assert several.mteb_task == alone.mteb_task == "LocalV2"
    assert (len(several.queries), len(alone.queries)) == (24, 8)


def test_a_thousand_pages_are_encoded_with_a_few_decoded_at_a_time(tmp_path, datasets_cache):
    from PIL import Image

    from harness.backbones import registry
    from harness.backbones.contract import Options
    from harness.benchmarks.mteb_tasks import from_task
    from harness.encode import encode

    folder = write_layout(tmp_path / "Large", pages=1000, queries=4, twins=0, size=(400, 400))
    task = local_task(V1, folder)
    task.load_data()
    (large,) = from_task(task)
    made: list[weakref.ref[Image.Image]] = []
    most = 0

    def watched(index):
        nonlocal most
        image = large.image(index)
        made[:] = [ref for ref in made if ref() is not None] + [weakref.ref(image)]
        most = max(most, len(made))
        return image

    toy = registry.load(str(write_backbone(tmp_path)), Options())
    gc.collect()
    before = _peak_memory(reset=True)
    store = encode(toy, replace(large, image=watched), tmp_path / "stores", batch_size=4)
    grown = _peak_memory() - before
    assert len(store) == 1000
    assert most <= 8  # two batches, not a thousand pages
    assert grown < 80e6, f"{grown / 1e6:.0f} MB; a thousand decoded pages are 480 MB"
    print(f"{most} decoded pages at most, {grown / 1e6:.0f} MB")


def _peak_memory(reset: bool = False) -> int:
    """Bytes of the largest resident set since the last reset."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def test_mteb_s_own_task_from_a_cache_offline_and_another_revision_is_said(tmp_path):
    """The very class that mteb has, by its name, on the command line; the cache holds a data set of that name."""
    from datasets import Dataset, load_dataset

    from harness.benchmarks.mteb_tasks import loaded_revision

    facts = known()["tasks"][V1]
    name = facts["dataset"].partition("/")[2]
    folder = write_layout(tmp_path / name, pages=60, queries=24)
    commit = "f" * 40
    for part in ("corpus", "queries", "qrels"):
        load_dataset(str(folder), part, cache_dir=str(tmp_path / "made"))
        (made,) = (tmp_path / "made").glob(f"*/{part}/0.0.0/*/dataset_info.json")
        place = tmp_path / "cache" / f"mteb___{snake_case(name)}" / part / "0.0.0" / commit
        place.parent.mkdir(parents=True)
        made.parent.rename(place)
    toy = write_backbone(tmp_path)
    command = ["--backbone", toy, "--benchmark", V1, "--pruner", "random", "--pruner", "ink", "--budgets", "0.1,0.3"]
    command += ["--trials", "2"]
    command += [
        "--store",
        tmp_path / "s",
        "--out",
        tmp_path / "run",
        "--mteb-results",
        tmp_path / "mteb",
        "--workers",
        "1",
    ]
    run = subprocess.run(
        [sys.executable, "-m", "harness.cli", "evaluate", *map(str, command), "--json", "--quiet"],
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_CACHE": str(tmp_path / "cache"), "COLUMNS": "200"},
    )
    assert run.returncode == 0, run.stderr
    remarks = json.loads(run.stdout)["remarks"]
    assert f"{V1} is not the pinned one: 60 pages were read, 500 are known" in remarks
    assert f"{V1} is not the pinned one: revision {commit} was read, {facts['revision']} is pinned" in remarks
    recorded = json.loads((tmp_path / "run" / "stores.json").read_text())[V1]
    assert recorded["revision"] == facts["revision"]
    assert "60 pages were read, 500 are known" in recorded["pinned"]
    assert "60 pages were read" in run.stderr
    (corpus,) = (tmp_path / "cache").glob("*/corpus/0.0.0/*/*-test.arrow")
    assert loaded_revision(Dataset.from_file(str(corpus))) == commit
    pinned = corpus.parent.rename(corpus.parent.with_name(facts["revision"])) / corpus.name
    assert loaded_revision(Dataset.from_file(str(pinned))) == facts["revision"]
    files = sorted((tmp_path / "mteb").rglob(f"{V1}.json"))
    assert len(files) == 1 + 2 * 2 + 2  # full; two trials of random; ink
    meta = json.loads((files[-1].parent / "model_meta.json").read_text())
    assert set(meta["experiment_kwargs"]) >= {"pruner", "budget", "seed", "indexed"}
    _same_figures(tmp_path, files)


def _same_figures(folder: Path, files: list[Path]) -> None:
    """mteb's files say what the run folder says."""
    import pandas as pd

    for file in files:
        about = json.loads((file.parent / "model_meta.json").read_text())["experiment_kwargs"]
        theirs = json.loads(file.read_text())
        assert theirs["dataset_revision"] == known()["tasks"][V1]["revision"]
        if about["pruner"] == "ink":
            ours = pd.read_parquet(folder / "run" / "results" / V1 / "ink.parquet")
            ours = ours[ours["budget"] == about["budget"]]
            assert theirs["scores"]["test"][0]["ndcg_at_5"] == pytest.approx(ours["ndcg@5"].mean(), abs=1e-5)
