"""The documentation: built without a warning, no dead link or anchor, nothing from another server, everything in it."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.copied_tree import ROOT

PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(
    (ROOT / "docs").glob("*.md")
)


class Read(HTMLParser):
    """Links, anchors and what a browser fetches by itself."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif "src" in given or (tag == "link" and given.get("rel") not in ("canonical", "prev", "next")):
            self.fetched.append(given.get("src") or given.get("href", ""))


def faults(site: Path) -> list[str]:
    """Links that lead nowhere, and files that come from another server."""
    read = {page: Read(page) for page in site.rglob("*.html")}
    found = []
    for page, content in read.items():
        for url in content.links + content.fetched:
            parts = urlsplit(url)
            if parts.scheme in ("http", "https", "mailto") or url.startswith("//"):
                if url in content.fetched:
                    found.append(f"{page.relative_to(site)} fetches {url}")
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            if not target.is_file() or (anchor and target in read and anchor not in read[target].anchors):
                found.append(f"{page.relative_to(site)} links to {url}")
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("docs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(out)]
    done = subprocess.run(
        command, cwd=ROOT, text=True, capture_output=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.mark.slow
def test_no_link_of_the_site_is_dead_and_nothing_comes_from_another_server(site: Path) -> None:
    assert len(list(site.rglob("*.html"))) > 20
    assert [fault for fault in faults(site) if not fault.startswith("404.html")] == []  # its links start at the root
    styles = [path.read_text(encoding="utf-8") for path in site.rglob("*.css")]
    assert not any(re.search(r"url\([\"']?(https?:)?//", style) for style in styles)


def test_a_dead_link_a_dead_anchor_and_a_foreign_script_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="b.html#here">1</a><a href="b.html#gone">2</a><a href="c.html">3</a>')
    (tmp_path / "b.html").write_text(
        '<p id="here"><a href="https://example.org">4</a><script src="//cdn.example.org/x.js">'
    )
    assert sorted(faults(tmp_path)) == [
        "a.html links to b.html#gone",
        "a.html links to c.html",
        "b.html fetches //cdn.example.org/x.js",
    ]


@pytest.mark.slow
def test_every_command_method_and_public_name_has_its_place(site: Path) -> None:
    import typer

    import harness
    from harness.cli import app
    from pruners import __all__ as public
    from pruners import catalogue

    group = typer.main.get_command(app)
    text = {name: (site / f"{name}.html").read_text() for name in ("command-line", "methods", "api")}
    assert all(f'id="harness-{name}"' in text["command-line"] for name in group.commands)  # type: ignore[attr-defined]
    built_in = [name for name, entry in catalogue().items() if entry.source == "built-in"]
    assert all(f'id="{name}"' in text["methods"] for name in built_in)
    headings = set(re.findall(r'<h3 id="[^"]+" class="doc doc-heading">\s*(\S+)\s', text["api"]))
    wanted = {f"harness.{name}" for name in dir(harness) if name != "__version__"} | {
        f"pruners.{name}" for name in public
    }
    assert wanted - headings == set()


@pytest.mark.slow
def test_tables_and_lists_of_the_pages_are_read_as_such(site: Path) -> None:
    """Markdown is read a little differently here and on code hosts: a list or table that was not is plain text."""
    paragraphs = [
        (page.name, text)
        for page in site.glob("*.html")
        for text in re.findall(r"<p>(.*?)</p>", page.read_text(encoding="utf-8"), re.DOTALL)
    ]
    assert len(paragraphs) > 100
    assert [found for found in paragraphs if re.search(r"^\s*(- |\* |\d+\. |\| |```)", found[1], re.MULTILINE)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_links_of_a_page_lead_somewhere_in_the_repository(page: Path) -> None:
    """As a code host shows it, without a site."""
    for path, anchor in re.findall(r"\]\(([^)\s#:]*)(?:#([^)\s]*))?\)", page.read_text(encoding="utf-8")):
        target = page.parent / path if path else page
        assert target.exists(), f"{page.name} links to {path}"
        assert not anchor or anchor in anchors(target), f"{page.name} links to {path}#{anchor}"


def anchors(page: Path) -> set[str]:
    """The anchors that a code host makes of headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
