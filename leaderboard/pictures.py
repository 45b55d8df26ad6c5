"""What methods keep of three embedded pages, drawn when the site is built: for the method pages, and for the front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.progress import Progress
from leaderboard.words import file_name

if TYPE_CHECKING:
    from harness.why.gallery import Picture

FRONT = "kept/front.png"


@dataclass(frozen=True)
class Pictures:
    """`front` is a PNG of one page; `of_method` has one a budget, for built-in methods."""

    front: bytes | None = None
    of_method: dict[str, list[Picture]] = field(default_factory=dict)

    def files(self) -> dict[str, bytes]:
        found = {picture_path(picture): picture.data for some in self.of_method.values() for picture in some}
        return found | ({} if self.front is None else {FRONT: self.front})


def picture_path(picture: Picture) -> str:
    return f"kept/{file_name(picture.method)}-{picture.budget:g}.png"


def draw(methods: Sequence[str], progress: Progress) -> Pictures:
    """Pictures of those methods that are built in. An installation without the retriever's libraries draws none."""
    try:
        from harness.why.gallery import gallery, hero_picture
    except ModuleNotFoundError:
        return Pictures()
    with progress("pictures of kept patches; drawn once", total=2, done=0) as advance:
        front = hero_picture()
        advance(1)
        found = gallery(methods)
        advance(1)
    return Pictures(front, found)
