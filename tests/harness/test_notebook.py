"""The example notebooks run from top to bottom: in a kernel where there is one, else cell by cell as a kernel would."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import harness

EXAMPLES = Path(__file__).parents[2] / "examples"

CELL_BY_CELL = """
import json, linecache, sys

for number, cell in enumerate(json.load(open(sys.argv[1]))["cells"]):
    if cell["cell_type"] == "code":
        name, lines = f"<cell {number}>", cell["source"]
        linecache.cache[name] = (1, None, lines, name)  # as IPython keeps the source of cells
        exec(compile("".join(lines), name, "exec"), globals())
"""


def run(name: str, folder: Path) -> None:
    path = EXAMPLES / f"{name}.ipynb"
    if importlib.util.find_spec("nbclient") and importlib.util.find_spec("ipykernel"):
        import nbclient
        import nbformat

        book = nbformat.read(path, as_version=4)
        nbclient.NotebookClient(book, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    else:
        subprocess.run([sys.executable, "-c", CELL_BY_CELL, str(path)], cwd=folder, check=True)


@pytest.fixture(scope="module", autouse=True)
def stores(tmp_path_factory: pytest.TempPathFactory):
    """Pages are encoded once for all documents."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRUNEBOARD_STORES", str(tmp_path_factory.mktemp("stores")))
        patch.setenv("MPLBACKEND", "agg")
        yield


@pytest.mark.slow
def test_the_example_notebook_runs_and_measures_the_method_of_its_cell(tmp_path: Path) -> None:
    run("new_method", tmp_path)
    (folder,) = (tmp_path / "runs").iterdir()
    found = harness.load_run(folder)
    assert found.failures == {}
    assert set(found.methods) == {"mine", "sap", "docpruner", "kmeans(renormalize=false)"}
    assert found._run.methods["mine"]["summary"] == "Distance from the page's mean vector."


@pytest.mark.slow
def test_pdfs_become_a_benchmark_and_methods_are_told_apart_on_it(tmp_path: Path) -> None:
    run("my_pdfs", tmp_path)
    found = harness.load_run(tmp_path / "runs" / "my_pages")
    assert found.failures == {}
    assert set(found.methods) == {"sap", "docpruner", "kmeans", "random"}
    full = found.rows[0]
    assert full["ndcg@5"] > 0.8  # the text encoder finds the pages of the manual, so there is something to lose
    at_a_tenth = {row["method"]: row["retention"] for row in found.rows if row["budget"] == 0.1}
    assert at_a_tenth["random"] < 100


@pytest.mark.slow
def test_a_run_is_read_from_its_folder(tmp_path: Path) -> None:
    run("reading_a_run", tmp_path)
    found = harness.load_run(tmp_path / "runs" / "reading")
    assert set(found.methods) == {"sap", "kcenter", "random"}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs_and_run_by_a_test(path: Path) -> None:
    assert f'run("{path.stem}", tmp_path)' in Path(__file__).read_text()
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert cells
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)


@pytest.mark.slow
def test_the_examples_of_the_python_page_run_in_their_order(tmp_path: Path) -> None:
    page = (EXAMPLES.parent / "docs" / "python.md").read_text()
    blocks = [part.partition("```")[0] for part in page.split("```python\n")[1:]]
    assert len(blocks) == 8
    book = {"cells": [{"cell_type": "code", "source": block.splitlines(keepends=True)} for block in blocks]}
    (tmp_path / "page.json").write_text(json.dumps(book))
    subprocess.run([sys.executable, "-c", CELL_BY_CELL, "page.json"], cwd=tmp_path, check=True)
    assert (tmp_path / "runs" / "mine.png").is_file()
    assert (tmp_path / "runs" / "site" / "index.html").is_file()
