"""A zygote with one worker, run as a script: confines the worker, runs code in it and tells what it said.

Reads a request as JSON from its argument and writes an answer as JSON: `level`, `layers`, `told` (each value that the
code gave to `tell`), `status` (as wait(2) says), or `refused`. `without` takes kernel features away first, by a filter
that answers their calls as a kernel or container without them would.
"""

from __future__ import annotations

import asyncio  # noqa: F401 - what code in the worker uses must be imported before it is confined
import concurrent.futures.thread  # noqa: F401 - see above
import ctypes
import errno
import json
import mmap  # noqa: F401 - see above
import os
import resource  # noqa: F401 - see above
import signal
import socket  # noqa: F401 - see above
import struct
import sys
import threading  # noqa: F401 - see above
import time
from dataclasses import replace

from sealab.sandbox import confine
from sealab.sandbox.confine import libc, privileges
from sealab.sandbox.confine.system_calls import numbers, seccomp
from sealab.sandbox.errors import LevelMissing
from sealab.sandbox.job import Isolation

NAMESPACE_FLAGS = 0x7E020000
TAKEN_AWAY = {
    # Docker's default profile: no new namespaces and no mounts for who has no CAP_SYS_ADMIN.
    "namespaces": [
        (name, None, errno.EPERM) for name in ("unshare", "setns", "mount", "pivot_root", "fsopen", "open_tree")
    ]
    + [("clone", NAMESPACE_FLAGS, errno.EPERM)],
    "user namespaces": [("clone", 0x10000000, errno.ENOSPC), ("unshare", 0x10000000, errno.ENOSPC)],
    "landlock": [("landlock_create_ruleset", None, errno.ENOSYS), ("landlock_restrict_self", None, errno.ENOSYS)],
    "seccomp": [("seccomp", None, errno.EINVAL)],
}


def take_away(names):
    """Answer the calls behind the features with errors; `seccomp` last, or this filter could not be loaded."""
    program = [struct.pack("=HBBI", 0x20, 0, 0, 0)]
    for name in names:
        for call, flags, error in TAKEN_AWAY[name]:
            answer = struct.pack("=HBBI", 0x06, 0, 0, seccomp.refuse(error))
            number = struct.pack("=I", numbers.number(call))
            if flags is None:
                program += [struct.pack("=HBB", 0x15, 0, 1) + number, answer]
            else:
                program += [
                    struct.pack("=HBB", 0x15, 0, 4) + number,
                    struct.pack("=HBBI", 0x20, 0, 0, 16),
                    struct.pack("=HBBI", 0x45, 0, 1, flags),
                    answer,
                    struct.pack("=HBBI", 0x20, 0, 0, 0),
                ]
    program.append(struct.pack("=HBBI", 0x06, 0, 0, seccomp.ALLOW))
    privileges.no_new_privileges()
    seccomp.SyscallFilter(b"".join(program), ()).load()


def syscall(number, *arguments):
    """What hostile native code does, without the C library's help: the answer, or minus the error."""
    answer = ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    return answer if answer >= 0 else -ctypes.get_errno()


def attempt(action):
    """What became of it, in a word."""
    try:
        action()
    except Exception as error:
        return type(error).__name__
    return "done"


def main():
    request = json.loads(sys.argv[1])
    code = compile(request["code"], "<worker>", "exec")
    "".encode("cp1252")
    sys.path += request["path"]
    if request["user"]:
        os.setgroups([])
        os.setresgid(12345, 12345, 12345)
        os.setresuid(12345, 12345, 12345)
        privileges.set_dumpable(True)
    if request["without"]:
        take_away(request["without"])
    if request["hollow_filter"]:
        seccomp.build = lambda _policy: seccomp.SyscallFilter(struct.pack("=HBBI", 0x06, 0, 0, seccomp.ALLOW), ())
    probe = confine.probe()
    answer = {
        "zygote": os.getpid(),
        "level": probe.level,
        "findings": {f.layer: [f.available, f.detail, f.remedy] for f in probe.findings},
    }
    try:
        plan = confine.prepare(
            probe,
            isolation=Isolation(request["isolation"]),
            required=confine.Level(request["required"]),
            workspace=request["workspace"],
            scratch_bytes=1 << 20,
            group_limits=request["group_limits"],
            cpus=request["cpus"],
        )
        confine.prove(plan)
    except LevelMissing as error:
        print(json.dumps(answer | {"refused": str(error)}))
        return
    plan = replace(plan, **(request["plan"] and {"calls": (), **request["plan"]}))
    reading, writing = os.pipe()
    ready = b""
    inherited = os.open("/", os.O_RDONLY)  # what a worker must not keep
    statuses = []
    for turn in range(request["workers"]):
        pid = confine.fork(plan)
        if pid == 0:

            def tell(value):
                os.write(writing, json.dumps(value).encode() + b"\n")

            status = 70
            try:
                layers = confine.enter(plan, keep_fds={1, writing})
                names = globals() | {
                    "layers": layers,
                    "tell": tell,
                    "kept": {1, writing},
                    "inherited": inherited,
                    "turn": turn,
                }
                exec(code, names)
                status = 0
            finally:
                os._exit(status)
        if request["die"]:
            ready += os.read(reading, 1)
            print(ready.decode(), end="", flush=True)
            os._exit(0)
        if request["kill_after"]:
            time.sleep(request["kill_after"])
            os.kill(pid, signal.SIGKILL)
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    os.close(writing)
    with open(reading, "rb") as told:
        answer["told"] = [json.loads(line) for line in told]
    print(
        json.dumps(answer | {"layers": plan.layers, "notes": plan.notes, "status": statuses[-1], "statuses": statuses})
    )


if __name__ == "__main__":
    libc.prctl("PR_SET_DUMPABLE", 4, 1)
    main()
