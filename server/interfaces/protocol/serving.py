"""The MCP server: what it shows, and how it is served over the standard streams; `web` serves it over HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from typing import Any

import anyio
from mcp.server import MCPServer
from mcp.server._otel import OpenTelemetryMiddleware
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.mcpserver.prompts.base import Prompt, PromptArgument
from mcp.server.request_state import RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp.types import CallToolResult

from ....sandbox.job import Isolation
from ....tools_registry.untraced import untrace_sdk
from ...app import App
from ...base.startup.deferred import as_if_missing
from ...base.startup.signals import signals
from ...base.telemetry import tracing
from ...governance.access.message_rights import RightsOfMessages
from ...governance.rights import METHODS, PROMPTS
from ...governance.scopes import caller_of
from ...privacy.gates import log_gate
from ...privacy.gates.answer_gate import AnswerFilter
from ...use_cases.skills.use_cases import greeting
from ..console.app_views import RunViews
from .attached_servers import AttachedServers
from .client_messages import Refused
from .draining import OpenRequests
from .extensions.skills_extension import ServerWithSkills
from .extensions.tasks_extension import TasksExtension
from .instructions import CAPABILITIES, FULL_PYTHON, INSTRUCTIONS, PRIVATE, PROGRAM, SKILL
from .privacy_tools import TOOLS as PRIVACY_TOOLS
from .stdio import StandardInput, StandardOutput
from .strict_tool import StrictTool
from .tools import tools_of
from .warming import warming

_WRITTEN_SECONDS = 0.1
"""How long it takes at most until the answer of a request that has ended is handed to the stream."""


@as_if_missing("rich")  # the SDK would import 50 modules of it for a handler of the log, which has one already
def mcp_server(
    app: App,
    requests: OpenRequests | None = None,
    tools: Sequence[StrictTool] | None = None,
    states: RequestStateSecurity | None = None,
) -> MCPServer[None]:
    """Make the MCP server of an app: its tools, unless they are made already, its one resource and its instructions.

    `states` is how `requestState` is sealed, which else this process alone can open.
    """
    shown = list(tools_of(app) if tools is None else tools)
    views = RunViews(app)
    attached = AttachedServers(app.registry, shown[0], partial(greeting, app.skills))
    app.skills.service.watchers.append(attached.skills_changed)
    server = ServerWithSkills(
        app.skills.service,
        "sealab",
        title="sealab",
        description="Runs Python for an agent in a sandbox.",
        instructions=INSTRUCTIONS + PRIVATE if app.privacy.filters else INSTRUCTIONS,
        version=version("sealab"),
        log_level=app.settings.log_level.value,
        extensions=[
            views,
            *([TasksExtension(app.background, app.settings.output_format)] if _has_get_run(shown) else []),
        ],
        tools=shown,
        middleware=[
            *([] if requests is None else [requests]),
            RightsOfMessages(),
            *_filters(app),
            views,
            attached,
            *_traced(shown),
        ],
        subscriptions=attached.bus,
        request_state_security=states,
    )
    untrace_sdk()
    lowest = server._lowlevel_server
    lowest.middleware[:] = [each for each in lowest.middleware if not isinstance(each, OpenTelemetryMiddleware)]
    # Where it is wanted, `Traced` has it inside the filters.

    @server.resource("resource://sealab/capabilities", mime_type="text/plain")
    def capabilities() -> str:
        """Return what the code run by execute_code can use."""
        from ....sandbox.guest_names import importable_modules

        wider = [f'isolation="{isolation}"' for isolation in app.pools.offered if isolation is not Isolation.RESTRICTED]
        return CAPABILITIES.format(
            modules=" ".join(sorted(importable_modules())),
            full_python=FULL_PYTHON.format(asked=" or ".join(wider)) if wider else "",
            **asdict(app.settings),
        )

    for prompt in _prompts():
        server.add_prompt(prompt)
    return server


def _traced(tools: Sequence[StrictTool]) -> list[ServerMiddleware[Any]]:
    """Return what tells OpenTelemetry of messages, where that is wanted, else nothing."""
    if not tracing.is_on():
        return []
    tracing.knows((*METHODS, *PROMPTS, *(tool.name for tool in tools)))
    return [Traced()]


class Traced(ServerMiddleware[Any]):
    """Records each message and its duration, by the SDK's own middleware; it stands inside our filters.

    A caller says where it is by `_meta`, else by HTTP headers. What is recorded is filtered where it leaves the process
    (`telemetry.exporting`).
    """

    def __init__(self) -> None:
        self._sdk = OpenTelemetryMiddleware()

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Serve one message."""
        is_tool = ctx.method == "tools/call"
        attributes: dict[str, str | int | float | bool] = {
            "mcp.method.name": ctx.method,
            "mcp.protocol.version": ctx.protocol_version,
            "network.transport": "pipe" if ctx.request is None else "tcp",
        }
        if is_tool:
            attributes |= {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": str((ctx.params or {}).get("name")),
            }

        async def traced(inner: ServerRequestContext[Any, Any]) -> HandlerResult:
            tracing.mark({"network.transport": attributes["network.transport"]})
            result = await call_next(inner)
            match result:
                case CallToolResult(is_error=True) | {"isError": True}:
                    attributes["error.type"] = "tool_error"
            return result

        with (
            tracing.came_with(getattr(ctx.request, "headers", None)),
            tracing.came_with(ctx.meta),  # the SDK takes the trace alone from there, and no baggage
            tracing.timed("mcp.server.operation.duration", attributes),
        ):
            try:
                with tracing.timed("gen_ai.execute_tool.duration", attributes) if is_tool else tracing.nothing():
                    return await self._sdk(ctx, traced)
            except MCPError as error:
                attributes["error.type"] = attributes["rpc.response.status_code"] = str(error.error.code)
                raise


def _has_get_run(tools: Sequence[StrictTool]) -> bool:
    return any(tool.name == "get_run" for tool in tools)


def _prompts() -> Iterator[Prompt]:
    """Give the prompts that a client offers its user."""

    async def program(task: str) -> str:
        return PROGRAM.format(task=task)

    async def skill(name: str) -> str:
        return SKILL.format(name=name)

    # Made by hand: to read the arguments off a function takes longer at each start.
    for function, title, argument, meaning in (
        (program, "Do a task by a program", "task", "what is to be done"),
        (skill, "Keep what worked as a skill", "name", "what to call it"),
    ):
        arguments = [PromptArgument(name=argument, description=meaning, required=True)]
        yield Prompt(
            name=function.__name__,
            title=title,
            description=f"{title}.",
            arguments=arguments,
            fn=function,
            context_kwarg=None,
        )


def _filters(app: App) -> list[AnswerFilter]:
    """Return the filter of every answer under `PRIVACY=auto`, else nothing."""
    if not app.privacy.filters:
        return []
    log_gate.install()
    filtering = frozenset({"execute_code", "run_skill", "read_workspace_file", *PRIVACY_TOOLS})
    return [AnswerFilter(app.privacy, caller_of, filtering)]


async def serve_stdio(app: App) -> None:
    """Serve one client over the standard streams until it closes them or a signal says to stop.

    Upon the signal calls at work go on for `DRAIN_SECONDS` at most, or until the next signal, and new ones are refused.
    """
    requests, began = OpenRequests(), time.monotonic()
    tools = tools_of(app)
    server = mcp_server(app, requests, tools)

    async def refuse(error: Refused) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await answers.send(SessionMessage(error))

    given = StandardInput(idle=requests.idle, refuse=refuse)
    answers = StandardOutput(lost=given.end)
    inner = server._lowlevel_server
    serving = asyncio.create_task(inner.run(given, answers, inner.create_initialization_options()))
    async with signals() as signalled:
        with warming(tools):
            await asyncio.wait({serving, signalled.first}, return_when=asyncio.FIRST_COMPLETED)
        if signalled.first.done():
            draining = asyncio.ensure_future(requests.drain(app.settings.drain_seconds, signalled.second))
            await asyncio.wait({serving, draining}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(_WRITTEN_SECONDS)
            draining.cancel()
            answers.hurry()
        given.end()
        await serving
    tracing.took("mcp.server.session.duration", time.monotonic() - began, {"network.transport": "pipe"})
