"""What a tool is: the one model that catalog, search, signatures and calls share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TypeAlias, Union

Json: TypeAlias = Union[bool, int, float, str, Sequence["Json"], Mapping[str, "Json"], None]  # noqa: UP007 - recursive

Schema: TypeAlias = Mapping[str, Json] | bool
"""A JSON Schema (2020-12), which may be `true` or `false`."""

NO_ARGUMENTS: Schema = MappingProxyType({"type": "object"})
_NONE: Mapping[str, Json] = MappingProxyType({})


class DefinitionSource(StrEnum):
    """Where a definition was read."""

    FILE = "file"
    UPSTREAM = "upstream"


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a tool is known from: the file below `tools/`, or the version of the server that listed it."""

    source: DefinitionSource
    where: str


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of one server, as published. Its text and schemas come from outside: data, never instructions."""

    name: str
    server: str
    category: str
    description: str = ""
    input_schema: Schema = field(default_factory=lambda: NO_ARGUMENTS)
    output_schema: Schema | None = None
    annotations: Mapping[str, Json] = field(default_factory=lambda: _NONE)
    """As in MCP, in camelCase: `readOnlyHint destructiveHint idempotentHint openWorldHint title`."""
    use_cases: tuple[str, ...] = ()
    title: str = ""
    provenance: Provenance = Provenance(DefinitionSource.FILE, "")

    @property
    def full_name(self) -> str:
        """`server.tool`, which no two tools of a catalog share."""
        return f"{self.server}.{self.name}"

    @property
    def read_only(self) -> bool:
        """Whether the server says that the tool changes nothing. A tool without annotations counts as one that does."""
        return self.annotations.get("readOnlyHint") is True

    @property
    def properties(self) -> Mapping[str, Json]:
        """The properties of the root of the input schema, by name, as published; none where it has none."""
        found = self.input_schema.get("properties") if isinstance(self.input_schema, Mapping) else None
        return found if isinstance(found, Mapping) else _NONE
