"""What a result is made of: code, parameters, what was learned, and the store it read.

It is written into every result. A result that anything else made is not finished: it is measured again, and the run
says why. So an edited method, another version or another calibration never shows figures of the one before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pruners
from harness.benchmarks.data_set import DataSet
from harness.evaluation.index_size import FLOAT16
from harness.evaluation.methods import FULL, Method, stored_text
from harness.evaluation.run_folder import RunFolder
from harness.files import library_versions
from harness.store.reader import Store
from pruners import Pruner
from pruners.core import identity, plugins, source
from pruners.core.errors import PruneBoardError
from pruners.core.identity import all_parts
from pruners.core.text_form import TextForm
from pruners.guests.guest import Guest
from pruners.guests.host import files_that_declare

MEASURING = (
    "harness/scoring",
    "harness/metrics",
    "harness/evaluation",
    "pruners/core",
    "pruners/guests",
    "pruners/kernels",
)
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
    codes = sorted({code for part in parts for code in _codes(part)})
    learned: list[TextForm] = [method.pruner, *leading]
    if method.codec != FLOAT16:
        codes.append(plugins.code_of_class(type(method.codec)))
        learned.append(method.codec)
    sources = {packages[part.name] for part in parts if part.name in packages}
    sources |= {package for part in parts if isinstance(part, Guest) for package in part.packages}
    brought = sorted(sources - {"file", "built-in", OWN})
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
    return list(pruner.files) if isinstance(pruner, Guest) else files_that_declare(pruner)


def _composition(pruner: Pruner) -> str:
    """What really runs: presets unfolded, windows bound."""
    return pruner.facts.composition if isinstance(pruner, Guest) else str(pruner.made)


def codes_of(pruner: Pruner) -> list[str]:
    """The code of a method that is not built in, and of its parts; of built-in ones the project's code speaks."""
    parts = [part for part in all_parts(pruner) if not type(part).__module__.startswith("pruners.")]
    return sorted({code for part in parts for code in identity.codes_of_class(type(part))})


def _codes(part: Pruner) -> Sequence[str]:
    return part.codes if isinstance(part, Guest) else identity.codes_of_class(type(part))


def _state(form: TextForm) -> str | None:
    """All fields of a pruner or codec, learned ones too, as a text that tells any two of them apart."""
    return form.facts.learned if isinstance(form, Guest) else identity.state_text(form)


def _hash(text: str) -> str:
    return f"sha256-{hashlib.sha256(text.encode()).hexdigest()}"
