"""What people come for, each in at most three clicks from the front page: by mouse, on a phone, by keyboard alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from leaderboard.gather import Gathered
from leaderboard.site import build
from leaderboard.words import amount
from tests.leaderboard import synthetic

pytestmark = pytest.mark.slow

METHODS = {"kmeans": 0.97, "sap": 0.93, "random": 0.6, "oracle": 0.999, "eos": 0.7}
LAST = "tome"


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ColQwen2 measured with a handful of methods, one of them added later; and the nano model beside it."""
    there = {"backbone__name": "colqwen2", "benchmark__name": "vidore-v1"}
    found = [synthetic.measured(n, q, i, queries=30, **there) for i, (n, q) in enumerate(METHODS.items())]
    later = {"origin__submitted": "2026-12-24", "origin__submitter": "somebody else"}
    found.append(synthetic.measured(LAST, 0.8, 77, queries=30, **there, **later))
    entries = synthetic.entries([*found, *synthetic.nano_submissions(10, most=6)])
    return build(Gathered(entries), tmp_path_factory.mktemp("tasks") / "site").folder


class Visitor:
    """Somebody on the front page, whose clicks are counted; by keyboard, every Enter is one."""

    def __init__(self, page: Page, how: str) -> None:
        self.page, self.how, self.clicks = page, how, 0

    def click(self, target: Locator) -> None:
        self.clicks += 1
        if self.how == "phone":
            target.tap()
        elif self.how == "mouse":
            target.click()
        else:
            self._by_keys(target)

    def _by_keys(self, target: Locator) -> None:
        wanted = target.element_handle()
        for _ in range(150):
            self.page.keyboard.press("Tab")
            if wanted.evaluate("element => element === document.activeElement"):
                self.page.keyboard.press("Enter")
                return
        raise AssertionError(f"the tab key never reaches {target}")


@pytest.fixture(params=["mouse", "phone", "keyboard"])
def visitor(request: pytest.FixtureRequest, browser: Browser, answers: Path) -> Iterator[Visitor]:
    phone = request.param == "phone"
    size = {"width": 390, "height": 844} if phone else {"width": 1440, "height": 900}
    context = browser.new_context(viewport=size, has_touch=phone, permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto((answers / "index.html").as_uri())
    visitor = Visitor(page, request.param)
    yield visitor
    context.close()
    assert problems == []
    assert visitor.clicks <= 3


def rows(site: Path) -> list[dict]:
    """The data of the site, which no page is asked for."""
    return json.loads((site / "data" / "vidore-v1--colqwen2.0.json").read_text(encoding="utf-8"))


def best(site: Path) -> dict:
    able = [row for row in rows(site) if row["budget"] == 0.1 and row["track"] not in ("diagnostic", "trained")]
    return max(able, key=lambda row: row["retention"])


def answer(visitor: Visitor) -> Locator:
    return visitor.page.locator(".answer li", has_text="ColQwen2")


def test_find_the_best_training_free_method_for_colqwen2_at_10_percent(visitor: Visitor, answers: Path) -> None:
    said = answer(visitor).locator("p").first
    expect(said).to_contain_text("In 10 % of the bytes")
    assert said.get_by_role("link").inner_text() == best(answers)["method"] == "kmeans"
    low, high = best(answers)["interval"]
    expect(said).to_contain_text(f"keeps {int(low)}–{-int(-high // 1)} % of ColQwen2’s NDCG@5")


def test_find_its_bytes_a_page_and_what_a_million_pages_take(visitor: Visitor, answers: Path) -> None:
    size = best(answers)["bytes_per_page"]
    expect(answer(visitor)).to_contain_text(f"{amount(size)} a page, {amount(size * 1e6)} for a million pages")
    visitor.click(answer(visitor).locator("p").first.get_by_role("link"))
    row = visitor.page.locator(".budgets-table tr.best")
    expect(row).to_contain_text(amount(size))
    expect(row).to_contain_text(amount(size * 1e6))


def test_compare_it_with_sap_by_data_set(visitor: Visitor, answers: Path) -> None:
    visitor.click(answer(visitor).get_by_role("link", name="against sap"))
    expect(visitor.page.locator("#pair-title")).to_have_text("kmeans minus sap")
    lines = visitor.page.locator(".pair tbody tr")
    expect(lines).to_have_count(1 + len(synthetic.DATA_SETS))
    expect(lines.first).to_contain_text("[")  # the interval, which has been loaded
    theirs = next(row for row in rows(answers) if row["method"] == "sap" and row["budget"] == 0.1)
    expect(lines.first).to_contain_text(f"{best(answers)['retention']:.1f}")
    expect(lines.first).to_contain_text(f"{theirs['retention']:.1f}")


def test_copy_the_command_that_reproduces_it(visitor: Visitor) -> None:
    visitor.click(answer(visitor).locator("p").first.get_by_role("link"))
    visitor.page.wait_for_load_state()
    visitor.click(visitor.page.get_by_role("button", name="Copy").first)
    expect(visitor.page.get_by_role("button", name="Copied")).to_be_visible()
    assert visitor.page.evaluate("navigator.clipboard.readText()") == (
        "harness evaluate --backbone colqwen2 --benchmark vidore-v1 --pruner kmeans --budgets 0.05,0.1,0.2"
        " --out runs/again"
    )


def test_find_what_was_added_last(visitor: Visitor) -> None:
    newest = visitor.page.locator(".news li").first
    expect(newest).to_contain_text("2026-12-24")
    expect(newest).to_contain_text("somebody else")
    visitor.click(newest.get_by_role("link").first)
    expect(visitor.page.locator("h1")).to_contain_text(f"{LAST} on ColQwen2")


def test_search_leads_to_methods_backbones_and_boards_by_keys(browser: Browser, answers: Path) -> None:
    tab = browser.new_page()
    tab.goto((answers / "index.html").as_uri())
    tab.get_by_role("combobox", name="Find a method").fill("SAP")
    expect(tab.locator("#found li").first).to_contain_text("sap")
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("Enter")
    expect(tab.locator("h1")).to_have_text("sap")
    tab.go_back()
    for words, said in (("colqwen2 vidore", "ColQwen2 on ViDoRe v1"), ("backbone nano", "nano"), ("xyzzy", "nothing")):
        tab.get_by_role("combobox", name="Find").fill(words)
        expect(tab.locator("#found li").first).to_contain_text(said)
    tab.close()


def test_the_front_plot_changes_its_board_and_its_axis(browser: Browser, answers: Path) -> None:
    tab = browser.new_page()
    tab.goto((answers / "index.html").as_uri())
    shown = tab.locator("#plot svg:visible")
    expect(shown).to_have_attribute("data-x", "bytes a page")
    tab.get_by_label("Across").select_option("ms")
    expect(shown).to_have_attribute("data-x", "milliseconds to prune a page")
    expect(shown.locator(".s[data-method=kmeans]")).to_have_count(1)
    tab.locator("#plot-view").select_option("minidocs--nano")
    expect(shown.locator(".s[data-method=kmeans]")).to_have_count(0)
    expect(shown.locator(".s[data-method=agglomerative]")).to_have_count(1)
    expect(tab.locator("#plot-what")).to_have_text("nano on minidocs")
    tab.close()
