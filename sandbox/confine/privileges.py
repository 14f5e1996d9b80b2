"""Security boundary: what a worker gives up of its process, whatever else the kernel offers.

Descriptors, privileges, the root user, the right to be traced or dumped, and a life beyond its parent.
"""

from __future__ import annotations

import os
import signal
import struct
import sys

from . import libc

NOBODY = 65534
"""The user and group that hold nothing, by the kernel's own default (user_namespaces(7), overflowuid)."""

# Options of prctl(2).
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4

_LINUX_CAPABILITY_VERSION_3 = 0x20080522  # capget(2)

if sys.platform == "linux":
    _DIE_WITH_PARENT = (libc.ready_prctl("PR_SET_PDEATHSIG", _PR_SET_PDEATHSIG, signal.SIGKILL),)
    _DROP_CAPABILITIES = (
        libc.ready_prctl("PR_CAP_AMBIENT", _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL),
        ("prctl(PR_CAPBSET_DROP)", libc.empty_bounding_set),
        libc.ready_capset(struct.pack("=Ii", _LINUX_CAPABILITY_VERSION_3, 0), bytes(24)),
    )
    _NO_NEW_PRIVILEGES = (libc.ready_prctl("PR_SET_NO_NEW_PRIVS", _PR_SET_NO_NEW_PRIVS, 1),)
    GIVE_UP: tuple[libc.Call, ...] = (*_DIE_WITH_PARENT, *_DROP_CAPABILITIES, *_NO_NEW_PRIVILEGES)
    """What `die_with_parent`, `drop_capabilities` and `no_new_privileges` do, one after the other."""


def leave_root() -> None:
    """Become `NOBODY` for good, if this process is root: real, effective and saved ids, and no other groups."""
    if 0 not in (os.getuid(), os.geteuid()):
        return
    os.setgroups([])
    if sys.platform == "linux":
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    else:  # setuid(2) as root sets all three everywhere else
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def die_with_parent() -> None:
    """Ask for SIGKILL when the parent ends.

    If it ended before the asking, this process finds the end of its channel, since the host gives up all workers of a
    zygote that is gone, and sends a job only to one that has come further than here.
    """
    libc.make(_DIE_WITH_PARENT)


def set_dumpable(dumpable: bool) -> None:
    """Allow or forbid core dumps, and that others of the same user trace or read this process (ptrace(2))."""
    libc.make((ready_dumpable(dumpable),))


def ready_dumpable(dumpable: bool) -> libc.Call:
    """Make the call of `set_dumpable` ready."""
    return libc.ready_prctl("PR_SET_DUMPABLE", _PR_SET_DUMPABLE, int(dumpable))


def no_new_privileges() -> None:
    """From now on no execve(2) grants anything; seccomp(2) and Landlock ask for this first."""
    libc.make(_NO_NEW_PRIVILEGES)


def drop_capabilities() -> None:
    """Give up every capability in every set: ambient, bounding, and then the rest (capabilities(7)).

    The bounding set can be emptied only with CAP_SETPCAP, which the first process of a user namespace has; without it
    no_new_privs has the same effect, as no execve(2) can gain anything.
    """
    libc.make(_DROP_CAPABILITIES)


def close_others(keep_fds: frozenset[int]) -> None:
    """Close every descriptor that is not in `keep_fds`, standard streams included (close_range(2))."""
    below = 0
    for fd in sorted(keep_fds):
        if fd > below:
            libc.close_range(below, fd - 1)
        below = fd + 1
    libc.close_range(below, libc.LAST_FD)
