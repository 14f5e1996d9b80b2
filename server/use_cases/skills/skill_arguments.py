"""Judges the name of a skill before it is stored, and its arguments by its JSON Schema before anything runs."""

from __future__ import annotations

import builtins
import datetime as dt
import keyword
import unicodedata
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING
from uuid import UUID

from ....sandbox.guest_names import given_names
from ....sandbox.job import Json
from ...base.arguments import misfit, unknown_argument
from ...base.errors import ArgumentsRefused, SkillNameRefused

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


NAME_CHARS_MAX = 64
_MODULES = frozenset({"skills", "tools", "mcp", "result"})
_TOOLS = frozenset(
    {"execute_code", "get_run", "run_skill", "delete_skill", "review_skills", "list_tool_categories"}
    | {"add_schedule", "list_schedules", "remove_schedule"}
    | {
        "get_execution_stats",
        "write_workspace_file",
        "read_workspace_file",
        "list_workspace_files",
        "delete_workspace_file",
    }
)
"""The server's tools that are not helpers too: a model would take a skill of such a name for the tool."""


def judge_name(name: str) -> None:
    """Raise `SkillNameRefused` for a name that could not be called, or would hide what code finds under it."""
    advice = "Choose a Python name of its own, such as summarise_log."
    if not name.isidentifier() or not name.isprintable():
        raise SkillNameRefused(f"{name!r:.80} is not a Python identifier. {advice}")
    if len(name) > NAME_CHARS_MAX:
        raise SkillNameRefused(f"The name has {len(name)} characters; {NAME_CHARS_MAX} are allowed. {advice}")
    if unicodedata.normalize("NFKC", name) != name:
        raise SkillNameRefused(f"{name!r} is spelled {unicodedata.normalize('NFKC', name)!r} in Python. Use that.")
    if name.startswith("_"):
        raise SkillNameRefused(f"{name!r} begins with an underscore. {advice}")
    if keyword.iskeyword(name):
        raise SkillNameRefused(f"{name!r} is a keyword of Python. {advice}")
    if hasattr(builtins, name):
        raise SkillNameRefused(f"{name!r} is a builtin of Python. {advice}")
    if name in _TOOLS:
        raise SkillNameRefused(f"{name!r} is the name of a tool of this server. {advice}")
    if name in _given_names() or name in _MODULES or name.startswith("mcp_"):
        raise SkillNameRefused(f"{name!r} is the name of a helper or a module that all code has. {advice}")


@cache
def _given_names() -> frozenset[str]:
    return given_names()
