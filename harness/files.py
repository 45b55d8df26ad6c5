"""Files as the whole project writes them: whole or absent, with checksums; and which libraries are installed."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import socket
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import metadata
from pathlib import Path

import xxhash

from harness.cache import user_cache
from pruners.core.errors import PruneBoardError

_DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_HOST = re.sub(r"[^A-Za-z0-9_-]", "_", socket.gethostname())


def checksum(data: bytes | memoryview) -> str:
    """Of bytes in memory."""
    return f"xxh3-{xxhash.xxh3_128(data).hexdigest()}"


def file_checksum(path: Path) -> str:
    """Of a file of any size."""
    digest = xxhash.xxh3_128()
    with path.open("rb") as file:
        while chunk := file.read(1 << 22):
            digest.update(chunk)
    return f"xxh3-{digest.hexdigest()}"


@contextmanager
def alone_with(path: Path, wait: bool = True) -> Iterator[None]:
    """While the block runs, no other process of this user is in such a block with this path.

    The lock lies in the user's cache, so that nothing appears beside the path. Without `wait`, a taken one is an error.
    """
    from filelock import Timeout  # reading needs it not

    from harness.lock import acquired

    place = user_cache() / "locks" / hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        lock = acquired(place, timeout=-1 if wait else 0)
    except Timeout:
        raise PruneBoardError(f"another process is writing {path}: wait for it, or choose another place") from None
    except OSError as error:
        reason = f"{error.strerror or error}; $XDG_CACHE_HOME may name another folder"
        raise PruneBoardError(f"there can be no lock in {place.parent}: {reason}") from error
    try:
        yield
    finally:
        lock.release()


def write_atomically(path: Path, data: bytes, content: str = "", *, sync_folder: bool = True) -> None:
    """The file is whole under its name or not there: temporary name, fsync, rename, fsync of the folder.

    `content` says what is in it, should the disk be full. Without `sync_folder` its name may be lost with the power,
    unless another file of the folder is written after it.
    """
    temporary = temporary_name(path)
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        if error.errno in _DISK_FULL:
            raise PruneBoardError(
                f"no room for {path.name} ({content}{len(data) / 2**20:.1f} MB) in {path.parent}: {error.strerror}. "
                "What was finished before it is kept: free some space and run the same command again"
            ) from error
        raise PruneBoardError(
            f"{path.name} cannot be written in {path.parent}: {error.strerror}. What was finished before it is kept"
        ) from error
    if not sync_folder:
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def in_words(error: OSError) -> str:
    """What the system refused, and the way out, in one line."""
    where = f"{error.filename}: " if error.filename else ""
    ways = {
        **dict.fromkeys(_DISK_FULL, "free some space and run the same command again; what was finished is kept"),
        **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "choose a folder that you may write to"),
        **dict.fromkeys(
            (errno.ENOTDIR, errno.EEXIST, errno.EISDIR), "a file is where a folder should be, or the reverse"
        ),
        errno.ENOENT: "there is no such file",
        errno.EMFILE: "too many open files: try `ulimit -n 4096`",
    }
    way = ways.get(error.errno or 0)
    return f"{where}{error.strerror or error}" + (f" ({way})" if way else "")


def temporary_name(path: Path) -> Path:
    """Where this process, on this machine, writes a file before it gets its name."""
    return path.with_name(f".{path.name}.{_HOST}-{os.getpid()}.tmp")


def temporary_files(folder: Path, names: Collection[str] | None = None) -> list[Path]:
    """What killed processes left half written, of the files of these names or of all."""
    found = {path: path.name[1:-4].rpartition(".")[0] for path in folder.glob(".*.tmp")}
    return [path for path, name in found.items() if names is None or name in names]


def library_versions(names: Iterable[str]) -> dict[str, str]:
    """Installed versions by name; `absent` where there is none."""
    return {name: _version(name) for name in names}


@cache
def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "absent"
