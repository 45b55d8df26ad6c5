"""Codecs in an evaluation: reported scores and bytes are those of what lies in a file, read and scored by hand."""

from pathlib import Path

import numpy as np
import pytest
import torch

from harness.evaluation import pruned_pages
from harness.evaluation.index_size import FLOAT16, bytes_per_page
from harness.evaluation.methods import COMPOSITIONS, Method, choose_methods, codecs_alone, prepare, refuse_unfit
from harness.evaluation.own_threshold import add_partners
from harness.evaluation.pruned_pages import NATIVE, VISUAL, Job
from harness.evaluation.same_bytes import same_bytes
from harness.evaluation.scores import PageScores, load_queries, score_pages
from harness.store.encoded_page import EncodedPage
from harness.store.reader import Store
from harness.store.writer import StoreWriter
from pruners import Page, PruneBoardError, Subset, catalogue, prune, unit
from pruners.core.budget import UNPRUNED
from tests.pruners.plain_codecs import DECODERS, plain_maxsim, plain_query

PAGES, DIM, BUDGETS = 6, 16, (0.2, 0.5)
CODECS = (
    "float16,int8,int4,binary,binary_both,pq(4),residual(bits=1,codes=16),residual(bits=2,codes=16),"
    "residual(bits=4,codes=16),turboquant(1),turboquant,turboquant(4),dims(8),pca(4)"
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Pages of unit vectors, each with two prompt vectors beside them."""
    folder, generator = tmp_path_factory.mktemp("coded"), torch.Generator().manual_seed(0)
    with StoreWriter(folder, {"made": "up"}, [f"p{i}" for i in range(PAGES)]) as writer:
        for i, page in enumerate(writer.wanted()):
            made = unit(torch.randn(12 + i, DIM, generator=generator))
            prompt = unit(torch.randn(2, DIM, generator=generator))
            writer.add(page, EncodedPage(made, prompt=prompt))
        writer.add_queries(["q0", "q1"], [unit(torch.randn(n, DIM, generator=generator)) for n in (3, 5)])
    return Store(folder)


def ready(store: Store, texts: list[str], codecs: str = CODECS) -> tuple[Method, ...]:
    learned = [Page(f"c{i}", unit(torch.randn(100, DIM, generator=torch.Generator().manual_seed(i)))) for i in range(4)]
    return tuple(prepare(refuse_unfit(choose_methods(texts, 1, codecs=[codecs]), store), None, learned, BUDGETS))


def scored(store: Store, methods: tuple[Method, ...], profile: str) -> list[PageScores]:
    job = Job(store, methods, BUDGETS, 42, load_queries(store, [0, 1]), {}, profile)
    return score_pages(job, range(PAGES))


@pytest.mark.parametrize("profile", [VISUAL, NATIVE])
def test_scores_and_bytes_are_those_of_the_packed_file(store: Store, profile: str, tmp_path: Path) -> None:
    """Every method, codec, budget and page: pack what was kept, stat it, read it bit by bit, score it in float64."""
    methods = ready(store, ["random", "kmeans"])
    assert not [method.failure for method in methods if method.failure]
    found = scored(store, methods, profile)
    queries = [store.query(i).double().tolist() for i in range(2)]
    cell, file = 0, tmp_path / "page"
    for method in methods:
        codec = method.codec
        shared = codec.shared(DIM)
        asked = [[plain_query(codec.name, t, codec.parameters(), shared) for t in tokens] for tokens in queries]
        for p in range(PAGES):
            page = store.page(p)
            result = prune(method.pruner, page, BUDGETS)
            prompt = store.prompt(p) if profile == NATIVE else page.vectors[:0]
            for b in range(len(BUDGETS)):
                kept = page.vectors[result.kept(b)] if isinstance(result, Subset) else result.vectors[b]
                file.write_bytes(codec.pack(torch.cat([kept, prompt]).numpy()))
                assert 8 * file.stat().st_size == found[p].bits[cell + b], (method.text, page.id)
                size = codec.row(DIM).itemsize
                held = [
                    DECODERS[codec.name](file.read_bytes()[at : at + size], DIM, shared)
                    for at in range(0, file.stat().st_size, size)
                ]
                by_hand = [plain_maxsim(query, held) for query in asked]
                if codec == FLOAT16 and not isinstance(result, Subset):
                    continue  # scored as computed: the test below
                assert found[p].scores[1 + cell + b] == pytest.approx(by_hand, abs=1e-5), (method.text, page.id, b)
        cell += len(BUDGETS)


def test_merged_float16_vectors_are_scored_as_computed(store: Store) -> None:
    """The one exception: float16 would round what a method computed, and move a score by little for each query vector.

    docs/codecs.md and docs/measurement.md say how little.
    """
    merging = [name for name, entry in catalogue().items() if entry.source == "built-in" and name not in COMPOSITIONS]
    methods = [m for m in ready(store, merging, "float16") if m.output == "merged" and m.failure is None]
    assert {m.text for m in methods} >= {"kmeans", "agglomerative", "token_pooling", "ward", "fair_ward", "tome"}
    found, queries = scored(store, tuple(methods), VISUAL), [store.query(i).double() for i in range(2)]
    cells = [(m, b) for m in methods for b in range(len(BUDGETS))]
    for p in range(PAGES):
        for cell, (method, b) in enumerate(cells):
            made = prune(method.pruner, store.page(p), BUDGETS).vectors[b]
            for query, score in zip(queries, found[p].scores[1 + cell], strict=True):
                computed, rounded = (float((query @ v.double().T).amax(1).sum()) for v in (made, made.half()))
                assert score == pytest.approx(computed, abs=1e-5), (method.text, p, b)
                assert score == pytest.approx(rounded, abs=1e-4 * len(query)), (method.text, p, b)


def test_float16_alone_is_scored_as_before_there_were_codecs(store: Store) -> None:
    alone = scored(store, ready(store, ["random", "kmeans"], "float16"), VISUAL)
    among = scored(store, ready(store, ["random", "kmeans"]), VISUAL)
    methods = ready(store, ["random", "kmeans"])
    starts = [2 * i for i, method in enumerate(methods) if method.codec == FLOAT16]
    cells = [0, *(1 + start + b for start in starts for b in range(2))]
    for one, other in zip(alone, among, strict=True):
        assert np.array_equal(one.scores, other.scores[cells])


def test_a_page_is_pruned_once_whatever_the_number_of_codecs(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(pruner: object, page: Page, *rest: object, **options: object) -> object:
        asked.append(f"{pruner} {page.id}")
        return prune(pruner, page, *rest, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(pruned_pages, "prune", counted)
    scored(store, ready(store, ["random", "kmeans"]), VISUAL)
    assert sorted(asked) == sorted(f"{name} p{i}" for name in ("random", "kmeans") for i in range(PAGES))


def test_methods_are_crossed_with_codecs_unless_they_name_their_own() -> None:
    chosen = choose_methods(["first_k", "kmeans | binary", "hpc"], None, codecs=["float16", "int8,int4"])
    assert [m.text for m in chosen] == ["first_k", "first_k | int8", "first_k | int4", "kmeans | binary", "hpc"]
    assert [m.slug for m in chosen][:2] == ["first_k", "first_k___int8"]
    assert [m.pruner_text for m in chosen][2:4] == ["first_k", "kmeans"]
    (alone,) = choose_methods(codecs_alone(["float16,int8"]), None)
    assert (alone.text, alone.budgets(BUDGETS)) == ("full | int8", (UNPRUNED,))
    with pytest.raises(PruneBoardError, match="hpc stores vectors in a form of its own"):
        choose_methods(["hpc | int8"], None)
    with pytest.raises(PruneBoardError, match=r"'first_k \| int8' is asked for twice"):
        choose_methods(["first_k | int8", "first_k"], None, codecs=["int8"])


def test_partners_are_stored_as_the_method_they_are_compared_with() -> None:
    methods = add_partners(choose_methods(["docpruner(z=0) | int8"], None), [], None)
    assert [m.text for m in methods] == ["docpruner(z=0.0) | int8", "eos | int8 @ docpruner(z=0.0) | int8"]
    assert [m.codec_text for m in methods] == ["int8", "int8"]


def test_a_codec_that_does_not_fit_fails_alone(store: Store) -> None:
    methods = ready(store, ["first_k"], "dims(99),pq(4),pq(5),residual(codes=1000),int8")
    assert {m.text: (m.failure or "")[:40] for m in methods} == {
        "first_k | dims(99)": "dims(99) cannot keep 99 of the 16 number",
        "first_k | pq(4)": "",
        "first_k | pq(5)": "pq(5) cannot cut vectors of 16 numbers i",
        "first_k | residual(codes=1000)": "residual(codes=1000) learns 1000 codes, ",
        "first_k | int8": "",
    }


def test_a_codec_that_cannot_hold_a_page_fails_alone(tmp_path: Path) -> None:
    long = 1e5 * unit(torch.randn(12, DIM, generator=torch.Generator().manual_seed(0)))
    with StoreWriter(tmp_path, {"made": "up"}, ["p0"], vector_dtype="float32") as writer:
        writer.add("p0", EncodedPage(long))
        writer.add_queries(["q0"], [torch.eye(DIM)[:2]])
    store = Store(tmp_path)
    methods = ready(store, ["first_k", "kmeans(renormalize=false)"], "int8,turboquant")
    (found,) = score_pages(Job(store, methods, BUDGETS, 42, load_queries(store, [0]), {}), [0])
    assert set(found.failures) == {"first_k | turboquant", "kmeans(renormalize=false) | turboquant"}
    assert all("page 'p0': turboquant stores the length" in reason for reason in found.failures.values())
    assert np.isfinite(found.scores[[0, 1, 2, 5, 6]]).all()


def test_what_pages_share_is_divided_among_them() -> None:
    assert bytes_per_page(8 * 300, 50, 10) == 30 + 5


def test_the_best_of_equal_bytes() -> None:
    def row(method: str, codec: str, budget: float, size: float, retention: float, rank: int | None = 1) -> dict:
        text = {"method": method, "codec": codec, "budget": budget, "bytes_per_page": size, "retention": retention}
        return {**text, "rank": rank, "output": "quantised" if method == "hpc" else "subset"}

    rows = [
        row("full", "float16", 1.0, 1000, 100, None),
        row("a", "float16", 0.1, 100, 80),
        row("b", "float16", 0.05, 50, 80),
        row("b | int8", "int8", 0.1, 53, 90),
        row("full | binary", "binary", UNPRUNED, 62.5, 85),
        row("hpc", "float16", 0.2, 5, 20),
        row("oracle", "float16", 0.05, 50, 99, None),
    ]
    found = {at["share"]: at for at in same_bytes(rows, [0.01, 0.05, 0.1])}
    assert found[0.01]["bytes_per_page"] == 10
    assert found[0.01]["best"]["method"] == "hpc"
    assert found[0.01]["pruning alone"] is None
    assert found[0.05]["best"]["method"] == "b"
    assert found[0.1]["best"]["method"] == "b | int8"
    assert found[0.1]["pruning alone"]["method"] == "b"  # as good as a, and smaller
    assert found[0.1]["storing alone"]["method"] == "full | binary"
