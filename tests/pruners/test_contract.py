"""What an author writes, and what the harness makes of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from pruners import (
    Merged,
    Page,
    Pruner,
    PrunerError,
    Reducer,
    Scorer,
    Subset,
    parse,
    prune,
    pruner,
    reducer,
    scorer,
    synthetic_page,
    unit,
)
from pruners.core.apply import calibrate
from pruners.core.context import PruneContext
from pruners.core.errors import CatalogError


def test_a_function_becomes_a_pruner_whose_defaults_are_its_hyper_parameters(page: Page) -> None:
    @scorer("scaled")
    def scaled(page, factor=2.0):
        return page.vectors[:, 0] * factor

    assert scaled() == scaled(factor=2.0) != scaled(factor=3.0)
    assert str(scaled(factor=-1.0)) == "scaled(factor=-1.0)"
    best = prune(scaled(), page, [0.1]).order[0]
    worst = prune(scaled(factor=-1.0), page, [0.1]).order[0]
    assert page.vectors[best, 0] == page.vectors[:, 0].max()
    assert page.vectors[worst, 0] == page.vectors[:, 0].min()


def test_a_frozen_dataclass_is_the_same_thing(page: Page) -> None:
    @scorer("scaled_class")
    @dataclass(frozen=True)
    class Scaled(Scorer):
        factor: float = 2.0

        def score(self, page: Page) -> torch.Tensor:
            return page.vectors[:, 0] * self.factor

    assert prune(Scaled(), page, [0.5]).order[0] == int(page.vectors[:, 0].argmax())


def test_a_mutable_class_or_an_argument_without_default_is_refused() -> None:
    with pytest.raises(CatalogError, match="frozen=True"):

        @scorer("mutable")
        @dataclass
        class Mutable(Scorer):
            factor: float = 2.0

    with pytest.raises(CatalogError, match="'factor' needs a default"):

        @scorer("bare")
        def bare(page, factor):
            return page.vectors[:, 0]


def test_equal_scores_keep_the_lower_patch_index() -> None:
    @scorer("flat")
    def flat(page):
        return torch.tensor([1.0, 3.0, 3.0, 1.0, 3.0])

    page = Page("p", unit(torch.randn(5, 4)))
    assert prune(flat(), page, [0.4]).kept(0).tolist() == [1, 2]
    assert prune(flat(), page, [1.0]).order.tolist() == [1, 2, 4, 0, 3]

    @scorer("two_values")
    def two_values(page):
        return (torch.arange(len(page)) % 2).float()

    long = Page("long", torch.ones(3000, 2))  # sorts are stable by chance on short inputs
    assert prune(two_values(), long, [1.0]).order.tolist() == [*range(1, 3000, 2), *range(0, 3000, 2)]


def test_budgets_nest_and_come_from_one_call(page: Page) -> None:
    calls = []

    @scorer("counted")
    def counted(page):
        calls.append(page.id)
        return page.vectors[:, 0]

    result = prune(counted(), page, [0.05, 0.1, 0.2, 1.0])
    assert isinstance(result, Subset)
    assert result.counts == (3, 5, 10, 48)
    assert len(calls) == 1


def test_a_reducer_may_share_its_work_between_budgets(page: Page) -> None:
    prepared = []

    @reducer("chunks")
    def chunks(page):
        prepared.append(page.id)
        return lambda k: torch.stack([c.mean(0) for c in page.vectors.tensor_split(k)])

    result = prune(chunks(), page, [0.05, 0.1, 1.0])
    assert isinstance(result, Merged)
    assert [len(v) for v in result.vectors] == [3, 5, 48]
    assert len(prepared) == 1
    assert torch.equal(result.vectors[2], page.vectors)  # nothing to merge at γ = 1


def test_random_numbers_depend_on_seed_trial_and_page_id_alone() -> None:
    @scorer("noise")
    def noise(page, rng):
        return torch.from_numpy(rng.random(len(page)))

    a, b = synthetic_page(8, 6), synthetic_page(8, 6, seed=1)
    order = prune(noise(), a, [1.0]).order
    prune(noise(), b, [1.0])  # another page in between changes nothing
    assert np.array_equal(order, prune(noise(), a, [0.1, 1.0]).order)
    renamed = Page(a.id, b.vectors, b.grid, b.signals)
    assert np.array_equal(order, prune(noise(), renamed, [1.0]).order)
    for other in (
        prune(noise(), a, [1.0], trial=1),
        prune(noise(), a, [1.0], seed=43),
        prune(noise(), b, [1.0]),
    ):
        assert not np.array_equal(order, other.order)
    assert noise().trials == 5


def test_a_reducer_class_can_snap_its_budget(page: Page) -> None:
    @reducer("halves", budget="snapped")
    @dataclass(frozen=True)
    class Halves(Reducer):
        def count(self, page: Page, budget: float) -> int:
            return 2 if budget < 1 else len(page)

        def reduce(self, page: Page, k: int) -> torch.Tensor:
            return torch.stack([half.mean(0) for half in page.vectors.chunk(2)])

    assert [len(v) for v in prune(Halves(), page, [0.1, 1.0]).vectors] == [2, 48]
    with pytest.raises(PrunerError, match=r"budget 0\.02: returned 2 vectors; expected 1 of 48"):
        prune(Halves(), page, [0.02])  # snapping up would buy quality with budget


def test_a_composition_lets_its_parts_learn_and_stays_as_it_is_otherwise() -> None:
    """One that says nothing of calibration. The threshold of a part is the quantile of its z-scores, by numpy."""

    @pruner("both_of", output="subset", budget="adaptive")
    @dataclass(frozen=True)
    class BothOf(Pruner):
        first: Pruner
        second: Pruner
        weight: float = 0.5

        def prune(self, page: Page, budgets: Sequence[float], context: PruneContext) -> Subset | Merged:
            return self.first.prune(page, budgets, context)

    pages = [synthetic_page(8, 6, seed=seed) for seed in range(4)]
    untrained = BothOf(parse("adaptive(eos)"), parse("ink"), weight=0.25)
    with pytest.raises(PrunerError, match="was not calibrated"):
        prune(untrained, pages[0], [0.1])
    trained = calibrate(untrained, pages, [0.1, 0.2])
    attention = [page.signals["eos"][-1].double().numpy() for page in pages]
    z = np.concatenate([(a - a.mean()) / a.std() for a in attention])
    assert trained.first.thresholds == pytest.approx({0.1: np.quantile(z, 0.9), 0.2: np.quantile(z, 0.8)})
    kept = sum(prune(trained, page, [0.1]).counts[0] for page in pages)
    assert kept == (z > np.quantile(z, 0.9)).sum()
    assert (trained.second, trained.weight) == (untrained.second, 0.25)
    assert untrained.first.thresholds is None, "the one that was there has learned nothing"
    nothing_to_learn = BothOf(parse("eos"), parse("ink"))
    assert calibrate(nothing_to_learn, pages, [0.1]) == nothing_to_learn
