"""The MCP server: what it shows, and the two transports it speaks over."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import asdict
from enum import StrEnum
from importlib.metadata import version

from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings

from ..sandbox import facades
from .address import Address
from .app import App
from .instructions import CAPABILITIES, INSTRUCTIONS
from .tools import tools_of

SHUTDOWN_SECONDS = 1
MCP_PATH = "/mcp"


def mcp_server(app: App) -> MCPServer[None]:
    """Make the MCP server of an app: its tools, its one resource and its instructions."""
    server: MCPServer[None] = MCPServer(
        "sealab",
        title="sealab",
        description="Runs Python for an agent in a sandbox.",
        instructions=INSTRUCTIONS,
        version=version("sealab"),
        log_level=app.settings.log_level.value,
        tools=list(tools_of(app)),
    )

    @server.resource("resource://sealab/capabilities", mime_type="text/plain")
    def capabilities() -> str:
        """Say what the code run by execute_code can use."""
        return CAPABILITIES.format(modules=" ".join(sorted(facades.exports())), **asdict(app.settings))

    return server


class Ended(StrEnum):
    """Why serving ended."""

    BY_CLIENT = "the client closed the connection"
    BY_SIGNAL = "a signal said so"


async def serve_stdio(app: App) -> Ended:
    """Serve one client over the standard streams until it closes them or a signal says to stop.

    After a signal a thread of the SDK still waits in a read of standard input, which nothing can interrupt: the caller
    has to end the process without waiting for threads.
    """
    serving = asyncio.create_task(mcp_server(app).run_stdio_async())
    async with _signals() as signalled:
        await asyncio.wait({serving, signalled}, return_when=asyncio.FIRST_COMPLETED)
    if not serving.done():
        return Ended.BY_SIGNAL
    serving.result()
    return Ended.BY_CLIENT


async def serve_http(app: App, address: Address) -> Ended:
    """Serve streamable HTTP at `MCP_PATH` until a signal says to stop. Raises `AddressRefused` for a port in use.

    `Host` and `Origin` must name this machine, which stops DNS rebinding: a web page whose name has come to stand for
    127.0.0.1 is refused.
    """
    import uvicorn  # noqa: PLC0415 - stdio does not need it

    class Server(uvicorn.Server):
        """A server that leaves signals to sealab: its own handling would end the process before the workers."""

        def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]  # any context will do
            return nullcontext()

    names = ["127.0.0.1", "localhost", "[::1]", address.in_url]
    web = mcp_server(app).streamable_http_app(
        streamable_http_path=MCP_PATH,
        transport_security=TransportSecuritySettings(
            allowed_hosts=[form for name in names for form in (name, f"{name}:*")],
            allowed_origins=[form for name in names for form in (f"http://{name}", f"http://{name}:*")],
        ),
    )
    with address.listen() as listener:
        config = uvicorn.Config(
            web, log_config=None, access_log=False, timeout_graceful_shutdown=SHUTDOWN_SECONDS, ws="none"
        )
        server = Server(config)
        print(  # noqa: T201 - which port was taken for :0 is worth saying; stdout is not for this
            f"sealab serves MCP at http://{address.in_url}:{listener.getsockname()[1]}{MCP_PATH}",
            file=sys.stderr,
            flush=True,
        )
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        async with _signals() as signalled:
            await asyncio.wait({serving, signalled}, return_when=asyncio.FIRST_COMPLETED)
            server.should_exit = True
            await serving
    return Ended.BY_SIGNAL


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
