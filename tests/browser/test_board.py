"""The board in a real browser: what a person does with it, by mouse and by keyboard."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from shown import NANO, column, head, heads, numbers, rows

from leaderboard.gather import Gathered
from leaderboard.site import build
from tests.leaderboard import synthetic

pytestmark = pytest.mark.slow


def test_sort_by_a_column_and_back(board: Page) -> None:
    assert head(board, "retention").get_attribute("aria-sort") == "descending"
    best_first = numbers(column(board, "retention"))
    assert best_first == sorted(best_first, reverse=True)
    assert len(set(best_first)) > 5
    head(board, "ndcg5").get_by_role("button").click()
    assert head(board, "retention").get_attribute("aria-sort") is None
    assert head(board, "ndcg5").get_attribute("aria-sort") == "descending"
    head(board, "ndcg5").get_by_role("button").click()
    assert head(board, "ndcg5").get_attribute("aria-sort") == "ascending"
    figures = numbers(column(board, "ndcg5"))
    assert figures == sorted(figures)
    assert len(figures) == 9
    assert column(board, "ndcg5")[-1] == "–"  # without a figure: last, in either direction
    head(board, "method").get_by_role("button").click()
    assert column(board, "method") == sorted(column(board, "method"))


def test_a_partial_row_is_shown_without_average_or_rank(board: Page) -> None:
    row = dict(zip(heads(board), next(r for r in rows(board) if "tome" in r), strict=True))
    assert (row["retention"], row["rank"], row["area"], row["ndcg5"]) == ("6/7", "–", "–", "–")


def test_filter_facets_and_what_follows_them(board: Page) -> None:
    board.get_by_label("Filter").fill("AGGL")
    assert column(board, "method") == ["agglomerative"]
    expect(board.locator("#shown")).to_contain_text("1 of 10 rows")
    assert board.locator("#plot .s:visible").count() == 1
    assert board.locator("#heat tbody:visible tr:visible").count() == 1
    board.get_by_label("Filter").fill("")
    board.get_by_text("Facets").click()
    board.get_by_role("checkbox", name="subset").uncheck()
    assert "subset" not in column(board, "track")
    assert len(rows(board)) > 1
    board.get_by_role("checkbox", name="subset").check()
    assert len(rows(board)) == 10


def test_a_budget_that_one_method_has_leaves_the_plot_whole_and_a_mark_is_no_part_of_a_name(
    tab: Page, tmp_path: Path
) -> None:
    rare, _ = synthetic.measured("sap", 0.9, 91, queries=5)
    for cell in rare["cells"]:
        cell["budget"] = {0.2: 0.25}.get(cell["budget"], cell["budget"])
    others = synthetic.entries(synthetic.nano_submissions(5, most=2))
    marked = replace(synthetic.entry(rare, None, "self-reported"), warnings=("look twice",))
    tab.goto((build(Gathered([*others, marked]), tmp_path / "site").folder / NANO).as_uri() + "#budget=0.25")
    assert column(tab, "method") == ["sap !"]
    assert tab.locator("#plot .s:visible").count() == 3
    assert "sap," in download(tab, "CSV")


def test_columns_on_demand(board: Page) -> None:
    assert "ndcg100" not in heads(board)
    board.get_by_text("Columns").click()
    board.get_by_role("checkbox", name="NDCG@100").check()
    board.get_by_role("checkbox", name="Track", exact=True).uncheck()
    assert "ndcg100" in heads(board)
    assert "track" not in heads(board)
    assert all(len(row) == len(heads(board)) for row in rows(board))


def test_change_the_budget(board: Page) -> None:
    before = column(board, "keep")
    board.get_by_role("radio", name="20 %").check(force=True)
    after = column(board, "keep")
    assert numbers(before) == [10.2] * 9
    assert numbers(after) == [20.2] * 9
    assert board.locator("#heat tbody:visible").count() == 1


def test_a_link_reproduces_the_view(board: Page, browser: Browser) -> None:
    board.get_by_role("radio", name="5 %", exact=True).check(force=True)
    head(board, "ms").get_by_role("button").click()
    head(board, "method").get_by_role("button").click()
    board.get_by_label("Filter").fill("merging")
    board.get_by_text("Columns").click()
    board.get_by_role("checkbox", name="NDCG@1", exact=True).check()
    link = board.get_by_text("Link to this view").evaluate("a => a.href")
    assert link == board.url
    other = browser.new_page()
    other.goto(link)
    assert (heads(other), rows(other)) == (heads(board), rows(board))
    assert other.get_by_label("Filter").input_value() == "merging"
    expect(other.get_by_role("radio", name="5 %", exact=True)).to_be_checked()
    other.get_by_text("Other benchmarks and backbones").click()
    other.get_by_role("link", name="ColQwen2").first.click()  # another view keeps what was chosen
    assert "find=merging" in other.url
    other.close()


def download(tab: Page, button: str) -> str:
    with tab.expect_download() as waiting:
        tab.get_by_role("button", name=button, exact=True).click()
    return Path(waiting.value.path()).read_text(encoding="utf-8")


def test_downloads_are_exactly_what_is_shown(board: Page) -> None:
    board.get_by_role("radio", name="20 %").check(force=True)
    board.get_by_label("Filter").fill("s")
    head(board, "area").get_by_role("button").click()
    shown, names = rows(board), heads(board)
    assert 1 < len(shown) < 11
    table = list(csv.DictReader(io.StringIO(download(board, "CSV"), newline="")))
    records = json.loads(download(board, "JSON"))
    assert "nano model" in records["note"]
    assert len(table) == len(records["rows"]) == len(shown)
    for row, record, cells in zip(table, records["rows"], shown, strict=True):
        assert [key for key in row if not key.endswith(("_low", "_high"))] == ["budget", *names]
        assert row["budget"] == "0.2"
        for key, text in zip(names, cells, strict=True):
            if key in ("retention", "area") and "[" in text:
                text = f"{row[key]} [{row[key + '_low']}, {row[key + '_high']}]"
                assert record[key] == float(row[key])
                assert record[f"{key}_high"] == float(row[f"{key}_high"])
            assert row[key] == ("" if cells[names.index(key)] == "–" else text.partition(" [")[0])


def test_a_spreadsheet_gets_no_formula(board: Page) -> None:
    fields = board.evaluate("['=1+1', '+x', '-x', '@x', '-3.5', '4', 'a\"b,c', 'sap'].map(csvField)")
    assert fields == ["'=1+1", "'+x", "'-x", "'@x", "-3.5", "4", '"a""b,c"', "sap"]


def test_by_keyboard_only(board: Page) -> None:
    def tab_to(test: str) -> None:
        for _ in range(80):
            board.keyboard.press("Tab")
            if board.evaluate(f"(e => {test})(document.activeElement)"):
                return
        raise AssertionError(f"the tab key never reaches {test}")

    board.keyboard.press("Tab")
    assert board.evaluate("document.activeElement.className") == "skip"
    tab_to("e.name === 'budget'")
    board.keyboard.press("ArrowRight")
    assert numbers(column(board, "keep")) == [20.2] * 9
    tab_to("e.id === 'find'")
    board.keyboard.type("subset")
    assert set(column(board, "track")) == {"subset"}
    tab_to("e.tagName === 'SUMMARY' && e.textContent === 'Columns'")
    board.keyboard.press("Enter")
    board.keyboard.press("Tab")
    board.keyboard.press("Space")
    assert "rank" not in heads(board)
    board.keyboard.press("Escape")
    assert not board.locator("#choose").is_visible()
    tab_to("e.textContent === 'KB'")
    board.keyboard.press("Enter")
    assert head(board, "kb").get_attribute("aria-sort") == "ascending"
    tab_to("e.classList.contains('p')")
    first = board.evaluate("document.activeElement.getAttribute('aria-label')")
    expect(board.locator("#plot .tip")).to_have_text(first)
    board.keyboard.press("ArrowRight")
    second = board.evaluate("document.activeElement.getAttribute('aria-label')")
    assert first.split(" at ")[0] == second.split(" at ")[0]
    assert first != second
    board.keyboard.press("ArrowDown")
    third = board.evaluate("document.activeElement.getAttribute('aria-label')")
    assert third.split(" at ")[0] != second.split(" at ")[0]
    expect(board.locator("#plot .tip")).to_have_text(third)


def test_points_show_their_values_when_pointed_at(board: Page) -> None:
    point = board.locator("#plot .s[data-method=agglomerative] .p").nth(1)
    point.hover(force=True)
    shown = rows(board)[column(board, "method").index("agglomerative")][heads(board).index("retention")]
    expect(board.locator("#plot .tip")).to_contain_text(f"agglomerative at 10 %: {shown}, 5.02 KB")
    board.mouse.move(0, 0)
    expect(board.locator("#plot .tip")).to_be_hidden()
