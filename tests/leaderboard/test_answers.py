"""The front page's words against the data, the data for programs, and what is published."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.submissions.report import CheckedSubmission
from harness.why.gallery import Picture
from leaderboard.answers import answer, contradictions, news
from leaderboard.compare import make_pairs
from leaderboard.gather import Gathered
from leaderboard.groups import LOCAL
from leaderboard.pictures import Pictures
from leaderboard.results import most_lost
from leaderboard.rows import FULL
from leaderboard.site import build
from leaderboard.views import View, make_views
from tests.leaderboard import synthetic
from tests.leaderboard.synthetic import entry, measured

ATOM = "{http://www.w3.org/2005/Atom}"


def measured_all(qualities: dict[str, float]) -> list[CheckedSubmission]:
    return [entry(*measured(n, quality, i), "recomputed") for i, (n, quality) in enumerate(qualities.items())]


def light(entries: list) -> list[View]:
    return [view.light(make_pairs(view).gaps()) for view in make_views(entries)]


def test_the_pick_competes_and_its_range_is_its_interval_rounded_outwards() -> None:
    entries = [
        entry(*measured(n, q, i), "recomputed")
        for i, (n, q) in enumerate({"oracle": 1.0, "kmeans": 0.97, "sap": 0.6}.items())
    ]
    own = replace(entry(*measured("tome", 0.999, 9), "recomputed"), status=LOCAL)
    (view,) = light([*entries, own])
    found = answer(view)
    assert found is not None
    assert (found.line.label, found.budget) == ("kmeans", 0.1)  # neither the oracle nor a run of one's own
    interval = found.row.interval
    assert interval is not None
    low, high = map(int, found.range.removesuffix(" %").split("–"))
    assert low <= interval.low < low + 1
    assert high - 1 < interval.high <= high
    assert found.rival is not None
    assert found.rival.label == "sap"


def test_a_method_that_cannot_be_told_from_the_pick_is_named() -> None:
    twins = [entry(*measured(n, 0.95, 5), "recomputed") for n in ("kmeans", "sap")]
    (view,) = light([*twins, entry(*measured("random", 0.3, 6), "recomputed")])
    found = answer(view)
    assert found is not None
    assert {found.line.label, *(line.label for line in found.tied)} == {"kmeans", "sap"}


def test_a_papers_order_is_contradicted_only_where_intervals_leave_no_doubt() -> None:
    """The paper has SAP before K-means and K-means before random; measured, K-means is first and random last."""
    printed = [
        p
        for p in synthetic.paper_submissions()
        if p[0]["backbone"]["name"] == "colpali" and p[0]["benchmark"]["name"] == "vidore-v1"
    ]
    for record, _ in printed:
        record["method"]["name"] = {"cluster_merge": "kmeans"}.get(record["method"]["name"], record["method"]["name"])
    paper = {r["method"]["name"]: r for r, _ in printed}
    assert {"sap", "kmeans", "random"} <= paper.keys()
    own = [
        entry(*measured(n, q, i), "recomputed")
        for i, (n, q) in enumerate({"kmeans": 0.98, "sap": 0.6, "random": 0.1}.items())
    ]
    views = light([*synthetic.entries(printed), *own])
    (found,) = contradictions(views)
    values = {line.label: line.rows[found.budget].retention for line in found.paper.lines}
    assert (found.paper.backbone, found.measured.backbone, found.same_place) == ("colpali", "nano", False)
    for one in found.reversals:
        assert values[one.behind.label] > values[one.ahead.label]  # the paper's order
        assert one.difference.low > 0
    assert {(r.ahead.label, r.behind.label) for r in found.reversals} >= {("kmeans", "sap")}
    same = [entry(*measured(n, 0.9, 7), "recomputed") for n in ("kmeans", "sap")]  # equal in every query
    assert contradictions(light([*synthetic.entries(printed), *same])) == []
    near = light([entry(*measured(n, 0.9, seed), "recomputed") for n, seed in (("kmeans", 8), ("sap", 9))])[0]
    ahead = sorted(near.lines, key=lambda line: -(line.rows[0.1].retention or 0))
    gap = near.difference(ahead[0], ahead[1], 0.1)
    assert gap is not None
    assert gap.low < 0 < gap.value  # ahead, but it may be chance
    seeds = {"kmeans": 8, "sap": 9} if ahead[0].label == "kmeans" else {"kmeans": 9, "sap": 8}
    doubtful = [entry(*measured(n, 0.9, seed), "recomputed") for n, seed in seeds.items()]
    assert contradictions(light([*synthetic.entries(printed), *doubtful])) == []


def test_what_is_new_comes_first_and_own_runs_are_no_news() -> None:
    old = entry(*measured("sap", 0.9, 1), "recomputed")
    new = entry(*measured("kmeans", 0.9, 2, origin__submitted="2026-12-01"), "recomputed")
    mine = replace(entry(*measured("tome", 0.9, 3, origin__submitted="2026-12-31"), "recomputed"), status=LOCAL)
    found = news(light([old, new, mine]))
    assert [(one.day, [line.label for line in one.lines]) for one in found] == [
        (date(2026, 12, 1), ["kmeans"]),
        (date(2026, 11, 16), ["sap"]),
    ]


def test_the_queries_most_lost_by_hand() -> None:
    (view,) = make_views([entry(*measured("sap", 0.7, 1, queries=20), "recomputed")])
    scores = view.lines[0].measured
    assert scores is not None
    count, worse, better, lost = most_lost(scores, "minidocs-v2/briefs", view.budgets, 0.1)
    table = {}
    for s, (name, language, queries) in enumerate(scores.strata):
        for q, query in enumerate(queries):
            table[name, language, query] = scores.per_query(s, 0.1)[q] - scores.per_query(s, FULL)[q]
    here = {key: value for key, value in table.items() if key[0] == "minidocs-v2/briefs"}
    assert count == len(here) == 40
    assert worse == sum(value < 0 for value in here.values()) > 3
    assert better == sum(value > 0 for value in here.values())
    shown = [here["minidocs-v2/briefs", one.language, one.query] for one in lost]
    assert shown == sorted(here.values())[: len(lost)]
    assert all(one.left[1] - one.full == pytest.approx(value) for one, value in zip(lost, shown, strict=True))
    (good,) = make_views([entry(*measured("sap", 0.98, 1, queries=20), "recomputed")])
    _, few, _, lost = most_lost(good.lines[0].measured, "minidocs-v2/briefs", good.budgets, 0.1)
    assert len(lost) == few < 8  # those that lost nothing are not shown


def test_pictures_of_kept_patches_stand_on_the_front_and_on_method_pages(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is drawn is tested where it is drawn (`tests/harness/why`); here that it is shown, if there is any."""
    assert "<img" not in (site / "index.html").read_text(encoding="utf-8")
    shown = Pictures(b"front", {"agglomerative": [Picture("agglomerative", 0.1, "20 of 196 <vectors>", b"kept")]})
    monkeypatch.setattr("leaderboard.site.draw", lambda methods, progress: shown)
    found = Gathered(synthetic.entries(synthetic.nano_submissions(3, most=3)))
    build(found, tmp_path / "drawn", drawn=True)
    assert 'src="kept/front.png"' in (tmp_path / "drawn" / "index.html").read_text(encoding="utf-8")
    assert (tmp_path / "drawn" / "kept" / "front.png").read_bytes() == b"front"
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (tmp_path / "drawn" / "method").glob("*.html")}
    assert [name for name, text in pages.items() if "../kept/agglomerative-0.1.png" in text] == ["agglomerative"]
    assert "20 of 196 &lt;vectors&gt;" in pages["agglomerative"]
    assert (tmp_path / "drawn" / "kept" / "agglomerative-0.1.png").read_bytes() == b"kept"


def test_site_json_leads_to_every_row(site: Path) -> None:
    facts = json.loads((site / "site.json").read_text(encoding="utf-8"))
    assert facts["format"] == 1
    view = next(view for view in facts["views"] if view["backbone"] == "nano")
    rows = [row for name in view["rows"] for row in json.loads((site / name).read_text(encoding="utf-8"))]
    assert len(rows) == 3 * view["methods"] == 24
    (line,) = [
        line
        for line in make_views(synthetic.entries(synthetic.nano_submissions(12, most=8)))[0].lines
        if line.label == "attn_fps"
    ]
    (row,) = [row for row in rows if row["label"] == "attn_fps" and row["budget"] == 0.1]
    assert row["retention"] == pytest.approx(line.rows[0.1].retention)
    assert row["rank"] == line.rows[0.1].rank
    assert row["data_sets"] == pytest.approx({n: line.rows[0.1].retention_on(n) for n in view["data_sets"]})
    assert all((site / path).is_file() for path in (view["board"], view["compare"], row["page"], facts["feed"]))


def test_the_feed_is_an_atom_feed_of_what_is_new(tmp_path: Path) -> None:
    new = entry(*measured("kmeans", 0.9, 2, origin__submitted="2026-12-01", origin__submitter="A & <B>"), "recomputed")
    built = build(
        Gathered([entry(*measured("sap", 0.9, 1), "recomputed"), new]), tmp_path / "site", "https://example.org/b"
    )
    feed = ElementTree.parse(built.folder / "feed.xml").getroot()
    assert feed.find(f"{ATOM}updated").text == "2026-12-01T00:00:00Z"
    entries = feed.findall(f"{ATOM}entry")
    assert len({one.find(f"{ATOM}id").text for one in entries}) == len(entries) == 2
    assert entries[0].find(f"{ATOM}author/{ATOM}name").text == "A & <B>"
    assert entries[0].find(f"{ATOM}link").get("href") == "https://example.org/b/board/minidocs--nano.html"


def test_a_folder_ready_to_publish(tmp_path: Path) -> None:
    plain = build(Gathered([]), tmp_path / "plain").folder
    ready = build(Gathered([]), tmp_path / "ready", "https://example.org/b?c&d", publish=True).folder
    assert not (plain / "README.md").exists()
    head = (ready / "README.md").read_text(encoding="utf-8").split("---\n")[1]
    facts = dict(line.split(": ", 1) for line in head.splitlines())
    assert (facts["sdk"], facts["app_file"]) == ("static", "index.html")
    assert (ready / ".nojekyll").is_file()
    assert "https://example.org/b?c&amp;d/" in (ready / "404.html").read_text(encoding="utf-8")
    ElementTree.parse(ready / "sitemap.xml")
    assert build(Gathered([]), ready, publish=True).folder == ready  # and it is an earlier build, so it is replaced
