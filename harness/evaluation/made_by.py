"""What a result is made of: code, parameters, what was learned, and the store it read.

It is written into every result. A result that anything else made is not finished: it is measured again, and the run
says why. So an edited method, another version or another calibration never shows figures of the one before.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

import pruners
from harness.benchmarks.data_set import DataSet
from harness.evaluation.index_size import FLOAT16
from harness.evaluation.methods import FULL, Method, stored_text
from harness.evaluation.run_folder import RunFolder
from harness.files import library_versions
from harness.store.reader import Store
from pruners import Pruner
from pruners.core import plugins, source
from pruners.core.errors import PruneBoardError
from pruners.core.text_form import TextForm
from pruners.core.value_text import value_text

MEASURING = ("harness/scoring", "harness/metrics", "harness/evaluation", "pruners/core", "pruners/kernels")
"""The project's own code that every figure depends on, beside the method's."""


OWN = "object"
"""What brings a method that was given as an object: the session that made it, and no package."""

COMPUTING = ("torch", "numpy", "numba", "scipy", "scikit-learn", "pytrec-eval-terrier")


@cache
def project() -> str:
    """This project's version, and a fingerprint of its code that measures: a checkout changes between versions."""
    root = Path(pruners.__file__).parents[1]
    files = [file for folder in MEASURING for file in (root / folder).glob("*.py")]
    return f"{library_versions(['pruneboard'])['pruneboard']} {source.fingerprint(files, root)}"


def measuring() -> dict[str, str]:
    """What makes every result: this project, and the libraries that compute."""
    return {"project": project(), "libraries": ", ".join(f"{n} {v}" for n, v in library_versions(COMPUTING).items())}


def describe_method(method: Method, methods: Sequence[Method], packages: Mapping[str, str]) -> dict[str, str]:
    """What makes a method's results, on whatever store. `packages` names what brings each method, with its version."""
    # a partner is evaluated at the ratio that another method keeps, so it is made of that too
    leading = [other.pruner for other in methods if other.text == method.partner_of]
    parts = [part for pruner in (method.pruner, *leading) for part in all_parts(pruner)]
    codes = sorted({code for part in parts for code in _codes(type(part))})
    learned: list[TextForm] = [method.pruner, *leading]
    if method.codec != FLOAT16:
        codes.append(plugins.code_of_class(type(method.codec)))
        learned.append(method.codec)
    brought = sorted({packages[part.name] for part in parts if part.name in packages} - {"file", "built-in", OWN})
    return {
        **measuring(),
        "code": _hash(" ".join([*codes, *brought])),
        "composition": stored_text(_composition(method.pruner), method.codec),
        "learned": _hash(repr([_state(form) for form in learned])),
    }


def describe_methods(
    methods: Sequence[Method], packages: Mapping[str, str]
) -> tuple[list[Method], dict[str, dict[str, str]]]:
    """What makes the results of each method, by its text. One of which that cannot be told fails, with the reason."""
    checked, described = [], {}
    for method in methods:
        try:
            if method.failure is None:
                described[method.text] = describe_method(method, methods, packages)
            checked.append(method)
        except PruneBoardError as error:
            checked.append(replace(method, failure=f"{method.text}: {error}"))
    return checked, described


def read_from(data_set: DataSet, store: Store) -> dict[str, str]:
    """What a result was measured on: encoded pages and queries, and which of them belong together."""
    languages = sorted((query, language) for query, language in data_set.languages.items())
    return {"store": store.key, "judgements": _hash(f"{data_set.content['qrels']} {languages}")}


def forget_outdated(
    run: RunFolder,
    read: Mapping[str, Mapping[str, str]],
    methods: Sequence[Method],
    described: Mapping[str, Mapping[str, str]],
) -> Iterator[str]:
    """Take results out of the run that something else made. A sentence for each method that is measured again.

    `read` says by data set what results are measured on, `described` by method what makes them.
    """
    wanted = {FULL: (FULL, measuring()), **{m.text: (m.slug, described[m.text]) for m in methods}}
    for text, (slug, now) in wanted.items():
        reasons = []
        for data_set, data in read.items():
            if not run.has(data_set, slug):
                continue
            before = run.read_made_by(data_set, slug)
            if before != {**now, **data}:
                run.forget(data_set, slug)
                reasons.append(_reason(before, {**now, **data}))
        if reasons:
            pruner = next((m.pruner for m in methods if m.text == text), None)
            files = ", ".join(files_of(pruner)) if pruner else ""
            cause = f"{files} changed since" if files and reasons[0] == "code" else WORDS[reasons[0]]
            yield f"{cause}: measuring {text} again"


WORDS = {
    "earlier": "an earlier release left no note of what it measured",
    "project": "PruneBoard itself changed since",
    "libraries": "the libraries that compute changed since",
    "code": "its code changed since",
    "composition": "its window or parameters changed since",
    "learned": "what it learns from calibration pages changed since",
    "store": "the encoded pages changed since",
    "judgements": "the relevance judgements changed since",
}


def _reason(before: Mapping[str, str] | None, now: Mapping[str, str]) -> str:
    if not before:
        return "earlier"
    return next((name for name, value in now.items() if before.get(name) != value), "earlier")


def files_of(pruner: Pruner) -> list[str]:
    """The names of the users' files that declare it or a part of it."""
    modules = [sys.modules[type(part).__module__] for part in all_parts(pruner)]
    files = [Path(str(module.__file__)).name for module in modules if plugins.FINGERPRINT in vars(module)]
    return list(dict.fromkeys(files))


def _composition(pruner: Pruner) -> str:
    """What really runs: presets unfolded, windows bound."""
    return str(pruner.made)


def all_parts(pruner: Pruner) -> list[Pruner]:
    """A pruner, its parts, and theirs."""
    return [pruner, *(inner for part in pruner.parts() for inner in all_parts(part))]


def codes_of(pruner: Pruner) -> list[str]:
    """The code of a method that is not built in, and of its parts; of built-in ones the project's code speaks."""
    parts = [part for part in all_parts(pruner) if not type(part).__module__.startswith("pruners.")]
    return sorted({code for part in parts for code in _codes(type(part))})


def _codes(cls: type[Pruner]) -> list[str]:
    """The code of a class and of methods it inherits from. One of a user may call any built-in method."""
    own = [base for base in cls.__mro__ if issubclass(base, Pruner) and not base.__module__.startswith("pruners.core.")]
    codes = [plugins.code_of_class(base) for base in own]
    return codes if cls.__module__.startswith("pruners.") else [*codes, _built_in_methods()]


@cache
def _built_in_methods() -> str:
    folder = Path(pruners.__file__).parent
    return source.fingerprint(folder.glob("*.py"), folder)


def _state(value: Any) -> str | None:
    """All fields of a pruner or codec, learned ones too, as a text that tells any two of them apart."""
    return value_text(value, _state_of_object)


def _state_of_object(value: Any) -> str:
    if isinstance(value, TextForm):
        return f"{value.name} {_state(value.fields())}"
    if isinstance(value, torch.nn.Module):
        return f"{type(value).__qualname__} {_state(dict(value.state_dict()))}"
    try:
        return hashlib.sha256(pickle.dumps(value)).hexdigest()
    except Exception as error:  # whatever a class raises when it cannot be pickled
        raise PruneBoardError(
            f"it learned a {type(value).__name__}, of which cannot be told whether it changed ({error}); let it learn "
            "numbers, texts, tensors, arrays, or lists and dictionaries of these"
        ) from error


def _hash(text: str) -> str:
    return f"sha256-{hashlib.sha256(text.encode()).hexdigest()}"
