"""The base: nano before its first contrast step, shipped so that `base-probe` compares with what nano was made of."""

from __future__ import annotations

import json

import torch
from safetensors.torch import load_file

from harness.backbones import registry
from harness.backbones.attention_source import with_attention_from
from harness.minidocs.files import folder_of, read
from harness.nano.checkpoint import BASE, FOLDER, build_model, save_weights
from harness.nano.training import TrainingSettings


def weights(folder):
    return load_file(folder / "model.safetensors")


def decoder_of(names):
    found = [name for name in names if "language_model.model.layers" in name and name.endswith("proj.weight")]
    assert len(found) == 8 * 7
    return found


def eyes_of(names):
    found = [name for name in names if "vision_tower" in name and name.endswith("proj.weight")]
    assert len(found) == 4 * 4
    return found


def test_it_is_the_same_network():
    base, final = weights(BASE), weights(FOLDER)
    assert {name: (w.shape, w.dtype) for name, w in base.items()} == {n: (w.shape, w.dtype) for n, w in final.items()}
    assert json.loads((BASE / "config.json").read_text()) == json.loads((FOLDER / "config.json").read_text())
    assert (BASE / "model.safetensors").stat().st_size < 4_000_000


def test_contrast_moved_every_layer_of_the_decoder_and_kept_near_what_the_eyes_had_learnt():
    base, final = weights(BASE), weights(FOLDER)
    assert all(moved(base[name], final[name]) > 0.1 for name in decoder_of(base))
    assert all(moved(base[name], final[name]) < 0.6 for name in eyes_of(base)), "an ancestor, not another run's"


def test_its_decoder_was_not_trained_before_the_contrast(tmp_path):
    """What its README says: the decoder still has the weights that the seed gave it, the vision tower has not."""
    save_weights(build_model(TrainingSettings().seed), tmp_path)
    base, fresh = weights(BASE), weights(tmp_path)
    assert all(torch.equal(base[name], fresh[name]) for name in decoder_of(base))
    assert not any(torch.equal(base[name], fresh[name]) for name in eyes_of(base))


def test_base_probe_reads_its_attention():
    page = read(folder_of("minidocs-v1", "slides")).images[0]
    nano = registry.load("nano")
    (own,), (probed,) = nano.encode_pages([page]), with_attention_from(nano, str(BASE)).encode_pages([page])
    assert torch.equal(own.vectors, probed.vectors), "the vectors stay nano's"
    assert not torch.allclose(own.signals["indegree"], probed.signals["indegree"])


def moved(before: torch.Tensor, after: torch.Tensor) -> float:
    """Length of the way from one to the other, as a share of the length of the first."""
    return float((after.float() - before.float()).norm() / before.float().norm())
