"""The decorators that make a method out of a function or a frozen dataclass.

A function names what it is given (`page`, `k`, `rng`, `queries`); every other argument is a hyper-parameter with a
default. Decorator arguments must be literals, because `plugins.py` reads them from the source without running it.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from .contract import Declaration, Diagnostic, Preset, Pruner, Reducer, Scorer
from .errors import CatalogError
from .text_form import learned

GIVEN = ("page", "k", "rng", "queries")


def scorer(
    name: str, *, needs: Iterable[str] = (), paper: str = "", ordinal: bool = False, trials: int | None = None
) -> Callable[[Any], Any]:
    """A scorer: a function `(page) -> scores [N]`, or a frozen dataclass that subclasses `Scorer`."""
    return _declare(Scorer, "score", Declaration(name, needs=tuple(needs), paper=paper, ordinal=ordinal, trials=trials))


def reducer(
    name: str, *, needs: Iterable[str] = (), paper: str = "", budget: str = "fixed", trials: int | None = None
) -> Callable[[Any], Any]:
    """A reducer: a function `(page, k) -> vectors [k, d]`, or a frozen dataclass that subclasses `Reducer`."""
    return _declare(
        Reducer,
        "reduce",
        Declaration(name, output="merged", budget=budget, needs=tuple(needs), paper=paper, trials=trials),
    )


def diagnostic(name: str, *, needs: Iterable[str] = (), paper: str = "") -> Callable[[Any], Any]:
    """An upper bound that sees gold queries: a function `(page, queries) -> scores [N]`."""
    return _declare(
        Diagnostic, "score", Declaration(name, needs=tuple(needs), paper=paper, ordinal=True, diagnostic=True)
    )


def pruner(
    name: str, *, output: str, budget: str, needs: Iterable[str] = (), paper: str = "", trials: int | None = None
) -> Callable[[Any], Any]:
    """A method with a `prune` of its own: compositions, and what fits neither of the two shapes."""
    return _declare(Pruner, "prune", Declaration(name, output, budget, tuple(needs), paper, trials=trials))


def preset(name: str, *, output: str, budget: str, needs: Iterable[str] = (), paper: str = "") -> Callable[[Any], Any]:
    """A named composition: a function of hyper-parameters that returns a pruner."""
    return _declare(Preset, "build", Declaration(name, output, budget, tuple(needs), paper))


def _declare(base: type[Pruner], method: str, declaration: Declaration) -> Callable[[Any], Any]:
    def decorate(target: Any) -> Any:
        cls = target if inspect.isclass(target) else _class_of(target, base, method)
        params = getattr(cls, "__dataclass_params__", None)
        if not issubclass(cls, base) or params is None or not params.frozen:
            raise CatalogError(
                f"{declaration.name!r}: the class must be a @dataclass(frozen=True) and a subclass of {base.__name__}"
            )
        cls.declaration = declaration
        cls.uses = frozenset(inspect.signature(getattr(cls, method)).parameters).intersection(GIVEN)
        return cls

    return decorate


def _class_of(function: Callable[..., Any], base: type[Pruner], method: str) -> type[Pruner]:
    """The frozen dataclass a function stands for: its arguments with a default become fields."""
    parameters = inspect.signature(function).parameters.values()
    hyper = [p for p in parameters if p.name not in GIVEN]
    for p in hyper:
        if p.default is p.empty:
            raise CatalogError(
                f"{function.__name__}(): argument {p.name!r} needs a default, or must be one of {', '.join(GIVEN)}"
            )
    hints = inspect.get_annotations(function, eval_str=True)
    fields = [(p.name, hints.get(p.name, type(p.default)), dataclasses.field(default=p.default)) for p in hyper]
    if base is Preset:
        fields.append(("inner", Pruner | None, learned()))

    def call(self: Any, *args: Any, **given: Any) -> Any:
        return function(*args, **given, **{p.name: getattr(self, p.name) for p in hyper})

    asked = [p.name for p in parameters if p.name in GIVEN]
    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ["self", *asked]]
    )
    made = dataclasses.make_dataclass(
        function.__name__,
        fields,
        bases=(base,),
        frozen=True,
        namespace={method: call, "__doc__": function.__doc__, "written_as": staticmethod(function)},
    )
    # It takes the function's place, where pickle looks for it. Set afterwards, because from Python 3.12 on
    # `make_dataclass` names the module it was called from, whatever the namespace says.
    made.__module__, made.__qualname__ = function.__module__, function.__qualname__
    return made
