"""Small files that cost much: each is that submission's error, in bounded time and memory, and the others stay."""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spoiling import Spoiled, cell

from harness import parquet
from harness.benchmarks.tables import PAGES, QRELS
from harness.files import checksum
from harness.submissions import one_submission
from harness.submissions.benchmark import read_tables
from harness.submissions.folder import MAX_JSON
from harness.submissions.validation import validate

SECONDS = 20
GIGABYTES = 3  # of addresses, which a check on one core needs half of


def within_limits(root: Path) -> dict:
    """What `harness validate` says of a folder, in a process that may not use more than so much."""
    code = (
        "import sys, os; os.cpu_count = lambda: 1\nfrom harness.cli import app\n"
        f"app(['validate', {str(root)!r}, '--json'])"
    )

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (GIGABYTES * 2**30,) * 2)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS,) * 2)

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, preexec_fn=limit, check=False)
    assert run.returncode in (0, 1), run.stderr[-2000:]
    return json.loads(run.stdout)


def many_keys(content: dict) -> None:
    content.update({f"k{i}": 0 for i in range(330_000)})


JSON_BOMBS: dict[str, tuple[Callable[[dict], None], str, str]] = {
    "trials": (cell(trials=2_000_000_000), "cells.1.trials", "less than or equal to"),
    "an endless figure": (cell(bytes_per_page=1e300), "cells.1.bytes_per_page", "less than or equal to"),
    "a long window": (
        lambda s: s["method"]["calibrated"]["window"].update(window="1-" + "9" * 5000),
        "method.calibrated",
        "at most 2000",
    ),
    "many keys": (many_keys, "", "an object has 330"),
    "many small objects": (
        lambda s: s["method"]["calibrated"].update(x=[{} for _ in range(200_000)]),
        "method.calibrated",
        "values",
    ),
    "many wrong cells": (
        lambda s: s.update(cells=[{"budget": "x"}] * 15_000),
        "",
        "problems more",
    ),
}


@pytest.mark.parametrize("what", JSON_BOMBS)
def test_costly_json_is_refused_at_once(spoiled: Spoiled, what: str) -> None:
    change, field, said = JSON_BOMBS[what]
    spoiled.only("sap", "row_pool")
    path = spoiled.path("sap")
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content, separators=(",", ":")))
    assert path.stat().st_size < MAX_JSON
    begun = time.process_time()
    report = validate(spoiled.root)
    assert time.process_time() - begun < SECONDS / 2
    errors = [p for p in report.problems if p.level == "error"]
    assert {p.file for p in errors} == {path}
    assert len(errors) < 100
    assert any(p.field.startswith(field) and said in p.what for p in errors), errors[:3]
    assert [e.submission.method.name for e in report.entries] == ["row_pool"]


TEXT_BOMBS = {
    "1e400": (lambda t: t.replace('"window": {', '"window": {"x": 1e400, ', 1), "1e400"),
    "a whole number of 400 digits": (
        lambda t: t.replace('"window": {', f'"window": {{"x": {"9" * 400}, ', 1),
        "too large",
    ),
    "a number of 5,000 digits": (lambda t: t.replace('"window": {', f'"window": {{"x": {"9" * 5000}, ', 1), "digits"),
    "one key twice among 300,000": (
        lambda t: t.replace(
            '"window": {', '"window": {' + "".join(f'"k{i}":0,' for i in range(300_000)) + '"k7":0,', 1
        ),
        "an object has 300",
    ),
}


@pytest.mark.parametrize("what", TEXT_BOMBS)
def test_costly_text_is_refused_at_once(spoiled: Spoiled, what: str) -> None:
    change, said = TEXT_BOMBS[what]
    spoiled.only("sap", "row_pool")
    path = spoiled.path("sap")
    before = path.read_text()
    path.write_text(change(before))
    assert path.read_text() != before
    begun = time.process_time()
    errors = spoiled.errors()
    assert time.process_time() - begun < SECONDS / 2
    assert {p.file for p in errors} == {path}
    assert any(said in p.what for p in errors), errors


def test_kept_rows_of_zeros_are_an_error_and_no_crash(spoiled: Spoiled) -> None:
    spoiled.only("sap", "row_pool")

    def nothing(rows: list[dict]) -> None:
        for row in rows:
            row["kept"] = [0] * len(row["kept"])

    path = spoiled.kept("sap", nothing)
    report = validate(spoiled.root)
    errors = [p for p in report.problems if p.level == "error"]
    assert {p.file for p in errors} == {path}
    assert any("fewer than one" in p.what for p in errors), errors
    assert [e.submission.method.name for e in report.entries] == ["row_pool"]


@pytest.mark.slow
def test_a_small_table_that_unpacks_to_gigabytes_is_not_read(spoiled: Spoiled) -> None:
    """One row whose list repeats one number: a few kilobytes of runs, whose stated size is that of the runs.

    Linux refuses the memory; where it cannot be limited, what was read is counted.
    """
    spoiled.only("sap", "row_pool")
    count = 200_000_000
    lists = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), pa.array(np.ones(count, np.int32)))
    table = pa.table({"data_set": ["plain"], "budget": [1.0], "trial": pa.array([0], pa.int32()), "kept": lists})
    path = spoiled.path("sap").with_suffix(".kept.parquet")
    pq.write_table(table, path, compression="zstd", store_schema=False)
    del table, lists
    assert path.stat().st_size < 2_000_000
    data = path.read_bytes()
    spoiled.json("sap", lambda s: s.update(kept=checksum(data)), forge_id=True)
    said = within_limits(spoiled.root)
    errors = [p for p in said["problems"] if p["level"] == "error"]
    limit = "unpacks to more than" if sys.platform == "linux" else "values in the column kept; at most"
    assert any(limit in p["what"] for p in errors), errors
    assert said["statuses"].get("recomputed") == 1


def write_relevance(folder: Path, pages: int, qrels: dict[str, list]) -> None:
    names = [f"p{i}" for i in range(pages)]
    (folder / "pages.parquet").write_bytes(parquet.pack({"data_set": ["d"] * pages, "page": names}, PAGES))
    (folder / "qrels.parquet").write_bytes(parquet.pack(qrels, QRELS))


def test_grades_beyond_a_short_integer_are_refused(spoiled: Spoiled) -> None:
    """70,000 would be 4,464 in 16 bits."""
    path = spoiled.root / "pages" / "qrels.parquet"
    table = parquet.read(path, QRELS).to_pylist()
    table[0]["grade"] = 70_000
    path.write_bytes(parquet.pack({name: [row[name] for row in table] for name in QRELS}, QRELS))
    errors = spoiled.errors()
    assert any("grade" in p.what and "70000" in p.what for p in errors), errors


def test_many_queries_over_many_pages_are_judged_without_a_table_of_all_pairs(tmp_path: Path) -> None:
    """100,000 queries and as many pages: 20 GB as a table of short integers, and a millionth of them is judged."""
    many = 100_000
    columns = {
        "data_set": ["d"] * many,
        "query": [f"q{i}" for i in range(many)],
        "page": [f"p{i}" for i in range(many)],
        "grade": [1] * many,
        "language": [""] * many,
    }
    columns["page"][4] = f"p{many - 1}"  # beside which no page of the next query lies, were pairs one long row
    write_relevance(tmp_path, many, columns)
    judged = read_tables(tmp_path)["d"]
    query, top = np.array([3, 5]), np.array([[3, 4], [-1, 6]])
    assert judged.grades_of(query, top).tolist() == [[1, 0], [0, 0]]
    assert judged.relevant.sum() == many


def test_what_crashes_the_check_is_that_submissions_error(spoiled: Spoiled, monkeypatch: pytest.MonkeyPatch) -> None:
    spoiled.only("sap", "row_pool")
    path, check = spoiled.path("sap"), one_submission.check_cells

    def crash(submission: object, *rest: object) -> None:
        if submission.method.name == "sap":  # type: ignore[attr-defined]
            raise ZeroDivisionError("\x1b[31mnobody thought of this")
        check(submission, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(one_submission, "check_cells", crash)
    report = validate(spoiled.root)
    (error,) = [p for p in report.problems if p.level == "error"]
    assert error.file == path
    assert "ZeroDivisionError: \\u001b[31mnobody thought of this" in error.what
    assert [e.submission.method.name for e in report.entries] == ["row_pool"]
