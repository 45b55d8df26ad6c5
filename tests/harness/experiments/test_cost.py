"""pruning-latency and peak-memory measure the backbone that was chosen, and say on what."""

from __future__ import annotations

import harness.compat  # noqa: F401

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from harness.backbones.contract import Options
from harness.backbones.registry import load
from harness.bench import capture
from harness.bench.decoder import Decoder
from harness.experiments.cost import peak_memory, pruning_latency
from harness.experiments.workbench import ExperimentSettings, Workbench
from harness.progress import quiet
from pruners import PruneBoardError
from tests.harness.evaluation.toy import paint

BACKBONES = ["colpali", "colqwen2", "colqwen2.5", "colsmol", "jina-v4"]


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Decoder]:
    """Which decoders would be run; the processes have a test of their own (capture)."""
    seen: list[Decoder] = []

    def note(decoder: Decoder, way: str, tokens: int, threads: int) -> dict[str, float]:
        seen.append(decoder)
        return {"seconds": 1.0, "peak_mb": 300.0, "extra_mb": float(tokens)}

    monkeypatch.setattr(capture, "_in_own_process", note)
    return seen


def lab_of(backbone: str, folder: Path, **settings) -> Workbench:
    return Workbench(ExperimentSettings(backbone=backbone, **settings), folder / "stores", folder / "out", 1, quiet)


@pytest.mark.slow
@pytest.mark.parametrize("name", BACKBONES)
def test_the_decoder_measured_has_the_shape_of_the_backbones_own(name, checkpoints, tmp_path, measured):
    backbone = f"{name}={checkpoints(name)}"
    found = peak_memory(lab_of(backbone, tmp_path, tokens=(40,)))
    theirs = {
        part: tuple(weight.shape)
        for part, weight in load(backbone, Options(device="cpu")).model.state_dict().items()
        if ".layers." in part and "vision" not in part and "visual." not in part
    }
    decoder = measured[0].build("sdpa")
    ours = {part: tuple(weight.shape) for part, weight in decoder.state_dict().items() if "layers." in part}
    assert ours
    for part, shape in ours.items():
        assert shape in [size for whole, size in theirs.items() if whole.endswith(part)], part
    assert len(ours) == len(theirs), "no layer more, none less"
    assert found.facts["decoder"]["weights"] == "random"
    assert found.rows[0]["visual_tokens"] == 40
    assert measured[0].bidirectional == (name == "colpali")


@pytest.mark.parametrize("way", list(capture.WAYS))
@pytest.mark.parametrize("bidirectional", [True, False])
def test_every_way_runs_on_a_decoder_of_another_kind(way: str, bidirectional: bool):
    decoder = Decoder.of(load("nano").text_config, bidirectional=bidirectional)
    found = capture.run_one(Decoder.parse(str(decoder)), way, 60, threads=1)
    assert set(found) == {"seconds", "peak_mb", "extra_mb"}


def test_bidirectional_means_that_the_first_token_sees_the_last():
    decoder = Decoder.of(load("nano").text_config, bidirectional=True)
    like = {"device": "cpu", "dtype": torch.float32}
    page = torch.randn(1, 12, decoder.hidden)
    for eager in (True, False):
        model = decoder.build("eager" if eager else "sdpa")
        mask = capture._every_pair(12, like, eager)
        other = page.clone()
        other[:, -1] += 1
        first, second = (model(inputs_embeds=p, attention_mask=mask).last_hidden_state[0, 0] for p in (page, other))
        assert not torch.allclose(first, second)


def test_a_model_that_does_not_fit_is_not_run(tmp_path, measured, monkeypatch):
    monkeypatch.setattr(capture, "_free_memory", lambda device: 2**20)
    found = peak_memory(lab_of("nano", tmp_path, tokens=(64,)))
    assert not measured
    assert all("not run: needs about" in row["note"] for row in found.rows)


@pytest.mark.slow
def test_backbones_without_a_text_decoder_are_told_so(toy_world, tmp_path):
    with pytest.raises(PruneBoardError, match="toy has no text decoder that peak-memory could read"):
        peak_memory(lab_of(toy_world.backbone, tmp_path))
    with pytest.raises(PruneBoardError, match="minilm reads text in windows of at most 512 tokens"):
        peak_memory(lab_of("minilm", tmp_path))


def write_texts(folder: Path, numbers: range) -> Path:
    """Pages that have a text beside their picture, each with a query."""
    tables = {
        "corpus": [
            {"corpus-id": f"p{n}", "image": {"bytes": paint(n), "path": None}, "text": f"report {n} on energy in {n}"}
            for n in numbers
        ],
        "queries": [{"query-id": f"q{n}", "query": f"energy in {n}"} for n in numbers],
        "qrels": [{"query-id": f"q{n}", "corpus-id": f"p{n}", "score": 1} for n in numbers],
    }
    for part, rows in tables.items():
        (folder / part).mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(rows), folder / part / "test-00000-of-00001.parquet")
    return folder


@pytest.mark.slow
def test_encoding_is_timed_on_what_the_backbone_reads_and_every_row_says_where(tmp_path):
    places = {"benchmark": str(write_texts(tmp_path / "pages", range(4)))}
    places["calibration"] = str(write_texts(tmp_path / "calibration", range(10, 14)))
    found = pruning_latency(lab_of("minilm", tmp_path, **places, device="cpu", timed_pages=2, window="2-3"))
    assert {row["device"] for row in found.rows} == {"cpu"}
    assert found.rows[0]["milliseconds"] > 0
    assert any("by minilm. Pruning runs on the CPU" in note for note in found.notes)
