"""Pictures of pages, drawn for tests."""

from PIL import Image, ImageDraw


def page_image(size: tuple[int, int], seed: int = 0) -> Image.Image:
    """A page with text, a coloured block and white margins."""
    image = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(image)
    width, height = size
    for line in range(4, height // 2, 14):
        draw.text((6, line), f"page {seed} line {line * (seed + 3)}", fill="black")
    draw.rectangle((width // 3, height * 2 // 3, width * 2 // 3, height - 6), fill=(40 * seed % 256, 90, 200))
    return image
