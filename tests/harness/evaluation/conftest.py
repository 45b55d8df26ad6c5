"""A toy retriever and two data sets, one of them in two languages."""

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from toy import write_backbone, write_data_set


@dataclass(frozen=True)
class Toy:
    folder: Path
    backbone: str
    benchmark: str
    calibration: str

    @property
    def options(self) -> list[str]:
        return ["--backbone", self.backbone, "--benchmark", self.benchmark, "--calibration", self.calibration]


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    folder = tmp_path_factory.mktemp("toy")
    write_data_set(folder / "pages" / "plain", range(25))
    write_data_set(folder / "pages" / "tongues", range(30, 55), queries=12, languages=("english", "french"))
    write_data_set(folder / "calibration", range(100, 140), queries=40)
    backbone = write_backbone(folder)
    return Toy(folder, str(backbone), str(folder / "pages"), str(folder / "calibration"))
