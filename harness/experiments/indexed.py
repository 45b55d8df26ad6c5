"""What storage-retrieval indexes: a corpus pruned by one method at every budget, stored by its codec, and how well it
ranks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from harness.evaluation.index_size import FLOAT16
from harness.evaluation.methods import Method
from harness.evaluation.scores import held_as
from harness.experiments.ready import ready
from harness.experiments.union import Union
from harness.experiments.workbench import Workbench
from harness.metrics.ranking import Evaluator
from harness.scoring.queries import tile_queries, tile_tokens
from harness.scoring.sweep import score_page
from harness.scoring.torch_sweep import GPU_TILE_TOKENS
from pruners import STANDARD, Codec, Merged, Subset, prune
from pruners.core.errors import PruneBoardError

BUDGETS = (1.0, *sorted(STANDARD, reverse=True))


@dataclass(frozen=True)
class Indexed:
    """What is indexed at each budget, as float16 numbers, and how well it ranks. The whole pages stand for the full
    model, whatever the codec; below, vectors are those that the codec decodes to.
    """

    pages: dict[float, list[np.ndarray]]
    ndcg: dict[float, float]
    quantised: bool
    codec: Codec
    dim: int

    def vectors(self, budget: float) -> int:
        return sum(map(len, self.pages[budget]))

    def asked(self, query: np.ndarray, budget: float) -> np.ndarray:
        """A query's vectors as what is indexed at a budget is compared with."""
        if budget == 1.0 or not self.codec.changes_queries:
            return query
        return np.ascontiguousarray(self.codec.query(query), np.float32)

    def packed_bytes(self, budget: float) -> int:
        """What the codec itself takes, with all that pages share; of the full model, float16."""
        codec = FLOAT16 if budget == 1.0 else self.codec
        return self.vectors(budget) * codec.row(self.dim).itemsize + codec.shared_bytes(self.dim)


def one_method(workbench: Workbench) -> Method:
    """The method that `--pruner` names, made ready."""
    methods = ready(workbench, [text := workbench.settings.pruner], STANDARD)
    if len(methods) != 1:
        raise PruneBoardError(f"{text!r} names {len(methods)} methods where one is indexed; name one")
    (method,) = methods
    if method.failure is not None:
        raise PruneBoardError(method.failure)
    if method.diagnostic:
        raise PruneBoardError(f"{method.text} looks at a page's queries, so no index can be made with it; name another")
    if method.unpruned:
        raise PruneBoardError(f"{method.text} prunes nothing, so it has no budgets; name 'sap | {method.codec}'")
    return method


def index_corpus(workbench: Workbench, corpus: Union, method: Method, device: torch.device) -> Indexed:
    """Prune every page once, and score what is left against all queries: the same exact MaxSim as in `evaluate`."""
    if device.type == "cuda":
        tiles = tile_queries(corpus.queries, GPU_TILE_TOKENS, device)
    else:
        tiles = tile_queries(corpus.queries, tile_tokens(next(iter(workbench.evaluated.values())).mean_vectors))
    codec = method.codec
    asked = tiles.changed(codec.query) if codec.changes_queries else tiles
    pages: dict[float, list[np.ndarray]] = {budget: [] for budget in BUDGETS}
    scores = np.empty((len(BUDGETS), len(corpus.queries), len(corpus.places)), np.float32)
    quantised = False
    with workbench.progress("prune, score", total=len(corpus.places), done=0) as advance:
        for place, (data_set, index) in enumerate(corpus.places):
            page = workbench.evaluated[data_set].page(index)
            result = prune(method.pruner, page, BUDGETS[1:], seed=workbench.settings.seed)
            scores[:, :, place] = score_page(page.vectors, [result], tiles)
            held, whole = result, page.vectors
            if codec != FLOAT16:
                held, whole = held_as(result, codec), codec.stored(page.vectors)
                scores[1:, :, place] = score_page(whole, [held], asked)[1:]
            for budget, vectors in zip(BUDGETS, [page.vectors, *_kept(whole, held)], strict=True):
                pages[budget].append(vectors.numpy().astype(np.float16))
            quantised |= isinstance(result, Merged) and result.bits_per_vector is not None
            advance(1)
    evaluate = Evaluator(corpus.qrels, corpus.query_ids, corpus.page_ids)
    ndcg = evaluate(scores)["ndcg@5"].mean(-1)
    dim = pages[1.0][0].shape[1]
    return Indexed(pages, dict(zip(BUDGETS, ndcg.tolist(), strict=True)), quantised, codec, dim)


def _kept(vectors: torch.Tensor, result: Subset | Merged) -> list[torch.Tensor]:
    """What is left of a page at each budget."""
    if isinstance(result, Merged):
        return list(result.vectors)
    return [vectors[np.sort(result.kept(i))] for i in range(len(result.counts))]
