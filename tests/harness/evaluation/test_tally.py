"""Counting pages gives what whole tables of scores give, whatever the order, the workers and the memory."""

import itertools
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness.evaluation import scores, scoring_state
from harness.evaluation import tally as tallies
from harness.evaluation.methods import choose_methods
from harness.evaluation.pruned_pages import Job, pack, prune_pages, unpack
from harness.evaluation.scores import gold_queries, load_queries
from harness.evaluation.scoring_state import ScoringState
from harness.evaluation.tally import tally
from harness.metrics.ranking import DEPTH, TOP, Evaluator
from harness.metrics.ranks import RankCounts
from harness.scoring.queries import QueryTiles
from harness.store.encoded_page import EncodedPage
from harness.store.reader import Store
from harness.store.writer import StoreWriter
from pruners import PruneBoardError

PAGES, QUERIES = 70, 6
QRELS = {f"q{q}": {f"p{(7 * q + i) % PAGES:02d}": i for i in range(4)} for q in range(QUERIES - 1)}  # the last has none


@given(seed=st.integers(0, 10_000), pages=st.integers(1, 40), cells=st.integers(1, 3), cuts=st.integers(0, 3))
def test_counts_of_parts_add_up_to_the_order_of_a_sort(seed: int, pages: int, cells: int, cuts: int) -> None:
    """Scores are small whole numbers, so that most of them tie. The expected order is Python's own sort."""
    rng = np.random.default_rng(seed)
    page_ids = [f"p{i}" for i in rng.permutation(pages)]
    query_ids = ["a", "b", "c"]
    qrels = {q: {f"p{i}": int(rng.integers(0, 3)) for i in rng.choice(pages + 2, min(3, pages), False)} for q in "ab"}
    qrels["a"][page_ids[0]] = qrels["b"][page_ids[-1]] = 1
    tables = rng.integers(-2, 3, (cells, 3, pages)).astype(np.float32)
    evaluate = Evaluator(qrels, query_ids, page_ids)
    judged = evaluate.judged
    known = np.full((cells, len(judged.rows)), np.nan, np.float32)
    for page in range(pages):
        judged.scores(tables[:, :, page], page, known)
    total = RankCounts.none(judged, cells, TOP)
    for part in np.array_split(rng.permutation(pages), cuts + 1):
        counts = RankCounts.none(judged, cells, TOP)
        counts.count(judged, known, np.ascontiguousarray(tables[:, :, part].transpose(2, 0, 1)), part)
        total.add(counts)
    ranks = total.ranks(judged, DEPTH)
    for cell, (row, query) in itertools.product(range(cells), enumerate("ab")):
        order = sorted(range(pages), key=lambda page: (tables[cell, row, page], page_ids[page]), reverse=True)
        assert evaluate.by_id[total.best[cell, row]].tolist() == order[:TOP]
        asked = [page_ids.index(page) if page in page_ids else -1 for page in qrels[query]]
        expected = [1 + order.index(page) if page >= 0 else 0 for page in asked]
        assert ranks[cell, judged.rows == row].tolist() == expected


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Random pages, some of them the same, so that scores tie."""
    folder, generator = tmp_path_factory.mktemp("tally"), torch.Generator().manual_seed(0)
    with StoreWriter(folder, {"made": "up"}, [f"p{i:02d}" for i in range(PAGES)]) as writer:
        vectors = [torch.randn(12 + i % 5, 8, generator=generator) for i in range(PAGES)]
        for i, page in enumerate(writer.wanted()):
            writer.add(page, EncodedPage(vectors[i % 50] / vectors[i % 50].norm(dim=1, keepdim=True)))
        writer.add_queries(
            [f"q{q}" for q in range(QUERIES)], [torch.randn(3, 8, generator=generator) for _ in range(QUERIES)]
        )
    return Store(folder)


def run(store: Store, workers: int, advance=lambda pages: None, **more) -> tuple[list[np.ndarray], int]:
    methods = tuple(choose_methods(["random", "kmeans", "first_k"], 2))
    evaluate = Evaluator(QRELS, store.query_ids, store.page_ids)
    queries = load_queries(store, range(QUERIES))
    done: list[int] = []

    def took(pages: int) -> None:
        done.append(pages)
        advance(sum(done))

    job = Job(store, methods, (0.2, 0.5), 42, queries, gold_queries(evaluate))
    found = tally(job, evaluate, workers, took, **more)
    counts = found.counts
    arrays = [
        found.known,
        counts.higher,
        counts.before,
        counts.best,
        counts.heights,
        found.kept.rows(range(found.kept.cells)),
        found.vectors,
        found.bits,
    ]
    return arrays, sum(done)


def test_workers_and_memory_change_no_bit(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, done = run(store, 1)
    assert done == PAGES
    shared, done = run(store, 3)
    assert done == PAGES
    monkeypatch.setattr(tallies, "HELD", 0)  # nothing is held: judged pages are scored twice
    twice, done = run(store, 2)
    assert done == PAGES
    for one, other, third in zip(expected, shared, twice, strict=True):
        assert np.array_equal(one, other)
        assert np.array_equal(one, third)
    assert not np.isnan(expected[0]).any()


class Killed(BaseException):
    """As a process that is killed: nobody catches it."""


def kill_at(pages: int):
    def advance(done: int) -> None:
        if done >= pages:
            raise Killed

    return advance


@pytest.mark.parametrize("held", [tallies.HELD, 0], ids=["judged pages held", "judged pages scored twice"])
@pytest.mark.parametrize("workers", [1, 2])
def test_who_was_killed_goes_on_where_it_was_and_ends_with_the_same_bits(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int, held: int
) -> None:
    expected, _ = run(store, 1)
    monkeypatch.setattr(scoring_state, "EVERY", 0.0)
    monkeypatch.setattr(tallies, "HELD", held)
    monkeypatch.setattr(tallies, "BLOCK", 8)
    first, last = ScoringState(tmp_path / "scoring", "key"), ScoringState(tmp_path / "scoring", "key")
    with pytest.raises(Killed):
        run(store, workers, kill_at(60), saved=first)
    taken: list[int] = []
    found, done = run(store, workers, taken.append, saved=last)
    assert done == PAGES
    assert taken[0] >= 60, "what was counted is not counted again"
    for one, other in zip(expected, found, strict=True):
        assert np.array_equal(one, other)
    last.remove()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("spoil", ["another key", "counts", "what was kept"])
def test_counts_that_are_not_of_this_work_or_damaged_are_not_gone_on_with(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: str
) -> None:
    expected, _ = run(store, 1)
    monkeypatch.setattr(scoring_state, "EVERY", 0.0)
    path = tmp_path / "scoring"
    with pytest.raises(Killed):
        run(store, 1, kill_at(60), saved=ScoringState(path, "key"))
    if spoil != "another key":
        file = path if spoil == "counts" else ScoringState(path, "key").kept
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
    taken: list[int] = []
    found, _ = run(store, 1, taken.append, saved=ScoringState(path, "other" if spoil == "another key" else "key"))
    assert taken[0] == 1, "from the first page on"
    for one, other in zip(expected, found, strict=True):
        assert np.array_equal(one, other)


@pytest.fixture
def like_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors stay on the CPU; all else is as beside a GPU: workers prune, this process scores, in torch operations."""
    monkeypatch.setattr(QueryTiles, "on_gpu", property(lambda self: True))


def test_beside_a_gpu_workers_prune_and_change_no_bit(
    store: Store, monkeypatch: pytest.MonkeyPatch, like_a_gpu: None
) -> None:
    here = os.getpid()
    pruned_by, scored_by = [], []
    prune, score = scores.prune_pages, scores.score_page
    monkeypatch.setattr(scores, "prune_pages", lambda job, pages: pruned_by.append(os.getpid()) or prune(job, pages))
    monkeypatch.setattr(scores, "score_page", lambda *page: scored_by.append(os.getpid()) or score(*page))
    alone, done = run(store, 1)
    assert done == PAGES
    assert set(pruned_by) == set(scored_by) == {here}
    calls, _ = len(pruned_by), scored_by.clear()
    shared, done = run(store, 3)
    assert done == PAGES
    assert len(pruned_by) == calls + 2  # the first judged page and the first other one are pruned here, and no more
    assert scored_by == [here] * PAGES
    for one, other in zip(alone, shared, strict=True):
        assert np.array_equal(one, other)


def test_beside_a_gpu_figures_are_those_of_the_cpu(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, _ = run(store, 1)
    monkeypatch.setattr(QueryTiles, "on_gpu", property(lambda self: True))
    found, _ = run(store, 2)
    np.testing.assert_allclose(found[0], expected[0], atol=1e-5)
    for one, other in zip(expected[5:], found[5:], strict=True):
        assert np.array_equal(one, other)


def test_a_gpu_without_memory_for_scores_is_said_with_a_way_out(
    store: Store, monkeypatch: pytest.MonkeyPatch, like_a_gpu: None
) -> None:
    def full(*page: object) -> np.ndarray:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(scores, "score_page", full)
    with pytest.raises(PruneBoardError, match=r"GPU's memory does not hold the scores of '.*--device cpu"):
        run(store, 1)


def test_what_goes_between_processes_is_small_and_the_same(store: Store) -> None:
    """A page of groups is sent as labels; vectors that a method made are sent whole."""
    methods = tuple(choose_methods(["kmeans", "first_k", "hpc"], 1))
    job = Job(store, methods, (0.2, 0.5), 42, load_queries(store, range(QUERIES)), {})
    ((page, pruned),) = prune_pages(job, [3])
    sent = pickle.dumps(pack(pruned))
    back = unpack(pickle.loads(sent), page)
    assert b"torch" not in sent
    assert back.rows == pruned.rows
    (results,) = pruned.results.values()  # of one codec
    for one, other in zip(*back.results.values(), results, strict=True):
        kept = [one.kept(i) if hasattr(one, "kept") else one.vectors[i] for i in range(2)]
        wanted = [other.kept(i) if hasattr(other, "kept") else other.vectors[i] for i in range(2)]
        assert all(np.array_equal(a, b) for a, b in zip(kept, wanted, strict=True))
