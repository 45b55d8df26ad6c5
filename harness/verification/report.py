"""What `harness verify-backbone` found: checks with a verdict each, as JSON to keep and as text for an issue."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness.cache import default_root
from harness.files import write_atomically

FORMAT = 1
PASSED, FAILED, NOT_DONE = "passed", "failed", "not done"


@dataclass(frozen=True)
class Check:
    """One question, and what was found. What could not be asked is said, and counts for nothing."""

    name: str
    verdict: str
    detail: str


@dataclass(frozen=True)
class VerificationReport:
    """All checks of one backbone on one machine."""

    backbone: str
    checkpoint: str
    revision: str
    dtype: str
    device: str
    checks: tuple[Check, ...]
    figure: dict[str, Any] | None = None
    """Task, NDCG@5 in % here and at MTEB, and how far apart they may be; None if no figure was measured."""
    libraries: dict[str, str] = field(default_factory=dict)
    day: str = field(default_factory=lambda: datetime.datetime.now(datetime.UTC).date().isoformat())
    format: int = FORMAT

    @property
    def failed(self) -> list[Check]:
        return [check for check in self.checks if check.verdict == FAILED]

    @property
    def summary(self) -> str:
        """In a few words, for lists."""
        if self.failed:
            return f"failed on {self.day}: {', '.join(check.name for check in self.failed)}"
        passed = sum(check.verdict == PASSED for check in self.checks)
        told = f"{passed} checks on {self.device} ({self.dtype}), {self.day}"
        if self.figure and self.figure.get("official") is not None:
            here, there = self.figure["ours"], self.figure["official"]
            return f"{told}; {self.figure['task']} {here:.1f}, MTEB {there:.1f}"
        return f"{told}; no figure measured"

    def text(self) -> str:
        """A report that one can paste into an issue."""
        verdict = "failed" if self.failed else "passed"
        open_ = sum(check.verdict == NOT_DONE for check in self.checks)
        lines = [
            f"### verify-backbone {self.backbone}: {verdict}" + (f", {open_} not done" if open_ else ""),
            "",
            f"{self.checkpoint} at {self.revision}, {self.dtype} on {self.device}, {self.day}",
            ", ".join(f"{name} {version}" for name, version in self.libraries.items()),
            "",
            "| check | verdict | |",
            "| --- | --- | --- |",
            *(f"| {check.name} | {check.verdict} | {_cell(check.detail)} |" for check in self.checks),
        ]
        return "\n".join(lines) + "\n"

    def save(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, (json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n").encode())
        return path


def folder() -> Path:
    """Where reports lie unless told otherwise: beside the stores."""
    return default_root().parent / "verified"


def file_name(report: VerificationReport) -> str:
    return re.sub(r"[^\w.+-]", "_", f"{report.backbone}--{report.revision[:24]}.json")


def stored(place: Path | None = None) -> Iterator[VerificationReport]:
    """Every report that lies there, the oldest first. Files of another form are no reports."""
    paths = sorted((place or folder()).glob("*.json"), key=lambda path: path.stat().st_mtime)
    return (report for path in paths if (report := _read(path)) is not None)


def _read(path: Path) -> VerificationReport | None:
    """The report in a file; None if it is none, or one that cannot be shown: damaged, edited, of another release."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["format"] != FORMAT:
            return None
        report = VerificationReport(**{**found, "checks": tuple(Check(**check) for check in found["checks"])})
        _ = report.summary
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return report


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
