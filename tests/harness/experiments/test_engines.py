"""Engines of storage-retrieval: the same answers as a plain loop, and those that are not installed are named."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch

from harness.experiments import engines
from harness.experiments.engines import available, disk_bytes

CPU = torch.device("cpu")
ENGINES = engines.engines(CPU)


def unit_rows(rng: np.random.Generator, rows: int) -> np.ndarray:
    vectors = rng.standard_normal((rows, 16)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if engine.package else n for n, engine in ENGINES.items()]
)
def test_an_engine_answers_as_a_plain_loop_does(name: str, tmp_path: Path) -> None:
    engine = ENGINES[name]
    if engine.package and importlib.util.find_spec(engine.package) is None:
        assert any(name in sentence for sentence in available(CPU)[1])
        return  # behind an extra: what is checked then is that it says so
    rng = np.random.default_rng(3)
    pages = [unit_rows(rng, int(rng.integers(1, 9))) for _ in range(30)]
    queries = [-unit_rows(rng, 6), unit_rows(rng, 1), unit_rows(rng, 11)]
    engine.write(tmp_path, pages)
    search = engine.load(tmp_path)
    for query in queries:
        scores = [sum(max(float(q @ v) for v in page) for q in query) for page in pages]
        assert search(query, 5) == np.argsort(scores)[::-1][:5].tolist()


def test_what_is_not_installed_is_named_with_the_way_to_install_it(monkeypatch) -> None:
    monkeypatch.setattr(engines.importlib.util, "find_spec", lambda package: None)
    here, missing = available(CPU)
    assert list(here) == ["numpy, exact", "torch, exact"]
    assert len(missing) == 2
    assert all("pip install 'pruneboard[engines]'" in sentence for sentence in missing)


@pytest.mark.slow
def test_what_qdrant_takes_on_disk_are_its_vectors_not_the_space_it_reserves(tmp_path: Path) -> None:
    engine = ENGINES["Qdrant, exact"]
    rng = np.random.default_rng(3)
    pages = [unit_rows(rng, 2048).astype(np.float16) for _ in range(16)]
    engine.write(tmp_path, pages)
    said = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert said > 60 * 2**20, "it reserves space ahead"
    assert sum(page.nbytes for page in pages) <= disk_bytes(tmp_path) < 1.3 * sum(page.nbytes for page in pages)


def test_numbers_on_disk_are_counted_whole_where_a_file_has_no_holes(tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(b"seven..")
    assert disk_bytes(tmp_path) == 7
