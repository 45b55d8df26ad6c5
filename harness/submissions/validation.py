"""Submissions checked as the leaderboard checks them: all problems at once, and nothing that was submitted is run."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.metrics.results_table import ResultsTable
from harness.submissions.comparisons import Peer, check_against_full_and_random, check_copies, reproductions
from harness.submissions.folder import (
    BENCHMARK,
    MEASURED_AGAIN,
    PINS,
    VERIFIED,
    ChangeBy,
    check_history,
    check_tree,
    find_root,
    find_submissions,
    read_submission,
    unsafe,
)
from harness.submissions.measured_again import Verification, read_measured_again, still_holds
from harness.submissions.one_submission import Shared, check_alone
from harness.submissions.pins import read_pins
from harness.submissions.problems import Notes
from harness.submissions.report import CheckedSubmission, ValidationReport
from harness.submissions.verified import read_verified
from harness.workers import spread
from pruners.core.errors import PruneBoardError

NOBODY = ChangeBy()


@dataclass
class _Checking(Shared):
    """The state of one validation."""

    known: frozenset[str] = frozenset()
    """Ids that were there before."""
    measured_again: dict[str, Verification] = field(default_factory=dict)
    entries: list[CheckedSubmission] = field(default_factory=list)


def validate(
    root: Path, files: Sequence[Path] | None = None, base: Path | None = None, by: ChangeBy = NOBODY
) -> ValidationReport:
    """Check `files`, or everything below the folder of submissions `root`.

    `base` is the state that it grew from, `by` who changed it.
    """
    if base is not None and not base.is_dir():
        raise PruneBoardError(f"--against is the folder of submissions before the change; {base} is no folder")
    known = frozenset(path.stem for path in find_submissions(base)) if base is not None else frozenset()
    checking = _Checking(root, known=known)
    checking.pins = read_pins(root, checking.about(root / PINS))
    read_verified(root, checking.about(root / VERIFIED))
    checking.measured_again = read_measured_again(root, checking.about(root / MEASURED_AGAIN))
    wanted = find_submissions(root) if files is None else list(files)
    looked_at = wanted if files is None else dict.fromkeys([*_context(files), *files])
    _check_each(checking, list(looked_at))
    _check_together(checking)
    if files is None:
        check_tree(root, checking.about)
        if base is not None:
            check_history(root, base, by, checking.about)
    shown = {path.resolve() for path in wanted} | {(root / name).resolve() for name in checking.records}
    problems = [
        problem
        for notes in checking.notes
        for problem in notes.found
        if files is None or problem.file.resolve() in shown or problem.file.parent.resolve() in shown
    ]
    entries = [entry for entry in checking.entries if files is None or entry.path.resolve() in shown]
    usable = {name: record.facts for name, record in checking.records.items() if record is not None}
    return ValidationReport(tuple(_with_warnings(entries, checking.notes)), tuple(problems), len(wanted), usable, root)


def validate_below(target: Path, base: Path | None, change: ChangeBy) -> ValidationReport:
    """Check a submission, or those in a folder that is a folder of submissions or lies in one."""
    if not target.exists():
        raise PruneBoardError(f"there is no {target}; name a submission or a folder of submissions")
    root, files = find_root(target), None
    if target.resolve() != root:
        inside = [path for path in find_submissions(root) if path.resolve().is_relative_to(target.resolve())]
        files = [target] if target.is_file() else inside
        if not files:
            raise PruneBoardError(f"{target} has no submissions in it")
    if base is not None and files is not None:
        raise PruneBoardError("--against compares whole folders of submissions: name the folder, not a part of it")
    return validate(root, files, base, change)


def _context(files: Sequence[Path]) -> list[Path]:
    """Submissions of the same backbones and benchmarks: random's row, and what is reproduced, are among them."""
    homes = {path.parent.parent for path in files if (path.parent.parent.parent / BENCHMARK).is_file()}
    return [path for home in sorted(homes) for path in sorted(home.glob("*/*.json"))]


def _check_each(checking: _Checking, paths: Sequence[Path]) -> None:
    """Every submission by itself, spread over the cores; their order stays. One that waits takes no memory."""
    _read_shared(checking, paths)
    notes_of = {path: checking.about(path) for path in paths}
    known: dict[Hashable, Any] = {}
    with spread(lambda path: check_alone(checking, path), paths, os.cpu_count() or 1) as results:
        for path, (problems, entry) in zip(paths, results, strict=True):
            notes_of[path].found[:] = problems  # a worker has notes of its own
            if entry is not None:
                checking.entries.append(_sharing(entry, known))


def _read_shared(checking: _Checking, paths: Sequence[Path]) -> None:
    """Benchmarks and full models, read before the work is spread: each worker would read them again."""
    root = checking.root.resolve()
    homes = {path.parents[1] for path in paths if unsafe(path, checking.root) is None}
    for home in sorted(home for home in homes if home.parents[1].resolve() == root):
        if (record := checking.record(home.parent.name)) is not None:
            checking.full_model(record, home.parent.name, home.name)


def _sharing(entry: CheckedSubmission, known: dict[Hashable, Any]) -> CheckedSubmission:
    """What many submissions have in common held once, not by every one that another process checked: the names of a
    benchmark's queries, and what is said of it.
    """
    facts = entry.submission.benchmark
    same = known.setdefault(("benchmark", facts.model_dump_json()), facts)
    entry = replace(entry, submission=entry.submission.model_copy(update={"benchmark": same}))
    if entry.scores is None:
        return entry
    queries = {cell: known.setdefault(names, names) for cell, names in entry.scores.queries.items()}
    return replace(entry, scores=ResultsTable(queries, entry.scores.measures))


def _check_together(checking: _Checking) -> None:
    notes_of = {notes.file: notes for notes in checking.notes}
    peers = [Peer(e.submission, e.scores, notes_of[e.path], e.rankings, e.content) for e in checking.entries]
    for name, record in checking.records.items():
        if record is not None:
            here = [peer for peer in peers if peer.submission.benchmark.name == name]
            check_against_full_and_random(here, record)
    known = {name: record for name, record in checking.records.items() if record is not None}
    check_copies(peers, checking.known)
    agree = reproductions([peer for peer in peers if peer.notes.clean], known)
    checking.entries = [
        replace(entry, status="reproduced", reproduced_by=agree[entry.submission.id])
        if entry.submission.id in agree and entry.ranked
        else entry
        for entry in checking.entries
        if notes_of[entry.path].clean
    ]
    checking.entries = [_with_verification(checking, entry, notes_of[entry.path]) for entry in checking.entries]


def _with_verification(checking: _Checking, entry: CheckedSubmission, notes: Notes) -> CheckedSubmission:
    """The highest rung, for who was measured again by a maintainer and has not changed since."""
    record = checking.measured_again.get(entry.submission.id)
    if record is None or not entry.ranked:
        return entry
    if not still_holds(record, read_submission(entry.path), entry.path):
        what = f"{record.by} verified other content under this id on {record.on}: it changed since"
        notes.warn(
            "status", what, "a maintainer runs `harness reproduce` again, or takes it out of measured-again.json"
        )
        return entry
    return replace(entry, status="verified")


def _with_warnings(entries: Iterable[CheckedSubmission], notes: Iterable[Notes]) -> list[CheckedSubmission]:
    warnings = {n.file: tuple(f"{p.field}: {p.what}" for p in n.found if p.level == "warning") for n in notes}
    return [replace(entry, warnings=warnings[entry.path]) for entry in entries]
