"""Arguments of upstream tools, judged against the tool's own schema before they leave.

What is not judged here the server checks anyway.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from ....sandbox.errors import HostCallError
from ....sandbox.job import Json
from ....tools_registry.describing.casing import as_published
from ....tools_registry.describing.schemas import parameters_of
from ....tools_registry.describing.shapes import (
    ANY,
    FLOAT,
    INT,
    AnyOf,
    Choice,
    ListOf,
    MapOf,
    ObjectShape,
    Plain,
    Shape,
    union,
)
from ....tools_registry.models import Tool
from ...base.arguments import exact_formats, misfit, missing_argument, unknown_argument
from ...base.host_work import checked as with_checkpoints
from ...privacy.token_texts import mentions_in

MISFITS_NAMED_MAX: Final = 20
"""Unknown arguments of one call that are named, missing ones, and values that are judged alone."""

_NAMES_SHOWN = 50
_NAME_CHARS_SHOWN = 100
_ROOT_KEYS_THAT_ADD = frozenset({"patternProperties", "propertyNames", "$dynamicRef"})


def checked(tool: Tool, given: Mapping[str, Json]) -> dict[str, Json]:
    """Return the arguments under the schema's own names, with 5 for 5.0 where it asks for integers.

    Takes CPU time: call it in a thread.

    Raises `HostCallError` (a ToolError in code), which says which argument is wrong and what it should be.
    """
    arguments = as_published(tool, given)
    wrong = _unknown(tool, arguments) or misfit(tool.full_name, tool.input_schema, arguments, _takes(tool))
    if wrong:
        raise HostCallError(wrong, type="ToolError")
    return _sent(tool, arguments)


def as_sent(tool: Tool, given: Mapping[str, Json]) -> dict[str, Json]:
    """Return arguments as `checked` does, whether or not they fit. Takes CPU time: call it in a thread."""
    return _sent(tool, as_published(tool, given))


def _sent(tool: Tool, arguments: Mapping[str, Json]) -> dict[str, Json]:
    shapes = {each.name: each.shape for each in parameters_of(tool)}
    return {name: _with_integers(shapes.get(name, ANY), value) for name, value in arguments.items()}


def _with_integers(shape: Shape, value: Json) -> Json:
    """Return a value with integers where these are asked for: 5.0 is one by JSON Schema, and not to many services."""
    alternatives = shape.shapes if isinstance(shape, AnyOf) else (shape,)
    if isinstance(value, float):
        kinds = {pair[0] for each in alternatives if isinstance(each, Choice) for pair in each.values}
        wants = (INT in alternatives or "int" in kinds) and FLOAT not in alternatives
        return int(value) if wants and value.is_integer() else value
    if isinstance(value, list):
        item = union(each.item for each in alternatives if isinstance(each, ListOf))
        return value if _holds_none(item) else [_with_integers(item, each) for each in with_checkpoints(value)]
    if not isinstance(value, dict):
        return value
    others = [each.value for each in alternatives if isinstance(each, MapOf)]
    named: dict[str, list[Shape]] = {}
    for field in (field for each in alternatives if isinstance(each, ObjectShape) for field in each.fields):
        named.setdefault(field.name, []).append(field.shape)
    if not named and _holds_none(union(others)):
        return value
    return {
        name: _with_integers(union([*named.get(name, ()), *others]), each)
        for name, each in with_checkpoints(value.items())
    }


def _holds_none(shape: Shape) -> bool:
    """Return whether a value of a shape has no place for an integer."""
    return isinstance(shape, Plain) and shape != INT


_BINARY: Final = frozenset({("contentEncoding", "base64"), ("format", "byte"), ("format", "binary")})


def takes_bytes(tool: Tool, place: str) -> bool:
    """Return whether the argument at a place, such as `files[0].data`, may hold bytes in base64, by its schema."""
    name = re.split(r"[.\[]", place, maxsplit=1)[0]
    waiting: list[object] = [each.schema for each in parameters_of(tool) if name in {each.name, each.alias}]
    waiting += (
        [tool.input_schema.get("$defs")] if "$ref" in str(waiting) and isinstance(tool.input_schema, Mapping) else []
    )
    while waiting:
        each = waiting.pop()
        if isinstance(each, Mapping):
            if any(each.get(key) == value for key, value in _BINARY):
                return True
            waiting += with_checkpoints(each.values())
        elif isinstance(each, list):
            waiting += each
    return False


def why_refused_by_format(tool: Tool, arguments: Mapping[str, Json]) -> str:
    """Return which argument has not the format that the schema names, as what follows a server's refusal; or nothing.

    Formats refuse nothing by themselves, since many services take more. Call it in a thread.
    """
    wrong = misfit(tool.full_name, tool.input_schema, arguments, _takes(tool), formats=exact_formats())
    return f" {wrong}" if wrong else ""


def misfits_as_written(tool: Tool, given: Mapping[str, Json], others: Collection[str], *, more: bool) -> list[str]:
    """Return why a call would be refused, as far as its source says. Takes CPU time: call it in a thread.

    The values of `given` stand in the source, those of `others` do not; with `more` there may be further arguments.
    Texts with a token in them are not judged, since the call may have a value in its place. Of much that is wrong the
    first is named, see `MISFITS_NAMED_MAX`.
    """
    written = as_published(tool, {name: name for name in (*given, *others)})
    values = {name: given[own] for name, own in written.items() if own in given and not _has_token(given[own])}
    takes, schema = _takes(tool), tool.input_schema
    unknown = with_checkpoints(islice(_all_unknown(tool, written), MISFITS_NAMED_MAX), every=1)
    wrong = [unknown_argument(tool.full_name, each, known, takes) for each, known in unknown]
    if not more and not wrong:
        missing = islice((each for each in _required(tool) if each not in written), MISFITS_NAMED_MAX)
        wrong += [missing_argument(tool.full_name, each, takes) for each in missing]
    whole = not more and len(values) == len(written)
    first = misfit(tool.full_name, schema, values, takes, others_unknown=not whole)
    if first is not None:
        few = with_checkpoints(islice(values, MISFITS_NAMED_MAX), every=1)
        alone = (misfit(tool.full_name, schema, {each: values[each]}, takes, others_unknown=True) for each in few)
        wrong += list(filter(None, alone)) or ([] if wrong else [first])
    return wrong


def _unknown(tool: Tool, arguments: Mapping[str, Json]) -> str | None:
    unknown = next(_all_unknown(tool, arguments), None)
    return None if unknown is None else unknown_argument(tool.full_name, *unknown, _takes(tool))


def _all_unknown(tool: Tool, arguments: Iterable[str]) -> Iterator[tuple[str, Collection[str]]]:
    schema = tool.input_schema
    if not isinstance(schema, Mapping) or schema.get("additionalProperties") or _ROOT_KEYS_THAT_ADD & schema.keys():
        return
    known = dict.fromkeys(each.name for each in parameters_of(tool))
    if known or isinstance(schema.get("properties"), Mapping):
        yield from ((name, known) for name in with_checkpoints(arguments) if name not in known)


def _required(tool: Tool) -> list[str]:
    required = tool.input_schema.get("required") if isinstance(tool.input_schema, Mapping) else None
    return [each for each in required if isinstance(each, str)] if isinstance(required, list | tuple) else []


def _has_token(value: Json) -> bool:
    if isinstance(value, str):
        return bool(mentions_in(value))
    if isinstance(value, dict):
        return any(_has_token(each) for pair in with_checkpoints(value.items()) for each in pair)
    return isinstance(value, list) and any(map(_has_token, with_checkpoints(value)))


def _takes(tool: Tool) -> str:
    return _it_takes((each.name, each.required) for each in parameters_of(tool))


def _it_takes(parameters: Iterable[tuple[str, bool]]) -> str:
    """Return which arguments there are, given the name of each and whether it is required."""
    names = [name if required else f"{name}=…" for name, required in parameters]
    return f"It takes {_few(names)}." if names else "It takes no arguments."


def _few(names: Sequence[str]) -> str:
    shown = [each[:_NAME_CHARS_SHOWN] for each in names[:_NAMES_SHOWN]]
    return ", ".join(shown if len(names) <= _NAMES_SHOWN else [*shown, f"… {len(names) - _NAMES_SHOWN} more"])


def names_by_position(tool: Tool) -> list[str]:
    """Return the parameters that a call may pass by position: the required ones, or the only one that there is.

    Of the others a schema says no order that holds: a server may publish them in another one tomorrow.
    """
    parameters = parameters_of(tool)
    return [each.name for each in parameters if each.required or len(parameters) == 1]


def named(tool: Tool, call: str, positional: Sequence[Json], given: Mapping[str, Json]) -> dict[str, Json]:
    """Return all arguments of a call by their names, those by position too. Takes CPU time: call it in a thread.

    Raises `HostCallError` (a TypeError in code) where there are too many, or one is given twice.
    """
    names = names_by_position(tool)
    if len(positional) > len(names):
        raise HostCallError(too_many_by_position(tool, call), type="TypeError")
    by_position = dict(zip(names, positional, strict=False))
    by_name = as_published(tool, given)
    twice = next((each for each in by_position if each in by_name), None)
    if twice is not None:
        raise HostCallError(f"{call}() got {twice} by position and by name. Pass it once.", type="TypeError")
    return {**by_position, **by_name}


def too_many_by_position(tool: Tool, call: str) -> str:
    """Return what to say of a call that passes more by position than has one meaning."""
    takes = _it_takes((each.alias, each.required) for each in parameters_of(tool))
    few = _few(names_by_position(tool))
    return f"{call}() takes {f'only {few}' if few else 'no argument'} by position. Pass the others by name. {takes}"
