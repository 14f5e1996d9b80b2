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
from dataclasses import dataclass, field
from functools import partial
from math import isfinite
from typing import Any, TypeVar, cast

from ..errors import AnswerRefused, ToolFailed
from ..json_lines import LARGE_CHARS, ReadJson, read_in_thread
from ..models import Json
from ..schema_checks import CheckEnded, best_error, end_of, ending_after, path_text
from ..short_values import holds_more, null_what_json_lacks
from ..threads import Checkpoint, InThread, in_default_thread
from .lenient import CallResult, block, call_result
from .python_literals import looks_like_literal, read_literal

Keep = Callable[[bytes, str, str], Awaitable[str]]
"""Takes content with its MIME type and a file name, keeps it, and returns the handle by which code can fetch it."""

Attachment = Mapping[str, Json]
"""What is not text: `{type, mime_type, size, handle}` for an image, audio or a binary resource, or with `data` in
base64 for `handle` where nothing keeps content; `{type: "resource_link", uri, name, …}` for what was not sent."""

ERROR_MAX_CHARS = 4000
"""How much of a server's own message an error carries."""

BLOCKS_MAX = 50_000
"""Blocks of content in one answer."""

_LIGHT_PARTS = 50
_LIGHT_CHARS = 16_000
"""Blocks with no more characters together are read in the event loop, within a few milliseconds."""

_STEP_CHARS = 1 << 18
"""Characters of base64 that are decoded at once: a multiple of four."""

_T = TypeVar("_T")
_LABELS = ("integrity", "confidentiality")
_NO_REASON = re.compile(r"Error executing tool [\w.-]+[:.]?\s*")
"""What servers of the Python SDK say of an error that they hide."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call gave; `attachments` is what the value does not hold, since structured content stands for it.

    `parts` are the texts and attachments as they came; with `is_structured` the value is none of them. `has_nulls` says
    that null stands for numbers in it that JSON does not have, `broken` what of the value breaks the tool's own output
    schema. `label` is the server's own label of its flow, `_meta.ifc`, as far as it is made of texts.
    """

    value: Json
    attachments: tuple[Attachment, ...] = ()
    parts: tuple[Json, ...] = field(default=(), compare=False)
    is_structured: bool = field(default=False, compare=False)
    has_nulls: bool = field(default=False, compare=False)
    broken: str = field(default="", compare=False)
    label: Mapping[str, str] = field(default_factory=dict, compare=False)


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
    tool: str,
    result: Mapping[str, Any],
    output_schema: object,
    keep: Keep | None,
    *,
    read_large: ReadJson = read_in_thread,
    in_thread: InThread = in_default_thread,
    is_checked: bool = True,
) -> ToolResult:
    """Return the value of a result of `tools/call`, as its server sent it, judged by the output schema if asked to.

    Raises `ToolFailed` with the server's message and what else it answered.
    """
    read = call_result(result)
    parts = await parts_of(tool, read, keep, in_thread)
    if read.is_error:
        texts = tuple(_shown(part) for part in parts)
        raise ToolFailed(_message(tool, texts, read.structured), structured=read.structured, content=texts)
    label = _label(result)
    # An empty object of a tool that promises none says less than a text beside it.
    has_text = any(isinstance(part, str) and not part.isspace() for part in filter(None, parts))
    if read.is_structured and not (output_schema is None and read.structured in ({}, []) and has_text):
        structured = read.structured
        if isinstance(structured, Mapping) and set(structured) == {"result"}:
            wrapped = wraps_result(output_schema) if output_schema is not None else await _is_wrapped(structured, parts)
            structured = structured["result"] if wrapped else structured
        attachments = tuple(part for part in parts if isinstance(part, Mapping))
        judge = partial(_judged, output_schema if is_checked else None, read.structured, structured)
        is_light = judge.args[0] is None and not holds_more(structured, _LIGHT_CHARS)
        structured, has_nulls, broken = judge(lambda: None) if is_light else await in_thread(judge)
        marks = has_nulls, broken, label
        return ToolResult(structured, attachments, tuple(parts), True, *marks)
    values, has_nulls = await parsed_all(parts, read_large, in_thread)
    value: Json = None if not values else values[0] if len(values) == 1 else values
    broken = "it has no structured content" if is_checked and output_schema is not None else ""
    return ToolResult(value, parts=tuple(parts), has_nulls=has_nulls, broken=broken, label=label)


def _label(result: Mapping[str, Any]) -> dict[str, str]:
    """Return a result's label, `_meta.ifc`, as GitHub's server sends it: `integrity` and `confidentiality`."""
    meta = result.get("_meta")
    label = meta.get("ifc") if isinstance(meta, Mapping) else None
    given = label if isinstance(label, Mapping) else {}
    return {key: value.lower() for key in _LABELS if isinstance(value := given.get(key), str)}


CHECK_SECONDS = 2.0
"""How long the check of one answer by its output schema may take; the rest of it counts as right."""
_WRONG_CHARS_MAX = 400


def _judged(schema: object, whole: Json, value: Json, checkpoint: Checkpoint) -> tuple[Json, bool, str]:
    """Return a value, whether null stands in it for what JSON lacks, and what of the whole breaks a schema."""
    broken = "" if schema is None else _first_wrong(schema, whole, checkpoint)
    return *null_what_json_lacks(value), broken


def _first_wrong(schema: object, value: object, checkpoint: Checkpoint) -> str:
    """Return what of a value breaks a schema, or nothing. Security boundary: the SDK would check in the event loop."""
    try:
        error = best_error(schema, value, ending_after(CHECK_SECONDS, checkpoint))
    except CheckEnded:
        return ""
    except Exception:  # noqa: BLE001 - whatever a broken schema makes of it
        checkpoint()  # which is what raised it, where the run is over
        return ""
    if error is None:
        return ""
    path, message = path_text(error.absolute_path)[:_WRONG_CHARS_MAX], end_of(error.message, _WRONG_CHARS_MAX)
    return f"at {path}: {message}" if path else message


def parsed(text: str) -> Json:
    """Return the JSON that a text holds, or the text; a number is one only if nothing of its spelling is lost.

    Python's own literals are read by `parsed_all`, which takes longer.
    """
    stripped = text.strip().removeprefix("\ufeff")
    try:
        value = cast("Json", json.loads(stripped))  # with NaN and infinities, which many writers give
    except (ValueError, RecursionError):
        return text
    if isinstance(value, int | float) and (not isfinite(value) or json.dumps(value) != stripped):
        return text
    return value


async def parsed_all(parts: Sequence[Json], read_large: ReadJson, in_thread: InThread) -> tuple[list[Json], bool]:
    """Return the parts, and in the places of texts the JSON or the Python literals that they hold, if they do.

    Return also whether null stands in them for numbers that JSON does not have.
    """
    chars = sum(len(part) for part in parts if isinstance(part, str))
    values, has_nulls = await _done(len(parts), chars, partial(_parsed_small, parts), in_thread)
    for at, value in enumerate(values):
        if isinstance(value, str) and len(value) > LARGE_CHARS:
            values[at], held = await _parsed_large(value, read_large, in_thread)
            has_nulls = has_nulls or held
    return values, has_nulls


def _parsed_small(parts: Sequence[Json], checkpoint: Checkpoint) -> tuple[list[Json], bool]:
    values: list[Json] = []
    has_nulls = False
    for part in parts:
        value = part
        if isinstance(part, str) and len(part) <= LARGE_CHARS:
            value = parsed(part)
            if value is part and looks_like_literal(literal := part.strip()):
                with suppress(ValueError):
                    value = read_literal(literal)
            value, held = null_what_json_lacks(value)
            has_nulls = has_nulls or held
        values.append(value)
        checkpoint()
    return values, has_nulls


async def _parsed_large(text: str, read_large: ReadJson, in_thread: InThread) -> tuple[Json, bool]:
    """Return what a text holds, see `parsed_all`; a number so long is data, such as an identifier."""
    if text[:64].lstrip().startswith(("{", "[", '"')):
        with suppress(ValueError, RecursionError):
            value = await read_large(text)
            return await in_thread(lambda _checkpoint: null_what_json_lacks(value))
    if looks_like_literal(literal := text.strip()):
        with suppress(ValueError):
            return await in_thread(lambda _checkpoint: read_literal(literal)), False
    return text, False


async def _done(count: int, chars: int, work: Callable[[Checkpoint], _T], in_thread: InThread) -> _T:
    """Do work on so many parts with so many characters together: what is little at once, the rest in a thread."""
    if count <= _LIGHT_PARTS and chars <= _LIGHT_CHARS:
        return work(lambda: None)
    return await in_thread(work)


def _shown(part: Json) -> str:
    """Return a part of a failed answer as a text."""
    if isinstance(part, Mapping):
        return str(part["text"]) if "text" in part else json.dumps(part, ensure_ascii=False)
    return str(part)


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


def _message(tool: str, texts: Sequence[str], structured: Json) -> str:
    text = "\n".join(texts).strip()
    if structured is not None and (not text or _NO_REASON.fullmatch(text[:ERROR_MAX_CHARS])):
        text = json.dumps(structured, ensure_ascii=False)
    if not text:
        return f"The tool {tool!r} failed and did not say why. Look at its arguments, or try `sealab servers test`."
    if _NO_REASON.fullmatch(text[:ERROR_MAX_CHARS]):
        return f"{text.rstrip('.: ')}: its server gives no reason. Look at the arguments that were sent."
    if len(text) > ERROR_MAX_CHARS:
        half = ERROR_MAX_CHARS // 2
        return f"{text[:half]}… ({len(text) - 2 * half} characters left out) …{text[-half:]}"
    return text


async def parts_of(tool: str, result: CallResult, keep: Keep | None, in_thread: InThread) -> list[Json]:
    """Return the text of each block of content, or an attachment for what is not text. Raises `AnswerRefused`."""
    count = len(result.content)
    if count > BLOCKS_MAX:
        raise AnswerRefused(
            f"The tool {tool!r} answered with {count} blocks of content, and at most {BLOCKS_MAX} are taken. "
            "It may have done its work; ask it for less."
        )
    chars = sum(map(_chars_of, result.content[:_LIGHT_PARTS]))
    read = await _done(count, chars, partial(_read, tool, result.content, keep), in_thread)
    parts: list[Json] = []
    for part in read:
        if isinstance(part, _ToKeep):
            assert keep is not None
            parts.append({**part.about, "handle": await keep(part.content, part.mime_type, part.name), **part.source})
            await asyncio.sleep(0)  # what keeps it may not wait for anything
        else:
            parts.append(part)
    return parts


@dataclass(frozen=True, slots=True)
class _ToKeep:
    """An attachment whose content is yet to be kept under a name."""

    about: dict[str, Json]
    source: dict[str, Json]
    content: bytes
    mime_type: str
    name: str


def _chars_of(given: object) -> int:
    """Return about how long a block is; one that has to be written anew counts as long."""
    if isinstance(given, str):
        return len(given)
    held = given.get("resource", given) if isinstance(given, dict) else None
    found = (
        next((held[key] for key in ("text", "data", "blob") if key in held), None) if isinstance(held, dict) else None
    )
    return len(found) if isinstance(found, str) else _LIGHT_CHARS


def _read(tool: str, blocks: Sequence[object], keep: Keep | None, checkpoint: Checkpoint) -> list[Json | _ToKeep]:
    read: list[Json | _ToKeep] = []
    for number, given in enumerate((each for each in blocks if each is not None), 1):
        read.append(_part(tool, number, block(given), checkpoint, is_kept=keep is not None))
        checkpoint()
    return read


def _part(tool: str, number: int, found: Mapping[str, Any], checkpoint: Checkpoint, *, is_kept: bool) -> Json | _ToKeep:
    kind = found["type"]
    if kind == "text":
        return cast("str", found["text"])
    if kind == "resource_link":
        return {key: value for key, value in found.items() if key not in {"_meta", "icons"} and value is not None}
    held, source = found, cast("dict[str, Json]", {})
    if kind == "resource":
        held = found["resource"]
        source = {"uri": held["uri"]}
        if "text" in held:
            return {"type": kind, **source, "mime_type": held["mimeType"] or "text/plain", "text": held["text"]}
    data = held["blob"] if kind == "resource" else held["data"]
    mime_type = held["mimeType"] or "application/octet-stream"
    try:
        content = _decoded(data, checkpoint)
    except (binascii.Error, ValueError):
        return {"type": kind, "mime_type": mime_type, "data": data, **source}  # it is not base64: as it is
    about: dict[str, Json] = {"type": kind, "mime_type": mime_type, "size": len(content)}
    if not is_kept:
        return {**about, "data": data, **source}
    suffix = mimetypes.guess_extension(mime_type.partition(";")[0].strip()) or ".bin"
    return _ToKeep(about, source, content, mime_type, f"{tool}-{number}{suffix}")


def _decoded(data: str, checkpoint: Checkpoint) -> bytes:
    """Return what base64 holds, decoded in steps: broken into lines, of either alphabet, without its end too.

    Raises `ValueError`. Source: RFC 4648, sections 3.1, 3.2 and 5.
    """
    data = "".join(data.split()).replace("-", "+").replace("_", "/")
    if "=" not in data[-2:]:
        data += "=" * (-len(data) % 4)
    pieces: list[bytes] = []
    for at in range(0, len(data), _STEP_CHARS):
        piece = data[at : at + _STEP_CHARS]
        if "=" in piece and at + _STEP_CHARS < len(data):
            raise ValueError("it ends before its end")
        pieces.append(base64.b64decode(piece, validate=True))
        checkpoint()
    return b"".join(pieces)
