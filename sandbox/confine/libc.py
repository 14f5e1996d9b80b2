"""The system calls that Python has no function for, through ctypes.

Every function raises OSError, with the name of the call, when the kernel refuses. Constants carry the man page they
come from. Only the C library that Python itself runs on is used: nothing is searched for or compiled.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeAlias

Call: TypeAlias = tuple[str, Callable[[], int]]
"""A call that was made ready, and its name for the error: what it needs was converted before the fork."""

if sys.platform == "linux":
    # The interpreter's lock is kept over a call: none waits, and releasing it costs more than most of them do.
    _LIBC = ctypes.PyDLL(None, use_errno=True)
    _LIBC.syscall.restype = ctypes.c_long
    raw_syscall = _LIBC.syscall
    """syscall(2): takes numbers below 2**31 or `c_long`; the caller checks for -1, and then raises `failed`."""
    _LIBC.prctl.restype = ctypes.c_int
    _LIBC.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    # Those of every worker take small numbers, which need no conversion.
    _PRCTL = _LIBC["prctl"]

LAST_FD = 0x7FFFFFFF
_PR_CAPBSET_DROP = 24
_CAPABILITIES_MAX = 64  # the bits of a set, capget(2)
_CLOSE_RANGE = 436  # the same number on every architecture since Linux 5.9


def failed(call: str) -> OSError:
    """Make the error for a call that has just returned -1."""
    number = ctypes.get_errno()
    return OSError(number, f"{call}: {os.strerror(number)}")


def ready(call: str, number: int, *words: int | bytes | None) -> Call:
    """Make a system call (syscall(2)) ready; its numbers are below 2**31."""
    return call, partial(raw_syscall, number, *words)


def ready_prctl(call: str, option: int, argument: int) -> Call:
    """Make a call of prctl(2) ready; its numbers are below 2**31."""
    return f"prctl({call})", partial(_PRCTL, option, argument, 0, 0, 0)


def ready_capset(header: bytes, sets: bytes) -> Call:
    """Make a call of capset(2) ready."""
    return "capset", partial(_LIBC.capset, header, sets)


def make(calls: Iterable[Call]) -> None:
    """Make one call after the other. Raises OSError for the first that fails."""
    for name, call in calls:
        if call() < 0:
            raise failed(name)


def syscall(call: str, number: int, *arguments: int | bytes | None) -> int:
    """Make the system call `number` (syscall(2)); `call` names it in the error."""
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    answer = int(_LIBC.syscall(ctypes.c_long(number), *words))
    if answer < 0:
        raise failed(call)
    return answer


def prctl(call: str, option: int, *arguments: int) -> int:
    """Set or read something of this process (prctl(2)); unused arguments are zero, as several options demand."""
    answer = int(_LIBC.prctl(option, *(*arguments, 0, 0, 0, 0)[:4]))
    if answer < 0:
        raise failed(f"prctl({call})")
    return answer


def empty_bounding_set() -> int:
    """Drop one capability after the other from the bounding set (prctl(2), PR_CAPBSET_DROP), as far as allowed.

    Ends past the last that the kernel knows (EINVAL), or at once without CAP_SETPCAP (EPERM). Forty calls in every
    worker: hence no detour through `ready_prctl` for each. Returns 0, or -1 when it fails, as those do.
    """
    for capability in range(_CAPABILITIES_MAX):
        if _PRCTL(_PR_CAPBSET_DROP, capability, 0, 0, 0) < 0:
            return 0 if ctypes.get_errno() in (errno.EINVAL, errno.EPERM) else -1
    return 0


def close_range(first: int, last: int) -> None:
    """Close the descriptors `first` to `last`, both included (close_range(2))."""
    if sys.platform == "linux":
        if raw_syscall(_CLOSE_RANGE, first, last, 0) == 0:
            return
        if ctypes.get_errno() != errno.ENOSYS:
            raise failed("close_range")
    highest = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    os.closerange(first, min(last + 1, highest if highest != resource.RLIM_INFINITY else 1 << 20))


def unshare(flags: int) -> None:
    """Leave namespaces for new ones, by the flags of clone(2)."""
    if _LIBC.unshare(ctypes.c_int(flags)) < 0:
        raise failed("unshare")


def mount_private(path: str) -> None:
    """Let no mount beneath `path` be seen by, or come from, other namespaces (mount(2), MS_REC | MS_PRIVATE)."""
    if _LIBC.mount(None, os.fsencode(path), None, ctypes.c_ulong(0x4000 | 1 << 18), None) < 0:
        raise failed("mount")


def umount(path: str, flags: int) -> None:
    """Take a mount away, as umount2(2) does."""
    if _LIBC.umount2(os.fsencode(path), ctypes.c_int(flags)) < 0:
        raise failed("umount2")
