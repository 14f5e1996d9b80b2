"""Security boundary: arguments of upstream tools, judged against the tool's own schema before they leave.

The schema comes from outside too. So nothing that it refers to is ever fetched, no pattern of it is run, and judging
ends after `JUDGING_SECONDS`: a regular expression can take for ever, and so can references that branch at every step.
What is not judged here the server checks anyway.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from ...sandbox.errors import HostCallError
from ...sandbox.run import Json
from ...tools_registry.describing.casing import as_published
from ...tools_registry.describing.schemas import parameters_of
from ...tools_registry.models import Tool

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

JUDGING_SECONDS = 2.0
"""How long a schema may take; what it would have said of the arguments after that is left to the server."""

_SHOWN_CHARS_MAX = 80
_LIKELY_MAX = 500
_UNIQUE_ITEMS_MAX = 500
"""Items of a list that are compared with one another, each with all others."""
_ROOT_KEYS_THAT_ADD = frozenset({"patternProperties", "propertyNames", "$dynamicRef"})


def checked(tool: Tool, given: Mapping[str, Json]) -> dict[str, Json]:
    """Return the arguments under the schema's own names. Takes CPU time: call it in a thread.

    Raises `HostCallError` (a ToolError in code), which says which argument is wrong and what it should be.
    """
    arguments = as_published(tool, given)
    _refuse_unknown(tool, arguments)
    error = _first_error(tool, arguments)
    if error is not None:
        raise _refused(f"{_told(tool, error)} {_takes(tool)}")
    return arguments


def _refuse_unknown(tool: Tool, arguments: Mapping[str, Json]) -> None:
    schema = tool.input_schema
    if not isinstance(schema, Mapping) or schema.get("additionalProperties") or _ROOT_KEYS_THAT_ADD & schema.keys():
        return
    known = [each.name for each in parameters_of(tool)]
    if not known and not isinstance(schema.get("properties"), Mapping):
        return
    for name in arguments:
        if name not in known:
            import difflib  # noqa: PLC0415 - only a wrong name needs it

            likely = [each for each in known if len(each) <= _SHOWN_CHARS_MAX][:_LIKELY_MAX]
            near = difflib.get_close_matches(name[:_SHOWN_CHARS_MAX], likely, n=1, cutoff=0.5)
            hint = f"Did you mean {near[0]}?" if near else _takes(tool)
            raise _refused(f"{tool.full_name} takes no argument {_short(name)}. {hint}")


def _first_error(tool: Tool, arguments: Mapping[str, Json]) -> ValidationError | None:
    """Return the error nearest to the root, or None where there is none or the schema cannot be used."""
    validator = _validator_class(_dialect(tool.input_schema))
    _JUDGING.until = time.monotonic() + JUDGING_SECONDS
    from jsonschema import exceptions  # noqa: PLC0415 - as `_validator_class`
    from referencing import Registry  # noqa: PLC0415 - as above

    try:
        errors = validator(tool.input_schema, registry=Registry()).iter_errors(dict(arguments))
        return cast("ValidationError | None", exceptions.best_match(errors))
    except Exception:  # noqa: BLE001 - whatever a broken schema makes of it, the server itself is to judge then
        return None


def _dialect(schema: object) -> str:
    found = schema.get("$schema") if isinstance(schema, Mapping) else None
    return found if isinstance(found, str) else ""


@lru_cache(maxsize=32)
def _validator_class(dialect: str) -> Any:
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415 - it takes long to import

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
    return validators.extend(  # type: ignore[no-untyped-call]  # the library has no types for it
        base, {keyword: _in_time(judge) for keyword, judge in judges.items()}
    )


class _Judging(threading.local):
    """When the judging in this thread is to end."""

    until: float = 0.0


_JUDGING = _Judging()


def _in_time(judge: Callable[..., Any]) -> Callable[..., Iterator[ValidationError]]:
    """Return what judges one keyword as `judge` does, and raises `TimeoutError` once time is up."""

    def judged(*arguments: object) -> Iterator[ValidationError]:
        if time.monotonic() > _JUDGING.until:
            raise TimeoutError
        yield from judge(*arguments) or ()

    return judged


def _told(tool: Tool, error: ValidationError) -> str:
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path).lstrip(".")
    where = f"{place} of {tool.full_name}" if place else tool.full_name
    wanted = cast("Any", error.validator_value)
    match error.validator:
        case "required":
            missing = next((name for name in wanted if name not in cast("Any", error.instance)), "an argument")
            return f"{where} needs {missing}."
        case "type":
            kinds = " or ".join(wanted) if isinstance(wanted, list) else wanted
            return f"{where} is {_short(error.instance)}, which is no {kinds}."
        case "enum":
            return f"{where} is {_short(error.instance)}. Give one of {_short(list(wanted), 400)[1:-1]}."
        case "additionalProperties" if place:
            return f"{where} has a key that it does not take: {error.message}."
        case _:
            return f"{where} does not fit: {_cut(error.message)}."


def _takes(tool: Tool) -> str:
    names = [each.name if each.required else f"{each.name}=…" for each in parameters_of(tool)]
    return f"It takes {', '.join(names)}." if names else "It takes no arguments."


def _short(value: object, chars_max: int = _SHOWN_CHARS_MAX) -> str:
    return _cut(json.dumps(value, ensure_ascii=False, default=str), chars_max)


def _cut(text: str, chars_max: int = 200) -> str:
    return text if len(text) <= chars_max else f"{text[:chars_max]}…"


def _refused(message: str) -> HostCallError:
    return HostCallError(message, type="ToolError")
