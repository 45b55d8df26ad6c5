"""A run's results as objects: tables, differences, figures, and the methods themselves. `docs/python.md` shows each."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from harness.evaluation.config import Config
    from harness.progress import Progress
    from harness.submissions.submit import Submitted
    from harness.why.output import ExplanationPage
    from pruners import Codec, Pruner


@dataclass(frozen=True)
class _Measured:
    """A method of a finished run, as averages need it."""

    text: str
    slug: str
    diagnostic: bool
    budget_kind: str
    own_threshold: bool
    partner_of: str | None
    codec_text: str
    pruner_text: str
    unpruned: bool
    output: str


class Results:
    """What `harness.evaluate` found, or `harness.load_run` read. Everything comes from the run folder.

    Methods are named by their text form, as the table shows them.
    """

    def __init__(
        self, folder: Path, own: Sequence[Pruner] = (), *, rows: list[dict] | None = None, remarks: Sequence[str] = ()
    ) -> None:
        from harness.submissions.run_facts import FinishedRun

        self.folder = folder
        self.remarks = list(remarks)
        """What a reader of the figures must know; of a run that was just evaluated."""
        self._own = own
        self._run = FinishedRun(folder)
        if rows is not None:  # of a run that was just evaluated: they need not be computed again
            self.__dict__["rows"] = rows

    @property
    def config(self) -> Config:
        """The settings of the run."""
        return self._run.config

    @property
    def methods(self) -> list[str]:
        """The methods that were measured."""
        return list(self._run.methods)

    @property
    def data_sets(self) -> list[str]:
        return list(self._run.stores)

    @property
    def failures(self) -> dict[str, str]:
        """Methods without results on some data set, and why."""
        return self._run.files.read_json("failures.json")

    @cached_property
    def rows(self) -> list[dict]:
        """One record for each method and budget, as `harness evaluate --json` prints them; the full model first."""
        from harness.evaluation.summary import summarise

        return summarise(self._run.files, self.data_sets, self._measured, self.config.budgets)

    def table(self) -> pd.DataFrame:
        """What the terminal shows: a row for each method and budget, the best first; the full model before them."""
        import pandas as pd

        from harness.runs.table import CODEC, COLUMNS, PARTNER, table_rows

        rows = table_rows(self.rows)
        names = [*COLUMNS, *(PARTNER if any("partner of" in row for row in rows) else ())]
        if len({row[CODEC] for row in rows}) > 1:
            names.insert(1 + names.index("method"), CODEC)
        return pd.DataFrame(rows, columns=names).astype({"rank": "Int64"})

    def same_bytes(self, shares: Sequence[float] | None = None) -> list[dict]:
        """At each share of the full model's bytes (1, 2, 5 and 10 %) the row of `rows` that retains most within them:
        the best of all, of pruning alone and of a codec alone.
        """
        from harness.evaluation.same_bytes import SHARES, same_bytes

        return same_bytes(self.rows, SHARES if shares is None else shares)

    @cached_property
    def per_query(self) -> pd.DataFrame:
        """All measures of every query: a row for each data set, method, budget, trial and query."""
        import pandas as pd

        frames = []
        for data_set in self.data_sets:
            for text, slug in self._slugs.items():
                if self._run.files.has(data_set, slug):
                    frame = self._run.files.read_result(data_set, slug).per_query.copy()
                    frame.insert(0, "data_set", data_set)
                    frame.insert(1, "method", text)
                    frames.append(frame)
        return pd.concat(frames, ignore_index=True)

    def compare(self, a: Any, b: Any) -> pd.DataFrame:
        """Retention of method a minus that of b at each budget, in points of the full model's NDCG@5.

        The 95 % interval is of the paired bootstrap that ranks methods: where it contains 0, they cannot be told apart.
        """
        import pandas as pd

        from harness.evaluation.summary import differences

        one, other = self._complete(a), self._complete(b)
        found = differences(self._run.files, self.data_sets, one, other, self.config.budgets)
        rows = [(budget, gap.value, gap.low, gap.high) for budget, gap in found]
        return pd.DataFrame(rows, columns=["budget", "difference", "low", "high"])

    def lost(self, method: Any, budget: float = 0.1, most: int = 20) -> pd.DataFrame:
        """The queries that lost most NDCG@5 to pruning, with their gold pages and the ten best pages that were found.

        Of a method with several trials the mean, and the ten best of the first trial.
        """
        from harness.runs.lost import lost

        measured = self._find(method)
        if measured.own_threshold or measured.partner_of or budget not in self.config.budgets:
            at = ", ".join(f"{b:g}" for b in self.config.budgets)
            raise _error(f"{measured.text} was not measured at a budget of {budget:g}; the run's are {at}")
        return lost(self._run, measured.slug, budget).head(most).reset_index(drop=True)

    def explain(
        self,
        method: Any = None,
        *,
        against: Any = "full",
        budget: float | None = None,
        most: int = 20,
        store: Path | str | None = None,
        figures_only: bool = False,
        progress: Progress | None = None,
    ) -> ExplanationPage:
        """Why a method loses against another one, or the full model: figures, and `most` queries with their pages.

        A notebook shows it; `.save("why.html")` writes it. Left out: the run's first method, and a budget of 0.1.
        """
        from harness.encode import default_root
        from harness.progress import quiet
        from harness.why.explain import explain_run
        from harness.why.output import ExplanationPage

        one, other = (
            which if which is None or isinstance(which, str) else self._find(which).text for which in (method, against)
        )
        root = Path(store) if store else default_root()
        more: dict[str, Any] = {"budget": budget, "most": most, "figures_only": figures_only}
        return ExplanationPage(explain_run(self, root, progress or quiet, method=one, against=str(other), **more))

    def plot(self, methods: Sequence[Any] = ()) -> Figure:
        """Retention against budget with 95 % intervals, of all methods or of some."""
        from harness.drawing.figures import retention_against_budget

        wanted = [self._find(method).text for method in methods] or self.methods
        rows = [row for row in self.rows[1:] if row["method"] in wanted and "own_threshold" not in row]
        return retention_against_budget(rows, f"{self.config.backbone} on {self._run.card['benchmark']}")

    def to_latex(self, caption: str | None = None, label: str = "pruning") -> str:
        r"""The table as LaTeX that a paper reads with `\input`: booktabs."""
        from harness.runs.table import as_latex, table_rows

        about = f"{self._run.card['name']} on {self._run.card['benchmark']}"
        words = f"NDCG@5 of {about}, and what pruning keeps of it in %, with 95 % intervals."
        return as_latex(table_rows(self.rows), words if caption is None else caption, label)

    def method(self, which: Any) -> Pruner:
        """A method as it was measured, calibrated: for `prune(method, page, budget=0.1)`.

        Its code must be what was measured. A method that is in no file is given to `load_run(folder, pruners=[mine])`.
        """
        from harness.runs.restore import restore

        return restore(self._run, self._find(which).text, self._own)

    def codec(self, which: Any) -> Codec:
        """How a method's vectors were stored, with what the codec learned: `.pack(vectors)`, `.unpack(data, dim)`."""
        from harness.runs.restore import restore_codec

        return restore_codec(self._run, self._find(which).text)

    def submit(self, submitter: str, **options: Any) -> list[Submitted]:
        """Write the results as submissions, one a method; `harness.submit` has the options."""
        from harness.submissions.submit import submit

        return submit(self.folder, submitter, **options)

    @cached_property
    def _measured(self) -> list[_Measured]:
        from harness.evaluation.methods import FULL
        from pruners.core.codec_catalog import DEFAULT

        return [
            _Measured(
                text,
                facts["slug"],
                facts["diagnostic"],
                facts["budget"],
                facts["own_threshold"],
                facts["partner_of"],
                codec := facts.get("codec", {}).get("text", DEFAULT),
                text.removesuffix(f" | {codec}"),
                facts["name"] == FULL,
                facts["output"],
            )
            for text, facts in self._run.methods.items()
        ]

    @property
    def _slugs(self) -> dict[str, str]:
        from harness.evaluation.methods import FULL

        return {FULL: FULL, **{method.text: method.slug for method in self._measured}}

    def _find(self, which: Any) -> _Measured:
        from pruners.core.single_page import as_pruner

        text = which if isinstance(which, str) else str(as_pruner(which))
        for method in self._measured:
            if method.text == text:
                return method
        if text in self.failures:
            raise _error(f"{text} has no results: {self.failures[text]}")
        near = difflib.get_close_matches(text, self.methods, n=1)
        raise _error(f"the run has no method {text!r}; " + (f"did you mean {near[0]}?" if near else self._names))

    def _complete(self, which: Any) -> _Measured:
        """A method that was measured at the run's budgets on every data set."""
        method = self._find(which)
        if method.own_threshold or method.partner_of:
            raise _error(f"{method.text} has one budget of its own; its row in the table has the difference")
        if not all(self._run.files.has(data_set, method.slug) for data_set in self.data_sets):
            raise _error(f"{method.text} failed: {self.failures.get(method.text, 'it has no results everywhere')}")
        return method

    @property
    def _names(self) -> str:
        return f"it has {', '.join(self.methods)}"

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"<Results of {len(self.methods)} methods on {len(self.data_sets)} data sets{failed}: {self.folder}>"

    def _repr_html_(self) -> str:
        """In a notebook: the table, what a reader must know, and what failed."""
        from html import escape

        said = [*self.remarks, *(f"failed: {name}: {why}" for name, why in self.failures.items())]
        below = "".join(f"<p>{escape(text)}</p>" for text in said)
        return self.table().to_html(index=False, float_format=lambda value: f"{value:.4g}", na_rep="–") + below


def _error(text: str) -> Exception:
    from pruners.core.errors import PruneBoardError

    return PruneBoardError(text)
