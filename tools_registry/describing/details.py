"""What is shown of a tool at each level of detail: a model pays only for what it asked to see.

Per tool, in tokens: `name` 10, `summary` 30, `signature` 70, `full` 400 on average.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from ..catalog import Catalog
from ..models import Json, Tool
from .examples import example_call
from .schemas import parameters_of
from .signatures import LearnedShape, returns_with_doubt, signature

_SENTENCE_CHARS_MAX = 160
_SEARCHED_CHARS = 4_000
"""Where the first sentence is looked for."""
_ARGUMENTS_MAX = 15
_SUMMARY_RETURN_CHARS_MAX = 160
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|incl|no|fig|mr|mrs|dr)|\b[a-z])\.$", re.IGNORECASE)
_ABBREVIATION_CHARS = 10
_END = re.compile(
    r"(?<=[.!?])\s+(?=[^a-z])|(?<=[\u3002\uff01\uff1f])|\n(?:[^\S\n]*\n)+|\n[^\S\n]*(?=[-*#\u2022]|\d+\.)"
)


class DetailLevel(StrEnum):
    """How much is shown of a tool."""

    NAME = "name"
    SUMMARY = "summary"
    SIGNATURE = "signature"
    FULL = "full"


class AnswerShapes(Protocol):
    """Knows which shape a tool's answers were seen to have."""

    def get(self, full_name: str) -> LearnedShape | None:
        """Return what was learned of a tool, if anything."""
        ...


@dataclass(frozen=True, slots=True)
class Describer:
    """Describes a catalog's tools, by the names that code calls them by."""

    catalog: Catalog
    learned: AnswerShapes | None = None
    asks: Callable[[Tool], bool] = lambda _tool: False
    """Returns whether a user is asked before a call of a tool."""

    def describe(self, tool: Tool, level: DetailLevel = DetailLevel.FULL) -> dict[str, Json]:
        """Return `name server category`, and per level `description arguments returns`, `description signature` or all.

        `returns`, the type of what code gets, is left out where it is not known. `needs_approval` is there where a user
        is asked before a call, unless a signature says so.

        At `full`: name, server, category, description, input_schema, output_schema, annotations, signature, example,
        and use_cases where there are any.
        """
        described: dict[str, Json] = {"name": tool.name, "server": tool.server, "category": tool.category}
        asks: dict[str, Json] = {"needs_approval": True} if self.asks(tool) else {}
        match level:
            case DetailLevel.NAME:
                return described | asks
            case DetailLevel.SUMMARY:
                described |= {"description": first_sentence(tool.description), "arguments": argument_names(tool)}
                known = self.returns(tool, _SUMMARY_RETURN_CHARS_MAX)
                return described | ({"returns": known} if known else {}) | asks
            case DetailLevel.SIGNATURE:
                return described | {"description": first_sentence(tool.description), "signature": self.signature(tool)}
            case DetailLevel.FULL:
                described |= {
                    "description": tool.description,
                    "input_schema": _plain(tool.input_schema),
                    "output_schema": _plain(tool.output_schema),
                    "annotations": dict(tool.annotations),
                    "signature": self.signature(tool),
                    "example": example_call(tool, self.call(tool)),
                }
                return described | ({"use_cases": list(tool.use_cases)} if tool.use_cases else {})

    def call(self, tool: Tool) -> str:
        """Return how code names a tool: `tools.<server>.<tool>`."""
        return ".".join(("tools", *self.catalog.alias(tool)))

    def signature(self, tool: Tool) -> str:
        """Return a tool's signature, with the learned return type where its server publishes none."""
        return signature(tool, self.call(tool), self._learned(tool), asks=self.asks(tool))

    def returns(self, tool: Tool, chars: int) -> str:
        """Return the type of what code gets, in about so many characters; empty where it is not known.

        It says whether that was seen once alone, and whether keys depend on the arguments.
        """
        return returns_with_doubt(tool, self._learned(tool), chars)

    def _learned(self, tool: Tool) -> LearnedShape | None:
        return None if self.learned is None else self.learned.get(tool.full_name)


def first_sentence(description: str) -> str:
    """Return the first sentence, on one line, without the full stop; cut with … where it is very long."""
    text = description.lstrip()[:_SEARCHED_CHARS].rstrip()
    start = 0
    first = text
    for end in _END.finditer(text):
        if end.start() > start and not _ABBREVIATION.search(text, end.start() - _ABBREVIATION_CHARS, end.start()):
            first = text[: end.start()]
            break
    line = " ".join(first.split()).lstrip("#*- ").removesuffix(".")
    if len(line) <= _SENTENCE_CHARS_MAX:
        return line
    return f"{line[:_SENTENCE_CHARS_MAX].rsplit(' ', 1)[0]}…"


def argument_names(tool: Tool) -> list[str]:
    """Return the names of a tool's arguments, the required ones first; of very many the first, and how many more."""
    names = [each.name for each in parameters_of(tool)]
    more = len(names) - _ARGUMENTS_MAX
    return names if more <= 0 else [*names[:_ARGUMENTS_MAX], f"… {more} more"]


def _plain(schema: Mapping[str, Json] | bool | None) -> Json:
    return dict(schema) if isinstance(schema, Mapping) else schema
