"""Long texts in overlapping windows, so that an encoder with a length limit reads every token of a page.

Windows of one text have the same length, so that sums over a window (in-degree) mean the same in all of them. A token
is taken from the window in which it lies farther from the border.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

OVERLAP = 128
"""Tokens that neighbouring windows share at least: each sees 64 or more beyond the point where they part."""


@dataclass(frozen=True)
class Piece:
    """One sequence as the encoder reads it; all fields have its length."""

    ids: tuple[int, ...]
    own: tuple[bool, ...]
    """The text's tokens, among which attention is measured; markers, special and skipped tokens are none."""
    taken: tuple[bool, ...]
    """Those of `own` whose vectors are taken from this piece."""
    attended: tuple[bool, ...]
    has_text: bool = True
    """False: the text had no token, and its last special token stands in for it."""


def windows(tokens: int, size: int, overlap: int = OVERLAP) -> list[tuple[int, int, int, int]]:
    """`(start, stop, first, last)`: tokens [start, stop) are read together, [first, last) are taken from there.

    As few windows of at most `size` tokens as will do, and these no longer than needed.
    """
    if tokens <= size:
        return [(0, tokens, 0, tokens)]
    overlap = min(overlap, size // 2)
    count = -(-(tokens - overlap) // (size - overlap))
    length = -(-(tokens + (count - 1) * overlap) // count)
    starts = [i * (tokens - length) // (count - 1) for i in range(count)]
    edges = [0, *((starts[i] + length + starts[i + 1]) // 2 for i in range(count - 1)), tokens]
    return [(starts[i], starts[i] + length, edges[i], edges[i + 1]) for i in range(count)]


def pieces_of(
    tokens: Sequence[int],
    before: Sequence[int],
    after: Sequence[int],
    size: int,
    skipped: Collection[int] = (),
    overlap: int = OVERLAP,
) -> list[Piece]:
    """The pieces of a text, `size` tokens at most with those put before and after it.

    A text of which nothing is left keeps its last special token as its one vector: a page stays in the index.
    """
    taken_at_all = any(token not in skipped for token in tokens)
    pieces: list[Piece] = []
    for start, stop, first, last in windows(len(tokens), size - len(before) - len(after), overlap):
        ids = (*before, *tokens[start:stop], *after)
        own = [False] * len(ids)
        taken = [False] * len(ids)
        for place, token in enumerate(tokens[start:stop], start=start):
            at = place - start + len(before)
            own[at] = token not in skipped
            taken[at] = own[at] and first <= place < last
        if not any(own):  # nothing but skipped tokens: attention must still be measured on something
            own[-1] = True
            taken[-1] = not taken_at_all and not pieces
        pieces.append(Piece(ids, tuple(own), tuple(taken), (True,) * len(ids), taken_at_all))
    return pieces
