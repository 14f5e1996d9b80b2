"""`save_to=`: what a tool answers, or a resource holds, as a file of the workspace that passes neither code nor model.

One answer becomes one file, byte for byte where it is text or binary: the one image, audio or binary resource that is
in it, else the resource that it links to, else its text, else its JSON. The code gets `{filename, size}`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, cast

from ....sandbox.errors import HostCallError
from ....sandbox.job import Json
from ....workspace.errors import WorkspaceError
from ....workspace.names import RUNS
from ....workspace.store import changeable
from ...base.errors import RightMissing
from ...base.host_call import REPEATABLE_HERE, HostCall
from ...base.host_work import Kind, in_thread
from ...governance.rights import HOST_FUNCTIONS, require
from .broker import Calls, failed

if TYPE_CHECKING:
    from ....tools_registry.models import Tool
    from ....tools_registry.upstream.results import ToolResult
    from ...privacy.privacy import Privacy

SAVE_TO, ALLOW_TOKENS = "save_to", "allow_tokens"
OF_CALLS = (SAVE_TO, ALLOW_TOKENS)
"""Arguments of a call itself, which a tool is given only where it takes them."""
_NAMED_MAX = 10

Save = Callable[[Calls, str, bytes], Awaitable[Json]]
"""Writes a file of the workspace, or notes it down in a dry run, and returns `{filename, size}`."""


async def taken_out(
    calls: Calls, privacy: Privacy, tool: Tool, given: Mapping[str, Json]
) -> tuple[str | None, Mapping[str, Json]]:
    """Return where the answer of a call is to be saved, and the arguments without that. Raises `HostCallError`.

    A tool that takes an argument of this name is given it.
    """
    if SAVE_TO not in given or is_of_tool(tool, SAVE_TO):
        return None, given
    name = given[SAVE_TO]
    if not isinstance(name, str):
        raise HostCallError(f"{SAVE_TO} takes the name of a file, such as 'data/page.html'.", type="TypeError")
    others = {key: value for key, value in given.items() if key != SAVE_TO}
    return await judge_saving(calls, privacy, name), others


def without_allowance(tool: Tool, given: Mapping[str, Json]) -> tuple[bool, Mapping[str, Json]]:
    """Return whether a call lets tokens pass as they are that are unknown or withheld, and its other arguments.

    Raises `HostCallError`. A tool that takes an argument of this name is given it.
    """
    if ALLOW_TOKENS not in given or is_of_tool(tool, ALLOW_TOKENS):
        return False, given
    allows = given[ALLOW_TOKENS]
    if not isinstance(allows, bool):
        raise HostCallError(f"{ALLOW_TOKENS} takes True or False.", type="TypeError")
    return allows, {key: value for key, value in given.items() if key != ALLOW_TOKENS}


def is_of_tool(tool: Tool, name: str) -> bool:
    """Return whether the tool itself takes an argument of this name."""
    from ....tools_registry.describing.schemas import parameters_of

    return any(each.name == name for each in parameters_of(tool))


async def judge_saving(calls: Calls, privacy: Privacy, name: str) -> str:
    """Return the name of a file to save to, with values for tokens, before anything is asked of a server.

    Raises `HostCallError` where the caller may not write, `WorkspaceError` where no file can have the name.
    """
    try:
        require(calls.caller.identity, HOST_FUNCTIONS, "write_file")
    except RightMissing as error:
        raise HostCallError(str(error), type="PermissionError") from error
    if privacy.filters:
        restored = await privacy.restored(calls.caller, name, destination="workspace", run=calls.run_id)
        name = cast("str", restored)
    changeable(name)
    return name


@dataclass(frozen=True, slots=True)
class Saving:
    """Saves for one host call, by what writes a file for its run."""

    calls: Calls
    call: HostCall
    save: Save

    async def result(self, server: str, result: ToolResult, name: str) -> Json:
        """Save what a tool answered. Raises `HostCallError` where that is more than one file, and `WorkspaceError`."""
        try:
            return await self._one(server, result, name)
        except WorkspaceError as error:
            raise type(error)(f"The tool answered, and that could not be saved: {error}", error.number) from error

    async def _one(self, server: str, result: ToolResult, name: str) -> Json:
        parts = result.parts
        kept = [each for each in parts if isinstance(each, Mapping) and "handle" in each]
        links = [each for each in parts if isinstance(each, Mapping) and each.get("type") == "resource_link"]
        embedded = [each for each in parts if isinstance(each, Mapping) and isinstance(each.get("text"), str)]
        if len(kept) > 1 or (not kept and len(links) > 1):
            where = ", ".join(repr(str(each["handle" if kept else "uri"])) for each in (kept or links)[:_NAMED_MAX])
            each_by = (
                "write_file(name, read_file(handle, encoding=None)), where the handles are"
                if kept
                else f"read_resource({server!r}, uri, {SAVE_TO}=name), where the URIs are"
            )
            raise failed(
                f"The tool answered with {len(kept or links)} files, and {SAVE_TO} saves one. Save each with {each_by} "
                f"{where}."
            )
        if kept:
            return await self.value(kept[0], name)
        if links:
            link = {"server": server, "uri": str(links[0]["uri"]), SAVE_TO: name}
            return (await self.calls.answer(replace(self.call, name="read_resource", arguments=link))).value
        if len(embedded) == 1 and len(parts) == 1:
            return await self.value(embedded[0]["text"], name)
        if not result.is_structured and parts and all(isinstance(each, str) for each in parts):
            return await self.value("\n".join(cast("tuple[str, ...]", parts)), name)
        return await self.value(result.value, name)

    async def value(self, value: Json, name: str) -> Json:
        """Save the content of an attachment, which then is no longer kept beside, a text, or anything else as JSON.

        Raises `HostCallError`, `WorkspaceError`.
        """
        await self.call.before(REPEATABLE_HERE)
        if isinstance(value, Mapping) and "handle" in value:
            attachments = self.calls.attachments
            handle = str(value["handle"])
            content = attachments.held(handle)
            if content is not None:
                saved = await self.save(self.calls, name, content)
                if attachments.files.pop(handle.removeprefix(f"{RUNS}/{attachments.run_id}/"), None) is not None:
                    attachments.size -= len(content)
                return saved
        text = value
        if not isinstance(text, str):
            text = await in_thread(Kind.FILES, partial(json.dumps, value, ensure_ascii=False))
        return await self.save(self.calls, name, text.encode("utf-8", "surrogatepass"))
