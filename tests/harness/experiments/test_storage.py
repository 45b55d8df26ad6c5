"""storage-retrieval: one corpus without twins, all queries counted, other methods than SAP, the paper's unit."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1] / "evaluation"))
from toy import paint, write_backbone

from harness import paper
from harness.cli import app
from harness.experiments import engines
from harness.experiments.ready import ready
from harness.experiments.registry import find
from harness.experiments.run import run_experiments
from harness.experiments.storage import storage_retrieval
from harness.experiments.workbench import ExperimentSettings, Workbench
from harness.progress import quiet
from pruners import PruneBoardError, Subset, parse, prune

FIRST, SECOND = range(14), range(4, 20)  # pages 4 to 13 are in both
GRADES = {"multi": (1, 1), "human": (2, 1)}


def write_shared(folder: Path) -> Path:
    """Two data sets that share pages under other ids; their queries have the same ids, each of two relevant pages."""
    for name, numbers in (("multi", FIRST), ("human", SECOND)):
        asked = [{"query-id": f"q{n}", "query": f"find {n} {len(name) + n}"} for n in numbers]
        qrels = []
        for n in numbers:
            other = numbers[(n * 5 + 3) % len(numbers)]
            judged = {n: GRADES[name][0], other: GRADES[name][1]} if other != n else {n: GRADES[name][0]}
            qrels += [{"query-id": f"q{n}", "corpus-id": f"{name}-{p}", "score": g} for p, g in judged.items()]
        corpus = [{"corpus-id": f"{name}-{n}", "image": {"bytes": paint(n), "path": None}} for n in numbers]
        for part, rows in {"corpus": corpus, "queries": asked, "qrels": qrels}.items():
            (folder / name / part).mkdir(parents=True)
            pq.write_table(pa.Table.from_pylist(rows), folder / name / part / "test-00000-of-00001.parquet")
    return folder


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("shared")
    return {"benchmark": str(write_shared(folder / "pages")), "backbone": str(write_backbone(folder)), "window": "1-2"}


@pytest.fixture
def own_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    """numpy and torch only: the others have tests of their own."""
    monkeypatch.setattr(engines.importlib.util, "find_spec", lambda package: None)


def lab_of(settings: dict[str, str], **more) -> Workbench:
    root = Path(settings["benchmark"]).parent
    return Workbench(ExperimentSettings(**settings, **more), root / "stores", root / "out", 1, quiet)


def figures(workbench: Workbench) -> dict[float, dict]:
    return {row["budget"]: dict(row) for row in storage_retrieval(workbench).rows if row["engine"] == "torch, exact"}


def ndcg_by_hand(workbench: Workbench, pages: Sequence[np.ndarray], asked=lambda tokens: tokens) -> float:
    """Of the 20 pages as painted, in float64; a query's ideal is its grades in falling order."""
    found = []
    for data_set in workbench.benchmark.data_sets:
        store = workbench.evaluated[data_set.name]
        for i, query in enumerate(store.query_ids):
            tokens = asked(store.query(i).numpy()).astype(float)
            scores = [sum(max(float(t @ v) for v in page) for t in tokens) for page in pages]
            grades = {int(page.split("-")[1]): grade for page, grade in data_set.qrels[query].items()}
            ranking = sorted(range(len(pages)), key=lambda p: -scores[p])
            gain = sum(grades.get(p, 0) / math.log2(rank + 2) for rank, p in enumerate(ranking[:5]))
            ideal = sum(g / math.log2(rank + 2) for rank, g in enumerate(sorted(grades.values(), reverse=True)[:5]))
            found.append(gain / ideal)
    return float(np.mean(found))


def painted(workbench: Workbench) -> list:
    """Pages 0 to 19, each from one of the data sets that have it."""
    multi, human = workbench.evaluated["multi"], workbench.evaluated["human"]
    return [multi.page(n) if n in FIRST else human.page(n - SECOND[0]) for n in range(20)]


def test_a_page_of_two_data_sets_is_indexed_once_and_quality_is_that_of_a_plain_double_loop(shared, own_engines):
    workbench = lab_of(shared)
    found = figures(workbench)
    pages = painted(workbench)
    assert found[1.0]["ndcg@5"] == pytest.approx(ndcg_by_hand(workbench, [p.vectors.double().numpy() for p in pages]))
    for budget in (0.05, 0.1, 0.2):
        pruner = parse("sap(layers=1-2)")
        kept = [page.vectors[prune(pruner, page, [budget]).kept(0)].double().numpy() for page in pages]
        by_hand = ndcg_by_hand(workbench, kept)
        assert found[budget]["ndcg@5"] == pytest.approx(by_hand)
        assert found[budget]["retention"] == pytest.approx(100 * by_hand / found[1.0]["ndcg@5"])
    facts = storage_retrieval(workbench).facts
    assert (facts["pages_listed"], facts["pages"], facts["pages_in_several_data_sets"]) == (30, 20, 10)


def test_queries_that_are_not_timed_count_for_quality_all_the_same(shared, own_engines):
    every, few = figures(lab_of(shared)), figures(lab_of(shared, timed_queries=3))
    assert (every[1.0]["timed_queries"], few[1.0]["timed_queries"]) == (30, 3)
    assert [row["ndcg@5"] for row in few.values()] == [row["ndcg@5"] for row in every.values()]


def test_pages_without_a_hash_are_told_apart_by_data_set_and_id(shared, own_engines, monkeypatch):
    workbench = lab_of(shared)
    for store in workbench.evaluated.values():
        monkeypatch.setattr(type(store), "image_hashes", property(lambda store: ("",) * len(store)))
    found = storage_retrieval(workbench)
    assert found.facts["pages"] == 30
    assert found.facts["compared_by"] == "data set and page id"


def test_a_method_that_merges_is_indexed_with_the_vectors_it_makes(shared, own_engines):
    workbench = lab_of(shared, pruner="kmeans")
    found = figures(workbench)
    made = [prune(parse("kmeans"), page, [0.2]).vectors[0].double().numpy() for page in painted_with_own_ids(workbench)]
    assert found[0.2]["ndcg@5"] == pytest.approx(ndcg_by_hand(workbench, made))
    assert found[0.2]["vectors"] == sum(map(len, made))
    assert found[0.2]["method"] == "kmeans"


def painted_with_own_ids(workbench: Workbench) -> list:
    """K-Means draws by page id, so the page must be the one that is indexed: that of the first data set listed."""
    first = {}
    for data_set in workbench.benchmark.data_sets:
        for page in workbench.evaluated[data_set.name].pages():
            first.setdefault(int(page.id.split("-")[1]), page)
    return [first[n] for n in range(20)]


def test_a_method_that_must_calibrate_is_calibrated_and_one_that_sees_queries_is_refused(
    shared, own_engines, toy_world
):
    workbench = lab_of({**shared, "calibration": toy_world.calibration}, pruner="docpruner")
    assert len({row["realised"] for row in figures(workbench).values()}) == 4
    with pytest.raises(PruneBoardError, match="oracle looks at a page's queries"):
        storage_retrieval(lab_of(shared, pruner="oracle"))


@pytest.mark.parametrize("text", ["kmeans | int8", "first_k | pca(8)", "first_k | turboquant"])
def test_a_codec_is_indexed_as_it_decodes_and_its_own_bytes_stand_beside(text, shared, own_engines, toy_world):
    workbench = lab_of({**shared, "calibration": toy_world.calibration}, pruner=text)
    found, pages = storage_retrieval(workbench), painted_with_own_ids(workbench)
    rows = {row["budget"]: row for row in found.rows if row["engine"] == "torch, exact"}
    (method,) = ready(workbench, [text], (0.05, 0.1, 0.2))
    codec = method.codec
    packed, decoded = 0, []
    for page in pages:
        kept = prune(method.pruner, page, [0.2])
        data = codec.pack((page.vectors[kept.kept(0)] if isinstance(kept, Subset) else kept.vectors[0]).numpy())
        packed += len(data)
        decoded.append(codec.unpack(data, 16).astype(float))
    assert rows[0.2]["method"] == text
    assert rows[0.2]["ndcg@5"] == pytest.approx(ndcg_by_hand(workbench, decoded, codec.query))
    assert rows[0.2]["packed_mib"] == pytest.approx((packed + codec.shared_bytes(16)) / 2**20)
    assert all(row["same_top_5_as_numpy"] == 1 for row in found.rows)
    full = ndcg_by_hand(workbench, [page.vectors.double().numpy() for page in pages])
    assert (rows[1.0]["ndcg@5"], rows[1.0]["vectors"]) == (pytest.approx(full), sum(map(len, pages)))
    assert found.facts["codec"] == str(codec)
    assert any("decoded vectors" in note for note in found.notes)


def test_a_codec_goes_into_a_folder_of_its_own(shared):
    assert lab_of(shared, pruner="kmeans | int8").folder != lab_of(shared, pruner="kmeans").folder


@pytest.mark.parametrize(("text", "says"), [("sap|eos", "names 2 methods"), ("full | int8", "prunes nothing")])
def test_what_is_not_one_method_that_prunes_is_refused(text, says, shared, own_engines):
    with pytest.raises(PruneBoardError, match=says):
        storage_retrieval(lab_of(shared, pruner=text))


def test_an_experiment_with_the_papers_methods_takes_no_pruner(shared):
    with pytest.raises(PruneBoardError, match="main-table shows the paper's methods: --pruner is for storage"):
        run_experiments(lab_of(shared, pruner="kmeans | int8"), [find("main-table")])


def test_the_device_asked_for_is_where_torch_searches(shared, own_engines):
    found = storage_retrieval(lab_of(shared, device="cpu"))
    assert {(row["engine"], row["device"]) for row in found.rows} == {("numpy, exact", "cpu"), ("torch, exact", "cpu")}
    assert engines.engines(torch.device("cuda:1"))["torch, exact"].device == "cuda:1"


def test_the_papers_sizes_are_mib_of_rounded_counts():
    """751.5 is in MiB, and below it stand round(γ · 1,024) vectors a page, not the ⌈γN⌉ of its text."""
    for row in paper.printed()["storage_retrieval_colpali_v2_union"]["rows"]:
        vectors = round(row["gamma"] * 1024)
        assert row["size_mb"] == pytest.approx(3006 * vectors * 128 * 2 / 2**20, abs=0.05)


def test_a_size_is_what_the_vectors_take_in_mib(shared, own_engines):
    row = figures(lab_of(shared))[1.0]
    headers = 2 * 128 + 21 * 8  # of two .npy files, and where pages begin
    assert row["size_mib"] == pytest.approx((row["vectors"] * 16 * 2 + headers) / 2**20)


def test_pruner_is_an_option_of_the_command(shared, own_engines):
    root = Path(shared["benchmark"]).parent
    command = ["experiment", "storage-retrieval", "--backbone", shared["backbone"], "--benchmark", shared["benchmark"]]
    command += ["--pruner", "first_k", "--store", str(root / "stores"), "--out", str(root / "out"), "--json"]
    found = CliRunner().invoke(app, command, catch_exceptions=False)
    assert {row["method"] for row in json.loads(found.stdout)["rows"]} == {"first_k"}
