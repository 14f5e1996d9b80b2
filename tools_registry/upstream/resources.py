"""What upstream servers have beside tools: resources, which code reads, and prompts, which it lists."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ..errors import AnswerRefused
from ..json_lines import ReadJson
from ..models import Json
from ..threads import Checkpoint, InThread
from .lenient import CallResult, entries
from .pages import PageCounter
from .reading import whole
from .results import Keep, parsed_all, parts_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp import Client
    from mcp.types import PaginatedResult

LISTED_MAX = 20_000
"""Resources or prompts of a server; a list that is longer has no end."""

_LEFT_OUT = frozenset({"_meta", "icons", "annotations"})
_OURS = {"uriTemplate": "uri_template", "mimeType": "mime_type"}
"""Our names of what MCP writes in camelCase."""


async def read_contents(
    uri: str, result: Mapping[str, Any], keep: Keep | None, read_large: ReadJson, in_thread: InThread
) -> Json:
    """Return what a resource holds: its text, parsed where it says that it is JSON, or a handle of a kept file.

    Several contents are a list, each with its `uri`. Raises `AnswerRefused`.
    """
    name = uri.rstrip("/").rpartition("/")[2] or "resource"
    held = result.get("contents")
    blocks = tuple({"type": "resource", "resource": each} for each in (held if isinstance(held, list) else [held]))
    parts = await parts_of(name, CallResult(blocks, None, is_structured=False, is_error=False), keep, in_thread)
    if len(parts) != 1 or not isinstance(parts[0], Mapping):
        return parts[0] if len(parts) == 1 else parts
    part = parts[0]
    text = part.get("text")
    if not isinstance(text, str):
        return part
    if "json" not in str(part["mime_type"]):
        return text
    (value,), has_nulls = await parsed_all([text], read_large, in_thread)
    return text if has_nulls else value  # in the value, null would stand for numbers that JSON lacks


async def list_resources(client: Client, in_thread: InThread) -> list[Json]:
    """Return `{uri, name, …}` of each resource, and `{uri_template, name, …}` of each kind of them."""
    if client.server_capabilities.resources is None:
        return []
    resources = await _all(client.list_resources, "resources", "uri", in_thread)
    return resources + await _all(client.list_resource_templates, "resourceTemplates", "uriTemplate", in_thread)


async def list_prompts(client: Client, in_thread: InThread) -> list[Json]:
    """Return `{name, description, arguments: [{name, description, required}]}` of each prompt."""
    if client.server_capabilities.prompts is None:
        return []
    return await _all(client.list_prompts, "prompts", "name", in_thread)


async def _all(ask: Callable[..., Awaitable[PaginatedResult]], key: str, named: str, in_thread: InThread) -> list[Json]:
    """Ask for all pages of what stands below `key`, each with a text below `named`.

    Raises `AnswerRefused` where they have no end.
    """
    listed: list[Json] = []
    pages = PageCounter("The server's list")
    cursor: str | None = None
    while True:
        page = await ask(cursor=cursor)
        given = whole(page)
        cursor = await in_thread(partial(pages.take, given, page.next_cursor))
        listed += await in_thread(partial(_entries, given, key, named))
        if not cursor:
            return listed
        if len(listed) > LISTED_MAX:
            raise AnswerRefused("The server never ends its list. Tell the server's author.")


def _entries(given: Mapping[str, Any], key: str, named: str, checkpoint: Checkpoint) -> list[Json]:
    shown: list[Json] = []
    for each in entries(given, key, named):
        shown.append({_OURS.get(name, name): value for name, value in each.items() if name not in _LEFT_OUT})
        checkpoint()
    return shown
