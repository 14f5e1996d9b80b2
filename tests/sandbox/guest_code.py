"""Runs guest source the way a worker does, in the test's own process."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent

from sealab.sandbox.dialect.compiling import compile_program, run_program
from sealab.sandbox.dialect.namespace import new_namespace
from sealab.sandbox.guest.guest import GUEST


@dataclass(frozen=True)
class Ran:
    value: object
    output: str


def run(source: str) -> Ran:
    """Run `source` in a fresh namespace. Whatever it raises comes through."""
    written: list[str] = []
    before = GUEST.write, GUEST.namespace
    GUEST.write, GUEST.namespace = written.append, new_namespace()
    try:
        value = run_program(compile_program(dedent(source)), GUEST.namespace)
        return Ran(value, "".join(written))
    finally:
        GUEST.write, GUEST.namespace = before
