"""From a backbone's name to a report: the checks that need no data, then one public task."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.backbones import registry
from harness.backbones.contract import Backbone, Options
from harness.backbones.made_with import ENCODING
from harness.files import library_versions
from harness.progress import Progress
from harness.verification.checks import CHECKS, NotPossibleError, run_checks
from harness.verification.figure import figure_of, judge
from harness.verification.published import smallest_task
from harness.verification.report import FAILED, NOT_DONE, PASSED, Check, VerificationReport
from pruners.core.errors import PruneBoardError

FIGURE = "published figure"


def verify(
    backbone: Backbone | str,
    options: Options | None = None,
    *,
    task: str | None = None,
    stores: Path,
    progress: Progress,
    say: Callable[[Check], None] = lambda check: None,
) -> VerificationReport:
    """Check a backbone, by its selector or as an object. `say` is told of every check as it is done."""
    checks: list[Check] = []

    def note(check: Check) -> None:
        checks.append(check)
        say(check)

    if isinstance(backbone, str):
        choice = registry.choose(backbone)
        try:
            loaded = registry.load(backbone, options)
            _ = loaded.card
        except PruneBoardError as error:
            note(Check("every tensor", FAILED, str(error)))
            for other in [*list(CHECKS)[1:], FIGURE]:
                note(Check(other, NOT_DONE, "the backbone could not be loaded"))
            return VerificationReport(
                choice.entry.name, _short(choice.checkpoint), choice.revision or "", "", "", tuple(checks)
            )
    else:
        loaded = backbone
    for check in run_checks(loaded):
        note(check)
    figure = None
    if any(check.verdict == FAILED for check in checks):
        note(Check(FIGURE, NOT_DONE, "another check failed"))
    else:
        try:
            figure = figure_of(loaded, task or smallest_task(loaded.card.name), stores, progress)
            note(Check(FIGURE, PASSED, judge(figure)))
        except NotPossibleError as reason:
            note(Check(FIGURE, NOT_DONE, str(reason)))
        except PruneBoardError as error:
            note(Check(FIGURE, FAILED, str(error)))
    card = loaded.card
    return VerificationReport(
        backbone=card.name,
        checkpoint=_short(card.checkpoint),
        revision=card.revision,
        dtype=card.dtype,
        device=_device(loaded),
        checks=tuple(checks),
        figure=figure,
        libraries=library_versions(ENCODING),
    )


def _short(checkpoint: str) -> str:
    """A folder by its name alone: where it lies is nobody's business."""
    return Path(checkpoint).name if Path(checkpoint).is_absolute() else checkpoint


def _device(backbone: Backbone) -> str:
    import torch

    device = torch.device(getattr(backbone, "device", "cpu"))
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
