"""`scripts/mutate.py` puts in one fault at a time, and only where a fault could be noticed."""

import importlib.util
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).parents[1] / "scripts" / "mutate.py"


@pytest.fixture(scope="module")
def mutate():
    spec = importlib.util.spec_from_file_location("mutate", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutate"] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    yield module
    del sys.modules["mutate"]


@pytest.mark.parametrize(
    ("line", "faults"),
    [
        ("x = a < b <= c", ["x = a <= b <= c", "x = a < b < c"]),
        ("x = a not in b or c", ["x = a not in b and c", "x = a in b or c"]),
        ("x = é + (b) * c", ["x = é - (b) * c", "x = é + (b) / c"]),
        ("x //= y", ["x *= y"]),
        ("x = not (a and b)", ["x =  (a and b)", "x = not (a or b)"]),
        ("x = 1.5", ["x = 2.5", "x = (0.5)"]),
        ("x = True", ["x = False"]),
        ("x = max(a, b)", ["x = min(a, b)"]),
        ("def f(): return a", ["def f(): return None"]),
        ("say(a)", ["pass"]),
        ("x = a if b else c", ["x = a if (not (b)) else c"]),
        ("x: int | None = a", []),
        ('x = f"{a + b}"', []),
        ('raise ValueError("a" + b)', []),
        ("@cached(size=3)\ndef f(): pass", []),
        ("x = zip(a, b, strict=True)", []),
    ],
)
def test_the_faults_of_a_line(mutate, line: str, faults: list[str]) -> None:
    assert [mutant.after for mutant in mutate.mutants("a.py", line)] == faults


def test_a_mutant_is_named_by_its_place_and_its_change(mutate) -> None:
    (mutant,) = mutate.mutants("a/b.py", "# a comment\nx = (\n    a\n    + b\n)\n")
    assert str(mutant) == "a/b.py:4: + b -> - b"


def test_every_folder_has_tests_and_every_equivalent_mutant_is_one(mutate) -> None:
    """A line of the list whose change can no longer be made is out of date."""
    for folder, tests in mutate.TESTS.items():
        assert (mutate.ROOT / folder).is_dir()
        assert all((mutate.ROOT / test).exists() for test in tests)
    listed = [line for line in mutate.EQUIVALENT.read_text().splitlines() if not line.startswith("#")]
    for path in {line.partition(":")[0] for line in listed}:
        found = {mutate.change(str(mutant)) for mutant in mutate.mutants(path, (mutate.ROOT / path).read_text())}
        assert [line for line in listed if line.startswith(f"{path}:") and mutate.change(line) not in found] == []
