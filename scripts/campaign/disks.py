"""Disks that are full, and disks that cannot be written: one line with a way out, and nothing half done.

A small disk is a `tmpfs` in a namespace of its own, which an ordinary user may make on Linux; when it was full it is
made larger, and the command must end as if nothing had been. Where there are no such namespaces, this is left out.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from outcome import Outcome, measured
from world import Ended, LongCommand, Places, digest, run, undisturbed

NEW_USER, NEW_MOUNTS = 0x10000000, 0x00020000
READ_ONLY, AGAIN = 1, 32
ROOM = 64 * 2**20


def run_disks(commands: Sequence[LongCommand], places: Places, sizes: Sequence[float]) -> Outcome:
    """Every command on disks with room for a part of what it writes, and on one that is read-only."""
    outcome = Outcome("full and read-only disks")
    if reason := _impossible(places.new()):
        outcome.skipped = reason
        return outcome
    with measured(outcome):
        for command in commands:
            place = places.new()
            wanted, _ = undisturbed(command, place)
            ready = places.new()
            command.prepare(ready)
            begun, whole = _size(ready), _size(place)
            for share in sizes:
                room = begun + int(share * max(8192, whole - begun))
                _on_disk(command, places.new(), room, wanted, outcome)
            _on_disk(command, places.new(), None, wanted, outcome)
            shutil.rmtree(place)
            shutil.rmtree(ready)
    return outcome


def _size(folder: Path) -> int:
    """What its files take on a disk of pages of 4096 bytes."""
    return sum(-(-path.stat().st_size // 4096) * 4096 for path in folder.rglob("*") if path.is_file())


def _on_disk(command: LongCommand, place: Path, room: int | None, wanted: dict[str, str], outcome: Outcome) -> None:
    """On a disk of so many bytes; None: on a read-only one."""
    report = place.with_suffix(".json")
    pid = os.fork()
    if pid == 0:
        try:
            found = _within(command, place, room, wanted)
        except BaseException as error:
            found = ["", f"the campaign's own fault: {type(error).__name__}: {error}"]
        report.write_text(json.dumps(found))
        os._exit(0)
    os.waitpid(pid, 0)
    well, wrong = json.loads(report.read_text())
    where = "a read-only disk" if room is None else f"a disk of {room:,} bytes"
    if wrong:
        outcome.wrong.append(f"{command.name} on {where}: {wrong}")
    else:
        outcome.ended[well] += 1


def _within(command: LongCommand, place: Path, room: int | None, wanted: dict[str, str]) -> list[str]:
    """How it ended well, and what was wrong, from inside the namespace."""
    enter_namespace()
    mount(place, ROOM)
    command.prepare(place)
    log = place.with_suffix(".log")
    if room is None:
        mount(place, ROOM, AGAIN | READ_ONLY)
    else:
        mount(place, room, AGAIN)
    first = _all(command, place, log)
    if room is None:
        return ["told in a line", _not_told(first)]
    if first.status and (wrong := _not_told(first)):
        return ["", wrong]
    mount(place, ROOM, AGAIN)
    last = _all(command, place, log)
    if not last.well or digest(command.leaves(place)) != wanted:  # some refuse to do again what is done
        return ["", f"with room again, it ends with {last.status}: {last.said.strip()[-300:]}"]
    return ["told in a line, the same bytes with room again" if first.status else "room enough", ""]


def _all(command: LongCommand, place: Path, log: Path) -> Ended:
    ended = Ended(0, "")
    for words in command.words(place):
        ended = run(words, log, command.env(place))
        if ended.status:
            break
    return ended


def _not_told(ended: Ended) -> str:
    """Why an end is not the one line of an error; empty if it is."""
    if ended.status == 2 and "Traceback" not in ended.said and "error" in ended.said:
        return ""
    return f"exit status {ended.status}: {ended.said.strip()[-400:]}"


def _impossible(place: Path) -> str:
    """Why no small disk can be made here; empty if one can."""
    pid = os.fork()
    if pid == 0:
        try:
            enter_namespace()
            mount(place, ROOM)
            os._exit(0)
        except OSError as error:
            os._exit(min(error.errno or 1, 250))
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return f"left out: no disk can be mounted here ({os.strerror(status)})" if status else ""


def enter_namespace() -> None:
    """Mounts of this process are its own from here on; it stays who it is."""
    user, group = os.getuid(), os.getgid()
    _call("unshare", NEW_USER | NEW_MOUNTS)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        Path(f"/proc/self/{name}").write_text(text)


def mount(place: Path, size: int, flags: int = 0) -> None:
    _call("mount", b"none", os.fsencode(place), b"tmpfs", flags, f"size={size}".encode())


def _call(name: str, *given: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*given):
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")
