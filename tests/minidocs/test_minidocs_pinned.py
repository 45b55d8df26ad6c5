"""The pinned benchmark is what the code draws, loads as ViDoRe's layout does, and keeps its calibration pages apart."""

from __future__ import annotations

import harness.compat  # noqa: F401

import pytest
from PIL import Image

from harness import compat  # noqa: F401
from harness.benchmarks.content import image_hash
from harness.benchmarks.data_set import read_folder
from harness.minidocs.benchmark import BENCHMARKS, V1, V2, build
from harness.minidocs.files import DATA, PARTS, counts, drawn, folder_of, manifest, read, recipes

ALL = [pytest.param(benchmark, recipe, id=f"{benchmark}-{recipe.name}") for benchmark, recipe in recipes()]


def test_the_manifest_lists_every_dataset_and_all_fits_in_12_megabytes():
    assert {benchmark: set(members) for benchmark, members in manifest().items()} == {
        benchmark: {recipe.name for recipe in members} for benchmark, members in BENCHMARKS.items()
    }
    assert sum(path.stat().st_size for path in DATA.rglob("*") if path.is_file()) <= 12_000_000
    assert len(V1) >= 5
    assert len(V2) >= 2


@pytest.mark.parametrize(("benchmark", "recipe"), ALL)
def test_the_files_have_the_manifest_s_hashes(benchmark, recipe):
    found, pinned = read_folder(folder_of(benchmark, recipe.name)), manifest()[benchmark][recipe.name]
    assert {**found.content, "counts": counts(found)} == pinned


@pytest.mark.slow
@pytest.mark.parametrize(("benchmark", "recipe"), ALL)
def test_drawing_again_gives_the_pinned_contents(benchmark, recipe):
    now, pinned = drawn(build(recipe)), read(folder_of(benchmark, recipe.name))
    assert (now.queries, now.qrels) == (pinned.queries, pinned.qrels)
    assert {page: _pixels(image) for page, image in now.images.items()} == {
        page: _pixels(image) for page, image in pinned.images.items()
    }


def test_no_page_is_in_two_datasets_so_calibration_is_disjoint():
    seen: dict[str, str] = {}
    for benchmark, recipe in recipes():
        for page in map(_pixels, read(folder_of(benchmark, recipe.name)).images.values()):
            assert page not in seen, f"{benchmark}/{recipe.name} shares a page with {seen[page]}"
            seen[page] = f"{benchmark}/{recipe.name}"


def _pixels(image: Image.Image) -> str:
    return image_hash(image.convert("RGB"))


@pytest.mark.parametrize(("benchmark", "recipe"), ALL)
def test_qrels_name_pages_and_queries_that_exist(benchmark, recipe):
    content = read(folder_of(benchmark, recipe.name))
    assert set(content.qrels) == {row["query-id"] for row in content.queries}
    grades = [grade for row in content.qrels.values() for grade in row.values()]
    assert {page for row in content.qrels.values() for page in row} <= set(content.images)
    assert set(grades) == ({1, 2} if recipe.gold == "graded" else {1})
    if recipe.gold == "one":
        assert all(len(row) == 1 for row in content.qrels.values())
    else:
        assert all(len(row) >= 2 for row in content.qrels.values())


def test_the_sizes_are_those_of_the_benchmark_s_description():
    for recipe in V1:
        content = read(folder_of("minidocs-v1", recipe.name))
        assert 120 <= len(content.images) <= 200
        assert len(content.queries) == 100
    for recipe in V2:
        languages = [row["language"] for row in read(folder_of("minidocs-v2", recipe.name)).queries]
        assert languages.count("english") == languages.count("french") == len(languages) / 2
    calibration = read(folder_of("minidocs-calibration", "calibration"))
    assert len(calibration.images) == len(calibration.queries) == 500
    assert {page for row in calibration.qrels.values() for page in row} == set(calibration.images)


def test_datasets_reads_the_folder_by_its_readme(tmp_path):
    from datasets import load_dataset

    folder = str(folder_of("minidocs-v2", "surveys"))
    corpus, queries, qrels = (load_dataset(folder, part, split="test", cache_dir=str(tmp_path)) for part in PARTS)
    assert isinstance(corpus[0]["image"], Image.Image)
    assert set(queries.column_names) >= {"query-id", "query", "language"}
    assert qrels.column_names == ["query-id", "corpus-id", "score"]
    assert (len(corpus), len(queries)) == (200, 160)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("benchmark", "name", "task"),
    [
        ("minidocs-v1", "reports", "VidoreArxivQARetrieval"),
        ("minidocs-v2", "surveys", "Vidore2ESGReportsRetrieval"),
    ],
)
def test_mteb_s_own_vidore_task_loads_the_folder(benchmark, name, task, tmp_path, monkeypatch):
    import mteb

    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path)  # an older folder of this name may be in yours

    base = type(mteb.get_task(task))
    languages = {"english": ["eng-Latn"], "french": ["fra-Latn"]}
    update = {"name": "Minidocs", "dataset": {"path": str(folder_of(benchmark, name)), "revision": None}}
    if benchmark == "minidocs-v2":
        update["eval_langs"] = languages
    local = type("Minidocs", (base,), {"metadata": base.metadata.model_copy(update=update)})()
    local.load_data()
    relevant = local.relevant_docs["test"] if benchmark == "minidocs-v1" else local.relevant_docs["french"]["test"]
    expected = read(folder_of(benchmark, name)).qrels
    assert relevant == {
        f"query-test-{query}": {f"corpus-test-{page}": grade for page, grade in row.items()}
        for query, row in expected.items()
    }
