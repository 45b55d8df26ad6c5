"""From a backbone's name to a report: the checks that need no data, then one public task."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.backbones import registry
from harness.backbones.contract import Backbone, Options
from harness.backbones.made_with import ENCODING
from harness.backbones.store import StoreBackbone
from harness.benchmarks.benchmark import require_known
from harness.files import library_versions
from harness.progress import Progress
from harness.verification.checks import CHECKS, NotPossibleError, run_checks, verdict_of
from harness.verification.figure import figure_of, judge
from harness.verification.published import published_for, smallest_task
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
    if task is not None:
        require_known(task)  # before minutes of work
    checks: list[Check] = []

    def note(check: Check) -> None:
        checks.append(check)
        say(check)

    if isinstance(backbone, str):
        choice = registry.choose(backbone)
        try:
            loaded = registry.load(backbone, options)
            _ = loaded.card
        except Exception as error:  # also what a loader of one's own raises
            note(Check("every tensor", *verdict_of(error)))
            for other in [*list(CHECKS)[1:], FIGURE]:
                note(Check(other, NOT_DONE, "the backbone could not be loaded"))
            return VerificationReport(
                choice.entry.name, _short(choice.checkpoint), choice.revision or "", "", "", tuple(checks)
            )
    else:
        loaded = backbone
    if isinstance(loaded, StoreBackbone):
        raise PruneBoardError(
            f"{loaded.store.folder} holds vectors and no model, so there is nothing to verify: name the backbone that "
            "made them"
        )
    for check in run_checks(loaded):
        note(check)
    figure = None
    if any(check.verdict == FAILED for check in checks):
        note(Check(FIGURE, NOT_DONE, "another check failed"))
    else:
        figure, check = _figure(loaded, task, stores, progress)
        note(check)
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


def _figure(
    backbone: Backbone, task: str | None, stores: Path, progress: Progress
) -> tuple[dict[str, Any] | None, Check]:
    """The figure of a task, and what it says. Only the figure is the backbone's failure, not that none was had."""
    known = published_for(backbone.card)
    if task is None and not known:
        told = "no published figure for this checkpoint; --task measures one, of a task or of your pages"
        return None, Check(FIGURE, NOT_DONE, told)
    try:
        figure = figure_of(backbone, task or smallest_task(known), stores, progress)
    except (PruneBoardError, OSError) as reason:
        return None, Check(FIGURE, NOT_DONE, str(reason))
    except Exception as error:  # of a backbone of one's own, on pages that no check has shown it
        return None, Check(FIGURE, *verdict_of(error))
    try:
        return figure, Check(FIGURE, PASSED, judge(figure))
    except NotPossibleError as reason:
        return figure, Check(FIGURE, NOT_DONE, str(reason))
    except PruneBoardError as error:
        return figure, Check(FIGURE, FAILED, str(error))


def _short(checkpoint: str) -> str:
    """A folder by its name alone: where it lies is nobody's business."""
    return Path(checkpoint).name if Path(checkpoint).is_absolute() else checkpoint


def _device(backbone: Backbone) -> str:
    import torch

    device = torch.device(getattr(backbone, "device", "cpu"))
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
