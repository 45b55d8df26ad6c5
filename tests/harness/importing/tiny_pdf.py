"""PDFs written by hand, for tests: lines of text on pages, an outline, and ways to spoil them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

PAGE = (300, 200)  # points


def write_pdf(
    path: Path,
    pages: Sequence[Sequence[str]],
    outline: Sequence[tuple[int, str, int | None]] = (),
    *,
    size: tuple[int, int] = PAGE,
    encrypted: bool = False,
) -> Path:
    """A PDF with the given lines on its pages, and an outline of (level, title, page from 0 or None: nowhere)."""
    objects: dict[int, bytes] = {}
    page_numbers = [10 + 2 * i for i in range(len(pages))]
    kids = " ".join(f"{number} 0 R" for number in page_numbers)
    objects[2] = f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode()
    objects[3] = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    for number, lines in zip(page_numbers, pages, strict=True):
        shown = "".join(f"({_escaped(line)}) Tj 0 -14 Td " for line in lines)
        stream = f"BT /F1 10 Tf 20 {size[1] - 24} Td {shown}ET".encode("latin-1")
        objects[number] = (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {size[0]} {size[1]}] "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {number + 1} 0 R >>"
        ).encode()
        objects[number + 1] = b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream)
    outlines = ""
    if outline:
        objects |= _outline(outline, first=10 + 2 * len(pages), pages=page_numbers)
        outlines = "/Outlines 4 0 R "
    objects[1] = f"<< /Type /Catalog /Pages 2 0 R {outlines}>>".encode()
    trailer = "/Root 1 0 R"
    if encrypted:
        # Password entries that the empty password does not fit: a reader must ask for one.
        secret = "ab" * 32
        objects[5] = f"<< /Filter /Standard /V 1 /R 2 /Length 40 /P -4 /O <{secret}> /U <{secret}> >>".encode()
        trailer += f" /Encrypt 5 0 R /ID [<{'00' * 16}> <{'00' * 16}>]"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_file(objects, trailer))
    return path


def _outline(entries: Sequence[tuple[int, str, int | None]], first: int, pages: list[int]) -> dict[int, bytes]:
    """Objects of a tree of bookmarks; object 4 is its root."""
    numbers = [first + i for i in range(len(entries))]
    parents, children = [], {4: []}
    stack: list[tuple[int, int]] = []
    for number, (level, _, _) in zip(numbers, entries, strict=True):
        stack = [item for item in stack if item[0] < level]
        parent = stack[-1][1] if stack else 4
        parents.append(parent)
        children.setdefault(parent, []).append(number)
        stack.append((level, number))
    objects = {}
    for number, parent, (_, title, page) in zip(numbers, parents, entries, strict=True):
        family = children[parent]
        at = family.index(number)
        parts = [f"/Title ({_escaped(title)}) /Parent {parent} 0 R"]
        parts += [f"/Prev {family[at - 1]} 0 R"] if at else []
        parts += [f"/Next {family[at + 1]} 0 R"] if at + 1 < len(family) else []
        parts += [f"/Dest [{pages[page]} 0 R /XYZ 0 {PAGE[1]} 0]"] if page is not None else []
        if own := children.get(number):
            parts.append(f"/First {own[0]} 0 R /Last {own[-1]} 0 R /Count {len(own)}")
        objects[number] = f"<< {' '.join(parts)} >>".encode("latin-1")
    top = children[4]
    objects[4] = f"<< /Type /Outlines /First {top[0]} 0 R /Last {top[-1]} 0 R /Count {len(top)} >>".encode()
    return objects


def _file(objects: dict[int, bytes], trailer: str) -> bytes:
    out = bytearray(b"%PDF-1.4\n")
    offsets = {}
    for number, body in sorted(objects.items()):
        offsets[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    size, start = max(objects) + 1, len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % size
    for number in range(1, size):
        used = number in offsets
        out += b"%010d %05d %s \n" % (offsets.get(number, 0), 0 if used else 65535, b"n" if used else b"f")
    return bytes(out + f"trailer\n<< /Size {size} {trailer} >>\nstartxref\n{start}\n%%EOF\n".encode())


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
