"""nano's card is written down, so that its stores are found without an engine; it must be the one the engine gives."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
from PIL import Image

from harness.backbones import nano, registry
from harness.backbones.checkpoint import CheckpointError
from harness.backbones.contract import Options

CPU = Options(device="cpu")


@pytest.mark.parametrize("options", [CPU, Options(device="cpu", dtype="bfloat16")])
def test_the_card_written_down_is_the_engine_s(options):
    backbone = registry.load("nano", options)
    assert backbone.known is not None
    assert backbone.card == backbone.stated_card()


def test_the_card_is_known_without_the_engine():
    code = (
        "import sys\nfrom harness.backbones import registry\nassert registry.load('nano').card.layers == 8\n"
        "assert not {'transformers', 'colpali_engine'} & set(sys.modules), 'imported an engine'"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_other_weights_have_another_card(tmp_path):
    """One bit of the last weight: the card is the engine's, and so is the hash in it."""
    folder = shutil.copytree(nano.EMBEDDED, tmp_path / "nano")
    assert registry.load(f"nano={folder}", CPU).card == replace(nano.CARD, checkpoint=str(folder))
    weights = bytearray((folder / "model.safetensors").read_bytes())
    weights[-2] ^= 1
    (folder / "model.safetensors").write_bytes(weights)
    changed = registry.load(f"nano={folder}", CPU)
    assert changed.known is None
    assert changed.card == replace(nano.CARD, checkpoint=str(folder), revision=changed.card.revision)
    assert changed.card.revision != nano.CARD.revision


def test_what_was_wrong_is_still_said_at_once(tmp_path):
    folder = shutil.copytree(nano.EMBEDDED, tmp_path / "nano")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(CheckpointError, match=r"lacks tokenizer\.json"):
        registry.load(f"nano={folder}", CPU)


def test_an_engine_that_reads_pages_otherwise_is_refused(monkeypatch):
    """A prompt that changed with a release would fill stores with other vectors under the old key."""
    monkeypatch.setattr(nano, "CARD", replace(nano.CARD, page_prompt="<image>Describe."))
    backbone = nano.load("embedded", CPU)
    with pytest.raises(CheckpointError, match="would not hold what its key says"):
        backbone.encode_pages([Image.new("RGB", (64, 64), "white")])
