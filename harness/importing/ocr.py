"""Text of scanned pages with RapidOCR: its models come inside the package, so nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from PIL import Image

from pruners.core.errors import PruneBoardError

ENOUGH = 16  # letters and digits: below it a page's text layer is a running head or a stamp, if it is anything


def needs_ocr(text: str) -> bool:
    return sum(map(str.isalnum, text)) < ENOUGH


def reader() -> Callable[[Image.Image], str]:
    """A function from a picture to its text, lines from top to bottom."""
    if find_spec("rapidocr") is None or find_spec("onnxruntime") is None:
        raise PruneBoardError("--ocr needs RapidOCR: pip install 'pruneboard[ocr]'")
    from rapidocr import RapidOCR

    engine: Any = RapidOCR(params={"Global.log_level": "error"})

    def read(image: Image.Image) -> str:
        pixels = np.ascontiguousarray(np.asarray(image.convert("RGB"))[:, :, ::-1])  # BGR, as OpenCV has it
        # Pages stand upright: a classifier of the lines' direction only turns some of them by mistake.
        return "\n".join(engine(pixels, use_cls=False).txts or ())

    return read
