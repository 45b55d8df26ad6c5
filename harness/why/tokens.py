"""The words behind vectors: the tokens of a query, and those of a page that a text encoder read.

They come from the backbone's own tokenizer. A backbone of one's own may say them itself with a method
`query_tokens(text)`; where nobody knows them, tokens are numbered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pruners.core.errors import PruneBoardError

Span = tuple[int, int]
"""Where a token begins and ends in a text."""
WORD_MARKS = ("Ġ", "▁")
"""What tokenizers put before a token that begins a word."""


@dataclass(frozen=True)
class Token:
    """`begins`: a word begins with it, so that there is a space before. `template`: it is not of the query's text."""

    text: str
    begins: bool = True
    template: bool = False


def query_tokens(backbone: Any, text: str, count: int) -> list[Token]:
    """The tokens of a query, one for each of its `count` vectors."""
    from harness.backbones.base import EngineBackbone
    from harness.backbones.text_encoder import TextBackbone

    found: list[Token] = []
    if isinstance(backbone, EngineBackbone):
        inputs = backbone.query_inputs([text])
        ids = inputs["input_ids"][0][inputs["attention_mask"][0].bool()].tolist()
        found = _read(backbone.processor.tokenizer, ids, backbone.query_prefix)
    elif isinstance(backbone, TextBackbone):
        pieces = [backbone.use.as_query(piece) for piece in backbone._pieces(text, backbone.use.query_marker)]
        ids = [token for piece in pieces for token, taken in zip(piece.ids, piece.taken, strict=True) if taken]
        found = _read(backbone.tokenizer, ids, "")
    elif hasattr(backbone, "query_tokens"):
        found = [Token(str(word)) for word in backbone.query_tokens(text)]
    return found if len(found) == count else numbered(count)


def numbered(count: int) -> list[Token]:
    """For want of words."""
    return [Token(f"token {i + 1}") for i in range(count)]


def runs(pairs: Sequence[tuple[Token, float]]) -> list[tuple[int, Token, float, int]]:
    """Tokens, each with its place, what it lost and how often it comes: equal ones of the template in a row are one."""
    found: list[tuple[int, Token, float, int]] = []
    for place, (token, lost) in enumerate(pairs):
        if found and token.template and found[-1][1] == token:
            first, _, sum_lost, count = found[-1]
            found[-1] = (first, token, sum_lost + lost, count + 1)
        else:
            found.append((place, token, float(lost), 1))
    return found


def page_spans(backbone: Any, text: str, count: int) -> list[Span]:
    """Where the tokens of a page's text lie in it: those that are vectors, in their order."""
    from harness.backbones.text_encoder import TextBackbone

    if not isinstance(backbone, TextBackbone):
        raise PruneBoardError("only text encoders of this project know where in a text their tokens lie")
    read = backbone.tokenizer(
        text, add_special_tokens=False, truncation=False, padding=False, verbose=False, return_offsets_mapping=True
    )
    pairs = zip(read["input_ids"], read["offset_mapping"], strict=True)
    spans = [(int(start), int(stop)) for token, (start, stop) in pairs if token not in backbone.use.skipped]
    if not spans and count == 1:  # a page without text is indexed by its last special token
        return [(0, 0)]
    if len(spans) != count:
        raise PruneBoardError(f"the text has {len(spans)} tokens and the page {count} vectors: it is not what was read")
    return spans


def _read(tokenizer: Any, ids: Sequence[int], prefix: str) -> list[Token]:
    raw = tokenizer.convert_ids_to_tokens(list(ids))
    special = set(tokenizer.all_special_ids)
    marked = any(token.startswith(WORD_MARKS) for token in raw)
    before = len(tokenizer(prefix.strip(), add_special_tokens=False)["input_ids"]) if prefix else 0
    own = 0
    found = []
    for token, number in zip(raw, ids, strict=True):
        # a word that the tokenizer does not know is special, and yet of the query's text
        template = number in special and number != tokenizer.unk_token_id
        if not template:
            own += 1
            template = own <= before
        begins = token.startswith(WORD_MARKS) if marked else not token.startswith("##")
        shown = token.removeprefix("##").lstrip("".join(WORD_MARKS)) if number in special else ""
        shown = shown or tokenizer.decode([number]).strip().removeprefix("##") or token.lstrip("".join(WORD_MARKS))
        found.append(Token(shown or " ", begins, template))
    return found
