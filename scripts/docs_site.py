"""Pages of the documentation site that are made from code and data; `mkdocs.yml` names this file as its hook.

The command line comes from its own help, methods from the catalogue, the interface from docstrings, notebooks from
`examples/`. Files outside `docs/` to which a page links (README, a model card, data) are put into the site, and the
links are turned there: pages can be read here, in a clone and on a code host alike.
"""

from __future__ import annotations

import json
import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")


def on_config(config: Any) -> Any:
    """Pages of docs/ that the navigation does not name stand before its last entry, so that none is forgotten."""
    named = json.dumps(config.nav)
    more = [path.name for path in sorted((ROOT / "docs").glob("*.md")) if f'"{path.name}"' not in named]
    config.nav[-1:-1] = [{"More": more}] if more else []
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add what is made, and what is linked to."""
    made = {"api.md": api(), "command-line.md": command_line(), "methods.md": methods()}
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    waiting = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
    waiting += [f"examples/{path.name}" for path in sorted((ROOT / "examples").glob("*.ipynb"))]
    waiting += [f"docs/{file.src_uri}" for file in files.documentation_pages() if file.src_uri not in made]
    seen = set(waiting)
    for path in waiting:  # grows while it is read
        if path.endswith((".md", ".ipynb")):
            found = {target for target in links(path, text_of(path)) if (ROOT / target).is_file()}
            waiting += sorted(target for target in found - seen if not target.startswith("docs/"))
            seen |= found
        if not path.startswith("docs/"):
            data = text_of(path) if path.endswith((".md", ".ipynb")) else (ROOT / path).read_bytes()
            files.append(File.generated(config, in_site(path), content=data))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links as they are in the repository become links in the site."""
    here = page.file.src_uri
    origin = in_repository(here)

    def turned(link: re.Match[str]) -> str:
        target = in_site(posixpath.normpath(posixpath.join(posixpath.dirname(origin), link[2])))
        return link[1] + posixpath.relpath(target, posixpath.dirname(here) or ".") + link[3]

    return LINK.sub(turned, markdown)


def links(path: str, text: str) -> Iterator[str]:
    """The files of the repository to which a page links."""
    for link in LINK.finditer(text):
        yield posixpath.normpath(posixpath.join(posixpath.dirname(path), link[2]))


def in_site(path: str) -> str:
    """Where the site has a file of the repository."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path.endswith(".ipynb"):
        return path.removesuffix(".ipynb") + ".md"
    return f"repository/{path}"


def in_repository(uri: str) -> str:
    """The other way round."""
    if uri.startswith("repository/"):
        return uri.removeprefix("repository/")
    return uri if uri.startswith("examples/") else f"docs/{uri}"


def text_of(path: str) -> str:
    text = (ROOT / path).read_text(encoding="utf-8")
    return notebook(path, text) if path.endswith(".ipynb") else text


def notebook(path: str, text: str) -> str:
    """A notebook as a page. Outputs are not kept in it: whoever runs it sees them."""
    shown = {"markdown": "{}", "code": "```python\n{}\n```"}
    cells = [shown[cell["cell_type"]].format("".join(cell["source"])) for cell in json.loads(text)["cells"]]
    title, _, rest = cells[0].partition("\n")
    return "\n\n".join([title, f"*The notebook `{path}`: every change of the project runs it.*", rest, *cells[1:], ""])


def command_line() -> str:
    """Every command with its options, as `--help` has them."""
    import typer
    from typer.cli import get_docs_for_click

    from harness.cli import app

    command = typer.main.get_command(app)
    text = get_docs_for_click(obj=command, ctx=typer.Context(command), name="harness")
    return text.replace("# `harness`", "# Command line", 1)


def methods() -> str:
    """Every built-in method: its words, formula, parameters and paper."""
    from leaderboard.words import formula as set_formula
    from pruners.core.catalog import catalogue, formula, kind, words

    entries = [entry for _, entry in sorted(catalogue().items()) if entry.source == "built-in"]
    lines = ["# Methods", "", f"The {len(entries)} built-in methods, as `harness list pruners` lists them."]
    lines += ["[The contract](pruners.md) says what the letters of formulas mean and how methods are composed.", ""]
    lines += ["| method | output, budget | what it does |", "| --- | --- | --- |"]
    lines += [f"| [`{e.name}`](#{e.name}) | {kind(e)} | {_cell(e.summary)} |" for e in entries]
    for entry in entries:
        needs = ", ".join(f"`{name}`" for name in entry.options.get("needs", ()))
        facts = [kind(entry), *([f"needs {needs}"] if needs else [])]
        facts += [entry.options["paper"]] if entry.options.get("paper") else []
        lines += ["", f"## `{entry.name}` {{ #{entry.name} }}", "", f"*{'; '.join(facts)}*", "", *_apart(words(entry))]
        lines += [f"> {set_formula(line)}<br>" for line in formula(entry)]
        if entry.parameters:
            lines += ["", "Parameters: " + ", ".join(f"`{name}`" for name in entry.parameters)]
    return "\n".join([*lines, ""])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _apart(paragraphs: list[str]) -> list[str]:
    return [line for paragraph in paragraphs for line in (paragraph, "")]


def api() -> str:
    """What `import harness` and `import pruners` give, from docstrings."""
    import harness.api
    import pruners

    parts = ["# Functions and classes\n\n[From Python](python.md) shows each in use.\n\n## harness\n"]
    parts += [_documented(f"harness.api.{name}", f"harness.{name}") for name in harness.api.__all__]
    parts.append("## pruners\n")
    parts += [_documented(f"pruners.{name}", f"pruners.{name}") for name in pruners.__all__]
    return "\n".join(parts)


def _documented(path: str, heading: str) -> str:
    return f"::: {path}\n    options:\n      heading: {heading}\n"
