"""Describes how texts among a tool's arguments have to be written: dates, times, addresses.

A server's own words never get through: a format of the schema is looked up, and of a description only patterns such as
`YYYY-MM-DD` are kept. Source: JSON Schema 2020-12 Validation, section 7.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..models import Json, Tool
from .schemas import Parameter, SchemaReader, parameters_of

_FORMATS: Mapping[str, str] = {
    "date": "YYYY-MM-DD",
    "date-time": "YYYY-MM-DDTHH:MM:SSZ",
    "time": "HH:MM:SSZ",
    "duration": "an ISO 8601 duration",
    "email": "an email address",
    "hostname": "a host name",
    "ipv4": "an IPv4 address",
    "ipv6": "an IPv6 address",
    "uri": "a URI",
    "url": "a URL",
    "uuid": "a UUID",
    "byte": "base64",
    "regex": "a regular expression",
}
_PATTERN = re.compile(r"(?<![A-Za-z])(?:[YyMmDdHhSs]{2,4}[-/:.T ]){1,5}[YyMmDdHhSs]{2,4}Z?(?![A-Za-z])")
_ISO = re.compile(r"\bISO[ -]?8601\b")
_IANA = re.compile(r"\bIANA\b")
_DESCRIPTION_CHARS_MAX = 500
_DEPTH_MAX = 3
_NODES_MAX = 60
_NOTES_MAX = 6
_PARAMETERS_MAX = 200
_KEY = re.compile(r"[A-Za-z_]\w{0,39}", re.ASCII)


def formats_of(tool: Tool) -> list[str]:
    """Return notes such as `since is YYYY-MM-DD` and `items[].mail is an email address`, at most six."""
    reader = SchemaReader(tool.input_schema)
    notes: dict[str, str] = {}
    for parameter in parameters_of(tool)[:_PARAMETERS_MAX]:
        for place, written in _Walk(reader).of(parameter):
            if len(notes) == _NOTES_MAX:
                return [*_together(notes), "…"]
            notes.setdefault(place, written)
    return _together(notes)


def _together(notes: Mapping[str, str]) -> list[str]:
    """State once what several arguments have in common."""
    places: dict[str, list[str]] = {}
    for place, written in notes.items():
        places.setdefault(written, []).append(place)
    return [f"{', '.join(sharing)} {'are' if len(sharing) > 1 else 'is'} {each}" for each, sharing in places.items()]


class _Walk:
    """A walk through one argument's schema, which visits a bounded number of places."""

    def __init__(self, reader: SchemaReader) -> None:
        self._reader = reader
        self._left = _NODES_MAX

    def of(self, parameter: Parameter) -> Iterator[tuple[str, str]]:
        return self._below(parameter.alias, parameter.schema, _DEPTH_MAX)

    def _below(self, place: str, schema: object, depth: int) -> Iterator[tuple[str, str]]:
        self._left -= 1
        if self._left < 0 or not isinstance(schema, Mapping):
            return
        found = self._reader.resolved(schema)
        if not isinstance(found, Mapping):
            return
        written = _written(found)
        if written:
            yield place, written
        for keyword in ("anyOf", "oneOf", "allOf"):
            for part in _parts(found.get(keyword)):
                yield from self._below(place, part, depth - 1) if depth > 0 else ()
        if depth <= 0:
            return
        yield from self._below(f"{place}[]", found.get("items"), depth - 1)
        properties = found.get("properties")
        for key, each in properties.items() if isinstance(properties, Mapping) else ():
            if _KEY.fullmatch(key):
                yield from self._below(f"{place}.{key}", each, depth - 1)


def _parts(value: Json) -> list[Json]:
    return list(value) if isinstance(value, list) else []


def _written(schema: Mapping[str, Json]) -> str | None:
    kind = schema.get("type")
    if "enum" in schema or "const" in schema or (kind not in (None, "string") and not _may_be_text(kind)):
        return None
    form = schema.get("format")
    if isinstance(form, str) and form in _FORMATS:
        return _FORMATS[form]
    description = schema.get("description")
    if not isinstance(description, str) or (kind is None and not _has_text(schema)):
        return None
    said = description[:_DESCRIPTION_CHARS_MAX]
    pattern = _PATTERN.search(said)
    if pattern is not None:
        return pattern[0]
    return "ISO 8601" if _ISO.search(said) else "an IANA time zone" if _IANA.search(said) else None


def _may_be_text(kind: Json) -> bool:
    return isinstance(kind, list) and "string" in kind


def _has_text(schema: Mapping[str, Json]) -> bool:
    """Return whether one of the alternatives of a schema without a type is a text."""
    parts = [*_parts(schema.get("anyOf")), *_parts(schema.get("oneOf"))]
    return any(isinstance(part, Mapping) and part.get("type") == "string" for part in parts)
