"""A decoder of which only some layers have attention: signals, windows, curves and SAP run over those, and say so."""

from __future__ import annotations

import harness.compat  # noqa: F401

import json

import pytest
import torch
from typer.testing import CliRunner

from harness import cli
from harness.benchmarks.data_set import read_folder
from harness.encode import encode, identity_of
from pruners import Window
from pruners.core.errors import PruneBoardError
from tests.harness.benchmark_folder import write_benchmark


def test_a_card_says_which_layers_have_attention(tiny_backbone):
    card = tiny_backbone("colqwen3.5").card
    assert (card.layers, card.attention_layers) == (2, (3, 7))
    assert "2 of its 8 layers" in card.signals_from
    assert card.rows_are == "layers with attention; in the decoder they are 3, 7"
    plain = tiny_backbone("colqwen3").card
    assert plain.rows_are == ""
    assert "attention_layers" not in plain.as_dict()
    assert json.loads(json.dumps(card.as_dict()))["attention_layers"] == [3, 7]


def test_signals_and_windows_have_a_row_for_each_of_them(tiny_backbone, tmp_path):
    backbone = tiny_backbone("colqwen3.5")
    data_set = read_folder(write_benchmark(tmp_path / "pages", pages=6))
    store = encode(backbone, data_set, tmp_path / "stores", batch_size=2)
    assert store.signals["indegree"] == 2
    assert identity_of(backbone, data_set)["backbone"]["attention_layers"] == [3, 7]
    signal = store.page(0).signals["indegree"]
    last, both = Window.parse("1").mean(signal), Window.parse("all").mean(signal)
    torch.testing.assert_close(both, (signal[0] + last) / 2)
    with pytest.raises(PruneBoardError, match="beyond the 2 this backbone has"):
        Window.parse("7").mean(signal)


@pytest.mark.slow
def test_calibrating_it_names_the_layers(checkpoints, tmp_path):
    pages = write_benchmark(tmp_path / "pages", pages=6)
    selector = f"colqwen3.5={checkpoints('colqwen3.5')}"
    command = ["calibrate", "--backbone", selector, "--benchmark", str(pages), "--store", str(tmp_path / "stores")]
    ran = CliRunner().invoke(cli.app, [*command, "--device", "cpu"])
    assert ran.exit_code == 0, ran.output
    assert "in the decoder they are 3, 7" in ran.stdout
