"""`check_contract` catches what a single call cannot show."""

import pytest
import torch

from pruners import PrunerError, check_contract, parse, prune, reducer, scorer, synthetic_page


def test_a_pruner_that_keeps_state_is_caught() -> None:
    calls = []

    @scorer("moody")
    def moody(page):
        calls.append(1)
        return page.vectors[:, len(calls) % 2]

    with pytest.raises(PrunerError, match=r"'moody'.* differs from call to call"):
        check_contract(moody())


def test_a_reducer_whose_budgets_influence_each_other_is_caught() -> None:
    @reducer("entangled")
    def entangled(page):
        asked = []

        def at(k):
            asked.append(k)
            return page.vectors[:k] * len(asked)

        return at

    with pytest.raises(PrunerError, match=r"'entangled'.* the other budgets asked for"):
        check_contract(entangled())


def test_a_pruner_that_ignores_the_seed_is_caught() -> None:
    @scorer("unseeded")
    def unseeded(page):
        return torch.rand(len(page))

    with pytest.raises(PrunerError, match="draw random numbers from `rng` only"):
        check_contract(unseeded())


def test_a_signal_of_ones_own_is_made_up_too() -> None:
    @scorer("by_colour", needs=("colour",))
    def by_colour(page):
        return page.signals["colour"][0]

    assert [proof.counts[-1] for proof in check_contract(by_colour(), ["colour"])] == [192, 1, 2, 97, 60, 384, 1024]


def test_a_misspelt_signal_is_no_signal() -> None:
    @scorer("misspelt", needs=("indegre",))
    def misspelt(page):
        return page.signals["indegre"][0]

    with pytest.raises(PrunerError, match=r"needs 'indegre', which no backbone here gives. Did you mean 'indegree'\?"):
        check_contract(misspelt())


def test_a_signal_that_was_not_declared_is_not_there() -> None:
    @scorer("greedy", needs=("eos",))
    def greedy(page):
        return page.signals["eos"][0] + page.signals["ink"][0]

    with pytest.raises(PrunerError, match=r"'greedy'.* reads the signal 'ink' without declaring it; write needs="):
        check_contract(greedy())
    with pytest.raises(PrunerError, match="reads the signal 'ink'"):
        prune(greedy(), synthetic_page(4, 4), [0.5])


def test_a_grid_that_was_not_declared_is_not_there() -> None:
    @scorer("by_row")
    def by_row(page):
        rows, cols = page.grid
        return torch.arange(rows * cols)

    with pytest.raises(PrunerError, match=r"if it uses page.grid, it must declare needs=\('grid',\)"):
        check_contract(by_row())


@pytest.mark.parametrize("text", ["random", "kmeans", "tome", "voronoi", "docpruner", "oracle"])
def test_built_in_methods_pass(text: str) -> None:
    check_contract(parse(text))
