"""Reads what an operation takes in the body of its request, as arguments of a tool.

The fields of an object are arguments of their own where their names are free and nothing else can stand beside them;
else the whole is one argument, `body`. Source: OpenAPI 3.1.1, "Request Body Object" and "Encoding Object".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from ..models import Json
from ..names import identifier
from .document import Document, UnusablePart, mapping
from .responses import is_lines

_FIELDS_MAX = 100
_NOT_FLAT = ("allOf", "anyOf", "oneOf", "patternProperties", "if", "not", "propertyNames", "nullable", "minProperties")
_BYTES: dict[str, Json] = {"type": "string", "contentEncoding": "base64", "description": "the bytes, in base64"}
_FILE: Json = {
    "anyOf": [
        _BYTES,
        {
            "type": "object",
            "properties": {"data": _BYTES, "filename": {"type": "string"}, "content_type": {"type": "string"}},
            "required": ["data"],
            "additionalProperties": False,
        },
    ]
}
_STYLES = ("form", "spaceDelimited", "pipeDelimited", "deepObject")


class BodyKind(StrEnum):
    """How a body is written."""

    JSON = "json"
    FORM = "form"
    MULTIPART = "multipart"
    LINES = "lines"
    TEXT = "text"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class FieldEncoding:
    """How a field of a form is written: as a media type, or in a style of query parameters where one is named."""

    content_type: str = ""
    style: str = ""
    explode: bool = True
    allow_reserved: bool = False

    @property
    def is_json(self) -> bool:
        """Whether the field is one JSON text."""
        return "json" in self.content_type


@dataclass(frozen=True, slots=True)
class Body:
    """A body: one `argument`, or `fields`, which are `{argument: name}`. `files` are the fields that hold bytes.

    `encodings` are of the fields of a form that are written in a way of their own.
    """

    kind: BodyKind
    media_type: str
    argument: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    files: frozenset[str] = frozenset()
    encodings: Mapping[str, FieldEncoding] = field(default_factory=dict)
    required: bool = False


@dataclass(frozen=True, slots=True)
class DescribedBody:
    """A body with the schemas of its arguments, as they stand in the document, and those that are required."""

    body: Body
    schemas: Mapping[str, Json]
    required: list[str]


def body_of(
    document: Document, operation: Mapping[str, Json], taken: frozenset[str], *, has_body: bool
) -> DescribedBody | None:
    """Read the body of an operation beside the arguments that are `taken`. Raises `UnusablePart`."""
    if operation.get("requestBody") is None:
        return None
    described = document.resolved(operation["requestBody"])
    content = mapping(described.get("content"))
    if not content:
        return None
    media_type = min(map(str, content), key=_rank)
    kind = _kind(media_type)
    written = "application/json" if kind is BodyKind.JSON and "*" in media_type else media_type
    if kind is BodyKind.BYTES and "*" in media_type:
        written = "application/octet-stream"
    # Many documents forget to say that a body is required; one whose fields are required is not left out by chance.
    required = described.get("required", has_body)
    if kind in {BodyKind.TEXT, BodyKind.BYTES}:
        schema: Json = {"type": "string"} if kind is BodyKind.TEXT else _BYTES
        return _as_one(Body(kind, written, required=required is True), schema, taken)
    media = mapping(content[media_type])
    schema = media.get("schema", {})
    if kind is BodyKind.LINES:
        lines: Json = {"type": "array", "items": schema}
        return _as_one(Body(kind, written, required=required is True), lines, taken)
    flat = _flat(document, schema, taken)
    files: dict[str, Json] = {}
    encodings: dict[str, FieldEncoding] = {}
    if kind in {BodyKind.FORM, BodyKind.MULTIPART}:
        encodings = {str(name): _encoding(each) for name, each in mapping(media.get("encoding")).items()}
    if kind is BodyKind.MULTIPART:
        properties = mapping(_object(document, schema).get("properties"))
        files = {str(name): _file_schema(document, each) for name, each in properties.items()}
    held = frozenset(name for name, each in files.items() if each is not None)
    body = Body(kind, written, files=held, encodings=encodings, required=required is True)
    if flat is None:
        return _as_one(body, schema, taken)
    found = mapping(flat.get("properties"))
    names = {identifier(str(name)): str(name) for name in found}
    schemas = {argument: files.get(name) or found[name] for argument, name in names.items()}
    listed = flat.get("required")
    needed = set(map(str, listed)) if isinstance(listed, list) and required else set()
    return DescribedBody(
        replace(body, fields=names), schemas, [argument for argument, name in names.items() if name in needed]
    )


def _as_one(body: Body, schema: Json, taken: frozenset[str]) -> DescribedBody:
    argument = "body"
    while argument in taken:
        argument += "_"
    return DescribedBody(replace(body, argument=argument), {argument: schema}, [argument] if body.required else [])


def _encoding(described: Json) -> FieldEncoding:
    """Return an Encoding Object. Beside a style, its media type counts for nothing, as the specification has it."""
    given = mapping(described)
    style, explode, reserved = given.get("style"), given.get("explode"), given.get("allowReserved") is True
    named = style if isinstance(style, str) and style in _STYLES else ""
    if not named and (isinstance(explode, bool) or reserved):
        named = "form"
    content_type = str(given.get("contentType", "")).partition(",")[0].strip()
    return FieldEncoding(
        content_type if content_type.isascii() and content_type.isprintable() and not named else "",
        named,
        explode=explode if isinstance(explode, bool) else named in {"form", "deepObject"},
        allow_reserved=reserved,
    )


def _rank(media_type: str) -> tuple[int, str]:
    return list(BodyKind).index(_kind(media_type)), media_type


def _kind(media_type: str) -> BodyKind:
    plain = media_type.partition(";")[0].strip().lower()
    if plain in {"application/json", "*/*", "application/*"} or plain.endswith("+json"):
        return BodyKind.JSON
    if plain == "application/x-www-form-urlencoded":
        return BodyKind.FORM
    if plain == "multipart/form-data":
        return BodyKind.MULTIPART
    if is_lines(plain):
        return BodyKind.LINES
    is_text = plain.startswith("text/") or plain.endswith(("/xml", "+xml", "/yaml", "+yaml", "/graphql"))
    return BodyKind.TEXT if is_text else BodyKind.BYTES


def _object(document: Document, schema: Json) -> Mapping[str, Json]:
    try:
        return document.resolved(schema)
    except UnusablePart:
        return {}


def _flat(document: Document, schema: Json, taken: frozenset[str]) -> Mapping[str, Json] | None:
    """Return the object whose fields can be arguments of their own, or None: what is read only has no argument."""
    found = _object(document, schema)
    properties = mapping(found.get("properties"))
    sent = {name: each for name, each in properties.items() if mapping(each).get("readOnly") is not True}
    names = {identifier(str(name)) for name in sent}
    if (
        not sent
        or len(sent) > _FIELDS_MAX
        or found.get("additionalProperties")
        or any(key in found for key in _NOT_FLAT)
        or len(names) < len(sent)
        or names & taken
    ):
        return None
    required = found.get("required")
    kept = [each for each in required if each in sent] if isinstance(required, list) else []
    return {"properties": sent, "required": kept}


def _file_schema(document: Document, schema: Json) -> Json:
    """Return what an argument takes for a field that holds one or several files, or None for any other field."""
    found = _object(document, schema)
    if found.get("type") == "array":
        items = _file_schema(document, found.get("items", {}))
        return None if items is None else {"type": "array", "items": items}
    return _FILE if found.get("format") == "binary" or "contentMediaType" in found else None
