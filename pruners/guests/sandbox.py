"""A sandbox that a process enters for good: no network, no other processes, no writing, and no reading but of Python,
libraries and what is named. Landlock guards files (a kernel from 5.13 on, no privileges needed), libseccomp the rest.

What was imported before stays usable. Where it cannot be had (macOS, an old kernel, no libseccomp), `missing` says why.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # system calls, the same on every processor
NO_NEW_PRIVILEGES = 38
PROCESSORS = ("x86_64", "aarch64")
"""Where the numbers here and in `calls.py` are right."""

TRUNCATION = 3
"""Of Landlock's versions, the first that guards it."""

READ_FILE, READ_DIR, WRITE_FILE = 1 << 2, 1 << 3, 1 << 1
LIBRARIES = ("/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib", "/lib", "/lib32", "/lib64", "/opt/lib")
FACTS = (
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/sys/devices/system/cpu",
)
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")


def missing() -> str | None:
    """Why there is no sandbox here; None if there is."""
    if sys.platform != "linux":
        return f"a sandbox needs Linux, and this is {sys.platform}"
    if platform.machine() not in PROCESSORS:
        return f"a sandbox needs a processor of {' or '.join(PROCESSORS)}, and this is {platform.machine()}"
    if _version() < 1:
        return "this kernel has no Landlock (Linux 5.13 or later, built and booted with it)"
    try:
        import pyseccomp  # noqa: F401
    except (ImportError, OSError, RuntimeError) as error:
        return f"libseccomp cannot be loaded ({error}): install it, as in `apt install libseccomp2`"
    return None


def enter(readable: Iterable[Path]) -> None:
    """Shut this process in, and all that it starts. `readable` are files and folders that it may read."""
    if reason := missing():
        raise OSError(errno.ENOSYS, reason)
    from . import calls

    _restrict_files([Path(path) for path in readable])
    calls.restrict(without_truncation=_version() < TRUNCATION)


def _restrict_files(named: Sequence[Path]) -> None:
    version = _version()
    files = (1 << (13 if version < 2 else 14 if version < 3 else 15 if version < 5 else 16)) - 1  # all there are
    network, scope = (3 if version >= 4 else 0), (3 if version >= 6 else 0)  # TCP; signals and abstract sockets
    size = 8 if version < 4 else 16 if version < 6 else 24
    attributes = (ctypes.c_uint64 * 3)(files, network, scope)
    rules = _call(CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(size), 0)
    try:
        for path in (*_system(), *named):
            _allow(rules, path, READ_FILE | READ_DIR)
        for folder in {path.parent for path in named}:
            _allow(rules, folder, READ_DIR)  # names alone: Python looks through a folder for what a file imports
        for device in DEVICES:
            _allow(rules, Path(device), READ_FILE | WRITE_FILE)
        if ctypes.CDLL(None, use_errno=True).prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "a sandbox must not gain privileges, and the kernel would not say so")
        _call(RESTRICT_SELF, rules, 0)
    finally:
        os.close(rules)


def _allow(rules: int, path: Path, rights: int) -> None:
    """What is not there needs no rule."""
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        granted = rights if path.is_dir() else rights & ~READ_DIR
        rule = granted.to_bytes(8, sys.byteorder) + place.to_bytes(4, sys.byteorder)
        _call(ADD_RULE, rules, 1, ctypes.create_string_buffer(rule, len(rule)), 0)
    finally:
        os.close(place)


def _system() -> Iterator[Path]:
    """Python and installed libraries, but not what this project installs beside its methods: it holds a benchmark."""
    installed = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    more = [place for place in sys.path if Path(place).name in ("site-packages", "dist-packages")]
    project = Path(__file__).resolve().parents[2]
    hidden = [project / name for name in ("harness", "leaderboard", "submissions")]
    folders = dict.fromkeys(Path(place).resolve() for place in [*installed, *more, *LIBRARIES])
    for folder in folders:
        yield from _without(folder, hidden)
    yield project / "pruners"
    yield from map(Path, FACTS)


def _without(folder: Path, hidden: Sequence[Path]) -> Iterator[Path]:
    """A folder, or what it holds beside what is hidden."""
    if folder in hidden:
        return
    if not any(path.is_relative_to(folder) for path in hidden):
        yield folder
    elif folder.is_dir():
        for inside in folder.iterdir():
            yield from _without(inside, hidden)


def _version() -> int:
    """Of Landlock in this kernel; 0 or less: there is none."""
    if sys.platform != "linux":
        return 0
    return ctypes.CDLL(None, use_errno=True).syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1)


def _call(number: int, *arguments: Any) -> int:
    found = ctypes.CDLL(None, use_errno=True).syscall(number, *arguments)
    if found < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"the kernel refused a sandbox: {os.strerror(code)}")
    return found
