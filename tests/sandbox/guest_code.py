"""Runs guest source the way a worker does, in the test's own process."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent

from sealab.sandbox.dialect.compiling import compile_program, run_program
from sealab.sandbox.dialect.facades import streams
from sealab.sandbox.dialect.namespace import new_namespace
from sealab.sandbox.guest.guest import GUEST


@dataclass(frozen=True)
class Ran:
    value: object
    output: str
    stderr: str = ""


def run(source: str) -> Ran:
    """Run `source` in a fresh namespace. Whatever it raises comes through."""
    written: list[str] = []
    errors: list[str] = []
    before = GUEST.output, GUEST.error_output, GUEST.write, GUEST.write_error, GUEST.namespace
    GUEST.output = GUEST.write = written.append
    GUEST.error_output = GUEST.write_error = errors.append
    GUEST.namespace = new_namespace()
    try:
        value = run_program(compile_program(dedent(source)), GUEST.namespace)
        return Ran(value, "".join(written), "".join(errors))
    finally:
        streams.restore()
        GUEST.output, GUEST.error_output, GUEST.write, GUEST.write_error, GUEST.namespace = before


def value_of(source: str, namespace: dict[str, object] | None = None) -> object:
    """Return what `source` gives, in a fresh namespace unless there is one. What it writes goes where it did."""
    GUEST.namespace = new_namespace() if namespace is None else namespace
    return run_program(compile_program(dedent(source)), GUEST.namespace)
