"""What `harness list backbones` shows: what each gives, which published figure verifies it, and where that was done."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.backbones.contract import VISUAL
from harness.backbones.registry import catalogue, is_default
from harness.submissions.folder import FOLDER, VERIFIED
from harness.submissions.problems import Notes
from harness.submissions.verified import read_verified
from pruners.core.plugins import CatalogEntry


def rows(file: Path | None = None) -> list[dict[str, Any]]:
    """One row a backbone. Facts are of the default checkpoint; nothing is loaded."""
    from harness.verification.published import figure_to_meet
    from harness.verification.report import stored

    told: list[tuple[Any, str]] = [
        *((report, report.summary) for report in read_verified(FOLDER, Notes(FOLDER / VERIFIED, []))),
        *((report, f"here: {report.summary}") for report in stored()),
    ]
    return [
        {
            "name": entry.name,
            "kind": VISUAL,
            **entry.options,
            "gives": _gives(entry.options),
            "figure": figure_to_meet(entry.name),
            "verified": _verified(entry, [(report, text) for report, text in told if report.backbone == entry.name]),
            "source": entry.source,
            "place": entry.place,
        }
        for entry in catalogue(file).values()
    ]


def _verified(entry: CatalogEntry, told: Sequence[tuple[Any, str]]) -> str | None:
    """What the last report of the default checkpoint says; if there is none, that of another one, which is named."""
    ours = [text for report, text in told if is_default(entry, report.checkpoint, report.revision)]
    others = [f"not this checkpoint, but {report.checkpoint}: {text}" for report, text in told]
    return next(reversed(ours or others), None)


def _gives(facts: dict[str, Any]) -> list[str]:
    what = "token" if facts.get("kind", VISUAL) != VISUAL else "patch"
    size = f" of {facts['dim']} numbers" if facts.get("dim") else ""
    if not facts.get("signals"):
        return [f"a vector{size} a {what}; no signals"]
    depth = f" of {facts['layers']} layers" if facts.get("layers") else ""
    return [f"a vector{size} a {what}; {', '.join(facts['signals'])}{depth}"]
