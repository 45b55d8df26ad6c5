"""A small world to do harm to: a retriever without a model, its benchmark, a store, a run, submissions; and commands.

A command runs in a process of its own that was forked from this one, so that it need not load its libraries again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [
    str(ROOT),
    str(ROOT / "tests" / "harness" / "evaluation"),
    str(ROOT / "tests" / "harness" / "submissions"),
]

import torch  # noqa: E402
from spoiling import pin  # noqa: E402
from toy import write_backbone, write_data_set  # noqa: E402

METHODS = ("sap", "random", "kmeans", "docpruner")
TIMES = {"timings.json", "log.txt", "environment.json", "checksums.txt", ".lock", "progress.json"}
"""Files of a run that hold times, or grow with every try."""
DAY = "2026-11-16"


@dataclass(frozen=True)
class World:
    """Folders that nobody changes; tries work on copies."""

    folder: Path

    def __getattr__(self, name: str) -> Path:
        return self.folder / name

    @property
    def data(self) -> list[str]:
        return ["--backbone", str(self.folder / "toy_backbone.py"), "--benchmark", str(self.folder / "pages")]


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit status (negative: the signal) and what it said to people."""

    status: int
    said: str

    @property
    def well(self) -> bool:
        """As it was meant, or refused in one line; never by a traceback."""
        return self.status in (0, 1, 2) and "Traceback" not in self.said


def start(words: list[str], log: Path, env: Mapping[str, str] | None = None) -> int:
    """The process of a `harness` command."""
    pid = os.fork()
    with contextlib.suppress(OSError):  # on both sides: whoever comes first makes the group that may be killed
        os.setpgid(pid, pid)
    if pid:
        return pid
    code = 70
    try:
        with log.open("wb") as file:
            os.dup2(file.fileno(), 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.environ.update(env or {})
        sys.argv = ["harness", *words]
        from harness.cli import run

        code = run()
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def finish(pid: int, log: Path) -> Ended:
    _, status = os.waitpid(pid, 0)
    return Ended(os.waitstatus_to_exitcode(status), log.read_text(errors="replace"))


def run(words: list[str], log: Path, env: Mapping[str, str] | None = None) -> Ended:
    return finish(start(words, log, env), log)


def make_world(folder: Path) -> World:
    """Everything that tries begin with. It takes some seconds, once."""
    torch.set_num_threads(1)  # before anything is forked
    world, log = World(folder), folder / "log"
    folder.mkdir(parents=True)
    os.environ["XDG_CACHE_HOME"] = str(world.cache)
    os.environ["PRUNEBOARD_STORES"] = str(world.stores)
    write_backbone(folder)
    write_data_set(folder / "pages" / "plain", range(20), queries=14)
    write_data_set(folder / "pages" / "tongues", range(30, 50), queries=11, languages=("english", "french"))
    write_data_set(folder / "calibration", range(100, 130), queries=30)
    _write_images(folder / "images")
    _write_vectors(folder)
    methods = [word for method in METHODS for word in ("--pruner", method)]
    for words in (
        ["evaluate", *world.data, "--calibration", str(world.calibration), *methods, "--budgets", "0.1,0.2",
         "--trials", "2", "--workers", "1", "--quiet", "--store", str(world.stores), "--out", str(world.run)],
        ["submit", str(world.run), "--submitter", "the campaign", "--date", DAY, "--out", str(world.submissions)],
    ):  # fmt: skip
        ended = run(words, log)
        if ended.status:
            raise RuntimeError(f"the campaign's own world cannot be made: {ended.said}")
    pin(world.submissions, "sap")
    return world


def _write_images(folder: Path) -> None:
    from toy import paint

    folder.mkdir()
    for number in range(12):
        (folder / f"{number}.png").write_bytes(paint(number, (40, 30)))
    asked = [json.dumps({"id": f"q{n}", "text": f"page {n}"}) for n in range(6)]
    (folder / "queries.jsonl").write_text("\n".join(asked) + "\n")
    judged = ["query-id\tcorpus-id\tscore", *(f"q{n}\t{n}.png\t1" for n in range(6))]
    (folder / "qrels.tsv").write_text("\n".join(judged) + "\n")


def _write_vectors(folder: Path) -> None:
    drawn = np.random.default_rng(0)
    for name, count in (("vectors", 40), ("asked", 10)):
        each = drawn.integers(4, 9, count)
        np.savez(
            folder / f"{name}.npz",
            vectors=drawn.standard_normal((each.sum(), 16)).astype(np.float32),
            offsets=np.concatenate([[0], each.cumsum()]),
            ids=np.array([f"{name}-{i}" for i in range(count)]),
        )


def digest(folder: Path, without: set[str] = TIMES) -> dict[str, str]:
    """Every file by its name; those that hold times are left out, and so are those that a killed process left."""
    if folder.is_file():
        return {folder.name: hashlib.sha256(folder.read_bytes()).hexdigest()}
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in without]
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if not (path.name.startswith(".") and path.suffix in (".tmp", ".lock"))
    }


@dataclass(frozen=True)
class LongCommand:
    """A command that may be disturbed: what it begins with, its words, and what it leaves, in a place of its own."""

    name: str
    words: Callable[[Path], list[list[str]]]
    """Of the place; several are run one after another."""
    leaves: Callable[[Path], Path]
    prepare: Callable[[Path], object] = lambda place: None
    env: Callable[[Path], dict[str, str]] = lambda place: {}


def long_commands(world: World) -> list[LongCommand]:
    """Every command that writes and takes long."""
    calibration = ["--backbone", world.data[1], "--benchmark", str(world.calibration)]
    methods = ["--pruner", "sap", "--pruner", "random", "--pruner", "kmeans", "--budgets", "0.1,0.2"]
    sap = next(world.submissions.glob("pages/toy/sap/*.json")).stem

    def encode(place: Path, *more: str) -> list[str]:
        return ["encode", *world.data, "--store", str(place / "stores"), *more]

    def with_stores(place: Path) -> None:
        shutil.copytree(world.stores, place / "stores")

    def with_submissions(place: Path) -> None:
        shutil.copytree(world.submissions, place / "submissions")
        (place / "submissions" / "pins.json").unlink()
        for path in (place / "submissions" / "pages" / "toy").glob("full*"):
            path.unlink()

    def cached(place: Path) -> dict[str, str]:
        return {"XDG_CACHE_HOME": str(place / "cache")}

    def with_pictures(place: Path) -> None:
        """What methods keep is drawn once for all sites, which takes longer than a site."""
        if not world.site.is_dir():
            run(["leaderboard", "--submissions", str(world.submissions), "--out", str(world.site)], world.log)
        shutil.copytree(world.cache, place / "cache", ignore=shutil.ignore_patterns("site"))

    return [
        LongCommand("encode", lambda p: [encode(p)], lambda p: p / "stores"),
        LongCommand(
            "encode --part",
            lambda p: [encode(p, "--part", "1/2"), encode(p, "--part", "2/2"), encode(p)],
            lambda p: p / "stores",
        ),
        LongCommand(
            "calibrate",
            lambda p: [["calibrate", *calibration, "--pairs", "30", "--store", str(p / "stores")]],
            lambda p: p / "stores",
        ),
        LongCommand(
            "evaluate",
            lambda p: [["evaluate", *world.data, "--calibration", str(world.calibration), *methods, "--quiet",
                        "--workers", "2", "--store", str(p / "stores"), "--out", str(p / "run")]],
            lambda p: p / "run",
            with_stores,
        ),
        LongCommand(
            "experiment",
            lambda p: [["experiment", "sr-ndcg", *world.data, "--calibration", str(world.calibration), "--pairs", "30",
                        "--workers", "1", "--quiet", "--store", str(p / "stores"), "--out", str(p / "experiments")]],
            lambda p: p / "experiments",
            with_stores,
        ),
        LongCommand(
            "explain",
            lambda p: [["explain", str(world.run), "--store", str(world.stores), "--out", str(p / "why.html")]],
            lambda p: p / "why.html",
        ),
        LongCommand(
            "import", lambda p: [["import", str(world.images), "--out", str(p / "bench")]], lambda p: p / "bench"
        ),
        LongCommand(
            "import-vectors",
            lambda p: [["import-vectors", str(world.folder / "vectors.npz"), str(world.folder / "asked.npz"), "--out",
                        str(p / "store"), "--name", "made-up"]],
            lambda p: p / "store",
        ),
        LongCommand(
            "submit",
            lambda p: [["submit", str(world.run), "--submitter", "me", "--date", DAY, "--out", str(p / "mine")]],
            lambda p: p / "mine",
        ),
        LongCommand(
            "pin",
            lambda p: [["pin", sap, "--by", "me", "--date", DAY, "--submissions", str(p / "submissions")]],
            lambda p: p / "submissions",
            with_submissions,
        ),
        LongCommand(
            "reproduce --record",
            lambda p: [["reproduce", "--all", "--record", "--by", "me", "--workers", "1", "--data", str(world.folder),
                        "--submissions", str(p / "submissions"), "--backbone", world.data[1],
                        "--store", str(p / "stores")]],
            lambda p: p / "submissions",
            lambda p: (shutil.copytree(world.submissions, p / "submissions"), with_stores(p)),
        ),
        LongCommand(
            "leaderboard",
            lambda p: [["leaderboard", "--submissions", str(world.submissions), "--out", str(p / "site"), "--json"]],
            lambda p: p / "site",
            with_pictures,
            cached,
        ),
    ]  # fmt: skip


class Places:
    """Folders for tries, each new."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0

    def new(self) -> Path:
        self.count += 1
        place = self.folder / f"{self.count:05d}"
        place.mkdir(parents=True)
        return place


def undisturbed(command: LongCommand, place: Path) -> tuple[dict[str, str], float]:
    """What a command leaves where nothing disturbs it, and the seconds it took."""
    command.prepare(place)
    begun = time.perf_counter()
    for words in command.words(place):
        ended = run(words, place / "log", command.env(place))
        if ended.status:
            raise RuntimeError(f"{command.name} fails without any harm: {ended.said[-2000:]}")
    return digest(command.leaves(place)), time.perf_counter() - begun
