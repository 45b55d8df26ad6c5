"""Growth: large boards are paged, memory holds one board at a time, and what has not changed is not built again."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import leaderboard.batches
from harness.bench.board import write_submissions
from harness.progress import quiet
from harness.submissions.folder import FOLDER
from harness.submissions.report import CheckedSubmission
from harness.submissions.validation import validate
from leaderboard.gather import Batch, Gathered, gather
from leaderboard.site import build
from tests.leaderboard.synthetic import entry, measured
from tests.leaderboard.test_site import digest, largest

MOST_BYTES = 450_000


def many(count: int) -> list[CheckedSubmission]:
    """Methods of other names and figures, from a few that were made up."""
    some = [entry(*measured(f"m{i}", 0.5 + i / 40, i, queries=4), "recomputed") for i in range(20)]
    return [renamed(some[i % 20], f"method-{i:05d}", i) for i in range(count)]


def renamed(one: CheckedSubmission, name: str, i: int) -> CheckedSubmission:
    s = one.submission
    cells = tuple(c.model_copy(update={"bytes_per_page": (c.bytes_per_page or 1) * (1 + i % 97 / 50)}) for c in s.cells)
    method = s.method.model_copy(update={"name": name, "expression": name, "title": name})
    return replace(one, submission=s.model_copy(update={"id": name, "method": method, "cells": cells}))


@pytest.mark.slow
def test_a_board_of_a_thousand_methods_is_paged(tmp_path: Path) -> None:
    built = build(Gathered(many(1000)), tmp_path / "site").folder
    assert largest(built) < MOST_BYTES
    board = (built / "board" / "minidocs--nano.html").read_text(encoding="utf-8")
    parts = sorted(built.glob("board/minidocs--nano.0.1.*.js"))
    rows = sum(json.loads(part.read_text()[len("rowsArrived(") : -3]).count("<tr") for part in parts)
    inside = board.split('<tbody data-budget="0.1"')[1].split("</tbody>")[0].count("<tr") - 1
    assert (inside, rows) == (100, 900)
    names = [row["label"] for part in sorted(built.glob("data/*.json")) for row in json.loads(part.read_text())]
    assert len(names) == 3000
    assert len(set(names)) == 1000


def test_views_are_light_once_their_pages_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept of a board until the end has no per-query figures, no cells but one full model's, no data sets."""
    kept = []
    whole = leaderboard.batches.build_batch
    monkeypatch.setattr("leaderboard.site.build_batch", lambda *given: kept.append(whole(*given)) or kept[-1])
    build(Gathered(many(12)), tmp_path / "site")
    (view,) = kept[0].views
    assert len(view.lines) == 12
    assert all(line.measured is None and line.entry.scores is None for line in view.lines)
    assert all(not row.data_sets for line in view.lines for row in line.rows.values())
    with_cells = [line for line in view.lines if line.entry.submission.cells]
    assert len(with_cells) < 12
    assert {cell.budget for line in with_cells for cell in line.entry.submission.cells} == {1.0}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A few of the project's submissions, on two benchmarks."""
    place = tmp_path / "submissions"
    for name in ("minidocs", "vidore-v1"):
        shutil.copytree(FOLDER / name, place / name, ignore=shutil.ignore_patterns("jina-v4", "col[nq]*"))
    for method in (place / "minidocs" / "nano").iterdir():
        if method.is_dir() and method.name not in ("sap", "random", "kmeans"):
            shutil.rmtree(method)
    return place


@pytest.mark.slow
def test_what_has_not_changed_is_not_built_again(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    whole = Batch.load
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # what another process reads would not be seen here
    monkeypatch.setattr(Batch, "load", lambda batch: read.append(batch.name) or whole(batch))
    first = digest(build(gather(folder, []), tmp_path / "a").folder)
    assert read == ["minidocs--nano", "vidore--colpali"]
    assert digest(build(gather(folder, []), tmp_path / "b").folder) == first
    assert len(read) == 2
    shutil.rmtree(folder / "minidocs" / "nano" / "random")
    after = build(gather(folder, []), tmp_path / "b").folder
    assert read[2:] == ["minidocs--nano"]
    changed = digest(after)
    assert changed["board/minidocs--nano.html"] != first["board/minidocs--nano.html"]
    assert changed["board/vidore-v1--colpali.html"] == first["board/vidore-v1--colpali.html"]
    assert "result/minidocs--nano/random.html" not in changed
    fresh = tmp_path / "other-cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(fresh))
    assert digest(build(gather(folder, []), tmp_path / "c").folder) == changed  # as if nothing had ever been kept


@pytest.mark.slow
def test_what_maintainers_sign_and_a_damaged_table_are_seen_by_the_next_build(folder: Path, tmp_path: Path) -> None:
    def status() -> dict[str, str]:
        site = build(gather(folder, []), tmp_path / "site").folder
        rows = [row for part in site.glob("data/minidocs--nano*.json") for row in json.loads(part.read_text())]
        return {row["method"]: row["status"] for row in rows}

    assert status()["sap"] == "unpinned"
    shutil.copy(FOLDER / "pins.json", folder)
    assert status()["sap"] == "recomputed"
    shutil.copy(FOLDER / "measured-again.json", folder)
    assert status()["sap"] == "verified"
    (table,) = (folder / "minidocs" / "nano" / "sap").glob("*.kept.parquet")
    content = bytearray(table.read_bytes())
    content[len(content) // 2] ^= 1
    table.write_bytes(content)
    assert "sap" not in status()


@pytest.mark.slow
def test_the_bench_makes_submissions_that_are_valid_ranked_and_on_the_board(tmp_path: Path) -> None:
    place = tmp_path / "submissions"
    write_submissions(place, 12, quiet, methods=4)
    report = validate(place)
    assert not report.problems
    assert {entry.status for entry in report.entries} == {"recomputed"}
    site = build(gather(place, []), tmp_path / "site").folder
    (board,) = site.glob("board/made-up-2--*.html")
    rows = [row for part in sorted(site.glob("data/made-up-2*.json")) for row in json.loads(part.read_text())]
    assert "method-003" in board.read_text()
    assert {row["method"]: row["rank"] for row in rows if row["budget"] == 0.05}["random"] > 1
