"""Mutated submissions beside whole ones: each is refused in words or stands with its right figures; others stay.

They are checked and built in folders of many, as a maintainer would: what one of them breaks, it breaks for all.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from mutants import MARK, Mutant, mutate
from outcome import Outcome, measured
from world import World

from harness.files import checksum
from harness.submissions.report import CheckedSubmission, ValidationReport
from harness.submissions.schema import Submission, content_id
from harness.submissions.validation import validate
from leaderboard.gather import gather
from leaderboard.site import build

TOGETHER = 100
"""Mutants in one folder."""
SECONDS = 60
"""CPU time that a folder may take, validated and built."""
WITNESSES = ("sap", "random")


def run_mutations(world: World, scratch: Path, count: int, seed: int) -> Outcome:
    outcome = Outcome("mutated submissions, validated and built beside whole ones")
    with measured(outcome):
        for begin in range(0, count, TOGETHER):
            folder = scratch / "mutations"
            shutil.rmtree(folder, ignore_errors=True)
            _try(world, folder, range(begin, min(begin + TOGETHER, count)), seed, outcome)
            shutil.rmtree(folder, ignore_errors=True)
    return outcome


def _try(world: World, folder: Path, numbers: range, seed: int, outcome: Outcome) -> None:
    root = folder / "submissions"
    shutil.copytree(world.submissions, root)
    toy = root / "pages" / "toy"
    originals = [_read(path) for path in sorted(toy.glob("*/*.json"))]
    for path in toy.iterdir():
        if path.is_dir() and path.name not in WITNESSES:
            shutil.rmtree(path)
    mutants = {}
    for number in numbers:
        rng = random.Random(f"{seed}:{number}")
        content, per_query, kept = rng.choice(originals)
        content = json.loads(json.dumps(content))
        content["method"]["name"] = f"mutant-{number:05d}"
        mutants[number] = mutant = mutate(rng, content, per_query, kept)
        _write(root, number, mutant)
    if rng.random() < 0.1:
        _harm_shared(rng, root)
        shared = True
    else:
        shared = False
    begun = time.process_time()
    try:
        report = validate(root)
        site = folder / "site"
        built = build(gather(root, []), site)
    except Exception as error:
        described = f"{type(error).__name__}: {error}"[:300]
        outcome.wrong.append(f"mutants {numbers.start}-{numbers.stop - 1} broke the check or the build: {described}")
        return
    if time.process_time() - begun > SECONDS:
        outcome.wrong.append(f"mutants {numbers.start}-{numbers.stop - 1} took {time.process_time() - begun:.0f} s")
    told = {p.file: p.what for p in [*report.problems, *built.left_out] if "fault of the program" in p.remedy}
    outcome.wrong += [f"{path.parent.name} crashed the check: {what}" for path, what in told.items()]
    if not shared and not {*WITNESSES} <= {entry.submission.method.name for entry in report.entries}:
        outcome.wrong.append(f"mutants {numbers.start}-{numbers.stop - 1} took whole submissions off the board")
    _count(mutants, report, root, {path.parent.name for path in told}, outcome)
    outcome.wrong += [f"{page.name} holds a tag that was submitted" for page in _with_tag(site)]


def _count(
    mutants: dict[int, Mutant], report: ValidationReport, root: Path, crashed: set[str], outcome: Outcome
) -> None:
    """Which mutants were refused, and whether those that were not show what their own rankings give."""
    entries: dict[str, list[CheckedSubmission]] = {}
    for entry in report.entries:
        entries.setdefault(entry.path.parent.name, []).append(entry)
    for number, mutant in mutants.items():
        name = f"mutant-{number:05d}"
        if name in crashed:
            continue  # counted already
        if name not in entries:
            outcome.ended["refused in words"] += 1
            continue
        wrong = [what for entry in entries[name] if (what := _wrong_figure(entry, root))]
        if wrong:
            outcome.wrong.append(f"{name} ({'; '.join(mutant.what)}) shows {wrong[0]}")
        else:
            outcome.ended["valid, its figures right"] += 1


def _wrong_figure(entry: CheckedSubmission, root: Path) -> str:
    """A figure that its rankings do not give, by a plain loop that shares nothing with the check; empty if none."""
    rows = pq.read_table(entry.path.with_suffix(".parquet")).to_pylist()
    judged: dict[tuple[str, str], dict[str, int]] = {}
    for row in pq.read_table(root / "pages" / "qrels.parquet").to_pylist():
        judged.setdefault((row["data_set"], row["query"]), {})[row["page"]] = row["grade"]
    for cell in entry.submission.cells:
        if cell.budget == 1.0:
            continue  # the pinned full model's
        here = [
            r
            for r in rows
            if (r["data_set"], r["language"], r["budget"]) == (cell.data_set, cell.language, cell.budget)
        ]
        values = [_ndcg_5(row["top_10"], judged[row["data_set"], row["query"]]) for row in here]
        if abs(cell.ndcg["5"] - sum(values) / len(values)) > 1e-9:
            return f"NDCG@5 {cell.ndcg['5']} on {cell.data_set}, its rankings give {sum(values) / len(values)}"
    return ""


def _ndcg_5(top: list[str], grades: dict[str, int]) -> float:
    gain = sum(max(0, grades.get(page, 0)) / math.log2(rank + 2) for rank, page in enumerate(top[:5]))
    best = sorted((grade for grade in grades.values() if grade > 0), reverse=True)[:5]
    return gain / sum(grade / math.log2(rank + 2) for rank, grade in enumerate(best))


def _read(path: Path) -> tuple[Any, bytes, bytes]:
    tables = (path.with_suffix(ending).read_bytes() for ending in (".parquet", ".kept.parquet"))
    return json.loads(path.read_text()), *tables


def _write(root: Path, number: int, mutant: Mutant) -> None:
    home = root / "pages" / "toy" / f"mutant-{number:05d}"
    home.mkdir()
    if isinstance(mutant.content, dict) and mutant.forged:
        mutant.content |= {"per_query": checksum(mutant.per_query), "kept": checksum(mutant.kept)}
    name = _name(mutant)
    text = json.dumps(mutant.content).encode("utf-8", "surrogatepass")
    path = home / f"{name}.json"
    path.write_bytes(mutant.text(text) if mutant.text else text)
    path.with_suffix(".parquet").write_bytes(mutant.per_query)
    path.with_suffix(".kept.parquet").write_bytes(mutant.kept)
    _place(path, mutant.place)


def _name(mutant: Mutant) -> str:
    """The id; that of the content if the content is any, and the hand that changed it knows how."""
    if not isinstance(mutant.content, dict):
        return "none"
    if mutant.forged or "id" not in mutant.content:
        with contextlib.suppress(ValueError):
            mutant.content["id"] = content_id(Submission.model_validate_json(json.dumps(mutant.content)))
    found = str(mutant.content.get("id", ""))
    return found if found.isascii() and found.replace("-", "").isalnum() and len(found) < 100 else "none"


def _place(path: Path, how: str) -> None:
    table = path.with_suffix(".parquet")
    if how == "link":
        path.replace(path.parent.parent / "elsewhere.txt")
        path.symlink_to(path.parent.parent / "elsewhere.txt")
    elif how == "folder":
        path.unlink()
        path.mkdir()
    elif how == "other name":
        path.replace(path.with_stem("another"))
    elif how.startswith("no "):
        path.with_suffix({"no per_query": ".parquet", "no kept": ".kept.parquet"}[how]).unlink()
    elif how == "linked table":
        table.unlink()
        table.symlink_to(os.devnull)
    elif how == "extra file":
        (path.parent / "run.py").write_text("raise SystemExit('executed')")
    elif how == "hidden":
        (path.parent / ".htaccess").write_text("x")
    elif how == "deeper":
        (path.parent / "more").mkdir()
        path.replace(path.parent / "more" / path.name)


def _harm_shared(rng: random.Random, root: Path) -> None:
    """What all submissions of a folder share: then all of them may go, and nothing may crash."""
    names = (
        "pins.json",
        "pages/benchmark.json",
        "pages/qrels.parquet",
        "pages/pages.parquet",
        "pages/toy/full.parquet",
    )
    path = root / rng.choice(names)
    data = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 5, 100))):
        data[rng.randrange(len(data))] = rng.randrange(256)
    path.write_bytes(data)


def _with_tag(site: Path) -> list[Path]:
    return [page for page in site.rglob("*.html") if MARK.encode() in page.read_bytes()]
