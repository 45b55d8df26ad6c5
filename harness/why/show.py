"""From the names of a page, of methods and of a query to what is drawn: `harness show` and `harness.show`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.backbones import registry
from harness.backbones.contract import Options
from harness.benchmarks.benchmark import Benchmark, load_benchmark
from harness.benchmarks.data_set import DataSet
from harness.calibration.methods import Setting, calibrated, require_calibration
from harness.encode import store_folder
from harness.evaluation.config import Config
from harness.evaluation.methods import Method, choose_methods
from harness.evaluation.run_folder import RunFolder
from harness.evaluation.scores import NATIVE
from harness.progress import Progress
from harness.store.format import MANIFEST, read_manifest
from harness.store.reader import Store
from harness.why.kept import kept_at
from harness.why.page_view import Layers, PageView, Query, cell_of
from harness.why.pages import Pages
from pruners import Pruner, Window
from pruners.core.errors import PruneBoardError

USUAL = ("sap", "eos", "kmeans", "random")
"""Shown if no method is named: two that read attention, one that merges, and chance."""
LAYERED = ("indegree", "eos")
LONGEST = 1000
"""Pixels of a page's longer side in a picture."""


@dataclass(frozen=True)
class Asked:
    """What a user wants to see. Everything else comes from `config`."""

    page: str | None = None
    data_set: str | None = None
    query: str | None = None
    """The id of a query, or the text of one's own."""
    layers: bool = False
    trial: int = 0


def show_page(
    asked: Asked,
    config: Config,
    stores: Path,
    progress: Progress,
    say: Callable[[str], None],
    own: Sequence[Pruner] = (),
) -> PageView:
    """A page with methods that are calibrated here, by the rules of an evaluation."""
    benchmark = load_benchmark(config.benchmark)
    options = Options(device=config.device, dtype=config.dtype, max_visual_tokens=config.max_visual_tokens)
    backbone = registry.load(config.backbone, options)
    data_set, page_id = find_page(benchmark, asked)
    folder = store_folder(stores, backbone, data_set)
    whole = (folder / MANIFEST).is_file() and read_manifest(folder).complete
    pages = Pages(data_set, Store(folder) if whole else None, lambda: backbone, config.profile == NATIVE)
    page = pages.page(pages.index(page_id))
    given = [text for text in config.pruners if text not in map(str, own)]
    methods = choose_methods(given, None, own)
    for method in methods:
        _require(method, page)
    setting = Setting(config, benchmark, backbone, stores, 1, progress, say)
    require_calibration(setting, methods)
    with tempfile.TemporaryDirectory() as scratch:  # the record of a calibration goes with a run, and this is none
        ready = calibrated(setting, {}, methods, RunFolder(Path(scratch)))
    if failed := [method.failure for method in ready if method.failure is not None]:
        raise PruneBoardError(failed[0])
    pruners = {method.text: method.pruner for method in ready}
    return view_of(pages, page_id, pruners, config.budgets, config.seed, asked)


def view_of(
    pages: Pages,
    page_id: str,
    pruners: dict[str, Pruner],
    budgets: Sequence[float],
    seed: int,
    asked: Asked,
    shown: Sequence[float] | None = None,
) -> PageView:
    """A page pruned by ready methods at `budgets`, of which some are `shown`."""
    index = pages.index(page_id)
    page, prompt = pages.page(index), pages.prompt(index)
    query = find_query(pages, asked.query)
    gold = [pages.query_vectors(q) for q in pages.gold_queries(page_id)]
    columns = [i for i, budget in enumerate(budgets) if shown is None or budget in shown]
    rows = []
    for text, pruner in pruners.items():
        kept = kept_at(pruner, page, budgets, seed=seed, trial=asked.trial, gold=gold)
        rows.append([cell_of(text, budgets[i], kept[i], page.vectors, query, prompt) for i in columns])
    layers = None
    if asked.layers:
        signals = {name: page.signals[name] for name in LAYERED if name in page.signals}
        if not signals:
            has = ", ".join(page.signals) or "none"
            raise PruneBoardError(f"page {page_id!r} has no attention by layer to show (its signals: {has})")
        layers = Layers(signals, next((w for p in pruners.values() if (w := window_of(p))), None))
    canvas = pages.canvas(index, page, LONGEST)
    return PageView(page_id, pages.data_set.name, canvas, rows, query, layers)


def find_page(benchmark: Benchmark, asked: Asked) -> tuple[DataSet, str]:
    """The data set and the id of the page that is asked for; of a query without a page, its first gold page."""
    sets = list(benchmark.data_sets)
    if asked.data_set is not None:
        sets = [s for s in sets if asked.data_set in (s.name, s.name.rpartition("/")[2])]
        if not sets:
            names = ", ".join(s.name for s in benchmark.data_sets)
            raise PruneBoardError(f"{benchmark.name} has no data set {asked.data_set!r}; it has {names}")
    if asked.page is not None:
        holding = [s for s in sets if asked.page in s.page_ids]
        if len(holding) == 1:
            return holding[0], asked.page
        if not holding:
            there = "; ".join(f"{s.name}: {', '.join(s.page_ids[:3])}, … ({len(s.page_ids)})" for s in sets)
            raise PruneBoardError(f"there is no page {asked.page!r}. There are {there}")
        raise _several("page", asked.page, holding)
    asking = [s for s in sets if asked.query in s.queries]
    if len(asking) > 1:
        raise _several("query", str(asked.query), asking)
    for data_set in asking:
        gold = [page for page, grade in data_set.qrels.get(str(asked.query), {}).items() if grade > 0]
        if gold:
            return data_set, gold[0]
        raise PruneBoardError(f"query {asked.query!r} of {data_set.name} has no relevant page; name one with --page")
    return sets[0], sets[0].page_ids[0]


def find_query(pages: Pages, query: str | None) -> Query | None:
    """A query by its id, or one's own by its text."""
    if query is None:
        return None
    return pages.query(query) if query in pages.data_set.queries else pages.own_query(query)


def window_of(pruner: Pruner) -> Window | None:
    """The layers that a method reads, if it, or a part of it, has a window."""
    window: Any = pruner.fields().get("layers")
    if isinstance(window, Window):
        return window
    return next((found for part in pruner.parts() if (found := window_of(part))), None)


def _require(method: Method, page: Any) -> None:
    from pruners import require

    require(method.pruner, page.available, f"page {page.id!r}")


def _several(what: str, name: str, sets: Sequence[DataSet]) -> PruneBoardError:
    names = ", ".join(s.name for s in sets)
    return PruneBoardError(f"several data sets have a {what} {name!r}: say which with --data-set ({names})")
