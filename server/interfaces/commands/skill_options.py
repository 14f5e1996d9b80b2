"""The parameters of a skill as options of a command line: types, defaults, choices and help are those of its schema."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from ....sandbox.job import Json
from ...base.errors import UsageError
from .command import Parser

if TYPE_CHECKING:
    from ....skills_db.content import SkillDraft

_SIMPLE = frozenset({"integer", "number", "string", "boolean"})
_IN_WORDS = {"integer": "a whole number", "number": "a number", "boolean": "true or false"}


def arguments_of(draft: SkillDraft, words: Sequence[str]) -> dict[str, Json]:
    """Read the words of a command line as the arguments of a skill; `--help` among them prints help and exits.

    A value `-` is read from stdin, as JSON where the parameter is not a string; `--arguments` gives several at once.
    """
    parser = _parser(draft)
    chosen = vars(parser.parse_args(list(words)))
    taken: list[str] = []

    def from_stdin(name: str) -> str:
        taken.append(name)
        if len(taken) > 1:
            raise UsageError(f"Both --{taken[0]} and --{name} are to be read from stdin. Give one of them in full.")
        return sys.stdin.buffer.read().decode("utf-8-sig", "replace")

    whole = chosen.pop("--arguments", None)
    given: dict[str, Json] = {}
    if whole is not None:
        found = _json("arguments", from_stdin("arguments") if whole == "-" else whole)
        if not isinstance(found, dict):
            raise UsageError('--arguments is not a JSON object. Give one, such as \'{"text": "x"}\'.')
        given |= found
    properties = cast("Mapping[str, Mapping[str, Json]]", draft.parameters.get("properties", {}))
    for name, value in chosen.items():
        if isinstance(value, str) and name in properties:
            text = from_stdin(name) if value == "-" else value
            given[name] = _value(name, properties[name], text)
        elif name in properties:
            given[name] = value
    for pair in chosen.get("--set") or ():
        name, equals, text = str(pair).partition("=")
        if not equals:
            raise UsageError(f"--set {pair} is not a pair. Write --set NAME=VALUE.")
        given[name] = _json_or_text(text)
    return given


def _parser(draft: SkillDraft) -> argparse.ArgumentParser:
    properties = cast("Mapping[str, Mapping[str, Json]]", draft.parameters.get("properties", {}))
    parser = Parser(
        prog=f"sealab skills run {draft.name}",
        usage=f"sealab skills run {draft.name} [options] [--PARAMETER VALUE ...]",
        description=f"{draft.signature}\n\n{draft.description}".strip(),
        epilog="Lists and objects are given as JSON, or as - to read them from stdin. "
        "Also: --json --timeout S --memory MB --isolation … --home DIR, as of `sealab run`.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    group = parser.add_argument_group("parameters")
    for name, schema in properties.items():
        flags = list(dict.fromkeys((f"--{name.replace('_', '-')}", f"--{name}")))
        help_text = _help(schema, required=name in cast("Sequence[str]", draft.parameters.get("required", ())))
        if schema.get("type") == "boolean":
            group.add_argument(*flags, dest=name, help=help_text, action=argparse.BooleanOptionalAction)
        else:
            group.add_argument(*flags, dest=name, help=help_text, metavar=_metavar(schema))
    group.add_argument("--arguments", dest="--arguments", metavar="JSON", help="all of them as one JSON object, or -")
    if draft.parameters.get("additionalProperties"):
        group.add_argument(
            "--set", dest="--set", action="append", metavar="NAME=VALUE", help="one more argument, beyond those above"
        )
    return parser


def _help(schema: Mapping[str, Json], *, required: bool) -> str:
    parts = [str(schema["description"])] if "description" in schema else []
    if required:
        parts.append("(required)")
    elif "default" in schema:
        parts.append(f"(default: {json.dumps(schema['default'], ensure_ascii=False)})")
    return " ".join(parts).replace("%", "%%")


def _metavar(schema: Mapping[str, Json]) -> str:
    choices = schema.get("enum")
    if isinstance(choices, Sequence) and not isinstance(choices, str):
        return "{" + ",".join(_bare(choice) for choice in choices).replace("%", "%%") + "}"
    kinds = _kinds(schema)
    return "|".join(kinds).upper() if kinds and set(kinds) <= _SIMPLE else "JSON"


def _kinds(schema: Mapping[str, Json]) -> list[str]:
    kind = schema.get("type", [])
    return [name for name in ([kind] if isinstance(kind, str) else cast("list[str]", kind)) if name != "null"]


def _value(name: str, schema: Mapping[str, Json], text: str) -> Json:
    choices = schema.get("enum")
    if isinstance(choices, Sequence) and not isinstance(choices, str):
        for choice in choices:
            if _bare(choice) == text:
                return choice
        raise UsageError(f"--{name} cannot be {text!r}. Choose from {', '.join(map(_bare, choices))}.")
    kinds = _kinds(schema)
    if not kinds and isinstance(schema.get("default"), str):
        return text  # no hint says so, but its default is a text
    if kinds == ["string"]:
        return None if text == "null" and "null" in cast("str | list[str]", schema["type"]) else text
    if kinds and "string" not in kinds:
        return _json(name, text, kinds)
    return _json_or_text(text)


def _json_or_text(text: str) -> Json:
    try:
        return cast("Json", json.loads(text))
    except (ValueError, RecursionError):
        return text


def _json(name: str, text: str, kinds: Sequence[str] = ()) -> Json:
    try:
        return cast("Json", json.loads(text))
    except (ValueError, RecursionError):
        simple = " or ".join(_IN_WORDS[kind] for kind in kinds if kind in _IN_WORDS)
        takes = f"takes {simple}." if simple and set(kinds) <= _SIMPLE else "takes JSON. Quote it for the shell."
        raise UsageError(f"--{name} cannot be {text[:80]!r}: it {takes}") from None


def _bare(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value)
