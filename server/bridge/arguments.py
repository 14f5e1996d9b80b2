"""Arguments of upstream tools, judged against the tool's own schema before they leave.

What is not judged here the server checks anyway.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from ...sandbox.errors import HostCallError
from ...sandbox.run import Json
from ...tools_registry.describing.casing import as_published
from ...tools_registry.describing.schemas import parameters_of
from ...tools_registry.models import Tool
from ..arguments import first_error

if TYPE_CHECKING:
    from jsonschema import ValidationError

_SHOWN_CHARS_MAX = 80
_LIKELY_MAX = 500
_ROOT_KEYS_THAT_ADD = frozenset({"patternProperties", "propertyNames", "$dynamicRef"})


def checked(tool: Tool, given: Mapping[str, Json]) -> dict[str, Json]:
    """Return the arguments under the schema's own names. Takes CPU time: call it in a thread.

    Raises `HostCallError` (a ToolError in code), which says which argument is wrong and what it should be.
    """
    arguments = as_published(tool, given)
    _refuse_unknown(tool, arguments)
    error = first_error(tool.input_schema, arguments)
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
