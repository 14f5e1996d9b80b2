"""Security boundary: arguments, judged against a JSON Schema that comes from outside.

Judging is bounded, see `schema_checks`, and ends after `JUDGING_SECONDS`. What is not judged here is left to what takes
the arguments.

Every message about arguments is made here: one sentence says what was wrong, one says what to give.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, time
from functools import cache, partial
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from ...sandbox.job import Json
from ...tools_registry.schema_checks import best_error, end_of, ending_after, path_text
from .errors import HostWorkRefused
from .host_work import checkpoint
from .terminal_escaping import visible

if TYPE_CHECKING:
    from jsonschema import FormatChecker, ValidationError

JUDGING_SECONDS = 2.0
"""How long a schema may take; what it would have said of the arguments after that is left to what takes them."""

_SHOWN_CHARS_MAX = 80
_LIST_CHARS_MAX = 400
_LIKELY_MAX = 500
_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "string": "a string",
        "integer": "an integer",
        "number": "a number",
        "boolean": "true or false",
        "array": "a list",
        "object": "an object",
    }
)


def misfit(
    taker: str,
    schema: object,
    arguments: Mapping[str, Json],
    takes: str,
    *,
    formats: FormatChecker | None = None,
    others_unknown: bool = False,
) -> str | None:
    """Return what is wrong with arguments of `taker`, or None where they fit. Takes CPU time: call it in a thread.

    Ends with the run that it is done for, with `HostWorkRefused`.

    `takes` says which arguments there are; of the schema's formats those in `formats` are checked. With
    `others_unknown` there may be further arguments, so only what is wrong with a value by itself is said.
    """
    error = _first_error(schema, arguments, formats, others_unknown=others_unknown)
    return None if error is None else _message(taker, error, takes)


_CLIENTS_OWN = re.compile(
    r"_.*|(tool|function)?(call|use|invocation)id|(agent|chat|conversation|correlation|interaction|message|request|span"
    r"|step|task|thread|trace|turn|user)id|dummy|meta|progresstoken|randomstring|traceparent|tracestate"
    r"|security(context|risk)|taskprogress|waitforprevious(tools)?"
)
"""Names that clients give their own data in the arguments of a call, in lower case and without `-` and `_`."""
_BESIDE_THESE = frozenset({"action", "chatinput", "sessionid"})
"""Those that are meant so only where another shows that it is a client's (of n8n)."""


def ignored_arguments(given: Collection[str], known: Collection[str]) -> list[str]:
    """Return the names of arguments that a tool does not know, and that clients inject about themselves."""
    plain = {name: re.sub("(?<=.)[-_]", "", name).lower() for name in given if name not in known}
    own = [name for name, each in plain.items() if len(name) <= _SHOWN_CHARS_MAX and _CLIENTS_OWN.fullmatch(each)]
    return own + [name for name, each in plain.items() if own and each in _BESIDE_THESE]


_SCALAR = re.compile(r"[+-]?([0-9]{1,18})(\.0*)?|[+-]?[0-9]{0,18}\.?[0-9]{1,18}([eE][+-]?[0-9]{1,3})?")
_WORDS: Mapping[str, bool | None] = MappingProxyType({"true": True, "false": False, "null": None, "none": None})


def meant(value: object, schema: object) -> object:
    """Return what a value in another form means where the schema of an argument leaves no doubt; else the value itself.

    So 5.0 is an integer, and a text that says a number, true or false is that. What may be a text stays one.
    """
    said = schema.get("type") if isinstance(schema, Mapping) else None
    types = [said] if isinstance(said, str) else said if isinstance(said, list) else []
    made = value
    if isinstance(value, str) and "string" not in types:
        text = value.strip()
        if _SCALAR.fullmatch(text):
            made = float(text) if set(text) & set(".eE") else int(text)
        else:
            made = _WORDS.get(text.lower(), value)
    if isinstance(made, float) and "integer" in types and "number" not in types and made.is_integer():
        made = int(made)
    kinds = tuple(kind for name in types for kind in _PYTHON.get(name, ()))
    return made if type(made) in kinds else value


_PYTHON: Mapping[str, tuple[type, ...]] = MappingProxyType(
    {"integer": (int,), "number": (int, float), "boolean": (bool,), "null": (type(None),)}
)


def unknown_argument(taker: str, name: str, known: Collection[str], takes: str) -> str:
    """Return what to say of an argument that is not taken: the nearest name, else what is taken."""
    likely = [each for each in known if each != name and len(each) <= _SHOWN_CHARS_MAX][:_LIKELY_MAX]
    near = difflib.get_close_matches(name[:_SHOWN_CHARS_MAX], likely, n=1, cutoff=0.5)
    return f"{taker} takes no argument {shown(name)}. {f'Did you mean {near[0]}?' if near else takes}"


def missing_argument(taker: str, name: str, takes: str) -> str:
    """Return what to say of an argument that is needed and was not given."""
    return f"{taker} needs the argument {name}. {takes}"


def wrong_argument(taker: str, name: str, value: object, wanted: str) -> str:
    """Return what to say of an argument's value; `wanted` follows "cannot be <value>"."""
    which = f"argument {name}" if name else "arguments"
    return f"The {which} of {taker} cannot be {shown(value)}{wanted}"


def shown(value: object, chars_max: int = _SHOWN_CHARS_MAX) -> str:
    """Return a value as a message may show it: as JSON, visible, and no longer than `chars_max`."""
    text = ""
    if isinstance(value, str):
        value = value[: chars_max + 1]
    for part in json.JSONEncoder(ensure_ascii=False, default=repr).iterencode(value):
        text += part[: chars_max + 1]
        if len(text) > chars_max:
            return f"{visible(text[:chars_max])}…"
    return visible(text)


def _message(taker: str, error: ValidationError, takes: str) -> str:
    path = _cut(visible(path_text(error.absolute_path)))
    instance, wanted, schema = cast("Any", error.instance), cast("Any", error.validator_value), error.schema
    match error.validator:
        case "required" if isinstance(instance, dict) and isinstance(wanted, list):
            missing = next(str(name) for name in wanted if name not in instance)
            return missing_argument(taker, f"{path}.{missing}" if path else missing, takes)
        case "required":  # of draft 3, where a property says so itself
            return missing_argument(taker, path, takes)
        case "additionalProperties" if isinstance(instance, dict) and wanted is False:
            known = cast("Mapping[str, object]", schema).get("properties")
            known = known if isinstance(known, dict) else {}
            name = next(each for each in instance if each not in known)
            if not path:
                return unknown_argument(taker, name, known, takes)
            only = f"Give only {shown(list(known), _LIST_CHARS_MAX)[1:-1]}." if known else "Give an empty object."
            return wrong_argument(taker, path, instance, f": it takes no key {shown(name)}. {only}")
        case "type":
            kinds = [wanted] if isinstance(wanted, str) else wanted
            form = next((form for each in kinds if (form := _as_kind(each, instance)) is not None), None)
            kinds = " or ".join(_KINDS.get(each, str(each)) for each in kinds)
            return wrong_argument(taker, path, instance, f". Give {kinds}.{_meant(form)}")
        case "enum":
            near = next((each for each in wanted if _folded(each) == _folded(instance)), None)
            listed = shown(list(wanted), _LIST_CHARS_MAX)[1:-1]
            return wrong_argument(taker, path, instance, f". Give one of {listed}.{_meant(near)}")
        case "format" if wanted in _EXAMPLES:
            form = as_format(wanted, instance)
            meant = _meant(form) or f" Give one such as {_EXAMPLES[wanted]}."
            return wrong_argument(taker, path, instance, f": it is not a {wanted}.{meant}")
        case "const":
            return wrong_argument(taker, path, instance, f". Give {shown(wanted, _LIST_CHARS_MAX)}.")
        case _:
            return wrong_argument(
                taker,
                path,
                instance,
                f": {_reason(error)}. {f'Its schema is {shown(schema, _LIST_CHARS_MAX)}.' if path else takes}",
            )


def _meant(form: object | None) -> str:
    return "" if form is None else f" Did you mean {shown(form)}?"


def _as_kind(kind: str, value: object) -> object | None:
    """Return the value of a JSON type that was plainly meant by one of another type; None where that is not plain."""
    if not isinstance(value, str):
        if kind == "array" and not isinstance(value, dict) and value is not None:
            return [value]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return json.dumps(value) if kind == "string" and is_number else None
    if len(value) > _SHOWN_CHARS_MAX:
        return None
    try:
        meant = json.loads(value.strip().lower() if kind == "boolean" else value)
    except (ValueError, RecursionError):
        return [value] if kind == "array" else None
    if isinstance(meant, float) and kind == "integer" and meant.is_integer():
        meant = int(meant)
    kinds = {bool: "boolean", int: "integer", list: "array", dict: "object"}
    own = kinds.get(type(meant), "number" if isinstance(meant, float) and isfinite(meant) else "")
    return meant if own == kind or (own == "integer" and kind == "number") else None


def _folded(value: object) -> str:
    return shown(value).strip('"').casefold()


_EXAMPLES: Mapping[str, str] = MappingProxyType(
    {
        "date": "2026-01-31",
        "date-time": "2026-01-31T10:00:00Z",
        "time": "10:00:00Z",
        "uuid": "123e4567-e89b-12d3-a456-426614174000",
    }
)


def as_format(name: str, value: object) -> str | None:
    """Return a text as a format of JSON Schema has it (RFC 3339, RFC 9562); None where it is not plain what was meant.

    A time without a zone is taken for UTC.
    """
    try:
        text = str(value).strip()
        match name:
            case "date":
                return datetime.fromisoformat(text.replace("/", "-")).date().isoformat()
            case "date-time":
                return _zoned(datetime.fromisoformat(text.replace("/", "-")))
            case "time":
                return _zoned(time.fromisoformat(text))
            case "uuid":
                return str(UUID(text))
    except ValueError:
        pass
    return None


def _zoned(moment: datetime | time) -> str:
    return (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment).isoformat().replace("+00:00", "Z")


@cache
def exact_formats() -> FormatChecker:
    """Return the formats that services are strict about, as their specifications have them."""
    from jsonschema import FormatChecker

    checker = FormatChecker(formats=())
    for name, pattern in _EXACT.items():
        checker.checks(name)(partial(_fits, pattern))
    return checker


_TIME = r"\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)"
_EXACT: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "date": re.compile(r"\d{4}-\d\d-\d\d", re.ASCII),
        "date-time": re.compile(rf"\d{{4}}-\d\d-\d\d[Tt]{_TIME}", re.ASCII),
        "time": re.compile(_TIME, re.ASCII),
        "uuid": re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"),
    }
)


def _fits(pattern: re.Pattern[str], value: object) -> bool:
    return not isinstance(value, str) or pattern.fullmatch(value) is not None


def _reason(error: ValidationError) -> str:
    """Return the library's message with the value, which it begins with, as "it"."""
    message = visible(error.message)
    value = visible(repr(error.instance))
    message = f"it{message.removeprefix(value)}" if message.startswith(f"{value} ") else message
    return end_of(message, 2 * _SHOWN_CHARS_MAX)


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}…"


def _first_error(
    schema: object, arguments: Mapping[str, Json], formats: FormatChecker | None, *, others_unknown: bool
) -> ValidationError | None:
    """Return the error nearest to the root, or None where there is none or the schema cannot be used."""
    until = ending_after(JUDGING_SECONDS, checkpoint)
    try:
        if others_unknown:
            return best_error(schema, dict(arguments), until, formats=formats, counts=_is_of_a_value)
        return best_error(schema, dict(arguments), until, formats=formats)
    except HostWorkRefused:
        raise
    except Exception:  # noqa: BLE001 - whatever a broken schema makes of it, the server itself is to judge then
        return None


def _is_of_a_value(error: ValidationError) -> bool:
    return bool(error.absolute_path) and error.absolute_schema_path[0] == "properties"
