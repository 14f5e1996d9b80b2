"""Security boundary: arguments, judged against a JSON Schema that comes from outside.

So nothing that it refers to is ever fetched, no pattern of it is run, and judging ends after `JUDGING_SECONDS`: a
regular expression can take exponential time, and so can references that branch at every step. What is not judged here
is left to what takes the arguments.

Every message about arguments is made here: one sentence says what was wrong, one says what to give.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from ..sandbox.job import Json
from ..tools_registry.schema_checks import end_of, endable, path_text
from .terminal_escaping import visible

if TYPE_CHECKING:
    from jsonschema import FormatChecker, ValidationError
    from jsonschema.protocols import Validator

JUDGING_SECONDS = 2.0
"""How long a schema may take; what it would have said of the arguments after that is left to what takes them."""

_SHOWN_CHARS_MAX = 80
_LIST_CHARS_MAX = 400
_LIKELY_MAX = 500
_ERRORS_MAX = 50
"""Errors of which the best is told: a list of 200,000 wrong items would give one for each."""
_UNIQUE_ITEMS_MAX = 500
"""Items of a list that are compared with one another, each with all others."""
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

    `takes` says which arguments there are; of the schema's formats those in `formats` are checked. With
    `others_unknown` there may be further arguments, so only what is wrong with a value by itself is said.
    """
    error = _first_error(schema, arguments, formats, others_unknown=others_unknown)
    return None if error is None else _message(taker, error, takes)


def unknown_argument(taker: str, name: str, known: Collection[str], takes: str) -> str:
    """Return what to say of an argument that is not taken: the nearest name, else what is taken."""
    import difflib

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
            return wrong_argument(
                taker, path, instance, f". Give {' or '.join(_KINDS.get(each, str(each)) for each in kinds)}."
            )
        case "enum":
            return wrong_argument(taker, path, instance, f". Give one of {shown(list(wanted), _LIST_CHARS_MAX)[1:-1]}.")
        case "const":
            return wrong_argument(taker, path, instance, f". Give {shown(wanted, _LIST_CHARS_MAX)}.")
        case _:
            return wrong_argument(
                taker,
                path,
                instance,
                f": {_reason(error)}. {f'Its schema is {shown(schema, _LIST_CHARS_MAX)}.' if path else takes}",
            )


def _reason(error: ValidationError) -> str:
    """Return the library's message with the value, which it begins with, as "it"."""
    told = visible(error.message)
    value = visible(repr(error.instance))
    told = f"it{told.removeprefix(value)}" if told.startswith(f"{value} ") else told
    return end_of(told, 2 * _SHOWN_CHARS_MAX)


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}…"


def _first_error(
    schema: object, arguments: Mapping[str, Json], formats: FormatChecker | None, *, others_unknown: bool
) -> ValidationError | None:
    """Return the error nearest to the root, or None where there is none or the schema cannot be used."""
    validator = _validator_class(_dialect(schema))
    _JUDGING.until = time.monotonic() + JUDGING_SECONDS
    from jsonschema import exceptions
    from referencing import Registry

    try:
        errors = validator(schema, registry=Registry(), format_checker=formats).iter_errors(dict(arguments))
        if others_unknown:
            errors = (each for each in errors if each.absolute_path and each.absolute_schema_path[0] == "properties")
        return cast("ValidationError | None", exceptions.best_match(islice(errors, _ERRORS_MAX)))
    except Exception:  # noqa: BLE001 - whatever a broken schema makes of it, the server itself is to judge then
        return None


def _dialect(schema: object) -> str:
    found = schema.get("$schema") if isinstance(schema, Mapping) else None
    return found if isinstance(found, str) else ""


@lru_cache(maxsize=32)
def _validator_class(dialect: str) -> Any:
    from jsonschema import Draft202012Validator, validators

    base = validators.validator_for({"$schema": dialect} if dialect else {}, default=Draft202012Validator)
    additional = base.VALIDATORS["additionalProperties"]

    def unless_patterns(validator: Validator, value: object, instance: object, schema: Mapping[str, object]) -> object:
        return () if "patternProperties" in schema else additional(validator, value, instance, schema)

    def not_judged(*_arguments: object) -> Iterator[ValidationError]:
        return iter(())

    unique = base.VALIDATORS.get("uniqueItems", not_judged)

    def unique_if_few(validator: Validator, value: object, instance: object, schema: Mapping[str, object]) -> object:
        many = isinstance(instance, list) and len(instance) > _UNIQUE_ITEMS_MAX
        return () if many else unique(validator, value, instance, schema)

    # `unevaluatedProperties` runs the patterns of all that a schema is made of.
    unjudged = ("pattern", "patternProperties", "unevaluatedProperties", "unevaluatedItems")
    judges = {
        **base.VALIDATORS,
        "additionalProperties": unless_patterns,
        "uniqueItems": unique_if_few,
        **dict.fromkeys(unjudged, not_judged),
    }
    return endable(base, judges, lambda: time.monotonic() > _JUDGING.until)


class _Judging(threading.local):
    """When the judging in this thread is to end."""

    until: float = 0.0


_JUDGING = _Judging()
