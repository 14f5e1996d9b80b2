"""Judges the arguments of a skill by its JSON Schema, before anything runs."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING
from uuid import UUID

from ...sandbox.run import Json
from ..errors import ArgumentsRefused

if TYPE_CHECKING:
    from jsonschema import FormatChecker

_SHOWN_CHARS_MAX = 80


def judge_arguments(name: str, parameters: Mapping[str, Json], arguments: Mapping[str, Json]) -> None:
    """Raise `ArgumentsRefused`, which names the field, where the arguments do not fit; call it from a thread."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - takes a tenth of a second to import
    from jsonschema.exceptions import best_match  # noqa: PLC0415 - as above

    validator = Draft202012Validator(parameters, format_checker=_formats())
    error = best_match(validator.iter_errors(arguments))
    if error is None:
        return
    properties = parameters.get("properties")
    takes = ", ".join(properties) if isinstance(properties, Mapping) and properties else "none"
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path).lstrip(".")
    if error.validator == "required" and isinstance(error.instance, dict):
        missing = next(each for each in error.validator_value if each not in error.instance)
        field = f"{path}.{missing}" if path else missing
        raise ArgumentsRefused(f"{name} needs the argument {field}. It takes {takes}.")
    if error.validator == "additionalProperties" and isinstance(error.instance, dict) and not path:
        unknown = next(each for each in error.instance if each not in (properties or ()))  # type: ignore[operator]  # a mapping
        raise ArgumentsRefused(f"{name} takes no argument {unknown}. It takes {takes}.")
    wanted = error.schema if path else parameters
    shown = json.dumps(wanted, ensure_ascii=False)
    raise ArgumentsRefused(
        f"The argument {path or 'list'} of {name} cannot be {_shown(error.instance)}: {_reason(error.message)}. "
        f"Its schema is {shown if len(shown) <= 4 * _SHOWN_CHARS_MAX else shown[: 4 * _SHOWN_CHARS_MAX] + '…'}."
    )


@cache
def _formats() -> FormatChecker:
    """Return the formats that hints stand for, read as the arguments will be."""
    from jsonschema import FormatChecker  # noqa: PLC0415 - as above

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


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}…"


def _reason(message: str) -> str:
    return message if len(message) <= 2 * _SHOWN_CHARS_MAX else f"…{message[-2 * _SHOWN_CHARS_MAX :]}"
