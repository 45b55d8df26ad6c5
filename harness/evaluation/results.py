"""From scores to results: one record for each data set and method, with a value for every query and budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from harness.benchmarks.data_set import DataSet
from harness.evaluation.index_size import bytes_per_page, vector_bits
from harness.evaluation.kept_counts import KeptRows
from harness.evaluation.methods import FULL, Method
from harness.evaluation.tally import Tally
from harness.metrics.ranking import TOP, Evaluator
from harness.metrics.retention import score_retention
from pruners.core.budget import drifted

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Result:
    """A method on a data set. `summary` has one entry a budget, `rows` has one row a query, budget and trial."""

    data_set: str
    method: str
    summary: list[dict]
    rows: pa.Table
    kept: np.ndarray | KeptRows
    """Vectors kept of each page, in the corpus's order: `[trials, budgets, pages]`."""
    made_by: Mapping[str, str] = field(default_factory=dict)
    """Of a result that was read: what made it (see `made_by.py`)."""

    @cached_property
    def per_query(self) -> pd.DataFrame:
        """The rows as a frame, for those who group and filter them."""
        return self.rows.to_pandas()


@dataclass(frozen=True)
class DataSetEvaluator:
    """The measures of one data set."""

    data_set: DataSet
    evaluate: Evaluator

    @classmethod
    def of(cls, data_set: DataSet, query_ids: tuple[str, ...]) -> DataSetEvaluator:
        return cls(data_set, Evaluator(data_set.qrels, query_ids, data_set.page_ids))

    def full(self, tally: Tally, dim: int) -> Result:
        cells = tally.cells(None)
        size = vector_bits(tally.vectors[cells] + tally.prompt_vectors, dim)
        return self._result(FULL, (1.0,), tally, cells, size, 0, "fixed")

    def method(self, method: Method, tally: Tally, dim: int) -> Result:
        at, cells = method.budgets(tally.budgets), tally.cells(method)
        if method.own_threshold:  # its budget is what it kept
            at = (float(tally.vectors[cells].mean()) / float(tally.vectors[0]),)
        shared, kind = method.shared_bytes(dim), method.pruner.budget_kind
        return self._result(method.text, at, tally, cells, tally.bits[cells - 1], shared, kind)

    def _result(
        self,
        name: str,
        budgets: tuple[float, ...],
        tally: Tally,
        cells: np.ndarray,
        bits: np.ndarray,
        shared_bytes: int,
        kind: str,
    ) -> Result:
        """Of `cells [trials, budgets]`, whose indexes have so many `bits`."""
        flat = self.evaluate.measure(tally.ranks(cells.ravel()))
        measures = {measure: values.reshape(*cells.shape, -1) for measure, values in flat.items()}
        gold, judged = self.evaluate.gold, self.evaluate.judged
        share = score_retention(
            tally.known[cells][..., gold], tally.known[0][gold], judged.rows[gold], 1 + judged.rows.max(initial=-1)
        )
        deviation = measures["ndcg@5"].mean(-1).std(0)
        pages = len(self.data_set.page_ids)
        summary = []
        for b, budget in enumerate(budgets):
            kept_vectors = float(tally.vectors[cells[:, b]].mean())
            realised = kept_vectors / float(tally.vectors[0])
            summary.append(
                {
                    "budget": budget,
                    "realised": realised,
                    "drift": kind == "adaptive" and drifted(realised, budget),
                    "vectors_per_page": (kept_vectors + tally.prompt_vectors) / pages,
                    "bytes_per_page": bytes_per_page(bits[:, b].mean(), shared_bytes, pages),
                    "trials": len(cells),
                    "trial_deviation_ndcg@5": float(deviation[b]),
                    "score_retention": float(share.score_retention[:, b].mean()),
                    "score_retention_micro": float(share.score_retention_micro[:, b].mean()),
                    "pairs_left_out": share.left_out,
                }
            )
        measures["score_retention"] = share.per_query[..., self.evaluate.rows]
        rows = self._rows(budgets, measures, tally.best(cells))
        return Result(self.data_set.name, name, summary, rows, KeptRows(tally.kept, cells))

    def _rows(self, budgets: tuple[float, ...], measures: dict[str, np.ndarray], best: np.ndarray) -> pa.Table:
        """One row a budget, trial and query, in this order, of `measures [trials, budgets, queries]`."""
        ids, trials, ranked = self.evaluate.query_ids, len(best), best.shape[-1]
        every = pa.array(np.tile(np.arange(len(ids)), trials * len(budgets)))
        languages = [self.data_set.languages.get(query, "") for query in ids]
        shown, places = np.unique(best.swapaxes(0, 1), return_inverse=True)  # of a million pages, the ids of a few
        pages = pa.array([self.data_set.page_ids[page] for page in shown], pa.string()).take(pa.array(places.ravel()))
        form = _form(tuple(measures))
        columns = {
            "query": pa.array(ids, form.field("query").type).take(every),
            "language": pa.array(languages, form.field("language").type).take(every),
            "budget": np.repeat(np.array(budgets, float), trials * len(ids)),
            "trial": np.tile(np.repeat(np.arange(trials), len(ids)), len(budgets)),
            # NaN is written as no value
            **{name: pa.array(values.swapaxes(0, 1).ravel(), from_pandas=True) for name, values in measures.items()},
            f"top_{TOP}": pa.ListArray.from_arrays(np.arange(len(every) + 1, dtype=np.int32) * ranked, pages),
        }
        return pa.table(columns, schema=form)


@cache
def _form(measures: tuple[str, ...]) -> pa.Schema:
    """The columns of a result's rows, typed and described as pandas would write them."""
    import pandas as pd

    row = {"query": [""], "language": [""], "budget": [0.0], "trial": [0], **{name: [0.0] for name in measures}}
    return pa.Schema.from_pandas(pd.DataFrame({**row, f"top_{TOP}": [[""]]}), preserve_index=False)
