"""Every broken promise is an error that names the pruner, the page, what came back and what was expected."""

import numpy as np
import pytest
import torch

from pruners import Merged, Page, Pruner, PrunerError, Subset, prune, reducer, scorer
from pruners.core.apply import checked
from pruners.core.contract import Declaration


class Fixed(Pruner):
    """Stands for any method; its results are given by the test."""

    declaration = Declaration("fixed_one")
    renormalize = False

    def __str__(self) -> str:
        return "fixed_one"


def vectors(k: int, width: int = 32) -> torch.Tensor:
    return torch.nn.functional.normalize(torch.randn(k, width), dim=-1)


@pytest.mark.parametrize(
    ("result", "complaint"),
    [
        (Subset(np.arange(48), (4,)), "returned 4 vectors; expected 5 of 48"),
        (Subset(np.arange(48), (6,)), "returned 6 vectors; expected 5 of 48"),
        (Subset(np.array([0, 1, 2, 2, 3]), (5,)), "returned patch 2 2 times; expected once"),
        (Subset(np.array([0, 1, 2, 3, 48]), (5,)), "returned patch 48; expected patches from 0 to 47"),
        (Subset(np.array([0, 1, 2, 3, -1]), (5,)), "returned patch -1"),
        (Subset(np.arange(4), (5,)), "the order has 4 patches; expected at least 5"),
        (Subset(np.arange(48.0), (5,)), "integer array"),
        (Subset(np.arange(48), (5, 5)), "results for 2 budgets; expected 1"),
        (Merged((vectors(4),)), "returned 4 vectors; expected 5 of 48"),
        (Merged((vectors(5, 31),)), "width 31; expected 32"),
        (Merged((vectors(5).double(),)), r"torch\.float64 \[5, 32\]; expected a float32 tensor"),
        (Merged((vectors(5) * torch.tensor([[1.0], [1], [torch.nan], [1], [1]]),)), "not finite, the first is 2"),
        (Merged((vectors(5),) * 2), "results for 2 budgets; expected 1"),
        ([1, 2, 3], "returned list; expected Subset or Merged"),
    ],
)
def test_a_broken_result_is_named(page: Page, result: object, complaint: str) -> None:
    with pytest.raises(PrunerError, match=f"pruner 'fixed_one', page 'synthetic-8x6-0'.*{complaint}"):
        checked(Fixed(), page, [0.1], result)


def test_a_promised_unit_norm_is_checked_and_an_unpromised_one_is_not(page: Page) -> None:
    long = Merged((vectors(5) * torch.tensor([[1.0], [1], [1], [1.01], [1]]),))
    checked(Fixed(), page, [0.1], long)
    promising = Fixed()
    promising.renormalize = True
    with pytest.raises(PrunerError, match=r"vector 3 has norm 1\.01; expected 1"):
        checked(promising, page, [0.1], long)


@pytest.mark.parametrize(
    ("returned", "complaint"),
    [
        (lambda page: page.vectors, r"score\(\) returned a tensor \[48, 32\]; expected one number a patch"),
        (lambda page: None, r"score\(\) returned NoneType"),
        (lambda page: page.vectors[:, 0].log(), "scores are not finite, the first is nan at patch"),
        (lambda page: torch.full((48,), torch.inf), "48 of 48 scores are not finite"),
    ],
)
def test_broken_scores_are_named(page: Page, returned, complaint: str) -> None:
    @scorer("broken")
    def broken(page):
        return returned(page)

    with pytest.raises(PrunerError, match=f"pruner 'broken', page 'synthetic-8x6-0': .*{complaint}"):
        prune(broken(), page, [0.1])


def _write_in_place(page: Page) -> None:
    page.vectors.mul_(2)


def _write_through_numpy(page: Page) -> None:
    page.vectors.numpy()[0, 0] = 7


def _write_a_signal(page: Page) -> None:
    page.signals["eos"][0, 0] += 1


@pytest.mark.parametrize("write", [_write_in_place, _write_through_numpy, _write_a_signal])
def test_a_pruner_that_writes_into_the_page_is_caught(page: Page, write) -> None:
    @scorer("writer", needs=("eos",))
    def writer(page):
        write(page)
        return page.vectors[:, 1]

    with pytest.raises(PrunerError, match=r"pruner 'writer'.*wrote into the page"):
        prune(writer(), page, [0.1])


def test_a_crash_names_the_page_the_error_and_the_line(page: Page) -> None:
    @reducer("crashing")
    def crashing(page, k):
        return page.vectors[k * 1000]

    with pytest.raises(
        PrunerError, match=r"'crashing', page 'synthetic-8x6-0': failed with IndexError: .*test_apply\.py:"
    ):
        prune(crashing(), page, [0.1])


def test_a_missing_signal_is_refused_before_the_pruner_runs(page: Page) -> None:
    @scorer("hungry", needs=("indegree", "grid", "colour"))
    def hungry(page):
        raise AssertionError("must not run")

    bare = Page("bare", page.vectors, None, {"eos": page.signals["eos"]})
    with pytest.raises(
        PrunerError, match=r"'hungry' needs indegree, grid, colour, which page 'bare' .* \(it has: eos\)"
    ):
        prune(hungry(), bare, [0.1])


def test_only_a_diagnostic_may_see_queries(page: Page) -> None:
    from pruners import parse

    queries = [page.vectors[:2]]
    with pytest.raises(PrunerError, match="only a diagnostic may see queries"):
        prune(parse("eos"), page, [0.1], queries=queries)
    with pytest.raises(PrunerError, match="give it the page's gold queries"):
        prune(parse("oracle"), page, [0.1])
    assert not hasattr(page, "queries")
