"""Bits that flip in stores and run folders: what is read back is what was written, or the damaged file is named."""

from __future__ import annotations

import hashlib
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from outcome import Outcome, measured
from world import World

import harness
from harness.store.reader import Store
from pruners.core.errors import PruneBoardError


def run_flips(world: World, scratch: Path, count: int, seed: int) -> list[Outcome]:
    """Half of them over stores, half over a run folder."""
    stores, run = scratch / "flipped-stores", scratch / "flipped-run"
    shutil.copytree(world.stores, stores)
    shutil.copytree(world.run, run)
    for path in run.rglob(".lock"):
        path.unlink()

    def read_stores() -> str:
        """As an evaluation does: it asks for the finished stores, whose checksums are compared then."""
        found = harness.encode(world.data[1], str(world.pages), store=stores)
        return _digest(*(_values(store) for store in found.values()))

    def read_run() -> str:
        """The table, every query's figures, and what a submission of it would say."""
        found = harness.load_run(run)
        kept = [found._run.files.read_result(d, "random").kept for d in found.data_sets]
        return _digest(repr(found.rows), found.per_query.to_csv(), repr(found.failures), repr(found.config), repr(kept))

    rng = random.Random(seed)
    wanted = [path for path in _files(stores) if path.parent.name in _of_pages(world)]
    return [
        _flip("bits flipped in stores, read back", wanted, read_stores, count // 2, rng),
        _flip("bits flipped in a run folder, read back", _files(run), read_run, count - count // 2, rng),
    ]


def _of_pages(world: World) -> set[str]:
    return {store.folder.name for store in harness.encode(world.data[1], str(world.pages), store=world.stores).values()}


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_size]


def _values(store: Store) -> str:
    pages = [
        (p.id, p.vectors.numpy().tobytes(), p.grid, {n: s.numpy().tobytes() for n, s in p.signals.items()})
        for p in store.pages()
    ]
    queries = [store.query(i).numpy().tobytes() for i in range(len(store.query_ids))]
    return repr((pages, store.query_ids, queries))


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _flip(what: str, files: list[Path], read: Callable[[], str], count: int, rng: random.Random) -> Outcome:
    outcome = Outcome(what)
    with measured(outcome):
        whole = read()
        for _ in range(count):
            path = rng.choice(files)
            before = path.read_bytes()
            place, bit = rng.randrange(len(before)), rng.randrange(8)
            path.write_bytes(before[:place] + bytes([before[place] ^ 1 << bit]) + before[place + 1 :])
            where = f"{path.name}, bit {bit} of byte {place}"
            try:
                same = read() == whole
                if same:
                    outcome.ended["the same values"] += 1
                else:
                    outcome.wrong.append(f"{where}: other values are read")
            except PruneBoardError as error:
                if path.name in str(error) or str(path.parent) in str(error):
                    outcome.ended["the file is named"] += 1
                else:
                    outcome.wrong.append(f"{where}: an error that does not name it: {str(error)[:200]}")
            except Exception as error:
                outcome.wrong.append(f"{where}: {type(error).__name__}: {str(error)[:200]}")
            finally:
                path.write_bytes(before)
    return outcome
