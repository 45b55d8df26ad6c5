"""agc and anchorfold_indegree: anchors by attention, everything else folded into the nearest, weighted."""

import numpy as np
import pytest
import torch

from pruners import Page, PrunerError, parse, prune, synthetic_page
from pruners.core.errors import PruneBoardError
from pruners.core.groups import weighted_means
from tests.pruners.test_merging_methods import directions, same_set, vectors


def test_anchors_are_the_most_attended_and_means_are_weighted_by_attention() -> None:
    # 0 and 90 degrees lead; (3·0° + 1·40°) and (4·90° + 2·60°) as vectors, by hand
    signals = {"eos": torch.tensor([[9.0, 9, 9, 9], [3, 1, 4, 2]]), "indegree": torch.tensor([[3.0, 1, 4, 2]])}
    page = Page("four", directions([0.0, 40, 90, 60]), None, signals)
    x = page.vectors
    wanted = torch.stack([3 * x[0] + x[1], 4 * x[2] + 2 * x[3]])
    wanted /= wanted.norm(dim=1, keepdim=True)
    assert same_set(vectors("agc", page, 0.5), wanted)
    assert same_set(vectors("anchorfold_indegree(layers=0)", page, 0.5), wanted)
    assert not same_set(vectors("merge(eos, how=absorb)", page, 0.5), wanted), "which counts all patches alike"


@pytest.mark.parametrize(("text", "signal"), [("agc", "eos"), ("anchorfold_indegree(layers=1-2)", "indegree")])
@pytest.mark.parametrize("budget", [0.02, 0.1, 0.3])
def test_they_equal_a_plain_loop_in_float64(text: str, signal: str, budget: float) -> None:
    page = synthetic_page(12, 10, dim=16)
    values = page.signals[signal].double()
    weights = (values[-1] if signal == "eos" else values[1:3].mean(0)).tolist()
    x = page.vectors.double().numpy()
    result = vectors(text, page, budget)
    anchors = sorted(range(len(x)), key=lambda j: (-weights[j], j))[: len(result)]
    sums = {anchor: np.zeros(16) for anchor in anchors}
    for j in range(len(x)):
        nearest = j if j in sums else max(sorted(anchors), key=lambda anchor: float(x[anchor] @ x[j]))
        sums[nearest] += weights[j] * x[j]
    wanted = torch.from_numpy(np.stack([total / np.linalg.norm(total) for total in sums.values()])).float()
    assert same_set(result, wanted)


def test_a_group_without_attention_has_its_plain_mean() -> None:
    made = weighted_means(torch.eye(4), np.array([0, 0, 1, -1]), np.array([0.0, 0, 5, 7]), 2, renormalize=False)
    assert made.tolist() == [[0.5, 0.5, 0, 0], [0, 0, 1, 0]]
    page = Page("unseen", directions([0.0, 10, 90, 100]), None, {"eos": torch.zeros(1, 4)})
    assert same_set(vectors("agc", page, 0.25), directions([50.0]))


def test_weights_need_a_method_that_has_scores_on_a_scale() -> None:
    with pytest.raises(PruneBoardError, match="weighted=true needs scores on a scale, which kcenter does not give"):
        parse("merge(kcenter, how=absorb, weighted=true)")
    with pytest.raises(PruneBoardError, match="which adaptive does not give"):
        parse("merge(adaptive(eos), weighted=true)")


def test_nothing_is_repaired_where_attention_is_no_number() -> None:
    page = Page("broken", directions([0.0, 90]), None, {"eos": torch.tensor([[1.0, torch.nan]])})
    with pytest.raises(PrunerError, match="not finite"):
        prune(parse("agc"), page, [0.5])
