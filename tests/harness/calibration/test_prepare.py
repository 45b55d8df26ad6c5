"""Methods made ready: what they learn does not depend on where they learn it."""

import os
from dataclasses import dataclass

import torch

from harness.evaluation.methods import Method, choose_methods, prepare
from pruners import Page, Scorer, Window, learned, scorer, synthetic_page
from pruners.hpc import Hpc

BUDGETS = (0.1, 0.2)
PAGES = [synthetic_page(16, 16, seed=seed) for seed in range(3)]


def test_other_processes_learn_the_same() -> None:
    chosen = choose_methods(["sap_adaptive", "hpc(codes=16)", "eos", "docpruner", "hpc(codes=2000)"], None)
    here = prepare(chosen, Window(1, 3), PAGES, BUDGETS)
    there = prepare(chosen, Window(1, 3), PAGES, BUDGETS, workers=2)
    assert [m.text for m in here] == [m.text for m in there] == [m.text for m in chosen]
    assert [m.failure for m in here] == [m.failure for m in there]
    assert "learns 2000 codes" in str(there[4].failure)
    for one, other in zip(here, there, strict=True):
        assert one.pruner == other.pruner
    for one, other in ((here[0], there[0]), (here[3], there[3])):
        assert one.pruner.inner.thresholds == other.pruner.inner.thresholds
        assert set(one.pruner.inner.thresholds) == set(BUDGETS)
    assert isinstance(here[1].pruner, Hpc)
    assert isinstance(there[1].pruner, Hpc)
    assert here[1].pruner.codebook is not None
    assert torch.equal(here[1].pruner.codebook, there[1].pruner.codebook)


@scorer("where_it_learned")
@dataclass(frozen=True)
class WhereItLearned(Scorer):
    process: int | None = learned()

    def calibrate(self, pages: list[Page], budgets: tuple[float, ...]) -> "WhereItLearned":
        return self.replace(process=os.getpid())

    def score(self, page: Page) -> torch.Tensor:
        return page.vectors[:, 0]


def test_a_method_of_a_users_own_learns_here() -> None:
    """Its state may be anything, also what cannot be sent between processes."""
    methods = [Method("own", WhereItLearned(), 1), *choose_methods(["docpruner", "hpc(codes=16)"], None)]
    assert prepare(methods, None, PAGES, BUDGETS, workers=2)[0].pruner.process == os.getpid()
