"""What a first look costs: bytes, requests, and the time to the first row, over HTTP as a visitor has it."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Browser

from harness.submissions.folder import FOLDER
from leaderboard.gather import gather
from leaderboard.site import build

pytestmark = pytest.mark.slow


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """All that the project ships, behind a plain web server on this machine."""
    folder = build(gather(FOLDER, []), tmp_path_factory.mktemp("weight") / "site").folder
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("path", "first", "most_bytes", "most_requests"),
    [
        ("index.html", ".answer li", 130_000, 5),
        ("board/minidocs--nano.html", "#board tbody:visible tr:not(.head)", 290_000, 6),
    ],
)
def test_bytes_requests_and_time_to_the_first_row(
    browser: Browser, address: str, path: str, first: str, most_bytes: int, most_requests: int
) -> None:
    tab = browser.new_page(viewport={"width": 390, "height": 844})
    sizes: dict[str, int] = {}
    tab.on("response", lambda response: sizes.__setitem__(response.url, len(response.body())))
    tab.goto(f"{address}/{path}")
    tab.locator(first).first.wait_for()
    painted = tab.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? performance.now()")
    box = tab.locator(first).first.bounding_box()
    print(f"\n{path}: {sum(sizes.values()):,} bytes in {len(sizes)} requests, first paint after {painted:.0f} ms")
    assert sum(sizes.values()) < most_bytes, sizes
    assert len(sizes) <= most_requests, sizes
    assert painted < 3000
    assert box is not None
    assert box["y"] < 844  # the first row is in sight without scrolling
    tab.close()
