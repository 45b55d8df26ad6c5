"""mteb's own code and ours agree on pruned indexes, ties included, and mteb can read its own result files again."""

from __future__ import annotations

import harness.compat  # noqa: F401

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from harness.backbones import registry
from harness.backbones.contract import Options
from harness.benchmarks.data_set import DataSet, read_folder
from harness.encode import encode
from harness.evaluation.config import Config
from harness.evaluation.methods import COMPOSITIONS, Method, choose_methods, prepare
from harness.evaluation.own_threshold import add_partners
from harness.evaluation.pruned_pages import Job
from harness.evaluation.results import DataSetEvaluator
from harness.evaluation.scores import gold_queries, load_queries
from harness.evaluation.tally import Tally, tally
from harness.mteb_bridge.score_matrices import ScoreMatrices, score_matrices
from harness.progress import quiet
from harness.store.reader import Store
from pruners import Window, catalogue
from pruners.core.catalog import kind
from pruners.core.errors import PruneBoardError
from tests.harness.benchmarks.local_tasks import LANGUAGES, local_task, write_layout
from tests.harness.evaluation.toy import write_backbone

pytestmark = pytest.mark.slow

BUDGETS = (0.05, 0.1, 0.25)
CUTOFFS = (1, 5, 10, 50, 100)
SEED = 42
TWINS = 6  # as `write_layout` repeats pages


@dataclass(frozen=True)
class Scored:
    """A data set loaded by mteb's task, encoded, pruned by all methods and scored by our own path."""

    mteb_task: Any
    data_set: DataSet
    store: Store
    methods: list[Method]
    evaluator: DataSetEvaluator
    scores: ScoreMatrices
    tally: Tally


@pytest.fixture(scope="module")
def scored(tmp_path_factory, datasets_cache):
    from harness.benchmarks.mteb_tasks import from_task

    folder = tmp_path_factory.mktemp("bridge")
    toy = registry.load(str(write_backbone(folder)), Options())
    calibration = encode(toy, read_folder(write_layout(folder / "other", pages=40, queries=4, start=100)), folder / "s")
    known = [e for e in catalogue().values() if e.source == "built-in" and e.name not in COMPOSITIONS]
    kinds = {kind(entry): entry.name for entry in sorted(known, key=lambda e: e.name == "sap")}
    assert len(kinds) >= 7, kinds
    methods = choose_methods(list(kinds.values()), trials=1)
    methods = prepare(methods, Window.parse("1-2"), list(calibration.pages()), BUDGETS)
    assert [m.failure for m in methods if m.failure] == []
    sizes = {
        "v1": ("VidoreArxivQARetrieval", {"pages": 110, "queries": 40}),
        "v2": ("Vidore2ESGReportsRetrieval", {"pages": 40, "queries": 9, "languages": LANGUAGES}),
    }
    found = {}
    for layout, (base, size) in sizes.items():
        mteb_task = local_task(base, write_layout(folder / f"Bridge{layout}", **size))
        mteb_task.load_data()
        (task,) = from_task(mteb_task)
        store = encode(toy, task, folder / "s")
        evaluator = DataSetEvaluator.of(task, store.query_ids)
        queries = load_queries(store, range(len(store.query_ids)))
        gold = gold_queries(evaluator.evaluate)
        job = Job(store, tuple(methods), BUDGETS, SEED, queries, gold)
        scores = score_matrices(task, store, methods, Config(budgets=BUDGETS, seed=SEED), 1, lambda n: None)
        counted = tally(job, evaluator.evaluate, 1, lambda n: None)
        found[layout] = Scored(mteb_task, task, store, methods, evaluator, scores, counted)
    return found


def _by_mteb(data: Scored, scores: np.ndarray) -> dict[str, dict[str, float]]:
    """mteb's figures of each language."""
    import mteb

    from harness.mteb_bridge import Index, Replay, model_meta

    retriever = Replay([Index(data.data_set, data.store, scores)], model_meta(data.store, {"pruner": "any"}))
    found = mteb.evaluate(retriever, data.mteb_task, cache=None, co2_tracker=False, show_progress_bar=False)
    return {row["hf_subset"]: row for row in found.task_results[0].scores["test"]}


def _disagreement(frame: Any, theirs: dict[str, dict[str, float]]) -> float:
    """The largest difference over languages and cut-offs."""
    ours = frame.assign(language=frame["language"].replace("", "default")).groupby("language").mean(numeric_only=True)
    assert set(ours.index) == set(theirs)
    return max(
        abs(ours.loc[subset, f"ndcg@{k}"] - row[f"ndcg_at_{k}"]) for subset, row in theirs.items() for k in CUTOFFS
    )


@pytest.mark.parametrize("layout", ["v1", "v2"])
def test_ndcg_of_mteb_and_of_our_own_path_agree_at_every_budget(scored, layout):
    data = scored[layout]
    full = data.evaluator.full(data.tally, data.store.dim).per_query
    assert _disagreement(full, _by_mteb(data, data.scores.full)) <= 1e-5
    worst, seen = 0.0, set()
    for method in data.methods:
        frame = data.evaluator.method(method, data.tally, data.store.dim).per_query
        for b, budget in enumerate(BUDGETS):
            theirs = _by_mteb(data, data.scores.by_method[method.text][0, b])
            difference = _disagreement(frame[frame["budget"] == budget], theirs)
            assert difference <= 1e-5, (method.text, budget)
            worst = max(worst, difference)
            seen.add(tuple(row["ndcg_at_5"] for row in theirs.values()))
    assert len(seen) > len(data.methods)  # not one figure for all
    print(f"{len(data.methods)} methods, {len(BUDGETS)} budgets: {worst:.1e} apart")


@pytest.mark.parametrize("layout", ["v1", "v2"])
def test_the_scores_are_those_of_plain_max_sim_and_of_replay(scored, layout):
    from harness.mteb_bridge import replay

    data = scored[layout]
    queries = [data.store.query(i) for i in range(len(data.store.query_ids))]
    plain = np.array([[(query @ page.vectors.T).amax(1).sum() for page in data.store.pages()] for query in queries])
    assert np.abs(data.scores.full - plain).max() < 1e-5
    assert (replay(data.data_set, data.store, None)._indexes[0].scores == data.scores.full).all()
    for method in data.methods:
        again = replay(data.data_set, data.store, method.pruner, BUDGETS[1], seed=SEED)
        assert np.abs(again._indexes[0].scores - data.scores.by_method[method.text][0, 1]).max() < 1e-5
    assert again.mteb_model_meta.experiment_kwargs["budget"] == BUDGETS[1]
    native = replay(data.data_set, data.store, None, profile="native")  # the toy has no prompt: nothing is added
    assert (native._indexes[0].scores == data.scores.full).all()
    assert native.mteb_model_meta.experiment_kwargs["indexed"] == "native"


def test_the_data_has_ties_that_move_ndcg(scored):
    """Pages that look alike score alike, and their order, by descending id, counts."""
    data = scored["v1"]
    twin = {f"corpus-test-{i}": f"corpus-test-{110 - TWINS + i}" for i in range(TWINS)}
    at = {page: i for i, page in enumerate(data.data_set.page_ids)}
    scores = data.scores.by_method["sap"][0, 1]
    assert all((scores[:, at[a]] == scores[:, at[b]]).all() for a, b in twin.items())
    swapped = scores.copy()
    for a, b in twin.items():
        swapped[:, at[max(a, b)]] -= 1e-4  # what trec_eval ranks first among equals comes second
    assert not np.allclose(data.evaluator.evaluate(scores)["ndcg@5"], data.evaluator.evaluate(swapped)["ndcg@5"])


def test_a_cut_keeps_what_trec_eval_ranks_first(scored):
    from harness.mteb_bridge import Index, Replay, model_meta

    data = scored["v1"]
    retriever = Replay([Index(data.data_set, data.store, data.scores.full)], model_meta(data.store, {}))
    queries = data.mteb_task.dataset["default"]["test"]["queries"]
    few = retriever.search(queries, hf_subset="default", top_k=3)
    every = retriever.search(queries, hf_subset="default", top_k=1000)
    assert set(every) >= set(data.evaluator.evaluate.query_ids)
    for query, pages in every.items():
        assert len(pages) == len(data.data_set.page_ids)
        assert list(few[query].items()) == sorted(pages.items(), key=lambda item: (item[1], item[0]))[:-4:-1]


def test_other_pages_than_the_store_s_are_refused(scored):
    from harness.mteb_bridge import Index, Replay, model_meta

    data = scored["v1"]
    retriever = Replay([Index(data.data_set, data.store, data.scores.full)], model_meta(data.store, {}))
    corpus = data.mteb_task.dataset["default"]["test"]["corpus"]
    retriever.index(corpus, hf_subset="default")
    with pytest.raises(PruneBoardError, match="differ in 1 pages, such as 'corpus-test-109'"):
        retriever.index(corpus.select(range(109)), hf_subset="default")
    with pytest.raises(PruneBoardError, match="has no query"):
        retriever.search(scored["v2"].mteb_task.dataset["german"]["test"]["queries"], hf_subset="german", top_k=5)


def test_files_are_mteb_s_own_and_mteb_reads_them_back(scored, tmp_path):
    import mteb

    from harness.mteb_bridge import write_results

    native = add_partners(choose_methods(["docpruner(z=0)"], 1), ["ink"], 1)
    chosen = [m for m in scored["v2"].methods if m.text in ("sap", "oracle")]
    chosen += [*choose_methods(["random"], trials=2), *native]
    own = replace(scored["v2"].data_set, name="my pages", mteb_task="")  # no task of mteb's: one is made around it
    config = Config(budgets=(0.1, 0.25), seed=SEED)
    write_results(tmp_path, [own], {own.name: scored["v2"].store}, chosen, config, 1, quiet)
    experiments = {}
    for path in tmp_path.rglob("model_meta.json"):
        about = json.loads(path.read_text())["experiment_kwargs"]
        experiments[(about["pruner"], about["budget"], about.get("trial"))] = path.with_name("my_pages.json")
        assert about["seed"] == SEED
        assert about["indexed"] == "visual"
    kept = {pruner: budget for pruner, budget, _ in experiments if pruner in ("docpruner(z=0.0)", "ink")}
    assert 0 < kept["docpruner(z=0.0)"] < 1  # a native method's own ratio, and that of its partner
    assert kept["ink"] == pytest.approx(kept["docpruner(z=0.0)"], abs=0.02)
    assert set(experiments) == {
        ("none", 1.0, None),
        *(("random", budget, trial) for budget in (0.1, 0.25) for trial in (0, 1)),
        *(("sap(layers=1-2)", budget, None) for budget in (0.1, 0.25)),
        *((text, ratio, None) for text, ratio in kept.items()),
    }  # a diagnostic is no retriever
    result = mteb.TaskResult.from_disk(experiments["sap(layers=1-2)", 0.1, None])
    frame = scored["v2"].evaluator.method(
        next(m for m in chosen if m.text == "sap"), scored["v2"].tally, scored["v2"].store.dim
    )
    ours = frame.per_query[frame.per_query["budget"] == 0.1].groupby("language")["ndcg@5"].mean()
    assert result.get_score() == pytest.approx(ours.mean(), abs=1e-5)
    assert {row["hf_subset"] for row in result.scores["test"]} == set(LANGUAGES)
    loaded = mteb.ResultCache(tmp_path).load_results(load_experiments="match_name")
    assert {found.model_name for found in loaded.model_results} == {"pruneboard/toy"}


def test_a_retriever_that_mteb_knows_is_described_as_mteb_does(scored):
    from harness.mteb_bridge import model_meta

    store = scored["v1"].store
    known = replace(store.manifest, about={**store.manifest.about, "checkpoint": "vidore/colqwen2-v1.0"})
    twin = Store(store.folder)
    twin.manifest = known
    meta = model_meta(twin, {"pruner": "sap", "budget": 0.1})
    assert (meta.name, meta.revision) == ("vidore/colqwen2-v1.0", store.manifest.identity["backbone"]["revision"])
    assert "VidoreDocVQARetrieval" in meta.training_datasets
    assert meta.experiment_name == "budget_0.1__pruner_sap"
    assert model_meta(store, {}).name == "pruneboard/toy"  # no path of a local checkpoint
