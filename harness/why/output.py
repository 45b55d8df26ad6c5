"""What `harness.show` and `Results.explain` return: a notebook shows it by itself, and it is saved as a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.files import write_atomically
from harness.why.explain import Explanation
from harness.why.page_view import PageView
from pruners.core.errors import PruneBoardError

KINDS = ("png", "svg", "html")


@dataclass(frozen=True)
class Drawing:
    """A page with what methods keep of it."""

    view: PageView

    def save(self, path: Path | str) -> Path:
        """Write it as PNG, SVG or HTML, by the ending of the name."""
        place = Path(path)
        kind = place.suffix.lstrip(".").lower()
        if kind not in KINDS:
            raise PruneBoardError(f"{place} says no kind of picture: end its name in .png, .svg or .html")
        return _write(place, self.html().encode() if kind == "html" else self.picture(kind))

    def picture(self, kind: str = "png") -> bytes:
        from harness.why.figure import picture

        return picture(self.view, kind)

    def html(self) -> str:
        from harness.why.html import view_page

        return view_page(self.view)

    def __repr__(self) -> str:
        methods = ", ".join(row[0].method for row in self.view.rows)
        return f"<page {self.view.page_id} of {self.view.data_set} under {methods}>"

    def _repr_html_(self) -> str:
        from harness.why.html import view_fragment

        return view_fragment(self.view)

    def _repr_png_(self) -> bytes:
        return self.picture()


@dataclass(frozen=True)
class ExplanationPage:
    """Why a method loses, as one page. `found` has everything in it."""

    found: Explanation

    @property
    def words(self) -> str:
        """What changed, and why, in plain words."""
        return "\n".join(self.found.words)

    def save(self, path: Path | str) -> Path:
        return _write(Path(path), self.html().encode())

    def html(self) -> str:
        from harness.why.html import explanation_page

        return explanation_page(self.found)

    def __repr__(self) -> str:
        return f"<{self.found.method} against {self.found.against} at {self.found.budget:g}: {self.found.run}>"

    def _repr_html_(self) -> str:
        """In a notebook: the page in a frame of its own, so that neither disturbs the other."""
        from html import escape

        frame = "width:100%;height:80vh;border:1px solid #888"
        return f'<iframe style="{frame}" srcdoc="{escape(self.html())}"></iframe>'


def _write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, data)
    return path
