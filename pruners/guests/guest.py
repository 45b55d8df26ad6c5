"""A guest: a pruner whose code runs in a process of its own. Pages go there, and results come back, which are checked.

Its learned state is bytes that nobody here reads. It can be pickled, and used in any process of ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import pydantic
import torch

from pruners.core.context import PruneContext
from pruners.core.contract import Declaration, Merged, Pruner, Subset
from pruners.core.errors import PrunerError
from pruners.core.groups import Groups
from pruners.core.learned_state import read_tensors
from pruners.core.page import Page
from pruners.core.plain_text import printable
from pruners.core.window import Window

from .frames import Arrays, FrameError
from .process import Home, ask


def _one_line(text: str) -> str:
    if printable(text, len(text)) != text:
        raise ValueError("has characters that cannot be printed")
    return text


Count = pydantic.NonNegativeInt
Word = Annotated[str, pydantic.StringConstraints(max_length=20_000), pydantic.AfterValidator(_one_line)]
FIXED = ("declaration", "needs", "budget_kind", "trials", "unit_norm", "own_threshold")
"""What learning must not change."""


class GuestFacts(pydantic.BaseModel):
    """What a guest's process says of a pruner, as far as it is well formed."""

    model_config = pydantic.ConfigDict(strict=True, frozen=True, extra="forbid")

    text: Word
    declaration: dict[str, Any]
    needs: list[Word]
    budget_kind: str
    trials: pydantic.PositiveInt
    unit_norm: bool
    shared_bytes: Count
    needs_calibration: bool
    open_window: bool
    own_threshold: bool
    thresholds: list[list[float]]
    parameters: dict[str, Any]
    composition: Word
    learned: str | None
    codes: list[Word]
    state: str
    is_partner: bool


class _Declared(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=False, extra="forbid")

    name: Word
    output: Word
    budget: Word
    needs: tuple[Word, ...]
    paper: Word
    ordinal: bool
    trials: int | None
    diagnostic: bool


@dataclass(frozen=True)
class Guest(Pruner):
    """See above. `codes` say what it is made of; its process has no say in those of files."""

    facts: GuestFacts
    state: bytes
    home: Home
    codes: tuple[str, ...]
    files: tuple[str, ...] = ()
    """Names of the users' files that declare it."""
    packages: tuple[str, ...] = ()
    """Installed packages that bring it or a part of it."""
    beside: Guest | None = None
    texts: tuple[tuple[str, str], ...] = ()
    """Its file, and what that imports from its folder, if it is of one file: text by path."""
    source_hash: str | None = None
    """Of that file."""

    @property
    def declaration(self) -> Declaration:  # type: ignore[override]
        return Declaration(**_Declared(**self.facts.declaration).model_dump())

    @property
    def text(self) -> str:
        return self.facts.text

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(self.facts.needs)

    def parts(self) -> list[Pruner]:
        return []

    @property
    def budget_kind(self) -> str:
        return self.facts.budget_kind

    @property
    def trials(self) -> int:
        return self.facts.trials

    @property
    def unit_norm(self) -> bool:
        return self.facts.unit_norm

    @property
    def shared_bytes(self) -> int:
        return self.facts.shared_bytes

    @property
    def needs_calibration(self) -> bool:
        return self.facts.needs_calibration

    @property
    def open_window(self) -> bool:
        return self.facts.open_window

    @property
    def own_threshold(self) -> bool:
        return self.facts.own_threshold

    @property
    def partner(self) -> Pruner | None:
        return self.beside

    @property
    def learned_thresholds(self) -> Mapping[float, float]:
        return {float(budget): float(value) for budget, value in self.facts.thresholds}

    def with_window(self, window: Window) -> Self:
        if not self.open_window:
            return self
        return self._after({"do": "bind", "window": [window.start, window.stop]}, {})

    def calibrate(self, pages: Sequence[Page], budgets: Sequence[float]) -> Self:
        if not self.needs_calibration:
            return self
        sent = {f"{i}.{name}": array for i, page in enumerate(pages) for name, array in _arrays(page).items()}
        return self._after({"do": "calibrate", "pages": [_about(page) for page in pages], "budgets": budgets}, sent)

    def prune(self, page: Page, budgets: Sequence[float], context: PruneContext) -> Subset | Merged:
        given = context.queries
        asked = {"do": "prune", "page": _about(page), "budgets": list(budgets), "seed": context.seed}
        more = {"trial": context.trial, "queries": None if given is None else len(given)}
        sent = _arrays(page) | {f"query.{i}": query.numpy() for i, query in enumerate(given or ())}
        answer, found = self._ask({**asked, **more}, sent, f"pruner {str(self)!r}, page {page.id!r}")
        _clock[0] += float(answer["seconds"])
        try:
            return _result(page, answer, found)
        except (KeyError, TypeError, ValueError) as error:
            raise FrameError(f"pruner {str(self)!r}, page {page.id!r}: its process sent no result: {error}") from error

    def kept(self) -> tuple[Any, dict[str, torch.Tensor]]:
        """What `learned_state.as_tree` says of it."""
        answer, found = self._ask({"do": "keep"}, {})
        try:
            return answer["tree"], read_tensors(found["tensors"].tobytes() if "tensors" in found else None)
        except Exception as error:  # of whatever reads the tensors
            raise FrameError(f"{self.text}: what its process says that it learned cannot be read: {error}") from error

    def _ask(self, asked: dict[str, Any], arrays: Arrays, who: str | None = None) -> tuple[dict[str, Any], Arrays]:
        return ask(self.home, self.state, self.facts.state, {**asked, "who": who or self.text}, arrays)

    def _after(self, asked: dict[str, Any], arrays: Arrays) -> Self:
        """Itself after its process changed it: it learned something, or was given a window."""
        described, *_ = read_answer(*self._ask(asked, arrays), self.text)
        facts, state = described
        if any(getattr(facts, name) != getattr(self.facts, name) for name in FIXED):
            raise PrunerError(f"{self.text}: it is another method after it learned: {', '.join(FIXED)} must stay")
        return replace(self, facts=facts, state=state)


def read_answer(answer: dict[str, Any], found: Arrays, who: str) -> list[tuple[GuestFacts, bytes]]:
    """The pruners that a process described, each with its state."""
    try:
        facts = [GuestFacts.model_validate(each) for each in answer["pruners"]]
        for each in facts:
            _Declared(**each.declaration)
        return [(each, found[each.state].tobytes()) for each in facts]
    except (pydantic.ValidationError, KeyError, TypeError) as error:
        raise FrameError(f"{who}: what its process says of it is not well formed: {error}") from error


_clock = [0.0]


def seconds_of_guests() -> float:
    """CPU time that guests say they took to prune, for this process, so far."""
    return _clock[0]


def _about(page: Page) -> dict[str, Any]:
    return {"id": page.id, "grid": list(page.grid) if page.grid else None, "signals": list(page.signals)}


def _arrays(page: Page) -> Arrays:
    return {"vectors": page.vectors.numpy()} | {f"signal.{name}": s.numpy() for name, s in page.signals.items()}


def _result(page: Page, answer: dict[str, Any], found: Arrays) -> Subset | Merged:
    """A result out of plain data; `apply.checked` then holds it against the contract."""
    if "counts" in answer:
        return Subset(found["order"].copy(), tuple(_whole(count) for count in answer["counts"]))
    parts: list[torch.Tensor | Groups] = []
    for i in range(_whole(answer["parts"])):
        if f"{i}.labels" in found:
            parts.append(Groups(page.vectors, found[f"{i}.labels"].copy(), found[f"{i}.scales"].copy()))
        else:
            parts.append(torch.from_numpy(found[f"{i}.vectors"].copy()))
    bits = answer["bits"]
    return Merged(tuple(parts), None if bits is None else _whole(bits, 1))


def _whole(value: Any, least: int = 0) -> int:
    if type(value) is not int or not least <= value < 2**40:
        raise ValueError(f"{value!r} is no number of something")
    return value
