"""Text of scanned pages with RapidOCR: its models come inside the package, so nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

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
    import logging

    from rapidocr import RapidOCR

    logging.getLogger("RapidOCR").setLevel(logging.ERROR)
    engine = RapidOCR()

    def read(image: Image.Image) -> str:
        lines = engine(np.asarray(image.convert("RGB"))[:, :, ::-1]).txts  # it takes BGR, as OpenCV does
        return "\n".join(lines or ())

    return read
