"""Lets arguments and fields be written in either spelling, `user_id` or `userId`, where only one can be meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from ..models import Tool
from ..names import fold
from .schemas import parameters_of

Value = TypeVar("Value")


def as_published(tool: Tool, arguments: Mapping[str, Value]) -> dict[str, Value]:
    """Return the arguments under the names that the tool's schema has for them.

    A name of the schema stays as it is. One that differs from exactly one parameter in case and punctuation alone, or
    is its alias, stands for that parameter, unless that is given too. Anything else stays, for the schema to judge.
    """
    parameters = parameters_of(tool) if arguments else ()
    known = {each.name: None for each in parameters}
    if all(name in known for name in arguments):
        return dict(arguments)
    alias_of = {each.alias: each.name for each in parameters}
    spelled: dict[str, list[str]] = {}
    for each in known:
        spelled.setdefault(fold(each), []).append(each)
    result: dict[str, Value] = {}
    for name, value in arguments.items():
        meant = spelled.get(fold(name), []) if fold(name) else []
        own = name if name in known else alias_of.get(name) or (meant[0] if len(meant) == 1 else None)
        taken = own is None or own in result or (own != name and own in arguments)
        result[name if own is None or taken else own] = value
    return result
