"""Lets arguments and fields be written in either spelling, `user_id` or `userId`, where only one can be meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from .models import Tool
from .names import fold
from .schemas import parameters_of

Value = TypeVar("Value")


def as_published(tool: Tool, arguments: Mapping[str, Value]) -> dict[str, Value]:
    """Return the arguments under the names that the tool's schema has for them.

    A name of the schema stays as it is. One that differs from exactly one parameter in case and punctuation alone, or
    is its alias, stands for that parameter, unless that is given too. Anything else stays, for the schema to judge.
    """
    parameters = parameters_of(tool) if arguments else ()
    known = [each.name for each in parameters]
    if all(name in known for name in arguments):
        return dict(arguments)
    alias_of = {each.alias: each.name for each in parameters}
    result: dict[str, Value] = {}
    for name, value in arguments.items():
        own = name if name in known else alias_of.get(name) or other_spelling(name, known)
        taken = own is None or own in result or (own != name and own in arguments)
        result[name if own is None or taken else own] = value
    return result


def other_spelling(name: str, known: Iterable[str]) -> str | None:
    """Return the one known name that differs from `name` in case and punctuation alone, if it is one."""
    wanted = fold(name)
    found = [each for each in known if fold(each) == wanted] if wanted else []
    return found[0] if len(found) == 1 else None
