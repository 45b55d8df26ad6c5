"""What libraries call token pooling is three methods; each of ours is held to the library whose it is."""

import harness.compat  # noqa: F401

import numpy as np
import pytest
import torch
from scipy.cluster.hierarchy import fcluster, linkage

from pruners import Page, parse, prune, synthetic_page, unit
from pruners.kernels import trees
from tests.pruners.test_merging_methods import means, same_set, vectors

FACTORS = [4, 9, 25]


@pytest.fixture(scope="module")
def page() -> Page:
    return synthetic_page(15, 20, dim=24)


def colpali_engine(page: Page, factor: int) -> torch.Tensor:
    from colpali_engine.compression.token_pooling import HierarchicalTokenPooler

    return HierarchicalTokenPooler().pool_embeddings([page.vectors], pool_factor=factor)[0]


def sentence_transformers(page: Page, factor: int, normalize: bool = True) -> torch.Tensor:
    from sentence_transformers.multi_vector_encoder.modules.token_pooling import HierarchicalTokenPooling

    pooling = HierarchicalTokenPooling(factor, num_protected_tokens=0, normalize_embeddings=normalize)
    return pooling.pool([page.vectors])[0]


def pylate(page: Page, factor: int) -> torch.Tensor:
    """`ColBERT.pool_embeddings_hierarchical` of lightonai/pylate up to 1.3.4, in float64 and without protected tokens.

    PyLate itself asks for other versions of sentence-transformers and transformers than this project. It gives
    `hierarchy.linkage` the square matrix 1 - cos, cuts it by `maxclust`, and takes plain means.
    """
    x = page.vectors.double()
    labels = fcluster(linkage((1 - x @ x.T).numpy(), method="ward"), max(len(x) // factor, 1), criterion="maxclust")
    return torch.stack([x[labels == label].mean(0) for label in range(1, labels.max() + 1)]).float()


@pytest.mark.parametrize("factor", FACTORS)
def test_token_pooling_equals_colpali_engines_pooler(page: Page, factor: int) -> None:
    theirs = colpali_engine(page, factor)
    assert len(theirs) == 300 // factor
    assert same_set(vectors("token_pooling", page, len(theirs) / 300), theirs)
    plain_ward = means(page, trees.cut(trees.ward(page.vectors.numpy()), len(theirs)))
    assert not same_set(unit(plain_ward), theirs), "the engine clusters rows of the similarity matrix, not the vectors"


@pytest.mark.parametrize("factor", FACTORS)
def test_token_pooling_without_unit_means_equals_pylates(page: Page, factor: int) -> None:
    theirs = pylate(page, factor)
    assert same_set(vectors("token_pooling(renormalize=false)", page, len(theirs) / 300), theirs)


@pytest.mark.parametrize("factor", FACTORS)
def test_ward_equals_sentence_transformers_pooling(page: Page, factor: int) -> None:
    theirs = sentence_transformers(page, factor)
    assert len(theirs) == 300 // factor
    assert same_set(vectors("ward", page, len(theirs) / 300), theirs)
    plain = sentence_transformers(page, factor, normalize=False)
    assert same_set(vectors("ward(renormalize=false)", page, len(theirs) / 300), plain)


@pytest.mark.parametrize("factor", FACTORS)
def test_the_three_are_not_the_same(page: Page, factor: int) -> None:
    engine, ours, lates = colpali_engine(page, factor), sentence_transformers(page, factor), pylate(page, factor)
    assert not same_set(engine, ours)
    assert not same_set(engine, lates)
    assert same_set(engine, unit(lates)), "PyLate's clusters are the engine's; only the length of the means differs"
    assert not same_set(ours, unit(lates))


def test_ward_takes_the_distances_for_euclidean_ones() -> None:
    """By hand: a and b join at .2; c would join them at sqrt((2·1.2² + 2·1.2² - .2²) / 3) = 1.38, so it joins d at 1.3.

    Average linkage would have c join a and b at 1.2.
    """
    gaps = np.array([[0, 0.2, 1.2, 1.25], [0.2, 0, 1.2, 1.25], [1.2, 1.2, 0, 1.3], [1.25, 1.25, 1.3, 0]])
    values, basis = np.linalg.eigh(1 - gaps)
    assert values.min() > 0, "unit vectors with these cosines exist"
    four = Page("four", torch.from_numpy(basis * np.sqrt(values)).float())
    assert trees.cut(trees.ward_cosine(four.vectors.numpy()), 2).tolist() == [0, 0, 1, 1]
    assert trees.cut(trees.average_cosine(four.vectors.numpy()), 2).tolist() == [0, 0, 0, 1]
    halves = torch.stack([four.vectors[:2].mean(0), four.vectors[2:].mean(0)])
    assert same_set(prune(parse("ward"), four, [0.5]).vectors[0], unit(halves))
