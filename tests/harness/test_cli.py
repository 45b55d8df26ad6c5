"""The command line as a person meets it: in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("torch", "transformers", "mteb", "numba", "scipy", "sklearn", "pandas", "datasets")


def harness(*args: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harness.cli", *args],
        text=True,
        capture_output=True,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "200", **env},
    )


LIGHT = [
    *(["--help"], ["check", "--help"], ["evaluate", "--help"]),
    *(["list", what] for what in ("pruners", "backbones", "benchmarks", "budgets", "experiments")),
]


@pytest.mark.parametrize("args", LIGHT)
def test_help_and_lists_import_nothing_heavy(args: list[str]) -> None:
    code = f"""
import sys
from harness.cli import run
sys.argv = ["harness", *{args!r}]
try:
    run()
finally:
    print("HEAVY", [m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)
"""
    run = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True)
    assert "HEAVY []" in run.stderr, run.stderr
    assert run.stdout


def test_list_pruners_says_what_each_is() -> None:
    rows = {row["name"]: row for row in json.loads(harness("list", "pruners", "--json").stdout)}
    assert rows["sap"]["kind"] == "subset, fixed"
    assert rows["sap"]["needs"] == ["indegree"]
    assert rows["sap"]["parameters"] == ["layers=None"]
    assert rows["oracle"]["kind"] == "subset, fixed (diagnostic)"
    assert "thresholds" not in str(rows["adaptive"]["parameters"])
    table = harness("list", "pruners").stdout
    for row in rows.values():
        assert row["name"] in table
        assert row["paper"] in table


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["scorer", "reducer"])
def test_a_new_pruner_is_listed_keeps_the_contract_and_its_test_passes(tmp_path: Path, kind: str) -> None:
    made = harness("new-pruner", "mine", "--kind", kind, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    listed = json.loads(harness("list", "pruners", "--pruner", "mine.py", "--json", cwd=tmp_path).stdout)
    assert [row["kind"] for row in listed if row["name"] == "mine"] == [
        "subset, fixed" if kind == "scorer" else "merged, fixed"
    ]
    checked = harness("check", "mine.py", cwd=tmp_path)
    assert checked.returncode == 0, checked.stderr
    assert "keeps the contract: mine" in checked.stderr
    test = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", tmp_path], text=True, capture_output=True, cwd=tmp_path
    )
    assert "2 passed" in test.stdout, test.stdout


def test_new_pruner_overwrites_nothing_and_takes_no_taken_name(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("precious")
    refused = harness("new-pruner", "mine", cwd=tmp_path)
    assert refused.returncode == 2
    assert "exists; it is left as it is" in refused.stderr
    assert (tmp_path / "mine.py").read_text() == "precious"
    assert not (tmp_path / "test_mine.py").exists()
    assert "is taken by" in harness("new-pruner", "sap", cwd=tmp_path).stderr
    assert harness("new-pruner", "../../x", cwd=tmp_path).returncode == 2


@pytest.mark.slow
def test_a_broken_pruner_fails_the_check_and_the_others_are_still_checked(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(
        'from pruners import scorer\n\n\n@scorer("broken")\ndef broken(page):\n    return page.vectors[1:, 0]\n'
    )
    run = harness("check", "broken.py", "eos", cwd=tmp_path)
    assert run.returncode == 1
    assert "broken: pruner 'broken', page 'synthetic-16x12-0': score() returned a tensor [191]" in run.stderr
    assert "keeps the contract: eos" in run.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["check", "spa"], "did you mean sap"),
        (["check", "sap(layers=14"], "^"),
        (["check", "nowhere.py"], "there is no file nowhere.py"),
        (["list", "pruners", "--pruner", "nowhere.py"], "nowhere.py"),
    ],
)
def test_a_users_mistake_is_one_message_and_status_2_without_a_traceback(args: list[str], complaint: str) -> None:
    run = harness(*args)
    assert run.returncode == 2
    assert complaint in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.slow
def test_bench_pruners_times_a_peer_on_the_same_work() -> None:
    run = harness("bench", "pruners", "-n", "64", "--dim", "8", "--repeats", "1", "--pruner", "kmeans", "--json")
    (row,) = json.loads(run.stdout)
    assert row["pruner"] == "kmeans"
    assert row["ms"] > 0
    assert row["ratio"] == pytest.approx(row["peer_ms"] / row["ms"], rel=0.2)


def test_what_is_to_be_done_at_exit_is_done_and_nothing_said_is_lost() -> None:
    """The command leaves without taking the interpreter apart."""
    code = """
import atexit, sys
atexit.register(print, "last words")  # registered first, so that it is done last, when nobody else flushes
from harness.cli import main
sys.argv = ["harness", "list", "budgets", "--json"]
main()
"""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    run = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, env=env)
    assert run.returncode == 0
    listed, _, last = run.stdout.rstrip("\n").rpartition("\n")
    assert json.loads(listed)
    assert last == "last words"
