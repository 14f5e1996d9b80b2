"""How much is known of upstream tools, and what it spares a model to read."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

if TYPE_CHECKING:
    from ....tools_registry.models import Tool

_CHARS_PER_TOKEN = 4


class RegistryReport(TypedDict):
    """How much is known of upstream tools, and what it spared a model.

    Tokens are estimated, at four characters each: `tokens_of_all_definitions` is what every client would pay that loads
    all names, descriptions and schemas, `tokens_told` what was sent to models of tools since the start. `tokens_saved`
    is the difference, and negative once more was sent than all definitions hold.
    """

    servers: int
    connected: int
    tools: int
    categories: int
    tokens_of_all_definitions: int
    tokens_told: int
    tokens_saved: int


def report_of(
    servers: Collection[str], states: Sequence[str], tools: Sequence[Tool], chars: int, sent_chars: int
) -> RegistryReport:
    """Return the report on these servers with their states, and tools whose definitions have so many characters."""
    whole, sent = chars // _CHARS_PER_TOKEN, sent_chars // _CHARS_PER_TOKEN
    return RegistryReport(
        servers=len(servers),
        connected=states.count("connected"),
        tools=len(tools),
        categories=len({tool.category for tool in tools}),
        tokens_of_all_definitions=whole,
        tokens_told=sent,
        tokens_saved=whole - sent,
    )


def published_chars(tools: Iterable[Tool]) -> int:
    """Return how long the definitions are that a client would load: names, descriptions and input schemas."""
    return sum(
        len(tool.name) + len(tool.description) + len(json.dumps(tool.input_schema, default=dict)) for tool in tools
    )
