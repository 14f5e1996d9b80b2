"""What upstream servers have beside tools: resources, which code reads, and prompts, which it lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

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

LISTED_MAX = 1_000
"""Resources and prompts of a server that are listed."""


class _Page(Protocol):
    next_cursor: str | None


P = TypeVar("P", bound=_Page)


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
    pages = await _pages(lambda cursor: client.list_resources(cursor=cursor))
    templates = await _pages(lambda cursor: client.list_resource_templates(cursor=cursor))
    found: list[BaseModel] = [each for page in pages for each in page.resources]
    return _told([*found, *(each for page in templates for each in page.resource_templates)])


async def list_prompts(client: Client) -> list[Json]:
    """Return `{name, description, arguments: [{name, description, required}]}` of each prompt."""
    if client.server_capabilities.prompts is None:
        return []
    return _told(
        [each for page in await _pages(lambda cursor: client.list_prompts(cursor=cursor)) for each in page.prompts]
    )


async def _pages(ask: Callable[[str | None], Awaitable[P]]) -> list[P]:
    pages: list[P] = []
    seen: set[str] = set()
    cursor: str | None = None
    while True:
        pages.append(await ask(cursor))
        cursor = pages[-1].next_cursor
        if not cursor or len(pages) >= LISTED_MAX:
            return pages
        if cursor in seen:
            raise AnswerRefused("The server never ends its list. Tell the server's author.")
        seen.add(cursor)


def _told(listed: Sequence[BaseModel]) -> list[Json]:
    left_out = {"meta", "icons", "annotations"}
    return [each.model_dump(mode="json", exclude_none=True, exclude=left_out) for each in listed[:LISTED_MAX]]
