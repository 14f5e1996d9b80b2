"""Security boundary: Landlock, by which a process forbids itself files, TCP, foreign signals and abstract sockets.

It needs no privilege and no namespace, so it holds where a container refuses those. Sources: landlock(7),
landlock_create_ruleset(2), landlock_add_rule(2), landlock_restrict_self(2) and the kernel's
Documentation/userspace-api/landlock.rst, which says which version (ABI) brought which right.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable

from . import libc
from .system_calls import numbers

_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

# LANDLOCK_ACCESS_FS_*: execute, write file, read file, read directory, remove directory, remove file, make character
# device, make directory, make regular file, make socket, make fifo, make block device, make symbolic link (ABI 1),
# refer (ABI 2), truncate (ABI 3), ioctl on devices (ABI 5).
_WRITE_FILE = 1 << 1
_READ_FILE = 1 << 2
_READ_DIR = 1 << 3
_REMOVE_DIR = 1 << 4
_REMOVE_FILE = 1 << 5
_MAKE_DIR = 1 << 7
_MAKE_REG = 1 << 8
_MAKE_SYM = 1 << 12
_REFER = 1 << 13
_TRUNCATE = 1 << 14
_FS_RIGHTS_BY_ABI = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}

_NET_ALL = 0b11  # LANDLOCK_ACCESS_NET_BIND_TCP, _CONNECT_TCP (ABI 4)
_SCOPE_ALL = 0b11  # LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, _SIGNAL (ABI 6)
_ABI_WITH_NET = 4
_ABI_WITH_SCOPES = 6

_READ = _READ_FILE | _READ_DIR
_CHANGE = _READ | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _MAKE_SYM | _REFER | _TRUNCATE
_FILE_RIGHTS = _READ_FILE | _WRITE_FILE | _TRUNCATE


def abi() -> int:
    """Ask which version of Landlock the kernel has. Raises OSError: ENOSYS without it, EOPNOTSUPP when switched off."""
    return libc.syscall(
        "landlock_create_ruleset", numbers.number("landlock_create_ruleset"), None, 0, _CREATE_RULESET_VERSION
    )


def ruleset(version: int, readable: Iterable[str], changeable: Iterable[str]) -> int:
    """Describe, as a descriptor, a domain without anything that the ABI `version` knows, except beneath given paths.

    What lies at `readable` may be read, at `changeable` also be changed; nothing may be executed, no device
    controlled. A path that cannot be opened grants nothing. Raises OSError.
    """
    fs_all = (1 << _FS_RIGHTS_BY_ABI.get(version, _FS_RIGHTS_BY_ABI[5])) - 1
    attributes = struct.pack("=Q", fs_all)
    if version >= _ABI_WITH_NET:
        attributes += struct.pack("=Q", _NET_ALL)
    if version >= _ABI_WITH_SCOPES:
        attributes += struct.pack("=Q", _SCOPE_ALL)
    rules = libc.syscall(
        "landlock_create_ruleset", numbers.number("landlock_create_ruleset"), attributes, len(attributes), 0
    )
    try:
        for rights, paths in ((_READ, readable), (_CHANGE, changeable)):
            for path in paths:
                _allow(rules, path, rights & fs_all)
    except OSError:
        os.close(rules)
        raise
    return rules


def restrict(rules: int) -> None:
    """Put this process into the domain of a `ruleset`, for good. Raises OSError; needs no_new_privs."""
    libc.make((ready(rules),))


def ready(rules: int) -> libc.Call:
    """Make the call of `restrict` ready."""
    return libc.ready("landlock_restrict_self", numbers.number("landlock_restrict_self"), rules, 0)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not os.path.isdir(path):
            rights &= _FILE_RIGHTS
        rule = struct.pack("=Qi", rights, beneath)
        libc.syscall("landlock_add_rule", numbers.number("landlock_add_rule"), rules, _RULE_PATH_BENEATH, rule, 0)
    finally:
        os.close(beneath)
