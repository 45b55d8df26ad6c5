"""The campaign in its short form: mutated submissions, flipped bits, kills, races, full and read-only disks."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

CAMPAIGN = Path(__file__).parents[1] / "scripts" / "campaign"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="it forks commands and mounts disks")
def test_nothing_crashes_and_nothing_wrong_is_shown() -> None:
    command = [sys.executable, str(CAMPAIGN), "--short", "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    found = {part["what"]: part for part in json.loads(ended.stdout)}
    assert all(part["tries"] or part["skipped"] for part in found.values())
    (mutated,) = (part for what, part in found.items() if "mutated" in what)
    assert mutated["ended"]["refused in words"] > 50  # mutations reach what they are to change
    assert mutated["ended"]["valid, its figures right"] > 0
