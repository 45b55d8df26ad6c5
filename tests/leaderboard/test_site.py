"""The site as files: whole, the same every time, small, linked relatively, and never written over something else."""

import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from harness.submissions.folder import FOLDER
from leaderboard.gather import Gathered, gather
from leaderboard.site import SiteError, build, write_inside
from tests.leaderboard import synthetic


class Page(HTMLParser):
    """Targets, ids and text of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.ids: set[str] = set()
        self.text = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value is not None:
                self.targets.append(value)
            if name == "id":
                self.ids.add(value)

    def handle_data(self, data: str) -> None:
        self.text += data


def digest(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def test_every_link_is_relative_and_leads_somewhere(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html")}
    assert len(pages) > 20
    for path, page in pages.items():
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme in ("http", "https"):
                assert parts.netloc == "example.org"  # what a submission named as its code
                continue
            assert not parts.scheme, target
            assert not target.startswith("/"), target
            to = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert to.is_file(), f"{path}: {target}"
            assert to.is_relative_to(site)
            if parts.fragment and "=" not in parts.fragment and to in pages:  # a=b is a choice, not a place
                assert parts.fragment in pages[to].ids, f"{path}: {target}"


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*"):
        if path.suffix in (".css", ".js", ".svg", ".html"):
            text = path.read_text(encoding="utf-8")
            assert not re.findall(r"(?:src|url|import)\W{1,4}https?:", text), path
            assert set(re.findall(r"https?://[\w.]+", text)) <= {"https://example.org", "http://www.w3.org"}, path


def test_the_same_submissions_give_the_same_bytes(tmp_path: Path) -> None:
    entries = synthetic.entries([*synthetic.nano_submissions(6, most=2), *synthetic.paper_submissions()[:2]])
    first = build(Gathered(entries), tmp_path / "a")
    second = build(Gathered(entries[::-1]), tmp_path / "b")
    assert digest(first.folder) == digest(second.folder)
    again = build(Gathered(entries), tmp_path / "a")  # an earlier build is replaced
    assert digest(again.folder) == digest(second.folder)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]


def test_a_folder_that_is_no_earlier_build_is_left_alone(tmp_path: Path) -> None:
    foreign = tmp_path / "thesis"
    foreign.mkdir()
    (foreign / "chapter.txt").write_text("years of work")
    with pytest.raises(SiteError, match="no build of this site"):
        build(Gathered([]), foreign)
    built = build(Gathered([]), tmp_path / "site").folder
    (built / "notes.txt").write_text("mine")
    with pytest.raises(SiteError, match=r"notes\.txt"):
        build(Gathered([]), built)
    (tmp_path / "link").symlink_to(foreign)
    with pytest.raises(SiteError, match="not a folder"):
        build(Gathered([]), tmp_path / "link")
    assert (foreign / "chapter.txt").read_text() == "years of work"
    assert (built / "notes.txt").exists()


@pytest.mark.parametrize("name", ["../x.html", "/tmp/x.html", "a/../../x.html"])
def test_nothing_is_written_outside_of_the_site(tmp_path: Path, name: str) -> None:
    (tmp_path / "site").mkdir()
    with pytest.raises(SiteError, match="outside"):
        write_inside(tmp_path / "site", name, b"")


def test_nano_figures_say_what_they_are_wherever_they_stand(site: Path) -> None:
    words = re.compile(r"nano model.*do not speak for backbones of ColPali.s scale", re.S)
    names = ["index.html", "board/minidocs--nano.html", "compare/minidocs--nano.html", "backbone/nano.html"]
    names += [str(path.relative_to(site)) for path in (site / "result" / "minidocs--nano").iterdir()]
    measured = [p for p in (site / "method").iterdir() if "minidocs" in p.read_text(encoding="utf-8")]
    assert len(measured) == 8
    for path in [*(site / name for name in names), *measured]:
        assert words.search(Page(path).text), path
    assert not words.search(Page(site / "board" / "vidore-v1--colpali.html").text)


def test_without_submissions_there_is_a_site_that_says_so(tmp_path: Path) -> None:
    built = build(Gathered([]), tmp_path / "site")
    assert "There are no submissions yet" in (built.folder / "index.html").read_text(encoding="utf-8")


def test_a_base_url_is_used_for_previews_only(tmp_path: Path) -> None:
    built = build(Gathered([]), tmp_path / "site", "https://example.org/board/")
    text = (built.folder / "about.html").read_text(encoding="utf-8")
    assert re.search(r'og:image"? content="?https://example.org/board/preview.png"?>', text)
    assert re.search(r'rel="?canonical"? href="?https://example.org/board/about.html"?>', text)
    assert re.search(r'href="?site.css"?>', text)
    for bad in ("javascript:alert(1)", 'https://x/"><script>', "board"):
        with pytest.raises(SiteError, match="base-url"):
            build(Gathered([]), tmp_path / "site", bad)


@pytest.mark.slow
def test_no_page_of_what_the_project_ships_is_large(tmp_path: Path) -> None:
    found = gather(FOLDER, [])
    built = build(found, tmp_path / "site")
    views = json.loads((built.folder / "site.json").read_text(encoding="utf-8"))["views"]
    assert {view["benchmark"] for view in views} >= {"minidocs", "r-doc-pdf", "vidore-v1"}
    assert largest(built.folder) < 250_000


def largest(folder: Path) -> int:
    return max(path.stat().st_size for path in folder.rglob("*") if path.suffix in (".html", ".js", ".json"))
