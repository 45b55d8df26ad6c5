"""Writing an index: a method prunes every page of a store as a run measured it, and its codec packs what is left.

The pages may be those of the run, whose record must come out, or any others that the same backbone encoded. Work is
spread over blocks of pages; what was finished is kept, and the same call goes on with it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from harness.backbones.store import store_card
from harness.checked_folder import CHECKSUMS, LOCK, CheckedFolder, DamagedError
from harness.engine.engine import PROCESSES, WorkEngine
from harness.evaluation.made_by import measuring
from harness.evaluation.methods import FULL, QUANTISED
from harness.evaluation.pruned_pages import NATIVE
from harness.evaluation.shared_store import SharedStore
from harness.files import temporary_files
from harness.instructions import processor
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
    shard_names,
)
from harness.page_index.reader import PageIndex
from harness.progress import Progress
from harness.runs.restore import codec_tensors
from harness.store.format import StoreError, damaged_files
from harness.store.reader import Store, find_store
from pruners import Codec, Merged, Pruner, prune
from pruners.core.budget import UNPRUNED
from pruners.core.by_value import packed, unpacked
from pruners.core.errors import PruneBoardError

if TYPE_CHECKING:
    from harness.runs.results import Results

PIECE = 64
"""Pages that a worker packs at once: what it sends waits in memory until the file of these pages is written."""


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
        if bad := damaged_files(self.store.folder, self.store.files_of(pages, queries=False)):
            raise StoreError(
                f"{self.store.folder / bad[0]} is damaged; to make it again: {self.store.manifest.made_again}"
            )
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
    run, (facts, budgets, at) = results._run, usable(results, method, budget)
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
        "measured_at": list(budgets),
        "written_with": {**measuring(), "processor": processor()},
    }
    work = PackPages(store, pruner, codec, budgets, at, run.config.seed, run.config.profile == NATIVE)
    files = checked(out)
    _require_same_order(files, order)
    with files.one_writer():
        files.write(ORDER, as_json(order))
        if (learned := codec_tensors(run, method)) is not None:
            files.write(LEARNED, learned)
        _write_shards(work, files, progress, workers, engine, _recorded(results, method, at, store))
        files.write(INDEX, as_json({**order, **_sizes(files, work)}))
    return PageIndex(out)


def _require_same_order(files: CheckedFolder, order: dict[str, Any]) -> None:
    """What lies in the folder is of this order, or there is nothing: an index is never of two, and nothing is removed.

    Who was killed before the order was written left a lock, a checksum or a temporary file.
    """
    if files.has(ORDER):
        there = json.loads(files.read(ORDER))
        if differ := [name for name in order if there.get(name) != json.loads(as_json(order))[name]]:
            raise PruneBoardError(
                f"{files.folder} holds another index, or one begun with other code, libraries or processor "
                f"({', '.join(differ)} differ): choose another --out, or delete the folder"
            )
    elif files.folder.is_dir():
        own = {LOCK, CHECKSUMS, *(path.name for path in temporary_files(files.folder, [ORDER, CHECKSUMS]))}
        if others := sorted(path.name for path in files.folder.iterdir() if path.name not in own):
            raise PruneBoardError(f"{files.folder} is not empty ({others[0]}) and holds no index: choose another --out")


def store_of(results: Results, data_set: str | None, root: Path) -> Store:
    """The store of a data set of the run, below `root`; None: of the only one."""
    stores = results._run.stores
    if data_set is None and len(stores) > 1:
        raise PruneBoardError(f"the run has {len(stores)} data sets: choose one with --data-set: {', '.join(stores)}")
    name = next(iter(stores)) if data_set is None else data_set
    if name not in stores:
        raise PruneBoardError(f"the run has no data set {name!r}; it has {', '.join(stores)}")
    return find_store(root, stores[name]["store"])


def usable(results: Results, method: str, budget: float) -> tuple[dict[str, Any], tuple[float, ...], int]:
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
    """Vectors of another checkpoint, revision or resolution are not what the method was measured on. Of imported ones
    only their name and width are known.
    """
    made = store.manifest.identity.get("backbone") or {"name": store_card(store).name, "dim": store.dim}
    if wrong := [key for key, value in made.items() if key in card and card[key] != value]:
        told = "; ".join(f"{key} {made[key]!r} instead of {card[key]!r}" for key in wrong[:3])
        raise StoreError(f"{store.folder} was encoded by another backbone than the run's: {told}")


def _recorded(results: Results, method: str, at: int, store: Store) -> np.ndarray | None:
    """Vectors that the run kept of each page of a store, if it is one of the run's."""
    run = results._run
    for data_set, facts in run.stores.items():
        if facts["store"] == store.key:
            if not run.files.has(data_set, run.methods[method]["slug"]):
                raise PruneBoardError(
                    f"{method} has no results on {data_set}: {results.failures.get(method, 'it failed')}"
                )
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
    pieces = [block[at : at + PIECE] for block in missing for at in range(0, len(block), PIECE)]
    codes: list[bytes] = []
    counts: list[int] = []
    with (
        progress("write the index", total=pages, done=pages - sum(map(len, missing))) as advance,
        engine.spread(work, pieces, workers) as results,
    ):
        for piece, (packed_piece, kept, stored) in zip(pieces, results, strict=True):
            if recorded is not None:
                _require_recorded(work.store, piece, kept, recorded)
            codes.append(packed_piece)
            counts += stored
            if piece.stop % SHARD == 0 or piece.stop == pages:
                ids = work.store.page_ids[piece.stop - len(counts) : piece.stop]
                files.write(shard_name((piece.stop - 1) // SHARD), pack_shard(ids, b"".join(codes), counts, width))
                codes, counts = [], []
            advance(len(piece))


def _require_recorded(store: Store, pages: range, kept: Sequence[int], recorded: np.ndarray) -> None:
    """As many vectors of each page as the run had kept."""
    if (differ := np.flatnonzero(recorded[pages.start : pages.stop] != kept)).size:
        at = int(differ[0])
        raise PruneBoardError(
            f"page {store.page_ids[pages[at]]!r}: {kept[at]} vectors are kept, and the run had kept "
            f"{recorded[pages[at]]}; evaluate again"
        )


def _is_whole(files: CheckedFolder, name: str) -> bool:
    """A damaged file is written again."""
    try:
        return files.has(name) and bool(files.read(name))
    except DamagedError:
        return False


def _sizes(files: CheckedFolder, work: PackPages) -> dict[str, int]:
    pages, dim = len(work.store), work.store.dim
    vectors = sum(int(IndexFile(files.folder / name).offsets[-1]) for name in shard_names(pages))
    size = {"bytes": vectors * work.codec.row(dim).itemsize, "shared_bytes": work.codec.shared_bytes(dim)}
    return {"pages": pages, "vectors": vectors, **size}
