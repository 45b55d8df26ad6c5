"""Finding pruners: by name, by file, by installed package; listing runs nothing; collisions and failures are named."""

import importlib.util
import json
import re
import subprocess
from pathlib import Path

import pytest

from pruners import Window, catalogue, check_contract, parse, resolve
from pruners.core import plugins
from pruners.core.catalog import formula, kind, words
from pruners.core.errors import CatalogError
from tests.new_environment import install, new_environment

TEN_LINES = '''\
# my_pruner.py — the whole file
from pruners import scorer

@scorer("contrast", needs=())
def contrast(page):
    """Distance from the page's mean vector."""
    return (page.vectors - page.vectors.mean(0)).norm(dim=-1)
'''


@pytest.fixture
def my_pruner(tmp_path: Path) -> Path:
    path = tmp_path / "my_pruner.py"
    path.write_text(TEN_LINES)
    return path


def test_a_ten_line_file_is_listed_runs_and_is_checked(my_pruner: Path) -> None:
    assert len(TEN_LINES.splitlines()) <= 10
    entry = catalogue([my_pruner])["contrast"]
    assert (entry.summary, kind(entry)) == ("Distance from the page's mean vector.", "subset, fixed")
    (pruner,) = resolve([str(my_pruner)])
    assert len(check_contract(pruner)) == 7


def test_a_file_adds_its_names_to_the_other_selectors(my_pruner: Path) -> None:
    both = resolve([str(my_pruner), "adaptive(contrast)", f"{my_pruner}:contrast()"])
    assert [str(p) for p in both] == ["contrast", "adaptive(contrast)", "contrast"]


def test_the_examples_of_the_docs_keep_the_contract_and_take_the_backbones_window(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "pruners.md").read_text()
    path = tmp_path / "examples.py"
    path.write_text("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)))
    examples = [pruner.with_window(Window(1, 3)) for pruner in resolve([str(path)])]
    assert [str(example) for example in examples] == ["loud", "chunks", "windowed_eos(layers=1-2)"]
    for example in examples:
        check_contract(example)


def test_a_file_with_one_method_takes_its_arguments(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(TEN_LINES.replace("(page)", "(page, alpha=1.0)"))
    assert [str(p) for p in resolve([f"{path}(alpha=0.3)"])] == ["contrast(alpha=0.3)"]
    assert [str(p) for p in resolve([f"{path}(alpha=0.1|0.2)"])] == ["contrast(alpha=0.1)", "contrast(alpha=0.2)"]
    path.write_text(path.read_text() + TEN_LINES.replace("contrast", "second"))
    with pytest.raises(CatalogError, match=r"mine\.py declares contrast, second: write which one, .*mine\.py:contrast"):
        resolve([f"{path}(alpha=0.3)"])


def test_a_folder_may_have_py_in_its_name(tmp_path: Path) -> None:
    path = tmp_path / "my.python" / "mine.py"
    path.parent.mkdir()
    path.write_text(TEN_LINES)
    assert [str(p) for p in resolve([str(path)])] == ["contrast"]


def test_a_methods_words_and_formula_stand_in_its_docstring(tmp_path: Path, my_pruner: Path) -> None:
    path = tmp_path / "explained.py"
    doc = 'vector.\n\n    Why it\n    works.\n\n    Formula:\n        s_{j} = 1\n        keep the k largest\n    """'
    path.write_text(TEN_LINES.replace('vector."""', doc))
    entry = catalogue([path])["contrast"]
    assert words(entry) == ["Distance from the page's mean vector.", "Why it works."]
    assert formula(entry) == ["s_{j} = 1", "keep the k largest"]
    assert formula(catalogue([my_pruner])["contrast"]) == []


def test_listing_reads_a_file_without_running_it(tmp_path: Path) -> None:
    path = tmp_path / "loud.py"
    path.write_text(TEN_LINES + "raise SystemExit('was run')\n")
    assert "contrast" in catalogue([path])


def test_what_the_catalogue_reads_is_what_the_code_declares() -> None:
    parts = {"adaptive": "adaptive(eos)", "merge": "merge(sap)"}
    for name, entry in catalogue().items():
        pruner = parse(parts.get(name, name))
        declared = type(pruner).declaration
        assert declared.name == name
        assert kind(entry).startswith(f"{declared.output}, {declared.budget}")
        if name not in parts:
            assert pruner.needs == tuple(entry.options.get("needs", ())), name
        assert entry.summary.endswith("."), f"{name}: the docstring's first line is what the list shows"
        assert entry.options.get("paper"), name


def test_every_method_of_the_design_is_there() -> None:
    assert set(catalogue()) >= {
        *("random", "sap", "sap_max", "sap_adaptive", "sap_all_to_visual", "eos", "docpruner", "kmeans"),
        *("agglomerative", "token_pooling", "prune_then_merge", "sap_then_merge", "tome", "row_pool", "tile_pool"),
        *("first_k", "uniform_grid", "ink", "random_nonblank", "kcenter", "attn_fps", "mmr", "voronoi", "hpc"),
        *("pca_leverage", "oracle"),
    }


def test_two_methods_of_one_name_are_an_error_naming_both_places(tmp_path: Path, my_pruner: Path) -> None:
    second = tmp_path / "second.py"
    second.write_text(TEN_LINES)
    with pytest.raises(CatalogError, match=r"'contrast' is taken twice: .*my_pruner\.py:5 .* and .*second\.py:5"):
        catalogue([my_pruner, second])
    taken = tmp_path / "taken.py"
    taken.write_text(TEN_LINES.replace('"contrast"', '"sap"'))
    with pytest.raises(CatalogError, match=r"sap\.py:\d+ \(built-in\) and .*taken\.py:5 \(file\)"):
        catalogue([taken])


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(Exception, match="did you mean kmeans"):
        parse("kmean")
    with pytest.raises(Exception, match="harness list pruners"):
        parse("zzzzzz")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (TEN_LINES.replace("import scorer", "import scorer\nimport no_such_module"), r":3: .*no_such_module"),
        (TEN_LINES + "x = 1 / 0\n", r":8: importing it failed with ZeroDivisionError"),
        (TEN_LINES.replace("def contrast(page)", "def contrast(page, power)"), "'power' needs a default"),
    ],
)
def test_a_file_that_fails_to_import_says_which_line(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "failing.py"
    path.write_text(text)
    with pytest.raises(CatalogError, match=rf"failing\.py.*{complaint}"):
        resolve([str(path)])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("def broken(:\n", r":1: .*not valid Python"),
        ("x = 1\n", "declares no pruner"),
        (TEN_LINES.replace('"contrast"', '"con" + "trast"'), ":4: the decorator must be written out"),
        (TEN_LINES.replace('"contrast"', '"../x"'), ":4: a name must be a word"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "unreadable.py"
    path.write_text(text)
    with pytest.raises(CatalogError, match=rf"unreadable\.py.*{complaint}"):
        resolve([str(path)])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"there is no file .*nowhere\.py"):
        resolve([str(tmp_path / "nowhere.py")])


def test_a_file_is_run_once_a_process(my_pruner: Path) -> None:
    (first,), (second,) = resolve([str(my_pruner)]), resolve([str(my_pruner)])
    assert type(first) is type(second)


PACKAGE = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "contrast-pruner"
version = "0.3"
[project.entry-points."pruneboard.pruners"]
contrast = "contrast_pruner"
[tool.setuptools]
py-modules = ["contrast_pruner"]
"""


def install_package(tmp_path: Path, environment: Path) -> Path:
    """A real package, installed by pip into a new environment that also sees this one's packages."""
    source = tmp_path / "package"
    source.mkdir()
    (source / "pyproject.toml").write_text(PACKAGE)
    (source / "contrast_pruner.py").write_text(TEN_LINES)
    project = Path(importlib.util.find_spec("pruners").origin).parents[1]
    python = new_environment(environment, project)
    install(python, source)
    return python


@pytest.mark.slow
def test_an_installed_package_registers_its_pruner_by_entry_point(tmp_path: Path) -> None:
    python = install_package(tmp_path, tmp_path / "environment")
    listed = json.loads(
        subprocess.check_output([python, "-m", "harness.cli", "list", "pruners", "--json"], text=True, cwd=tmp_path)
    )
    (row,) = [row for row in listed if row["name"] == "contrast"]
    assert row["source"] == "package contrast-pruner 0.3"
    checked = subprocess.run(
        [python, "-m", "harness.cli", "check", "adaptive(contrast)"], text=True, cwd=tmp_path, capture_output=True
    )
    assert checked.returncode == 0, checked.stderr
    clash = tmp_path / "clash.py"
    clash.write_text(TEN_LINES)
    refused = subprocess.run(
        [python, "-m", "harness.cli", "check", str(clash)], text=True, cwd=tmp_path, capture_output=True
    )
    assert refused.returncode == 2
    assert "package contrast-pruner 0.3" in refused.stderr
    assert "clash.py:5" in refused.stderr


def test_a_package_that_announces_what_it_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    point = EntryPoint("ghost", "no_such_module_anywhere", "pruneboard.pruners")
    monkeypatch.setattr(plugins, "entry_points", lambda group: [point])
    with pytest.raises(CatalogError, match="announces 'no_such_module_anywhere', but has no such module"):
        catalogue()
