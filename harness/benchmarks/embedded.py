"""The benchmarks that come with the project, by name. Light enough to be listed without importing anything heavy."""

from __future__ import annotations

from pathlib import Path

from pruners.core.errors import PruneBoardError

EMBEDDED = Path(__file__).parents[1] / "minidocs" / "data"
CALIBRATION = "minidocs-calibration"
NAMES = {
    "minidocs": ("minidocs-v1", "minidocs-v2"),
    "minidocs-v1": ("minidocs-v1",),
    "minidocs-v2": ("minidocs-v2",),
    CALIBRATION: (CALIBRATION,),
}
"""A benchmark, and the folders of data sets it is made of."""

NANO_NOTE = (
    "these figures are of a nano model on synthetic pages: they show that methods and harness work, "
    "and do not speak for backbones of ColPali's scale"
)
"""Of the embedded retriever on the embedded pages, wherever its figures are shown."""


class BenchmarkError(PruneBoardError):
    """A benchmark cannot be read."""


def data_set_folders(name: str) -> list[Path]:
    """Where the data sets of an embedded benchmark lie."""
    return [folder for part in NAMES[name] for folder in data_sets(EMBEDDED / part)]


def data_sets(folder: Path) -> list[Path]:
    """The data set in a folder, or those in the folders below it, but for one that is there to calibrate on."""
    if (folder / "corpus").is_dir():
        return [folder]
    found = sorted(path for path in folder.iterdir() if (path / "corpus").is_dir())
    found = [path for path in found if path.name != "calibration"] or found
    if not found:
        raise BenchmarkError(f"{folder} has no corpus/ folder, nor has a folder in it")
    return found
