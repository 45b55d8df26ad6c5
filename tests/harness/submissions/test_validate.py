"""Validation: a clean folder passes, and every single thing that is spoiled is reported by its name."""

import json
import shutil
from pathlib import Path

import pandas as pd
from spoiling import Spoiled, cell, consistent
from typer.testing import CliRunner

from harness import parquet
from harness.cli import app
from harness.files import checksum
from harness.submissions import tables
from harness.submissions.validation import ChangeBy, validate


def test_what_submit_wrote_is_recomputed_without_an_error(submitted: Path) -> None:
    report = validate(submitted)
    assert report.passed
    assert len(report.entries) == 6
    assert {entry.status for entry in report.entries} == {"recomputed"}
    assert all(entry.is_complete(budget) for entry in report.entries for budget in (0.1, 0.2, 1.0))


def test_the_board_gets_recomputed_values(spoiled: Spoiled) -> None:
    """A difference below the tolerance passes, and what is shown is what the rankings give."""
    before = {e.submission.method.name: e.submission.cells[1].ndcg["5"] for e in validate(spoiled.root).entries}
    spoiled.json("sap", lambda s: s["cells"][1]["ndcg"].update({"5": s["cells"][1]["ndcg"]["5"] + 9e-6}), forge_id=True)
    after = {e.submission.method.name: e.submission.cells[1].ndcg["5"] for e in validate(spoiled.root).entries}
    assert after == before


def test_an_edited_file_keeps_neither_its_id_nor_its_checksum(spoiled: Spoiled) -> None:
    spoiled.json("sap", lambda s: s["cells"][1].update(score_retention_micro=0.5))
    table = spoiled.path("random").with_suffix(".parquet")
    table.write_bytes(table.read_bytes()[:-1] + b"x")
    found = {(error.file.parent.name, error.field, error.what.partition(":")[0]) for error in spoiled.errors()}
    assert any(method == "sap" and field == "id" for method, field, _ in found)
    assert any(method == "random" and field == "per_query" for method, field, _ in found)


def test_who_submitted_may_be_corrected_without_a_new_id(spoiled: Spoiled) -> None:
    spoiled.json("sap", lambda s: s["origin"].update(note="with a link", paper="https://arxiv.org/abs/2506.04997"))
    assert spoiled.errors() == []


def test_a_moved_file_is_told_where_it_belongs(spoiled: Spoiled) -> None:
    (spoiled.root / "pages" / "toy" / "sap").rename(spoiled.root / "pages" / "toy" / "pas")
    (error,) = spoiled.errors()
    assert error.field == "path"
    assert "the content belongs to pages/toy/sap/" in error.what


def test_files_that_do_not_belong_are_named(spoiled: Spoiled) -> None:
    (spoiled.root / "run.py").write_text("raise SystemExit")
    (spoiled.root / "pages" / "toy" / "sap" / "notes.txt").write_text("")
    spoiled.path("random").unlink()
    found = {str(error.file.relative_to(spoiled.root)) for error in spoiled.errors()}
    assert {"run.py", "pages/toy/sap/notes.txt"} < found
    assert sum(name.startswith("pages/toy/random/") for name in found) == 2  # two tables without a submission


def test_links_are_not_followed(spoiled: Spoiled, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    path = spoiled.path("sap")
    path.replace(outside)
    path.symlink_to(outside)
    table = spoiled.path("random").with_suffix(".parquet")
    table.replace(tmp_path / "outside.parquet")
    table.symlink_to(tmp_path / "outside.parquet")
    folder = spoiled.root / "pages" / "toy" / "kmeans"
    folder.rename(tmp_path / "kmeans")
    folder.symlink_to(tmp_path / "kmeans")
    said = {error.file.parent.name: error.what for error in spoiled.errors()}
    assert "links are not followed" in said["sap"]
    assert "is a link" in said["random"]
    assert "link" in said["kmeans"]


def test_changed_relevance_is_found_out(spoiled: Spoiled) -> None:
    from harness import parquet
    from harness.benchmarks.tables import QRELS

    path = spoiled.root / "pages" / "qrels.parquet"
    table = parquet.read(path, QRELS).to_pylist()
    table[0]["page"] = "page-1"
    path.write_bytes(parquet.pack({name: [row[name] for row in table] for name in QRELS}, QRELS))
    errors = spoiled.errors()
    assert any(e.file.name == "benchmark.json" and e.field == "plain.qrels" for e in errors)
    assert validate(spoiled.root).entries == ()


def test_a_method_below_random_or_above_the_full_model_is_warned_of(spoiled: Spoiled) -> None:
    """Rankings of the full model and of random change places in two submissions that are otherwise consistent."""
    good = pd.read_parquet(spoiled.path("random").with_suffix(".parquet"))
    worst = {
        (row.data_set, row.query): list(row.top_10)[::-1]
        for row in good.itertuples()
        if row.budget == 0.1 and not row.trial
    }

    def reverse(frame: pd.DataFrame) -> None:
        for i, row in enumerate(frame.itertuples()):
            if row.budget == 0.1:
                frame.at[i, "top_10"] = worst[row.data_set, row.query]

    consistent(spoiled, "sap", reverse)
    found = [w for w in spoiled.warnings() if w.file.parent.name == "sap"]
    assert spoiled.errors() == []
    assert any("below random at the same budget" in w.what and "0.1" in w.field for w in found), found


def test_a_method_above_a_full_model_that_nobody_pinned_is_warned_of(spoiled: Spoiled) -> None:
    def worse_full(frame: pd.DataFrame) -> None:
        for i, row in enumerate(frame.itertuples()):
            if row.budget == 1.0:
                top = list(row.top_10)
                frame.at[i, "top_10"] = [*top[1:5], top[0], *top[5:]]

    (spoiled.root / "pins.json").unlink()
    consistent(spoiled, "kmeans", worse_full)
    found = [w for w in spoiled.warnings() if w.file.parent.name == "kmeans"]
    assert spoiled.errors() == []
    assert any("is above the full model's" in w.what for w in found), found


def test_rankings_copied_from_another_budget_are_warned_of(spoiled: Spoiled) -> None:
    def copy(frame: pd.DataFrame) -> None:
        source = {(r.data_set, r.query): r.top_10 for r in frame.itertuples() if r.budget == 0.2}
        for i, row in enumerate(frame.itertuples()):
            if row.budget == 0.1:
                frame.at[i, "top_10"] = source[row.data_set, row.query]

    assert not any("are the same" in w.what for w in spoiled.warnings())
    consistent(spoiled, "sap", copy)
    assert spoiled.errors() == []
    assert any("all 20 rankings at 0.1 and 0.2 are the same" in w.what for w in spoiled.warnings())


def test_budgets_that_kept_the_same_vectors_may_rank_alike_each_data_set_by_itself(spoiled: Spoiled) -> None:
    """An adaptive method kept on `plain` at 0.2 what it kept at 0.1, and ranks there as it does at 0.1: no wonder.

    On `tongues` it kept other vectors. Only when these rank alike too, something was copied.
    """
    spoiled.only("docpruner")
    same = ("realised", "vectors_per_page", "bytes_per_page")

    def keep(rows: list[dict]) -> None:
        counts = {row["budget"]: row["kept"] for row in rows if row["data_set"] == "plain"}
        for row in rows:
            if (row["data_set"], row["budget"]) == ("plain", 0.2):
                row["kept"] = counts[0.1]

    def say(content: dict) -> None:
        cells = {c["budget"]: c for c in content["cells"] if c["data_set"] == "plain"}
        cells[0.2].update({name: cells[0.1][name] for name in same})

    def copy(*data_sets: str) -> list[str]:
        def change(frame: pd.DataFrame) -> None:
            source = {(r.data_set, r.query): r.top_10 for r in frame.itertuples() if r.budget == 0.2}
            for i, row in enumerate(frame.itertuples()):
                if row.budget == 0.1 and row.data_set in data_sets:
                    frame.at[i, "top_10"] = source[row.data_set, row.query]

        consistent(spoiled, "docpruner", change)
        assert spoiled.errors() == []
        return [f"{w.field}: {w.what}" for w in spoiled.warnings() if "are the same" in w.what]

    spoiled.kept("docpruner", keep)
    spoiled.json("docpruner", say, forge_id=True)
    assert copy("plain") == []
    assert copy("tongues") == ["per_query (tongues).top_10: all 24 rankings at 0.1 and 0.2 are the same"]


def test_removals_are_listed_with_a_reason(spoiled: Spoiled, submitted: Path) -> None:
    maintainer = ChangeBy(maintainer=True)
    path = spoiled.path("sap")
    for ending in (".json", ".parquet", ".kept.parquet"):
        path.with_suffix(ending).unlink()
    assert validate(spoiled.root).passed
    (error,) = (p for p in validate(spoiled.root, base=submitted, by=maintainer).problems if p.level == "error")
    assert (error.file.name, error.field) == ("removed.json", path.stem)
    assert "without a reason" in error.what
    removed = spoiled.root / "removed.json"
    removed.write_text(json.dumps({path.stem: {"removed": "2026-11-17", "reason": "a wrong query template"}}))
    assert validate(spoiled.root, base=submitted, by=maintainer).passed
    removed.write_text(json.dumps({path.stem: {"removed": "2026-11-17"}}))
    assert any("field required" in p.what for p in validate(spoiled.root, base=submitted, by=maintainer).problems)
    removed.write_text(json.dumps({spoiled.path("random").stem: {"removed": "2026-11-17", "reason": "?"}}))
    assert any("says that it is gone" in error.what for error in spoiled.errors())


def test_a_pinned_benchmark_may_not_change(spoiled: Spoiled, submitted: Path) -> None:
    path = spoiled.root / "pages" / "benchmark.json"
    path.write_text(path.read_text() + "\n")
    assert any("pinned benchmark changed" in p.what for p in validate(spoiled.root, base=submitted).problems)


def elsewhere(path: Path, spoiled: Spoiled) -> None:
    """As another machine would have measured it: a last digit of a score differs."""
    frame = pd.read_parquet(path.with_suffix(".parquet"))
    below = (frame["budget"] < 1) & (frame["score_retention"] < 0.99)
    frame.loc[below, "score_retention"] += 1e-6
    data = parquet.pack({name: frame[name].tolist() for name in tables.PER_QUERY}, tables.PER_QUERY)
    path.with_suffix(".parquet").write_bytes(data)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"per_query": checksum(data)}))
    spoiled._forge(path)


def test_a_reproduction_by_another_lifts_both(spoiled: Spoiled) -> None:
    original = spoiled.path("sap")
    for ending in (".json", ".parquet", ".kept.parquet"):
        shutil.copy(original.with_suffix(ending), original.with_stem("copy").with_suffix(ending))
    text = json.loads(original.read_text())
    text |= {"claim": "reproduced", "reproduces": original.stem}
    copy = original.with_stem("copy")
    copy.write_text(json.dumps(text))
    elsewhere(spoiled._forge(copy), spoiled)
    statuses = [e.status for e in validate(spoiled.root).entries if e.submission.method.name == "sap"]
    assert statuses == ["recomputed", "recomputed"]  # the same submitter proves nothing
    for path in original.parent.glob("*.json"):
        text = json.loads(path.read_text())
        if text.get("reproduces"):
            text["origin"]["submitter"] = "another team"
            path.write_text(json.dumps(text))
    found = [e for e in validate(spoiled.root).entries if e.submission.method.name == "sap"]
    assert [e.status for e in found] == ["reproduced", "reproduced"]
    assert all(e.reproduced_by for e in found)


def test_the_command_prints_all_problems_and_its_status_says_whether_there_are_errors(spoiled: Spoiled) -> None:
    run = CliRunner()
    assert run.invoke(app, ["validate", str(spoiled.root)]).exit_code == 0
    assert run.invoke(app, ["validate", str(spoiled.root), "--strict"]).exit_code == 1  # docpruner drifts on toy pages
    one = run.invoke(app, ["validate", str(spoiled.path("random"))])
    assert one.exit_code == 0
    spoiled.json("sap", lambda s: s["method"].update(title="[bold]\x1b[31m", track="x"))
    spoiled.json("random", cell(realised="[/]"))
    found = run.invoke(app, ["validate", str(spoiled.root), "--json"])
    assert found.exit_code == 1
    errors = [p for p in json.loads(found.stdout)["problems"] if p["level"] == "error"]
    assert sorted(p["field"] for p in errors) == ["cells.1.realised", "method.title", "method.track"]
    assert all(p["remedy"] for p in errors)
    shown = run.invoke(app, ["validate", str(spoiled.root)])
    assert shown.exit_code == 1
    assert "\x1b[31m" not in shown.output
    only = run.invoke(app, ["validate", str(spoiled.path("random")), "--json"])
    assert {p["field"] for p in json.loads(only.stdout)["problems"] if p["level"] == "error"} == {"cells.1.realised"}
