"""The site in a real browser: what a person does with it, by mouse and by keyboard, with and without a script."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from leaderboard.gather import Gathered
from leaderboard.site import build
from tests.leaderboard import synthetic
from tests.leaderboard.test_pages import HOSTILE, hostile

pytestmark = pytest.mark.slow

NANO = "board/minidocs--nano.html"
PAGES = (
    "index.html", "about.html", "submit.html", NANO, "board/vidore-v1--colpali.html",
    "compare/minidocs--nano.html", "method/agglomerative.html", "backbone/nano.html",
)  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    partial, rows = synthetic.measured("tome", 0.9, 90, queries=10)
    partial["cells"] = [cell for cell in partial["cells"] if cell["data_set"] != "minidocs-v1/charts"]
    submissions = [*synthetic.nano_submissions(10, most=9), (partial, rows), *synthetic.paper_submissions()]
    return build(Gathered(synthetic.entries(submissions)), tmp_path_factory.mktemp("web") / "site").folder


@pytest.fixture
def board(tab: Page, site: Path) -> Iterator[Page]:
    problems: list[str] = []
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    tab.goto((site / NANO).as_uri())
    yield tab
    assert problems == []


def rows(tab: Page) -> list[list[str]]:
    """The cells that a person sees, row by row."""
    return tab.locator("#board tbody:visible tr:visible").evaluate_all(
        "rows => rows.map(row => [...row.cells].filter(c => c.checkVisibility()).map(c => c.textContent.trim()))"
    )


def heads(tab: Page) -> list[str]:
    return tab.locator("#board thead th:visible").evaluate_all("cells => cells.map(cell => cell.dataset.key)")


def column(tab: Page, key: str) -> list[str]:
    return [row[heads(tab).index(key)] for row in rows(tab)]


def numbers(texts: list[str]) -> list[float]:
    return [float(text.split()[0]) for text in texts if re.match(r"[\d.]+( |$)", text)]


def head(tab: Page, key: str):
    return tab.locator(f"#board th[data-key={key}]")


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
    expect(board.locator("#plot .tip")).to_contain_text(f"agglomerative at 10 %: {shown}, 10.2 % kept")
    board.mouse.move(0, 0)
    expect(board.locator("#plot .tip")).to_be_hidden()


def test_the_theme_is_switched_and_kept(tab: Page, site: Path) -> None:
    tab.emulate_media(color_scheme="light")
    tab.goto((site / "index.html").as_uri())
    paper = "getComputedStyle(document.body).backgroundColor"
    light = tab.evaluate(paper)
    tab.get_by_role("button", name="Dark").click()
    dark = tab.evaluate(paper)
    assert dark != light
    tab.goto((site / "about.html").as_uri())
    assert tab.evaluate(paper) == dark
    tab.get_by_role("button", name="Light").click()
    assert tab.evaluate(paper) == light


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing_serious(tab: Page, site: Path, path: str, theme: str) -> None:
    tab.emulate_media(color_scheme=theme, reduced_motion="reduce")
    tab.goto((site / path).as_uri())
    for details in tab.locator("details").all():
        details.evaluate("d => d.open = true")
    found = Axe().run(tab).response["violations"]
    serious = [
        (v["id"], [n["html"][:120] for n in v["nodes"][:3]]) for v in found if v["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_two_methods_side_by_side(tab: Page, site: Path) -> None:
    tab.goto((site / "compare/minidocs--nano.html").as_uri())
    tab.locator("#a").select_option(label="attn_fps")
    tab.locator("#b").select_option(label="agglomerative")
    one = tab.locator(".pair tbody tr").all_inner_texts()
    assert len(one) == 8
    static = tab.locator("#all-title ~ .scroll tbody tr", has_text="attn_fps").inner_text().split("\t")[1]
    difference, low, high = re.findall(r"−?\d+\.\d", static)
    assert difference in one[0]
    found = [float(x.replace("−", "-")) for x in re.findall(r"−?\d+\.\d", one[0])]
    assert found[3:] == pytest.approx(
        [float(x.replace("−", "-")) for x in (low, high)], abs=0.13
    )  # packed in steps, and rounded twice
    tab.get_by_role("button", name="Swap").click()
    turned = [
        float(x.replace("−", "-")) for x in re.findall(r"−?\d+\.\d", tab.locator(".pair tbody tr").first.inner_text())
    ]
    assert turned[2:] == pytest.approx([-found[2], -found[4], -found[3]])
    link = tab.url
    tab.goto("about:blank")
    tab.goto(link)
    assert tab.locator("#a").evaluate("s => s.selectedOptions[0].text") == "agglomerative"


def test_everything_can_be_read_without_a_script(browser: Browser, site: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto((site / NANO).as_uri())
    assert tab.locator("#board tbody tr:visible").count() == 3 * (10 + 1)  # every budget, under its name
    assert tab.locator("#heat tbody:visible").count() == 3
    assert tab.locator("#board th[data-key=ndcg100]").is_visible()
    assert not tab.locator("#tools").is_visible()
    assert tab.locator("#plot .p title").count() == 27
    tab.get_by_text("The same data as a table").click()
    assert tab.locator(".data tbody tr:visible").count() == 9  # all that have a figure
    tab.get_by_role("link", name="Compare two methods").click()
    assert tab.locator("main table:visible tbody tr").count() == 9
    for path in PAGES:
        tab.goto((site / path).as_uri())
        assert len(tab.locator("main").inner_text()) > 200
    context.close()


@pytest.mark.parametrize("width", [1440, 768, 390])
@pytest.mark.parametrize("path", PAGES)
def test_no_page_is_wider_than_its_window(browser: Browser, site: Path, path: str, width: int) -> None:
    tab = browser.new_page(viewport={"width": width, "height": 900})
    tab.goto((site / path).as_uri())
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    if path == NANO and width == 390:  # names stay in sight while the figures scroll
        tab.locator(".scroll").first.evaluate("box => box.scrollLeft = 400")
        assert tab.locator("#board tbody:visible th[scope=row]").first.bounding_box()["x"] < 40
    tab.close()


def test_hostile_submissions_neither_run_nor_deform(browser: Browser, tmp_path: Path) -> None:
    built = build(Gathered([hostile(word, i) for i, word in enumerate(HOSTILE)]), tmp_path / "site").folder
    tab = browser.new_page(viewport={"width": 1000, "height": 800})
    refused: list[str] = []
    tab.on("console", lambda message: refused.append(message.text))
    tab.on("dialog", lambda dialog: refused.append(dialog.message))
    for path in sorted(built.rglob("*.html")):
        tab.goto(path.as_uri())
        assert tab.evaluate("window.hacked") is None, path
        assert tab.evaluate("document.documentElement.scrollWidth") <= 1000, path
        assert tab.locator("h1").bounding_box()["height"] < 400, path
        assert tab.locator("main").count() == tab.locator("footer").count() == 1, path
        assert tab.locator("a[href^='javascript:' i]").count() == 0, path
        assert "rtl" not in tab.locator("h1, th, td").evaluate_all("es => es.map(e => getComputedStyle(e).direction)")
    assert refused == []  # not even tried: the content policy is a second wall
    tab.close()
