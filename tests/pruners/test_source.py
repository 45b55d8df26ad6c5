"""Code is told apart by what it does, not by how it is written; and methods travel between processes with it."""

import importlib
import os
import pickle
import subprocess
import sys
import types
from pathlib import Path

import pytest
import torch

from pruners import PruneBoardError, Window, catalogue, parse, prune, resolve, synthetic_page
from pruners.core.plugins import code_of, load_file
from pruners.core.source import fingerprint, with_imports

SCORER = """
from pruners import scorer


@scorer("spread")
def spread(page, power=1.0):
    return (page.vectors - page.vectors.mean(0)).norm(dim=-1) ** power
"""


def print_of(folder: Path, text: str, name: str = "a.py") -> str:
    (folder / name).write_text(text)
    return fingerprint([folder / name], folder)


@pytest.mark.parametrize(
    "other",
    [
        "def f(x):\n    return x + 1  # a comment\n",
        "def f(x):\n    '''A docstring.'''\n\n    return (x\n        + 1)\n",
    ],
)
def test_comments_docstrings_and_layout_are_no_code(tmp_path: Path, other: str) -> None:
    assert print_of(tmp_path, "def f(x):\n    return x + 1\n") == print_of(tmp_path, other)


@pytest.mark.parametrize(
    "other",
    [
        "def f(x):\n    return x - 1\n",
        "def f(x):\n    return x + 1.0\n",
        "def f(x=0):\n    return x + 1\n",
        "def f(x):\n    return 'x' + 1\n",
        "def f(x):\n    'used'.strip()\n    return x + 1\n",
        "async def f(x):\n    return x + 1\n",
    ],
)
def test_everything_else_is(tmp_path: Path, other: str) -> None:
    assert print_of(tmp_path, "def f(x):\n    return x + 1\n") != print_of(tmp_path, other)


def test_a_file_brings_what_it_imports_from_its_own_folder(tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    for name, text in {
        "a.py": "import torch\nfrom b import one\nfrom part.inner import two\n",
        "b.py": "from c import three\n",
        "c.py": "",
        "alone.py": "",
        "part/__init__.py": "",
        "part/inner.py": "from . import sibling\nfrom ..b import one\n",
        "part/sibling.py": "",
    }.items():
        (tmp_path / name).write_text(text)
    found = {str(path.relative_to(tmp_path)) for path in with_imports(tmp_path / "a.py", tmp_path)}
    assert found == {"a.py", "b.py", "c.py", "part/__init__.py", "part/inner.py", "part/sibling.py"}


@pytest.mark.parametrize("name", [name for name in catalogue() if name not in ("adaptive", "merge")])
def test_every_method_pickles_with_what_it_learned(name: str) -> None:
    pages = [synthetic_page(16, 12, seed=seed) for seed in range(2)]
    method = parse(name).with_window(Window(0, None)).calibrate(pages, [0.2])
    other = pickle.loads(pickle.dumps(method))
    assert str(other) == str(method)
    assert type(other) is type(method)
    for field, value in method.fields().items():
        found = getattr(other, field)
        assert torch.equal(found, value) if isinstance(value, torch.Tensor) else found == value


def test_a_method_from_a_file_reaches_a_process_that_never_saw_it(tmp_path: Path) -> None:
    (tmp_path / "spread.py").write_text(SCORER)
    (method,) = resolve([f"{tmp_path / 'spread.py'}:spread(power=2.0)"])
    (tmp_path / "method.pickle").write_bytes(pickle.dumps(method))
    code = (
        "import pickle, sys; from pruners import prune, synthetic_page; "
        "m = pickle.load(open(sys.argv[1], 'rb')); print(m, prune(m, synthetic_page(4, 4), [0.25]).kept(0).tolist())"
    )
    there = subprocess.check_output([sys.executable, "-c", code, str(tmp_path / "method.pickle")], text=True)
    here = prune(method, synthetic_page(4, 4), [0.25]).kept(0).tolist()
    assert there.strip() == f"spread(power=2.0) {here}"


def test_a_file_that_changed_or_went_on_the_way_arrives_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "spread.py"
    file.write_text(SCORER)
    (method,) = resolve([str(file)])
    page, sent = synthetic_page(4, 4), pickle.dumps(method)
    for change in (lambda: file.write_text(SCORER.replace("return (", "return -(")), file.unlink):
        change()
        arrived = pickle.loads(sent)
        assert prune(arrived, page, [0.25]).kept(0).tolist() == prune(method, page, [0.25]).kept(0).tolist()


def test_an_edited_file_is_read_again_in_the_same_process(tmp_path: Path) -> None:
    file = tmp_path / "spread.py"
    file.write_text(SCORER)
    (before,) = resolve([str(file)])
    file.write_text(SCORER.replace("return (", "return -("))
    (after,) = resolve([str(file)])
    page = synthetic_page(4, 4)
    kept = [prune(method, page, [0.25]).kept(0).tolist() for method in (before, after)]
    assert set(kept[0]).isdisjoint(kept[1])


def package_code(folder: Path, monkeypatch: pytest.MonkeyPatch, module: str, **files: str) -> str:
    """The fingerprint of a module of a package that consists of these files."""
    (folder / "some_package").mkdir(parents=True)
    for name, text in {"__init__": "", **files}.items():
        (folder / "some_package" / f"{name}.py").write_text(text)
    with monkeypatch.context() as patch:
        patch.syspath_prepend(folder)
        importlib.import_module(module)
        try:
            return code_of(module)
        finally:
            for name in [name for name in sys.modules if name.startswith("some_package")]:
                del sys.modules[name]


def test_a_module_of_a_package_is_known_by_its_code_and_by_what_it_imports_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"method": "from some_package.part import one\n", "part": "one = 1\n", "other": "two = 2\n"}

    def code(folder: str, module: str = "some_package.method", **changed: str) -> str:
        return package_code(tmp_path / folder, monkeypatch, module, **files | changed)

    usual = code("a")
    assert code("b") == usual, "where it lies does not matter"
    assert code("c", other="two = 3\n") == usual, "it does not import this"
    assert code("d", part="one = 1  # a comment\n") == usual
    assert code("e", part="one = 2\n") != usual
    assert code("f", method="from some_package.part import one as two\n") != usual
    first = "from some_package.part import one\n"
    whole = code("g", "some_package", __init__=first)
    assert code("h", "some_package", __init__=first) == whole
    assert code("i", "some_package", __init__=first, part="one = 2\n") != whole


def test_a_method_that_stands_in_no_file_cannot_be_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "typed_in", types.ModuleType("typed_in"))
    with pytest.raises(PruneBoardError, match="what typed_in computes cannot be told from a file"):
        code_of("typed_in")


def test_this_projects_packages_are_no_part_of_a_file_that_lies_beside_them(tmp_path: Path) -> None:
    (tmp_path / "pruners").mkdir()
    (tmp_path / "pruners" / "__init__.py").write_text("")
    (tmp_path / "mine.py").write_text("from pruners import scorer\nimport harness\n")
    assert with_imports(tmp_path / "mine.py", tmp_path) == [tmp_path / "mine.py"]


def test_an_edit_of_the_same_size_and_time_is_an_edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python itself would run what it had compiled before."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.syspath_prepend(tmp_path)
    file, helper = tmp_path / "sized.py", tmp_path / f"beside_{tmp_path.name}.py"
    found = []
    for value in (5, 7):
        helper.write_text(f"H = {value}\n")
        file.write_text(f"from {helper.stem} import H\nS = {value}\n")
        for path in (file, helper):
            os.utime(path, (1, 1))
        module = load_file(file)
        found.append((module.S, module.H))
    assert found == [(5, 5), (7, 7)]


def test_a_file_with_a_mark_before_its_text_is_read(tmp_path: Path) -> None:
    (tmp_path / "spread.py").write_bytes(b"\xef\xbb\xbf" + SCORER.encode())
    (method,) = resolve([str(tmp_path / "spread.py")])
    assert str(method) == "spread"


def test_a_broken_file_beside_is_named_by_whoever_imports_it(tmp_path: Path) -> None:
    (tmp_path / f"broken_{tmp_path.name}.py").write_text("def (")
    (tmp_path / "spread.py").write_text(
        f"try:\n    import broken_{tmp_path.name}\nexcept Exception:\n    pass\n{SCORER}"
    )
    assert len(resolve([str(tmp_path / "spread.py")])) == 1
