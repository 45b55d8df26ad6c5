"""`harness reproduce`: what was measured comes out again and is verified; what was made up is refused by name."""

from __future__ import annotations

import json
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest
from spoiling import Spoiled, consistent

from harness.submissions import measured_again
from harness.submissions.folder import read_submission
from harness.submissions.problems import Notes
from harness.submissions.schema import content_id
from harness.submissions.validation import ChangeBy, validate
from pruners.core.errors import PruneBoardError


def statuses(root: Path) -> dict[str, str]:
    return {entry.submission.method.name: entry.status for entry in validate(root).entries}


@pytest.mark.slow
def test_what_was_measured_is_verified_and_a_later_change_undoes_it(spoiled: Spoiled, reproduce) -> None:
    """Built-in methods and one of a file, with a window, thresholds, trials: all of them by one command."""
    code, said = reproduce(spoiled.root, "--all", "--record", "--by", "the toy maintainers")
    assert code == 0, said
    assert set(statuses(spoiled.root).values()) == {"verified"}
    record = json.loads((spoiled.root / "measured-again.json").read_text())[spoiled.path("contrast").stem]
    assert record["by"] == "the toy maintainers"
    assert record["rankings"] == len(pd.read_parquet(spoiled.path("contrast").with_suffix(".parquet")))
    assert record["near_ties"] == 0

    spoiled.json("sap", lambda s: s["origin"].update(note="words may change"))
    assert statuses(spoiled.root)["sap"] == "verified"
    known = json.loads((spoiled.root / "measured-again.json").read_text())
    known[spoiled.path("random").stem]["files"][spoiled.path("random").with_suffix(".parquet").name] = (
        "sha256-" + 64 * "0"
    )
    (spoiled.root / "measured-again.json").write_text(json.dumps(known))
    assert statuses(spoiled.root)["random"] == "recomputed"
    assert any("it changed since" in problem.what for problem in spoiled.warnings())


@pytest.mark.parametrize("method", ["random", "contrast"])
def test_a_made_up_ranking_is_refused_with_the_place_where_it_differs(spoiled, reproduce, method: str) -> None:
    """Figures follow from the forged ranking, so that validation has nothing to say against it."""

    def forge(frame: pd.DataFrame) -> None:
        at = frame.index[(frame["budget"] == 0.1) & (frame["data_set"] == "plain")][3]
        pages = list(frame.at[at, "top_10"])
        frame.at[at, "top_10"] = [pages[0], pages[5], *pages[2:5], pages[1], *pages[6:]]

    spoiled.only(method)
    consistent(spoiled, method, forge)
    assert spoiled.errors() == []
    path = spoiled.path(method)
    row = pd.read_parquet(path.with_suffix(".parquet")).query("budget == 0.1 and data_set == 'plain'").iloc[3]
    code, said = reproduce(spoiled.root, path.stem, "--record", "--by", "the toy maintainers")
    assert code == 1
    place = f"plain, query {row['query']}, budget 0.1, trial {row['trial']}, position 2"
    assert f"{place}: submitted is {row['top_10'][1]}, measured is {row['top_10'][5]}" in said
    assert not (spoiled.root / "measured-again.json").exists()


def test_other_code_than_the_one_named_is_refused(spoiled, reproduce, tmp_path: Path) -> None:
    spoiled.only("contrast")

    def other(content: dict) -> None:
        (name,) = content["method"]["source"]
        content["method"]["source"][name] = content["method"]["source"][name].replace("norm", "sum")

    path = spoiled.json("contrast", other, forge_id=True)
    code, said = reproduce(spoiled.root, path.stem)
    assert code == 1
    assert "the source that it carries is not the file that its hash is of" in said
    spoiled.json("contrast", lambda content: content["method"].pop("source"), forge_id=True)
    path = spoiled.path("contrast")
    assert "give it with --pruner FILE" in reproduce(spoiled.root, path.stem)[1]
    file = tmp_path / "own.py"
    file.write_text(
        "from pruners import scorer\n\n@scorer('contrast')\ndef contrast(page):\n    return page.vectors[:, 0]\n"
    )
    assert "is not the file that" in reproduce(spoiled.root, path.stem, "--pruner", str(file))[1]


def test_source_that_leaves_its_folder_is_not_written(spoiled, reproduce, tmp_path: Path) -> None:
    spoiled.only("contrast")
    target = tmp_path / "escaped.py"
    path = spoiled.json(
        "contrast", lambda content: content["method"]["source"].update({str(target): "import os"}), forge_id=True
    )
    assert "cannot be a file of a method" in reproduce(spoiled.root, path.stem)[1]
    assert not target.exists()


def test_a_record_needs_a_name_and_is_a_maintainers_act(spoiled, reproduce, tmp_path: Path) -> None:
    with pytest.raises(PruneBoardError, match="--record --by"):
        reproduce(spoiled.root, spoiled.path("sap").stem, "--record")
    before = Path(shutil.copytree(spoiled.root, tmp_path / "before"))
    (spoiled.root / "measured-again.json").write_text("{}")
    said = [p.what for p in validate(spoiled.root, base=before, by=ChangeBy("somebody")).problems if p.level == "error"]
    assert said == ["was changed: pinning and verifying are a maintainer's acts"]
    assert not [p for p in validate(spoiled.root, base=before, by=ChangeBy("a", True)).problems if p.level == "error"]


def test_times_are_not_in_the_id_and_the_settings_are(submitted: Path) -> None:
    (path,) = (submitted / "pages" / "toy" / "random").glob("*.json")
    submission = read_submission(path)
    slower = tuple(cell.model_copy(update={"prune_ms": 99.0}) for cell in submission.cells)
    assert content_id(submission.model_copy(update={"cells": slower})) == submission.id
    assert submission.settings is not None
    assert (submission.settings.seed, submission.settings.trials) == (42, 2)
    seed = submission.settings.model_copy(update={"seed": 43})
    assert content_id(submission.model_copy(update={"settings": seed})) != submission.id


@pytest.mark.parametrize("much", [False, True])
def test_little_that_differs_is_close_and_much_is_not(spoiled: Spoiled, reproduce, much: bool) -> None:
    """Of all submissions together only what differs by more than rounding is a failure; nothing of it is verified."""

    def forge(frame: pd.DataFrame) -> None:
        places = frame.index[frame["budget"] == 0.1]
        for at in places if much else places[:1]:
            pages = list(frame.at[at, "top_10"])
            frame.at[at, "top_10"] = pages[::-1] if much else [*pages[:8], pages[9], pages[8]]

    spoiled.only("sap")
    if much:
        consistent(spoiled, "sap", forge)
    else:
        spoiled.rows("sap", forge)
    code, said = reproduce(spoiled.root, "--all", "--record", "--by", "the toy maintainers")
    status = "differs" if much else "close"
    assert (code, f"{status} {spoiled.path('sap').stem} sap" in said) == (int(much), True), said
    assert not (spoiled.root / "measured-again.json").exists()


def test_two_maintainers_who_record_at_once_lose_nothing(spoiled: Spoiled, reproduce, monkeypatch) -> None:
    """Each reads the file, adds to it and writes it: between reading and writing the other must wait."""
    assert reproduce(spoiled.root, "--all", "--record", "--by", "the toy maintainers")[0] == 0
    known = measured_again.read_measured_again(spoiled.root, Notes(spoiled.root, []))
    (spoiled.root / "measured-again.json").unlink()
    read = measured_again.read_measured_again
    slow = lambda root, notes: (read(root, notes), time.sleep(0.05))[0]  # noqa: E731
    monkeypatch.setattr(measured_again, "read_measured_again", slow)
    with ThreadPoolExecutor(len(known)) as pool:
        list(pool.map(lambda one: measured_again.write_measured_again(spoiled.root, dict([one])), known.items()))
    assert read(spoiled.root, Notes(spoiled.root, [])) == known


@pytest.mark.parametrize(("less", "status"), [(0.005, "close"), (0.05, "differs")])
def test_a_cells_score_retention_may_be_a_little_off_and_no_more(spoiled, reproduce, less: float, status: str) -> None:
    """Every ranking comes out; only what is said of a cell does not."""

    def cells(content: dict) -> None:
        for cell in content["cells"]:
            if cell["budget"] == 0.1:
                cell["score_retention"] -= less

    spoiled.only("sap")
    spoiled.json("sap", cells, forge_id=True)
    code, said = reproduce(spoiled.root, "--all")
    assert (code, f"{status} {spoiled.path('sap').stem} sap" in said) == (int(status == "differs"), True), said
