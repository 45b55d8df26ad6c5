"""The Python interface: methods as objects, results as tables, methods restored as they were measured."""

import json
import linecache
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

import harness
from harness.calibration.data import draw
from harness.cli import app
from harness.encode import default_root
from harness.store.reader import Store
from pruners import PruneBoardError, Window, adaptive, eos, kmeans, parse, prune, scorer
from pruners.core.apply import calibrate

BUDGETS = (0.1, 0.3)
LEARNERS = ("docpruner", "sap_adaptive", "hpc(codes=8)", "prune_then_merge")


@scorer("mine")
def mine(page):
    """Distance from the page's mean vector."""
    return (page.vectors - page.vectors.mean(0)).norm(dim=-1)


@pytest.fixture(scope="module")
def options(toy) -> dict:
    return {
        "backbone": toy.backbone,
        "benchmark": toy.benchmark,
        "calibration": toy.calibration,
        "store": toy.folder / "stores",
        "workers": 1,
    }


@pytest.fixture(scope="module")
def results(options, tmp_path_factory: pytest.TempPathFactory) -> harness.Results:
    methods = [mine, "sap", kmeans(renormalize=False), adaptive(mine()), "random", "oracle", *LEARNERS]
    return harness.evaluate(methods, budgets=BUDGETS, out=tmp_path_factory.mktemp("api") / "run", **options)


def test_importing_it_loads_nothing_heavy_and_names_are_complete() -> None:
    code = """
import sys, harness
names = dir(harness)
assert {"evaluate", "load_run", "calibrate", "encode", "load_benchmark", "leaderboard", "__version__"} <= set(names)
from harness import evaluate, Results
assert not {"torch", "pandas", "numpy", "matplotlib", "rich"} & set(sys.modules)
import harness.encode
assert callable(harness.encode), "the file of that name hides the function"
assert harness.__version__
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_stub_for_type_checkers_names_what_there_is() -> None:
    stub = (Path(harness.__file__).parent / "__init__.pyi").read_text()
    assert all(f"{name} as {name}" in stub for name in dir(harness) if name != "__version__")


def test_objects_texts_and_classes_are_measured_side_by_side(results: harness.Results, toy) -> None:
    assert results.failures == {}
    assert results.methods == [
        *("sap", "random", "oracle", *LEARNERS),
        *("mine", "kmeans(renormalize=false)", "adaptive(mine)"),
    ]
    stores = {s.manifest.identity["benchmark"]["name"]: s for s in map(Store, (toy.folder / "stores").glob("*--*"))}
    kept = results._run.files.read_result("plain", "mine").kept
    by_hand = [[len(prune(mine, page, budget=b)) for page in stores["plain"].pages()] for b in BUDGETS]
    assert kept[0].tolist() == by_hand


def test_the_table_is_what_the_terminal_shows(results: harness.Results, toy, tmp_path: Path) -> None:
    chosen = ["--pruner", "sap", "--pruner", "docpruner", "--pruner", "docpruner(z=0.5)", "--budgets", "0.1,0.3"]
    where = ["--store", str(toy.folder / "stores"), "--out", str(tmp_path / "run"), "--workers", "1", "--quiet"]
    done = CliRunner().invoke(app, ["evaluate", *toy.options, *chosen, *where], catch_exceptions=False)
    table = harness.load_run(tmp_path / "run").table()
    assert table["method"].tolist()[0] == "full"
    for row in table.iloc[1:].to_dict("records"):
        line = next(x for x in done.stdout.splitlines() if row["method"] in x.split("  ") or f" {row['method']} " in x)
        assert row["method"] in line
        assert f"{row['NDCG@5']:.4f}" in done.stdout
        assert f"{row['retention']:.1f} [{row['low']:.1f}, {row['high']:.1f}]" in done.stdout
    native = table[table["method"] == "docpruner(z=0.5)"].iloc[0]
    partner = table[table["partner of"] == "docpruner(z=0.5)"].iloc[0]
    assert partner["minus it"] == pytest.approx(native["retention"] - partner["retention"])


def test_a_run_read_again_has_the_same_rows(results: harness.Results) -> None:
    again = harness.load_run(results.folder)
    assert json.dumps(again.rows) == json.dumps(results.rows)
    pd.testing.assert_frame_equal(again.table(), results.table())
    assert "<table" in results._repr_html_()
    assert "10 methods on 2 data sets" in repr(results)


def test_per_query_averages_to_the_table(results: harness.Results) -> None:
    rows = results.per_query
    assert set(rows["method"]) == {"full", *results.methods}
    here = rows[(rows["method"] == "random") & (rows["budget"] == 0.1)]
    by_language = here.groupby(["data_set", "language"])["ndcg@5"].mean()
    expected = by_language.groupby("data_set").mean().mean()
    table = results.table().set_index(["method", "budget"])
    assert table.loc[("random", 0.1), "NDCG@5"] == pytest.approx(expected)


def test_a_comparison_is_the_paired_difference_of_the_table(results: harness.Results) -> None:
    found = results.compare("mine", "sap")
    assert list(found.columns) == ["budget", "difference", "low", "high"]
    table = results.table().set_index(["method", "budget"])["retention"]
    for row in found.itertuples():
        assert row.difference == pytest.approx(table["mine", row.budget] - table["sap", row.budget])
        assert row.low <= row.difference <= row.high
    back = results.compare("sap", mine)
    np.testing.assert_allclose(back["difference"], -found["difference"])
    np.testing.assert_allclose(results.compare("sap", "sap")[["difference", "low", "high"]], 0)


def test_lost_queries_are_those_that_fell_most(results: harness.Results) -> None:
    found = results.lost("mine", budget=0.1, most=5)
    assert len(found) == 5
    assert (found["difference"] < 0).all()
    assert found["difference"].is_monotonic_increasing
    first = found.iloc[0]
    rows = results.per_query[results.per_query["query"] == first["query"]].set_index(["data_set", "method", "budget"])
    assert rows.loc[(first["data_set"], "full", 1.0), "ndcg@5"] == first["full"]
    assert rows.loc[(first["data_set"], "mine", 0.1), "ndcg@5"] == first["pruned"]
    assert len(first["best"]) == 10
    assert first["gold"]
    with pytest.raises(PruneBoardError, match=r"not measured at a budget of 0\.2; the run's are 0\.1, 0\.3"):
        results.lost("mine", budget=0.2)


def test_figures_and_latex_name_every_method(results: harness.Results) -> None:
    figure = results.plot()
    assert {line.get_label() for line in figure.axes[0].lines} == set(results.methods)
    assert len(results.plot(["mine", "sap"]).axes[0].lines) == 2
    latex = results.to_latex(caption="100 % of it", label="mine")
    assert r"\toprule" in latex
    assert r"\caption{100 \% of it}" in latex
    assert r"prune\_then\_merge" in latex


@pytest.mark.parametrize("text", [*LEARNERS, "mine", "adaptive(mine)", "sap", "kmeans(renormalize=false)"])
def test_a_restored_method_prunes_as_in_the_run(results: harness.Results, toy, text: str) -> None:
    method = harness.load_run(results.folder, pruners=[mine]).method(text)
    record = json.loads((results.folder / "calibration.json").read_text())
    by_key = {store.key: store for store in map(Store, (toy.folder / "stores").glob("*--*"))}  # other tests' too
    stores = {data_set: by_key[facts["store"]] for data_set, facts in results._run.stores.items()}
    learned_from = by_key[record["store"]]
    for data_set in results.data_sets:
        kept = results._run.files.read_result(data_set, results._run.methods[text]["slug"]).kept[0]
        for page, counts in zip(stores[data_set].pages(), kept.T, strict=True):
            assert [len(prune(method, page, budget=b)) for b in BUDGETS] == counts.tolist()
    pages = [learned_from.page(i) for i in draw(range(len(learned_from)), 128, 42)]
    named = {"mine": mine(), "adaptive(mine)": adaptive(mine())}
    open_window = (named.get(text) or parse(text)).with_window(Window.parse(record["window"]["window"]))
    by_hand = calibrate(open_window, pages, BUDGETS)
    for page in stores["plain"].pages():
        for budget in BUDGETS:
            assert torch.equal(prune(method, page, budget=budget).vectors, prune(by_hand, page, budget=budget).vectors)


def test_a_codebook_comes_back_to_the_last_bit(results: harness.Results) -> None:
    from harness.evaluation.made_by import describe_method
    from harness.evaluation.methods import Method

    method = results.method("hpc(codes=8)")
    recorded = json.loads((results.folder / "methods.json").read_text())["hpc(codes=8)"]["made_by"]
    assert describe_method(Method("hpc(codes=8)", method, 1), [], {})["learned"] == recorded["learned"]
    assert method.codebook.shape == (8, 16)


def test_a_method_in_no_file_must_be_given_and_must_be_the_same(results: harness.Results) -> None:
    with pytest.raises(PruneBoardError, match=r"no file holds mine: load_run\(.*pruners=\[mine\]"):
        harness.load_run(results.folder).method("mine")

    @scorer("mine")
    def other(page):
        return page.vectors[:, 0]

    other.__module__ = "__main__"
    with pytest.raises(PruneBoardError, match=r"mine is not what .* measured: its code changed since"):
        harness.load_run(results.folder, pruners=[other]).method("mine")


def test_a_method_of_a_file_comes_back_unless_the_file_changed(options, tmp_path: Path) -> None:
    file = tmp_path / "filed.py"
    source = 'from pruners import scorer\n\n@scorer("filed")\ndef filed(page):\n    return page.vectors[:, 0]\n'
    file.write_text(source)
    harness.evaluate([file, "adaptive(filed)"], budgets=[0.1], out=tmp_path / "run", **options)
    method = harness.load_run(tmp_path / "run").method("adaptive(filed)")
    assert list(method.thresholds) == [0.1]
    file.write_text(source.replace("[:, 0]", "[:, 1]"))
    with pytest.raises(PruneBoardError, match="its code changed since"):
        harness.load_run(tmp_path / "run").method("adaptive(filed)")


def test_mistakes_are_named_with_the_way_out(results: harness.Results, options, tmp_path: Path) -> None:
    with pytest.raises(PruneBoardError, match=r"no method 'minee'; did you mean mine\?"):
        results.compare("minee", "sap")
    with pytest.raises(PruneBoardError, match="is no run folder"):
        harness.load_run(tmp_path)
    with pytest.raises(PruneBoardError, match="is asked for twice"):
        harness.evaluate([mine, mine()], out=tmp_path / "a", **options)
    with pytest.raises(PruneBoardError, match="'eos' is asked for twice"):
        harness.evaluate(["eos", eos], out=tmp_path / "a", **options)
    with pytest.raises(PruneBoardError, match="decorate it with @scorer"):
        harness.evaluate([lambda page: page], out=tmp_path / "b", **options)

    @scorer("eos")
    def same_name(page):
        return page.vectors[:, 0]

    with pytest.raises(PruneBoardError, match=r"the name 'eos' is taken by .*eos\.py.*give your method another one"):
        harness.evaluate([same_name], out=tmp_path / "c", **options)


CELL = """
@scorer("cell")
def cell(page):
    return {sign}(page.vectors - page.vectors.mean(0)).norm(dim=-1)
"""


def run_cell(sign: str, number: int) -> type:
    """A method as a notebook makes it: in `__main__`, in no file, its source kept under the cell's name."""
    name, source = f"<ipython-input-{number}>", CELL.format(sign=sign)
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    space = {"__name__": "__main__", "scorer": scorer}
    exec(compile(source, name, "exec"), space)
    return space["cell"]


def test_an_edited_cell_is_measured_again_and_nothing_else(options, tmp_path: Path) -> None:
    said: list[str] = []

    def measure(sign: str, number: int) -> pd.Series:
        said.clear()
        methods = [run_cell(sign, number), "eos"]
        found = harness.evaluate(methods, budgets=[0.1], out=tmp_path / "run", say=said.append, **options)
        return found.table().set_index("method")["NDCG@5"]

    first = measure("", 1)
    measure("", 2)
    assert "nothing is left to evaluate" in said, "the same cell, run again"
    edited = measure("-", 3)
    assert "its code changed since: measuring cell again" in said
    assert not any("measuring eos" in text for text in said)
    assert edited["cell"] != first["cell"]
    assert edited["eos"] == first["eos"]


def test_a_method_that_learns_what_no_file_can_hold_says_so(options, tmp_path: Path) -> None:
    from dataclasses import dataclass

    from pruners import Scorer, learned

    @scorer("secretive")
    @dataclass(frozen=True)
    class Secretive(Scorer):
        seen: object = learned()

        def calibrate(self, pages, budgets):
            return self.replace(seen={page.id for page in pages})

        def score(self, page):
            return page.vectors[:, 0]

    found = harness.evaluate([Secretive], budgets=[0.1], out=tmp_path / "run", **options)
    assert found.failures == {}
    with pytest.raises(PruneBoardError, match=r"secretive learned a set \(seen\), which a run cannot keep"):
        found.method("secretive")


@pytest.mark.slow
def test_a_run_is_submitted_and_put_on_a_board(results: harness.Results, tmp_path: Path) -> None:
    done = results.submit("A. Person", methods=["mine", "sap"], out=tmp_path / "submissions")
    assert [made.method for made in done] == ["mine", "sap"]
    assert all(made.file.is_file() for made in done)
    site = harness.leaderboard(tmp_path / "site", submissions=tmp_path / "submissions", runs=[results])
    assert site.left_out == []
    assert site.index.is_file()
    assert site.submissions == 2 + len(results.methods)


def test_encoding_and_calibrating_return_what_they_made(toy, tmp_path: Path) -> None:
    benchmark = harness.load_benchmark(toy.benchmark)
    stores = harness.encode(toy.backbone, benchmark, store=tmp_path)
    assert list(stores) == [data_set.name for data_set in benchmark.data_sets] == ["plain", "tongues"]
    assert prune("sap(layers=all)", stores["plain"].page(0), budget=0.2).indices is not None
    made = harness.calibrate(toy.backbone, toy.calibration, store=tmp_path)
    assert made.file.is_file()
    assert str(made.window) == made.found.window
    assert parse(f"sap(layers={made.window})")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"XDG_CACHE_HOME": "/caches"}, "/caches/pruneboard/stores"),
        ({"XDG_CACHE_HOME": ""}, "~/.cache/pruneboard/stores"),
        ({"XDG_CACHE_HOME": "relative"}, "~/.cache/pruneboard/stores"),
        ({"XDG_CACHE_HOME": "/caches", "PRUNEBOARD_STORES": "/here"}, "/here"),
    ],
)
def test_stores_are_kept_in_the_users_cache(monkeypatch, given: dict, expected: str) -> None:
    monkeypatch.delenv("PRUNEBOARD_STORES", raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert default_root() == Path(os.path.expanduser(expected))


def test_the_command_line_says_its_version_and_completes() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout == f"pruneboard {harness.__version__}\n"
    assert "--install-completion" in CliRunner().invoke(app, ["--help"]).stdout
