"""Which tokens of a text belong to stop words: words that say nothing by themselves, and what is no word at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def stop_words(text: str, tokens: Any) -> Sequence[bool]:
    """One answer a token, from a fast tokenizer's output for `text`, which knows the words that tokens are pieces of.

    Stop words are scikit-learn's English ones. A piece of a longer word is none, whatever it spells by itself.
    """
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    words = tokens.word_ids()
    idle = {None: True}
    for word in set(words) - {None}:
        start, stop = tokens.word_to_chars(word)
        spelled = text[start:stop].strip().casefold()
        idle[word] = spelled in ENGLISH_STOP_WORDS or not any(map(str.isalnum, spelled))
    return [idle[word] for word in words]
