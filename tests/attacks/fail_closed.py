"""Takes one primitive of the kernel away from a server before it starts, and sees whether it still runs code.

As a program it installs a system call filter that refuses the primitive, and becomes the command that follows:
`python fail_closed.py no_userns COMMAND …`. It needs no privilege: no_new_privs comes first (seccomp(2)).
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oracles import Seen
    from planting import Ground

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2
_LOAD, _JUMP_EQUAL, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NEW_NAMESPACES = 0x7E020000
_CALLS = {"unshare": 272, "clone": 56, "clone3": 435, "prctl": 157, "seccomp": 317, "prlimit64": 302, "setrlimit": 160}

TAKEN = {
    "no_userns": ("namespaces", {"unshare": None, "clone3": None, "clone": (0, _NEW_NAMESPACES)}),
    "no_seccomp": ("seccomp", {"seccomp": None, "prctl": (0, _PR_SET_SECCOMP)}),
    "rlimit_refused": ("limits", {"prlimit64": None, "setrlimit": None}),
}
"""For each variant: the layer that a refusal must speak of, and the calls to refuse (all, or by bits of an argument)."""
NOT_USED = {
    "no_cgroup": "groups are a net below the limits that each worker has of its own, and are named only where they hold",
    "helper_missing": "sealab has no helper program",
}


def seen(variants: Sequence[str], ground: Ground, *, as_user: bool) -> Seen:
    """Start a server that requires every layer, once without each primitive; none may run code."""
    from oracles import Seen
    from product import HOMES, Gone, Server, Silent

    wrong: list[str] = []
    for variant in variants:
        if variant in NOT_USED:
            continue
        if variant not in TAKEN:
            wrong.append(f"the runner cannot take away {variant}")
            continue
        server = Server(ground.base, ground.environment(), as_user=as_user, more={"SEALAB_REQUIRED_LEVEL": "kernel"})
        server.log_file = ground.base / f"{HOMES}{variant}.log"
        prefix = [sys.executable, os.path.abspath(__file__), variant]
        try:
            server.start(prefix=prefix)
            reply = server.call("execute_code", {"code": "result = 'ran'"}, 30)
            report = reply.get("result", {}).get("structuredContent")
            said = str(reply)
            if report is not None and report["success"]:
                wrong.append(f"{variant}: the code ran, with the layers {report['layers']}")
        except (Gone, Silent) as error:
            said = f"{error} {server.log_from(0)}"
        finally:
            server.stop()
        layer = TAKEN[variant][0]
        if layer not in said and not (layer == "limits" and "limit" in said):
            wrong.append(f"{variant}: the refusal does not name the layer: {said[-300:]}")
    return Seen(facts={"wrong": wrong})


def main() -> None:
    variant, *command = sys.argv[1:]
    program = b""
    for name, rule in TAKEN[variant][1].items():
        number = _CALLS[name]
        # The C library falls back from clone3(2) to clone(2) on this errno alone.
        refuse = _instruction(_RETURN, _ERRNO | (errno.ENOSYS if name == "clone3" else errno.EPERM))
        allow = _instruction(_RETURN, _ALLOW)
        if rule is None:
            program += _instruction(_LOAD, 0) + _instruction(_JUMP_EQUAL, number, 0, 1) + refuse
            continue
        argument, bits = rule
        test = _JUMP_EQUAL if name == "prctl" else _JUMP_ANY_BIT
        program += _instruction(_LOAD, 0) + _instruction(_JUMP_EQUAL, number, 0, 4)
        program += _instruction(_LOAD, 16 + 8 * argument) + _instruction(test, bits, 0, 1) + refuse + allow
    program += _instruction(_RETURN, _ALLOW)
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, header):
        sys.exit(f"no filter: {os.strerror(ctypes.get_errno())}")
    os.execv(command[0], command)


def _instruction(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    """Encode one instruction of a classic BPF program (linux/filter.h, struct sock_filter)."""
    return struct.pack("HBBI", code, yes, no, value)


if __name__ == "__main__":
    main()
