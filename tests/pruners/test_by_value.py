"""A method travels by value: what reads the bytes has neither its file nor its module."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pruners import Page, Scorer, learned, prune, resolve, scorer, synthetic_page
from pruners.core.by_value import packed, unpacked
from pruners.core.errors import PrunerError

POWER = 3.0


@scorer("travels")
def travels(page: Page) -> torch.Tensor:
    """A function of a module that is not installed, which uses another of its names."""
    return page.vectors[:, 0] ** POWER


ELSEWHERE = """
import sys
from pruners import prune, synthetic_page
from pruners.core.by_value import unpacked
method = unpacked(sys.stdin.buffer.read())
print(prune(method, synthetic_page(4, 4), [0.25]).kept(0).tolist())
"""


def kept_elsewhere(data: bytes, folder: Path) -> str:
    command = [sys.executable, "-c", ELSEWHERE]
    return subprocess.run(command, input=data, capture_output=True, check=True, cwd=folder).stdout.decode().strip()


def kept_here(method: object) -> str:
    return str(prune(method, synthetic_page(4, 4), [0.25]).kept(0).tolist())


def test_a_function_of_a_session_reaches_a_process_that_has_not_its_module(tmp_path: Path) -> None:
    assert kept_elsewhere(packed(travels()), tmp_path) == kept_here(travels())


def test_a_file_reaches_a_process_where_it_is_not(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "beside.py").write_text("WAY = -1\n")
    (home / "mine.py").write_text(
        "import sys\nsys.path.append(__file__.rpartition('/')[0])\nfrom beside import WAY\nfrom pruners import scorer\n"
        "@scorer('mine')\ndef mine(page):\n    return WAY * page.vectors[:, 1]\n"
    )
    (method,) = resolve([str(home / "mine.py")])
    here, data = kept_here(method), packed(method)
    for file in home.glob("*.py"):
        file.unlink()
    assert kept_elsewhere(data, tmp_path) == here


def test_what_cannot_be_sent_is_named() -> None:
    import dataclasses
    import threading

    @scorer("locked")
    @dataclasses.dataclass(frozen=True)
    class Locked(Scorer):
        lock: object = learned()

        def score(self, page: Page) -> torch.Tensor:
            return page.vectors[:, 0]

    with pytest.raises(PrunerError, match=r"locked cannot be sent .*lock"):
        packed(Locked(lock=threading.Lock()))
    assert str(unpacked(packed(Locked()))) == "locked"
