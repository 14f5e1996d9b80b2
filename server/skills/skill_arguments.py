"""Judges the arguments of a skill by its JSON Schema, before anything runs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING
from uuid import UUID

from ...sandbox.job import Json
from ..arguments import misfit, unknown_argument
from ..errors import ArgumentsRefused

if TYPE_CHECKING:
    from jsonschema import FormatChecker


def judge_arguments(name: str, parameters: Mapping[str, Json], arguments: Mapping[str, Json]) -> None:
    """Raise `ArgumentsRefused`, which names the field, where the arguments do not fit; call it from a thread."""
    properties = parameters.get("properties")
    known = list(properties) if isinstance(properties, Mapping) else []
    takes = f"It takes {', '.join(known)}." if known else "It takes no arguments."
    unknown = next((each for each in arguments if each not in known), None)
    if unknown is not None and parameters.get("additionalProperties") is False:
        raise ArgumentsRefused(unknown_argument(name, unknown, known, takes))
    wrong = misfit(name, parameters, arguments, takes, formats=_formats())
    if wrong:
        raise ArgumentsRefused(wrong)


@cache
def _formats() -> FormatChecker:
    """Return the formats that hints stand for, read as the arguments will be."""
    from jsonschema import FormatChecker

    checker = FormatChecker(formats=())
    for name, read in (
        ("date", dt.date.fromisoformat),
        ("date-time", dt.datetime.fromisoformat),
        ("time", dt.time.fromisoformat),
        ("uuid", UUID),
    ):
        checker.checks(name, ValueError)(partial(_reads, read))
    return checker


def _reads(read: Callable[[str], object], value: object) -> bool:
    if isinstance(value, str):
        read(value)
    return True
