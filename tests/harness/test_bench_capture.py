"""`harness bench capture` runs every way in its own process and says what it could not run."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from harness.bench import capture
from harness.bench.decoder import QWEN2_VL
from harness.cli import app


@pytest.mark.slow
def test_every_way_is_measured_beside_plain_sdpa():
    result = CliRunner().invoke(app, ["bench", "capture", "--tokens", "700", "--repeats", "1", "--json"])
    assert result.exit_code == 0, result.output
    rows = {row["way"]: row for row in json.loads(result.stdout)}
    assert list(rows) == list(capture.WAYS.values())
    ours, eager = rows[capture.WAYS["ours"]], rows[capture.WAYS["eager-all"]]
    assert rows[capture.WAYS["sdpa"]]["seconds_ratio"] == 1
    # At this length only the coarse facts are stable: no map is held by us, and all of them by eager attention.
    maps = QWEN2_VL.layers * QWEN2_VL.heads * 700**2 * 4 / 2**20
    assert eager["extra_mb"] - ours["extra_mb"] > 0.8 * maps
    assert ours["peak_mb_ratio"] < 1.15


def test_what_would_not_fit_is_not_run(monkeypatch):
    monkeypatch.setattr(capture, "_free_memory", lambda device: 2**30)
    monkeypatch.setattr(capture, "_in_own_process", lambda *_: {"seconds": 2.0, "peak_mb": 4.0, "extra_mb": 1.0})
    rows = {row["way"]: row for row in capture.measure([12288], repeats=1, threads=1)}
    assert "not run: needs about" in rows[capture.WAYS["eager-all"]]["note"]
    assert rows[capture.WAYS["ours"]]["seconds_ratio"] == 1
