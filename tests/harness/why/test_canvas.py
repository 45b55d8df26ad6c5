"""Where vectors lie on a page: by hand for grids and tiles, by their words for texts."""

from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from harness.why.canvas import canvas_of, in_lines, in_tiles, on_grid
from pruners import PruneBoardError


def test_a_grid_covers_the_whole_page_row_by_row() -> None:
    canvas = on_grid(Image.new("RGB", (60, 40)), (2, 3), 100)
    assert canvas.boxes.tolist() == [
        [0, 0, 20, 20], [20, 0, 40, 20], [40, 0, 60, 20],
        [0, 20, 20, 40], [20, 20, 40, 40], [40, 20, 60, 40],
    ]  # fmt: skip


def test_a_large_page_is_scaled_and_its_boxes_with_it() -> None:
    canvas = on_grid(Image.new("RGB", (600, 1200)), (2, 1), 300)
    assert canvas.size == (150, 300)
    assert canvas.boxes.tolist() == [[0, 0, 150, 150], [0, 150, 150, 300]]


def test_tiles_come_row_by_row_with_their_own_rows_and_then_the_thumbnail() -> None:
    canvas = in_tiles(Image.new("RGB", (80, 40), "white"), (1, 2), 2, 300)
    assert canvas.boxes[:4].tolist() == [[0, 0, 20, 20], [20, 0, 40, 20], [0, 20, 20, 40], [20, 20, 40, 40]]
    assert canvas.boxes[4].tolist() == [40, 0, 60, 20], "the second tile begins where the first ends"
    assert canvas.boxes[8].tolist() == [0, 48, 20, 58], "the thumbnail is half as large and lies below"
    assert len(canvas.boxes) == 12
    assert canvas.size == (80, 68)


def test_tokens_of_a_text_lie_in_reading_order_and_within_the_page() -> None:
    text = "One line of words, " * 12 + "\nand another"
    spans = [(m, m + 4) for m in range(0, 200, 7)]
    boxes = in_lines(text, spans).boxes
    assert len(boxes) == len(spans)
    rows = boxes[:, 1]
    assert (np.diff(rows) >= 0).all()
    assert len(set(rows)) > 1, "long lines are broken"
    same = np.diff(rows) == 0
    assert (np.diff(boxes[:, 0])[same] > 0).all()
    assert boxes[:, 2].max() <= in_lines(text, spans).size[0]


def test_the_words_of_a_text_are_in_its_boxes() -> None:
    canvas = in_lines("ink  paper", [(0, 3), (5, 10)])
    for left, top, right, bottom in canvas.boxes:
        cell = np.asarray(canvas.image.crop((int(left), int(top), int(right), int(bottom))))
        assert cell.min() < 100, "letters are dark"
    beside = np.asarray(canvas.image.crop((int(canvas.boxes[1, 2]) + 2, 0, canvas.size[0], canvas.size[1])))
    assert beside.min() == 255


@pytest.mark.parametrize(
    ("tiles", "message"),
    [
        (None, "has no patch grid, so nobody knows where"),
        (((1, 2), 2), "has 7 vectors, and its tiles have room for 12"),
    ],
)
def test_a_page_whose_vectors_have_no_place_is_not_drawn(tiles, message: str) -> None:
    class Vectors(SimpleNamespace):
        def __len__(self) -> int:
            return 7

    page = Vectors(id="p", grid=None)
    with pytest.raises(PruneBoardError, match=message):
        canvas_of(page, Image.new("RGB", (80, 40)), tiles, 300)
    with pytest.raises(PruneBoardError, match="has no image"):
        canvas_of(page, None, tiles, 300)
