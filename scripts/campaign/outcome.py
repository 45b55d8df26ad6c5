"""What a part of the campaign found: how often it tried, how the tries ended, and every one that ended badly."""

from __future__ import annotations

import resource
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

MOST_MEGABYTES = 1000
HEADINGS = ("what was done", "times", "how it ended", "wrong", "CPU s", "MB")


@dataclass
class Outcome:
    """One line of the table. `ended` counts how tries ended well; `wrong` says what of each bad one."""

    what: str
    ended: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    cpu: float = 0.0
    megabytes: int = 0
    skipped: str = ""
    """Why it could not be tried here."""

    @property
    def tries(self) -> int:
        return self.ended.total() + len(self.wrong)

    def row(self) -> tuple[str, ...]:
        ended = self.skipped or ", ".join(f"{count} {how}" for how, count in sorted(self.ended.items()))
        numbers = f"{len(self.wrong)}", f"{self.cpu:.0f}", f"{self.megabytes}"
        return self.what, f"{self.tries:,}", ended, *numbers

    def as_dict(self) -> dict[str, object]:
        return {**vars(self), "ended": dict(self.ended), "tries": self.tries, "cpu": round(self.cpu, 1)}


@contextmanager
def measured(outcome: Outcome) -> Iterator[None]:
    """CPU seconds and the largest process of a block, with the processes that it waited for."""
    before = _used()
    try:
        yield
    finally:
        outcome.cpu += _used() - before
        outcome.megabytes = round(max(_own_peak(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 1024)
        if outcome.megabytes > MOST_MEGABYTES:
            outcome.wrong.append(f"a process took {outcome.megabytes} MB")


def _own_peak() -> int:
    """Of this process, in KB. `getrusage` would count what the process that started this one had taken, too."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def _used() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def joined(parts: list[dict]) -> list[Outcome]:
    """Parts that ran by themselves, as `--json` printed them, with those of the same name as one."""
    found: dict[str, Outcome] = {}
    for part in parts:
        one = found.setdefault(part["what"], Outcome(part["what"], skipped=part["skipped"]))
        one.ended.update(part["ended"])
        one.wrong += part["wrong"]
        one.cpu += part["cpu"]
        one.megabytes = max(one.megabytes, part["megabytes"])
    return list(found.values())


def markdown(outcomes: list[Outcome]) -> str:
    """The table for the docs."""
    rows = [HEADINGS, tuple("---" for _ in HEADINGS), *(outcome.row() for outcome in outcomes)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
