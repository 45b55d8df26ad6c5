"""`harness explain`: its figures are the run's, its pictures what was measured, or there is an error."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import harness
from harness.checked_folder import CheckedFolder
from harness.cli import app
from harness.evaluation.run_folder import KEPT, kept_table, read_kept
from harness.why.differences import distribution
from harness.why.record import NotWhatWasMeasured
from pruners import PruneBoardError, scorer
from tests.harness.why.world import World


def copied(world: World, tmp_path: Path) -> Path:
    shutil.copytree(world.run, tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture(scope="module")
def found(world: World):
    return world.results().explain("sap", budget=0.1, store=world.stores).found


def test_differences_are_those_of_the_runs_own_rows(world: World, found) -> None:
    rows = world.results().per_query
    at = rows[(rows["method"] == "sap") & (rows["budget"] == 0.1)].set_index(["data_set", "query"])["ndcg@5"]
    full = rows[rows["method"] == "full"].set_index(["data_set", "query"])["ndcg@5"]
    gaps = at - full
    assert found.counts == ((gaps < 0).sum(), (gaps > 0).sum(), (gaps == 0).sum())
    assert sum(bar.queries for bar in found.bars) == found.counts[0] + found.counts[1]
    for group in found.groups:
        if group.kind == "data set":
            assert group.difference == pytest.approx(gaps[group.name].mean())
    assert {group.name for group in found.groups if group.kind == "language"} == {"english", "french", "not stated"}
    for case in found.cases:
        assert case.difference == pytest.approx(gaps[case.data_set, case.id])
    lost = [case.difference for case in found.cases if case.difference < 0]
    assert lost == sorted(lost), "those that lost most come first"
    assert min(gaps) == lost[0]


def test_of_a_method_with_several_trials_the_mean_is_explained(world: World) -> None:
    found = world.results().explain("random", budget=0.3, store=world.stores).found
    rows = world.results().per_query
    rows = rows[(rows["method"] == "random") & (rows["budget"] == 0.3)]
    means = rows.groupby(["data_set", "query"])["ndcg@5"].mean()
    assert rows["trial"].nunique() == 2
    for case in found.cases:
        assert case.method == pytest.approx(means[case.data_set, case.id])


def test_the_words_say_what_the_table_says(world: World, found) -> None:
    row = next(r for r in world.results().rows if r["method"] == "sap" and r["budget"] == 0.1)
    assert f"sap keeps {row['retention']:.1f} % of the full model's NDCG@5" in found.words[0]
    lost, won, stayed = found.counts
    assert (
        f"Of 44 queries, {lost} do worse than with the full model, {won} better, and {stayed} the same"
        in found.words[0]
    )


def test_tokens_are_shaded_by_what_they_lose_on_the_relevant_page(world: World, found) -> None:
    case = next(case for case in found.cases if case.panels)
    store = harness.encode(world.backbone, world.benchmark, store=world.stores)[case.data_set]
    page = store.page(store.page_ids.index(case.panels[0].view.page_id))
    query = store.query(store.query_ids.index(case.id)).double()
    kept = np.flatnonzero(case.panels[0].cell.kept.labels >= 0)
    whole, left = query @ page.vectors.double().T, query @ page.vectors[kept].double().T
    assert [lost for _, lost in case.tokens] == pytest.approx((whole.amax(1) - left.amax(1)).tolist(), abs=1e-5)


def test_against_another_method_both_relevant_pages_are_shown(world: World) -> None:
    found = world.results().explain("sap", against="kmeans", budget=0.3, store=world.stores).found
    lost = next(case for case in found.cases if case.difference < 0)
    assert [panel.cell.method for panel in lost.panels[:2]] == ["sap", "kmeans"]
    assert len({panel.view.page_id for panel in lost.panels[:2]}) == 1
    if len(lost.panels) == 3:
        assert lost.panels[2].title == "page that won instead"
        assert lost.panels[2].rank < (lost.panels[0].rank or 11)
    assert "kmeans keeps" in found.words[0]


def test_a_diagnostic_can_be_explained_too(world: World) -> None:
    assert world.results().explain("oracle", budget=0.1, store=world.stores).found.method == "oracle"


def as_written(folder: Path, path: Path) -> None:
    """A changed file as if the run had written it: its checksum alone would give it away before."""
    CheckedFolder(folder, "").write(path.relative_to(folder).as_posix(), path.read_bytes())


def changed_counts(folder: Path) -> None:
    path = folder / "results" / "plain" / f"sap{KEPT}"
    path.write_bytes(kept_table([0.1, 0.3], read_kept(path.read_bytes(), 2) + 1))
    as_written(folder, path)


def changed_ranking(folder: Path) -> None:
    for path in (folder / "results").glob("*/sap.parquet"):
        table = pq.read_table(path)
        ranked = [list(reversed(pages)) for pages in table["top_10"].to_pylist()]
        pq.write_table(table.set_column(table.column_names.index("top_10"), "top_10", pa.array(ranked)), path)
        as_written(folder, path)


def changed_retention(folder: Path) -> None:
    for path in (folder / "results").glob("*/sap.parquet"):
        table = pq.read_table(path)
        values = pa.array([value + 0.01 for value in table["score_retention"].to_pylist()])
        place = table.column_names.index("score_retention")
        pq.write_table(table.set_column(place, "score_retention", values), path)
        as_written(folder, path)


def changed_seed(folder: Path) -> None:
    config = folder / "config.toml"
    config.write_text(config.read_text().replace("seed = 42", "seed = 43"))
    as_written(folder, config)


@pytest.mark.parametrize(
    ("change", "method", "message"),
    [
        (changed_counts, "sap", r"the run kept \d+ vectors, and now it keeps"),
        (changed_ranking, "sap", "and now"),
        (changed_retention, "sap", "Score Retention was"),
        (changed_seed, "random", "not what was measured"),
    ],
)
def test_what_is_not_what_the_run_recorded_is_an_error_and_no_picture(
    world: World, tmp_path: Path, change, method: str, message: str
) -> None:
    folder = copied(world, tmp_path)
    change(folder)
    with pytest.raises(NotWhatWasMeasured, match=message):
        harness.load_run(folder).explain(method, budget=0.1, store=world.stores)
    assert harness.load_run(folder).explain(method, budget=0.1, store=world.stores, figures_only=True).found.counts


def test_without_its_store_a_run_is_explained_by_its_figures_and_says_so(world: World, tmp_path: Path, found) -> None:
    less = world.results().explain("sap", budget=0.1, store=tmp_path)
    assert less.found.counts == found.counts
    assert less.found.words[0].startswith(found.words[0].split(" By length")[0])
    assert not any(case.panels for case in less.found.cases)
    assert ["there is no store" in what for what in less.found.missing] == [True, True]
    assert "there is no store" in less.html()


def test_without_its_images_too(world: World, tmp_path: Path) -> None:
    folder = copied(world, tmp_path)
    config = folder / "config.toml"
    config.write_text(config.read_text().replace(world.benchmark, str(tmp_path / "gone")))
    as_written(folder, config)
    less = harness.load_run(folder).explain("sap", budget=0.1, store=world.stores).found
    assert "there is no benchmark" in less.missing[0]
    assert less.cases


def test_pages_that_changed_since_are_not_drawn(world: World, tmp_path: Path) -> None:
    folder = copied(world, tmp_path)
    stores = json.loads((folder / "stores.json").read_text())
    stores["plain"]["content"]["corpus"] = "another"
    (folder / "stores.json").write_text(json.dumps(stores))
    as_written(folder, folder / "stores.json")
    less = harness.load_run(folder).explain("sap", budget=0.1, store=world.stores).found
    assert less.missing == ["plain: its corpus changed since it was measured"]
    assert {case.data_set for case in less.cases if case.panels} == {"tongues"}


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"method": "sop"}, "did you mean sap"),
        ({"method": "sap", "against": "sop"}, "did you mean sap"),
        ({"method": "sap", "budget": 0.2}, r"its budgets are 0\.1, 0\.3"),
        ({"method": "sap", "against": "sap"}, "against itself"),
        ({"method": "sap", "most": 0}, "at least one query"),
    ],
)
def test_mistakes_have_names(world: World, asked, message: str) -> None:
    with pytest.raises(PruneBoardError, match=message):
        world.results().explain(**{"budget": 0.1, "store": world.stores, **asked})


def test_a_method_that_failed_says_why(world: World, tmp_path: Path) -> None:
    @scorer("broken")
    def broken(page):
        raise ValueError("no such luck")

    places = {"backbone": world.backbone, "benchmark": world.benchmark, "calibration": world.calibration}
    results = harness.evaluate(["first_k", broken], store=world.stores, out=tmp_path / "run", workers=1, **places)
    with pytest.raises(PruneBoardError, match=r"broken.*no such luck"):
        results.explain("broken", store=world.stores)


def test_a_folder_that_is_no_run_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["explain", str(tmp_path)])
    assert "is no run folder" in str(result.exception)


def test_the_command_writes_one_file_and_says_the_words(world: World, tmp_path: Path) -> None:
    options = ["--method", "sap", "--budget", "0.1", "--store", str(world.stores), "--out", str(tmp_path / "why.html")]
    result = CliRunner().invoke(app, ["explain", str(world.run), *options])
    assert result.exit_code == 0, result.output
    assert "At 10 % of the vectors, sap keeps" in result.output
    assert (tmp_path / "why.html").stat().st_size < 6_000_000


def test_bars_count_every_changed_query_once() -> None:
    values = [-1.0, -0.95, -0.1, -0.05, 0.0, 0.05, 0.1, 0.95, 1.0]
    bars = distribution(values)
    assert [bar.queries for bar in bars if bar.queries] == [2, 2, 2, 2]
    assert sum(bar.queries for bar in bars) == 8
