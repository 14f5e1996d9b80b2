"""Security boundary: the host functions that read resources of upstream servers, and list these and prompts.

A resource is read as a tool named `read_resource` would be called: `allow`, `deny` and `approve` hold for it, its
answer is counted, and the privacy gate learns from it. A yes to it is no yes to a tool that really has that name.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Literal, cast

from ...sandbox.errors import HostCallError
from ...sandbox.host.call_slots import slot_given_back
from ...sandbox.job import Json
from ...tools_registry.errors import RegistryError
from ..errors import RequestRefused
from ..privacy.privacy import Privacy
from ..upstream_tools import approval, discovery
from ..upstream_tools.approval import Decision
from ..upstream_tools.large_json import chars_of
from ..upstream_tools.registry import Registry
from ..upstream_tools.tool_rules import READ_RESOURCE, resource_reader
from .approval_questions import approved
from .audited_calls import audited
from .broker import Arguments, Calls, Handler
from .registry_calls import failed, given_to_tool, pay
from .saved_answers import SAVE_TO, Save, judge_saving, save_value
from .sign_in_questions import with_sign_in

_KEPT_AS = f"{READ_RESOURCE}\0"
"""What a user's yes to reading resources is kept as: no tool has a name that cannot be printed."""
_TEXT = (str,)


def handlers(registry: Registry, privacy: Privacy, save: Save) -> Mapping[str, Handler]:
    """Return what answers for resources and prompts, by name."""
    return {
        READ_RESOURCE: Handler(
            partial(_read_resource, registry, privacy, save),
            {"server": _TEXT, "uri": _TEXT, SAVE_TO: _TEXT},
            frozenset({"server", "uri"}),
        ),
        "list_resources": Handler(partial(_list, registry, "resources"), {"server": _TEXT}, frozenset({"server"})),
        "list_prompts": Handler(partial(_list, registry, "prompts"), {"server": _TEXT}, frozenset({"server"})),
    }


async def _read_resource(registry: Registry, privacy: Privacy, save: Save, calls: Calls, arguments: Arguments) -> Json:
    named = cast("str", arguments["server"])
    save_to = cast("str | None", arguments.get(SAVE_TO))
    if save_to is not None:
        save_to = await judge_saving(calls, privacy, save_to)
    with calls.log.call(f"{named}.{READ_RESOURCE}") as entry, audited(calls, entry) as line:
        try:
            name = await discovery.server_name(registry, calls.caller.identity, named)
            server = (await registry.configuration()).server(name)
            tool = resource_reader(name)
            entry.tool, entry.found = tool.full_name, True
            ruled = registry.ruled(calls.caller.identity, tool, server)
            line.ruled(ruled)
            if ruled.refusal is not None:
                raise failed(str(ruled.refusal))
            server = ruled.server
            decision = line.judged(tool, server)
            if decision is Decision.REFUSE:
                raise failed(approval.why_refused(READ_RESOURCE, server))
            given = await given_to_tool(privacy, calls, tool, server, {"uri": arguments["uri"]})
            if decision is Decision.ASK:
                await approved(registry, privacy, calls, tool, server=server, arguments=given, kept_as=_KEPT_AS)
                line.approved()
            await line.sent()
            read = partial(registry.read_resource, name, cast("str", given["uri"]), keep=calls.attachments.keep)
            value = await with_sign_in(registry, calls, server, lambda owner: read(owner=owner))
        except RegistryError as error:
            raise failed(str(error)) from error
        line.chars_out = await chars_of(value)
        pay(calls, line.chars_out)
        return value if save_to is None else await save_value(calls, save, value, save_to)


async def _list(registry: Registry, kind: Literal["resources", "prompts"], calls: Calls, arguments: Arguments) -> Json:
    try:
        with slot_given_back():
            name = await discovery.server_name(registry, calls.caller.identity, cast("str", arguments["server"]))
            server = (await registry.configuration()).server(name)
            if kind == "resources":
                refusal = registry.ruled(calls.caller.identity, resource_reader(name), server).refusal
                if refusal is not None:
                    raise failed(str(refusal))
        value = cast(
            "Json", await with_sign_in(registry, calls, server, partial(registry.listed_beside_tools, name, kind))
        )
    except RegistryError as error:
        raise failed(str(error)) from error
    except RequestRefused as error:
        raise HostCallError(str(error), type="ValueError") from error
    pay(calls, await chars_of(value))
    return value
