"""Small worlds: parts of minidocs for the embedded retriever, drawn pages for the toy one."""

import sys
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "evaluation"))
from toy import write_backbone, write_data_set

from harness.benchmarks.data_set import PAGE_ID, QUERY_ID
from harness.benchmarks.embedded import EMBEDDED


@dataclass(frozen=True)
class World:
    folder: Path
    backbone: str
    benchmark: str
    calibration: str


def part_of(data_set: str, folder: Path, pages: int) -> Path:
    """The first pages of an embedded data set that answer a query, with those queries."""
    tables = {
        part: pa.concat_tables([pq.read_table(file) for file in sorted((EMBEDDED / data_set / part).glob("*.parquet"))])
        for part in ("corpus", "queries", "qrels")
    }
    names = {"corpus": PAGE_ID, "queries": QUERY_ID}
    ids = {part: next(n for n in known if n in tables[part].column_names) for part, known in names.items()}
    kept = list(dict.fromkeys(map(str, tables["qrels"]["corpus-id"].to_pylist())))[:pages]
    as_text = {part: pc.cast(tables[part][column], pa.string()) for part, column in ids.items()}
    gold = tables["qrels"].filter(pc.is_in(pc.cast(tables["qrels"]["corpus-id"], pa.string()), pa.array(kept)))
    asked = pa.array(sorted(set(map(str, gold["query-id"].to_pylist()))))
    parts = {
        "corpus": tables["corpus"].filter(pc.is_in(as_text["corpus"], pa.array(kept))),
        "queries": tables["queries"].filter(pc.is_in(as_text["queries"], asked)),
        "qrels": gold,
    }
    for part, table in parts.items():
        (folder / part).mkdir(parents=True)
        pq.write_table(table, folder / part / "test-00000-of-00001.parquet")
    return folder


@pytest.fixture(scope="session")
def nano_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("nano")
    for data_set in ("minidocs-v1/charts", "minidocs-v2/briefs"):
        part_of(data_set, folder / "pages" / data_set.split("/")[1], 12)
    part_of("minidocs-calibration/calibration", folder / "calibration", 24)
    return World(folder, "nano", str(folder / "pages"), str(folder / "calibration"))


@pytest.fixture(scope="session")
def toy_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("toy")
    write_data_set(folder / "pages" / "plain", range(15), queries=15)
    write_data_set(folder / "pages" / "tongues", range(30, 45), queries=8, languages=("english", "french"))
    write_data_set(folder / "calibration", range(100, 130), queries=30)
    return World(folder, str(write_backbone(folder)), str(folder / "pages"), str(folder / "calibration"))
