"""Arguments of upstream tools, judged against the tool's own schema before they leave.

What is not judged here the server checks anyway.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...sandbox.errors import HostCallError
from ...sandbox.job import Json
from ...tools_registry.describing.casing import as_published
from ...tools_registry.describing.schemas import parameters_of
from ...tools_registry.models import Tool
from ..arguments import misfit, unknown_argument

_ROOT_KEYS_THAT_ADD = frozenset({"patternProperties", "propertyNames", "$dynamicRef"})


def checked(tool: Tool, given: Mapping[str, Json]) -> dict[str, Json]:
    """Return the arguments under the schema's own names. Takes CPU time: call it in a thread.

    Raises `HostCallError` (a ToolError in code), which says which argument is wrong and what it should be.
    """
    arguments = as_published(tool, given)
    wrong = _unknown(tool, arguments) or misfit(tool.full_name, tool.input_schema, arguments, _takes(tool))
    if wrong:
        raise HostCallError(wrong, type="ToolError")
    return arguments


def _unknown(tool: Tool, arguments: Mapping[str, Json]) -> str | None:
    schema = tool.input_schema
    if not isinstance(schema, Mapping) or schema.get("additionalProperties") or _ROOT_KEYS_THAT_ADD & schema.keys():
        return None
    known = [each.name for each in parameters_of(tool)]
    if not known and not isinstance(schema.get("properties"), Mapping):
        return None
    unknown = next((name for name in arguments if name not in known), None)
    return None if unknown is None else unknown_argument(tool.full_name, unknown, known, _takes(tool))


def _takes(tool: Tool) -> str:
    names = [each.name if each.required else f"{each.name}=…" for each in parameters_of(tool)]
    return f"It takes {', '.join(names)}." if names else "It takes no arguments."
