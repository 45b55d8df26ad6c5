"""`prune(method, page, budget=…)`: one page, one budget, vectors of any floating type."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from pruners import PruneBoardError, kcenter, kmeans, prune, sap, scorer
from pruners.core.page import Page


@scorer("first")
def first(page):
    """The patches in their order."""
    return -torch.arange(len(page)).float()


VECTORS = torch.nn.functional.normalize(torch.randn(40, 8, generator=torch.Generator().manual_seed(1)), dim=-1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_kept_vectors_are_the_given_ones_to_the_bit(dtype: torch.dtype) -> None:
    given = VECTORS.to(dtype)
    left = prune(first, given, budget=0.1)
    assert left.indices.tolist() == [0, 1, 2, 3]
    assert left.vectors.dtype == dtype
    assert torch.equal(left.vectors, given[:4])
    assert len(left) == 4


def test_numpy_goes_in_and_comes_out() -> None:
    given = VECTORS.numpy().astype(np.float16)
    left = prune("kcenter", given, budget=0.25)
    assert isinstance(left.vectors, np.ndarray)
    assert np.array_equal(left.vectors, given[left.indices])
    same = prune(kcenter(), Page("page", VECTORS.half().float()), budgets=[0.25])
    assert np.array_equal(left.indices, same.kept(0))


def test_a_method_that_merges_returns_new_vectors_and_no_indices(page: Page) -> None:
    left = prune(kmeans(renormalize=False), page, budget=0.1)
    assert left.indices is None
    assert torch.equal(left.vectors, prune(kmeans(renormalize=False), page, budgets=[0.1]).vectors[0])
    assert prune(kmeans, VECTORS.bfloat16(), budget=0.1).vectors.dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: prune(first, VECTORS), "budget=0.1, or budgets"),
        (lambda: prune(first, VECTORS, [0.1], budget=0.1), "one of the two"),
        (lambda: prune(first, VECTORS.int(), budget=0.1), r"not torch\.int32"),
        (lambda: prune(first, VECTORS.tolist(), budget=0.1), "not list"),
        (lambda: prune(len, VECTORS, budget=0.1), "len is no pruner yet: decorate it"),
        (lambda: prune("adaptive", VECTORS, budget=0.1), "adaptive needs of"),
        (lambda: prune(type(prune_class()), VECTORS, budget=0.1), "adaptive needs of"),
        (lambda: prune(sap, VECTORS, budget=0.1), "needs indegree, which page 'page' does not have"),
    ],
)
def test_mistakes_are_named_with_the_way_out(call, says: str) -> None:
    with pytest.raises(PruneBoardError, match=says):
        call()


def prune_class():
    from pruners import adaptive

    return adaptive(first())


def test_methods_are_names_of_the_package_whichever_file_was_imported_first() -> None:
    code = """
import sys, pruners
names = dir(pruners)
assert {"kmeans", "sap", "prune_then_merge", "prune", "scorer", "Page"} <= set(names), names
assert "torch" not in sys.modules, "a list must not load torch"
import pruners.kmeans, pruners.eos, pruners.controls
from pruners import kmeans, eos
assert kmeans.declaration.name == "kmeans" and eos.declaration.name == "eos", "a file hides the method of its name"
assert pruners.controls.__file__.endswith("controls.py")
assert all(hasattr(pruners, name) for name in names)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_name_is_an_attribute_error() -> None:
    import pruners

    with pytest.raises(AttributeError, match="no attribute 'kmens'"):
        pruners.kmens  # noqa: B018


def test_the_stub_for_type_checkers_names_what_there_is() -> None:
    import pruners

    stub = (Path(pruners.__file__).parent / "__init__.pyi").read_text()
    named = set(re.findall(r"(?: as |^)(\w+)(?:: Any)?$", stub, re.MULTILINE))
    assert set(pruners.__all__) <= named
    assert named <= set(dir(pruners)), "methods that no longer exist"
