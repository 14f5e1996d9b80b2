"""What upstream servers have beside tools: resources, which code reads, and prompts, which it lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar, cast

from mcp.types import EmbeddedResource

from ..errors import AnswerRefused
from ..json_lines import ReadJson
from ..models import Json
from ..threads import Checkpoint, InThread
from .pages import Pages
from .results import Keep, parsed_all, parts_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp import Client
    from mcp.types import PaginatedResult, ReadResourceResult
    from pydantic import BaseModel

LISTED_MAX = 20_000
"""Resources or prompts of a server; a list that is longer has no end."""

_Page = TypeVar("_Page", bound="PaginatedResult")
_LEFT_OUT = {"meta", "icons", "annotations"}


async def read_contents(
    uri: str, result: ReadResourceResult, keep: Keep | None, read_large: ReadJson, in_thread: InThread
) -> Json:
    """Return what a resource holds: its text, parsed where it says that it is JSON, or a handle of a kept file.

    Several contents are a list, each with its `uri`. Raises `AnswerRefused`.
    """
    name = uri.rstrip("/").rpartition("/")[2] or "resource"
    blocks = [EmbeddedResource(type="resource", resource=each) for each in result.contents]
    parts = await parts_of(name, blocks, keep, in_thread)
    if len(parts) != 1:
        return parts
    part = cast("Mapping[str, Json]", parts[0])
    text = part.get("text")
    if not isinstance(text, str):
        return part
    return (await parsed_all([text], read_large, in_thread))[0] if "json" in str(part["mime_type"]) else text


async def list_resources(client: Client, in_thread: InThread) -> list[Json]:
    """Return `{uri, name, …}` of each resource, and `{uri_template, name, …}` of each kind of them."""
    if client.server_capabilities.resources is None:
        return []
    resources = await _all(client.list_resources, attrgetter("resources"), in_thread)
    return resources + await _all(client.list_resource_templates, attrgetter("resource_templates"), in_thread)


async def list_prompts(client: Client, in_thread: InThread) -> list[Json]:
    """Return `{name, description, arguments: [{name, description, required}]}` of each prompt."""
    if client.server_capabilities.prompts is None:
        return []
    return await _all(client.list_prompts, attrgetter("prompts"), in_thread)


async def _all(
    ask: Callable[..., Awaitable[_Page]], listed_on: Callable[[_Page], Sequence[BaseModel]], in_thread: InThread
) -> list[Json]:
    """Ask for all pages. Raises `AnswerRefused` where they have no end."""
    listed: list[Json] = []
    pages = Pages("The server's list")
    cursor: str | None = None
    while True:
        page = await ask(cursor=cursor)
        cursor = page.next_cursor
        pages.take(page, cursor)
        listed += await in_thread(partial(_dumped, listed_on(page)))
        if not cursor:
            return listed
        if len(listed) > LISTED_MAX:
            raise AnswerRefused("The server never ends its list. Tell the server's author.")


def _dumped(entries: Sequence[BaseModel], checkpoint: Checkpoint) -> list[Json]:
    dumped: list[Json] = []
    for each in entries:
        dumped.append(each.model_dump(mode="json", exclude_none=True, exclude=_LEFT_OUT))
        checkpoint()
    return dumped
