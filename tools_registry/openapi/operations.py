"""Reads the operations of an OpenAPI document as MCP tools. An operation that cannot be one is left out and named.

Sources: OpenAPI Specification 3.0.4 and 3.1.1, "Path Item Object", "Operation Object" and "Parameter Object".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from ..errors import sentence
from ..models import Json
from ..names import FreeNames, identifier
from ..upstream import lenient
from .bodies import Body, body_of
from .document import Document, UnusablePart, is_within, mapping, server_address
from .responses import output_schema_of
from .schema_conversion import Direction, SchemaConverter

VALUES_MAX: Final = 20_000
"""Values in the schema of what an operation takes."""
OPERATIONS_MAX: Final = 20_000

_NAME_CHARS_MAX = 100
_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_READS = frozenset({"get", "head"})
_REPLACES = frozenset({"put", "delete"})
_NOT_PARAMETERS = frozenset({"accept", "content-type", "authorization"})
"""Headers that parameters may not describe: the specification has them ignored."""
_NOT_SENT = frozenset(
    {"accept-encoding", "connection", "content-length", "cookie", "expect", "host", "te", "trailer",
     "transfer-encoding", "upgrade"}
)  # fmt: skip
"""Headers that belong to the connection."""
_LEFT_OUT_SHOWN = 50
PATH_TEMPLATE = re.compile(r"\{([^{}]*)\}")


class ParameterLocation(StrEnum):
    """Where a parameter stands in a request."""

    PATH = "path"
    QUERY = "query"
    HEADER = "header"
    COOKIE = "cookie"


_STYLES: Mapping[ParameterLocation, tuple[str, ...]] = {
    ParameterLocation.PATH: ("simple", "label", "matrix"),
    ParameterLocation.QUERY: ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    ParameterLocation.HEADER: ("simple",),
    ParameterLocation.COOKIE: ("form",),
}
"""The first is the default."""


@dataclass(frozen=True, slots=True)
class OperationParameter:
    """A parameter of an operation: `argument` of the tool is sent as `name`."""

    argument: str
    name: str
    place: ParameterLocation
    style: str
    explode: bool
    is_json: bool = False
    allow_reserved: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation, and the tool that it is, with the keys of MCP."""

    name: str
    method: str
    path: str
    base: str
    parameters: tuple[OperationParameter, ...]
    body: Body | None
    tool: Mapping[str, Json]

    @property
    def only_reads(self) -> bool:
        """Whether its method is one that changes nothing."""
        return self.method in _READS


@dataclass(frozen=True, slots=True)
class Service:
    """What a document describes. `left_out` are operations that are no tools; `note` says what else is not read."""

    title: str
    release: str
    version: str
    operations: Mapping[str, Operation] = field(default_factory=dict)
    left_out: tuple[lenient.LeftOut, ...] = ()
    note: str = ""


def read_service(document: Document, base: str, given_headers: frozenset[str], check: Callable[[], None]) -> Service:
    """Read all operations. Takes CPU time: call it in a thread; `check` is called at each step and may raise.

    `given_headers` are those that the operator gives, in lowercase: no argument takes their place.
    """
    reading = _OperationReader(document, base, given_headers, SchemaConverter(document, check))
    found: list[tuple[str, str, Mapping[str, Json], Mapping[str, Json]]] = []
    left_out: list[lenient.LeftOut] = []
    for path, method, item, operation in _all(document, left_out):
        found.append((path, method, item, operation))
        check()
    operations: dict[str, Operation] = {}
    for (path, method, item, operation), name in zip(found, _names(found), strict=True):
        try:
            operations[name] = reading.operation(name, path, method, item, operation)
        except UnusablePart as reason:
            left_out.append(lenient.LeftOut(f"{method.upper()} {path[:100]}", str(reason)))
    note = (
        f"Left out: the schemas of the answers of {reading.without_output} operations, which are too large or refer to "
        "other documents. What these return is learned from calls."
        if reading.without_output
        else ""
    )
    return Service(document.title, document.release, document.version, operations, _few(left_out), note)


def _all(
    document: Document, left_out: list[lenient.LeftOut]
) -> Iterator[tuple[str, str, Mapping[str, Json], Mapping[str, Json]]]:
    """Give path, method, path item and operation of each, by path and method."""
    count = 0
    for path in sorted(map(str, mapping(document.root.get("paths")))):
        if path.startswith("x-"):
            continue
        try:
            item = document.resolved(mapping(document.root["paths"])[path])
        except UnusablePart as reason:
            left_out.append(lenient.LeftOut(path[:100], str(reason)))
            continue
        for method in _METHODS:
            operation = item.get(method)
            if isinstance(operation, Mapping):
                count += 1
                if count > OPERATIONS_MAX:
                    why = f"there are more than {OPERATIONS_MAX:,} operations"
                    left_out.append(lenient.LeftOut(f"what follows {path[:100]}", why))
                    return
                yield path, method, item, operation


def _names(found: list[tuple[str, str, Mapping[str, Json], Mapping[str, Json]]]) -> list[str]:
    """Return the name of each: its `operationId` or its method and path, with a number where an earlier one has it."""
    names: list[str] = []
    free = FreeNames()
    for path, method, _, operation in found:
        given = operation.get("operationId")
        wanted = given if isinstance(given, str) and given.strip() else f"{method}_{path.strip('/') or 'root'}"
        names.append(free.take(identifier(wanted)[:_NAME_CHARS_MAX]))
    return names


class _OperationReader:
    """Reads operations one after the other."""

    def __init__(
        self, document: Document, base: str, given_headers: frozenset[str], converter: SchemaConverter
    ) -> None:
        self.without_output = 0
        self._document = document
        self._base = base
        self._given_headers = given_headers
        self._converter = converter

    def operation(
        self, name: str, path: str, method: str, item: Mapping[str, Json], operation: Mapping[str, Json]
    ) -> Operation:
        schemas = self._converter.collecting(Direction.REQUEST, VALUES_MAX)
        described = self._parameters(path, item, operation)
        parameters: list[OperationParameter] = []
        properties: dict[str, Json] = {}
        required: list[str] = []
        for argument, place, each in _arguments(described):
            parameter, schema = _parameter(argument, place, each)
            parameters.append(parameter)
            properties[argument] = _described(schemas.add(schema), each.get("description"))
            if each.get("required") is True or parameter.place is ParameterLocation.PATH:
                required.append(argument)
        body = body_of(self._document, operation, frozenset(properties), has_body=method not in _READS)
        if body is not None:
            properties |= {argument: schemas.add(schema) for argument, schema in body.schemas.items()}
            required += body.required
        input_schema: dict[str, Json] = {"type": "object", "properties": properties}
        input_schema |= {"required": required} if required else {}
        input_schema |= {"additionalProperties": False, **schemas.definitions()}
        title = f"{method.upper()} {path}"
        tool: dict[str, Json] = {
            "name": name,
            "title": title[:500],
            "description": _text(operation) or title[:500],
            "inputSchema": input_schema,
            "outputSchema": self._output_schema(method, operation),
            "annotations": _annotations(method),
        }
        base = self._base_of(item, operation)
        return Operation(
            name,
            method,
            f"/{path.removeprefix('/')}",
            base,
            tuple(parameters),
            None if body is None else body.body,
            tool,
        )

    def _base_of(self, item: Mapping[str, Json], operation: Mapping[str, Json]) -> str:
        servers = operation.get("servers", item.get("servers"))
        if not servers:
            return self._base
        address = server_address(self._document, servers)
        if _place(address) == _place(server_address(self._document, self._document.root.get("servers"))):
            return self._base  # it says again where the whole is served, which the operator's url may replace
        if not is_within(address, self._base):
            raise UnusablePart(f"it is served at {address[:100]}, another origin than the rest")
        return address

    def _output_schema(self, method: str, operation: Mapping[str, Json]) -> Json:
        try:
            return output_schema_of(self._document, self._converter, method, operation)
        except UnusablePart:
            self.without_output += 1
            return output_schema_of(self._document, self._converter, method, {})

    def _parameters(
        self, path: str, item: Mapping[str, Json], operation: Mapping[str, Json]
    ) -> list[tuple[ParameterLocation, Mapping[str, Json]]]:
        """Return the parameters, the operation's own in the place of the path's, by place in a request.

        What the path names and nobody describes is a text.
        """
        found: dict[tuple[ParameterLocation, str], Mapping[str, Json]] = {
            (ParameterLocation.PATH, name): {"name": name, "schema": {"type": "string"}}
            for name in PATH_TEMPLATE.findall(path)
            if name
        }
        in_path = {name for _, name in found}
        for listed in (item.get("parameters"), operation.get("parameters")):
            for each in filter(None, listed if isinstance(listed, list) else ()):
                described = self._document.resolved(each)
                name, given = described.get("name"), str(described.get("in")).lower()
                if not isinstance(name, str) or not name or given not in set(ParameterLocation):
                    raise UnusablePart("a parameter of it has no name, or stands in no part of a request")
                place = ParameterLocation(given)
                if not self._is_given(place, name) and (place is not ParameterLocation.PATH or name in in_path):
                    found[place, name] = described
        order = list(ParameterLocation)
        return [(place, each) for (place, _), each in sorted(found.items(), key=lambda one: order.index(one[0][0]))]

    def _is_given(self, place: ParameterLocation, name: str) -> bool:
        if place is ParameterLocation.COOKIE:
            return "cookie" in self._given_headers
        return place is ParameterLocation.HEADER and name.lower() in (self._given_headers | _NOT_PARAMETERS | _NOT_SENT)


def _place(address: str) -> str:
    """Return what tells addresses apart that may leave out the scheme, or a slash at the end."""
    return address[address.find("//") :].rstrip("/") if "//" in address else address


def _arguments(
    described: list[tuple[ParameterLocation, Mapping[str, Json]]],
) -> Iterator[tuple[str, ParameterLocation, Mapping[str, Json]]]:
    """Give each parameter with the name of its argument: of two of one name the later names its place too."""
    free = FreeNames()
    for place, each in described:
        wanted = identifier(str(each["name"]))
        yield free.take(wanted if wanted in free else f"{wanted}_{place}"), place, each


def _parameter(
    argument: str, place: ParameterLocation, described: Mapping[str, Json]
) -> tuple[OperationParameter, Json]:
    """Return a parameter and the schema of its values. Raises `UnusablePart`."""
    name = str(described["name"])
    content = mapping(described.get("content"))
    if content:
        media_type, media = next(iter(content.items()))
        is_json = "json" in str(media_type)
        parameter = OperationParameter(argument, name, place, _STYLES[place][0], explode=False, is_json=is_json)
        return parameter, mapping(media).get("schema", {}) if is_json else {"type": "string"}
    style = described.get("style") or _STYLES[place][0]
    if style not in _STYLES[place]:
        raise UnusablePart(f"its parameter {name[:40]!r} has the style {style!r:.40}, which a {place} does not have")
    explode = described.get("explode")
    return OperationParameter(
        argument,
        name,
        place,
        str(style),
        explode=explode if isinstance(explode, bool) else style in {"form", "deepObject"},
        allow_reserved=described.get("allowReserved") is True,
    ), described.get("schema", {})


def _described(schema: Json, description: Json) -> Json:
    if not isinstance(description, str) or not description.strip() or not isinstance(schema, Mapping):
        return schema
    return {**schema, "description": description}


def _text(operation: Mapping[str, Json]) -> str:
    texts = [operation.get(key) for key in ("summary", "description")]
    parts = list(dict.fromkeys(each.strip() for each in texts if isinstance(each, str) and each.strip()))
    if len(parts) > 1:
        parts[0] = sentence(parts[0])
    return "\n\n".join((["Deprecated."] if operation.get("deprecated") is True else []) + parts)


def _annotations(method: str) -> Json:
    if method in _READS:
        return {"readOnlyHint": True}
    if method in _REPLACES:
        return {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True}
    return {"readOnlyHint": False}


def _few(left_out: list[lenient.LeftOut]) -> tuple[lenient.LeftOut, ...]:
    if len(left_out) <= _LEFT_OUT_SHOWN:
        return tuple(left_out)
    more = lenient.LeftOut(f"{len(left_out) - _LEFT_OUT_SHOWN} more", "they are not named here")
    return (*left_out[:_LEFT_OUT_SHOWN], more)
