"""Which modules a datum passes between a page image and a cell on the board: `python scripts/module_map.py`.

A small real run (the embedded retriever, `sap`, one benchmark) goes through encode, evaluate, submit, validate and
leaderboard while every call of the project's functions is watched. A module is a station if it handed the datum, in one
of its forms, on to another module; one that only computed on it and gave it back is a tool. The table in
docs/architecture.md is written from that, with the first sentence of each module's docstring; `--check` writes nothing,
and fails if the page says something else.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
PAGE = ROOT / "docs" / "architecture.md"
PACKAGES = ("harness", "pruners", "leaderboard")
STAGES = ["encode", "evaluate", "submit", "leaderboard"]
BEGIN, END = "<!-- modules: begin -->", "<!-- modules: end -->"
MOST_INSIDE = 3
"""How deep a value is looked into: a list of objects that hold arrays is as deep as anything goes."""
FORMS = {"PIL": "Image", "torch": "Tensor", "numpy": "ndarray", "pandas": "DataFrame", "pyarrow": "Table"}
FIGURES = re.compile(r"ndcg|retention")
BESIDE = {
    "harness.calibration.window": "learns which layers to read",
    "harness.evaluation.summary": "the terminal's table",
    "harness.submissions.comparisons": "a check beside other submissions",
    "harness.workers": "carries it from process to process",
    "leaderboard.answers": "the front page",
    "leaderboard.backbones": "another page of the site",
    "leaderboard.compare": "another page of the site",
    "leaderboard.exports": "files for programs",
    "leaderboard.heat": "another part of the page",
    "leaderboard.methods": "another page of the site",
    "leaderboard.plot": "another part of the page",
    "leaderboard.results": "another page of the site",
}
"""Stations on a branch that leads to no cell of the board, and where it leads."""
OUTSIDE = "-"
"""In place of a module: no function of the project called."""


def is_datum(value: Any, depth: int = MOST_INSIDE) -> bool:
    """Whether a value is or holds the datum: an image, a tensor, an array, a table, or figures by their name."""
    for kind in type(value).__mro__:
        if FORMS.get(kind.__module__.partition(".")[0]) == kind.__name__:
            return True
    if not depth:
        return False
    if isinstance(value, dict):
        named = any(isinstance(key, str) and FIGURES.match(key) for key in list(value)[:50])
        return named or any(is_datum(inside, depth - 1) for inside in list(value.values())[:3])
    if isinstance(value, list | tuple):
        return any(is_datum(inside, depth - 1) for inside in value[:3])
    if type(value).__module__.partition(".")[0] in PACKAGES and not isinstance(value, type):
        fields = getattr(value, "__dict__", {})
        return is_datum(fields, depth)
    return False


class Watch:
    """Who took or gave back the datum, and who handed it on to whom, in the order in which they first did.

    It is noted in a file, to which processes that are forked while it watches write too.
    """

    def __init__(self, notes: Path) -> None:
        self.stage = ""
        self._notes = notes.open("a", buffering=1, encoding="utf-8")
        self._path = notes
        self._noted: set[tuple[str, str]] = set()
        self._module_of: dict[CodeType, str | None] = {}

    @property
    def seen(self) -> dict[str, str]:
        """Each module, and the stage in which it first had the datum."""
        found: dict[str, str] = {}
        for _, module, stage in self._lines():
            found.setdefault(module, stage)
        return found

    @property
    def handing_on(self) -> set[str]:
        """Modules that gave the datum to another one."""
        return {source for source, module, _ in self._lines() if source not in (module, OUTSIDE)}

    def _lines(self) -> list[list[str]]:
        return [line.split() for line in self._path.read_text(encoding="utf-8").splitlines()]

    def note(self, source: str, module: str) -> None:
        if (source, module) not in self._noted:
            self._noted.add((source, module))
            self._notes.write(f"{source} {module} {self.stage}\n")

    def __call__(self, frame: FrameType, event: str, value: Any) -> None:
        module = self._module(frame.f_code)
        if module is None:
            return
        if event == "call":
            code, source = frame.f_code, self._caller(frame)
            if (source, module) in self._noted:
                return
            given = [frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]]
            if any(map(is_datum, given)):
                self.note(source, module)
        elif event == "return" and (OUTSIDE, module) not in self._noted and is_datum(value):
            self.note(OUTSIDE, module)

    def _module(self, code: CodeType) -> str | None:
        if code not in self._module_of:
            self._module_of[code] = module_name(code.co_filename) if code.co_name != "<module>" else None
        return self._module_of[code]

    def _caller(self, frame: FrameType) -> str:
        """The module of the project's function that is nearest above."""
        above = frame.f_back
        while above is not None:
            if (module := self._module(above.f_code)) is not None:
                return module
            above = above.f_back
        return OUTSIDE

    def compiled(self) -> None:
        """Numba's functions are not seen while they run: those that have machine code by now were called."""
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] in PACKAGES:
                for value in list(vars(module).values()):
                    if getattr(value, "overloads", None) and getattr(value, "__module__", "") == name:
                        self.note(OUTSIDE, name)


def module_name(file: str) -> str | None:
    path = Path(file)
    if path.suffix != ".py" or not path.is_relative_to(ROOT) or path.relative_to(ROOT).parts[0] not in PACKAGES:
        return None
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def trace(folder: Path) -> Watch:
    """A small run, watched."""
    os.environ["PRUNEBOARD_STORES"] = str(folder / "stores")
    import harness
    from leaderboard.gather import gather
    from leaderboard.site import build

    watch = Watch(folder / "notes.txt")
    backbone: Any = harness.load_backbone("nano")
    _ = backbone.model  # not watched: weights are no datum
    run, submissions = folder / "run", folder / "submissions"
    stages: dict[str, Callable[[], Any]] = {
        "encode": lambda: [harness.encode(backbone, pages) for pages in ("minidocs-v2", "minidocs-calibration")],
        "evaluate": lambda: harness.evaluate(["sap"], benchmark="minidocs-v2", out=run, workers=1),
        "submit": lambda: harness.submit(run, "The project", out=submissions),
        "leaderboard": lambda: build(gather(submissions, []), folder / "site"),  # pictures lead to no cell
    }
    for watch.stage, step in stages.items():
        threading.setprofile(watch)
        sys.setprofile(watch)
        try:
            step()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
        watch.compiled()
    return watch


def sentence(module: str) -> str:
    """The first sentence of a module's docstring."""
    path = ROOT.joinpath(*module.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    doc = " ".join((ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or "").split("\n\n")[0].split())
    return doc.split(". ")[0].rstrip(".").replace("|", "\\|")


def with_table(text: str, seen: Mapping[str, str], handing_on: Collection[str]) -> str:
    """The page with the table put between its marks."""
    order = sorted(seen, key=lambda module: (STAGES.index(seen[module]), module))  # processes race within a stage
    stations = [module for module in order if module in handing_on and module not in BESIDE]
    table = [f"**{len(stations)} stations**, by the stage in which the datum first reaches them:", ""]
    table += ["| first in | module | what it is |", "| --- | --- | --- |"]
    table += [f"| {seen[module]} | `{module}` | {sentence(module)} |" for module in stations]
    tools = [f"`{module}`" for module in order if module not in handing_on]
    table += ["", f"**{len(tools)} tools**, which compute on it and give it back: {', '.join(tools)}."]
    branches = [f"`{module}` ({BESIDE[module]})" for module in order if module in handing_on and module in BESIDE]
    table += ["", f"**{len(branches)} on branches** that lead to no cell: {', '.join(branches)}."]
    head, rest = text.split(BEGIN)
    return "\n".join([head + BEGIN, "", *table, "", END + rest.split(END)[1]])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the page says something else")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        watch = trace(Path(folder))
        seen, handing_on = watch.seen, watch.handing_on
    before = PAGE.read_text(encoding="utf-8")
    after = with_table(before, seen, handing_on)
    passed, tools = handing_on & seen.keys(), seen.keys() - handing_on
    print(f"{len(passed - BESIDE.keys())} stations, {len(tools)} tools, {len(passed & BESIDE.keys())} on branches")
    if asked.check and after != before:
        sys.exit(f"{PAGE} is out of date: python scripts/module_map.py")
    if not asked.check:
        PAGE.write_text(after, encoding="utf-8")


if __name__ == "__main__":
    main()
