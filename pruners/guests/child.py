"""What runs inside a guest's process: methods are read, described, calibrated and run, as they are asked for."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from threadpoolctl import threadpool_limits

from pruners.core import apply, expression, identity
from pruners.core.by_value import packed, unpacked
from pruners.core.catalog import catalogue
from pruners.core.codec_catalog import codec_catalogue
from pruners.core.contract import Merged, Pruner, Subset
from pruners.core.errors import PruneBoardError
from pruners.core.groups import Groups
from pruners.core.page import Page
from pruners.core.window import Window

from .frames import MOST, Arrays, blob, pack, unpack

Answer = tuple[dict[str, Any], Arrays]
held: dict[str, Pruner] = {}
"""Methods by the name that the other side gave them."""
shut_in = False
"""Whether this is a sandbox."""


def serve(line: Connection) -> None:
    """Answer until the other side is gone."""
    os.dup2(2, 1)  # what a method prints is for people
    torch.set_num_threads(1)  # as wherever pages are pruned: results do not depend on threads
    with threadpool_limits(1), line:
        line.send_bytes(pack({"pid": os.getpid()}, {}))
        while True:
            try:
                data = line.recv_bytes(MOST)
            except EOFError:
                return
            line.send_bytes(pack(*_answer(*unpack(data))))


def _answer(asked: dict[str, Any], arrays: Arrays) -> Answer:
    start = time.process_time()
    try:
        header, found = TASKS[asked["do"]](asked, arrays)
    except PruneBoardError as error:
        text = str(error) + _hint(error.__cause__)
        header, found = {"error": text, "kind": type(error).__name__}, {}
    except BaseException as error:  # SystemExit too: whatever a method raises is that method's failure
        last = traceback.extract_tb(error.__traceback__)[-1]
        text = f"failed with {type(error).__name__}: {error} ({last.filename}:{last.lineno})"
        header, found = {"error": f"{asked.get('who')}: {text}{_hint(error)}", "kind": "PrunerError"}, {}
    return {**header, "serial": asked.get("serial"), "seconds": time.process_time() - start}, found


def _hint(error: BaseException | None) -> str:
    """The way out for a method that means no harm."""
    denied = isinstance(error, PermissionError) and shut_in
    return "; it runs in a sandbox: name what it may read with --readable, or use --sandbox off" if denied else ""


def _read(asked: dict[str, Any], arrays: Arrays) -> Answer:
    """The pruners that a text stands for."""
    known = catalogue(map(Path, asked["files"]))
    pairs = expression.read(asked["text"], known, codec_catalogue())
    header, states = _described([pruner for pruner, _ in pairs], identity.codes)
    return {**header, "codecs": [None if codec is None else str(codec) for _, codec in pairs]}, states


def _load(asked: dict[str, Any], arrays: Arrays) -> Answer:
    return _described([unpacked(arrays["state"].tobytes())])


def _bind(asked: dict[str, Any], arrays: Arrays) -> Answer:
    return _described([_pruner(asked, arrays).with_window(Window(*asked["window"]))])


def _calibrate(asked: dict[str, Any], arrays: Arrays) -> Answer:
    pages = [_page(about, f"{i}.", arrays) for i, about in enumerate(asked["pages"])]
    return _described([apply.calibrate(_pruner(asked, arrays), pages, asked["budgets"])])


def _prune(asked: dict[str, Any], arrays: Arrays) -> Answer:
    queries = [torch.from_numpy(arrays[f"query.{i}"].copy()) for i in range(asked["queries"] or 0)]
    page, given = _page(asked["page"], "", arrays), queries if asked["queries"] is not None else None
    seed, trial = asked["seed"], asked["trial"]
    result = apply.prune(_pruner(asked, arrays), page, asked["budgets"], seed=seed, trial=trial, queries=given)
    if isinstance(result, Subset):
        return {"counts": [int(count) for count in result.counts]}, {"order": result.order}
    return _merged(result)


def _merged(result: Merged) -> Answer:
    sent: Arrays = {}
    for i, part in enumerate(result.parts):
        if isinstance(part, Groups):
            sent |= {f"{i}.labels": part.labels, f"{i}.scales": part.scales}
        else:
            sent[f"{i}.vectors"] = part.detach().numpy()
    return {"parts": len(result.parts), "bits": result.bits_per_vector}, sent


def _keep(asked: dict[str, Any], arrays: Arrays) -> Answer:
    """What a run keeps of a method, so that it can be used as it was measured."""
    from pruners.core.learned_state import as_tree, pack_tensors

    tree, tensors = as_tree(_pruner(asked, arrays))
    return {"tree": tree}, {"tensors": blob(pack_tensors(tensors))} if tensors else {}


TASKS: dict[str, Callable[[dict[str, Any], Arrays], Answer]] = {
    "read": _read,
    "load": _load,
    "bind": _bind,
    "calibrate": _calibrate,
    "prune": _prune,
    "keep": _keep,
}


def _pruner(asked: dict[str, Any], arrays: Arrays) -> Pruner:
    if asked["pruner"] not in held:
        held[asked["pruner"]] = unpacked(arrays["state"].tobytes())
    return held[asked["pruner"]]


def _page(about: dict[str, Any], prefix: str, arrays: Arrays) -> Page:
    def tensor(name: str) -> torch.Tensor:
        return torch.from_numpy(arrays[prefix + name].copy())  # a method that writes into it is told so, not stopped

    grid = tuple(about["grid"]) if about["grid"] else None
    return Page(about["id"], tensor("vectors"), grid, {name: tensor(f"signal.{name}") for name in about["signals"]})


def _described(pruners: list[Pruner], codes: Callable[[Pruner], list[str]] = lambda pruner: []) -> Answer:
    """All that the other side may know of pruners, and each as bytes that only processes like this one will read.

    `codes` tells what they are made of, where the other side does not know it.
    """
    found, states = [], {}
    for pruner in pruners:
        partner = pruner.partner
        for of in (pruner, partner) if partner else (pruner,):
            data = packed(of)
            key = hashlib.sha256(data).hexdigest()
            held[key], states[key] = of, blob(data)
            found.append({**facts(of), "codes": codes(of), "state": key, "is_partner": of is not pruner})
    return {"pruners": found}, states


def facts(pruner: Pruner) -> dict[str, Any]:
    """A pruner in words and numbers."""
    return {
        "text": str(pruner),
        "declaration": dataclasses.asdict(pruner.declaration),
        "needs": list(pruner.needs),
        "budget_kind": pruner.budget_kind,
        "trials": pruner.trials,
        "unit_norm": pruner.unit_norm,
        "shared_bytes": int(pruner.shared_bytes),
        "needs_calibration": pruner.needs_calibration,
        "open_window": pruner.open_window,
        "own_threshold": pruner.own_threshold,
        "thresholds": [[float(budget), float(value)] for budget, value in pruner.learned_thresholds.items()],
        "parameters": json.loads(json.dumps(identity.parameters(pruner), default=str)),
        "composition": str(pruner.made),
        "learned": identity.state_text(pruner),
    }
