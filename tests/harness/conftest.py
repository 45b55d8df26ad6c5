"""Tiny checkpoints, made once a session."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def datasets_cache(tmp_path_factory):
    """A cache of its own: `datasets` knows a local folder by its name alone, and takes an older one of that name."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("datasets_cache")
        patch.setattr("datasets.config.HF_DATASETS_CACHE", folder)
        yield folder


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory):
    """`checkpoints("colpali")` is the folder of a tiny checkpoint; made when first asked for."""
    from tests.harness import tiny_adapters, tiny_newer
    from tests.harness import tiny_checkpoints as tiny

    savers = {
        "colpali": tiny.save_colpali,
        "colqwen2": tiny.save_colqwen2,
        "colqwen2.5": tiny.save_colqwen25,
        "colsmol": tiny.save_colidefics3,
        "jina-v4": tiny_adapters.save_jina_v4,
        "colqwen3": tiny_newer.save_colqwen3,
        "colqwen3.5": tiny_newer.save_colqwen35,
        "colgemma3": tiny_newer.save_colgemma3,
        "colmodernvbert": tiny_newer.save_colmodernvbert,
        "colqwen-omni": tiny_newer.save_colqwen_omni,
    }
    root, made = tmp_path_factory.mktemp("checkpoints"), {}

    def folder(name: str):
        if name not in made:
            made[name] = savers[name](root / name)
        return made[name]

    return folder


@pytest.fixture(scope="session")
def tiny_backbone(checkpoints):
    """`tiny_backbone("colpali")` loads a tiny checkpoint with the production loader, once a session."""
    from harness.backbones import registry
    from harness.backbones.contract import Options

    loaded = {}

    def load(name: str):
        if name not in loaded:
            loaded[name] = registry.load(f"{name}={checkpoints(name)}", Options(device="cpu"))
        return loaded[name]

    return load
