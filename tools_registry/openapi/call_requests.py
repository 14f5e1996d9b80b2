"""Security boundary: makes the request of a call. No value leaves its place in the address, and none adds a header.

Source: OpenAPI 3.1.1, "Style Values" and "Style Examples"; RFC 6570; RFC 9110, section 5.5.
"""

from __future__ import annotations

import base64
import binascii
import json
import mimetypes
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import cast
from urllib.parse import quote, quote_plus, unquote

import httpx2

from ..charsets import charset_of
from ..models import Json
from .bodies import Body, BodyKind, FieldEncoding
from .document import is_within, path_and_query
from .operations import PATH_TEMPLATE, Operation, OperationParameter, ParameterLocation

_SEGMENT = "!$'()*+,:=@"
"""Marks of RFC 3986 that mean nothing within a segment of a path, beside those that are never escaped."""
_LITERAL = "/%&;" + _SEGMENT
_SEGMENT_ENDS = re.compile(r"[/\\]")
_RESERVED = ":/?[]@!$'()*,;"
"""What `allowReserved` leaves as it is: not what ends a query or parts one."""
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
_SEPARATORS = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}
_DEEP_MAX = 5


class UnsendableArguments(ValueError):
    """The arguments cannot be sent; the text says why."""


def request_of(
    client: httpx2.AsyncClient, operation: Operation, arguments: Mapping[str, Json], headers: Mapping[str, str]
) -> httpx2.Request:
    """Return the request of a call; `headers` are the operator's. Raises `UnsendableArguments`."""
    base, query = path_and_query(operation.base)
    by_place: dict[ParameterLocation, list[tuple[OperationParameter, Json]]] = {
        place: [] for place in ParameterLocation
    }
    for each in operation.parameters:
        value = arguments.get(each.argument)
        if value is not None:
            by_place[each.place].append((each, json.dumps(value, allow_nan=False) if each.is_json else value))
    pairs = [pair for each, value in by_place[ParameterLocation.QUERY] for pair in _query(each, value)]
    path = _path(operation.path, by_place[ParameterLocation.PATH])
    address = base + path + ("?" if query or pairs else "") + "&".join(([query] if query else []) + pairs)
    sent = {"accept": "application/json, */*;q=0.5"}
    sent |= {each.name: _header(each, value) for each, value in by_place[ParameterLocation.HEADER]}
    cookies = "; ".join(pair for each, value in by_place[ParameterLocation.COOKIE] for pair in _query(each, value))
    sent |= {"cookie": cookies} if cookies else {}
    given = {name.lower() for name in headers}
    sent = {name: value for name, value in sent.items() if name.lower() not in given}
    try:
        request = _with_body(client, operation, address, arguments, {**sent, **headers})
    except httpx2.InvalidURL as error:
        raise UnsendableArguments(f"the address of the request cannot be used: {error!s:.100}") from None
    if not is_within(str(request.url), operation.base):
        raise UnsendableArguments("the request would go to another origin")
    return request


def _path(template: str, given: Iterable[tuple[OperationParameter, Json]]) -> str:
    values = {each.name: (each, value) for each, value in given}

    def expanded(found: re.Match[str]) -> str:
        if found[1] not in values:
            raise UnsendableArguments(f"the part {found[1][:40]!r} of its path has no value")
        parameter, value = values[found[1]]
        text = _path_value(parameter, value)
        if not text:
            raise UnsendableArguments(f"{parameter.argument} stands in the path and must not be empty")
        return text

    pieces = PATH_TEMPLATE.split(template)
    literal = [quote(piece, safe=_LITERAL) for piece in pieces[::2]]
    names = list(PATH_TEMPLATE.finditer(template))
    path = literal[0] + "".join(expanded(name) + after for name, after in zip(names, literal[1:], strict=True))
    # A server takes such a segment for another path: that of another operation, which policy may not allow. Some
    # servers decode escaped slashes before they divide a path.
    if any(segment in {".", ".."} for segment in _SEGMENT_ENDS.split(unquote(path))):
        raise UnsendableArguments("a part of its path would be a dot or two, which leads elsewhere")
    return path


def _path_value(parameter: OperationParameter, value: Json) -> str:
    name, explode = quote(parameter.name, safe=""), parameter.explode
    if isinstance(value, list):
        items = [_escaped(each) for each in value]
        if parameter.style == "label":
            return "".join(f".{each}" for each in items) if explode else "." + ",".join(items)
        if parameter.style == "matrix":
            return "".join(f";{name}={each}" for each in items) if explode else f";{name}=" + ",".join(items)
        return ",".join(items)
    if isinstance(value, Mapping):
        entries = [(_escaped(key), _escaped(each)) for key, each in value.items()]
        mark = {"label": ".", "matrix": ";"}.get(parameter.style, ",")
        if explode:
            text = mark.join(f"{key}={each}" for key, each in entries)
            return text if parameter.style == "simple" else mark + text
        text = ",".join(f"{key},{each}" for key, each in entries)
        return {"label": f".{text}", "matrix": f";{name}={text}"}.get(parameter.style, text)
    text = _escaped(value)
    return {"label": f".{text}", "matrix": f";{name}={text}"}.get(parameter.style, text)


def _query(parameter: OperationParameter, value: Json) -> Iterator[str]:
    """Yield `name=value` for each value, as the style has it."""
    safe = _RESERVED if parameter.allow_reserved else ""
    name = quote(parameter.name, safe="[]")
    if parameter.style == "deepObject":
        yield from _deep(name, value, safe, 0)
    elif isinstance(value, list):
        items = [quote(_text(each), safe=safe) for each in value]
        if parameter.explode:
            yield from (f"{name}={each}" for each in items)
        elif items:
            yield f"{name}={_SEPARATORS[parameter.style].join(items)}"
    elif isinstance(value, Mapping):
        entries = [(quote(str(key), safe=""), quote(_text(each), safe=safe)) for key, each in value.items()]
        if parameter.explode:
            yield from (f"{key}={each}" for key, each in entries)
        elif entries:
            yield f"{name}=" + _SEPARATORS[parameter.style].join(f"{key},{each}" for key, each in entries)
    else:
        yield f"{name}={quote(_text(value), safe=safe)}"


def _deep(name: str, value: Json, safe: str, depth: int) -> Iterator[str]:
    if depth > _DEEP_MAX:
        raise UnsendableArguments(f"a value in its query is nested deeper than {_DEEP_MAX} levels")
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _deep(f"{name}[{quote(str(key), safe='')}]", each, safe, depth + 1)
    elif isinstance(value, list):
        # No specification says how: lists of texts are repeated, and what has parts is numbered, to stay together.
        for at, each in enumerate(value):
            here = f"{name}[{at}]" if not depth or isinstance(each, Mapping | list) else name
            yield from _deep(here, each, safe, depth + 1)
    else:
        yield f"{name}={quote(_text(value), safe=safe)}"


def _header(parameter: OperationParameter, value: Json) -> str:
    if isinstance(value, list):
        text = ",".join(map(_text, value))
    elif isinstance(value, Mapping):
        mark = "=" if parameter.explode else ","
        text = ",".join(f"{key}{mark}{_text(each)}" for key, each in value.items())
    else:
        text = _text(value)
    if not _HEADER_VALUE.fullmatch(text):
        raise UnsendableArguments(f"{parameter.argument} is sent as a header and must be ASCII text on one line")
    return text


def _escaped(value: Json) -> str:
    return quote(_text(value), safe="")


def _text(value: Json) -> str:
    """Return a value as it is written outside JSON."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise UnsendableArguments("a text in it holds half of a character") from None
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, allow_nan=False)


def _with_body(
    client: httpx2.AsyncClient,
    operation: Operation,
    address: str,
    given: Mapping[str, Json],
    headers: Mapping[str, str],
) -> httpx2.Request:
    body = operation.body
    method = operation.method.upper()
    if body is None or not (content := _content(body, given)):
        return client.build_request(method, address, headers=headers)
    (value,) = content
    if body.kind is BodyKind.MULTIPART:
        own = {name: each for name, each in headers.items() if name.lower() != "content-type"}
        return client.build_request(method, address, headers=own, files=list(_parts(body, value)))
    if not any(name.lower() == "content-type" for name in headers):
        headers = {"content-type": body.media_type, **headers}
    return client.build_request(method, address, headers=headers, content=_written(body, value))


def _content(body: Body, given: Mapping[str, Json]) -> list[Json]:
    """Return the value of the body as a list of one, or an empty list where the call gives none."""
    if body.argument:
        return [given[body.argument]] if given.get(body.argument) is not None else []
    fields: dict[str, Json] = {name: given[argument] for argument, name in body.fields.items() if argument in given}
    return [fields] if fields or body.required else []


def _written(body: Body, value: Json) -> bytes:
    if body.kind is BodyKind.JSON:
        return _json(value)
    if body.kind is BodyKind.LINES:
        lines = value if isinstance(value, list) else [value]
        return b"".join(_json(each) + b"\n" for each in lines)
    if body.kind is BodyKind.FORM:
        return "&".join(_form_pairs(body, value)).encode()
    if not isinstance(value, str):
        raise UnsendableArguments(f"{body.argument} must be a text")
    return _encoded(body, value) if body.kind is BodyKind.TEXT else _bytes(body.argument, value)


def _json(value: Json) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        raise UnsendableArguments("a text in it holds half of a character, or a number is not finite") from None


def _encoded(body: Body, text: str) -> bytes:
    """Return a text in the character set of its media type."""
    charset = charset_of(body.media_type) or "utf-8"
    try:
        return _text(text).encode(charset)
    except UnicodeEncodeError:
        raise UnsendableArguments(f"{body.argument} has characters that {charset} does not have") from None


def _form_pairs(body: Body, value: Json) -> Iterator[str]:
    """Yield `name=value` for each field and each item of a list, or as the encoding of the field has it."""
    for name, each in _fields(value):
        encoding = body.encodings.get(name, _PLAIN)
        if encoding.style:
            yield from _query(_as_parameter(name, encoding), each)
            continue
        for one in each if isinstance(each, list) and not encoding.is_json else [each]:
            yield f"{quote_plus(name)}={quote_plus(_text(one))}"


def _parts(body: Body, value: Json) -> Iterator[tuple[str, tuple[str | None, bytes, str]]]:
    for name, each in _fields(value):
        encoding = body.encodings.get(name, _PLAIN)
        if encoding.style and name not in body.files:
            for pair in _query(_as_parameter(name, encoding), each):
                key, _, text = pair.partition("=")
                yield unquote(key), (None, unquote(text).encode(), _TEXT_TYPE)
            continue
        for one in each if isinstance(each, list) and not encoding.is_json else [each]:
            if name in body.files:
                yield name, _file(name, one, encoding)
            else:
                kind = "application/json" if isinstance(one, dict | list) else _TEXT_TYPE
                yield name, (None, _text(one).encode(), encoding.content_type or kind)


def _file(name: str, value: Json, encoding: FieldEncoding) -> tuple[str, bytes, str]:
    """Return name, bytes and media type of a file: as the argument has it, else as the document or the name says."""
    given = value if isinstance(value, Mapping) else {"data": value}
    filename = given.get("filename") or name
    described = "" if "*" in encoding.content_type else encoding.content_type
    guessed = mimetypes.guess_type(str(filename))[0]
    kind = str(given.get("content_type") or guessed or described or "application/octet-stream")
    if not (_HEADER_VALUE.fullmatch(kind) and str(filename).isprintable()):
        raise UnsendableArguments(f"the filename and content_type of {name} must be text on one line")
    return _text(str(filename)), _bytes(name, given.get("data")), kind


_PLAIN = FieldEncoding()
_TEXT_TYPE = "text/plain; charset=utf-8"


def _as_parameter(name: str, encoding: FieldEncoding) -> OperationParameter:
    return OperationParameter(
        name, name, ParameterLocation.QUERY, encoding.style, encoding.explode, allow_reserved=encoding.allow_reserved
    )


def _fields(value: Json) -> Iterator[tuple[str, Json]]:
    if not isinstance(value, Mapping):
        raise UnsendableArguments("the body is a form and must be an object of its fields")
    return ((name, each) for name, each in value.items() if each is not None)


def _bytes(argument: str, value: Json) -> bytes:
    try:
        return base64.b64decode(cast("str", value), validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise UnsendableArguments(f"{argument} takes bytes in base64, and this is not valid base64") from None
