"""Write docs/mteb-models.md again: every visual late-interaction model that mteb lists, and what running it here takes.

    python scripts/list_mteb_models.py

Nothing is downloaded. What can be seen without weights decides: which wrapper mteb uses, whether that runs code of the
checkpoint's repository, which packages it needs, and whether those are installed.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

import ast
import inspect
import re
import textwrap
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mteb

from harness.backbones.registry import catalogue
from harness.backbones.vectors_only import listed
from harness.files import library_versions

PAGE = Path(__file__).parents[1] / "docs" / "mteb-models.md"
WITH_SIGNALS = {
    "ColPaliWrapper": "colpali",
    "ColQwen2Wrapper": "colqwen2",
    "ColQwen2_5Wrapper": "colqwen2.5",
    "ColQwen3EngineWrapper": "colqwen3",
    "ColQwen3_5Wrapper": "colqwen3.5",
    "ColSmolWrapper": "colsmol",
    "ColModernVBertWrapper": "colmodernvbert",
    "ColQwen2_5OmniWrapper": "colqwen-omni",
}
"""mteb's wrappers of colpali-engine's classes, and the backbone here that reads the same files, signals included."""
CANNOT = {
    "RandomColBERTBaseline": "no model: random vectors",
}
WORKS, REMOTE, PACKAGE, NO = "works here", "needs remote code", "needs a package", "cannot"


def describe(meta: Any) -> tuple[str, str]:
    """A verdict, and the command or the reason."""
    loader: Any = meta.loader
    wrapper = getattr(loader, "__name__", "")
    if wrapper in CANNOT or loader is None:
        return NO, CANNOT.get(wrapper, "mteb has no implementation of it")
    if wrapper in WITH_SIGNALS:
        name = WITH_SIGNALS[wrapper]
        own = catalogue()[name].options["checkpoint"] == meta.name
        return WORKS, f"`{name}`, with signals" if own else f"`{name}={meta.name}`, with signals"
    wanted = [str(w) for w in meta._missing_dependencies(meta._resolve_extras_groups())]
    if missing := wanted or sorted(_missing_imports(loader)):
        return PACKAGE, ", ".join(f"`{re.sub(r';[^()]*', ' ', name).strip()}`" for name in missing)
    if _runs_remote_code(meta):
        return REMOTE, "mteb runs code of its repository, which this project does not do for you"
    return WORKS, f"`mteb:{meta.name}`, vectors only"


def _sources(loader: Any) -> list[str]:
    """The code of a wrapper and of the classes of its own that it rests on."""
    classes = (
        [loader] if not inspect.isclass(loader) else [c for c in loader.__mro__ if c.__module__.startswith("mteb.")]
    )
    return [textwrap.dedent(inspect.getsource(c)) for c in classes]


def _runs_remote_code(meta: Any) -> bool:
    return bool(meta.loader_kwargs.get("trust_remote_code")) or any(
        "trust_remote_code=True" in source for source in _sources(meta.loader)
    )


def _missing_imports(loader: Any) -> set[str]:
    """Packages that the wrapper imports when it is made, and that are not installed."""
    found = set()
    for source in _sources(loader):
        for node in ast.walk(ast.parse(source)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                names = [node.module]
            found |= {name.partition(".")[0] for name in names}
    return {name for name in found if find_spec(name) is None}


def page() -> str:
    metas = sorted(listed(mteb.get_model_metas()), key=lambda meta: str(meta.name).lower())
    rows = [(meta, *describe(meta)) for meta in metas]
    counts = Counter(verdict for _, verdict, _ in rows)
    versions = ", ".join(f"{k} {v}" for k, v in library_versions(["mteb", "colpali-engine", "transformers"]).items())
    lines = [
        "# Visual late-interaction models of mteb",
        "",
        f"Written by `scripts/list_mteb_models.py` from {versions}: {len(rows)} models, of which "
        + f"{counts[WORKS]} work here, {counts[REMOTE]} need remote code, {counts[PACKAGE]} a package that is not "
        f"installed, and {counts[NO]} cannot be run.",
        "",
        "*Works here* says that nothing that can be seen without the weights stands in the way; the loaders are tested",
        "on tiny checkpoints of each family. `harness verify-backbone` is the test with the real ones.",
        "",
        "| model | revision | | how, or why not |",
        "| --- | --- | --- | --- |",
        *(f"| {meta.name} | {str(meta.revision)[:7]} | {verdict} | {how} |" for meta, verdict, how in rows),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    print(f"-> {PAGE}")


if __name__ == "__main__":
    main()
