"""Turns what a tool call gave into one value for code: structured content, else parsed text, else the text itself.

Text that holds JSON is parsed, and so is a list, tuple or dict as Python writes it, which some servers answer.

Nothing is dropped: images, audio and binary resources become handles of kept files, and where a structured value
stands for the text, what is not text stays beside it.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import mimetypes
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Never, cast

from ..errors import AnswerRefused, ToolFailed
from ..json_lines import LARGE_CHARS, ReadJson, read_in_thread
from ..models import Json
from .python_literals import looks_like_literal, read_literal

if TYPE_CHECKING:
    from mcp.types import BlobResourceContents, CallToolResult, ContentBlock, TextResourceContents

Keep = Callable[[bytes, str, str], Awaitable[str]]
"""Takes content with its MIME type and a file name, keeps it, and returns the handle by which code can fetch it."""

Attachment = Mapping[str, Json]
"""What is not text: `{type, mime_type, size, handle}` for an image, audio or a binary resource, or with `data` in
base64 for `handle` where nothing keeps content; `{type: "resource_link", uri, name, …}` for what was not sent."""

ERROR_MAX_CHARS = 4000
"""How much of a server's own message an error carries."""

_NO_REASON = re.compile(r"Error executing tool [\w.-]+[:.]?\s*")
"""What servers of the Python SDK say of an error that they hide."""
_LITERAL_CHARS = 4_000
"""A Python literal up to this size is read in the event loop, within a few milliseconds."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call gave; `attachments` is what the value does not hold, since structured content stands for it."""

    value: Json
    attachments: tuple[Attachment, ...] = ()


def wraps_result(output_schema: object) -> bool:
    """Return whether this schema wraps a value that is not an object, as SDKs do; that value is then the result."""
    if not isinstance(output_schema, Mapping):
        return False
    properties = output_schema.get("properties")
    wrapped = isinstance(properties, Mapping) and set(properties) == {"result"}
    return wrapped and output_schema.get("x-fastmcp-wrap-result") is not False


_SHAPES = ("properties", "prefixItems", "enum", "anyOf", "oneOf", "allOf", "$ref")


def says_shape(output_schema: object) -> bool:
    """Return whether an output schema says more than that there is an object or a list, as of `dict[str, Any]`."""
    schema = output_schema
    while isinstance(schema, Mapping):  # no recursion: who publishes it chooses how deep it is
        schema = unwrapped_schema(cast("Mapping[str, Json]", schema))
        if not isinstance(schema, Mapping):
            return False
        kind = schema.get("type")
        if "const" in schema or any(schema.get(key) for key in _SHAPES):
            return True
        if kind is not None and kind not in ("array", "object"):  # it may be a list
            return True
        schema = schema.get("items" if kind == "array" else "additionalProperties")
    return False


def unwrapped_schema(output_schema: Mapping[str, Json]) -> Json:
    """Return the schema of the value that `value_of` gives, for signatures: definitions are carried along."""
    properties = output_schema.get("properties")
    if not wraps_result(output_schema) or not isinstance(properties, Mapping):
        return output_schema
    inner = properties["result"]
    shared = {key: output_schema[key] for key in ("$defs", "definitions") if key in output_schema}
    return {**inner, **shared} if isinstance(inner, Mapping) and shared else inner


async def value_of(
    tool: str, result: CallToolResult, output_schema: object, keep: Keep | None, read_large: ReadJson = read_in_thread
) -> ToolResult:
    """Return the value of a result. Raises `ToolFailed` with the server's message, or `AnswerRefused`."""
    if result.is_error:
        raise ToolFailed(_message(tool, result.content))
    parts = [await part_of(tool, number, block, keep) for number, block in enumerate(result.content, 1)]
    if result.structured_content is not None:
        structured = cast("Json", result.structured_content)
        if isinstance(structured, Mapping) and set(structured) == {"result"}:
            wrapped = wraps_result(output_schema) if output_schema is not None else await _is_wrapped(structured, parts)
            structured = structured["result"] if wrapped else structured
        return ToolResult(structured, tuple(part for part in parts if isinstance(part, Mapping)))
    values = [await parsed_text(part, read_large) if isinstance(part, str) else part for part in parts]
    return ToolResult(None if not values else values[0] if len(values) == 1 else values)


def parsed(text: str) -> Json:
    """Return the JSON that a text holds, or the text; a number is one only if nothing of its spelling is lost.

    Python's own literals are read by `parsed_text`, which takes longer.
    """
    stripped = text.strip()
    try:
        value = cast("Json", json.loads(stripped, parse_constant=_no_constant))
    except (ValueError, RecursionError):
        return text
    if isinstance(value, int | float) and json.dumps(value) != stripped:
        return text
    return value


async def parsed_text(text: str, read_large: ReadJson) -> Json:
    """Return the JSON or the Python literal that a text holds, or the text."""
    if len(text) <= LARGE_CHARS:
        value = parsed(text)
    elif text[:64].lstrip().startswith(("{", "[", '"')):
        try:
            value = await read_large(text)
        except (ValueError, RecursionError):
            value = text
    else:
        value = text  # a number so long is data, such as an identifier
    if value is text and looks_like_literal(literal := text.strip()):
        with suppress(ValueError):
            return read_literal(literal) if len(literal) <= _LITERAL_CHARS else await _read_in_thread(literal)
    return value


async def _read_in_thread(literal: str) -> Json:
    return await asyncio.to_thread(read_literal, literal)


async def _is_wrapped(structured: Mapping[str, Json], parts: Sequence[Json]) -> bool:
    """Return whether a server that publishes no schema put `{"result": …}` around its answer.

    A plain value or a list was wrapped, since structured content has to be an object. An object was where the text
    beside it is the object alone.
    """
    inner = structured["result"]
    if not isinstance(inner, Mapping):
        return True
    texts = [part for part in parts if isinstance(part, str)]
    return len(texts) == 1 and len(texts[0]) <= LARGE_CHARS and parsed(texts[0]) == inner


def _no_constant(name: str) -> Never:
    raise ValueError(f"{name} is not valid JSON")


def _message(tool: str, content: Sequence[ContentBlock]) -> str:
    text = "\n".join(block.text for block in content if block.type == "text").strip()
    if not text:
        return f"The tool {tool!r} failed and did not say why. Look at its arguments, or try `sealab servers test`."
    if _NO_REASON.fullmatch(text):
        return f"{text.rstrip('.')}: its server gives no reason. Look at the arguments that were sent."
    if len(text) > ERROR_MAX_CHARS:
        half = ERROR_MAX_CHARS // 2
        return f"{text[:half]}… ({len(text) - 2 * half} characters left out) …{text[-half:]}"
    return text


async def part_of(tool: str, number: int, block: ContentBlock, keep: Keep | None) -> Json:
    """Return the text of a block, or an attachment for what is not text."""
    if block.type == "text":
        return block.text
    if block.type == "image" or block.type == "audio":  # noqa: PLR1714 - mypy narrows a union by comparisons alone
        return await _kept(tool, number, kind=block.type, data=block.data, mime_type=block.mime_type, keep=keep)
    if block.type == "resource_link":
        return {"type": "resource_link", **_plain(block.model_dump(mode="json", exclude_none=True, exclude={"type"}))}
    resource = block.resource
    uri, mime_type = str(resource.uri), resource.mime_type or ""
    if "text" in resource.model_fields_set:
        text = cast("TextResourceContents", resource).text
        return {"type": "resource", "uri": uri, "mime_type": mime_type or "text/plain", "text": text}
    data = cast("BlobResourceContents", resource).blob
    return {**await _kept(tool, number, kind="resource", data=data, mime_type=mime_type, keep=keep), "uri": uri}


def _plain(dumped: Mapping[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in dumped.items() if key not in {"meta", "_meta", "icons"}}


async def _kept(tool: str, number: int, *, kind: str, data: str, mime_type: str, keep: Keep | None) -> dict[str, Json]:
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise AnswerRefused(
            f"The tool {tool!r} answered with {kind} data that is not valid base64. Tell the server's author."
        ) from None
    mime_type = mime_type or "application/octet-stream"
    about: dict[str, Json] = {"type": kind, "mime_type": mime_type, "size": len(content)}
    if keep is None:
        return {**about, "data": data}
    suffix = mimetypes.guess_extension(mime_type.partition(";")[0].strip()) or ".bin"
    return {**about, "handle": await keep(content, mime_type, f"{tool}-{number}{suffix}")}
