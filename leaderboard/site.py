"""Build the site: into a new folder beside the old one, then swapped, so that readers never see half of it.

Only a folder that is empty, absent or an earlier build is ever replaced, and nothing is written outside of it. The same
submissions give the same bytes: there is no clock, no random number and no machine's name in any page.
"""

from __future__ import annotations

import json
import re
import tempfile
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from harness.progress import Progress, quiet
from leaderboard.columns import column_facts
from leaderboard.gather import Gathered
from leaderboard.pages import page_count, render_all
from leaderboard.social import social_picture
from leaderboard.views import make_views
from pruners.core.errors import PruneBoardError

MARK = "site.json"
"""Says that a folder is a build of this site, and what is in it."""
STATIC = ("site.css", "site.js", "board.js", "compare.js", "favicon.svg")


class SiteError(PruneBoardError):
    """The site cannot be built where it was asked for."""


@dataclass(frozen=True)
class Built:
    folder: Path
    pages: int
    size: int


def build(found: Gathered, out: Path, base_url: str | None = None, progress: Progress = quiet) -> Built:
    """Build the site of these submissions in `out`."""
    base_url = check_base_url(base_url)
    refuse_foreign(out)
    ordered = sorted(
        found.entries, key=lambda e: (e.submission.benchmark.name, e.submission.backbone.name, e.submission.id)
    )
    with progress("rows, intervals", total=len(ordered), done=0) as advance:
        views = make_views(ordered, found.benchmarks, advance)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".site-") as scratch:
        new = Path(scratch) / "new"
        new.mkdir()
        with progress("pages", total=page_count(views), done=0) as advance:
            for path, page in render_all(views, base_url):
                write_inside(new, path, page.encode())
                advance(1)
        for name in STATIC:
            text = (files("leaderboard") / "static" / name).read_text(encoding="utf-8")
            write_inside(new, name, squeeze(name, text).encode())
        write_inside(new, "columns.js", f"const COLUMNS = {json.dumps(column_facts())};\n".encode())
        methods = {line.method.name for view in views for line in view.lines}
        write_inside(new, "preview.png", social_picture(len(methods), len({v.backbone for v in views}), len(ordered)))
        write_inside(new, ".nojekyll", b"")  # GitHub Pages would leave out files that begin with an underscore
        inside = sorted(str(path.relative_to(new).as_posix()) for path in new.rglob("*") if path.is_file())
        write_inside(new, MARK, (json.dumps({"site": "pruneboard", "files": inside}, indent=0) + "\n").encode())
        size = sum(path.stat().st_size for path in new.rglob("*") if path.is_file())
        new.chmod(0o755)
        if out.exists():
            out.rename(Path(scratch) / "old")
        new.rename(out)
    return Built(out, len([path for path in inside if path.endswith(".html")]), size)


def squeeze(name: str, text: str) -> str:
    """A style sheet or script without its comments and indentation, which are for those who read the source."""
    if name.endswith(".css"):
        text = re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", "", text, flags=re.S))
        return re.sub(r"\s*([{};,])\s*|(?<=:) ", r"\1", text).strip()
    if name.endswith(".js"):
        return re.sub(r"^\s*(//.*\n)?|\s+// .*$", "", text, flags=re.M)
    return text


def write_inside(folder: Path, name: str, content: bytes) -> None:
    """Write a file below a folder, and nowhere else."""
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise SiteError(f"{name!r} would lie outside of the site's folder")
    if path.exists():
        raise SiteError(f"two pages would share the file {name}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def refuse_foreign(out: Path) -> None:
    """A folder that holds anything but an earlier build is not replaced."""
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise SiteError(f"{out} is not a folder; choose another --out")
    if not out.exists() or not any(out.iterdir()):
        return
    try:
        known = json.loads((out / MARK).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        raise SiteError(f"{out} holds files that are no build of this site; choose another --out") from None
    strange = {str(p.relative_to(out).as_posix()) for p in out.rglob("*") if not p.is_dir()} - {*known, MARK}
    if strange:
        raise SiteError(f"{out} holds {sorted(strange)[0]!r}, which no build put there; move it")


def check_base_url(url: str | None) -> str | None:
    """The address of the published site, without a slash at its end."""
    if url is None:
        return None
    if not url.startswith(("https://", "http://")) or any(c in url for c in "<>\"'` \\{}\n"):
        raise SiteError(f"--base-url is the address of the published site, https://…; {url!r} is not")
    return url.rstrip("/")
