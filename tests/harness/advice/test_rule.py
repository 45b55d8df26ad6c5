"""The rule of advice on rows made by hand: who qualifies, who is first, and what would have to give."""

from __future__ import annotations

import random
from dataclasses import replace

from harness.advice.advise import Basis, advise
from harness.advice.cost import QUERY_VECTORS, ScanRate, cost_of, measure_rate
from harness.advice.rule import GB, Asked, Candidate, choose, faults, front, why_barred, would_give
from harness.advice.words import rounded_up

MILLION = 1e6
BASIS = Basis("hand", "made-up", "toy", "visual", 2, 100, 50, 128)


def row(text: str, kb: float, mean: float, low: float, **more) -> Candidate:
    high = 2 * mean - low
    return Candidate(
        text, more.pop("budget", 0.1), 1000 * kb, mean, low, high, more.pop("status", "recomputed"), width=128, **more
    )


def test_a_mean_that_qualifies_is_not_enough() -> None:
    small, large = row("small", 4, 98.6, 97.9), row("large", 8, 98.5, 98.1)
    asked = Asked(98, MILLION)
    assert choose([small, large], asked) is large
    (fault,) = faults(small, asked)
    assert fault.kind == "keep"
    assert "97.9, is below 98, though its mean, 98.6, is not" in fault.words


def test_the_cheapest_first_then_the_higher_bound_then_the_text() -> None:
    asked = Asked(95, MILLION)
    a, b, c = row("a", 4, 97, 96), row("b", 4, 98, 97), row("c", 4, 98, 97)
    assert choose([a, c, b], asked) is b  # as small as a, and surer; as sure as c, and first by its text
    assert choose([a, c, b, row("z", 3.999, 96, 95)], asked) == row("z", 3.999, 96, 95)  # a bound that is just met
    twice = [row("b", 4, 98, 97, budget=0.2), b]
    assert choose(twice, asked) is b


def test_limits_are_met_or_named() -> None:
    asked = Asked(90, MILLION, max_gb=5, max_ms=5, vectors_only=True)
    met = row("met", 5, 99, 98, scan_ms=5.0)
    assert choose([met], asked) is met
    kinds = {
        "size": replace(met, own_bytes=5000.1),
        "time": replace(met, scan_ms=5.1),
        "signals": replace(met, needs=("eos",)),
        "keep": replace(met, low=89.99),
        "barred": replace(met, barred="diagnostic: it sees the queries"),
    }
    for kind, candidate in kinds.items():
        assert [fault.kind for fault in faults(candidate, asked)] == [kind]
        assert choose([candidate], asked) is None
    unknown = replace(met, scan_ms=None)
    assert [fault.words for fault in faults(unknown, asked)] == ["how long its scan takes is not known"]


def test_what_a_paper_reports_is_never_advised_and_mixed_status_is_said() -> None:
    reported = Candidate(
        "paper", 0.05, None, 99.9, None, None, "reported", barred=why_barred("reported", "", None, False, False)
    )
    measured = row("measured", 9, 99, 98.5)
    found = advise([reported, measured], BASIS, Asked(98, MILLION), None)
    assert found.chosen is not None
    assert found.chosen.candidate.text == "measured"
    assert found.statuses == {"recomputed": 1, "reported": 1}
    assert "1 recomputed, 1 reported (mixed: only measured ones are advised)" in str(found)
    assert "paper at 5 %, 99.9 %, size unknown: reported: a paper's figure" in str(found)
    alone = advise([reported], BASIS, Asked(98, MILLION), None)
    assert alone.chosen is None
    assert alone.would_give == ()
    assert "no row may be advised at all: reported" in str(alone)


def test_what_bars_a_row() -> None:
    assert why_barred("recomputed", "merging", None, True, True) == ""
    assert why_barred("recomputed", "diagnostic", None, True, True).startswith("diagnostic")
    assert why_barred("recomputed", "trained", None, True, True).startswith("trained")
    assert why_barred("unpinned", "merging", None, True, True).startswith("unpinned")
    assert why_barred("recomputed", "merging", "13/14", False, True) == "data sets are missing: 13/14"
    assert why_barred("recomputed", "merging", None, False, True) == "it has no interval"
    assert why_barred("recomputed", "merging", None, True, False) == "its bytes a page are not known"


def test_where_nothing_qualifies_it_says_what_would_have_to_give() -> None:
    small, large = row("small", 2, 93, 92.35), row("large", 20, 99, 98.4)
    asked = Asked(98, MILLION, max_gb=10)
    found = advise([small, large], BASIS, asked, None)
    assert found.chosen is None
    assert [(one.given_up, one.candidate.text) for one in found.would_give] == [
        (("keep",), "small"),
        (("size",), "large"),
    ]
    text = str(found)
    assert "--keep 92.3: small at 10 % keeps 92.3 % in 2 GB" in text  # rounded down: what is printed must be enough
    assert "--max-gb 20: large at 10 % keeps 98.4 % in 20 GB" in text
    # two limits that bind together: neither alone is enough
    both = [replace(one, scan_ms=50.0) for one in (large, row("huge", 30, 99, 98.9))]
    given = would_give(both, Asked(98, MILLION, max_gb=10, max_ms=5))
    assert [(one.given_up, one.candidate.text) for one in given] == [(("size", "time"), "large")]
    # and not even then
    given = would_give(both, Asked(99.5, MILLION, max_gb=10, max_ms=5))
    assert [(one.given_up, one.candidate.text) for one in given] == [(("keep", "size", "time"), "huge")]
    assert would_give(both, Asked(99.5, MILLION))[0].candidate.text == "huge"  # nothing is limited: the highest bound


def test_what_all_pages_share_is_there_once_however_many_they_are() -> None:
    book = row("book", 1, 99, 98.5, shared_bytes=4e9)  # 4 GB of codebooks
    plain = row("plain", 3, 99, 98.5)
    assert choose([book, plain], Asked(98, MILLION)) is plain  # 5 GB against 3
    assert choose([book, plain], Asked(98, 10 * MILLION)) is book  # 14 GB against 30
    assert front([book, plain], MILLION)[0] is plain
    assert front([book, plain], 10 * MILLION)[0] is book
    found = advise([book], BASIS, Asked(98, 10 * MILLION, max_gb=14), None)
    assert found.chosen is not None
    assert found.chosen.cost is not None
    assert found.chosen.cost.index_gb == 14.0
    assert "index: 1,000 bytes a page and 4,000,000,000 once for all pages, 14 GB" in str(found)
    assert choose([book], Asked(98, 10 * MILLION, max_gb=13.999)) is None


def test_only_limits_that_bind_are_named() -> None:
    large = row("large", 20, 99, 98.5, scan_ms=1.0, needs=("eos",))
    asked = Asked(98, MILLION, max_gb=10, max_ms=5, vectors_only=True)
    assert [one.given_up for one in would_give([large], asked)] == [("size", "signals")]


def test_a_row_that_keeps_nothing_for_sure_is_no_concession() -> None:
    assert would_give([row("poor", 1, 5, 0.04)], Asked(98, MILLION)) == []


def test_rows_that_were_all_checked_are_not_called_mixed() -> None:
    found = advise([row("a", 1, 99, 98.5), row("b", 2, 99, 98.5, status="verified")], BASIS, Asked(98, MILLION), None)
    assert "1 recomputed, 1 verified" in str(found)
    assert "mixed" not in str(found)


def test_limits_that_look_equal_have_more_digits() -> None:
    (fault,) = faults(row("just", 5.001, 99, 98.5), Asked(98, MILLION, max_gb=5))
    assert fault.words == "5.001 GB is more than 5 GB"


def test_round_numbers_are_enough_as_they_are_printed() -> None:
    for size in (*range(1000, 3000), *range(9_990, 10_110)):
        one = row("one", size / 1000, 99, 98.5)
        printed = rounded_up(size * MILLION / GB)
        assert choose([one], Asked(98, MILLION, max_gb=printed)) is one, size
        assert printed <= size * MILLION / GB * 1.01
    assert rounded_up(5.12) == 5.12


def test_what_is_printed_as_enough_is_enough() -> None:
    draw = random.Random(7)
    for _ in range(300):
        rows = [
            row(f"m{i}", draw.uniform(0.1, 60), 99, draw.uniform(80, 99.9), scan_ms=draw.uniform(1, 9))
            for i in range(6)
        ]
        asked = Asked(draw.uniform(85, 100), MILLION, max_gb=draw.uniform(0.05, 20))
        found = advise(rows, BASIS, asked, None)
        for line in str(found).splitlines() if found.chosen is None else ():
            words = line.split()
            if words[0] == "--keep" and "with" not in words:
                assert advise(rows, BASIS, replace(asked, keep=float(words[1].rstrip(":"))), None).chosen
            if words[0] == "--max-gb" and "with" not in words:
                assert advise(rows, BASIS, replace(asked, max_gb=float(words[1].rstrip(":"))), None).chosen


def test_a_front_answers_like_all_rows() -> None:
    draw = random.Random(3)
    rows = [
        row(
            f"m{draw.randrange(40)}",
            draw.choice((1, 2, 2, 4, 8, 8.5)),
            99,
            draw.choice((90, 95, 97, 98, 98.5)),
            budget=i / 999,
        )
        for i in range(1, 120)
    ]
    rows += [replace(rows[0], barred="diagnostic", low=100.0, own_bytes=1.0)]
    few = front(rows, MILLION)
    assert len(few) < 10
    for keep in (80, 90, 94, 97, 98, 98.2, 98.5, 99):
        for gb in (0.5, 1, 2, 3, 8, 9):
            asked = Asked(keep, MILLION, max_gb=gb)
            assert choose(few, asked) == choose(rows, asked)
            assert would_give(few, asked) == would_give(rows, asked)


def test_costs_by_hand() -> None:
    def rate(dim: int) -> ScanRate:
        return ScanRate(dim, QUERY_VECTORS, ns_per_vector=100.0 * dim / 128)

    one = row("one", 5, 99, 98, vectors_per_page=20.0, prune_ms=3.6)
    found = advise([one], BASIS, Asked(98, MILLION), rate)
    assert found.chosen is not None
    cost = found.chosen.cost
    assert cost is not None
    assert cost.index_gb == 5.0
    assert cost.decoded_gb == 20 * 128 * 4 / 1000
    assert cost.prune_cpu_hours == 1.0
    assert cost.scan_ms == 20 * 100  # a million pages of 20 vectors, 100 ns each
    few = advise([one], BASIS, Asked(98, MILLION, max_ms=3), rate, scanned=1000)
    assert few.chosen is not None
    assert few.chosen.candidate.scan_ms == 2.0
    assert "a first stage" in " ".join(found.limits())
    assert "what the first stage loses" in " ".join(few.limits())
    late = advise([one], BASIS, Asked(98, MILLION, max_ms=3), rate)
    assert "--max-ms 2000 (or --scan 1500: a first stage" in str(late)
    assert cost_of(replace(one, own_bytes=None), MILLION) is None
    narrow = advise([replace(one, width=64)], BASIS, Asked(98, MILLION), rate).chosen
    assert narrow is not None
    assert narrow.cost is not None
    assert (narrow.cost.decoded_gb, narrow.cost.scan_ms) == (20 * 64 * 4 / 1000, 20 * 50)


def test_the_rate_of_this_machine_grows_with_dimensions() -> None:
    small, large = measure_rate(64), measure_rate(2048)
    assert 0 < small.ns_per_vector < large.ns_per_vector
    assert "measured on this machine now" in small.words
