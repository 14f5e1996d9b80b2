"""The system call filter with which an engine's container leaves room for all layers of sealab: the level `kernel`.

An engine's own filter allows no namespaces without a privilege, which leaves the level `landlock`. This one allows
them, and refuses what a container has no use for: what loads code into the kernel, sets the machine's
clocks and devices, or looks into other processes (seccomp(2), capabilities(7)). The sandbox adds its own allow list.
"""

# ruff: noqa: T201 - printing is what a command line does

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from ..errors import Exit, UsageError

REFUSED = (
    *(
        "acct",
        "bpf",
        "delete_module",
        "finit_module",
        "init_module",
        "kexec_file_load",
        "kexec_load",
        "perf_event_open",
    ),
    *("add_key", "keyctl", "request_key", "open_by_handle_at", "name_to_handle_at", "lookup_dcookie", "nfsservctl"),
    *("adjtimex", "clock_adjtime", "clock_settime", "settimeofday", "ioperm", "iopl", "quotactl", "quotactl_fd"),
    *("process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "ptrace", "kcmp", "reboot", "syslog"),
    *("swapoff", "swapon", "sysfs", "userfaultfd", "uselib", "ustat", "vhangup", "personality", "fanotify_init"),
    *("io_uring_enter", "io_uring_register", "io_uring_setup", "mbind", "migrate_pages", "move_pages", "set_mempolicy"),
)
"""System calls that fail with EPERM."""

_EPERM = 1


def profile() -> dict[str, object]:
    """Return the filter as Docker and Podman read it (`--security-opt seccomp=FILE`)."""
    return {
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{"names": sorted(REFUSED), "action": "SCMP_ACT_ERRNO", "errnoRet": _EPERM}],
    }


def write_profile(file: Path) -> Path:
    """Write the filter to a file, unless it stands there already, and return the file's absolute path."""
    text = json.dumps(profile(), indent=1) + "\n"
    file = file.absolute()
    if not file.is_file() or file.read_text(encoding="utf-8") != text:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = file.with_name(f".{file.name}.{os.getpid()}")
        beside.write_text(text, encoding="utf-8")
        beside.replace(file)
    return file


def add_to(commands: argparse._SubParsersAction[Any]) -> None:
    """Add `profile` to the commands of `sealab container`. It needs nothing that some system lacks."""
    command = commands.add_parser(
        "profile",
        help="write a seccomp profile with which Docker allows the level kernel",
        description="Write a seccomp profile with which a container of Docker or Podman allows the level kernel.",
        allow_abbrev=False,
    )
    command.add_argument("file", metavar="FILE", nargs="?", help="where to write it (default: below the home)")
    command.add_argument("--json", action="store_true", help="print where it is as JSON")
    command.add_argument("--home", metavar="DIR", help="the folder below which sealab keeps everything")
    command.add_argument("--debug", action="store_true", help="show the traceback of an error")
    command.set_defaults(command=_run)


def _run(chosen: argparse.Namespace) -> int:
    from ..home import find_home

    place = find_home(chosen.home, os.environ).containers / "seccomp.json" if chosen.file is None else Path(chosen.file)
    try:
        file = write_profile(place.expanduser())
    except OSError as error:
        raise UsageError(f"{place} cannot be written: {error.strerror}. Name another FILE.") from None
    if chosen.json:
        print(json.dumps({"file": str(file)}))
    else:
        print(f"docker run -i --rm --security-opt seccomp={file} -v sealab:/home/sealab sealab")
        print("Where Docker uses AppArmor (Debian, Ubuntu), add --security-opt apparmor=unconfined.")
    return Exit.OK
