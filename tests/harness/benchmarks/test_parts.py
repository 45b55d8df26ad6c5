"""Parts of data sets: what is held out shares neither page nor query with the rest, and nothing gets lost."""

import pytest

from harness.benchmarks.benchmark import load_benchmark, with_held_out
from harness.benchmarks.data_set import read_folder
from harness.benchmarks.embedded import BenchmarkError
from harness.benchmarks.parts import hold_out, join, part, sample_pairs
from tests.harness.benchmarks.local_tasks import write_layout


@pytest.fixture(scope="module")
def data_set(tmp_path_factory):
    return read_folder(write_layout(tmp_path_factory.mktemp("parts") / "mine", pages=60, queries=24))


def test_held_out_and_rest_are_disjoint_by_image_and_query_and_together_the_whole(data_set):
    held, rest = hold_out(data_set)
    assert len(held.page_ids) == pytest.approx(0.2 * len(data_set.page_ids), abs=3)
    assert sorted(held.page_ids + rest.page_ids) == sorted(data_set.page_ids)
    assert not set(held.file_hashes) & set(rest.file_hashes)
    assert not set(held.queries) & set(rest.queries)
    judged = {query for query in data_set.queries if data_set.qrels.get(query)}
    assert set(held.queries) | set(rest.queries) == judged
    for side in (held, rest):
        assert side.qrels == {query: data_set.qrels[query] for query in side.queries}
    again = hold_out(data_set)
    assert (again[0].page_ids, again[1].content) == (held.page_ids, rest.content)
    assert hold_out(data_set, seed=1)[0].page_ids != held.page_ids


def test_the_images_of_a_part_are_those_of_its_pages(data_set):
    held, _ = hold_out(data_set)
    for i, page in enumerate(held.page_ids):
        assert held.image(i).tobytes() == data_set.image(data_set.page_ids.index(page)).tobytes()
    assert part(data_set, data_set.name, data_set.page_ids).content["corpus"] == data_set.content["corpus"]


def test_texts_go_with_their_pages_and_equal_texts_stay_together(data_set):
    from dataclasses import replace

    # Every text stands on three pages of different looks: a backbone that reads text takes them for one.
    told = replace(data_set, texts=tuple(f"page {i % 20}" for i in range(len(data_set.page_ids))))
    told = replace(told, qrels={f"q{i}": {told.page_ids[i]: 1} for i in range(20)})
    told = replace(told, queries={query: query for query in told.qrels})
    held, rest = hold_out(told, share=0.5)
    for side in (held, rest):
        assert side.texts == tuple(told.texts[told.page_ids.index(page)] for page in side.page_ids)
        assert side.content["texts"] != told.content.get("texts")
    assert not set(held.texts) & set(rest.texts)
    assert join([held, rest], "both").texts == held.texts + rest.texts
    assert join([held, part(data_set, "other", data_set.page_ids[:5])], "mixed").texts is None


def test_pages_that_queries_tie_together_cannot_be_split(data_set):
    everything = {"q": dict.fromkeys(data_set.page_ids, 1)}
    from dataclasses import replace

    with pytest.raises(BenchmarkError, match="tie 60 of 60 pages together"):
        hold_out(replace(data_set, queries={"q": "all"}, qrels=everything))


def test_sampled_pairs_are_gold_and_joined_sets_keep_theirs_apart(data_set):
    drawn = sample_pairs(data_set, 10)
    assert sum(map(len, drawn.qrels.values())) == 10
    assert all(
        data_set.qrels[query][page] == grade for query, row in drawn.qrels.items() for page, grade in row.items()
    )
    assert set(drawn.page_ids) == {page for row in drawn.qrels.values() for page in row}
    both = join([drawn, part(data_set, "other", data_set.page_ids[:5])], "both")
    assert len(both.page_ids) == len(drawn.page_ids) + 5
    assert both.page_ids[-5:] == tuple(f"other/{page}" for page in data_set.page_ids[:5])
    assert both.image(len(both.page_ids) - 1).tobytes() == data_set.image(4).tobytes()
    assert all(page in both.page_ids for row in both.qrels.values() for page in row)


def test_held_out_is_two_benchmarks_by_name_and_says_so(tmp_path):
    folder = write_layout(tmp_path / "mine", pages=60, queries=24)
    assert with_held_out("mine", "held-out") == ("mine#rest", None)
    assert with_held_out("mine#rest", "held-out") == ("mine#rest", None)
    assert with_held_out("mine", "other") == ("mine", "other")
    rest = load_benchmark(f"{folder}#rest")
    (aside,) = load_benchmark(rest.calibration).data_sets
    assert not set(aside.file_hashes) & set(rest.data_sets[0].file_hashes)
    assert f"{len(aside.page_ids)} of 60 pages of mine" in rest.notes[0]
    assert "seed 42" in rest.remarks()[0]


def test_a_folder_brings_its_own_calibration_pages_in_a_folder_of_that_name(tmp_path):
    write_layout(tmp_path / "mine" / "one", pages=20, queries=4)
    assert load_benchmark(str(tmp_path / "mine")).calibration is None
    own = write_layout(tmp_path / "mine" / "calibration", pages=20, queries=4)
    benchmark = load_benchmark(str(tmp_path / "mine"))
    assert [data_set.name for data_set in benchmark.data_sets] == ["one"]
    assert benchmark.calibration == str(own)
