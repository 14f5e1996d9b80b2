"""An MCP tool that takes exactly what its schema says, and whose failures are sentences."""

from __future__ import annotations

import copy
import inspect
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType, MethodType
from typing import Any, cast

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata, func_metadata
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import PrivateAttr, ValidationError

from ...base.arguments import ignored_arguments, meant, missing_argument, shown, unknown_argument, wrong_argument
from ...base.errors import KNOWN_ERRORS, RightMissing, shortage_in
from ...base.identity import LOCAL_IDENTITY, Identity
from ...base.terminal_escaping import visible
from ...governance.rights import TOOLS, require
from ...governance.scopes import caller_of
from .answers import bounded, short_in_the_middle, visibly

_BY_NAME: Mapping[str, str] = MappingProxyType(
    {
        "archived": "those",
        "arguments": "named",
        "background": "see get_run",
        "cancel": "end it",
        "category": "only this",
        "code": "Python",
        "content": "all of it",
        "context_vars": "variables",
        "detail_level": "detail",
        "dry_run": "only note writes",
        "encoding": "of content",
        "every": "weekdays 07:00 Europe/Berlin",
        "filename": "path",
        "force": "though old tests fail",
        "format": "of tables",
        "from_run": "run_id or last",
        "isolation": "kind",
        "limit": "most",
        "memory_mb": "limit",
        "missed": "no server ran",
        "name": "skill",
        "offset": "start",
        "overlap": "last still runs",
        "query": "words",
        "record": "for tests",
        "retries": "of a failure",
        "run_id": "id",
        "servers": "used ones",
        "session": "name",
        "skill": "name",
        "subpath": "folder",
        "tag": "only this",
        "tags": "topics",
        "tests": "asserts",
        "text": "text",
        "timeout": "seconds",
        "timeout_seconds": "limit",
        "tool_name": "server.tool",
        "version": "else latest",
        "wait_seconds": "for end",
    }
)
_OF_ONE_TOOL: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("save_skill", "code"): "Python; with from_run: its parameters",
        ("save_skill", "description"): "what it does",
        ("save_skill", "name"): "function",
        ("add_schedule", "name"): "schedule",
        ("remove_schedule", "name"): "schedule",
        ("read_workspace_file", "limit"): "characters",
    }
)


def _description_of(tool: str, parameter: str) -> str:
    """Return what a parameter of a tool is for. Raises `KeyError` for one that has no entry here."""
    return _OF_ONE_TOOL.get((tool, parameter)) or _BY_NAME[parameter]


SCHEMAS_FILE = Path(__file__).with_name("generated_schemas.json")


@dataclass(frozen=True, slots=True)
class Schemas:
    """What a tool takes, and what its structured content is."""

    parameters: dict[str, object]
    output: dict[str, object] | None


def generated_schemas(function: Callable[..., object]) -> Schemas | None:
    """Return the schemas of a tool, with the defaults that its function has now; None for a tool that is not kept."""
    kept = _all_kept().get(function.__name__)
    if kept is None:
        return None
    parameters = copy.deepcopy(kept["parameters"])
    properties = parameters["properties"]
    for name, parameter in inspect.signature(function).parameters.items():
        if isinstance(properties, dict) and name in properties and parameter.default not in (parameter.empty, None):
            properties[name]["default"] = parameter.default
    return Schemas(parameters, copy.deepcopy(kept["output"]))


@cache
def _all_kept() -> Mapping[str, dict[str, dict[str, object]]]:
    try:
        kept: Mapping[str, dict[str, dict[str, object]]] = json.loads(SCHEMAS_FILE.read_bytes())
    except FileNotFoundError:
        return {}
    return kept


_LOG = logging.getLogger(__name__)
_NOISE = frozenset({"title", "description"})
_NAMED = frozenset({"properties", "$defs"})
_SAY_WHICH = frozenset({"enum", "const", "anyOf", "oneOf", "allOf"})
"""What says of null, too, whether it may be."""
_CONTEXT = "ctx"
"""The parameter of a tool's function that takes the context of the call."""


Rest = str | Callable[[Mapping[str, object]], str] | None
"""How to get what of a long answer is cut, or what says so of the arguments; None where a tool bounds its answers."""


@dataclass(frozen=True, slots=True)
class ToolMethod:
    """A method that is a tool; see `mcp_tool`."""

    function: Callable[..., Awaitable[CallToolResult]]
    annotations: ToolAnnotations
    always_loaded: bool
    rest: Rest


def mcp_tool(
    annotations: ToolAnnotations, *, always_loaded: bool = False, rest: Rest = None
) -> Callable[[Callable[..., Awaitable[CallToolResult]]], ToolMethod]:
    """Mark an async method as the MCP tool of its name, described by its docstring. Its signature is the contract.

    `always_loaded` asks clients that defer tools to show this one from the start.
    """
    return lambda function: ToolMethod(function, annotations, always_loaded, rest)


def tools_by(*owners: object) -> dict[str, StrictTool]:
    """Return the tools that are methods of some objects, by name."""
    return {
        name: StrictTool.published(
            MethodType(each.function, owner),
            each.function.__doc__ or "",
            each.annotations,
            always_loaded=each.always_loaded,
            rest=each.rest,
        )
        for owner in owners
        for name, each in vars(type(owner)).items()
        if isinstance(each, ToolMethod)
    }


class StrictTool(Tool):
    """A tool whose unknown arguments and wrong types are tool errors that say what to give instead.

    A value of another form is taken where the schema leaves no doubt of what it means, see `meant`. The SDK drops
    unknown arguments, and puts its own words before every error text.
    """

    _arguments: type[ArgModelBase] | None = PrivateAttr(default=None)
    _rest: Rest = PrivateAttr(default=None)
    _chars_max: int | None = PrivateAttr(default=None)

    @classmethod
    def published(
        cls,
        function: Callable[..., Awaitable[CallToolResult]],
        description: str,
        annotations: ToolAnnotations,
        *,
        always_loaded: bool = False,
        rest: Rest = None,
    ) -> StrictTool:
        """Make a tool of an async function annotated to return `Annotated[CallToolResult, <shape>]`."""
        schemas = generated_schemas(function) or derived_schemas(function)
        properties = cast("Mapping[str, dict[str, object]]", schemas.parameters.get("properties", {}))
        for name, schema in properties.items():
            schema["description"] = _description_of(function.__name__, name)
            if not schema.get("default", True):
                del schema["default"]  # that an empty text, list or object is empty by default says nothing
        tool = cls(
            fn=function,
            name=function.__name__,
            title=None,
            description=description,
            parameters=schemas.parameters,
            # The arguments are read with a model that is made by the first call.
            fn_metadata=FuncMetadata(arg_model=ArgModelBase, output_schema=schemas.output),
            is_async=True,
            context_kwarg=_context_of(function),
            annotations=annotations,
            meta={"anthropic/alwaysLoad": True} if always_loaded else None,
        )
        tool._rest = rest
        return tool

    def bound(self, chars_max: int) -> StrictTool:
        """Bound answers to so many characters, except for the shape that their schema promises."""
        self._chars_max = chars_max
        return self

    async def run(
        self, arguments: dict[str, object], context: Context[Any, Any], convert_result: bool = False
    ) -> CallToolResult:
        """Check the arguments and call the function. Raises `ToolError` with the text that the caller gets."""
        del convert_result  # the functions make their own results
        try:
            require(_identity_of(context), TOOLS, self.name)
        except RightMissing as error:
            raise ToolError(str(error)) from error
        known = self.parameters.get("properties", {})
        ignored = ignored_arguments(arguments, known)
        arguments = {name: meant(given, known.get(name)) for name, given in arguments.items() if name not in ignored}
        checked = self._checked(arguments)
        if self.context_kwarg is not None:
            checked[self.context_kwarg] = context
        try:
            result: CallToolResult = await self.fn(**checked)
        except KNOWN_ERRORS as error:
            raise ToolError(visible(short_in_the_middle(str(error)))) from error
        except MCPError:
            raise
        except Exception as error:
            if (shortage := shortage_in(error)) is not None:
                _LOG.warning("%s failed: %s", self.name, error)
                raise ToolError(shortage) from error
            raise UnexpectedToolError(
                f"{self.name} failed by a fault of sealab itself. Its log on stderr says more; what the call did up to "
                "then is unknown."
            ) from error
        if not isinstance(result, CallToolResult):  # it may ask first
            return visibly(result)
        if self._rest is not None and self._chars_max is not None:
            rest = self._rest if isinstance(self._rest, str) else self._rest(arguments)
            result = bounded(result, self._chars_max, rest)
        if ignored:
            note = f"ignored, since {self.name} takes no such argument: {', '.join(map(shown, ignored))}"
            result.content.append(TextContent(type="text", text=note))
        return visibly(result)

    def prepare(self) -> type[ArgModelBase]:
        """Return the model that reads the arguments, made when it is first asked for."""
        if self._arguments is None:
            self._arguments = func_metadata(self.fn, skip_names=_skipped(self.fn), structured_output=False).arg_model
            self._arguments.model_rebuild()
        return self._arguments

    def _checked(self, arguments: Mapping[str, object]) -> dict[str, object]:
        known: Mapping[str, object] = self.parameters.get("properties", {})
        needed = self.parameters.get("required", ())
        # Clients of some models give every argument, and null for those that they mean to leave out.
        # Where null is not of the type, or a text is not, they give an empty text.
        arguments = {
            name: value
            for name, value in arguments.items()
            if name in needed or not _is_omitted(known.get(name), value)
        }
        unknown = next((given for given in arguments if given not in known), None)
        if unknown is not None:
            raise ToolError(unknown_argument(self.name, unknown, known, f"It takes {', '.join(known) or 'none'}."))
        try:
            return self.prepare().model_validate(dict(arguments), strict=True).model_dump_one_level()
        except ValidationError as error:
            # One for each argument at most: lists of a type are annotated `FailFast`.
            first = error.errors(include_url=False)[0]
            name = str(first["loc"][0])
            published = cast("Mapping[str, object]", known.get(name, {}))
            schema = json.dumps({key: value for key, value in published.items() if key != "description"})
            if first["type"] == "missing":
                raise ToolError(missing_argument(self.name, name, f"Give it; its schema is {schema}.")) from error
            why = f": {first['ctx']['error']}" if first["type"] == "value_error" else ""
            raise ToolError(
                wrong_argument(self.name, name, first["input"], f"{why}. Its schema is {schema}.")
            ) from error


def derived_schemas(function: Callable[..., Awaitable[CallToolResult]]) -> Schemas:
    """Make the schemas of a tool from its signature.

    They leave out what only takes room in a client's context: titles, repeated descriptions, null defaults. That of
    the output says everything in its place, since clients check each answer with it, and follow each reference.
    """
    metadata = func_metadata(function, skip_names=_skipped(function))
    parameters = compact(metadata.arg_model.model_json_schema(by_alias=True)) | {"additionalProperties": False}
    output = metadata.output_schema
    return Schemas(parameters, None if output is None else in_place(compact(output)))


def _is_omitted(schema: object, value: object) -> bool:
    types = schema.get("type", ()) if isinstance(schema, Mapping) else ()
    return value is None or (value == "" and not ("null" in types and "string" in types))


def _identity_of(context: Context[Any, Any]) -> Identity:
    """Return who calls; a context outside a request is that of this process itself."""
    try:
        request = context.request_context
    except ValueError:
        return LOCAL_IDENTITY
    return caller_of(request).identity


def _context_of(function: Callable[..., object]) -> str | None:
    return _CONTEXT if _CONTEXT in inspect.signature(function).parameters else None


def _skipped(function: Callable[..., object]) -> list[str]:
    return [_CONTEXT] if _context_of(function) else []


def compact(schema: Mapping[str, object]) -> dict[str, object]:
    """Return a JSON Schema without titles, descriptions and null defaults; property names are left alone."""
    kept: dict[str, object] = {}
    for key, value in schema.items():
        if key in _NAMED and isinstance(value, Mapping):
            kept[key] = {name: _compact_value(each) for name, each in value.items()}
        elif key not in _NOISE and not (key == "default" and value is None):
            kept[key] = _compact_value(value)
    return kept


def in_place(schema: Mapping[str, object]) -> dict[str, object]:
    """Return a JSON Schema with its definitions where it refers to them, and `anyOf` X or null as a type of X or null.

    Of a null, what else is said of X says nothing (JSON Schema 2020-12, 6.1 to 6.5). No definition may need itself.
    """
    definitions = cast("Mapping[str, Mapping[str, object]]", schema.get("$defs", {}))

    def put(value: object) -> object:
        match value:
            case {"$ref": str(name), **beside}:
                referred = put(definitions[name.removeprefix("#/$defs/")])
                return {**put_in(cast("Mapping[str, object]", beside)), "allOf": [referred]} if beside else referred
            case {"anyOf": [{"type": "null"}, other] | [other, {"type": "null"}], **beside} if not beside:
                either = cast("Mapping[str, object]", put(other))
                if isinstance(either.get("type"), str) and not either.keys() & _SAY_WHICH:
                    return {**either, "type": [either["type"], "null"]}
        if isinstance(value, Mapping):
            return put_in(value)
        return [put(each) for each in value] if isinstance(value, list) else value

    def put_in(whole: Mapping[str, object]) -> dict[str, object]:
        return {key: put(value) for key, value in whole.items() if key != "$defs"}

    return cast("dict[str, object]", put(schema))


def _compact_value(value: object) -> object:
    if isinstance(value, Mapping):
        return compact(value)
    if isinstance(value, list):
        return [_compact_value(each) for each in value]
    return value
