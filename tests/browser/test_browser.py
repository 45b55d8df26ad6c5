"""The browser itself: it opens a file, runs its script, and axe finds what is wrong with it."""

from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page


def test_a_local_page_opens_and_axe_sees_its_faults(tab: Page, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<html><body><img src=x><script>document.title = 1 + 1</script></body></html>")
    tab.goto(page.as_uri())
    assert tab.title() == "2"
    faults = {fault["id"] for fault in Axe().run(tab).response["violations"]}
    assert {"image-alt", "html-has-lang"} <= faults
