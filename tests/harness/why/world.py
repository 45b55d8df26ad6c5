"""A toy retriever, pages that are nearly white, and a run on them."""

import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "evaluation"))
from toy import write_backbone, write_data_set

import harness
from harness.runs.results import Results


@dataclass(frozen=True)
class World:
    folder: Path
    backbone: str
    benchmark: str
    calibration: str
    run: Path
    stores: Path

    def results(self) -> Results:
        return harness.load_run(self.run)


def make_world(folder: Path) -> World:
    write_data_set(folder / "pages" / "plain", range(200, 225))
    write_data_set(folder / "pages" / "tongues", range(226, 251), queries=12, languages=("english", "french"))
    write_data_set(folder / "calibration", range(100, 130), queries=30)
    made = World(
        folder,
        str(write_backbone(folder)),
        str(folder / "pages"),
        str(folder / "calibration"),
        folder / "run",
        folder / "stores",
    )
    harness.evaluate(
        ["sap", "kmeans", "random", "hpc(codes=8)", "docpruner", "oracle"],
        backbone=made.backbone,
        benchmark=made.benchmark,
        calibration=made.calibration,
        budgets=[0.1, 0.3],
        trials=2,
        store=made.stores,
        out=made.run,
        workers=1,
    )
    return made
