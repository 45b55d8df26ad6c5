"""One small site for all tests that only read it: eight methods measured on nano, and the paper's."""

from pathlib import Path

import pytest

from leaderboard.gather import Gathered
from leaderboard.site import build
from tests.leaderboard import synthetic


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What builds keep for the next one stays in the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    entries = synthetic.entries([*synthetic.nano_submissions(12, most=8), *synthetic.paper_submissions()])
    return build(Gathered(entries), tmp_path_factory.mktemp("site") / "site").folder
