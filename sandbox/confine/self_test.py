"""Tries, in a throw-away worker, what no confined worker may do: the proof that the layers hold and not only load."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from dataclasses import replace
from typing import NoReturn

from ..errors import LevelMissing
from . import layout
from .confine_worker import enter, fork
from .plan import Plan

_FOREIGN_FILES = ("/etc/passwd", "/etc/hostname", "/proc/version", "/proc/self/status", sys.executable)
_READY = b"ready"
_EXECUTED = 42
_TRIAL = f"{layout.WORKSPACE}/.sealab-part-trial"
"""A name that no file of the workspace has, in case that anything of it should stay."""


def prove(plan: Plan) -> None:
    """Raise `LevelMissing` if a worker of this plan can do what its layers should forbid."""
    if plan.filter is None:
        return  # the level `limits`: nothing but limits was promised
    done = self_test(plan)
    if done:
        raise LevelMissing(
            f"The layers {', '.join(plan.layers)} were set up, but a trial worker still could: {', '.join(done)}. "
            "Do not run code here; report this with the output of `sealab doctor --json`."
        )


def self_test(plan: Plan) -> tuple[str, ...]:
    """Return which of "file", "socket", "fork" and "exec" a worker of this plan could do: none, if the layers hold.

    Costs one fork. Raises LevelMissing when the worker cannot be confined at all, OSError when it cannot be forked.
    """
    reading, writing = os.pipe()
    try:
        pid = fork(plan)
        if pid == 0:
            _try_everything(plan, writing)
    finally:
        os.close(writing)
    with open(reading, "rb") as answer:
        words = answer.read().split()
    _pid, status = os.waitpid(pid, 0)
    if not words or words[0] != _READY:
        code = os.waitstatus_to_exitcode(status)
        raise LevelMissing(f"A trial worker could not be confined (it ended with {code}). Run `sealab doctor`.")
    done = [word.decode() for word in words[1:]]
    return (*done, "exec") if os.waitstatus_to_exitcode(status) == _EXECUTED else tuple(done)


def with_overlay(plan: Plan, run_folder: str) -> Plan:
    """Let workers of this plan write to the workspace, if a trial worker with this folder can; else note why not.

    Costs one fork. Nothing is less safe without. Raises OSError when no worker can be forked.
    """
    if not plan.has_run_folders:
        return plan
    trial = replace(plan, overlays=True)
    reading, writing = os.pipe()
    try:
        pid = fork(trial)
        if pid == 0:
            _try_to_write(trial, writing, run_folder)
    finally:
        os.close(writing)
    with open(reading, "rb") as answer:
        reply = answer.read().decode(errors="replace")
    os.waitpid(pid, 0)
    if reply == _READY.decode():
        return trial
    note = (
        "Full Python sees the workspace read-only and brings files home with keep(): "
        f"{reply or 'a trial worker died'}. "
        "An overlay on the workspace needs Linux 5.11 or newer, and a home on a file system that can be the upper "
        "layer of one (ext4, xfs, btrfs or tmpfs, not another overlay)."
    )
    return replace(plan, notes=(*plan.notes, note))


def _try_to_write(plan: Plan, writing: int, run_folder: str) -> NoReturn:
    try:
        enter(plan, keep_fds={writing}, run_folder=run_folder)
        os.mkdir(_TRIAL)
        with open(f"{_TRIAL}/a", "xb") as file:
            file.write(_READY)
        os.rename(f"{_TRIAL}/a", f"{_TRIAL}/b")
        os.unlink(f"{_TRIAL}/b")
        os.rmdir(_TRIAL)
        seen: list[str] = []
        with contextlib.suppress(PermissionError):
            seen = os.listdir(layout.RUN_FOLDERS)
        os.write(writing, b"the folders of other workers could be seen" if seen else _READY)
    except OSError as error:
        os.write(writing, str(error).encode())
    finally:
        os._exit(0)


def _try_everything(plan: Plan, writing: int) -> NoReturn:
    try:
        enter(plan, keep_fds={writing})
        os.write(writing, _READY)
        for path in _FOREIGN_FILES:
            with contextlib.suppress(OSError), open(path, "rb"):
                os.write(writing, b" file")
                break
        for family in (socket.AF_INET, socket.AF_UNIX):
            with contextlib.suppress(OSError), socket.socket(family):
                os.write(writing, b" socket")
                break
        with contextlib.suppress(OSError):
            if os.fork() == 0:
                os._exit(0)
            os.write(writing, b" fork")
        os.set_inheritable(writing, False)
        # The last, since the filter of restricted workers ends the process for it.
        for path, source in (("/bin/sh", f"exit {_EXECUTED}"), (sys.executable, f"raise SystemExit({_EXECUTED})")):
            with contextlib.suppress(OSError):
                os.execv(path, [path, "-c", source])  # noqa: S606 - it must be refused
    finally:
        os._exit(1)
