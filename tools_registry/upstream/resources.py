"""What upstream servers have beside tools: resources, which code reads, and prompts, which it lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from mcp.types import EmbeddedResource

from ..errors import AnswerRefused
from ..json_lines import ReadJson
from ..models import Json
from .results import Keep, parsed_text, part_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp import Client
    from mcp.types import ReadResourceResult
    from pydantic import BaseModel

LISTED_MAX = 20_000
"""Resources or prompts of a server; a list that is longer has no end."""

_LEFT_OUT = {"meta", "icons", "annotations"}
_Page = tuple[Sequence["BaseModel"], str | None]
"""What one page lists, and the cursor of the next."""


async def read_contents(uri: str, result: ReadResourceResult, keep: Keep | None, read_large: ReadJson) -> Json:
    """Return what a resource holds: its text, parsed where it says that it is JSON, or a handle of a kept file.

    Several contents are a list, each with its `uri`. Raises `AnswerRefused`.
    """
    name = uri.rstrip("/").rpartition("/")[2] or "resource"
    blocks = [EmbeddedResource(type="resource", resource=each) for each in result.contents]
    parts = [
        cast("Mapping[str, Json]", await part_of(name, number, each, keep)) for number, each in enumerate(blocks, 1)
    ]
    if len(parts) != 1:
        return list(parts)
    text = parts[0].get("text")
    if not isinstance(text, str):
        return parts[0]
    return await parsed_text(text, read_large) if "json" in str(parts[0]["mime_type"]) else text


async def list_resources(client: Client) -> list[Json]:
    """Return `{uri, name, …}` of each resource, and `{uri_template, name, …}` of each kind of them."""
    if client.server_capabilities.resources is None:
        return []

    async def resources(cursor: str | None) -> _Page:
        page = await client.list_resources(cursor=cursor)
        return page.resources, page.next_cursor

    async def templates(cursor: str | None) -> _Page:
        page = await client.list_resource_templates(cursor=cursor)
        return page.resource_templates, page.next_cursor

    return [*await _all(resources), *await _all(templates)]


async def list_prompts(client: Client) -> list[Json]:
    """Return `{name, description, arguments: [{name, description, required}]}` of each prompt."""
    if client.server_capabilities.prompts is None:
        return []

    async def prompts(cursor: str | None) -> _Page:
        page = await client.list_prompts(cursor=cursor)
        return page.prompts, page.next_cursor

    return await _all(prompts)


async def _all(ask: Callable[[str | None], Awaitable[_Page]]) -> list[Json]:
    """Ask for all pages. Raises `AnswerRefused` where they have no end."""
    listed: list[Json] = []
    seen: set[str] = set()
    cursor: str | None = None
    while True:
        page, cursor = await ask(cursor)
        listed += [each.model_dump(mode="json", exclude_none=True, exclude=_LEFT_OUT) for each in page]
        if not cursor:
            return listed
        if cursor in seen or len(listed) > LISTED_MAX:
            raise AnswerRefused("The server never ends its list. Tell the server's author.")
        seen.add(cursor)
