"""An evaluation from end to end on the toy retriever: figures, failures, resumption, workers."""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from toy import CRASHING
from typer.testing import CliRunner

from harness.cli import app
from harness.evaluation import scoring_state
from harness.evaluation.config import Config, parse_budgets, read_config
from harness.evaluation.evaluate import Evaluation, RunPaths, evaluate
from harness.evaluation.run_folder import RunFolder
from harness.progress import Progress, quiet
from harness.store.reader import Store
from pruners import PruneBoardError, parse, prune
from pruners.core.budget import drifted

METHODS = ("random", "eos", "sap", "docpruner", "kmeans", "row_pool", "hpc", "oracle")
TIMES = {"timings.json", "log.txt", "environment.json", "checksums.txt"}


def run(toy, out: Path, workers: int = 1, **settings) -> Evaluation:
    config = Config(
        **{"backbone": toy.backbone, "benchmark": toy.benchmark, "calibration": toy.calibration, "pruners": METHODS}
        | settings
    )
    return evaluate(config, RunPaths(toy.folder / "stores", out, workers), quiet)


def contents(folder: Path) -> dict[str, str]:
    """Every file of a run but those that hold times."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in TIMES)
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def found(toy, tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    return run(toy, tmp_path_factory.mktemp("run"))


def test_every_method_and_budget_has_a_row_and_the_full_model_comes_first(found: Evaluation) -> None:
    assert found.failures == {}
    assert found.rows[0]["method"] == "full"
    assert found.rows[0]["realised"] == 1
    assert sorted((row["method"], row["budget"]) for row in found.rows[1:]) == sorted(
        (method, budget) for method in METHODS for budget in (0.05, 0.1, 0.2)
    )
    assert all(row["rank"] is None for row in found.rows if row["method"] in ("oracle", "full"))
    best = {row["budget"]: row for row in found.rows if row["rank"] == 1}
    assert set(best) == {0.05, 0.1, 0.2}


def test_ndcg_and_retention_of_a_cell_equal_a_plain_recomputation(toy, found: Evaluation) -> None:
    stores = {s.manifest.identity["benchmark"]["name"]: s for s in map(Store, (toy.folder / "stores").iterdir())}
    means, ratios = [], []
    for data_set in ("plain", "tongues"):
        store = stores[data_set]
        full, pruned = {}, {}
        for i, page in enumerate(store.pages()):
            kept = prune(parse("eos"), page, [0.1]).kept(0)
            for q, query in enumerate(store.query_ids):
                similarity = store.query(q).double() @ page.vectors.double().T
                full[query, i] = similarity.amax(1).sum().item()
                pruned[query, i] = similarity[:, kept].amax(1).sum().item()
        figures = []
        for scores in (pruned, full):
            by_language: dict[str, list[float]] = {}
            for query in store.query_ids:
                row = [scores[query, i] for i in range(len(store))]
                number = int(query.removeprefix("q").removesuffix("english").removesuffix("french"))
                rank = sum(value > row[number % 25] for value in row)
                by_language.setdefault(query.lstrip("q0123456789"), []).append(1 / np.log2(rank + 2) if rank < 5 else 0)
            figures.append(np.mean([np.mean(values) for values in by_language.values()]))
        means.append(figures[0])
        ratios.append(100 * figures[0] / figures[1])
    (row,) = [row for row in found.rows if row["method"] == "eos" and row["budget"] == 0.1]
    assert row["ndcg@5"] == pytest.approx(np.mean(means), abs=1e-5)
    assert row["retention"] == pytest.approx(np.mean(ratios), abs=1e-3)
    low, high = row["retention_interval"]
    assert low < row["retention"] < high


def test_realised_budget_and_bytes_are_counted_from_what_came_back(found: Evaluation) -> None:
    rows = {(row["method"], row["budget"]): row for row in found.rows}
    full = rows["full", 1.0]
    assert full["bytes_per_page"] == pytest.approx(full["vectors_per_page"] * 16 * 2)
    assert rows["eos", 0.2]["realised"] > 0.2, "k is rounded up on every page"
    assert rows["row_pool", 0.2]["realised"] <= rows["eos", 0.2]["realised"]
    codebook = 256 * 16 * 2 / 25  # float16, shared by the 25 pages of a data set
    assert rows["hpc", 0.2]["bytes_per_page"] == pytest.approx(rows["hpc", 0.2]["vectors_per_page"] + codebook)


def test_the_rule_of_drift() -> None:
    assert not drifted(0.055, 0.05)
    assert drifted(0.0551, 0.05)
    assert not drifted(0.21, 0.2)
    assert drifted(0.2101, 0.2)


def test_random_is_the_mean_of_five_trials_and_its_deviation_is_kept(found: Evaluation) -> None:
    record = json.loads((found.run.folder / "results/plain/random.json").read_text())
    assert [entry["trials"] for entry in record["budgets"]] == [5, 5, 5]
    assert record["budgets"][0]["trial_deviation_ndcg@5"] > 0
    frame = pd.read_parquet(found.run.folder / "results/plain/random.parquet")
    means = frame[frame["budget"] == record["budgets"][0]["budget"]].groupby("trial")["ndcg@5"].mean()
    assert len(means) == 5
    assert np.std(means) == pytest.approx(record["budgets"][0]["trial_deviation_ndcg@5"])
    row = next(r for r in found.rows if r["method"] == "random" and r["budget"] == record["budgets"][0]["budget"])
    others = pd.read_parquet(found.run.folder / "results/tongues/random.parquet")
    other = others[others["budget"] == row["budget"]].groupby("language")["ndcg@5"].mean().mean()
    assert row["ndcg@5"] == pytest.approx((means.mean() + other) / 2)


def test_score_retention_of_five_trials_equals_a_plain_recomputation(toy, found: Evaluation) -> None:
    """Query i is about page i; each trial draws patches of its own."""
    (store,) = (s for s in map(Store, (toy.folder / "stores").iterdir()) if store_name(s) == "plain")
    means, ratios_of_means = [], []
    for trial in range(5):
        full, pruned = [], []
        for q in range(20):
            page = store.page(q)
            similarity = store.query(q).double() @ page.vectors.double().T
            kept = prune(parse("random"), page, [0.1], trial=trial).kept(0)
            full.append(similarity.amax(1).sum().item())
            pruned.append(similarity[:, kept].amax(1).sum().item())
        means.append(np.mean([a / b for a, b in zip(pruned, full, strict=True)]))
        ratios_of_means.append(sum(pruned) / sum(full))
    assert len(set(means)) == 5
    entry = json.loads((found.run.folder / "results/plain/random.json").read_text())["budgets"][1]
    assert entry["budget"] == 0.1
    assert entry["score_retention"] == pytest.approx(np.mean(means), abs=1e-5)
    assert entry["score_retention_micro"] == pytest.approx(np.mean(ratios_of_means), abs=1e-5)


def store_name(store: Store) -> str:
    return store.manifest.identity["benchmark"]["name"]


def test_per_query_values_and_rankings_are_kept(found: Evaluation) -> None:
    frame = pd.read_parquet(found.run.folder / "results/tongues/eos.parquet")
    assert len(frame) == 24 * 3
    assert set(frame["language"]) == {"english", "french"}
    assert frame["top_10"].map(len).eq(10).all()
    hit = [
        row.top_10[0] == f"page-{30 + int(''.join(filter(str.isdigit, row.query))) % 25}" for row in frame.itertuples()
    ]
    assert np.array_equal(frame["ndcg@1"].to_numpy() == 1, hit)


def test_the_number_of_workers_changes_no_byte(toy, found: Evaluation, tmp_path: Path) -> None:
    run(toy, tmp_path / "two", workers=2)
    assert contents(tmp_path / "two") == contents(found.run.folder)


def test_a_runs_own_config_file_repeats_it(toy, found: Evaluation) -> None:
    config = read_config(found.run.folder / "config.toml")
    assert config.pruners == METHODS
    again = evaluate(config, RunPaths(toy.folder / "stores", found.run.folder, 1), quiet)
    assert again.rows == found.rows


def test_another_configuration_does_not_continue_in_the_same_folder(toy, found: Evaluation) -> None:
    with pytest.raises(PruneBoardError, match="holds a run of another configuration"):
        run(toy, found.run.folder, seed=1)


def test_a_run_does_not_go_on_with_another_checkpoint(toy, tmp_path: Path) -> None:
    path = run(toy, tmp_path / "run", pruners=("eos",)).run.folder / "stores.json"
    before = json.loads(path.read_text())
    older = {**before, "plain": {**before["plain"], "store": "that of older weights"}}
    RunFolder(path.parent).write_json(path.name, older)
    with pytest.raises(PruneBoardError, match=r"another checkpoint or other pages \(plain changed since\)"):
        run(toy, tmp_path / "run", pruners=("eos",))


def test_a_crash_on_one_page_is_named_and_the_others_are_finished(toy, tmp_path: Path) -> None:
    file = tmp_path / "crashing.py"
    file.write_text(CRASHING)
    result = run(toy, tmp_path / "run", pruners=(str(file), "eos"))
    assert list(result.failures) == ["crashing"]
    assert "page 'page-37': failed with ValueError: cannot stand this page" in result.failures["crashing"]
    assert {row["method"] for row in result.rows} == {"full", "eos"}


WRITING = """
from pruners import scorer

@scorer("a_writer")
def a_writer(page):
    page.vectors.zero_()
    for signal in page.signals.values():
        signal.neg_()
    return page.vectors[:, 0]
"""


def test_a_failure_stands_above_the_line_that_says_hand_it_in(toy, tmp_path: Path) -> None:
    (tmp_path / "crashing.py").write_text(CRASHING)
    options = ["--backbone", toy.backbone, "--benchmark", toy.benchmark, "--store", str(toy.folder / "stores")]
    methods = ["--pruner", str(tmp_path / "crashing.py"), "--pruner", "eos", "--workers", "1"]
    result = CliRunner().invoke(app, ["evaluate", *options, *methods, "--out", str(tmp_path / "run"), "--quiet"])
    assert result.exit_code == 1
    assert 0 <= result.stderr.index("failed crashing") < result.stderr.index("hand it in")


def test_a_method_that_writes_into_pages_is_named_and_harms_no_other(toy, tmp_path: Path) -> None:
    file = tmp_path / "a_writer.py"
    file.write_text(WRITING)
    result = run(toy, tmp_path / "run", pruners=(str(file), "eos", "kcenter"))
    assert list(result.failures) == ["a_writer"]
    assert "wrote into the page" in result.failures["a_writer"]
    without = run(toy, tmp_path / "without", pruners=("eos", "kcenter"))
    assert [{**row, "prune_ms_per_page": 0} for row in result.rows] == [
        {**row, "prune_ms_per_page": 0} for row in without.rows
    ]


def test_calibration_pages_must_not_be_evaluated(toy, tmp_path: Path) -> None:
    with pytest.raises(PruneBoardError, match="share 25 pages, the first is 'page-0'"):
        run(toy, tmp_path / "run", calibration=str(Path(toy.benchmark) / "plain"), pruners=("docpruner",))


def test_a_calibration_benchmark_of_several_data_sets_is_refused_by_name(toy, tmp_path: Path) -> None:
    with pytest.raises(PruneBoardError, match=r"has 2 data sets \(plain, tongues\); name one"):
        run(toy, tmp_path / "run", calibration=toy.benchmark, pruners=("docpruner",))


def test_without_calibration_pages_the_methods_that_need_them_are_named(toy, tmp_path: Path) -> None:
    with pytest.raises(PruneBoardError, match=r"^sap, docpruner must be calibrated on pages that are not evaluated"):
        run(toy, tmp_path / "run", calibration=None, pruners=("sap", "docpruner", "eos"))
    assert run(toy, tmp_path / "run", calibration=None, pruners=("sap(layers=1-2)", "eos")).failures == {}


@pytest.mark.parametrize(
    ("text", "budgets"), [("0.2,0.05", (0.05, 0.2)), ("1/9", (1 / 9,)), ("standard", (0.05, 0.1, 0.2))]
)
def test_budgets_are_read(text: str, budgets: tuple[float, ...]) -> None:
    assert parse_budgets(text) == budgets


@pytest.mark.parametrize("text", ["", "a", "0.1;0.2", "1/0", "0.1,,0.2"])
def test_what_names_no_budget_is_refused(text: str) -> None:
    with pytest.raises(PruneBoardError, match="names no budgets"):
        parse_budgets(text)
    with pytest.raises(PruneBoardError, match=r"in \(0, 1\]"):
        Config(budgets=(1.5,))


@pytest.mark.parametrize("field", [{"seed": -1}, {"trials": 0}, {"calibration_pages": 0}, {"window_pairs": -3}])
def test_numbers_that_make_no_sense_are_refused(field: dict[str, int]) -> None:
    with pytest.raises(PruneBoardError, match=rf"not {next(iter(field.values()))}$"):
        Config(**field)


@pytest.mark.parametrize(
    ("text", "complaint"), [("budgetz = [0.1]", "'budgetz'"), ("seed = 'x'", "seed"), ("=", "read")]
)
def test_a_broken_config_file_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "broken.toml").write_text(text)
    with pytest.raises(PruneBoardError, match=f"broken.toml.*{complaint}"):
        read_config(tmp_path / "broken.toml")


def start(toy, out: Path) -> subprocess.Popen:
    command = [sys.executable, "-m", "harness.cli", "evaluate", *toy.options, "--quiet", "--out", str(out)]
    stores = ["--store", str(out.parent / "stores")]
    methods = [part for method in METHODS for part in ("--pruner", method)]
    return subprocess.Popen(
        [*command, *stores, *methods], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )


class Killed(BaseException):
    """Nobody catches it."""


def killing(stage: str, most: int, seen: list[int]) -> Progress:
    """Notes how scoring goes on, and ends it all when a stage has come so far."""

    @contextmanager
    def watched(what: str, *, total: int, done: int) -> Iterator[Callable[..., None]]:
        count = 0

        def advance(pages: int, note: str = "") -> None:
            nonlocal count
            count += pages
            if what == "tongues: prune, score":
                seen.append(pages)
            if what == stage and count >= most:
                raise Killed

        yield advance

    return watched


@pytest.mark.parametrize(
    ("stage", "most", "counted"),
    [("tongues: prune, score", 18, 18), ("tongues: measure", 3, 25)],  # of 25 pages, 12 judged; of 8 methods
)
def test_a_run_that_is_killed_goes_on_within_the_data_set(
    toy,
    found: Evaluation,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stage: str,
    most: int,
    counted: int,
) -> None:
    monkeypatch.setattr(scoring_state, "EVERY", 0.0)
    config = Config(backbone=toy.backbone, benchmark=toy.benchmark, calibration=toy.calibration, pruners=METHODS)
    where = RunPaths(toy.folder / "stores", tmp_path, 1)
    seen: list[int] = []
    with pytest.raises(Killed):
        evaluate(config, where, killing(stage, most, seen))
    assert list(tmp_path.rglob(".scoring"))
    seen.clear()
    evaluate(config, where, killing("", 0, seen))
    assert seen[0] >= counted, "what was counted is not counted again"
    assert contents(tmp_path) == contents(found.run.folder)
    (left,) = tmp_path.glob("results/*tongues")
    (left / ".scoring").write_bytes(b"killed before it was removed")
    evaluate(config, where, quiet)
    assert contents(tmp_path) == contents(found.run.folder)


@pytest.mark.slow
def test_killed_at_random_moments_and_restarted_the_results_are_the_same(
    toy, found: Evaluation, tmp_path: Path
) -> None:
    moments = random.Random(3)
    longest, kills = 2.0, 0
    for _ in range(8):
        process = start(toy, tmp_path / "run")
        begun = time.perf_counter()
        try:
            process.wait(moments.uniform(0.5, longest))
            break
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            kills += 1
        longest = min(20.0, longest + time.perf_counter() - begun)  # later kills fall into later stages
    assert kills >= 3, "the run was too quick to be disturbed"
    last = start(toy, tmp_path / "run")
    _, complaint = last.communicate()
    assert last.returncode == 0, complaint.decode()
    assert contents(tmp_path / "run") == contents(found.run.folder)
