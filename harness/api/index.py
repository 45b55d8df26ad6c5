"""The index of a corpus, made with a method of a run, and read again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness.api.measure import load_run
from harness.runs.results import Results
from pruners.core.errors import PruneBoardError

if TYPE_CHECKING:
    from harness.page_index.reader import PageIndex
    from harness.progress import Progress


def write_index(
    run: Results | Path | str,
    method: str,
    *,
    budget: float = 0.1,
    out: Path | str,
    pages: Path | str | None = None,
    data_set: str | None = None,
    store: Path | str | None = None,
    workers: int | None = None,
    engine: str | None = None,
    ray_address: str | None = None,
    progress: Progress | None = None,
) -> PageIndex:
    """Write the index of a corpus: pages pruned by a method as `run` measured it, and stored by its codec.

    `pages` is the folder of a store of `harness encode`, by the run's backbone; left out, the pages are those of the
    run, of its `data_set` if it has several, and must come out as they were measured.
    """
    from harness.encode import default_root
    from harness.engine.engine import open_engine
    from harness.page_index.writer import store_of
    from harness.page_index.writer import write_index as write
    from harness.progress import quiet
    from harness.store.reader import Store

    if pages is not None and data_set is not None:
        raise PruneBoardError("--pages names a store, and --data-set one of the run's: give one of the two")
    results = run if isinstance(run, Results) else load_run(run)
    root = Path(store) if store else default_root()
    source = Store(Path(pages)) if pages is not None else store_of(results, data_set, root)
    with open_engine(engine, workers, ray_address=ray_address) as (opened, hands):
        return write(results, method, budget, Path(out), source, progress or quiet, hands, opened)


def load_index(folder: Path | str) -> PageIndex:
    """The index in a folder: `.vectors(page)`, `.search(query_vectors)`, `.facts`."""
    from harness.page_index.reader import PageIndex

    return PageIndex(folder)
