"""Inputs that are no inputs: each is one line that names the file and what is wrong with it, never a traceback."""

import io
import json
import os
import signal
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from harness.backbones.registry import load
from harness.benchmarks.data_set import read_folder
from harness.benchmarks.embedded import BenchmarkError
from harness.calibration.window_files import read_window
from harness.cli import app
from harness.encode import MOST_QUERY, encode
from harness.store.format import StoreError
from harness.store.import_vectors import read_vectors
from harness.workers import spread
from pruners.core.errors import PruneBoardError
from tests.harness.evaluation.toy import write_backbone, write_data_set

VECTORS = {"vectors": np.ones((6, 4), np.float32), "offsets": np.array([0, 2, 6]), "grids": np.array([[1, 2], [2, 2]])}
WRONG_ARRAYS = {
    "complex vectors": ({"vectors": np.ones((6, 4), complex)}, "vectors holds complex128"),
    "vectors of text": ({"vectors": np.full((6, 4), "1.0")}, "vectors holds <U3"),
    "vectors of dates": ({"vectors": np.zeros((6, 4), "datetime64[s]")}, "not real numbers"),
    "offsets with a fraction": ({"offsets": np.array([0, 2.5, 6])}, "offsets holds float64, not whole numbers"),
    "offsets of text": ({"offsets": np.array(["0", "2", "6"])}, "offsets holds <U1"),
    "a negative grid": ({"grids": np.array([[-1, -2], [2, 2]])}, "with a negative side"),
    "a grid with a fraction": ({"grids": np.array([[1, 2], [1.5, 2]])}, "grids holds float64"),
    "a complex signal": ({"signal.eos": np.ones((6, 1), complex)}, "signal.eos holds complex128"),
}


@pytest.mark.parametrize("what", WRONG_ARRAYS)
def test_arrays_that_are_no_vectors(tmp_path: Path, what: str) -> None:
    change, said = WRONG_ARRAYS[what]
    np.savez(tmp_path / "pages.npz", **{**VECTORS, **change})
    with pytest.raises(StoreError, match=f"pages.npz.*{said}"):
        read_vectors(tmp_path / "pages.npz")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.99])
def test_a_truncated_npz(tmp_path: Path, share: float) -> None:
    whole = io.BytesIO()
    np.savez_compressed(whole, **VECTORS)
    (tmp_path / "pages.npz").write_bytes(whole.getvalue()[: int(share * len(whole.getvalue()))])
    with pytest.raises(StoreError, match=r"pages\.npz cannot be read"):
        read_vectors(tmp_path / "pages.npz")


def test_an_npz_whose_content_is_damaged(tmp_path: Path) -> None:
    whole = io.BytesIO()
    np.savez_compressed(whole, **VECTORS)
    data = bytearray(whole.getvalue())
    data[60:80] = b"\xff" * 20
    (tmp_path / "pages.npz").write_bytes(data)
    with pytest.raises(StoreError, match=r"pages\.npz"):
        read_vectors(tmp_path / "pages.npz")


@pytest.mark.parametrize("junk", [b"", b"PAR1", b"PAR1" + b"junk" * 99 + b"PAR1", b"\x00" * 500])
def test_junk_in_place_of_parquet(tmp_path: Path, junk: bytes) -> None:
    (tmp_path / "pages.parquet").write_bytes(junk)
    with pytest.raises(StoreError, match=r"pages\.parquet cannot be read"):
        read_vectors(tmp_path / "pages.parquet")
    folder = write_data_set(tmp_path / "pages", range(3), queries=3)
    for part in ("corpus", "queries", "qrels"):
        path = folder / part / "test-00000-of-00001.parquet"
        whole = path.read_bytes()
        path.write_bytes(junk)
        with pytest.raises(BenchmarkError, match=f"{part}.*is no parquet file, or a damaged one"):
            read_folder(folder)
        path.write_bytes(whole)


@pytest.mark.parametrize("grid", [[-1, -2], [2], "2x2"])
def test_grids_of_a_parquet_file(tmp_path: Path, grid: object) -> None:
    rows = [{"id": "a", "vectors": [[1.0, 2.0]] * 2, "grid": grid}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "pages.parquet")
    with pytest.raises(StoreError, match=r"pages\.parquet: a grid is"):
        read_vectors(tmp_path / "pages.parquet")


def change_column(folder: Path, part: str, column: str, value: object) -> None:
    path = folder / part / "test-00000-of-00001.parquet"
    rows = pq.read_table(path).to_pylist()
    pq.write_table(pa.Table.from_pylist([{**row, column: value} for row in rows]), path)


@pytest.mark.parametrize("score", [float("nan"), float("inf"), "relevant", None, 0.5])
def test_scores_that_are_no_grades(tmp_path: Path, score: object) -> None:
    folder = write_data_set(tmp_path / "pages", range(3), queries=3)
    change_column(folder, "qrels", "score", score)
    with pytest.raises(BenchmarkError, match=r"qrels.*score .* is no whole number"):
        read_folder(folder)


@pytest.mark.parametrize("score", [1.0, "1"])
def test_grades_in_another_writing_are_grades(tmp_path: Path, score: object) -> None:
    folder = write_data_set(tmp_path / "pages", range(3), queries=3)
    change_column(folder, "qrels", "score", score)
    assert {grade for pages in read_folder(folder).qrels.values() for grade in pages.values()} == {1}


def test_queries_that_are_no_text(tmp_path: Path) -> None:
    folder = write_data_set(tmp_path / "pages", range(3), queries=3)
    change_column(folder, "queries", "query", 7)
    with pytest.raises(BenchmarkError, match="'7', which is no text"):
        read_folder(folder)


def bomb_png(side: int) -> bytes:
    """A PNG that says that it is so wide and high, in a few bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


def test_a_small_image_that_unpacks_to_gigabytes_is_not_decoded(tmp_path: Path) -> None:
    folder = write_data_set(tmp_path / "pages", range(3), queries=3)
    change_column(folder, "corpus", "image", {"bytes": bomb_png(100_000), "path": None})
    with pytest.raises(BenchmarkError, match=r"image of page 'page-1' cannot be read.*decompression bomb"):
        read_folder(folder).image(1)
    labelled = tmp_path / "labelled"
    labelled.mkdir()
    (labelled / "a.png").write_bytes(bomb_png(100_000))
    (labelled / "queries.jsonl").write_text('{"id": "q", "text": "x"}\n')
    (labelled / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\ta.png\t1\n")
    result = CliRunner().invoke(app, ["import", str(labelled), "--out", str(tmp_path / "out")])
    assert isinstance(result.exception, PruneBoardError)
    assert "a.png" in str(result.exception)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("workers", [10_000, -1])
def test_so_many_workers_are_a_slip(workers: int) -> None:
    with (
        pytest.raises(PruneBoardError, match=rf"{workers} workers: choose 1 to \d+"),
        spread(str, range(3), workers),
    ):
        pass


def test_a_query_of_twenty_thousand_words_is_named(tmp_path: Path) -> None:
    folder = write_data_set(tmp_path / "pages", range(3), queries=3)
    change_column(folder, "queries", "query", "word " * 20_000)
    backbone = load(str(write_backbone(tmp_path)))
    with pytest.raises(BenchmarkError, match=f"the query 'q0' has 100,000 characters, at most {MOST_QUERY:,} are read"):
        encode(backbone, read_folder(folder), tmp_path / "stores")


def run(*words: str, **env: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "harness.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **env}, check=False)


@pytest.mark.parametrize("env", [{"PYTHONIOENCODING": "ascii"}, {"PYTHONUTF8": "0", "LC_ALL": "C", "LANG": "C"}])
def test_a_terminal_that_knows_ascii_only(env: dict[str, str], tmp_path: Path) -> None:
    """Titles and ellipses of the table are written as escapes."""
    ended = run("validate", "submissions/vidore-v1", PYTHONCOERCECLOCALE="0", **env)
    assert ended.returncode in (0, 1)
    assert "Traceback" not in ended.stderr
    assert "submissions: " in ended.stderr
    assert (ended.stdout + ended.stderr).isascii()


def test_a_window_that_its_own_curve_contradicts_is_refused(tmp_path: Path) -> None:
    backbone = load(str(write_backbone(tmp_path)))
    write_data_set(tmp_path / "calibration", range(100, 112), queries=12)
    options = ["--backbone", str(tmp_path / "toy_backbone.py"), "--benchmark", str(tmp_path / "calibration")]
    result = CliRunner().invoke(app, ["calibrate", *options, "--pairs", "12", "--store", str(tmp_path / "stores")])
    assert result.exit_code == 0, result.output
    (path,) = (tmp_path / "stores" / "windows").glob("*.json")
    saved = json.loads(path.read_text())
    assert read_window(path, backbone).window == saved["window"]
    other = next(window for window in ("0", "1", "2") if window != saved["window"].split("-")[0])
    path.write_text(json.dumps({**saved, "window": other}))
    with pytest.raises(PruneBoardError, match=rf"says {other}.*its own curve gives .*it was edited"):
        read_window(path, backbone)


@pytest.mark.slow
def test_an_interrupted_build_leaves_no_traceback_and_no_half_site(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "harness.cli", "leaderboard", "--out", str(tmp_path / "site")]
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env, start_new_session=True)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob(".site-*/new/board")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: workers get it too
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert "interrupted" in said
    assert not list(tmp_path.glob(".site-*"))
    assert not (tmp_path / "site").exists()
