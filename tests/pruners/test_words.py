"""idf and stopwords: what a text encoder's tokens spell decides."""

import math

import pytest
import torch

from pruners import Page, PrunerError, parse, prune, unit
from pruners.core.errors import PruneBoardError


def text(tokens: list[float], idle: list[float] | None = None, name: str = "page") -> Page:
    words = {"token": torch.tensor([tokens]), "stopword": torch.tensor([idle or [0.0] * len(tokens)])}
    return Page(name, unit(torch.randn(len(tokens), 4)), None, words)


def test_rare_tokens_of_the_calibration_pages_first() -> None:
    # 7 is on all three pages, 9 on two (twice on one: that counts once), 12 on one, 3 and 900 on none
    pages = [text([7, 9, 9]), text([7, 9]), text([7, 12])]
    method = parse("idf").calibrate(pages, [0.5])
    assert method.score(text([7, 9, 12, 3, 900])).tolist() == pytest.approx(
        [0, math.log(4 / 3), math.log(2), math.log(4), math.log(4)]
    )
    kept = prune(method, text([7, 900, 9, 12, 3, 7]), [0.5]).kept(0)
    assert kept.tolist() == [1, 4, 3], "tokens as rare as each other in the order of the page"
    assert parse("idf").weights is None, "calibrate returns a new instance"


def test_idf_says_what_it_needs() -> None:
    with pytest.raises(PrunerError, match="no frequencies yet; call calibrate"):
        prune(parse("idf"), text([1, 2]), [0.5])
    with pytest.raises(PruneBoardError, match="at least one calibration page"):
        parse("idf").calibrate([], [0.5])
    patches = Page("patches", unit(torch.randn(4, 4)), (2, 2), {"ink": torch.ones(1, 4)})
    for name, signal in (("idf", "token"), ("stopwords", "stopword")):
        with pytest.raises(PrunerError, match=f"needs {signal}, which page 'patches' does not have"):
            prune(parse(name), patches, [0.5])


def test_stop_words_are_kept_only_when_all_others_are() -> None:
    page = text(list(range(8)), [1, 0, 1, 1, 0, 0, 1, 0])
    orders = {tuple(prune(parse("stopwords"), page, [0.5], trial=trial).kept(0).tolist()) for trial in range(20)}
    assert {frozenset(order) for order in orders} == {frozenset([1, 4, 5, 7])}
    assert len(orders) > 1, "at random among the words"
    more = prune(parse("stopwords"), page, [0.75]).kept(0).tolist()
    assert {1, 4, 5, 7} < set(more)
    assert len(more) == 6


def test_adaptive_thresholds_can_stand_on_idf() -> None:
    pages = [text([7, 9, 9]), text([7, 9]), text([7, 12])]
    method = parse("adaptive(idf)").calibrate(pages, [0.5])
    assert prune(method, text([7, 900, 7, 7]), [0.5]).kept(0).tolist() == [1]
