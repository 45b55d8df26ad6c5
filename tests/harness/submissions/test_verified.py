"""Signed reports of `harness verify-backbone`: what is recorded, who may, and what a hostile one can do."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.submissions.folder import FOLDER
from harness.submissions.problems import Notes, SubmissionError
from harness.submissions.validation import ChangeBy, validate
from harness.submissions.verified import read_verified, record
from harness.verification.report import FAILED, NOT_DONE, PASSED, Check, VerificationReport
from leaderboard.gather import Gathered
from leaderboard.site import build
from pruners.core.errors import PruneBoardError
from tests.leaderboard import synthetic


def report(**changes):
    """As `harness verify-backbone` makes one."""
    checks = (Check("every tensor", PASSED, "147 tensors"), Check("revision", NOT_DONE, "not at MTEB"))
    figure = {"task": "VidoreTabfquadRetrieval", "ours": 88.62, "official": 88.81, "tolerance": 2.0, "queries": 280}
    facts = {"backbone": "nano", "checkpoint": "owner/nano", "revision": "abc", "dtype": "bfloat16", "device": "H200"}
    facts |= {"checks": checks, "figure": figure, "libraries": {"torch": "2.13"}, "day": "2026-11-17"}
    return VerificationReport(**{**facts, **changes})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "submissions").mkdir()
    return tmp_path / "submissions"


def sign(folder: Path, made: VerificationReport) -> object:
    file = made.save(folder.parent / "report.json")
    options = ["--by", "a maintainer", "--date", "2026-11-18", "--submissions", str(folder)]
    return CliRunner().invoke(app, ["pin", str(file), *options])


def read(folder: Path) -> tuple[list, list[str]]:
    notes = Notes(folder / "verified.json", [])
    return read_verified(folder, notes), [problem.what for problem in notes.found]


def test_a_report_is_signed_and_an_older_one_of_the_same_replaced(folder: Path) -> None:
    assert sign(folder, report()).exit_code == 0
    assert sign(folder, report(device="CPU")).exit_code == 0
    assert sign(folder, report(day="2026-11-18")).exit_code == 0
    found, said = read(folder)
    assert not said
    assert [(one.device, str(one.day), one.by, str(one.on)) for one in found] == [
        ("CPU", "2026-11-17", "a maintainer", "2026-11-18"),
        ("H200", "2026-11-18", "a maintainer", "2026-11-18"),
    ]
    assert "VidoreTabfquadRetrieval 88.6, MTEB 88.8" in found[0].summary


def test_what_failed_is_not_recorded(folder: Path) -> None:
    failed = report(checks=(Check("grid", FAILED, "rows and columns swapped"),))
    result = sign(folder, failed)
    assert "did not pass (grid)" in str(result.exception)
    assert not (folder / "verified.json").exists()
    made = {**asdict(failed), "by": "me", "on": "2026-11-18"}
    (folder / "verified.json").write_text(json.dumps([made]))  # by hand
    found, said = read(folder)
    assert not found
    assert said == ["failed a check: grid"]


@pytest.mark.parametrize(
    ("where", "value", "what"),
    [
        ("device", "H200\u001b[31m", "pattern"),
        ("device", "x" * 201, "200"),
        ("figure", {"task": "t", "ours": 1e9, "official": None, "tolerance": 1, "queries": 5}, "1000"),
        ("checks", [{"name": "a", "verdict": "surely", "detail": ""}], "'passed'"),
        ("checks", [{"name": "a", "verdict": "passed", "detail": "", "more": 1}], "extra"),
        ("checks", [{"name": "a", "verdict": "passed", "detail": ""}] * 51, "50"),
        ("libraries", {str(n): "1" for n in range(30)}, "20"),
        ("format", 2, "1"),
        ("day", "yesterday", "date"),
    ],
)
def test_a_report_of_another_form_is_refused_by_the_name_of_its_field(folder: Path, where, value, what) -> None:
    file = folder.parent / "report.json"
    file.write_text(json.dumps({**json.loads(json.dumps(asdict(report()))), where: value}))
    with pytest.raises(SubmissionError) as refused:
        record(folder, file, "me", report_day())
    assert refused.value.problems[0][0].startswith(where)
    assert what in refused.value.problems[0][1]


def report_day():
    from datetime import date

    return date(2026, 11, 18)


def test_only_maintainers_change_them_and_a_broken_file_is_an_error(folder: Path, tmp_path: Path) -> None:
    before = tmp_path / "before"
    before.mkdir()
    sign(folder, report())

    def errors(by):
        found = validate(folder, base=before, by=by).problems
        return [f"{p.file.name}: {p.what}" for p in found if p.level == "error" and p.file.name == "verified.json"]

    assert errors(ChangeBy("anybody", maintainer=True)) == []
    assert "maintainer's act" in errors(ChangeBy("somebody"))[0]
    (folder / "verified.json").write_text('[{"backbone": 1}]')
    assert any("valid string" in said for said in errors(ChangeBy("anybody", maintainer=True)))
    with pytest.raises(PruneBoardError, match=r"verified\.json"):
        record(folder, report().save(tmp_path / "again.json"), "me", report_day())


def test_the_backbones_page_says_where_it_was_verified_and_escapes_it(folder: Path, tmp_path: Path) -> None:
    entries = synthetic.entries(synthetic.nano_submissions(12, most=2))
    page = build(Gathered(entries, folder=folder), tmp_path / "none").folder / "backbone" / "nano.html"
    assert "Nobody has handed in a report" in page.read_text()
    evil = '"><script>window.hacked=1</script>'
    sign(folder, report(device=f"H200 {evil}", checks=(Check("grid", PASSED, evil),)))
    sign(folder, report(backbone="other", device="B300"))
    text = (build(Gathered(entries, folder=folder), tmp_path / "some").folder / "backbone" / "nano.html").read_text()
    assert "Verified on <strong><bdi>H200 &#34;&gt;&lt;script&gt;" in text
    assert "VidoreTabfquadRetrieval</bdi>: 88.6, MTEB 88.8." in text
    assert "Recorded by <bdi>a maintainer</bdi>, 2026-11-18" in text
    assert "<script>window" not in text
    assert "B300" not in text


def test_the_projects_own_reports_are_listed() -> None:
    found, said = read(FOLDER)
    assert not said
    assert {"nano", "minilm"} <= {one.backbone for one in found}
    listed = CliRunner().invoke(app, ["list", "backbones", "--json"])
    rows = {row["name"]: row for row in json.loads(listed.stdout)}
    assert "recorded by PruneBoard" in rows["minilm"]["verified"]
    assert rows["colpali"]["verified"] is None
