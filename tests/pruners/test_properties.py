"""Every method, on pages of 1 to 5,000 vectors and on broken ones: it keeps its contract or gives the named error."""

import functools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pruners import SIGNALS, Page, Pruner, PrunerError, Subset, Window, catalogue, keep_count, parse, prune, unit

BUDGETS = (1e-6, 0.05, 0.10, 0.20, 1.0)
NEED_A_PART = {"adaptive": "adaptive(eos)", "merge": "merge(sap)"}
NAMES = [NEED_A_PART.get(name, name) for name in catalogue()]
QUADRATIC = {
    *("adamerge", "agglomerative", "attn_fps", "docmerger", "dominance", "kcenter", "kmeans", "mmr", "token_pooling"),
    *("fair_ward", "tome", "voronoi", "ward"),
}
DIM = 16


@functools.cache
def ready(text: str) -> Pruner:
    """The method with a window and calibrated, as an evaluation would run it."""
    calibration = [make(300 + i, "usual", i) for i in range(4)]
    return parse(text).with_window(Window(1, 3)).calibrate(calibration, BUDGETS)


def make(n: int, kind: str, seed: int) -> Page:
    rng = np.random.default_rng([n, seed])
    rows = next(r for r in range(int(n**0.5), 0, -1) if n % r == 0)
    vectors = unit(torch.from_numpy(rng.standard_normal((n, DIM)).astype(np.float32)))
    signals = {name: torch.from_numpy(rng.exponential(size=(4, n)).astype(np.float32)) for name in SIGNALS}
    if kind == "equal scores":
        signals = {name: torch.ones(4, n) for name in SIGNALS}
    if kind == "equal vectors":
        vectors = vectors[:1].repeat(n, 1)
    if kind in ("nan", "inf"):
        for values in signals.values():
            values[:, n // 2] = float(kind)
    return Page(f"page-{n}-{kind}", vectors, (rows, n // rows), signals)


def keeps_its_contract(pruner: Pruner, page: Page) -> None:
    queries = [make(7, "usual", 9).vectors] if pruner.declaration.diagnostic else None
    broken = page.id.endswith(("nan", "inf")) and set(pruner.needs) & set(SIGNALS) and pruner.name != "random_nonblank"
    if broken:
        with pytest.raises(PrunerError, match=rf"pruner '.*', page '{page.id}': .* not finite"):
            prune(pruner, page, BUDGETS, queries=queries)
        return
    result = prune(pruner, page, BUDGETS, queries=queries)  # `prune` checks counts, indices, widths and norms
    n = len(page)
    counts = result.counts if isinstance(result, Subset) else tuple(len(v) for v in result.vectors)
    if pruner.budget_kind == "fixed":
        assert counts == tuple(keep_count(budget, n) for budget in BUDGETS)
    assert list(counts) == sorted(counts), "a larger budget never keeps less"
    if isinstance(result, Subset):
        assert counts[-1] == n
        assert sorted(result.order.tolist()) == list(range(n)), "γ = 1 is the page itself"


kinds = st.sampled_from(["usual", "usual", "equal scores", "equal vectors", "nan", "inf"])


@pytest.mark.parametrize("text", NAMES)
@settings(max_examples=25)
@given(data=st.data())
def test_every_method_keeps_its_contract_on_small_pages(text: str, data: st.DataObject) -> None:
    pruner = ready(text)
    n = data.draw(st.one_of(st.integers(1, 12), st.integers(1, 200)))
    keeps_its_contract(pruner, make(n, data.draw(kinds), data.draw(st.integers(0, 3))))


@pytest.mark.slow
@pytest.mark.parametrize("text", NAMES)
def test_every_method_keeps_its_contract_up_to_5000_vectors(text: str) -> None:
    pruner = ready(text)
    examples = 3 if pruner.name in QUADRATIC else 20

    @settings(max_examples=examples)
    @given(n=st.integers(1000, 5000), kind=kinds)
    def check(n: int, kind: str) -> None:
        keeps_its_contract(pruner, make(n, kind, 0))

    check()
    keeps_its_contract(pruner, make(5000, "usual", 0))


def test_a_control_for_the_property_itself() -> None:
    """A method that loses one vector must not pass."""
    from pruners import scorer

    @scorer("short")
    def short(page):
        return page.vectors[1:, 0]

    with pytest.raises(PrunerError, match="expected one number a patch"):
        keeps_its_contract(short(), make(30, "usual", 0))
