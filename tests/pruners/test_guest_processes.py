"""A guest's process: what it may do, and what of its words is believed here."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from pruners import prune, synthetic_page
from pruners.core.errors import CatalogError, PruneBoardError, PrunerError
from pruners.guests import frames, sandbox
from pruners.guests.frames import FrameError
from pruners.guests.guest import Guest
from pruners.guests.host import Isolation, host

needs_sandbox = pytest.mark.skipif(sandbox.missing() is not None, reason=str(sandbox.missing()))
PAGE = synthetic_page(4, 4)

TRIES = """
from pruners import scorer

@scorer("tries")
def tries(page):
    WHAT
    return page.vectors[:, 0]
"""


def method(folder: Path, text: str, mode: str = "auto", readable: tuple[Path, ...] = ()) -> Guest:
    (folder / "tries.py").write_text(text)
    ((found, _),) = host([str(folder / "tries.py")], apart=Isolation(mode, readable))
    assert isinstance(found, Guest)
    return found


@needs_sandbox
@pytest.mark.parametrize(
    "what",
    [
        "import socket; socket.socket()",
        "import socket; socket.create_connection(('127.0.0.1', 9))",
        "open('{folder}/written', 'w').write('x')",
        "import os; os.remove('{folder}/secret')",
        "import os; os.rename('{folder}/secret', '{folder}/moved')",
        "open('{folder}/secret').read()",
        "open('/proc/{parent}/mem', 'rb').read(1)",
        "open('/proc/{parent}/environ', 'rb').read(1)",
        "import os; os.kill({parent}, 0)",
        "import subprocess; subprocess.run(['/bin/true'])",
        "import harness.minidocs",
    ],
)
def test_a_sandbox_lets_a_method_neither_out_nor_in(tmp_path: Path, what: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("gold")
    text = TRIES.replace("WHAT", what.format(folder=tmp_path, parent=os.getpid()))
    with pytest.raises(PrunerError, match=r"PermissionError|ProcessLookupError"):
        prune(method(tmp_path, text), PAGE, [0.5])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret", "tries.py"]
    assert secret.read_text() == "gold"


@needs_sandbox
def test_what_is_named_can_be_read_and_the_way_out_is_said(tmp_path: Path) -> None:
    weights = tmp_path / "weights.txt"
    weights.write_text("1.5")
    text = TRIES.replace("WHAT", f"page = page, float(open('{weights}').read()); page = page[0]")
    with pytest.raises(PrunerError, match="name what it may read with --readable, or use --sandbox off"):
        prune(method(tmp_path, text), PAGE, [0.5])
    assert len(prune(method(tmp_path, text, readable=(weights,)), PAGE, [0.5]).kept(0)) == 8
    assert len(prune(method(tmp_path, text, "off"), PAGE, [0.5]).kept(0)) == 8


@needs_sandbox
def test_a_sandboxed_method_knows_no_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    text = TRIES.replace("WHAT", "import os; assert 'HF_TOKEN' not in os.environ")
    prune(method(tmp_path, text, "on"), PAGE, [0.5])


def test_where_there_is_no_sandbox_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "missing", lambda: "this is no Linux")
    with pytest.raises(PruneBoardError, match=r"there is no sandbox here: this is no Linux.*--sandbox off"):
        method(tmp_path, TRIES.replace("WHAT", "pass"), "on")
    assert method(tmp_path, TRIES.replace("WHAT", "pass")).home.readable is None


FORGES = """
import json
from pruners import scorer
import pruners.guests.child as child

original = child.facts

def facts(pruner):
    return CHANGED

child.facts = facts

@scorer("forges")
def forges(page):
    return page.vectors[:, 0]
"""


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ("{**original(pruner), 'text': 'kmeans'}", "which its file does not declare"),
        ("{**original(pruner), 'declaration': {**original(pruner)['declaration'], 'name': 'sap'}}", "does not declare"),
        (
            "{**original(pruner), 'declaration': {**original(pruner)['declaration'], 'diagnostic': True}}",
            "a diagnostic",
        ),
        ("{**original(pruner), 'trials': -1}", "is not well formed"),
        ("{**original(pruner), 'more': 1}", "is not well formed"),
        ("{}", "is not well formed"),
    ],
)
def test_a_process_cannot_pass_its_method_off_as_another(tmp_path: Path, changed: str, reason: str) -> None:
    with pytest.raises(PruneBoardError, match=reason):
        method(tmp_path, FORGES.replace("CHANGED", changed))


RESULTS = """
import numpy as np
from pruners import scorer
import pruners.guests.child as child

child.TASKS["prune"] = lambda asked, arrays: RESULT

@scorer("forges")
def forges(page):
    return page.vectors[:, 0]
"""


@pytest.mark.parametrize(
    "result",
    [
        "({'counts': [8]}, {'order': np.arange(7)})",
        "({'counts': [8]}, {'order': np.zeros(8, int)})",
        "({'counts': [8]}, {'order': np.arange(8) + 100})",
        "({'counts': [9]}, {'order': np.arange(16)})",
        "({'counts': ['8']}, {'order': np.arange(8)})",
        "({'counts': [8]}, {'order': np.arange(8.0)})",
        "({'counts': [8]}, {})",
        "({'parts': 1, 'bits': None}, {'0.vectors': np.full((8, 32), np.nan, np.float32)})",
        "({'parts': 1, 'bits': -5}, {'0.vectors': np.ones((8, 32), np.float32)})",
        "({'parts': 1, 'bits': None}, {'0.labels': np.arange(16) + 9, '0.scales': np.ones(8, np.float32)})",
        "({'parts': 10**9, 'bits': None}, {})",
        "({'serial': 5}, {})",
    ],
)
def test_results_are_checked_on_our_side(tmp_path: Path, result: str) -> None:
    """The process itself is in the method's hands: it checks nothing that counts."""
    forging = method(tmp_path, RESULTS.replace("RESULT", result))
    with pytest.raises(PrunerError):
        prune(forging, PAGE, [0.5])


def frame(about: object) -> bytes:
    text = json.dumps(about).encode()
    return len(text).to_bytes(8, "little") + text


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"junk",
        (2**60).to_bytes(8, "little"),
        pickle.dumps({"header": {}}),
        frames.pack({}, {})[:-1],
        frame({"header": [], "arrays": {}}),
        frame({"header": {}, "arrays": {"a": ["|O", [1]]}}),
        frame({"header": {}, "arrays": {"a": ["<f4", [10**9, 10**9]]}}),
        frame({"header": {}, "arrays": {"a": ["<f4", [-1]]}}),
        frame({"header": {}, "arrays": [1]}),
    ],
)
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    with pytest.raises(FrameError):
        frames.unpack(data)


def test_a_frame_comes_back_as_it_was() -> None:
    sent = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "none": np.zeros((0, 4), np.int64),
        "b": np.array([True]),
    }
    header, found = frames.unpack(frames.pack({"x": [1, None, "é"]}, sent))
    assert header == {"x": [1, None, "é"]}
    for name, array in sent.items():
        assert found[name].dtype == array.dtype
        assert np.array_equal(found[name], array)


UNPICKLED = """
import dataclasses, os
from pruners import Scorer, learned, scorer

class Trap:
    def __reduce__(self):
        return note, ()

def note():
    with open("PLACE", "a") as file:
        file.write(f"{os.getpid()} ")
    return Trap()

@scorer("trap")
@dataclasses.dataclass(frozen=True)
class Trapped(Scorer):
    what: object = learned()

    def calibrate(self, pages, budgets):
        return self.replace(what=Trap())

    def score(self, page):
        return page.vectors[:, 0]
"""


def test_what_a_method_learned_is_never_unpickled_here(tmp_path: Path) -> None:
    place = tmp_path / "pids"
    trapped = method(tmp_path, UNPICKLED.replace("PLACE", str(place)), "off").calibrate([PAGE], [0.5])
    pickle.loads(pickle.dumps(trapped))  # as it is sent to workers
    other = Guest(**{**trapped.fields(), "home": type(trapped.home)(("another process",))})
    prune(other, PAGE, [0.5])
    pids = {int(pid) for pid in place.read_text().split()}
    assert pids
    assert os.getpid() not in pids


TWO = """
import os
from pruners import diagnostic, scorer

@scorer("sees_pages")
def sees_pages(page):
    raise ValueError(f"process {os.getpid()}")

@diagnostic("sees_queries")
def sees_queries(page, queries):
    raise ValueError(f"process {os.getpid()}")
"""


def test_a_method_shares_no_process_with_one_that_sees_gold_queries(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(TWO)
    (one, _), (other, _) = host([str(tmp_path / "two.py")])
    said = []
    for each, queries in ((one, None), (other, [PAGE.vectors[:2]])):
        with pytest.raises(PrunerError) as caught:
            prune(each, PAGE, [0.5], queries=queries)
        said.append(str(caught.value).partition("process ")[2].split()[0])
    assert said[0] != said[1]
    assert str(os.getpid()) not in said


def test_a_file_that_ends_its_process_when_it_is_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PruneBoardError, match="its process ended without a word"):
        method(tmp_path, "import os; os._exit(0)\n" + TRIES.replace("WHAT", "pass"))
    with pytest.raises(CatalogError, match=r"tries.py:1: importing it failed with ValueError: no"):
        method(tmp_path, "raise ValueError('no')\n" + TRIES.replace("WHAT", "pass"))
