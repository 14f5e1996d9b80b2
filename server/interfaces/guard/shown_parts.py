"""What of a server's message a client or a model may read: every part of it that the filter has to look at.

A security boundary. A member that is not known here is looked at whole, with its name: what is left alone is what the
protocol itself gives a meaning that no value of a person has, and only where it is written as such.

Definitions (of tools and prompts, and what a server says of itself) keep their names, types and keys, since they are
what calls are written by: of their texts alone known values are replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from ....sandbox.job import Json
from ...base.lru import Lru
from ...privacy.privacy import is_harmless
from ...privacy.token_texts import TOKEN
from ...privacy.tokens.parts import Exchange, Text, Tree, part_of
from .base64_texts import exchanged_base64
from .messages import Message

_ESCAPED_TOKEN = re.compile(r"%5[Bb]([A-Z][A-Z0-9_]{0,31}_[0-9a-hjkmnp-tv-z]{10})%5[Dd]")


def exchanged_uri(uri: str, exchange: Exchange) -> str:
    """Return a URI with another text in it; tokens that it gains are escaped."""
    shown = str(exchange(Text(uri)))
    return uri if shown == uri else TOKEN.sub(lambda token: f"%5B{token[0][1:-1]}%5D", shown)


def with_plain_tokens(uri: str) -> str:
    """Return a URI with the brackets of its tokens as they are elsewhere."""
    return _ESCAPED_TOKEN.sub(r"[\1]", uri)


KEPT_MAX = 10_000
"""Handles that were changed and are remembered: the newest."""


class OpaqueHandles:
    """The handles of one server that were not shown as they are."""

    def __init__(self) -> None:
        self._given: Lru[str, str] = Lru(KEPT_MAX)

    def shown(self, handle: str, exchange: Exchange) -> str:
        """Return a handle as the client gets it."""
        shown = str(exchange(Text(handle)))
        if shown != handle:
            self._given[shown] = handle
        return shown

    def given(self, shown: str) -> str:
        """Return a handle as the server gave it."""
        return self._given.get(shown, shown)


_OF_STRINGS = frozenset({"contentEncoding", "contentMediaType", "format", "maxLength", "minLength", "pattern"})
_ONE = frozenset(
    {"additionalProperties", "contains", "else", "items", "then", "unevaluatedItems", "unevaluatedProperties"}
)
_SEVERAL = frozenset({"allOf", "anyOf", "prefixItems"})
_NAMED = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
_NUMBER_TYPES = frozenset({"integer", "number"})


def loosened(schema: Json) -> Json:
    """Return a schema that also takes what it took with tokens in it."""
    if not isinstance(schema, Mapping):
        return schema
    made: dict[str, Json] = {}
    for key, value in schema.items():
        if key == "type":
            made[key] = _types(value)
        elif key == "oneOf" and isinstance(value, list):  # of which more than one may now hold
            made["anyOf"] = [loosened(each) for each in value]
        elif key in _ONE:
            made[key] = [loosened(each) for each in value] if isinstance(value, list) else loosened(value)
        elif key in _SEVERAL and isinstance(value, list):
            made[key] = [loosened(each) for each in value]
        elif key in _NAMED and isinstance(value, Mapping):
            made[key] = {name: loosened(inner) for name, inner in value.items()}
        elif key not in _OF_STRINGS:
            made[key] = value
    return made


def _types(value: Json) -> Json:
    kinds = value if isinstance(value, list) else [value]
    has_numbers = any(kind in _NUMBER_TYPES for kind in kinds if isinstance(kind, str))
    return [*kinds, "string"] if has_numbers and "string" not in kinds else value


DEFINITIONS = frozenset({"initialize", "prompts/list", "server/discover", "tools/list"})
"""Requests whose answers define what can be asked, and hold no data."""

_TEXTS = frozenset(
    "data description displayName instructions message name reason statusMessage systemPrompt text title".split()  # noqa: SIM905 - a table of words
)
_WORDS = frozenset(
    "action audience cacheScope createdAt lastModified lastUpdatedAt level logger method mimeType mode model "  # noqa: SIM905
    "resultType role status stopReason type".split()
)
"""Members that hold a word of the protocol, or of the server's program; looked at where they hold anything else."""
_NUMBERS = frozenset(
    "code hasMore isError maxTokens pollInterval priority progress size temperature total ttl ttlMs".split()  # noqa: SIM905
)
_OF_THE_CLIENT = frozenset({"progressToken", "requestId"})
"""Members that repeat what the client itself chose."""
_HANDLES = frozenset({"elicitationId", "id", "nextCursor", "requestState", "subscriptionId", "taskId", "toolUseId"})
"""Members that a client gives back as they are, and nobody reads."""
_URIS = frozenset({"uri", "uriTemplate"})
_INNER = frozenset(
    "annotations completion content contents messages modelPreferences notifications params resource "  # noqa: SIM905
    "resources resourceTemplates task".split()
)
_KNOWN_TEXTS = _TEXTS | _WORDS | _OF_THE_CLIENT | _HANDLES | _URIS | {"blob", "url"}
_WORD = re.compile(r"[A-Za-z0-9_.+:/-]{1,100}(?:; ?[a-z-]{1,30}=[\w.\"-]{1,60}){0,4}")
_WITH_PREFIX = re.compile(r"([a-z0-9.-]+)/.+")
_OF_THE_PROTOCOL = frozenset({"mcp", "modelcontextprotocol"})
"""Labels of prefixes of `_meta` keys that the protocol has reserved. Source: …/specification/2026-07-28/basic#_meta"""
_TRACE = frozenset({"traceparent", "tracestate"})

_DEFINED_TEXTS = frozenset({"$comment", "description", "instructions", "message", "title"})
_DEFINED_VALUES = frozenset({"const", "default", "enum", "enumNames", "examples"})


@dataclass(frozen=True, slots=True)
class ShownParts:
    """The walk over one message. `method` is what it answers, if it is an answer; `key` names what is completed."""

    method: str | None = None
    key: str = "values"
    handles: OpaqueHandles = field(default_factory=OpaqueHandles)

    @property
    def defines(self) -> bool:
        """Whether the message is a definition."""
        return self.method in DEFINITIONS

    def exchanged(self, message: Message, exchange: Exchange) -> Message:
        """Return the message with another text or value for each that may be personal."""
        made: Message = {}
        for key, value in message.items():
            if key in {"jsonrpc", "id", "method"}:
                made[key] = value
            elif key == "result" and self.defines:
                made[key] = _defined(value, exchange)
            elif key == "error" and isinstance(value, Mapping):
                made[key] = self._error(value, exchange)
            elif key in {"result", "params"} and isinstance(value, Mapping):
                made[key] = self._object(value, exchange)
            else:
                made.update(_whole(key, value, exchange))
        return made

    def _error(self, error: Mapping[str, Json], exchange: Exchange) -> dict[str, Json]:
        """Return an error; its data may be the questions that a server asks before it goes on."""
        made: dict[str, Json] = {}
        for key, value in error.items():
            if key == "data" and isinstance(value, Mapping) and "elicitations" in value:
                questions = value["elicitations"]
                others = {name: inner for name, inner in value.items() if name != "elicitations"}
                made[key] = {**self._object(others, exchange), "elicitations": self._inner(questions, exchange)}
            elif key == "data":
                made.update(_whole(key, value, exchange))
            else:
                made.update(self._object({key: value}, exchange))
        return made

    def _object(self, value: Mapping[str, Json], exchange: Exchange) -> dict[str, Json]:
        made: dict[str, Json] = {}
        for key, inner in value.items():
            made.update(self._member(key, inner, value, exchange))
        return made

    def _member(self, key: str, value: Json, around: Mapping[str, Json], exchange: Exchange) -> Mapping[str, Json]:
        if isinstance(value, str) and key in _KNOWN_TEXTS:
            return {key: self._text(key, value, around, exchange)}
        if key == "_meta" and isinstance(value, Mapping):
            return {key: _meta(value, exchange)}
        if key in {"requestedSchema", "tools"}:
            return {key: _defined(value, exchange)}
        if key == "values":
            return {key: next(iter(_whole(self.key, value, exchange).values()))}
        if key == "icons" or key in _OF_THE_CLIENT or (key in _NUMBERS and isinstance(value, int | float | None)):
            return {key: value}
        if key == "resourceSubscriptions" and isinstance(value, list):
            return {key: [exchanged_uri(uri, exchange) if isinstance(uri, str) else uri for uri in value]}
        if key == "inputRequests" and isinstance(value, Mapping):
            return {key: {name: self._inner(each, exchange) for name, each in value.items()}}
        if key in _INNER and isinstance(value, Mapping | list):
            return {key: self._inner(value, exchange)}
        if key == "structuredContent":
            return {key: value if is_harmless(value) else exchange(Tree(value))}
        return _whole(key, value, exchange)

    def _inner(self, value: Json, exchange: Exchange) -> Json:
        if isinstance(value, Mapping):
            return self._object(value, exchange)
        if isinstance(value, list):
            return [self._inner(each, exchange) for each in value]
        return value if is_harmless(value) else exchange(part_of(value))

    def _text(self, key: str, value: str, around: Mapping[str, Json], exchange: Exchange) -> Json:
        if not value or key in _OF_THE_CLIENT or (key in _WORDS and _WORD.fullmatch(value)):
            return value
        if key == "name" and around.get("type") == "tool_use":
            return value
        if key == "url" and around.get("mode") == "url":
            return value  # it is opened by the user's browser
        if key in _HANDLES:
            return self.handles.shown(value, exchange)
        if key in _URIS:
            return exchanged_uri(value, exchange)
        if key == "blob" or (key == "data" and around.get("type") in {"audio", "image"}):
            return exchanged_base64(value, str(around.get("mimeType", "")), exchange)
        return exchange(Text(value))


def _whole(key: str, value: Json, exchange: Exchange) -> Mapping[str, Json]:
    """Return one member that is looked at as a whole: its name says what stands in it, and may be personal itself."""
    if is_harmless(value):
        return {key: value}
    if key == "data":  # a name that says nothing
        return {key: exchange(Text(value) if isinstance(value, str) else Tree(value))}
    return cast("Mapping[str, Json]", exchange(Tree({key: value})))


def _meta(value: Mapping[str, Json], exchange: Exchange) -> dict[str, Json]:
    made: dict[str, Json] = {}
    for key, inner in value.items():
        found = _WITH_PREFIX.fullmatch(key)
        is_reserved = found is not None and not _OF_THE_PROTOCOL.isdisjoint(found[1].split("."))
        is_of_the_protocol = key in _OF_THE_CLIENT | _TRACE or is_reserved
        made.update({key: inner} if is_of_the_protocol else _whole(key, inner, exchange))
    return made


def _defined(value: Json, exchange: Exchange) -> Json:
    """Return a definition: a schema, a tool, what a server says of itself."""
    if isinstance(value, Mapping):
        return {key: _defined_member(key, inner, exchange) for key, inner in value.items()}
    return [_defined(each, exchange) for each in value] if isinstance(value, list) else value


def _defined_member(key: str, value: Json, exchange: Exchange) -> Json:
    if key in _DEFINED_TEXTS and isinstance(value, str):
        return exchange(Text(value)) if value else value
    if key == "outputSchema":
        return loosened(_defined(value, exchange))
    if key in _DEFINED_VALUES:
        return _each_text(value, lambda text: exchange(Text(text)) if text else text)
    return _defined(value, exchange)


def _each_text(value: Json, change: Callable[[str], Json]) -> Json:
    """Return a value with its texts changed and its keys as they are."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _each_text(inner, change) for key, inner in value.items()}
    return [_each_text(each, change) for each in value] if isinstance(value, Sequence) else value
