"""Writing an index: a method prunes every page of a store as a run measured it, and its codec packs what is left.

The pages may be those of the run, whose record must come out, or any others that the same backbone encoded. Work is
spread over blocks of pages; what was finished is kept, and the same call goes on with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from harness.checked_folder import CheckedFolder, DamagedError
from harness.engine.engine import PROCESSES, WorkEngine
from harness.evaluation.methods import FULL, QUANTISED
from harness.evaluation.pruned_pages import NATIVE
from harness.evaluation.shared_store import SharedStore
from harness.page_index.files import (
    FORMAT,
    INDEX,
    LEARNED,
    ORDER,
    SHARD,
    IndexFile,
    as_json,
    checked,
    pack_shard,
    shard_name,
)
from harness.page_index.reader import PageIndex
from harness.progress import Progress
from harness.runs.restore import codec_tensors
from harness.store.format import StoreError
from harness.store.reader import Store
from pruners import Codec, Merged, Pruner, prune
from pruners.core.budget import UNPRUNED
from pruners.core.by_value import packed, unpacked
from pruners.core.errors import PruneBoardError

if TYPE_CHECKING:
    from harness.runs.results import Results


@dataclass(frozen=True)
class PackPages:
    """What a worker does with some pages: the codes of all, and how many vectors of each were kept and are stored."""

    store: Store
    pruner: Pruner
    codec: Codec
    budgets: tuple[float, ...]
    """All that were measured: a method may share work between them, and what was measured is what is packed."""
    which: int
    seed: int
    native: bool

    def __call__(self, pages: Sequence[int]) -> tuple[bytes, list[int], list[int]]:
        codes, kept, stored = [], [], []
        for index in pages:
            vectors = self._kept(index)
            kept.append(len(vectors))
            if self.native:  # prompt vectors are indexed too, and never pruned
                vectors = torch.cat([vectors, self.store.prompt(index)])
            stored.append(len(vectors))
            codes.append(self.codec.pack(vectors.numpy()))
        return b"".join(codes), kept, stored

    def _kept(self, index: int) -> torch.Tensor:
        page = self.store.page(index)
        result = prune(self.pruner, page, self.budgets, seed=self.seed)
        if isinstance(result, Merged):
            return result.vectors[self.which]
        return page.vectors[np.sort(result.kept(self.which))]

    def __reduce__(self) -> tuple[Any, ...]:
        """To another machine go the method by its value, and names: pages are read from the store there."""
        rest = self.codec, self.budgets, self.which, self.seed, self.native
        return _received, (SharedStore.of(self.store), packed(self.pruner), *rest)


def _received(sent: Any, pruner: bytes, *rest: Any) -> PackPages:
    return PackPages(SharedStore.open(sent), unpacked(pruner), *rest)


def write_index(
    results: Results,
    method: str,
    budget: float,
    out: Path,
    store: Store,
    progress: Progress,
    workers: int = 1,
    engine: WorkEngine = PROCESSES,
) -> PageIndex:
    """An index of a store's pages, or what is missing of it."""
    run, (facts, budgets, at) = results._run, _usable(results, method, budget)
    pruner, codec = results.method(method), results.codec(method)
    _require_same_backbone(run.card, store)
    order = {
        "format": FORMAT,
        "method": method,
        "budget": budget,
        "codec": facts.get("codec"),
        "made_by": facts["made_by"],
        "seed": run.config.seed,
        "profile": run.config.profile,
        "store": store.key,
        "dim": store.dim,
        "backbone": {key: run.card[key] for key in ("name", "checkpoint", "revision", "query_template")},
    }
    work = PackPages(store, pruner, codec, budgets, at, run.config.seed, run.config.profile == NATIVE)
    files = checked(out)
    with files.one_writer():
        if files.has(ORDER) and files.read(ORDER) != as_json(order):
            raise PruneBoardError(f"{out} holds another index; choose another --out")
        files.write(ORDER, as_json(order))
        if (learned := codec_tensors(run, method)) is not None:
            files.write(LEARNED, learned)
        _write_shards(work, files, progress, workers, engine, _recorded(results, method, at, store))
        files.write(INDEX, as_json({**order, **_sizes(files, work)}))
    return PageIndex(out)


def store_of(results: Results, data_set: str | None, root: Path) -> Store:
    """The store of a data set of the run, below `root`; None: of the only one."""
    stores = results._run.stores
    if data_set is None and len(stores) > 1:
        raise PruneBoardError(f"the run has {len(stores)} data sets: choose one with --data-set: {', '.join(stores)}")
    name = next(iter(stores)) if data_set is None else data_set
    if name not in stores:
        raise PruneBoardError(f"the run has no data set {name!r}; it has {', '.join(stores)}")
    key = stores[name]["store"]
    folders = sorted(root.glob(f"*--{key}"))
    if not folders:
        raise StoreError(f"the store of {name} ({key}) is not in {root}; name the folder of stores with --store")
    return Store(folders[0])


def _usable(results: Results, method: str, budget: float) -> tuple[dict[str, Any], tuple[float, ...], int]:
    """What the run says of a method, its budgets, and which of them is meant, if an index can be made with it."""
    facts, budgets = results._run.methods[results._find(method).text], results.config.budgets
    if facts["name"] == FULL and budget >= UNPRUNED:  # a codec alone
        return facts, (UNPRUNED,), 0
    if facts["diagnostic"]:
        raise PruneBoardError(f"{method} looks at a page's queries, so no index can be made with it; name another")
    if facts["output"] == QUANTISED:
        raise PruneBoardError(f"{method} stores vectors in a form of its own, which `harness index` does not write")
    if facts["own_threshold"] or facts["partner_of"]:
        raise PruneBoardError(f"{method} has one ratio of its own; name a method that was measured at a budget")
    if facts["name"] == FULL or budget not in budgets:
        measured = "1" if facts["name"] == FULL else ", ".join(f"{each:g}" for each in budgets)
        raise PruneBoardError(f"{method} was not measured at a budget of {budget:g}; it was at {measured}")
    return facts, budgets, budgets.index(budget)


def _require_same_backbone(card: Mapping[str, Any], store: Store) -> None:
    """Vectors of another checkpoint, revision or resolution are not what the method was measured on."""
    made = store.manifest.identity.get("backbone", {})
    if wrong := [key for key, value in made.items() if key in card and card[key] != value]:
        told = "; ".join(f"{key} {made[key]!r} instead of {card[key]!r}" for key in wrong[:3])
        raise StoreError(f"{store.folder} was encoded by another backbone than the run's: {told}")


def _recorded(results: Results, method: str, at: int, store: Store) -> np.ndarray | None:
    """Vectors that the run kept of each page of a store, if it is one of the run's."""
    run = results._run
    for data_set, facts in run.stores.items():
        if facts["store"] == store.key:
            return run.files.read_result(data_set, run.methods[method]["slug"]).kept[0, at]
    return None


def _write_shards(
    work: PackPages,
    files: CheckedFolder,
    progress: Progress,
    workers: int,
    engine: WorkEngine,
    recorded: np.ndarray | None,
) -> None:
    pages, width = len(work.store), work.codec.row(work.store.dim).itemsize
    blocks = [range(start, min(start + SHARD, pages)) for start in range(0, pages, SHARD)]
    missing = [block for block in blocks if not _is_whole(files, shard_name(block.start // SHARD))]
    done = pages - sum(map(len, missing))
    with (
        progress("write the index", total=pages, done=done) as advance,
        engine.spread(work, missing, min(workers, max(1, len(missing)))) as results,
    ):
        for block, (codes, kept, stored) in zip(missing, results, strict=True):
            if recorded is not None and (differ := np.flatnonzero(recorded[block.start : block.stop] != kept)).size:
                page = work.store.page_ids[block.start + differ[0]]
                raise PruneBoardError(
                    f"page {page!r}: {kept[differ[0]]} vectors are kept, and the run had kept "
                    f"{recorded[block.start + differ[0]]}; evaluate again"
                )
            ids = work.store.page_ids[block.start : block.stop]
            files.write(shard_name(block.start // SHARD), pack_shard(ids, codes, stored, width))
            advance(len(block))


def _is_whole(files: CheckedFolder, name: str) -> bool:
    """A damaged file is written again."""
    try:
        return files.has(name) and bool(files.read(name))
    except DamagedError:
        return False


def _sizes(files: CheckedFolder, work: PackPages) -> dict[str, int]:
    pages, dim = len(work.store), work.store.dim
    names = [shard_name(start // SHARD) for start in range(0, pages, SHARD)]
    vectors = sum(int(IndexFile(files.folder / name).offsets[-1]) for name in names)
    size = {"bytes": vectors * work.codec.row(dim).itemsize, "shared_bytes": work.codec.shared_bytes(dim)}
    return {"pages": pages, "vectors": vectors, **size}
