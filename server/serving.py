"""The MCP server: what it shows, and the two transports it speaks over."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from mcp.server import MCPServer
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.transport_security import TransportSecuritySettings

from ..sandbox.run import Isolation
from .address import Address
from .app import App
from .fair_starts import FairStarts
from .instructions import CAPABILITIES, FULL_PYTHON, INSTRUCTIONS
from .later import as_if_missing
from .privacy import log_filter
from .privacy.answer_filter import AnswerFilter
from .privacy_tools import TOOLS as PRIVACY_TOOLS
from .scopes import scope_of
from .skills.extension import ServerWithSkills
from .standard_streams import StandardInput, StandardOutput
from .strict_tool import StrictTool
from .tools import tools_of
from .warming import warming

SHUTDOWN_SECONDS = 1
MCP_PATH = "/mcp"


def mcp_server(
    app: App, requests: Requests | None = None, tools: Sequence[StrictTool] | None = None
) -> MCPServer[None]:
    """Make the MCP server of an app: its tools, unless they are made already, its one resource and its instructions."""
    with as_if_missing("rich"):  # the SDK would load it to set up the logging, which is set up already
        server = ServerWithSkills(
            app,
            "sealab",
            title="sealab",
            description="Runs Python for an agent in a sandbox.",
            instructions=INSTRUCTIONS,
            version=version("sealab"),
            log_level=app.settings.log_level.value,
            tools=list(tools_of(app) if tools is None else tools),
            middleware=[*([] if requests is None else [requests]), *_filters(app)],
        )

    @server.resource("resource://sealab/capabilities", mime_type="text/plain")
    def capabilities() -> str:
        """Say what the code run by execute_code can use."""
        from ..sandbox import facades  # noqa: PLC0415 - only this answer needs them on the host's side

        wider = [f'isolation="{isolation}"' for isolation in app.pools.offered if isolation is not Isolation.RESTRICTED]
        return CAPABILITIES.format(
            modules=" ".join(sorted(facades.exports())),
            full_python=FULL_PYTHON.format(asked=" or ".join(wider)) if wider else "",
            **asdict(app.settings),
        )

    return server


def _filters(app: App) -> list[AnswerFilter]:
    """Return what filters every answer, where the operator wants that."""
    if not app.privacy.filters:
        return []
    log_filter.install()
    filtering = frozenset({"execute_code", "run_skill", "read_workspace_file", *PRIVACY_TOOLS})
    return [AnswerFilter(app.privacy, scope_of, filtering)]


async def serve_stdio(app: App) -> None:
    """Serve one client over the standard streams until it closes them or a signal says to stop."""
    requests = Requests()
    tools = tools_of(app)
    server = mcp_server(app, requests, tools)
    given = StandardInput(idle=requests.idle)
    answers = StandardOutput(lost=given.end)
    inner = server._lowlevel_server
    serving = asyncio.create_task(inner.run(given, answers, inner.create_initialization_options()))
    async with _signals() as signalled:
        with warming(tools):
            await asyncio.wait({serving, signalled}, return_when=asyncio.FIRST_COMPLETED)
        if signalled.done():
            answers.hurry()
        given.end()
        await serving


class Requests:
    """Counts the messages that are being worked on."""

    def __init__(self) -> None:
        self._open = 0

    def idle(self) -> bool:
        """Tell whether there is none."""
        return self._open == 0

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Work on one message, as a middleware of the SDK."""
        self._open += 1
        try:
            return await call_next(ctx)
        finally:
            self._open -= 1


async def serve_http(app: App, address: Address) -> None:
    """Serve streamable HTTP at `MCP_PATH` until a signal says to stop. Raises `AddressRefused` for a port in use.

    `Host` and `Origin` must name this machine, which stops DNS rebinding: a web page whose name has come to stand for
    127.0.0.1 is refused, and so is a page that another port of this machine serves.
    """
    import uvicorn  # noqa: PLC0415 - stdio does not need it

    class Server(uvicorn.Server):
        """A server that leaves signals to sealab: its own handling would end the process before the workers."""

        def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]  # any context will do
            return nullcontext()

    names = ["127.0.0.1", "localhost", "[::1]", address.in_url]
    tools = tools_of(app)
    with address.listen() as listener:
        port = listener.getsockname()[1]
        web = mcp_server(app, tools=tools).streamable_http_app(
            streamable_http_path=MCP_PATH,
            transport_security=TransportSecuritySettings(
                allowed_hosts=[form for name in names for form in (name, f"{name}:*")],
                allowed_origins=[f"http://{name}:{port}" for name in names],
            ),
        )
        config = uvicorn.Config(
            FairStarts(web), log_config=None, access_log=False, timeout_graceful_shutdown=SHUTDOWN_SECONDS, ws="none"
        )
        server = Server(config)
        print(  # noqa: T201 - which port was taken for :0 is worth saying; stdout is not for this
            f"sealab serves MCP at http://{address.in_url}:{port}{MCP_PATH}",
            file=sys.stderr,
            flush=True,
        )
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        async with _signals() as signalled:
            with warming(tools):
                await asyncio.wait({serving, signalled}, return_when=asyncio.FIRST_COMPLETED)
            server.should_exit = True
            await serving


@asynccontextmanager
async def _signals() -> AsyncIterator[asyncio.Future[None]]:
    """Give a future that is done once SIGINT or SIGTERM has come."""
    loop = asyncio.get_running_loop()
    signalled: asyncio.Future[None] = loop.create_future()

    def stop() -> None:
        if not signalled.done():
            signalled.set_result(None)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    try:
        yield signalled
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
