"""Text from outside, made fit for a terminal or a log."""

from __future__ import annotations

import re

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: object, limit: int = 120) -> str:
    """One line: no control characters, no reordering marks, not endless."""
    return _shortened(_UNPRINTABLE.sub(_escaped, str(text)), limit)


def printable_lines(text: object, limit: int) -> str:
    """The same, where lines and tabs may stay."""
    return _shortened(
        _UNPRINTABLE.sub(lambda match: match[0] if match[0] in "\n\t" else _escaped(match), str(text)), limit
    )


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
