"""Runs a stored skill's source as a module of its own, in whatever Python the worker runs."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import Refused
from ..guest.guest import GUEST
from ..guest.runtime import Dialect
from ..guest_api import data_helpers, hosted, hosted_tools

Define = Callable[[str, str, str], dict[str, object]]


class SkillRefused(Exception):
    """A skill's source may not run at this isolation."""

    __module__ = "builtins"


def _told(refusal: Refused) -> str:
    """Say what was refused and, after the semicolon, what to do about it."""
    if GUEST.wider:
        return f'{refusal.message}; ask for isolation="{GUEST.wider[0]}", which can run it'
    instead = f"; {refusal.instead}" if refusal.instead else ""
    return f"{refusal.message} (full Python could run it, which is not offered here){instead}"


def definer(dialect: Dialect) -> Define:
    """Return what `GUEST.define` is to be: `(source, filename, name)` in, the module's variables out.

    It raises `SkillRefused` for source that the dialect refuses, and whatever the source raises.
    """

    def define(source: str, filename: str, name: str) -> dict[str, object]:
        try:
            program = dialect.compile(source, filename)
        except Refused as refusal:
            where = "" if refusal.line is None else f" in line {refusal.line}"
            raise SkillRefused(f"{filename} was refused{where}: {_told(refusal)}") from None
        if program.is_async:
            raise SkillRefused(f"{filename} awaits at its top level. Put that into an async function.")
        helpers = {**hosted.helpers(), **data_helpers.helpers(), **hosted_tools.bridge_names(source)}
        return dialect.module(program, name, helpers)

    return define
