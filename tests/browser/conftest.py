"""A real Chromium, driven by Playwright. Debian's browser is used: Playwright's own cannot be had everywhere."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from shown import NANO

from leaderboard.gather import Gathered
from leaderboard.site import build
from tests.leaderboard import synthetic

# the browser phones home at start unless told not to
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium on this machine; `make chromium` installs Debian's where it can")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    tab = browser.new_page()
    yield tab
    tab.close()


@pytest.fixture(scope="session")
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
