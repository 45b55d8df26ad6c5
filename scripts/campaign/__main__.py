"""What a faulty or hostile world does, by the hundred: 0 crashes, 0 wrong values, in bounded time and memory.

    python scripts/campaign                          everything: about an hour of CPU time
    python scripts/campaign --section kills          one part: mutations, flips, kills, races or disks
    python scripts/campaign --short                  a few of each, as in the tests: under a minute
    python scripts/campaign --join a.json b.json     the table of parts that ran by themselves with --json

Prints the table of docs/campaign.md and every try that ended badly; exit status 1 if there is one.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from disks import run_disks
from flips import run_flips
from kills import run_kills, run_races
from mutations import run_mutations
from outcome import Outcome, joined, markdown
from world import Places, World, long_commands, make_world

SECTIONS = ("mutations", "flips", "kills", "races", "disks")
LARGE = {"mutations": 10_000, "flips": 1000, "kills": 200, "races": 3}
SMALL = {"mutations": 100, "flips": 40, "kills": 7, "races": 1}
QUICK = ("encode", "submit", "pin", "import", "import-vectors")
"""Commands of the short form; `leaderboard` alone draws pictures for half a minute."""
DISKS = {False: (0.1, 0.5, 0.9), True: (0.5,)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--section", action="append", choices=SECTIONS, help="only this one (repeatable)")
    parser.add_argument("--short", action="store_true", help="a few tries of each")
    parser.add_argument("--count", type=int, help="so many mutations, flips or kills, or rounds of races, instead")
    parser.add_argument("--command", action="append", help="kills, races, disks: only this command (repeatable)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where to work; kept for a look at what went wrong")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--join", nargs="+", type=Path, metavar="JSON", help="only print the table of these parts")
    given = parser.parse_args()
    if given.join:
        outcomes = joined([part for file in given.join for part in json.loads(file.read_text())])
    elif given.folder is not None:
        given.folder.mkdir(parents=True, exist_ok=False)
        outcomes = campaign(given, given.folder)
    else:
        with tempfile.TemporaryDirectory(prefix="campaign-") as folder:
            outcomes = campaign(given, Path(folder))
    if given.json:
        print(json.dumps([outcome.as_dict() for outcome in outcomes], indent=1))
    else:
        print(markdown(outcomes))
    wrong = [f"{outcome.what}: {what}" for outcome in outcomes for what in outcome.wrong]
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


def campaign(given: argparse.Namespace, folder: Path) -> list[Outcome]:
    world = make_world(folder / "world")
    outcomes: list[Outcome] = []
    for section in given.section or SECTIONS:
        print(f"{section} …", file=sys.stderr)
        outcomes += _section(section, given, world, folder)
    return outcomes


def _section(section: str, given: argparse.Namespace, world: World, folder: Path) -> list[Outcome]:
    count = given.count or (SMALL if given.short else LARGE).get(section, 0)
    if section == "mutations":
        return [run_mutations(world, folder / "scratch", count, given.seed)]
    if section == "flips":
        return run_flips(world, folder / "scratch", count, given.seed)
    wanted = given.command or (QUICK if given.short else None)
    commands = [c for c in long_commands(world) if wanted is None or c.name in wanted]
    places = Places(folder / section)
    if section == "kills":
        return run_kills(commands, places, count, given.seed)
    if section == "races":
        return [run_races(commands, places, count)]
    return [run_disks(commands, places, DISKS[given.short])]


if __name__ == "__main__":
    sys.exit(main())
