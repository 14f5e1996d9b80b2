"""Reads what servers list and answer as they have it: what is plain is mended, the rest is left out by name and reason.

The SDK judges a message as one, by its own models: one odd tool would make a whole server unusable, one odd block would
lose an answer. What is returned here has exact shapes. Each rule follows what servers in use were reported to send.
Source of the right shapes: https://modelcontextprotocol.io/specification/2025-11-25/schema
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from ..models import Json

RawTool = Mapping[str, Json]
"""A tool as its server lists it: name, title, description, input_schema, output_schema, annotations; what is not
published is missing. The keys of annotations are MCP's own, in camelCase."""

_NAME_SHOWN = 60
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_WORDS = {"true": True, "false": False, "yes": True, "no": False}
_INPUT_KEYS = ("inputSchema", "input_schema", "parameters", "inputschema")
_OUTPUT_KEYS = ("outputSchema", "output_schema")


LEFT_OUT = "sealab/leftOut"
"""In `_meta` of a page of tools from our own reader of OpenAPI documents: what it left out, as `{tool, reason}`."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A tool that cannot be offered: its name, or what stands in the place of it, and why."""

    tool: str
    reason: str


def tool(given: object) -> RawTool | LeftOut:
    """Return a tool of a list as `RawTool`, or why it is left out."""
    if not isinstance(given, dict):
        return LeftOut(_shown(given), "it is not an object")
    if isinstance(function := given.get("function"), dict) and "name" not in given:
        given = function  # as OpenAI's models are given tools
    name = given.get("name")
    if not isinstance(name, str) or not name.strip():
        return LeftOut(_shown(given.get("title") or name or "(no name)"), "it has no name that is a text")
    made: dict[str, Json] = {"name": name, "description": _text(given.get("description"))}
    if title := _text(given.get("title")):
        made["title"] = title
    schema = _schema(_first(given, _INPUT_KEYS))
    if schema is None:
        return LeftOut(name, f"its input schema is {_kind(_first(given, _INPUT_KEYS))}, and not an object")
    made["input_schema"] = mended_schema(_root(schema))
    output = _schema(_first(given, _OUTPUT_KEYS))
    if output:
        made["output_schema"] = mended_schema(output)
    if annotations := _annotations(given.get("annotations")):
        made["annotations"] = annotations
    return made


def _first(given: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((given[key] for key in keys if given.get(key) is not None), None)


def _schema(found: object) -> dict[str, Any] | None:
    """Return a schema as an object; empty where it says nothing, None where it is none."""
    if isinstance(found, str):
        try:
            found = json.loads(found or "null")
        except (ValueError, RecursionError):
            return None
    if found is None or isinstance(found, bool):
        return {}
    return found if isinstance(found, dict) else None


def _root(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an input schema that says at its root that it is an object, a reference there being followed."""
    for _ in range(10):
        reference = schema.get("$ref")
        target = _pointed(schema, reference) if isinstance(reference, str) else None
        if not isinstance(target, dict):
            break
        shared: dict[str, Any] = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
        schema = {**shared, **target}
    kind = schema.get("type")
    if isinstance(kind, str) and kind.lower() == "object":
        return schema
    return {**schema, "type": "object"}


def _pointed(schema: object, reference: str) -> object:
    """Return what a reference into a schema leads to; None where that is nothing, or lies elsewhere."""
    at = schema if reference.startswith("#/") else None
    for step in reference[2:].split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(at, dict):
            at = at.get(name)
        else:
            at = at[int(name)] if isinstance(at, list) and name.isdecimal() and int(name) < len(at) else None
    return at


_TYPES = {
    "any": None, "bool": "boolean", "dict": "object", "double": "number", "float": "number", "int": "integer",
    "list": "array", "long": "integer", "map": "object", "none": "null", "str": "string", "text": "string",
    "tuple": "array",
}  # fmt: skip
"""Names of types in other languages; None says nothing."""
_KNOWN_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_BELOW = ("additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then")
_BELOW_EACH = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
_BELOW_NAMED = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")
_LISTS_OF_SCHEMAS = ("allOf", "anyOf", "oneOf")


def mended_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema in which each keyword has a value that JSON Schema (2020-12) knows; nothing else changes.

    Source: https://json-schema.org/draft/2020-12/json-schema-validation, and draft 4, section 5.1 for its booleans.
    """
    outermost = {"root": schema}
    waiting: list[tuple[dict[str, Any] | list[Any], Any]] = [(outermost, "root")]
    while waiting:  # no recursion: who publishes it chooses how deep it is
        holder, key = waiting.pop()
        found = holder[key]
        if isinstance(found, dict):
            holder[key] = one = _mended_keywords(found, schema)
            waiting += [(one, name) for name in _BELOW if isinstance(one.get(name), dict)]
            for name in _BELOW_EACH:
                if isinstance(one.get(name), list):
                    one[name] = list(one[name])
                    waiting += [(one[name], at) for at in range(len(one[name]))]
            for name in _BELOW_NAMED:
                if isinstance(one.get(name), dict):
                    one[name] = dict(one[name])
                    waiting += [(one[name], each) for each in one[name]]
        elif not isinstance(found, bool):
            holder[key] = {}
    return outermost["root"]


def _mended_keywords(given: dict[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with its own keywords mended, those of the schemas within it as they are."""
    one = dict(given)
    if not isinstance(dialect := one.get("$schema", ""), str) or not dialect.startswith(_DIALECTS):
        one.pop("$schema", None)
    if isinstance(reference := one.get("$ref"), str):
        if reference != "#" and _pointed(root, reference) is None:
            del one["$ref"]  # it leads nowhere, or elsewhere, and nothing is fetched
    else:
        one.pop("$ref", None)
    for name, mend in _KEYWORDS.items():
        if name in one:
            one[name] = mend(one[name])
            if one[name] is None:
                del one[name]
    for edge, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(one.get(exclusive), bool):
            is_exclusive = one.pop(exclusive)
            if is_exclusive and edge in one:
                one[exclusive] = one.pop(edge)
    if isinstance(one.get("items"), list):
        one.setdefault("prefixItems", one.pop("items"))
    for name in ("enum", "const", "default"):
        if name in one:
            one[name] = _as_typed(one.get("type"), one[name])
    is_nullable = _bool_or_schema(one.pop("nullable", None)) is True
    takes_null = isinstance(one.get("enum"), list) and None in one["enum"]
    if (is_nullable or takes_null) and isinstance(one.get("type"), str) and one["type"] != "null":
        one["type"] = [one["type"], "null"]
        if isinstance(one.get("enum"), list) and not takes_null:
            one["enum"] = [*one["enum"], None]
    if isinstance(properties := one.get("properties"), dict):
        # Of draft 3: each property said of itself that it is required.
        needed = [name for name, each in properties.items() if isinstance(each, dict) and each.get("required") is True]
        if needed:
            one["required"] = [*dict.fromkeys([*(one.get("required") or ()), *needed])]
    return one


_DIALECTS = ("http://json-schema.org/", "https://json-schema.org/")


def _as_typed(kind: Json, value: Json) -> Json:
    """Return a value as its type has it: YAML makes numbers and truths of texts, and some servers texts of these."""
    if isinstance(kind, list):
        kinds = [each for each in kind if each != "null"]
        kind = kinds[0] if len(kinds) == 1 else None
    if isinstance(value, list):
        return [_as_typed(kind, each) for each in value] if kind != "array" else value
    if kind == "string" and isinstance(value, bool | int | float):
        return json.dumps(value)
    if kind in ("integer", "number", "boolean") and isinstance(value, str):
        with suppress(ValueError, RecursionError):
            read: Json = json.loads(value)
            if isinstance(read, bool) is (kind == "boolean") and isinstance(read, bool | int | float):
                return read
    return value


def _type(value: object) -> object:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list):
        return None
    kept: list[str] = []
    for name in names:
        if not isinstance(name, str):
            return None
        lower = name.strip().lower()
        kind = lower if lower in _KNOWN_TYPES else _TYPES.get(lower)
        if kind is None:
            return None
        kept.append(kind)
    if not kept:
        return None
    return kept[0] if isinstance(value, str) else [*dict.fromkeys(kept)]


def _only(kind: type | tuple[type, ...]) -> Callable[[object], object]:
    return lambda value: value if isinstance(value, kind) else None


def _filled_list(value: object) -> object:
    return value if isinstance(value, list) and value else None


def _names(value: object) -> object:
    if not isinstance(value, list):
        return None
    return [each for each in value if isinstance(each, str)]


def _count(value: object) -> object:
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:  # noqa: PLR2004 - nothing is so long
        return int(value)
    return value if isinstance(value, int) and value >= 0 else None


def _number(value: object) -> object:
    if isinstance(value, str):
        try:
            return json.loads(value) if len(value) < 30 else None  # noqa: PLR2004 - more than any number has
        except ValueError:
            return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _edge(value: object) -> object:
    return value if isinstance(value, bool) else _number(value)


def _bool_or_schema(value: object) -> object:
    if isinstance(value, str):
        return _WORDS.get(value.strip().lower())
    return value if isinstance(value, bool | dict) else None


def _text_or_none(value: object) -> object:
    return value if isinstance(value, str) else _text(value) or None


_KEYWORDS: dict[str, Callable[[object], object]] = {
    "type": _type,
    "properties": _only(dict),
    "patternProperties": _only(dict),
    "required": _names,
    "items": _only((dict, list, bool)),
    "prefixItems": _filled_list,
    "additionalProperties": _bool_or_schema,
    "enum": _filled_list,
    **dict.fromkeys(_LISTS_OF_SCHEMAS, _filled_list),
    "not": _only((dict, bool)),
    "minimum": _number,
    "maximum": _number,
    "exclusiveMinimum": _edge,
    "exclusiveMaximum": _edge,
    "multipleOf": _number,
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _count),
    "pattern": _only(str),
    "format": _only(str),
    "title": _text_or_none,
    "description": _text_or_none,
    "$defs": _only(dict),
    "definitions": _only(dict),
}
"""What becomes of a keyword's value: None where it says nothing."""


def _annotations(given: object) -> dict[str, Json]:
    if not isinstance(given, dict):
        return {}
    made: dict[str, Json] = {}
    for key in _HINTS:
        value = given.get(key)
        if isinstance(value, str):
            value = _WORDS.get(value.strip().lower())
        if isinstance(value, bool):
            made[key] = value
    if title := _text(given.get("title")):
        made["title"] = title
    return made


def _text(given: object) -> str:
    """Return a text for people: parts of a list on lines of their own, numbers as they are written, else nothing."""
    if isinstance(given, str):
        return given
    if isinstance(given, list):
        return "\n".join(filter(None, (_text(each) for each in given if not isinstance(each, list))))
    if isinstance(given, dict):
        return _text(given.get("text", given.get("en", "")))
    return "" if given is None or isinstance(given, bool) else str(given)


def _shown(given: object) -> str:
    text = given if isinstance(given, str) else json.dumps(given, default=str)
    return text if len(text) <= _NAME_SHOWN else f"{text[:_NAME_SHOWN]}…"


def _kind(given: object) -> str:
    return {str: "a text", list: "a list", int: "a number", float: "a number"}.get(type(given), "something else")


@dataclass(frozen=True, slots=True)
class CallResult:
    """What a call was answered with: blocks of content, each for `block` to read, and structured content if any."""

    content: Sequence[object]
    structured: Json
    is_structured: bool
    is_error: bool


_RESULT_KEYS = frozenset({"content", "structuredContent", "structured_content", "isError", "is_error", "toolResult"})
_BESIDE = frozenset({"_meta", "resultType", "ttlMs", "cacheScope"})


def call_result(given: Mapping[str, Any]) -> CallResult:
    """Return the parts of the result of `tools/call`; nothing of it that can be read is lost."""
    bare = {key: value for key, value in given.items() if key not in _BESIDE and key not in _RESULT_KEYS}
    structured = _first(given, ("structuredContent", "structured_content", "toolResult"))
    is_error = _first(given, ("isError", "is_error"))
    if isinstance(is_error, str):
        is_error = _WORDS.get(is_error.strip().lower(), bool(is_error))
    content = given.get("content")
    blocks = content if isinstance(content, list) else [] if content is None else [content]
    if bare and structured is None and (is_error or not blocks):
        structured = bare
    return CallResult(
        blocks,
        structured,
        structured is not None,
        is_error=bool(is_error),
    )


def block(given: object) -> Mapping[str, Json]:
    """Return a block of content that has what its type needs; what is none becomes a text that shows it."""
    if not isinstance(given, dict):
        return _as_text(given)
    kind = given.get("type")
    kind = kind.lower() if isinstance(kind, str) else kind
    if kind in {None, "text"} and "text" in given:
        return _as_text(given["text"])
    if kind == "json" and "json" in given:
        return _as_text(given["json"])
    if kind in {"image", "audio"} and isinstance(given.get("data"), str):
        return _media(cast("str", kind), given)
    if kind == "resource" and isinstance(held := given.get("resource"), dict):
        read = resource(held)
        return _as_text(given) if read is None else {"type": "resource", "resource": read}
    if kind == "resource_link" and isinstance(given.get("uri"), str):
        uri = given["uri"]
        return {**given, "type": kind, "name": _text(given.get("name")) or uri.rstrip("/").rpartition("/")[2] or uri}
    return _as_text(given)


def resource(given: object) -> dict[str, Json] | None:
    """Return the content of a resource with `uri`, `mimeType`, and `text` or `blob`; None where it holds neither."""
    if not isinstance(given, dict):
        return None
    made: dict[str, Json] = {
        "uri": _text(given.get("uri")),
        "mimeType": _text(_first(given, ("mimeType", "mime_type"))),
    }
    for key in ("text", "blob"):
        if (held := given.get(key)) is not None:
            mime_type, data = _parts(_written(held)) if key == "blob" else ("", _written(held))
            return {**made, "mimeType": made["mimeType"] or mime_type, key: data}
    return None


_MAGIC = (("iVBORw0KGgo", "image/png"), ("/9j/", "image/jpeg"), ("R0lGOD", "image/gif"), ("UklGR", "image/webp"))
"""How base64 of the usual formats begins."""


def _media(kind: str, given: Mapping[str, Any]) -> dict[str, Json]:
    of_url, data = _parts(given["data"])
    mime_type = _text(_first(given, ("mimeType", "mime_type"))) or of_url
    found = next((named for begins, named in _MAGIC if data.startswith(begins)), "application/octet-stream")
    return {"type": kind, "data": data, "mimeType": mime_type or found}


def _parts(data: str) -> tuple[str, str]:
    """Return the media type and the base64 of an address with data; of base64 itself no type and that."""
    if not data.startswith("data:") or "," not in data[:200]:
        return "", data
    head, _, data = data.partition(",")
    return head.removeprefix("data:").partition(";")[0], data


def _as_text(given: object) -> dict[str, Json]:
    return {"type": "text", "text": _written(given)}


def entries(given: Mapping[str, Any], key: str, named: str) -> list[dict[str, Json]]:
    """Return the objects of a list of resources or prompts that have a text below `named`, without what is null."""
    listed = given.get(key)
    found = listed if isinstance(listed, list) else []
    return [
        {name: value for name, value in each.items() if value is not None}
        for each in found
        if isinstance(each, dict) and isinstance(each.get(named), str)
    ]


_ASSUMED = "2025-03-26"
"""The version of a server that states none. Source: …/specification/2025-11-25/basic/transports"""
_FLAGS = ("listChanged", "subscribe")
_CAPABILITIES = ("tools", "resources", "prompts", "logging", "completions")


def initialized(given: Mapping[str, Any]) -> dict[str, Json]:
    """Return the result of `initialize`; an unknown version is the newest known one that is not newer."""
    stated, offered, info = (given.get(key) for key in ("protocolVersion", "capabilities", "serverInfo"))
    is_dated = isinstance(stated, str) and stated[:4].isdecimal()
    capabilities: dict[str, Json] = {}
    for name in _CAPABILITIES:
        one = offered.get(name) if isinstance(offered, dict) else None
        if one is not None and one is not False:
            flags = one if isinstance(one, dict) else {}
            capabilities[name] = {key: True for key in _FLAGS if flags.get(key) is True}
    named = info if isinstance(info, dict) else {"name": info}
    made: dict[str, Json] = {
        "protocolVersion": max(
            (each for each in HANDSHAKE_PROTOCOL_VERSIONS if each <= str(stated)),
            default=HANDSHAKE_PROTOCOL_VERSIONS[0],
        )
        if is_dated
        else _ASSUMED,
        "capabilities": capabilities,
        "serverInfo": {key: _text(named.get(key)) for key in ("name", "title", "version")},
    }
    if instructions := _text(given.get("instructions")):
        made["instructions"] = instructions
    return made


def message(given: Json, number: int | str | None = None) -> Json:
    """Return a JSON-RPC message with the members that JSON-RPC 2.0 demands, where what is meant is plain.

    An answer is that to the request of this number, where one is given.
    Source: https://www.jsonrpc.org/specification, section 5.
    """
    if not isinstance(given, dict) or given.get("method") is not None:
        return given
    if number is not None and ("result" in given or "error" in given):
        given = {**given, "id": number}
    if "id" not in given:
        return given
    made = {**given, "jsonrpc": "2.0"}
    made.pop("method", None)
    if isinstance(number := made["id"], float) and number.is_integer():
        made["id"] = int(number)
    error = made.get("error")
    if error or (error is not None and "result" not in made):
        made.pop("result", None)
        made["error"] = _error(error)
    elif "result" in made:
        made.pop("error", None)
        result = made["result"]
        if not isinstance(result, dict):
            made["result"] = {} if result is None else {"content": [], "structuredContent": result}
    return made


def _error(given: Any) -> dict[str, Json]:
    if not isinstance(given, dict):
        return {"code": _INTERNAL_ERROR, "message": _written(given)}
    code, message = given.get("code"), given.get("message")
    if isinstance(code, float) and code.is_integer():
        code = int(code)
    beside = {key: value for key, value in given.items() if key not in {"code", "message"}}
    data = given.get("data", beside or None)
    message = _text(message) or _written(message or (data if data is not None else "it gave no reason"))
    if not isinstance(code, int) or isinstance(code, bool):
        message = message if code is None else f"{message} ({_text(code)})"
        code = _INTERNAL_ERROR
    code = _INTERNAL_ERROR if code in SDK_CODES else code
    return {"code": code, "message": message, "data": data}


_INTERNAL_ERROR = -32603
SDK_CODES = (-32000, -32700)
"""Codes of a server's own errors, and for the SDK of a connection that ended, and of an answer that is not MCP."""


def _written(given: object) -> str:
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
