"""All pages in a real browser: themes, window sizes, readers that use no eyes or no script, and hostile text."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page
from shown import NANO, PAGES

from leaderboard.gather import Gathered
from leaderboard.site import build
from tests.leaderboard.test_pages import HOSTILE, hostile

pytestmark = pytest.mark.slow


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
def test_axe_finds_nothing(tab: Page, site: Path, path: str, theme: str) -> None:
    tab.emulate_media(color_scheme=theme, reduced_motion="reduce")
    tab.goto((site / path).as_uri())
    for details in tab.locator("details").all():
        details.evaluate("d => d.open = true")
    found = Axe().run(tab).response["violations"]
    assert [(v["id"], v["impact"], [n["html"][:120] for n in v["nodes"][:3]]) for v in found] == []


def test_two_methods_side_by_side(tab: Page, site: Path) -> None:
    tab.goto((site / "compare/minidocs--nano.html").as_uri())
    first, row = tab.locator("#all-title bdi").inner_text(), tab.locator("#all-title ~ .scroll tbody tr").first
    tab.locator("#a").select_option(label=row.locator("th").inner_text())
    tab.locator("#b").select_option(label=first)
    one = tab.locator(".pair tbody tr").all_inner_texts()
    assert len(one) == 8
    static = row.inner_text().split("\t")[1]
    difference, low, high = re.findall(r"−?\d+\.\d", static)
    assert difference in one[0]
    found = [float(x.replace("−", "-")) for x in re.findall(r"−?\d+\.\d", one[0])]
    assert found[1:3] == pytest.approx([float(x.replace("−", "-")) for x in (low, high)], abs=0.11)  # rounded twice
    tab.get_by_role("button", name="Swap").click()
    turned = [
        float(x.replace("−", "-")) for x in re.findall(r"−?\d+\.\d", tab.locator(".pair tbody tr").first.inner_text())
    ]
    assert turned == pytest.approx([-found[0], -found[2], -found[1], found[4], found[3]])
    link = tab.url
    tab.goto("about:blank")
    tab.goto(link)
    assert tab.locator("#a").evaluate("s => s.selectedOptions[0].text") == first


def test_everything_can_be_read_without_a_script(browser: Browser, site: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto((site / NANO).as_uri())
    assert tab.locator("#board tbody tr:visible").count() == 3 * (10 + 1)  # every budget, under its name
    assert tab.locator("#heat tbody:visible").count() == 3
    assert tab.locator("#board th[data-key=ndcg100]").is_visible()
    assert not tab.locator("#tools").is_visible()
    assert tab.locator("#plot svg:visible .s circle").count() == 27
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
        tab.goto((site / path).as_uri() + "#columns=rank,retention,area,ndcg5,sr,keep,ms,track")
        tab.reload()
        tab.locator(".scroll").first.evaluate("box => box.scrollLeft = 400")
        assert tab.locator("#board tbody:visible tr:not(.head) th").first.bounding_box()["x"] < 40
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


def test_header_cells_are_headers_of_rows_and_columns(tab: Page, site: Path) -> None:
    """What a cell heads must be plain to who has the table read out."""
    for path in PAGES:
        tab.goto((site / path).as_uri())
        tree = tab.context.new_cdp_session(tab).send("Accessibility.getFullAXTree")["nodes"]
        roles = Counter(node["role"]["value"] for node in tree if not node["ignored"])
        assert roles["rowheader"] == tab.locator("tbody th:visible").count(), path
        assert roles["columnheader"] == tab.locator("thead th:visible").count(), path
