"""What is evaluated, frozen: every choice that changes a number is a field here, and is written into the run folder."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import tomli_w

from pruners.core.budget import STANDARD, SWEEP, check_budget
from pruners.core.errors import PruneBoardError
from pruners.core.seed import SEED

Profile = Literal["visual", "native"]
NAMED_BUDGETS = {"standard": STANDARD, "sweep": SWEEP}


@dataclass(frozen=True)
class Config:
    """An evaluation. Paths of stores and runs, and the number of workers, change no number and are not in it."""

    backbone: str = "nano"
    benchmark: str = "minidocs"
    calibration: str | None = None
    """Benchmark that adaptive methods and windows are calibrated on; None: the one that belongs to `benchmark`."""
    pruners: tuple[str, ...] = ()
    """Text forms; none: every built-in method."""
    codecs: tuple[str, ...] | None = None
    """How vectors are stored: each method with each of these. None: float16, and what texts name (`sap | int8`)."""
    partners: tuple[str, ...] = ()
    """Fixed-ratio methods evaluated at the ratio that `docpruner(z=0)` keeps; none: the scorer of each."""
    budgets: tuple[float, ...] = STANDARD
    trials: int | None = None
    """Seeds of stochastic methods; None: as many as each method says."""
    seed: int = SEED
    window: str | None = None
    """Layers for methods that left theirs open, such as `sap`: `11-14`, or a file of `harness calibrate`. None: the
    backbone's saved window, else SR-guided selection on the calibration set, else what the SAP paper reports."""
    profile: Profile = "visual"
    """What is indexed: visual tokens only; or prompt and special tokens too, as the stock retriever does."""
    calibration_pages: int = 128
    window_pairs: int = 500
    device: str | None = None
    dtype: str | None = None
    max_visual_tokens: int | None = None

    def __post_init__(self) -> None:
        for budget in self.budgets:
            check_budget(budget)
        if not self.budgets or len(set(self.budgets)) != len(self.budgets):
            raise PruneBoardError(f"budgets must be given, each once; these are not: {list(self.budgets)}")
        if self.profile not in get_args(Profile):
            raise PruneBoardError(f"there is no index profile {self.profile!r}; there are visual and native")
        if self.trials is not None and self.trials < 1:
            raise PruneBoardError(f"a stochastic method runs at least one trial, not {self.trials}")
        if self.seed < 0:
            raise PruneBoardError(f"a seed is 0 or more, not {self.seed}")
        for name in ("calibration_pages", "window_pairs"):
            if getattr(self, name) < 1:
                raise PruneBoardError(f"{name} is at least 1, not {getattr(self, name)}")

    @property
    def key(self) -> str:
        """Names the run folder: the same evaluation continues in the same folder."""
        fields = dataclasses.asdict(self)
        if self.codecs is None:
            del fields["codecs"]  # a run without codecs has the folder that it had before there were any
        text = json.dumps(fields, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:10]


def parse_budgets(text: str) -> tuple[float, ...]:
    """`standard`, `sweep`, or numbers: `0.05,0.1,1/9`."""
    if text in NAMED_BUDGETS:
        return NAMED_BUDGETS[text]
    try:
        return tuple(sorted(_number(part) for part in text.split(",")))
    except (ValueError, ZeroDivisionError):
        raise PruneBoardError(
            f"{text!r} names no budgets; write standard, sweep, or fractions such as 0.05,0.1,1/9"
        ) from None


def read_config(path: Path) -> Config:
    """A configuration from a TOML file, such as a run folder's own."""
    try:
        fields = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PruneBoardError(f"{path} cannot be read as a configuration: {error}") from error
    return _from_fields(fields, path)


def write_config(config: Config) -> bytes:
    fields = {name: value for name, value in dataclasses.asdict(config).items() if value is not None}
    return tomli_w.dumps(fields).encode()


def _from_fields(fields: dict[str, Any], path: Path) -> Config:
    import pydantic

    known = {f.name for f in dataclasses.fields(Config)}
    if unknown := sorted(set(fields) - known):
        raise PruneBoardError(f"{path}: unknown setting {unknown[0]!r}; there are {', '.join(sorted(known))}")
    try:
        return pydantic.TypeAdapter(Config).validate_python(fields)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        raise PruneBoardError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def _number(text: str) -> float:
    over, slash, under = text.strip().partition("/")
    return float(over) / float(under) if slash else float(over)
