"""Which submissions share a row: the same method with the same parameters, on the same revision of the same backbone.

One of them is shown and ranked. The others stand beside it as what they are: a reproduction, an earlier figure of the
same submitter, a paper's figure, or a run of one's own. So measuring something again never pushes anybody down.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness.submissions.report import CheckedSubmission

LOCAL = "local"
"""Status of a run of one's own that is not submitted."""


class AgainKind(StrEnum):
    """What a further measurement is to the one that is shown."""

    reproduction = "reproduction"
    again = "measured again"
    earlier = "earlier"
    paper = "paper"
    local = "local run"


@dataclass(frozen=True)
class RowGroup:
    """A submission that takes a row, and the others of the same method."""

    shown: CheckedSubmission
    others: tuple[tuple[AgainKind, CheckedSubmission], ...]


def group(entries: Iterable[CheckedSubmission]) -> list[RowGroup]:
    """Submissions of one benchmark on one backbone, those of a row together."""
    measured: dict[tuple, list[CheckedSubmission]] = {}
    papers = []
    for entry in sorted(entries, key=_age):
        if entry.status == "reported":
            papers.append(entry)
        else:
            measured.setdefault(identity(entry), []).append(entry)
    found = [list(members) for members in measured.values()]
    for paper in papers:  # a paper names a method, and no parameters or revision
        same = [members for members in found if _name(members[0]) == _name(paper) and _submitted(members)]
        if len(same) == 1:
            same[0].append(paper)
        else:
            found.append([paper])
    return [_group(members) for members in found]


def identity(entry: CheckedSubmission) -> tuple:
    """What must agree for two measurements to be of the same thing."""
    method, backbone = entry.submission.method, entry.submission.backbone
    parameters = tuple(sorted((name, str(value)) for name, value in method.parameters.items()))
    return method.name, parameters, method.file_hash, backbone.revision, backbone.profile


def _age(entry: CheckedSubmission) -> tuple:
    return entry.submission.origin.submitted, entry.submission.id


def _name(entry: CheckedSubmission) -> str:
    return entry.submission.method.name


def _submitted(members: Sequence[CheckedSubmission]) -> list[CheckedSubmission]:
    return [entry for entry in members if entry.status not in (LOCAL, "reported")]


def _group(members: Sequence[CheckedSubmission]) -> RowGroup:
    """The latest figures of whoever submitted first are shown: a correction is a new submission."""
    able = _submitted(members) or members
    shown = [entry for entry in able if _who(entry) == _who(able[0])][-1]
    others = [entry for entry in members if entry is not shown]
    return RowGroup(shown, tuple((_kind(entry, shown), entry) for entry in others))


def _who(entry: CheckedSubmission) -> str:
    return entry.submission.origin.submitter.casefold()


def _kind(entry: CheckedSubmission, shown: CheckedSubmission) -> AgainKind:
    if entry.status == LOCAL:
        return AgainKind.local
    if entry.status == "reported":
        return AgainKind.earlier if shown.status == "reported" else AgainKind.paper
    if _who(entry) == _who(shown):
        return AgainKind.earlier
    return AgainKind.reproduction if shown.submission.id in entry.reproduced_by else AgainKind.again
