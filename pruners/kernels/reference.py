"""What each kernel computes, in plain numpy: short, slow, and right at first sight. Nothing runs it but tests.

A function here has the name and the arguments of the kernel that it stands for.
"""

from __future__ import annotations

import numpy as np


def squares(rows: np.ndarray) -> np.ndarray:
    return (rows**2).sum(1)


def unit_rows(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def first_highest(row: np.ndarray) -> int:
    return int(row.argmax())


def faults(labels: np.ndarray, k: int) -> tuple[int, int]:
    outside = [i for i, label in enumerate(labels) if not -1 <= label < k]
    if outside:
        return outside[0], -1
    return -1, next((j for j in range(k) if j not in labels), -1)


def scales(vectors: np.ndarray, labels: np.ndarray, k: int, renormalize: bool) -> np.ndarray:
    groups = [vectors[labels == j] for j in range(k)]
    lengths = np.maximum([np.linalg.norm(group.sum(0)) for group in groups], 1e-12)
    return 1 / (lengths if renormalize else np.array([len(group) for group in groups]))


def merged(vectors: np.ndarray, labels: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return np.array([scale[j] * vectors[labels == j].sum(0) for j in range(len(scale))])


def cut(merges: np.ndarray, k: int) -> np.ndarray:
    n = len(merges) + 1
    clusters = {i: [i] for i in range(n)}
    for i, (a, b) in enumerate(merges[: n - k]):
        clusters[n + i] = clusters.pop(a) + clusters.pop(b)
    labels = np.empty(n, np.int64)
    for j, members in enumerate(sorted(clusters.values(), key=min)):
        labels[members] = j
    return labels


def euclidean(products: np.ndarray) -> np.ndarray:
    own = np.diag(products)
    squared = own[:, None] + own[None, :] - 2 * products
    squared[squared < 1e-12 * own.max()] = 0
    return np.sqrt(squared)[np.triu_indices(len(own), 1)]


def cosine_distances(vectors: np.ndarray) -> np.ndarray:
    gaps = 1 - unit_rows(vectors) @ unit_rows(vectors).T
    return np.where(gaps < 1e-6, 0, gaps)


def greedy_order(distance: np.ndarray, factor: np.ndarray, bonus: np.ndarray, start: int) -> np.ndarray:
    order = [start]
    while len(order) < len(factor):
        value = bonus + factor * distance[order].min(0)
        value[order] = -np.inf
        order.append(int(value.argmax()))
    return np.array(order)


def hull_order(vectors: np.ndarray, start: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    order, distances = [start], [np.inf]
    nearest = np.repeat(vectors[[start]].astype(np.float64), len(vectors), 0)  # the point of the hull that each follows
    while len(order) < count:
        squared = ((vectors - nearest) ** 2).sum(1)
        squared[squared < 1e-6] = 0
        squared[order] = -1
        order.append(int((squared >= (1 - 1e-5) * squared.max()).argmax()))
        distances.append(np.sqrt(squared[order[-1]]))
        for j, point in enumerate(nearest):
            step = vectors[order[-1]] - point
            part = np.clip((vectors[j] - point) @ step / max(step @ step, 1e-30), 0, 1)
            nearest[j] = point + part * step
    return np.array(order), np.array(distances)


def squared_distances(vectors: np.ndarray) -> np.ndarray:
    return ((vectors[:, None] - vectors[None, :]) ** 2).sum(-1)


def seed_centres(squared: np.ndarray, draws: np.ndarray) -> np.ndarray:
    n = len(squared)
    chosen = [int(draws[0, 0] * n)]
    for drawn in draws[1:]:
        nearest = squared[chosen].min(0).astype(np.float64)
        cumulative = nearest.cumsum()
        candidates = np.searchsorted(cumulative, drawn * cumulative[-1], side="right").clip(max=n - 1)
        after = np.minimum(nearest, squared[candidates]).sum(1)
        chosen.append(int(candidates[after.argmin()]))
    return np.array(chosen)


def lloyd(vectors: np.ndarray, centres: np.ndarray, max_iter: int, tolerance: float) -> np.ndarray:
    labels = np.full(len(vectors), -1)
    for _ in range(max_iter):
        squared = ((vectors[:, None] - centres[None, :]) ** 2).sum(-1)
        before, labels, gaps = labels, squared.argmin(1), squared.min(1)
        if (labels == before).all():
            break
        for empty in [j for j in range(len(centres)) if j not in labels]:
            alone = np.bincount(labels, minlength=len(centres))[labels] == 1
            farthest = np.where(alone, -np.inf, gaps).argmax()  # a vector that is not alone in its cluster
            labels[farthest], gaps[farthest] = empty, -np.inf
        last, centres = centres, np.array([vectors[labels == j].mean(0) for j in range(len(centres))])
        if ((centres - last) ** 2).sum() <= tolerance:
            break
    return labels


def merge_sequence(vectors: np.ndarray, rate: float) -> np.ndarray:
    """A group is the number of its cluster and the sum of its vectors; a merged one stands where its odd part stood."""
    groups = list(enumerate(vectors))
    merges: list[tuple[int, int]] = []
    while len(groups) > 1:
        directions = unit_rows(np.array([total for _, total in groups]))
        similarity = directions[0::2] @ directions[1::2].T
        partner, best = similarity.argmax(1), similarity.max(1)
        pairs = np.argsort(-best, kind="stable")[: max(1, int(rate * len(groups)))]
        for even, odd in [(2 * pair, 2 * partner[pair] + 1) for pair in pairs]:
            merges.append((groups[even][0], groups[odd][0]))
            groups[odd] = (len(vectors) + len(merges) - 1, groups[odd][1] + groups[even][1])
        groups = [group for i, group in enumerate(groups) if i not in 2 * pairs]
    return np.array(merges, np.int64).reshape(-1, 2)


def removal_order(similarity: np.ndarray) -> np.ndarray:
    similarity = np.concatenate([similarity, -similarity]).astype(np.float64)
    left, removed = list(range(similarity.shape[1])), []
    while len(left) > 1:
        here = similarity[:, left]
        margins = -np.diff(-np.sort(-here, axis=1)[:, :2], axis=1)[:, 0]
        cost = np.bincount(here.argmax(1), margins, len(left))
        cheapest = np.flatnonzero(cost == cost.min())[-1]
        removed.append(left.pop(cheapest))
    return np.array(removed + left)
