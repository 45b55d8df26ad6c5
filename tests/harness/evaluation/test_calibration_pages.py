"""Calibration pages are encoded for what learns from them, and for nothing else."""

import json
from pathlib import Path

import pytest

from harness.evaluation.config import Config
from harness.evaluation.evaluate import RunPaths, evaluate
from harness.progress import quiet


def record(toy, folder: Path, pruners: tuple[str, ...], window: str | None) -> tuple[dict, set[str]]:
    """What a run says of its calibration, and the stores that it made."""
    settings = {"backbone": toy.backbone, "benchmark": toy.benchmark, "calibration": toy.calibration}
    config = Config(**settings, pruners=pruners, window=window, budgets=(0.1,))
    evaluate(config, RunPaths(folder / "stores", folder / "run", 1), quiet)
    stores = {path.name.split("--")[1] for path in (folder / "stores").iterdir() if (path / "manifest.json").is_file()}
    return json.loads((folder / "run" / "calibration.json").read_text()), stores


@pytest.mark.parametrize(
    ("pruners", "window", "pages", "encoded"),
    [
        (("sap",), "1-2", 0, False),  # the window is given: nobody looks at a calibration page
        (("sap",), None, 0, True),  # it is learned
        (("docpruner",), None, 40, True),  # a threshold is learned, from no more pages than there are
        (("sap", "docpruner"), "1-2", 40, True),
    ],
)
def test_calibration_pages_are_encoded_if_something_is_learned_from_them(
    toy, tmp_path: Path, pruners: tuple[str, ...], window: str | None, pages: int, encoded: bool
) -> None:
    found, stores = record(toy, tmp_path, pruners, window)
    assert stores == {"plain", "tongues", *(["calibration"] if encoded else [])}
    assert found["benchmark"] == ("calibration" if encoded else None)
    assert found["pages"] == pages
    assert (found["window"] is None) == ("sap" not in pruners)
