"""The picture that a link to the site shows: a page of patches, of which a few are kept. The same bytes every time."""

from __future__ import annotations

import io

from PIL import Image, ImageDraw

from harness.minidocs.drawing import font

SIZE = (1200, 630)
PAPER, INK, QUIET, ACCENT, PATCH = "#faf8f3", "#1c2430", "#5b6472", "#0f6b75", "#d9d5ca"


def social_picture(methods: int, backbones: int, submissions: int) -> bytes:
    picture = Image.new("RGB", SIZE, PAPER)
    draw = ImageDraw.Draw(picture)
    draw.fontmode = "1"  # hard edges: a quarter of the bytes, and the picture is shown small
    _patches(draw, left=772, top=95, side=40, rows=11, cols=9)
    draw.text((80, 150), "PruneBoard", fill=INK, font=font(92, bold=True))
    draw.text((84, 280), "What pruning a multi-vector", fill=QUIET, font=font(40, bold=False))
    draw.text((84, 332), "page index costs.", fill=QUIET, font=font(40, bold=False))
    line = f"{methods} methods · {backbones} backbones · {submissions} submissions"
    draw.text((84, 470), line, fill=ACCENT, font=font(27, bold=True))
    out = io.BytesIO()
    picture.quantize(5, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue()


def _patches(draw: ImageDraw.ImageDraw, left: int, top: int, side: int, rows: int, cols: int) -> None:
    """A grid in which every tenth patch or so is kept, at places that only look random."""
    for row in range(rows):
        for col in range(cols):
            kept = (row * 7 + col * 11 + row * col * 3) % 10 == 0
            x, y = left + col * side, top + row * side
            draw.rectangle((x, y, x + side - 6, y + side - 6), fill=ACCENT if kept else PATCH)
