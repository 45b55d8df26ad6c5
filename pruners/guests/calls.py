"""System calls that a sandboxed method has no use for, and is refused: libseccomp tells the kernel which.

Landlock, in `sandbox.py`, guards what is opened, written, renamed or removed. Here is what it does not see: ways to the
network, to other processes and their terminals, to what is known of files beside their content, and out of here.
Numbers are compared as the kernel reads them: of many arguments it takes the lower half only.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import termios
from collections.abc import Iterator
from typing import Any

REFUSED = (
    # the network, and sockets by name; a pair of connected ones is for oneself
    *("socket", "bind", "connect", "listen", "accept", "accept4"),
    *("io_uring_setup", "io_uring_enter", "io_uring_register"),
    # other processes: to start some, to look into them, to signal them, to change what they may do
    *("fork", "vfork", "execve", "execveat", "ptrace", "kcmp", "pidfd_open", "pidfd_getfd", "pidfd_send_signal"),
    *("process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "move_pages", "migrate_pages"),
    *("tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "setpriority", "ioprio_set", "sched_setaffinity"),
    *("sched_setscheduler", "sched_setparam", "sched_setattr", "setpgid", "setsid", "perf_event_open", "userfaultfd"),
    # memory, queues and locks that processes share, and news of what others do with files
    *("shmget", "shmat", "shmctl", "shmdt", "msgget", "msgsnd", "msgrcv", "msgctl"),
    *("semget", "semop", "semtimedop", "semctl", "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive"),
    *("mq_notify", "mq_getsetattr", "flock", "inotify_init", "inotify_init1", "inotify_add_watch"),
    *("fanotify_init", "fanotify_mark", "keyctl", "add_key", "request_key"),
    # files: who may use them, when they were used, what is noted on them
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat"),
    *("utime", "utimes", "utimensat", "futimesat", "truncate", "open_by_handle_at", "file_setattr"),
    *("setxattr", "lsetxattr", "fsetxattr", "setxattrat"),
    *("removexattr", "lremovexattr", "fremovexattr", "removexattrat"),
    # the machine, for one who is root: a sandbox of root's is one too
    *("setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setfsuid", "setfsgid", "setgroups"),
    *("capset", "chroot", "pivot_root", "unshare", "setns", "mount", "umount2", "mount_setattr", "move_mount"),
    *("open_tree", "open_tree_attr", "fsopen", "fsconfig", "fsmount", "fspick", "swapon", "swapoff", "quotactl"),
    *("quotactl_fd", "acct", "bpf", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module"),
    *("iopl", "ioperm", "reboot", "syslog", "vhangup", "sethostname", "setdomainname"),
    *("settimeofday", "clock_settime", "adjtimex", "clock_adjtime"),
)

NEWER = {
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "clone3": 435,
    "openat2": 437,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "process_mrelease": 448,
    "fchmodat2": 452,
    "setxattrat": 463,
    "removexattrat": 466,
    "open_tree_attr": 467,
    "file_setattr": 469,
}
"""Numbers, the same on every processor, of calls that an older libseccomp has no name for: the kernel may know them."""

THREAD = 0x10000
NEW_SPACES = (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
"""Flags of `clone`: a thread; namespaces of one's own, for mounts, cgroups, names, queues, users, processes, nets."""

ASK_TERMINAL = (
    termios.TCGETS,
    termios.TIOCGWINSZ,
    termios.FIONREAD,
    termios.FIONBIO,
    termios.FIOCLEX,
    termios.FIONCLEX,
)
"""All that is wanted of devices: whether one is a terminal, and how files are held."""

FCNTL = (fcntl.F_GETLK, fcntl.F_SETLK, fcntl.F_SETLKW, fcntl.F_SETOWN, fcntl.F_SETSIG, 15, 36, 37, 38, 1024, 1025, 1026)
"""Locks and leases, which others see, and signals to them: also F_SETOWN_EX, F_OFD_…LK, F_…LEASE, F_NOTIFY."""
LAST_FCNTL = 1034  # after it come hints that are kept with a file
LOWER_HALF = 0xFFFFFFFF
PDEATHSIG = 1
STREAM_ONLY = (socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET)


def restrict(without_truncation: bool) -> None:
    """Refuse them to this process from now on. `without_truncation`: Landlock here is too old to guard it."""
    import pyseccomp

    calls = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    calls.set_attr(pyseccomp.Attr.ACT_BADARCH, pyseccomp.KILL_PROCESS)  # calls by another processor's numbers
    refuse = pyseccomp.ERRNO(errno.EPERM)
    for name, *argument in (*((name,) for name in REFUSED), *_by_argument(without_truncation)):
        _refuse(calls, refuse, name, *[pyseccomp.Arg(*each) for each in argument])
    for name in ("clone3", "openat2"):  # what they are asked lies in memory, unseen; libraries then use the older call
        _refuse(calls, pyseccomp.ERRNO(errno.ENOSYS), name)
    calls.load()


def _by_argument(without_truncation: bool) -> Iterator[tuple[Any, ...]]:
    """Calls that are refused with some arguments: each a name, and which argument must be what."""
    from pyseccomp import EQ, GT, LT, MASKED_EQ, NE

    for name in ("kill", "tgkill"):  # a process may end itself
        yield name, (0, NE, os.getpid())
    yield "prlimit64", (0, NE, 0)  # but for oneself
    yield "prctl", (0, MASKED_EQ, LOWER_HALF, PDEATHSIG)  # to outlive the process that started this one
    yield "clone", (0, MASKED_EQ, THREAD, 0)
    for space in NEW_SPACES:
        yield "clone", (0, MASKED_EQ, space, space)
    yield "socketpair", (0, NE, socket.AF_UNIX)
    for kind in STREAM_ONLY:  # which can send to any name
        yield "socketpair", (1, MASKED_EQ, 0xF, kind)
    first, last = min(ASK_TERMINAL), max(ASK_TERMINAL)
    yield "ioctl", (1, LT, first)
    yield "ioctl", (1, GT, last)
    for number in set(range(first, last)) - set(ASK_TERMINAL):  # TIOCSTI, which types, and all others
        yield "ioctl", (1, EQ, number)
    yield "fcntl", (1, GT, LAST_FCNTL)
    for number in FCNTL:
        yield "fcntl", (1, MASKED_EQ, LOWER_HALF, number)
    if without_truncation:
        yield "open", (1, MASKED_EQ, os.O_TRUNC, os.O_TRUNC)
        yield "openat", (2, MASKED_EQ, os.O_TRUNC, os.O_TRUNC)


def _refuse(calls: Any, how: int, name: str, *arguments: Any) -> None:
    import pyseccomp

    number = pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name)
    number = NEWER.get(name, number) if number < 0 else number
    if number >= 0:  # or there is none on this processor, or none that this libseccomp has heard of
        calls.add_rule(how, number, *arguments)
