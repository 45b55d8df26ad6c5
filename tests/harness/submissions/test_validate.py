"""Validation: a clean folder passes, and every single thing that is spoiled is reported by its name."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from spoiling import Spoiled
from typer.testing import CliRunner

from harness.cli import app
from harness.submissions.load import load, load_entries
from harness.submissions.validate import validate


def test_what_submit_wrote_is_recomputed_without_an_error(submitted: Path) -> None:
    report = validate(submitted)
    assert report.passed
    assert len(report.entries) == 6
    assert {entry.status for entry in report.entries} == {"recomputed"}
    assert all(entry.is_complete(budget) for entry in report.entries for budget in (0.1, 0.2, 1.0))


def test_the_board_gets_recomputed_values(spoiled: Spoiled) -> None:
    """A difference below the tolerance passes, and what is shown is what the rankings give."""
    before = {e.submission.method.name: e.submission.cells[1].ndcg["5"] for e in load_entries(spoiled.root)}
    spoiled.json("sap", lambda s: s["cells"][1]["ndcg"].update({"5": s["cells"][1]["ndcg"]["5"] + 9e-6}), forge_id=True)
    after = {e.submission.method.name: e.submission.cells[1].ndcg["5"] for e in load_entries(spoiled.root)}
    assert after == before


def cell(**changes: object) -> Callable[[dict], None]:
    return lambda s: s["cells"][1].update(changes)


def data_set(**changes: object) -> Callable[[dict], None]:
    return lambda s: s["benchmark"]["data_sets"][0].update(changes)


def without(key: str) -> Callable[[dict], None]:
    return lambda s: s.pop(key)


SPOILED_JSON = {
    "a score": (
        lambda s: s["cells"][1]["ndcg"].update({"5": 0.999}),
        "cells[1] (plain at 0.1).ndcg.5",
        "rankings give",
    ),
    "a deep score": (lambda s: s["cells"][1]["ndcg"].update({"50": 0.999}), "cells[1] (plain at 0.1).ndcg.50", "give"),
    "a score left out": (lambda s: s["cells"][1]["ndcg"].pop("10"), "cells[1] (plain at 0.1).ndcg.10", "is None"),
    "a realised budget": (cell(realised=0.05), "cells[1] (plain at 0.1).realised", "the kept vectors give"),
    "vectors a page": (cell(vectors_per_page=1.0), "cells[1] (plain at 0.1).vectors_per_page", "kept vectors give"),
    "score retention": (cell(score_retention=0.99), "cells[1] (plain at 0.1).score_retention", "its queries give"),
    "a deviation": (cell(trial_deviation=0.3), "cells[1] (plain at 0.1).trial_deviation", "its trials give"),
    "trials": (cell(trials=5), "per_query (plain)", "trials at 0.1 are [0], the cells say 5"),
    "a content hash": (data_set(qrels="sha256-" + 64 * "0"), "benchmark.data_sets (plain).qrels", "is pinned"),
    "a count of pages": (data_set(pages=24), "benchmark.data_sets (plain).pages", "24 was read, 25 is pinned"),
    "no content hash": (lambda s: s["benchmark"]["data_sets"][0].pop("corpus"), "(plain)", "corpus missing"),
    "no hash of texts": (lambda s: s["backbone"].update(kind="text tokens"), "(plain)", "page_texts missing"),
    "no environment": (without("environment"), "environment", "is missing"),
    "no table": (without("per_query"), "per_query", "measured figures come with their tables"),
    "no full model": (lambda s: s["cells"].pop(0), "cells (plain)", "no cell of the full model"),
    "a cell twice": (lambda s: s["cells"].append(s["cells"][1]), "cells (plain  at 0.1)", "occurs 2 times"),
    "a data set unknown": (cell(data_set="other"), "cells (other)", "is no data set of pages"),
    "a language unknown": (cell(language="dutch"), "cells (plain)", "no queries in dutch"),
    "a missing reproduction": (lambda s: s.update(claim="reproduced", reproduces="0" * 16), "reproduces", "no valid"),
    "a reproduction of nothing": (lambda s: s.update(claim="reproduced"), "reproduces", "goes with the claim"),
    "rankings of a paper": (lambda s: s.update(claim="reported"), "per_query", "figures of a paper have no tables"),
}


@pytest.mark.parametrize("what", SPOILED_JSON)
def test_a_forged_submission_is_found_out(spoiled: Spoiled, what: str) -> None:
    """The forger even gives it the id that belongs to its content."""
    change, field, said = SPOILED_JSON[what]
    spoiled.only("sap")
    spoiled.json("sap", change, forge_id=True)
    errors = spoiled.errors()
    assert any(field in error.field and said in error.what for error in errors), errors
    assert load(spoiled.root).entries == ()


SPOILED_FORM = {
    "a string for a number": (cell(realised="0.1"), "cells.1.realised", "valid number"),
    "a boolean for a number": (cell(budget=True), "cells.1.budget", "valid number"),
    "a score above 1": (lambda s: s["cells"][1]["ndcg"].update({"5": 1.2}), "cells.1.ndcg.5", "less than or equal"),
    "a negative size": (cell(bytes_per_page=-1), "cells.1.bytes_per_page", "greater than or equal to 0"),
    "an unknown field": (lambda s: s.update(rank=1), "rank", "not permitted"),
    "a missing field": (without("method"), "method", "required"),
    "an average": (lambda s: s.update(average={"5": 0.9}), "average", "not permitted"),
    "a name that is a path": (lambda s: s["method"].update(name="../../x"), "method.name", "match pattern"),
    "an id that is a path": (lambda s: s.update(id="../x"), "id", "match pattern"),
    "a link that runs": (lambda s: s["origin"].update(paper="javascript:alert(1)"), "origin.paper", "match pattern"),
    "a link with markup": (lambda s: s["origin"].update(code='https://x/"><script>'), "origin.code", "match pattern"),
    "a novel": (lambda s: s["origin"].update(note="x" * 10_000), "origin.note", "at most 2000"),
    "terminal codes": (lambda s: s["origin"].update(submitter="\x1b[31mred"), "origin.submitter", "match pattern"),
    "a track of one's own": (lambda s: s["method"].update(track="best"), "method.track", "input should be"),
    "another format": (lambda s: s.update(format=2), "format", "input should be 1"),
    "no date": (lambda s: s["origin"].update(submitted="yesterday"), "origin.submitted", "date"),
    "a cutoff of one's own": (lambda s: s["cells"][1]["ndcg"].update({"3": 0.5}), "cells.1.ndcg.3", "input should be"),
}


@pytest.mark.parametrize("what", SPOILED_FORM)
def test_what_is_not_of_the_schema_is_named_by_its_field(spoiled: Spoiled, what: str) -> None:
    change, field, said = SPOILED_FORM[what]
    spoiled.only("sap")
    spoiled.json("sap", change)
    errors = spoiled.errors()
    assert any(error.field.startswith(field) and said in error.what for error in errors), errors
    assert not any("\x1b" in error.what + error.field for error in errors)


SPOILED_TEXT = {
    "NaN": (lambda t: t.replace('"realised": 1.0', '"realised": NaN', 1), "NaN is no number"),
    "infinity": (lambda t: t.replace('"realised": 1.0', '"realised": -Infinity', 1), "-Infinity is no number"),
    "a key twice": (lambda t: t.replace('"format": 1', '"format": 1, "format": 1', 1), "'format' occurs twice"),
    "no JSON": (lambda t: t[:-20], "no valid JSON"),
    "a deep nest": (lambda t: t.replace('"format": 1', '"format": ' + "[" * 100_000, 1), "no valid JSON"),
    "too much": (lambda t: t + " " * 5_000_000, "more than 4 MB"),
    "nothing": (lambda t: "", "no valid JSON"),
    "a list": (lambda t: "[]", "input should be an object"),
    "half a character": (lambda t: t.replace('"the toy team"', '"\\ud800"'), "JSON"),
}


@pytest.mark.parametrize("what", SPOILED_TEXT)
def test_what_is_no_clean_json_is_said_and_does_not_stop_the_others(spoiled: Spoiled, what: str) -> None:
    change, said = SPOILED_TEXT[what]
    spoiled.only("sap", "row_pool")
    path = spoiled.path("sap")
    path.write_text(change(path.read_text()))
    report = validate(spoiled.root)
    errors = [problem for problem in report.problems if problem.level == "error"]
    assert errors
    assert {error.file for error in errors} == {path}
    assert any(said in error.what for error in errors), errors
    assert [entry.submission.method.name for entry in report.entries] == ["row_pool"]


def swap(frame: pd.DataFrame) -> None:
    """Let a wrong first page take the place of the second of query 0."""
    top = list(frame.at[0, "top_10"])
    frame.at[0, "top_10"] = [*top[1:], top[0]]


def set_row(column: str, value: object) -> Callable[[pd.DataFrame], None]:
    def change(frame: pd.DataFrame) -> None:
        frame.at[3, column] = value

    return change


SPOILED_ROWS = {
    "a ranking": (swap, "per_query (plain).ndcg@", "rows differ from their rankings"),
    "a page twice": (lambda f: set_row("top_10", [f.at[3, "top_10"][0]] * 10)(f), "top_10", "name a page twice"),
    "an unknown page": (lambda f: set_row("top_10", ["../x", *f.at[3, "top_10"][1:]])(f), "top_10", "has not"),
    "a short ranking": (lambda f: set_row("top_10", list(f.at[3, "top_10"][:9]))(f), "top_10", "do not have 10 pages"),
    "a long ranking": (lambda f: set_row("top_10", [*f.at[3, "top_10"], "page-0"])(f), "top_10", "do not have 10"),
    "a row's score": (set_row("ndcg@5", 0.123), "per_query (plain).ndcg@5", "0.12300 stored"),
    "NaN in a row": (set_row("ndcg@5", float("nan")), "per_query.ndcg@5", "1 rows are no number from 0 to 1"),
    "a score above 1": (set_row("ndcg@100", 1.5), "per_query.ndcg@100", "no number from 0 to 1"),
    "an impossible deep score": (set_row("ndcg@100", 0.0), "ndcg@100", "cannot be, given their first ten pages"),
    "an infinite retention": (set_row("score_retention", float("inf")), "score_retention", "infinite"),
    "a lost retention": (set_row("score_retention", None), ".score_retention", "its queries give nan"),
    "a row twice": (lambda f: pd.concat([f, f.iloc[[0]]]), "per_query (plain)", "1 queries have more than one row"),
    "a missing query": (lambda f: f.drop(index=3), "per_query (plain)", "19 of 20 queries at 0.1, trial 0"),
    "an unknown query": (set_row("query", "<b>q</b>"), "per_query (plain)", "<b>q</b> is not in qrels.parquet"),
    "another language": (set_row("language", "english"), "per_query (plain).language", "not the queries' language"),
    "an unknown data set": (set_row("data_set", "other"), "per_query", "other at 0.1: the rows have them"),
    "a budget of its own": (set_row("budget", 0.3), "per_query", "plain at 0.3: the rows have them"),
    "a missing language": (
        lambda f: f[f["language"] != "french"],
        "per_query (tongues)",
        "12 of 24 queries",
    ),
    "no row at all": (lambda f: f.iloc[:0], "per_query", "plain at 0.1: the cells have them"),
    "another trial": (set_row("trial", 7), "per_query (plain)", "trials at 0.1 are [0, 7]"),
}


@pytest.mark.parametrize("what", SPOILED_ROWS)
def test_a_forged_table_of_queries_is_found_out(spoiled: Spoiled, what: str) -> None:
    change, field, said = SPOILED_ROWS[what]
    spoiled.only("sap")
    spoiled.rows("sap", change)
    errors = spoiled.errors()
    assert any(field in error.field and said in error.what for error in errors), errors


def test_a_table_repacked_unchanged_passes(spoiled: Spoiled) -> None:
    """The control of the two tests around it: forging itself leaves no trace."""
    spoiled.rows("sap", lambda frame: None)
    spoiled.kept("random", lambda rows: None)
    spoiled.json("kmeans", lambda s: None, forge_id=True)
    assert spoiled.errors() == []


def keep(row: int, page: int, count: int) -> Callable[[list[dict]], None]:
    return lambda rows: rows[row]["kept"].__setitem__(page, count)


SPOILED_KEPT = {
    "a fixed budget missed": ("sap", keep(0, 4, 1), "kept (plain at 0.1)", "1 pages do not keep ⌈γN⌉ vectors"),
    "more than all": ("docpruner", keep(0, 4, 999), "kept (plain at 0.1)", "more than all"),
    "nothing kept": ("docpruner", keep(0, 4, 0), "kept (plain at 0.1)", "fewer than one"),
    "an adaptive count": ("docpruner", keep(0, 4, 9), "cells[1] (plain at 0.1).realised", "the kept vectors give"),
    "a page lost": (
        "docpruner",
        lambda rows: rows[0]["kept"].pop(),
        "kept (plain at 0.1)",
        "24 pages, the benchmark 25",
    ),
    "a row lost": ("sap", lambda rows: rows.pop(0), "kept", "plain at 0.1 is in the rows or in the cells only"),
    "no row at all": ("sap", lambda rows: rows.clear(), "kept", "plain at 0.1 is in the rows or in the cells only"),
    "an empty row": ("sap", lambda rows: rows[0]["kept"].clear(), "kept (plain at 0.1)", "has 0 pages"),
    "a trial lost": ("random", lambda rows: rows.pop(0), "kept (plain at 0.1)", "has 1 trials, the cells say 2"),
}


@pytest.mark.parametrize("what", SPOILED_KEPT)
def test_forged_counts_of_vectors_are_found_out(spoiled: Spoiled, what: str) -> None:
    method, change, field, said = SPOILED_KEPT[what]
    spoiled.only(method)
    spoiled.kept(method, change)
    errors = spoiled.errors()
    assert any(field in error.field and said in error.what for error in errors), errors


def test_an_edited_file_keeps_neither_its_id_nor_its_checksum(spoiled: Spoiled) -> None:
    spoiled.json("sap", lambda s: s["cells"][1].update(prune_ms=0.001))
    table = spoiled.path("random").with_suffix(".parquet")
    table.write_bytes(table.read_bytes()[:-1] + b"x")
    found = {(error.file.parent.name, error.field, error.what.partition(":")[0]) for error in spoiled.errors()}
    assert any(method == "sap" and field == "id" for method, field, _ in found)
    assert any(method == "random" and field == "per_query" for method, field, _ in found)


def test_a_table_with_the_same_rows_in_another_file_is_not_the_one_that_was_submitted(spoiled: Spoiled) -> None:
    """Only the checksum can tell: every figure is the same."""
    spoiled.only("sap")
    path = spoiled.path("sap").with_suffix(".parquet")
    pq.write_table(pq.read_table(path), path, compression="none", store_schema=False)
    (error,) = spoiled.errors()
    assert error.field == "per_query"
    assert "its checksum differs" in error.what


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
    assert load(spoiled.root).entries == ()


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1", b"no parquet at all"])
def test_a_file_that_is_no_table_is_an_error_and_no_crash(spoiled: Spoiled, content: bytes) -> None:
    spoiled.path("sap").with_suffix(".parquet").write_bytes(content)
    errors = spoiled.errors()
    assert any(error.field == "per_query" and "parquet" in error.what for error in errors)


def test_a_table_of_another_form_is_refused_before_it_is_read(
    spoiled: Spoiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = spoiled.path("sap").with_suffix(".parquet")
    frame = pd.read_parquet(path)
    frame.assign(extra=1).to_parquet(path)
    assert any("they must be data_set, language" in error.what for error in spoiled.errors())
    frame.assign(budget="0.1").to_parquet(path)
    assert any("column budget is" in error.what for error in spoiled.errors())
    for name, limit in (("MAX_BYTES", 10), ("MAX_ROWS", 3), ("MAX_UNPACKED", 10)):
        with monkeypatch.context() as patch:
            patch.setattr(f"harness.parquet.{name}", limit)
            assert any("at most" in error.what for error in spoiled.errors())


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


def test_a_method_above_the_full_model_is_warned_of(spoiled: Spoiled) -> None:
    def worse_full(frame: pd.DataFrame) -> None:
        for i, row in enumerate(frame.itertuples()):
            if row.budget == 1.0:
                top = list(row.top_10)
                frame.at[i, "top_10"] = [*top[1:5], top[0], *top[5:]]

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


def consistent(spoiled: Spoiled, method: str, change: Callable[[pd.DataFrame], None]) -> None:
    """Change rankings and let every figure follow, as one who made up a whole run would: by pytrec_eval."""
    import pytrec_eval

    qrels = pd.read_parquet(spoiled.root / "pages" / "qrels.parquet")

    def follow(frame: pd.DataFrame) -> None:
        change(frame)
        for i, row in enumerate(frame.itertuples()):
            here = qrels[(qrels["data_set"] == row.data_set) & (qrels["query"] == row.query)]
            judge = pytrec_eval.RelevanceEvaluator(
                {"q": dict(zip(here["page"], map(int, here["grade"]), strict=True))},
                {f"ndcg_cut_{k}" for k in (1, 5, 10)},
            )
            scores = judge.evaluate({"q": {page: 100.0 - rank for rank, page in enumerate(row.top_10)}})["q"]
            for k in (1, 5, 10, 50, 100):
                frame.at[i, f"ndcg@{k}"] = scores[f"ndcg_cut_{min(k, 10)}"]

    path = spoiled.rows(method, follow)
    frame = pd.read_parquet(path.with_suffix(".parquet"))

    def cells(content: dict) -> None:
        for c in content["cells"]:
            rows = frame[(frame["data_set"] == c["data_set"]) & (frame["budget"] == c["budget"])]
            rows = rows[rows["language"] == c.get("language", "")]
            c["ndcg"] = {str(k): float(rows[f"ndcg@{k}"].mean()) for k in (1, 5, 10, 50, 100)}
            c["trial_deviation"] = float(np.std(rows.groupby("trial")["ndcg@5"].mean()))

    spoiled.json(method, cells, forge_id=True)


def test_an_index_smaller_than_its_vectors_is_warned_of(spoiled: Spoiled) -> None:
    spoiled.json("sap", cell(bytes_per_page=3.0), forge_id=True)
    (found,) = (w for w in spoiled.warnings() if "bytes" in w.field)
    assert "cannot hold its vectors" in found.what


def test_removals_are_listed_with_a_reason(spoiled: Spoiled, submitted: Path) -> None:
    path = spoiled.path("sap")
    for ending in (".json", ".parquet", ".kept.parquet"):
        path.with_suffix(ending).unlink()
    assert validate(spoiled.root).passed
    (error,) = (p for p in validate(spoiled.root, base=submitted).problems if p.level == "error")
    assert (error.file.name, error.field) == ("removed.json", path.stem)
    assert "without a reason" in error.what
    removed = spoiled.root / "removed.json"
    removed.write_text(json.dumps({path.stem: {"removed": "2026-11-17", "reason": "a wrong query template"}}))
    assert validate(spoiled.root, base=submitted).passed
    removed.write_text(json.dumps({path.stem: {"removed": "2026-11-17"}}))
    assert any("field required" in p.what for p in validate(spoiled.root, base=submitted).problems)
    removed.write_text(json.dumps({spoiled.path("random").stem: {"removed": "2026-11-17", "reason": "?"}}))
    assert any("says that it is gone" in error.what for error in spoiled.errors())


def test_a_pinned_benchmark_may_not_change(spoiled: Spoiled, submitted: Path) -> None:
    path = spoiled.root / "pages" / "benchmark.json"
    path.write_text(path.read_text() + "\n")
    assert any("pinned benchmark changed" in p.what for p in validate(spoiled.root, base=submitted).problems)


def test_a_reproduction_by_another_lifts_both(spoiled: Spoiled) -> None:
    original = spoiled.path("sap")
    for ending in (".json", ".parquet", ".kept.parquet"):
        shutil.copy(original.with_suffix(ending), original.with_stem("copy").with_suffix(ending))
    text = json.loads(original.read_text())
    text |= {"claim": "reproduced", "reproduces": original.stem}
    copy = original.with_stem("copy")
    copy.write_text(json.dumps(text))
    spoiled._forge(copy)
    statuses = [e.status for e in load_entries(spoiled.root) if e.submission.method.name == "sap"]
    assert statuses == ["recomputed", "recomputed"]  # the same submitter proves nothing
    for path in original.parent.glob("*.json"):
        text = json.loads(path.read_text())
        if text.get("reproduces"):
            text["origin"]["submitter"] = "another team"
            path.write_text(json.dumps(text))
    found = [e for e in load_entries(spoiled.root) if e.submission.method.name == "sap"]
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


@pytest.mark.slow
def test_checking_needs_no_torch(submitted: Path) -> None:
    """So that a pull request is checked in seconds, without the libraries that run models."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom harness.submissions.load import load\n"
        f"assert load(Path({str(submitted)!r})).passed\nassert 'torch' not in sys.modules, 'torch'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ})
