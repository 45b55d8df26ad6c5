"""Which files are imported: PDFs and images, by name, in a fixed order, each under an id of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.importing.problems import ImportProblem, ImportProblemsError
from pruners.core.errors import PruneBoardError

PDF = ".pdf"
IMAGES = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp", ".gif")


@dataclass(frozen=True)
class DocumentSource:
    """A file to import. `name` is its path below the folder that was given, or its file name."""

    path: Path
    name: str

    @property
    def is_pdf(self) -> bool:
        return self.path.suffix.lower() == PDF


def find_sources(places: Sequence[Path]) -> list[DocumentSource]:
    """Every PDF and image in the given files and folders. Hidden files and links that lead nowhere are passed over."""
    found: list[DocumentSource] = []
    for place in places:
        if place.is_dir():
            files = sorted(path for path in place.rglob("*") if path.is_file())
            below = [(path, path.relative_to(place)) for path in files]
            found += [DocumentSource(path, name.as_posix()) for path, name in below if _wanted(name)]
        elif place.is_file() and place.suffix.lower() in (PDF, *IMAGES):
            found.append(DocumentSource(place, place.name))
        elif place.exists():
            raise PruneBoardError(f"{place} is neither a PDF nor an image ({', '.join(IMAGES)}), nor a folder of them")
        else:
            raise PruneBoardError(f"there is no file or folder {str(place)!r}")
    if not found:
        raise PruneBoardError(f"no PDF and no image in {', '.join(map(str, places))}")
    first: dict[str, Path] = {}
    problems = []
    for source in found:
        if source.name in first:
            problems.append(
                ImportProblem(source.name, None, f"two files have this name: {first[source.name]}, {source.path}")
            )
        first.setdefault(source.name, source.path)
    if problems:
        raise ImportProblemsError(problems)
    return found


def page_id(source: DocumentSource, index: int) -> str:
    """The id of a page: a file's name, and for PDFs the page as PDF viewers take it in a link (from 1)."""
    return f"{source.name}#page={index + 1}" if source.is_pdf else source.name


def _wanted(name: Path) -> bool:
    return name.suffix.lower() in (PDF, *IMAGES) and not any(part.startswith(".") for part in name.parts)
