"""Against the state before: who may take back, reword, pin and replace what."""

import json
import re
import shutil
from pathlib import Path

import pytest
from spoiling import Spoiled
from typer.testing import CliRunner

from harness.cli import app
from harness.submissions.validation import ChangeBy, validate

ENDINGS = (".json", ".parquet", ".kept.parquet")
OWNER, STRANGER, MAINTAINER = ChangeBy("toy-team"), ChangeBy("somebody"), ChangeBy("anybody", maintainer=True)


@pytest.fixture
def before(spoiled: Spoiled, tmp_path: Path) -> Path:
    """The state before, in which `sap` belongs to the account toy-team."""
    spoiled.json("sap", lambda s: s["origin"].update(account="toy-team"))
    return Path(shutil.copytree(spoiled.root, tmp_path / "before"))


def errors(spoiled: Spoiled, before: Path, by: ChangeBy) -> list[str]:
    report = validate(spoiled.root, base=before, by=by)
    return [f"{p.field}: {p.what}" for p in report.problems if p.level == "error"]


def test_who_submitted_may_take_it_back_and_a_maintainer_and_nobody_else(spoiled: Spoiled, before: Path) -> None:
    path = spoiled.path("sap")
    for ending in ENDINGS:
        path.with_suffix(ending).unlink()
    gone = {path.stem: {"removed": "2026-11-17", "reason": "a wrong query template"}}
    (spoiled.root / "removed.json").write_text(json.dumps(gone))
    assert errors(spoiled, before, OWNER) == []
    assert errors(spoiled, before, MAINTAINER) == []
    (said,) = errors(spoiled, before, STRANGER)
    assert "is another's" in said
    assert "is another's" in errors(spoiled, before, ChangeBy())[0]


def test_words_are_changed_by_who_submitted_and_nobody_else(spoiled: Spoiled, before: Path) -> None:
    spoiled.json("sap", lambda s: s["origin"].update(note="withdrawn, do not read"))
    assert errors(spoiled, before, OWNER) == []
    assert errors(spoiled, before, MAINTAINER) == []
    (said,) = errors(spoiled, before, STRANGER)
    assert "words were changed" in said
    spoiled.json("random", lambda s: s["origin"].update(submitter="another team"))
    assert len(errors(spoiled, before, OWNER)) == 1  # nobody but a maintainer owns what names no account


def test_an_account_is_not_given_away_or_taken(spoiled: Spoiled, before: Path) -> None:
    spoiled.json("sap", lambda s: s["origin"].update(account="somebody"))
    assert "words were changed" in errors(spoiled, before, STRANGER)[0]


def test_nobody_submits_in_anothers_name(spoiled: Spoiled, before: Path) -> None:
    for ending in ENDINGS:
        (before / spoiled.path("sap").relative_to(spoiled.root)).with_suffix(ending).unlink()
    (said,) = errors(spoiled, before, STRANGER)
    assert "in the name of toy-team" in said
    (said,) = errors(spoiled, before, OWNER)  # what names no account was submitted by nobody knows whom
    assert "the toy team has submitted before, and not by the account toy-team" in said
    (known,) = (before / "pages" / "toy" / "random").glob("*.json")
    content = json.loads(known.read_text())
    content["origin"]["account"] = "toy-team"
    known.write_text(json.dumps(content))
    shutil.copy(known, spoiled.path("random"))
    assert errors(spoiled, before, OWNER) == []


def test_pins_and_pinned_files_are_for_maintainers(spoiled: Spoiled, before: Path) -> None:
    pins = spoiled.root / "pins.json"
    pins.write_text(pins.read_text().replace("the toy maintainers", "me"))
    assert any("maintainer" in said for said in errors(spoiled, before, OWNER))
    assert errors(spoiled, before, MAINTAINER) == []
    pins.unlink()
    assert any("maintainer" in said for said in errors(spoiled, before, OWNER))


def test_a_reason_once_given_stays(spoiled: Spoiled, before: Path) -> None:
    gone = {"0" * 16: {"removed": "2026-11-17", "reason": "mine"}}
    for root in (spoiled.root, before):
        (root / "removed.json").write_text(json.dumps(gone))
    assert errors(spoiled, before, STRANGER) == []
    gone["0" * 16]["reason"] = "theirs"
    (spoiled.root / "removed.json").write_text(json.dumps(gone))
    assert "was listed as removed before" in errors(spoiled, before, STRANGER)[0]


@pytest.mark.parametrize("what", ["removed.json", "pins.json", "README.md"])
def test_links_at_the_root_are_refused(spoiled: Spoiled, tmp_path: Path, what: str) -> None:
    (tmp_path / "elsewhere.json").write_text("{}")
    path = spoiled.root / what
    path.unlink(missing_ok=True)
    path.symlink_to(tmp_path / "elsewhere.json")
    assert any(e.file == path and "link" in e.what for e in spoiled.errors()), spoiled.errors()


def test_the_state_before_must_be_a_folder(spoiled: Spoiled, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for wrong in (tmp_path / "nothing", file):
        result = CliRunner().invoke(app, ["validate", str(spoiled.root), "--against", str(wrong)])
        assert result.exit_code == 1
        assert "--against" in str(result.exception)


def test_a_pull_request_cannot_edit_its_own_check() -> None:
    """The workflow is the base's, its actions are named by commit and its libraries by hash."""
    github = Path(__file__).parents[3] / ".github"
    text = (github / "workflows" / "validate-submissions.yml").read_text()
    assert "pull_request_target:" in text
    assert "pull_request:" not in text
    used = re.findall(r"uses: (\S+)", text)
    assert len(used) == 3
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action) for action in used)
    lines = (github / "validate-requirements.txt").read_text().splitlines()
    locked = [line for line in lines if not line.startswith("#")]
    assert len(locked) > 10
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+ --hash=sha256:[0-9a-f]{64}", line) for line in locked)


def test_the_first_to_measure_pins_nothing(spoiled: Spoiled) -> None:
    """Whatever is invented as pages and qrels: it is shown without a rank until a maintainer has looked at it."""
    (spoiled.root / "pins.json").unlink()
    report = validate(spoiled.root)
    assert report.passed
    assert {entry.status for entry in report.entries} == {"unpinned"}
    assert not any(entry.ranked for entry in report.entries)
    assert all(any("unranked" in warning for warning in entry.warnings) for entry in report.entries)


@pytest.mark.parametrize("name", ["benchmark.json", "pages.parquet", "qrels.parquet"])
def test_a_pinned_benchmark_is_the_one_that_was_looked_at(spoiled: Spoiled, name: str) -> None:
    path = spoiled.root / "pages" / name
    data = path.read_bytes()
    path.write_bytes(data + b"\n" if name == "benchmark.json" else data)
    pins = spoiled.root / "pins.json"
    if name != "benchmark.json":  # the same table, but not the one that the pin names
        known = json.loads(pins.read_text())
        known["pages"]["files"][name] = "xxh3-" + 32 * "0"
        pins.write_text(json.dumps(known))
    report = validate(spoiled.root)
    assert any(p.field == name and "not the file that was pinned" in p.what for p in report.problems)
    assert report.entries == ()


def test_a_pinned_full_model_is_the_one_that_was_pinned(spoiled: Spoiled) -> None:
    full = spoiled.root / "pages" / "toy" / "full.json"
    content = json.loads(full.read_text())
    content["backbone"]["revision"] = "2"
    full.write_text(json.dumps(content))
    report = validate(spoiled.root)
    assert any(p.file == full and "not the full model that was pinned" in p.what for p in report.problems)
    assert {entry.status for entry in report.entries} == {"unpinned"}


def test_what_is_pinned_is_pinned_once(spoiled: Spoiled) -> None:
    command = ["pin", spoiled.path("random").stem, "--by", "me", "--submissions", str(spoiled.root)]
    result = CliRunner().invoke(app, command)
    assert "was pinned by the toy maintainers on 2026-11-17" in str(result.exception)
    assert "has no submission" in str(CliRunner().invoke(app, ["pin", "nothing", *command[2:]]).exception)
