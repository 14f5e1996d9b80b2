"""Runs `sealab` commands: in the tests' own process, or in one of their own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from sealab.server.cli import main

from .conftest import SEALAB, environment


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it wrote."""

    returncode: int
    output: bytes
    stderr: str

    @property
    def stdout(self) -> str:
        return self.output.decode()

    @property
    def told(self) -> Any:
        """What it wrote as JSON, of a command that ended well."""
        assert self.returncode == 0, self.stderr
        return json.loads(self.output)

    def refusal(self, code: int = 2) -> str:
        """Return what it said, of a command that ended with this code."""
        assert self.returncode == code, self.stderr
        return self.stderr


def sealab(*arguments: str, stdin: str | bytes = "", **env: str) -> Ended:
    """Run a command in this process, which is the same but for the start of Python and its imports."""
    sent = io.BytesIO(stdin.encode() if isinstance(stdin, str) else stdin)
    given = io.TextIOWrapper(io.BufferedReader(sent), encoding="utf-8")  # type: ignore[arg-type,type-var]  # as of a process
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    err = io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        wanted = environment(**env)
        for name in os.environ.keys() - wanted.keys():
            patch.delenv(name)
        for name, value in wanted.items():
            patch.setenv(name, value)
        patch.setattr(sys, "stdin", given)
        try:
            code = main(arguments)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
    return Ended(code, out.buffer.getvalue(), err.getvalue())  # type: ignore[attr-defined]  # it is the BytesIO above


def sealab_process(*arguments: str, stdin: str = "", **env: str) -> Ended:
    """Run a command as its user does, in a process of its own, which ends with the test."""
    ended = subprocess.run(
        [*SEALAB, *arguments],
        input=stdin.encode(),
        capture_output=True,
        env=environment(**env),
        check=False,
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr.decode())


def run(home: os.PathLike[str], code: str, *arguments: str, **env: str) -> Ended:
    """Run code by `sealab run`, in this process."""
    return sealab("run", "-", "--home", os.fspath(home), *arguments, stdin=code, **env)
