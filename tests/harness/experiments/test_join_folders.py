"""Which folders may be joined: what would mislead is refused by name, what is no finished folder is said."""

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from printed_folders import change, write_folder

from harness.experiments.join import ITEMS, join
from harness.experiments.joint import Joint
from harness.experiments.joint_sources import read_sources
from harness.experiments.outcome import Outcome
from pruners import PruneBoardError


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    """Two backbones that a test may change."""
    return [write_folder(tmp_path, backbone) for backbone in ("colpali", "colqwen2")]


def outcome(folders: list[Path], name: str) -> Outcome:
    """One item, without its files."""
    (item,) = [item for item in ITEMS if item.name == name]
    return item.make(Joint(read_sources(folders)[0]))


def test_one_backbone_in_two_folders_is_one_backbone(tmp_path: Path) -> None:
    apart = [write_folder(tmp_path, "colpali", (name,)) for name in ("vidore-v1", "vidore-v2")]
    together = write_folder(tmp_path, "colpali")
    for name in ("window-ablation", "windows", "main-table", "layer-curve", "sr-ndcg", "base-probe"):
        rows = outcome(apart, name).rows
        assert sorted(map(str, rows)) == sorted(map(str, outcome([together], name).rows)), name


def test_two_checkpoints_of_one_name_are_told_apart(two: list[Path], tmp_path: Path) -> None:
    other = Path(shutil.copytree(two[0], tmp_path / "other"))
    change(other, card={"revision": "xxh3-abcdef0123"})
    rows = outcome([two[0], other], "main-table").rows
    assert {row["backbone"] for row in rows} == {"ColPali @0123456", "ColPali @abcdef0"}


def refusal(folders: list[Path], out: Path) -> str:
    with pytest.raises(PruneBoardError) as caught:
        join(folders, out)
    assert not out.exists() or not list(out.glob("*.tex"))
    return str(caught.value)


def test_folders_that_would_mislead_together_are_refused_by_name(two: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "joint"
    copy = Path(shutil.copytree(two[0], tmp_path / "copy"))
    assert "are both colpali on vidore-v1: every point would count twice" in refusal([*two, copy], out)
    assert "are both colpali" in refusal([two[0], two[0]], out)
    change(two[1], pairs=100)
    said = refusal(two, out)
    assert said.startswith("made with different --pairs: 500 in colpali--")
    assert "100 in colqwen2--" in said
    change(two[1], pairs=500, seed=7)
    assert "--seed: 42 in" in refusal(two, out)
    change(two[1], seed=42, trials=2)
    assert "--trials: not given in colpali" in refusal(two, out)
    change(two[1], trials=None, benchmark={"VidoreDocVQARetrieval": {"corpus": "sha256-other"}})
    assert "VidoreDocVQARetrieval was not the same data" in refusal(two, out)
    change(
        two[1],
        benchmark={"VidoreDocVQARetrieval": {"corpus": "sha256-VidoreDocVQARetrieval", "queries": "q", "qrels": "g"}},
    )
    change(two[1], benchmark={"VidoreAnotherRetrieval": {}})
    assert "averages of vidore-v1 are over different data sets" in refusal(two, out)


def test_one_backbone_has_one_window(tmp_path: Path) -> None:
    apart = [write_folder(tmp_path, "colpali", (name,)) for name in ("vidore-v1", "vidore-v2")]
    change(apart[1], window={"window": "9-12"})
    assert "colpali was pruned with different windows: 11-14 in" in refusal(apart, tmp_path / "joint")


def test_what_only_differs_between_backbones_is_noted(two: list[Path]) -> None:
    change(two[1], dtype="bfloat16")
    (note,) = read_sources(two)[1]
    assert note.startswith("dtype differs: not given in colpali")


def test_backbones_of_two_kinds_stand_side_by_side_with_a_warning(two: list[Path], tmp_path: Path) -> None:
    copy = Path(shutil.copytree(two[0], tmp_path / "copy"))
    change(copy, card={"kind": "text tokens", "name": "minilm"})
    (note,) = read_sources([two[0], copy])[1]
    assert note.startswith("vectors stand for different things, so do not compare these backbones: visual in colpali")


def test_what_is_no_finished_folder_is_named_with_the_way_out(two: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "joint"
    assert "there is no folder" in refusal([tmp_path / "nowhere"], out)
    (tmp_path / "empty").mkdir()
    assert "empty is not a folder of experiments" in refusal([tmp_path / "empty"], out)
    (tmp_path / "begun" / "runs").mkdir(parents=True)
    assert "nothing is finished in" in refusal([tmp_path / "begun"], out)
    assert "holds 2 folders of experiments: name those" in refusal([tmp_path], out)
    (tmp_path / "empty" / "peak-memory.json").write_text('{"rows": [], "facts": {}}')
    assert "can be joined: it has peak-memory; join reads main-table" in refusal([tmp_path / "empty"], out)
    (two[0] / "sr-ndcg.json").write_text("{")
    assert "sr-ndcg.json is not whole" in refusal(two, out)
    assert "would be overwritten" in refusal([two[1]], two[1])
