"""The sliders of a board in a real browser: they answer as `harness advise` does, whatever is asked."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from shown import NANO

from harness.advice.advise import advise
from harness.advice.rule import Asked, Candidate, size_of
from harness.advice.words import name
from leaderboard.advice import view_basis, view_candidates
from leaderboard.gather import Gathered
from leaderboard.site import build
from leaderboard.views import View, make_views
from tests.leaderboard import synthetic

pytestmark = pytest.mark.slow
QUESTIONS = 200


def entries() -> list:
    """Measured methods of many sizes, some of them equal; a diagnostic, an unpinned one and a paper's among them."""
    found = []
    for i, (record, frame) in enumerate(synthetic.nano_submissions(12, most=14)):
        for cell in record["cells"]:
            if cell["budget"] < 1:
                cell["bytes_per_page"] *= (1, 1, 0.5, 0.25, 1.7)[i % 5]
        if i % 4 == 2:
            synthetic.share(record, 10**9)  # a gigabyte of codebooks
        found.append(synthetic.entry(record, frame, "unpinned" if i == 3 else "recomputed"))
    oracle, frame = synthetic.measured("oracle", 1.0, 77, queries=12)
    return [*found, synthetic.entry(oracle, frame, "recomputed"), *synthetic.entries(synthetic.paper_submissions())]


@pytest.fixture(scope="module")
def view() -> View:
    return next(view for view in make_views(entries()) if view.backbone == "nano")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(Gathered(entries()), tmp_path_factory.mktemp("advise") / "site").folder


@pytest.fixture
def board(tab: Page, folder: Path) -> Iterator[Page]:
    problems: list[str] = []
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.goto((folder / NANO).as_uri())
    yield tab
    assert problems == []


def asked(tab: Page) -> tuple[float, float]:
    """What the sliders say: % of NDCG@5, and GB."""
    number, unit = tab.locator("#size-shown").inner_text().split()
    return float(tab.locator("#keep").input_value()), float(number) * {"GB": 1, "TB": 1000}[unit]


def answers(rows: list[Candidate], view: View, keep: float, gb: float) -> list[str]:
    """What `harness advise` names: the advised row, or what would have to give."""
    found = advise(rows, view_basis(view), Asked(keep, 1e6, max_gb=gb), None)
    return [name(found.chosen.candidate)] if found.chosen else [name(one.candidate) for one in found.would_give]


def test_the_sliders_answer_as_the_command_does_for_random_constraints(board: Page, view: View) -> None:
    rows, draw = list(view_candidates(view)), random.Random(23)
    least = float(board.locator("#keep").get_attribute("min") or 0)
    seen: set[tuple[str, ...]] = set()
    none = 0
    for _ in range(QUESTIONS):
        board.locator("#keep").fill(f"{draw.uniform(least, 100):.1f}")
        board.locator("#size").fill(str(draw.randrange(201)))
        keep, gb = asked(board)
        shown = board.locator("#advice a").all_inner_texts()
        assert shown == answers(rows, view, keep, gb), (keep, gb)
        seen.add(tuple(shown))
        none += board.locator("#advice").inner_text().startswith("Nothing")
    assert len(seen) > 8  # the questions were not all the same
    assert 20 < none < 180


def test_at_every_bound_and_size_there_is(board: Page, view: View) -> None:
    """Where answers change: just met is met, and a hair more is not."""
    rows = list(view_candidates(view))
    for one in [row for row in rows if not row.barred]:
        low, gb = one.low or 0.0, size_of(one, 1e6) / 1e9
        for keep in (low, low + 1e-9):
            for most in (gb, gb - 1e-9):
                found = board.evaluate("([k, g]) => advised(k, g)?.link.textContent ?? null", [keep, most])
                expected = advise(rows, view_basis(view), Asked(keep, 1e6, max_gb=most), None).chosen
                assert found == (expected and name(expected.candidate))


def test_by_keyboard_and_what_a_reader_is_told(board: Page, view: View) -> None:
    keep, size = board.get_by_label(re.compile("Keep at least")), board.get_by_label(re.compile("In at most"))
    keep.focus()
    before = board.locator("#advice").inner_text()
    board.keyboard.press("End")
    assert keep.get_attribute("aria-valuetext") == "100 %"
    (best,) = answers(list(view_candidates(view)), view, *asked(board))
    expect(board.locator("#advice a")).to_have_text(best)
    assert board.locator("#steps tr.best th").inner_text() == best
    board.keyboard.press("Tab")
    assert size.evaluate("e => e === document.activeElement")
    board.keyboard.press("Home")
    assert (size.get_attribute("aria-valuetext") or "").endswith(" GB")
    expect(board.locator("#advice")).to_contain_text("Nothing surely keeps 100 % in")
    assert board.locator("#steps tr.best").count() == 0
    assert board.locator("#advice").inner_text() != before


def test_without_a_script_the_answer_and_all_others_are_there(browser: Browser, folder: Path, view: View) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto((folder / NANO).as_uri())
    assert not tab.locator("#ask").is_visible()
    (best,) = answers(list(view_candidates(view)), view, 98, 1e9)
    expect(tab.locator("#advice")).to_contain_text(f"To keep 98 % of NDCG@5: {best}")
    assert tab.locator("#steps tbody tr:visible").count() > 3
    tab.goto((folder / "board/vidore-v1--colpali.html").as_uri())  # a paper's figures alone
    expect(tab.locator("#advise")).to_contain_text("Nothing on this board can be advised")
    assert tab.locator("#ask").count() == 0
    context.close()


@pytest.mark.parametrize("width", [1440, 768, 390])
def test_it_fits_every_window(browser: Browser, folder: Path, width: int) -> None:
    tab = browser.new_page(viewport={"width": width, "height": 900})
    tab.goto((folder / NANO).as_uri())
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    for slider in ("#keep", "#size"):
        box = tab.locator(slider).bounding_box()
        assert box is not None
        assert box["width"] > 150
        assert box["height"] >= 24
    tab.close()
