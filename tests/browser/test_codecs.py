"""A board with several codecs in a real browser: one row a method, until another codec or all of them are chosen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page
from shown import NANO, column, heads, rows

from leaderboard.gather import Gathered
from leaderboard.site import build
from tests.leaderboard import synthetic
from tests.leaderboard.test_same_bytes import alone

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = [("kcenter", 0.9, 1), ("sap", 0.6, 2), ("kmeans", 0.7, 3), ("hpc", 0.3, 4)]
    made = [synthetic.measured(name, quality, seed, queries=10) for name, quality, seed in names]
    made += [synthetic.stored(name, "int8", quality, seed, 0.5, queries=10) for name, quality, seed in names[:3]]
    return build(
        Gathered(synthetic.entries([*made, alone("binary", 0.8, 9, 1 / 16)])),
        tmp_path_factory.mktemp("codecs") / "site",
    ).folder


@pytest.fixture
def board(tab: Page, folder: Path) -> Iterator[Page]:
    problems: list[str] = []
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.goto((folder / NANO).as_uri())
    yield tab
    assert problems == []


def choose(tab: Page, name: str) -> None:
    tab.get_by_role("group", name="Codec").get_by_role("radio", name=name, exact=True).check(force=True)


def test_one_codec_at_a_time(board: Page) -> None:
    assert sorted(column(board, "method")) == ["hpc", "kcenter", "kmeans", "sap"]
    assert sorted(set(column(board, "codec"))) == ["float16", "own"]
    drawn = board.locator("#plot .s:visible").count()
    choose(board, "int8")
    assert sorted(column(board, "method")) == ["kcenter | int8", "kmeans | int8", "sap | int8"]
    assert board.locator("#heat tbody:visible tr:visible").count() == 3
    assert board.locator("#plot .s:visible").count() == drawn == 8  # the plot is by bytes: it has all of them
    assert "codec=int8" in board.url
    choose(board, "all")
    assert len(rows(board)) == 7
    board.get_by_label("Filter").fill("kmeans")
    assert sorted(column(board, "method")) == ["kmeans", "kmeans | int8"]


def test_where_nothing_is_pruned_the_codecs_stand_alone(board: Page) -> None:
    board.get_by_role("radio", name="all vectors").check(force=True)
    assert column(board, "method") == ["full | binary"]


def test_a_link_keeps_the_codec_and_a_phone_has_room(board: Page) -> None:
    choose(board, "int8")
    link, before = board.url, rows(board)
    board.goto("about:blank")
    board.goto(link)
    assert rows(board) == before
    board.set_viewport_size({"width": 390, "height": 844})
    board.reload()
    assert "codec" not in heads(board)  # its name says it
    assert board.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(board: Page, theme: str) -> None:
    board.emulate_media(color_scheme=theme, reduced_motion="reduce")
    found = Axe().run(board).response["violations"]
    assert [(v["id"], [n["html"][:120] for n in v["nodes"][:3]]) for v in found] == []
