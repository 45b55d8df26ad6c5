"""A contact sheet of pinned pages for the documentation: one column a dataset."""

from __future__ import annotations

from pathlib import Path

from PIL import Image, ImageDraw

from .benchmark import V1
from .drawing import INK, SIDE, font, palette
from .files import folder_of, read

GAP, LABEL = 10, 20


def contact_sheet(path: Path, rows: int = 4) -> None:
    """Write `rows` pages of each v1 dataset, every twelfth so that no two are of one family."""
    columns = [read(folder_of("minidocs-v1", recipe.name)).images for recipe in V1]
    size = (GAP + len(columns) * (SIDE + GAP), LABEL + rows * (SIDE + GAP))
    sheet = Image.new("RGB", size, "#b8bcc6")
    draw = ImageDraw.Draw(sheet)
    for column, (recipe, images) in enumerate(zip(V1, columns, strict=True)):
        x = GAP + column * (SIDE + GAP)
        draw.text((x, LABEL - 6), recipe.name, font=font(13, True), fill=INK, anchor="ls")
        for row in range(rows):
            sheet.paste(images[12 * row].convert("RGB"), (x, LABEL + row * (SIDE + GAP)))
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet.quantize(palette=palette(), dither=Image.Dither.NONE).save(path, optimize=True)
