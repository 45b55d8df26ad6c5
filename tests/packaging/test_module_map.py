"""docs/architecture.md: the modules that a datum passes are those that a real run shows."""

import re
import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest
import torch
from PIL import Image

from pruners import Page
from tests.copied_tree import ROOT
from tests.packaging.loaded import script


@pytest.fixture(scope="module")
def module_map() -> ModuleType:
    return script("module_map")


def test_the_datum_is_known_in_all_its_forms_and_nothing_else_is(module_map: ModuleType) -> None:
    page = Page("a", torch.ones(4, 2))
    forms = [Image.new("L", (1, 1)), torch.ones(1), np.ones(1), page, [page], {"x": (page,)}, {"ndcg@5": 0.5}]
    assert [form for form in forms if not module_map.is_datum(form)] == []
    others = [None, 1, "text", [1, 2], {"seed": 42}, Page, ("a", {"b": "c"})]
    assert [other for other in others if module_map.is_datum(other)] == []


def test_the_table_says_what_the_modules_say_of_themselves(module_map: ModuleType) -> None:
    rows = re.findall(r"^\| (\w+) \| `([\w.]+)` \| (.*) \|$", module_map.PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) > 10
    assert [(module, said) for _, module, said in rows if module_map.sentence(module) != said] == []


@pytest.mark.slow
def test_the_table_is_what_a_run_shows() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/module_map.py", "--check"], cwd=ROOT, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
