"""Commands that are killed at any moment, and run by three at once: begun again, they end with the same bytes."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from outcome import Outcome, measured
from world import Ended, LongCommand, Places, digest, finish, run, start, undisturbed

AT_ONCE = 3
KILLS_IN_A_ROW = 4
"""Before a command may end: so kills also fall into what an earlier kill left."""


def run_kills(commands: Sequence[LongCommand], places: Places, count: int, seed: int) -> list[Outcome]:
    """`count` kills over all commands, in turn."""
    shares = [count // len(commands) + (i < count % len(commands)) for i in range(len(commands))]
    outcomes = []
    for command, share in zip(commands, shares, strict=True):
        if share:
            outcomes.append(_kill(command, places, share, random.Random(seed)))
            print(" | ".join(outcomes[-1].row()), file=sys.stderr, flush=True)  # it takes long: say how far it is
    return outcomes


def _kill(command: LongCommand, places: Places, count: int, rng: random.Random) -> Outcome:
    outcome, kills = Outcome(f"`{command.name}` killed, and begun again"), 0
    with measured(outcome):
        place = places.new()
        wanted, seconds = undisturbed(command, place)
        shutil.rmtree(place)
        while kills < count:
            place, here = places.new(), 0
            command.prepare(place)
            while here < min(KILLS_IN_A_ROW, count - kills) and _killed(command, place, rng.uniform(0, 1.1 * seconds)):
                here += 1
            last = _to_the_end(command, place)
            same = last.well and digest(command.leaves(place)) == wanted  # some refuse to do again what is done
            kills += max(here, 1)  # of one that ended before it was killed, what it left counts as well
            if same:
                outcome.ended["the same bytes"] += max(here, 1)
            else:
                outcome.wrong.append(f"after {here} kills: {_difference(command, place, wanted, last)}")
            if same:
                shutil.rmtree(place)
    return outcome


def _killed(command: LongCommand, place: Path, after: float) -> bool:
    """Whether it was killed so many seconds after its start; False if it ended before."""
    deadline = time.perf_counter() + after
    for words in command.words(place):
        log = place / "log"
        pid = start(words, log, command.env(place))
        while time.perf_counter() < deadline:
            ended, _ = os.waitpid(pid, os.WNOHANG)
            if ended:
                break
            time.sleep(0.002)
        else:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return True
    return False


def _to_the_end(command: LongCommand, place: Path) -> Ended:
    ended = Ended(0, "")
    for words in command.words(place):
        ended = run(words, place / "log", command.env(place))
        if ended.status:
            break
    return ended


def _difference(command: LongCommand, place: Path, wanted: dict[str, str], last: Ended) -> str:
    if not last.well:
        return f"exit status {last.status}: {last.said.strip()[-400:]}"
    found = digest(command.leaves(place))
    return ", ".join(sorted(name for name in {*found, *wanted} if found.get(name) != wanted.get(name))[:5])


def run_races(commands: Sequence[LongCommand], places: Places, rounds: int) -> Outcome:
    """Three processes of a command in one place: each ends well, or says in one line who is in its way."""
    outcome = Outcome("three processes of a command at once")
    with measured(outcome):
        for command in commands:
            wanted, _ = undisturbed(command, places.new())
            for _ in range(rounds):
                _race(command, places, wanted, outcome)
    return outcome


def _race(command: LongCommand, places: Places, wanted: dict[str, str], outcome: Outcome) -> None:
    place = places.new()
    command.prepare(place)
    for words in command.words(place):
        logs = [place / f"log{i}" for i in range(AT_ONCE)]
        begun = [start(words, log, command.env(place)) for log in logs]
        ended = [finish(pid, log) for pid, log in zip(begun, logs, strict=True)]
        for one in ended:
            if not one.well:
                outcome.wrong.append(f"{command.name}: exit status {one.status}: {one.said.strip()[-400:]}")
    last = _to_the_end(command, place)  # what all of them left to each other
    if not last.well or digest(command.leaves(place)) != wanted:
        outcome.wrong.append(f"{command.name}: {_difference(command, place, wanted, last)}")
    else:
        outcome.ended["the same bytes"] += 1
        shutil.rmtree(place)
