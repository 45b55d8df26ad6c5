"""Build the site: into a new folder beside the old one, then swapped, so that readers never see half of it.

Only a folder that is empty, absent or an earlier build is ever replaced, and nothing is written outside of it. The same
submissions give the same bytes: there is no clock, no random number and no machine's name in any page.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from harness.progress import Progress, quiet
from harness.submissions.problems import Problem
from harness.workers import spread
from leaderboard.batches import build_batch
from leaderboard.columns import column_facts
from leaderboard.gather import Gathered
from leaderboard.pages import SitePages
from leaderboard.pictures import Pictures, draw
from leaderboard.publish import extra_files
from leaderboard.social import social_picture
from leaderboard.views import View, shelf_order
from pruners.core.errors import PruneBoardError

MARK = "files.json"
"""Says that a folder is a build of this site, and what is in it."""
BOARD = ("downloads.js", "board.js")
"""The board's script, after the facts of its columns."""
STATIC = ("site.css", "site.js", "advise.js", "compare.js", "front.js", "favicon.svg")


class SiteError(PruneBoardError):
    """The site cannot be built where it was asked for."""


@dataclass(frozen=True)
class Built:
    folder: Path
    submissions: int
    pages: int
    size: int
    left_out: list[Problem] = field(default_factory=list)


def build(
    found: Gathered,
    out: Path,
    base_url: str | None = None,
    progress: Progress = quiet,
    *,
    publish: bool = False,
    drawn: bool = False,
) -> Built:
    """Build the site of these submissions in `out`; with `publish`, also what hosts of static sites ask for.

    With `drawn`, what methods keep of three pages is drawn for their pages and the front.
    """
    base_url = check_base_url(base_url)
    refuse_foreign(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".site-") as scratch:
        new = Path(scratch) / "new"
        new.mkdir()
        pages, batches = SitePages(found.shelves(), base_url), found.batches()
        cores = os.cpu_count() or 1
        views: list[View] = []
        left_out: list[Problem] = []
        submissions = 0
        with (
            progress("boards", total=len(batches), done=0) as advance,
            spread(lambda i: build_batch(batches[i], found.benchmarks, pages), range(len(batches)), cores) as each,
        ):
            for built in each:
                for path, content in built.files.items():
                    write_inside(new, path, content)
                views += built.views
                left_out += built.left_out
                submissions += built.submissions
                advance(1)
        views.sort(key=lambda view: shelf_order(view.kind, view.backbone, view.benchmark))
        methods = {line.base for view in views for line in view.lines}
        pictures = draw(sorted(methods), progress) if drawn else Pictures()
        for path, content in [*pages.of_site(views, pictures, found.verified()), *pictures.files().items()]:
            write_inside(new, path, content)
        static = files("leaderboard") / "static"
        for name in STATIC:
            write_inside(new, name, (static / name).read_bytes())
        columns = f'"use strict";\nconst COLUMNS = {json.dumps(column_facts())};\n'.encode()
        parts = [columns, *((static / name).read_bytes() for name in BOARD)]
        write_inside(new, "board.js", b"".join(parts))  # one request
        write_inside(new, "preview.png", social_picture(len(methods), len({v.backbone for v in views}), submissions))
        for name, content in extra_files(views, base_url) if publish else ():
            write_inside(new, name, content)
        write_inside(new, ".nojekyll", b"")  # GitHub Pages would leave out files that begin with an underscore
        inside = sorted(str(path.relative_to(new).as_posix()) for path in new.rglob("*") if path.is_file())
        write_inside(new, MARK, (json.dumps({"files": inside}, indent=0) + "\n").encode())
        size = sum(path.stat().st_size for path in new.rglob("*") if path.is_file())
        new.chmod(0o755)
        if out.exists():
            out.rename(Path(scratch) / "old")
        new.rename(out)
    return Built(out, submissions, len([path for path in inside if path.endswith(".html")]), size, left_out)


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
    mark = out / MARK if (out / MARK).is_file() else out / "site.json"  # version 0.1 kept its list there
    try:
        known = json.loads(mark.read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        raise SiteError(f"{out} holds files that are no build of this site; choose another --out") from None
    strange = {str(p.relative_to(out).as_posix()) for p in out.rglob("*") if not p.is_dir()} - {*known, mark.name}
    if strange:
        raise SiteError(f"{out} holds {sorted(strange)[0]!r}, which no build put there; move it")


def check_base_url(url: str | None) -> str | None:
    """The address of the published site, without a slash at its end."""
    if url is None:
        return None
    if not url.startswith(("https://", "http://")) or any(c in url for c in "<>\"'` \\{}\n"):
        raise SiteError(f"--base-url is the address of the published site, https://…; {url!r} is not")
    return url.rstrip("/")
