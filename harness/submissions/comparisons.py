"""What only shows beside others: methods above the full model or below random, other full models, reproduction."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np

from harness.metrics.results_table import ResultsTable, benchmark_mean, data_set_mean
from harness.metrics.uncertainty import compare
from harness.submissions.benchmark import BenchmarkRecord, coverage
from harness.submissions.problems import Notes, printable
from harness.submissions.schema import Submission, Track

RESAMPLES = 2000  # for a warning; the board's intervals have more
REPRODUCED_WITHIN = 1.0  # points of a benchmark's mean NDCG@5, as for the full model against MTEB
RANDOM = "random"


@dataclass(frozen=True)
class Peer:
    """A submission without errors, and where to say what is found."""

    submission: Submission
    scores: ResultsTable | None
    """Computed again; None where figures are reported, or nothing could be."""
    notes: Notes
    rankings: Mapping[tuple[str, float], str] = field(default_factory=dict)
    """Digests, by data set and budget."""
    content: str = ""
    """Digest of all rows, however they are packed."""


@dataclass(frozen=True)
class _Cell:
    peer: Peer
    budget: float
    by_data_set: dict[tuple[str, str], np.ndarray]
    """(data set, language) -> NDCG@5 of each query, mean over trials."""

    @property
    def codec(self) -> str | None:
        """Of the codec that stores it; None: float16."""
        stored = self.peer.submission.codec
        return None if stored is None else stored.expression

    @property
    def pruner(self) -> str:
        return self.peer.submission.method.expression.removesuffix(f" | {self.codec}")

    @property
    def retained(self) -> float | None:
        """Score Retention, mean over data sets and languages."""
        cells = [c.score_retention for c in self.peer.submission.cells if c.budget == self.budget]
        return None if None in cells else float(np.mean(np.array(cells, float)))


def check_against_full_and_random(peers: Sequence[Peer], record: BenchmarkRecord) -> None:
    """One bootstrap for all submissions of a benchmark that share a full model, so that they share its resamples."""
    groups: dict[tuple[str, str], list[_Cell]] = {}
    fulls: dict[tuple[str, str], _Cell] = {}
    for peer in peers:
        whole = [b for b, (done, wanted) in coverage(peer.submission, record).items() if done == wanted]
        if peer.scores is None or 1.0 not in whole:
            continue
        found = {budget: _Cell(peer, budget, _by_language(peer.scores, budget)) for budget in whole}
        key = peer.submission.backbone.name, _fingerprint(found[1.0])
        fulls[key] = found.pop(1.0)
        groups.setdefault(key, []).extend(found.values())
    for key, cells in groups.items():
        if cells:
            _compare_group(cells, fulls[key])


def check_copies(peers: Sequence[Peer], known: Set[str]) -> None:
    """Tables that were submitted before, by another or under another name. Those `known` before are the originals.

    Where nothing tells which of two was first, both are told.
    """
    ordered = sorted(peers, key=lambda peer: (*_seniority(peer.submission, known), peer.submission.id))
    names: dict[tuple[str, ...], tuple[str, ...]] = {}
    tables: dict[tuple[str, str, str], Peer] = {}
    seen: dict[tuple, list[Peer]] = {}
    for peer in ordered:
        ours = peer.submission
        for name in (
            (ours.benchmark.name,),
            place := (ours.benchmark.name, ours.backbone.name),
            (*place, ours.method.name),
        ):
            first = names.setdefault(tuple(part.casefold() for part in name), name)
            if first != name:
                what = f"{name[-1]} differs from {first[-1]} only in its case, which some disks cannot tell apart"
                peer.notes.error("name", what, "choose another name")
        if ours.per_query is None:
            continue
        first_peer = tables.setdefault((*place, peer.content or ours.per_query), peer)
        if first_peer is not peer and not _same_submitter(first_peer.submission, ours):
            _say_copied(peer, first_peer)
            if _seniority(first_peer.submission, known) == _seniority(ours, known):
                _say_copied(first_peer, peer)
            continue
        codec = ours.codec and ours.codec.expression  # a codec that loses nothing ranks as float16 does
        same = [seen.setdefault((*place, codec, *key), []) for key in peer.rankings.items()]
        _find_renamed(peer, same)
        for earlier in same:
            earlier.append(peer)


def _say_copied(peer: Peer, other: Peer) -> None:
    what = f"its rows are those of {other.submission.id}, number by number: a copy shows nothing"
    peer.notes.error("per_query", what, "measure it yourself; a maintainer's `harness reproduce` confirms a row")


def _find_renamed(peer: Peer, same: Sequence[Sequence[Peer]]) -> None:
    """`same`: for each data set and budget those before it that rank every query alike."""
    everywhere = [one for one in (same[0] if same else ()) if all(any(one is p for p in here) for here in same[1:])]
    first = next((one for one in everywhere if one.submission.method.name != peer.submission.method.name), None)
    if first is None:
        return
    what = f"ranks every query as {printable(first.submission.method.name)} ({first.submission.id}) does"
    say = peer.notes.warn if _same_submitter(first.submission, peer.submission) else peer.notes.error
    say("per_query", what, "the same method has the same name; if it is your own variant, say what differs")


def _seniority(submission: Submission, known: Set[str]) -> tuple:
    """Which of two that are the same was first: what was there before, then who does not say that it is the second."""
    return submission.id not in known, submission.claim == "reproduced", submission.origin.submitted


def _same_submitter(one: Submission, other: Submission) -> bool:
    """By their accounts, where they have any; a name alone is easily borrowed."""
    accounts = {one.origin.account, other.origin.account}
    if accounts != {None}:
        return len(accounts) == 1
    return one.origin.submitter.casefold() == other.origin.submitter.casefold()


def reproductions(peers: Sequence[Peer], record: Mapping[str, BenchmarkRecord]) -> dict[str, tuple[str, ...]]:
    """Id -> ids of submissions by others that measured the same and agree: both of a pair count as reproduced."""
    known = {peer.submission.id: peer for peer in peers}
    agree: dict[str, tuple[str, ...]] = {}
    for peer in peers:
        ours = peer.submission
        if ours.reproduces is None:
            continue
        theirs = known[ours.reproduces].submission if ours.reproduces in known else None
        if theirs is None:
            peer.notes.error("reproduces", f"there is no valid submission {printable(ours.reproduces)}", "mend the id")
        elif reason := _not_the_same(ours, theirs, record[ours.benchmark.name]):
            peer.notes.warn("reproduces", reason, "so it counts as a measurement of its own")
        else:
            agree[ours.id] = (*agree.get(ours.id, ()), theirs.id)
            agree[theirs.id] = (*agree.get(theirs.id, ()), ours.id)
    return agree


def _not_the_same(ours: Submission, theirs: Submission, record: BenchmarkRecord) -> str | None:
    """Why one submission does not reproduce another; None if it does."""
    mine = ours.benchmark.name, ours.backbone.name, ours.method.name
    if mine != (theirs.benchmark.name, theirs.backbone.name, theirs.method.name):
        return f"{theirs.id} is of another benchmark, backbone or method"
    if _same_submitter(ours, theirs):
        return f"{theirs.id} is by the same submitter"
    left, right = _means(ours, record), _means(theirs, record)
    shared = sorted(left.keys() & right.keys())
    if not any(budget < 1 for budget in shared):
        return f"{theirs.id} shares no complete budget with it"
    for budget in shared:
        if (gap := abs(left[budget] - right[budget])) > REPRODUCED_WITHIN:
            return f"its mean NDCG@5 at {budget:g} is {gap:.1f} points from that of {theirs.id}"
    return None


def _means(submission: Submission, record: BenchmarkRecord) -> dict[float, float]:
    """Mean NDCG@5 in % of every complete budget."""
    means = {}
    for budget, (done, wanted) in coverage(submission, record).items():
        if done == wanted:
            by_data_set: dict[str, list[float]] = {}
            for cell in submission.cells:
                if cell.budget == budget and cell.data_set in record.data_sets:
                    by_data_set.setdefault(cell.data_set, []).append(cell.ndcg["5"])
            means[budget] = 100 * float(benchmark_mean([data_set_mean(v) for v in by_data_set.values()]))
    return means


def _compare_group(cells: Sequence[_Cell], full: _Cell) -> None:
    subsets: dict[str, list[np.ndarray]] = {}
    for name, language in full.by_data_set:
        rows = [cell.by_data_set[name, language] for cell in (*cells, full)]
        subsets.setdefault(name, []).append(np.vstack(rows))
    found = compare(list(subsets.values()), resamples=RESAMPLES)
    _warn_of_diagnostics(cells)
    random_at = {(c.budget, c.codec): i for i, c in enumerate(cells) if c.pruner == RANDOM}
    for i, cell in enumerate(cells):
        if cell.peer.submission.method.track is Track.diagnostic:
            continue  # it has seen the queries
        field, interval = f"cells (budget {cell.budget:g})", found.retention_interval(i)
        if interval.low > 100:
            what = (
                f"retention {interval.value:.1f} % [{interval.low:.1f}, {interval.high:.1f}] is above the full model's"
            )
            cell.peer.notes.warn(field, what, "has the method seen the queries, or is the full model's row another's?")
        other = random_at.get((cell.budget, cell.codec))
        if other is not None and other != i and found.difference(i, other).high < 0:
            gap = found.difference(i, other)
            what = f"{-gap.value:.1f} points of retention below random at the same budget"
            cell.peer.notes.warn(field, what, "so weak, or is the order of its scores reversed?")


def _warn_of_diagnostics(cells: Sequence[_Cell]) -> None:
    """Who sees the gold queries keeps the vectors that score highest; a subset chosen blindly does not reach that."""
    best = {c.budget: c.retained for c in cells if c.peer.submission.method.track is Track.diagnostic}
    for cell in cells:
        most = best.get(cell.budget)
        if cell.peer.submission.method.track is Track.subset and most and (cell.retained or 0) >= most:
            what = (
                f"Score Retention {cell.retained:.3f} reaches that of a diagnostic, which sees the queries: {most:.3f}"
            )
            cell.peer.notes.warn(f"cells (budget {cell.budget:g})", what, "has the method seen them?")


def _by_language(found: ResultsTable, budget: float) -> dict[tuple[str, str], np.ndarray]:
    cells = [cell for cell in found.queries if cell.budget == budget]
    return {(cell.data_set, cell.language): found.per_query(cell) for cell in cells}


def _fingerprint(full: _Cell) -> str:
    digest = hashlib.sha256()
    for key, values in sorted(full.by_data_set.items()):
        digest.update(repr(key).encode() + np.round(values, 6).tobytes())
    return digest.hexdigest()
