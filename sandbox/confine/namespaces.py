"""Security boundary: new namespaces for a process, and who it is in them (namespaces(7), user_namespaces(7))."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

from . import libc
from .privileges import NOBODY
from .system_calls import numbers

# Flags of clone(2).
NEW_MOUNT = 0x00020000
NEW_UTS = 0x04000000
NEW_IPC = 0x08000000
NEW_USER = 0x10000000
NEW_PID = 0x20000000
NEW_NET = 0x40000000
ALL = NEW_USER | NEW_MOUNT | NEW_PID | NEW_NET | NEW_IPC | NEW_UTS
ALL_BUT_NET = ALL & ~NEW_NET
"""What is left to make where the zygote is in an empty network namespace already (`Plan.own_network`)."""

HOST_NAME = b"sandbox"

if sys.platform == "linux":
    # Looked up once: a worker would look up its own again, on pages that it must first copy.
    _before_fork = ctypes.pythonapi.PyOS_BeforeFork
    _after_fork_in_parent = ctypes.pythonapi.PyOS_AfterFork_Parent
    _after_fork_in_child = ctypes.pythonapi.PyOS_AfterFork_Child
_CLONE = numbers.ARCHITECTURE.numbers.get("clone", -1)
_SIGCHLD = int(signal.SIGCHLD)


def fork_into(flags: int) -> int:
    """Fork like os.fork(), with the child in new namespaces by the same clone(2). Raises OSError.

    One thread only. Unlike fork(3) this leaves the C library's idea of the thread's number alone, which matters only
    to code that sends signals to threads; a worker with threads is forked once more by its namespace's first process.
    """
    _before_fork()
    pid = int(libc.raw_syscall(_CLONE, flags | _SIGCHLD, 0, 0, 0, 0))
    if pid == 0:
        _after_fork_in_child()
        return 0
    error = libc.failed("clone") if pid < 0 else None
    _after_fork_in_parent()
    if error is not None:
        raise error
    return pid


def unshare(flags: int) -> None:
    """Move this process into new namespaces (unshare(2)). Raises OSError."""
    libc.unshare(flags)


def map_ids(proc_fd: int, outer_uid: int, outer_gid: int) -> None:
    """Be `NOBODY` in the new user namespace this process is in: the only user and group there are in it.

    `proc_fd` is the host's /proc, opened before. The process must be dumpable to own its files there (proc(5)).
    """
    for file, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{NOBODY} {outer_uid} 1"),
        ("gid_map", f"{NOBODY} {outer_gid} 1"),
    ):
        fd = os.open(f"self/{file}", os.O_WRONLY | os.O_CLOEXEC, dir_fd=proc_fd)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)


def set_host_name() -> None:
    """Hide the machine's name behind one that says nothing, in this UTS namespace and those made from it later.

    See sethostname(2) and uts_namespaces(7).
    """
    libc.syscall("sethostname", numbers.number("sethostname"), HOST_NAME, len(HOST_NAME))


def owner_map(proc_fd: int, stored_id: int, shown_id: int) -> int:
    """Give a descriptor of a user namespace that shows files of `stored_id`, user and group, as `shown_id`'s.

    The workspace of a server that runs as root belongs to root and is closed to all others. An ID-mapped mount
    (mount_setattr(2)) shows the same files with another owner; the translation is that of a user namespace.

    Needs CAP_SETUID and CAP_SETGID in this process's user namespace. Raises OSError.
    """
    reading, writing = os.pipe2(os.O_CLOEXEC)
    pid = fork_into(NEW_USER)
    if pid == 0:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    try:
        os.close(reading)
        for file in ("uid_map", "gid_map"):
            fd = os.open(f"{pid}/{file}", os.O_WRONLY | os.O_CLOEXEC, dir_fd=proc_fd)
            try:
                os.write(fd, f"{stored_id} {shown_id} 1".encode())
            finally:
                os.close(fd)
        return os.open(f"{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc_fd)
    finally:
        os.close(writing)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
