"""From the names of a page, of methods and of a query to what is drawn: `harness show` and `harness.show`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.backbones import registry
from harness.backbones.contract import Options
from harness.benchmarks.benchmark import Benchmark, load_benchmark
from harness.benchmarks.data_set import DataSet
from harness.encode import store_folder
from harness.evaluation.calibration import Setting, calibrated, require_calibration
from harness.evaluation.config import Config
from harness.evaluation.methods import choose_methods
from harness.evaluation.pruned_pages import NATIVE
from harness.evaluation.run_folder import RunFolder
from harness.progress import Progress
from harness.store.format import MANIFEST
from harness.store.reader import Store
from harness.store.sidecar import read_manifest
from harness.why.kept_vectors import KeptVectors, kept_at
from harness.why.page_view import DrawnQuery, Layers, PageView, cell_of
from harness.why.pages import Pages
from pruners import Page, Pruner, Window, require
from pruners.core.errors import PruneBoardError

if TYPE_CHECKING:
    from harness.runs.results import Results

USUAL = ("sap", "eos", "kmeans", "random")
"""Shown if no method is named: two that read attention, one that merges, and chance."""
LAYERED = ("indegree", "eos")
LONGEST = 1000
"""Pixels of a page's longer side in a picture."""


@dataclass(frozen=True)
class PageChoice:
    """What a user wants to see. Everything else comes from `config`."""

    page: str | None = None
    data_set: str | None = None
    query: str | None = None
    """The id of a query, or the text of one's own."""
    layers: bool = False


def show_page(
    asked: PageChoice,
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
        require(method.pruner, page.available, f"page {page_id!r}")
    setting = Setting(config, benchmark, backbone, stores, 1, progress, say)
    require_calibration(setting, methods)
    with tempfile.TemporaryDirectory() as scratch:  # the record of a calibration goes with a run, and this is none
        ready = calibrated(setting, {}, methods, RunFolder(Path(scratch)))
    if failed := [method.failure for method in ready if method.failure is not None]:
        raise PruneBoardError(failed[0])
    gold = [pages.query_vectors(query) for query in pages.gold_queries(page_id)]
    kept = {m.text: kept_at(m.pruner, page, config.budgets, seed=config.seed, gold=gold) for m in ready}
    return view_of(pages, page_id, kept, config.budgets, _window([m.pruner for m in ready]), asked)


def show_recorded(
    asked: PageChoice, results: Results, stores: Path, methods: Sequence[str], budgets: Sequence[float]
) -> PageView:
    """A page of a run, with its methods as they were measured; what they keep is compared with what it recorded."""
    from harness.why.record import open_record

    record = open_record(results, stores)
    if not record.pages:
        raise PruneBoardError(f"no page of {results.folder} can be drawn: {'; '.join(record.missing)}")
    data_sets = tuple(pages.data_set for pages in record.pages.values())
    data_set, page_id = find_page(Benchmark(results.config.benchmark, data_sets), asked)
    known = [m.text for m in results._measured if not (m.own_threshold or m.partner_of)]
    chosen = list(methods) or [text for text in USUAL if text in known] or known[:4]
    if unknown := [budget for budget in budgets if budget not in record.budgets]:
        there = ", ".join(f"{b:g}" for b in record.budgets)
        raise PruneBoardError(f"{results.folder} was not measured at a budget of {unknown[0]:g}; its are {there}")
    shown = tuple(budgets) or record.budgets
    for text in chosen:
        if results._find(text).text not in known:
            raise PruneBoardError(f"{text} has a budget of its own; name a method at the run's budgets")
    pages = record.pages[data_set.name]
    index = pages.index(page_id)
    kept = {text: [record.kept(data_set.name, text, index, budget) for budget in shown] for text in chosen}
    return view_of(pages, page_id, kept, shown, _window([results.method(text) for text in chosen]), asked)


def view_of(
    pages: Pages,
    page_id: str,
    kept: Mapping[str, Sequence[KeptVectors]],
    budgets: Sequence[float],
    window: Window | None,
    asked: PageChoice,
) -> PageView:
    """What methods kept of a page at `budgets`, as it is drawn."""
    index = pages.index(page_id)
    page, prompt = pages.page(index), pages.prompt(index)
    query = find_query(pages, asked.query)
    rows = [
        [cell_of(text, budget, each, page.vectors, query, prompt) for budget, each in zip(budgets, left, strict=True)]
        for text, left in kept.items()
    ]
    layers = _layers(page, window) if asked.layers else None
    return PageView(page_id, pages.data_set.name, pages.canvas(index, page, LONGEST), rows, query, layers)


def _layers(page: Page, window: Window | None) -> Layers:
    signals = {name: page.signals[name] for name in LAYERED if name in page.signals}
    if not signals:
        has = ", ".join(page.signals) or "none"
        raise PruneBoardError(f"page {page.id!r} has no attention by layer to show (its signals: {has})")
    return Layers(signals, window)


def find_page(benchmark: Benchmark, asked: PageChoice) -> tuple[DataSet, str]:
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


def find_query(pages: Pages, query: str | None) -> DrawnQuery | None:
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


def _window(pruners: Sequence[Pruner]) -> Window | None:
    """The window of the methods, if those that have one have the same."""
    windows = {window for pruner in pruners if (window := window_of(pruner))}
    return windows.pop() if len(windows) == 1 else None


def _several(what: str, name: str, sets: Sequence[DataSet]) -> PruneBoardError:
    names = ", ".join(s.name for s in sets)
    return PruneBoardError(f"several data sets have a {what} {name!r}: say which with --data-set ({names})")
