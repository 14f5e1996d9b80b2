"""Makes an example call of a tool from its schema: its required arguments, with values the schema allows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import isfinite

from ..models import Json, Schema, Tool
from .schemas import SchemaReader, parameters_of
from .signatures import short_literal

_DEPTH_MAX = 6
_TEXT_CHARS_MAX = 80
_PATTERN_CHARS_MAX = 200
_VALUE_CHARS_MAX = 1_000
"""A value that is longer is written as `...`."""
_READ_CHARS_MAX = 1_000
"""Of a longer name or description the beginning is read."""
_CANDIDATE_CHARS_MAX = 12
_REPEATS_MAX = 3
"""Patterns come from outside (CWE-1333). Without groups and alternatives one takes at most as many steps as the text
has characters, to the power of how often it repeats something: a few thousand here. No other is run."""

OF_FORMAT = {
    "date-time": "2026-01-31T12:00:00Z",
    "date": "2026-01-31",
    "time": "12:00:00Z",
    "duration": "PT1H",
    "email": "user@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com",
    "url": "https://example.com",
    "uri-reference": "https://example.com",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
    "regex": ".*",
    "json-pointer": "/name",
    "byte": "aGVsbG8=",
}
_OF_NAME = (
    ("url", "https://example.com"),
    ("uri", "https://example.com"),
    ("email", "user@example.com"),
    ("timezone", "Europe/London"),
    ("datetime", "2026-01-31T12:00:00Z"),
    ("timestamp", "2026-01-31T12:00:00Z"),
    ("date", "2026-01-31"),
    ("file", "notes.txt"),
    ("directory", "."),
    ("folder", "."),
    ("path", "."),
    ("query", "example"),
    ("repo", "example"),
    ("owner", "example"),
    ("branch", "main"),
    ("id", "123"),
    ("name", "example"),
)
_FOR_PATTERN = ("1", "123", "a", "abc", "A", "ABC-123", "a1", "0x1f", "1.0.0", "2026-01-31", "12:00", "#ffffff", "a/b")
_EXAMPLE_IN_TEXT = re.compile(
    r"(?:e\.g\.|for example|such as|example:?),?:?\s*[\"'`]([^\"'`\n]{1,60})[\"'`]", re.IGNORECASE
)


def example_call(tool: Tool, call: str) -> str:
    """Return a line that calls the tool, where code calls it as `call`: `await tools.git.git_log(repo_path=".")`."""
    aliases = {each.name: each.alias for each in parameters_of(tool)}
    given = [
        f"{aliases[name]}={short_literal(value, _VALUE_CHARS_MAX)}" for name, value in example_arguments(tool).items()
    ]
    return f"await {call}({', '.join(given)})"


def example_arguments(tool: Tool) -> dict[str, Json]:
    """Return values for the required arguments, by name: the schema's default, its example, or a plausible one."""
    maker = _ExampleMaker(SchemaReader(tool.input_schema))
    return {each.name: maker.value(each.schema, each.name, 0) for each in parameters_of(tool) if each.required}


class _ExampleMaker:
    """Makes values for the parts of one schema."""

    def __init__(self, reader: SchemaReader) -> None:
        self._reader = reader

    def value(self, schema: Schema, name: str, depth: int) -> Json:
        resolved = self._reader.resolved(schema)
        if not isinstance(resolved, Mapping) or depth > _DEPTH_MAX:
            return _text({}, name)
        for keyword in ("default", "const", "example"):
            given: Json = resolved.get(keyword)
            if given is not None:
                return given
        for keyword in ("examples", "enum"):
            offered = resolved.get(keyword)
            if isinstance(offered, list) and offered:
                first: Json = offered[0]
                return first
        for keyword in ("allOf", "anyOf", "oneOf"):
            parts = resolved.get(keyword)
            if isinstance(parts, list) and parts:
                return self._of_parts(keyword, parts, resolved, name, depth)
        return self._of_type(resolved, name, depth)

    def _of_parts(self, keyword: str, parts: list[Schema], whole: Mapping[str, Json], name: str, depth: int) -> Json:
        own = {key: value for key, value in whole.items() if key != keyword}
        if keyword == "allOf":
            for part in parts:
                resolved = self._reader.resolved(part)
                own = {**own, **joined(own, resolved)} if isinstance(resolved, Mapping) else own
            return self.value(own, name, depth + 1)
        for part in parts:
            resolved = self._reader.resolved(part)
            if isinstance(resolved, Mapping) and resolved.get("type") != "null":
                return self.value({**own, **joined(own, resolved)}, name, depth + 1)
        return None

    def _of_type(self, schema: Mapping[str, Json], name: str, depth: int) -> Json:
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((each for each in kind if each != "null"), "null")
        if kind is None:
            kind = "object" if "properties" in schema else "array" if "items" in schema else "string"
        match kind:
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, name, depth)
            case "integer" | "number":
                return number_within(schema, whole=kind == "integer")
            case "boolean":
                return True
            case "null":
                return None
            case _:
                return _text(schema, name)

    def _object(self, schema: Mapping[str, Json], depth: int) -> Json:
        root = self._reader.arguments(schema, 0)
        return {
            name: self.value(each, name, depth + 1) for name, each in root.properties.items() if name in root.required
        }

    def _array(self, schema: Mapping[str, Json], name: str, depth: int) -> Json:
        first = schema.get("prefixItems")
        if isinstance(first, list) and first:
            return [self.value(each, name, depth + 1) for each in first]
        items = schema.get("items")
        least = schema.get("minItems")
        count = min(least, 5) if isinstance(least, int) and least > 1 else 1
        one = self.value(items, _singular(name), depth + 1) if isinstance(items, Mapping) else "example"
        return [one] * count


def joined(own: Mapping[str, Json], part: Mapping[str, Json]) -> dict[str, Json]:
    """Return a part's keys; the properties and what is required stand beside the schema's own."""
    joined = dict(part)
    first, second = own.get("properties"), part.get("properties")
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        joined["properties"] = {**first, **second}
    needed, more = own.get("required"), part.get("required")
    if isinstance(needed, list) and isinstance(more, list):
        joined["required"] = [*needed, *more]
    return joined


def number_within(schema: Mapping[str, Json], *, whole: bool) -> Json:
    """Return 1, or the number nearest to it that a schema allows."""
    step = 1 if whole else 0.5
    least, most = _numeric(schema.get("minimum")), _numeric(schema.get("maximum"))
    above, below = _numeric(schema.get("exclusiveMinimum")), _numeric(schema.get("exclusiveMaximum"))
    multiple = _numeric(schema.get("multipleOf"))
    low = max((each for each in (least, None if above is None else above + step) if each is not None), default=None)
    high = min((each for each in (most, None if below is None else below - step) if each is not None), default=None)
    value = 1.0
    if low is not None and value < low:
        value = low
    if high is not None and value > high:
        value = high
    if multiple is not None and multiple > 0 and isfinite(nearest := multiple * -(-value // multiple)):
        value = nearest
    return int(-(-value // 1)) if whole or value.is_integer() else value


def _numeric(value: object) -> float | None:
    usable = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**53
    return float(value) if usable and isinstance(value, int | float) else None


def _text(schema: Mapping[str, Json], name: str) -> str:
    least, most = schema.get("minLength"), schema.get("maxLength")
    low = least if isinstance(least, int) else 0
    high = most if isinstance(most, int) else _TEXT_CHARS_MAX
    pattern = schema.get("pattern")
    candidates = list(_candidates(schema, name))
    for text in candidates:
        if low <= len(text) <= high and (not isinstance(pattern, str) or _matches(pattern, text)):
            return text
    text = candidates[-1]
    return (text * (low // len(text) + 1))[: max(low, 1)] if 0 < low <= _TEXT_CHARS_MAX else text[: max(high, 0)]


def _candidates(schema: Mapping[str, Json], name: str) -> Iterator[str]:
    about = schema.get("description")
    in_text = _EXAMPLE_IN_TEXT.search(about[:_READ_CHARS_MAX]) if isinstance(about, str) else None
    kind = schema.get("format")
    if isinstance(kind, str) and kind in OF_FORMAT:
        yield OF_FORMAT[kind]
    if in_text:
        yield in_text[1]
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name[:_READ_CHARS_MAX]).lower()
    for part, value in _OF_NAME:
        if part in (words.split("_") if len(part) <= 3 else (words,)) or (len(part) > 3 and part in words):  # noqa: PLR2004 - short words stand alone
            yield value
    if isinstance(schema.get("pattern"), str):
        yield from _FOR_PATTERN
    yield "example"


def _matches(pattern: str, text: str) -> bool:
    repeats = sum(map(pattern.count, "*+?{"))
    if repeats > _REPEATS_MAX or "(" in pattern or "|" in pattern:
        return False
    if len(pattern) > _PATTERN_CHARS_MAX or len(text) > _CANDIDATE_CHARS_MAX:
        return False
    try:
        return re.search(pattern, text) is not None
    except (re.error, RecursionError, OverflowError):
        return False


def _singular(name: str) -> str:
    return name.removesuffix("s")
