"""What a submission says of a run's method, backbone and environment."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.backbones import registry
from harness.submissions.finished_run import FinishedRun, slug
from harness.submissions.schema import BackboneFacts, Environment, MethodFacts, Track

WINDOW = ("window", "source", "curve", "median", "boundary", "empty_suffix", "pairs", "gamma", "rho")
"""What a submission says of a window; the curve is drawn on the backbone's page."""
TRACKS = {"subset": Track.subset, "merged": Track.merging, "quantised": Track.quantised}


def method(run: FinishedRun, text: str, track: Track | None) -> MethodFacts:
    """A method with its parameters and what it learned."""
    facts = run.methods[text]
    declared = Track.diagnostic if facts["diagnostic"] else TRACKS[facts["output"]]
    calibrated: dict[str, Any] = {}
    if facts["thresholds"]:
        calibrated["thresholds"] = facts["thresholds"]
    window = (run.calibration or {}).get("window")
    if window and "layers=" in facts["composition"] and "layers=" not in text:
        calibrated["window"] = {key: window[key] for key in WINDOW if key in window}
    if run.calibration and (calibrated or facts["shared_bytes"]):
        calibrated["on"] = {key: run.calibration[key] for key in ("benchmark", "content", "pages")}
    return MethodFacts(
        name=slug(text),
        expression=f"{facts['file']}:{text}" if facts["file"] else text,
        title=facts["summary"].rstrip(".")[:200] or facts["name"],
        track=track or declared,
        composition=facts["composition"],
        adaptive=facts["budget"] == "adaptive",
        snapped=facts["budget"] == "snapped",
        version=_version(facts),
        file_hash=facts["file_hash"],
        code=code_of(facts["made_by"]),
        signals=tuple(facts["needs"]),
        parameters={k: tuple(v) if isinstance(v, list) else v for k, v in facts["parameters"].items()},
        calibrated=calibrated,
    )


def _version(facts: Mapping[str, Any]) -> str | None:
    """Of the package that brings a method, or of this project as it measured; a user's file has none."""
    if facts["file_hash"]:
        return None
    package = facts["source"].removeprefix("package ")
    return facts["made_by"]["project"].split()[0] if package == "built-in" else package


def code_of(made_by: Mapping[str, str]) -> str:
    """One fingerprint of the method's code and of this project's."""
    return f"sha256-{hashlib.sha256((made_by['project'] + made_by['code']).encode()).hexdigest()}"


def backbone(run: FinishedRun, name: str | None) -> BackboneFacts:
    """The card of the retriever. Where a local checkpoint lies is nobody's business: its folder's name is enough."""
    card = run.card
    _, other, checkpoint = run.config.backbone.partition("=")
    if not other:  # the loader's own checkpoint: an id, or `embedded`
        declared = registry.catalogue().get(card["name"])
        checkpoint = declared.options["checkpoint"] if declared else card["checkpoint"]
    plain = Path(checkpoint).name if Path(checkpoint).exists() or Path(checkpoint).is_absolute() else checkpoint
    named = f"{card['name']}-{Path(plain).name}" if other else card["name"]
    return BackboneFacts(
        name=name or slug(named),
        checkpoint=plain,
        revision=card["revision"],
        kind=card.get("kind", "visual"),
        dtype=card["dtype"],
        attention=card["attention"],
        query_template=card["query_template"],
        profile=card.get("profile", "visual"),
        layers=card["layers"] or None,
        dim=card["dim"],
    )


def environment(run: FinishedRun) -> Environment:
    facts = run.environment
    return Environment(
        python=facts["python"],
        platform=f"{facts['platform']} {facts['processor']}",
        libraries=facts["libraries"],
        code=facts["code"],
    )
