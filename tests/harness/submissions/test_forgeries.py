"""What one could make up or copy, as consistently as one likes: each is an error, or is shown without a rank."""

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from spoiling import Spoiled, cell, consistent

from harness.submissions.folder import FOLDER
from harness.submissions.validation import validate

ENDINGS = (".json", ".parquet", ".kept.parquet")


def every_cell(**changes: object) -> Callable[[dict], None]:
    """Of a budget below 1."""
    return lambda s: [c.update(changes) for c in s["cells"] if c["budget"] < 1]


def tomorrow(days: int) -> str:
    return (datetime.now(UTC).date() + timedelta(days)).isoformat()


FORGED_JSON = {
    "a typed-in retention": ("sap", cell(retention=250.0), "cells[1] (plain at 0.1).retention", "only a paper"),
    "a budget of its own": ("sap", cell(budget=0.10000001), "cells.1.budget", "four decimals"),
    "an index smaller than its vectors": ("sap", cell(bytes_per_page=3.0), "bytes_per_page", "cannot hold"),
    "less than a bit for each vector": (
        "sap",
        lambda s: (s["method"].update(track="quantised"), cell(bytes_per_page=0.01)(s)),
        "bytes_per_page",
        "cannot hold",
    ),
    "more left out than there are pairs": ("sap", cell(pairs_left_out=999), "pairs_left_out", "gold pairs"),
    "pairs left out at one budget only": ("sap", cell(pairs_left_out=1), "pairs_left_out", "the same at every budget"),
    "a full model that retains less": (
        "sap",
        lambda s: s["cells"][0].update(score_retention=0.5),
        "cells[0] (plain at 1).score_retention",
        "",
    ),
    "a micro average above 1": ("sap", cell(score_retention_micro=1.5), "score_retention_micro", "no subset"),
    "a diagnostic called a method": (
        "sap",
        lambda s: s["method"].update(expression="oracle", composition="oracle"),
        "method.track",
        "oracle is a diagnostic",
    ),
    "a merging method called a subset": (
        "kmeans",
        lambda s: s["method"].update(track="query-agnostic subset"),
        "method.track",
        "kmeans",
    ),
    "a fixed method called adaptive": ("sap", lambda s: s["method"].update(adaptive=True), "method.adaptive", "sap"),
    "trials at one budget only": ("random", cell(trials=1), "trials", ""),
    "a date in the future": (
        "sap",
        lambda s: s["origin"].update(submitted=tomorrow(3)),
        "origin.submitted",
        "in the future",
    ),
    "another revision": ("sap", lambda s: s["backbone"].update(revision="2"), "backbone.revision", "another backbone"),
    "another dimension": ("sap", lambda s: s["backbone"].update(dim=8), "backbone.dim", "another backbone"),
    "a paper without a source": (
        "sap",
        lambda s: s.update(claim="reported", origin={"submitter": "x", "submitted": "2026-11-16"}),
        "origin",
        "names no source",
    ),
}


@pytest.mark.parametrize("what", FORGED_JSON)
def test_forged_facts_are_found_out(spoiled: Spoiled, what: str) -> None:
    method, change, field, said = FORGED_JSON[what]
    path = spoiled.json(method, change)
    if "cells.1" not in field:
        path = spoiled.json(method, lambda s: None, forge_id=True)
    report = validate(spoiled.root)
    errors = [p for p in report.problems if p.level == "error" and p.file == path]
    assert any(field in p.field and said in p.what for p in errors), report.problems
    assert path not in [entry.path for entry in report.entries]
    assert len(report.entries) == 5


def test_the_reported_retention_is_what_the_printed_scores_allow(tmp_path: Path) -> None:
    (source,) = (FOLDER / "vidore-v1" / "colpali" / "sap").glob("*.json")
    home = tmp_path / "vidore-v1" / "colpali" / "sap"
    home.mkdir(parents=True)
    shutil.copy(FOLDER / "vidore-v1" / "benchmark.json", tmp_path / "vidore-v1")
    shutil.copy(source, home)
    assert validate(tmp_path).passed
    content = json.loads(source.read_text())
    at = next(i for i, c in enumerate(content["cells"]) if c["budget"] < 1)
    content["cells"][at]["retention"] += 5
    (home / source.name).write_text(json.dumps(content))
    spoiled = Spoiled(tmp_path)
    spoiled._forge(home / source.name)
    (error,) = spoiled.errors()
    assert f"cells[{at}]" in error.field
    assert "NDCG" in error.what


def test_a_query_of_a_subset_retains_no_more_than_all(spoiled: Spoiled) -> None:
    def better(frame: pd.DataFrame) -> None:
        frame.loc[frame["budget"] == 0.1, "score_retention"] = 1.2

    spoiled.rows("sap", better)
    spoiled.json("sap", lambda s: cell(score_retention=1.2)(s), forge_id=True)
    assert any("no subset" in e.what and "score_retention" in e.field for e in spoiled.errors()), spoiled.errors()


def test_an_adaptive_method_that_keeps_almost_all_competes_at_no_small_budget(spoiled: Spoiled) -> None:
    """Realised budget, vectors and bytes follow, as they would if it had really kept that much."""
    full: dict[str, list[int]] = {}

    def keep(rows: list[dict]) -> None:
        full.update({row["data_set"]: row["kept"] for row in rows if row["budget"] == 1})
        for row in rows:
            if row["budget"] == 0.1:
                row["kept"] = [max(1, n - 1) for n in full[row["data_set"]]]

    def say(content: dict) -> None:
        for c in content["cells"]:
            if c["budget"] == 0.1:
                n = full[c["data_set"]]
                kept = sum(max(1, k - 1) for k in n)
                c.update(realised=kept / sum(n), vectors_per_page=kept / len(n), bytes_per_page=kept / len(n) * 32)

    spoiled.kept("docpruner", keep)
    path = spoiled.json("docpruner", say, forge_id=True)
    errors = [e for e in spoiled.errors() if e.file == path]
    assert any("realised" in e.field and "keeps" in e.what for e in errors), errors


def test_a_snapped_method_keeps_at_most_its_budget_on_every_page(spoiled: Spoiled) -> None:
    def one_more(rows: list[dict]) -> None:
        row = next(row for row in rows if row["budget"] == 0.1)
        row["kept"][0] += 3
        row["kept"][1] = max(1, row["kept"][1] - 3)

    spoiled.kept("row_pool", one_more)
    assert any("pages keep more than ⌈γN⌉" in e.what for e in spoiled.errors()), spoiled.errors()


def weaker_full(frame: pd.DataFrame) -> None:
    for i, row in enumerate(frame.itertuples()):
        if row.budget == 1.0:
            top = list(row.top_10)
            frame.at[i, "top_10"] = [*top[1:5], top[0], *top[5:]]


def test_a_full_model_that_differs_is_an_error(spoiled: Spoiled) -> None:
    """Whoever makes the full model worse makes every retention better."""
    consistent(spoiled, "kmeans", weaker_full)
    path = spoiled.path("kmeans")
    errors = [e for e in spoiled.errors() if e.file == path]
    assert any("the full model ranks otherwise" in e.what for e in errors), spoiled.errors()


def test_a_full_model_that_differs_a_little_gains_nothing(spoiled: Spoiled, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another machine may move a last digit: what is shown is relative to the pinned one.

    Of the toy's few queries one is a large share, so more is let pass here.
    """
    monkeypatch.setattr("harness.submissions.pins.FULL_WITHIN", 0.1)

    def one_query(frame: pd.DataFrame) -> None:
        at = next(i for i, row in enumerate(frame.itertuples()) if row.budget == 1.0 and row.data_set == "tongues")
        top = list(frame.at[at, "top_10"])
        frame.at[at, "top_10"] = [top[1], top[0], *top[2:]]

    before = {e.submission.method.name: e for e in validate(spoiled.root).entries}
    consistent(spoiled, "kmeans", one_query)
    after = {e.submission.method.name: e for e in validate(spoiled.root).entries}
    assert spoiled.errors() == []
    changed, pinned = after["kmeans"], before["kmeans"]
    for mine, theirs in zip(changed.submission.cells, pinned.submission.cells, strict=True):
        if mine.budget == 1.0:
            assert mine.ndcg == theirs.ndcg
    assert changed.scores is not None
    assert pinned.scores is not None
    for key in pinned.scores.queries:
        if key.budget == 1.0:
            assert np.array_equal(changed.scores.per_query(key), pinned.scores.per_query(key))


def test_vectors_of_a_full_page_are_those_of_the_pinned_full_model(spoiled: Spoiled) -> None:
    """Ten times as many vectors a page make a tenth of them ten times as many."""

    def ten_times(rows: list[dict]) -> None:
        for row in rows:
            row["kept"] = [10 * n for n in row["kept"]]

    def say(content: dict) -> None:
        for c in content["cells"]:
            c["vectors_per_page"] *= 10
            c["bytes_per_page"] *= 10

    spoiled.kept("docpruner", ten_times)
    path = spoiled.json("docpruner", say, forge_id=True)
    errors = [e for e in spoiled.errors() if e.file == path]
    assert any("vectors of a full page" in e.what for e in errors), spoiled.errors()


def copy_as(spoiled: Spoiled, source: str, change: Callable[[dict], None], method: str | None = None) -> Path:
    """Another's submission with its tables as they are, under another name or submitter."""
    original = spoiled.path(source)
    content = json.loads(original.read_text())
    change(content)
    home = original.parent.parent / (method or source)
    home.mkdir(exist_ok=True)
    for ending in ENDINGS:
        shutil.copy(original.with_suffix(ending), (home / "copy.json").with_suffix(ending))
    (home / "copy.json").write_text(json.dumps(content))
    return spoiled._forge(home / "copy.json")


def as_reproduction(original: str) -> Callable[[dict], None]:
    """Another team's claim to have measured it again."""

    def claim(content: dict) -> None:
        content.update(claim="reproduced", reproduces=original)
        content["origin"]["submitter"] = "another team"

    return claim


def test_a_copy_of_anothers_tables_is_no_reproduction(spoiled: Spoiled) -> None:
    path = copy_as(spoiled, "sap", as_reproduction(spoiled.path("sap").stem))
    errors = [e for e in spoiled.errors() if e.file == path]
    assert any("its rows are those of" in e.what for e in errors), spoiled.errors()
    assert {e.status for e in validate(spoiled.root).entries} == {"recomputed"}


@pytest.mark.parametrize("retouched", [False, True])
def test_a_renamed_copy_is_found(spoiled: Spoiled, retouched: bool) -> None:
    """Even if figures that nobody can compute again are changed a little, so that the tables' bytes differ."""

    def rename(content: dict) -> None:
        content["method"].update(name="mine", expression="mine.py:mine", composition="mine", title="Mine")
        content["method"].update(file_hash="sha256-" + 64 * "0", version=None)
        content["origin"].update(submitter="another team", submitted="2026-11-17")

    path = copy_as(spoiled, "sap", rename, "mine")
    if retouched:

        def touch(frame: pd.DataFrame) -> None:
            below = (frame["budget"] < 1) & (frame["score_retention"] < 0.99)
            frame.loc[below, "score_retention"] += 1e-6

        path = spoiled.rows("mine", touch)
    errors = [e for e in spoiled.errors() if e.file == path]
    said = "ranks every query as sap" if retouched else f"its rows are those of {spoiled.path('sap').stem}"
    assert any(said in e.what for e in errors), spoiled.errors()


def test_names_that_a_disk_may_not_tell_apart_are_refused(spoiled: Spoiled) -> None:
    def rename(content: dict) -> None:
        content["method"].update(name="Sap")
        content["origin"].update(submitted="2026-11-17")

    path = copy_as(spoiled, "sap", rename, "Sap")
    errors = [e for e in spoiled.errors() if e.file == path]
    assert any("differs from sap only" in e.what for e in errors), spoiled.errors()


def test_different_methods_never_share_a_folder() -> None:
    from harness.submissions.run_facts import slug

    texts = ["sap", "Sap", "sap(x=1)", "sap_x=1", "sap_x=1_", "sap x=1", "sap(x=1)" * 30, "sap(x=1)" * 31, "é", "è", ""]
    texts += [slug(text) for text in texts]
    names = {text: slug(text).casefold() for text in dict.fromkeys(texts)}
    plain = [name for text, name in names.items() if slug(text) != text]
    assert len(set(plain)) == len(plain)
    assert slug("sap") == "sap"
    assert slug("docpruner(z=0)").startswith("docpruner_z=0")


def test_no_two_names_share_a_page_of_the_site() -> None:
    """One could be named like another with its hash."""
    from leaderboard.words import file_name

    assert file_name("sap2") == "sap2"
    assert file_name(file_name("Sap2")) != file_name("Sap2")


def test_more_queries_than_mteb_counts_are_no_vidore(tmp_path: Path) -> None:
    """Invented queries, with an honest hash of what was invented."""
    from harness.benchmarks.known import known
    from harness.submissions.benchmark import BenchmarkRecord, known_counts, read_benchmark
    from harness.submissions.judgements import Judgements

    record = read_benchmark(FOLDER / "vidore-v1")
    name = "VidoreArxivQARetrieval"
    (counted,) = known()["tasks"][name]["subsets"].values()
    for more in (0, 1):
        qrels = {f"q{i}": {"p": 1} for i in range(counted["queries"] + more)}
        found = known_counts(BenchmarkRecord(record.facts, {name: Judgements(("p",), qrels, {})}))
        assert [field for field, _ in found] == ([f"{name}.queries", f"{name}.qrels"] if more else [])


def test_what_nobody_pinned_has_no_rank_on_the_board(spoiled: Spoiled) -> None:
    from leaderboard.gather import gather
    from leaderboard.views import make_views

    for pinned in (True, False):
        if not pinned:
            (spoiled.root / "pins.json").unlink()
        found = gather(spoiled.root, [])
        (view,) = make_views(found.load(), found.benchmarks)
        ranks = [row.rank for line in view.lines for row in line.rows.values()]
        assert all(ranks) if pinned else not any(ranks)
