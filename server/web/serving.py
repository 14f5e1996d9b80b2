"""Serving streamable HTTP on one address until a signal says to stop."""

from __future__ import annotations

import asyncio
import math
import socket
import sys
from contextlib import AbstractContextManager, nullcontext

import uvicorn
from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings

from ..address import Address
from ..app import App
from ..open_requests import OpenRequests
from ..serving import mcp_server
from ..settings import Settings
from ..signals import signals
from ..tools import tools_of
from ..warming import warming
from .bodies import BODY_BYTES_MAX, Bodies
from .connections import ACCEPTED_AT_ONCE, Bounds, connections_max
from .exchanges import LAST_ANSWERS_SECONDS, Exchanges
from .sessions import CALLERS_WORTH, Sessions

MCP_PATH = "/mcp"
_KERNEL_BACKLOG = 4096


class _Server(uvicorn.Server):
    """A server that leaves signals to sealab: its own handling would end the process before the workers."""

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]  # any context will do
        return nullcontext()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen. The kernel keeps more connections waiting than are accepted at once."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(_KERNEL_BACKLOG)

    def hurry(self) -> None:
        """Wait no longer than a moment for peers to read."""
        asyncio.get_running_loop().call_later(LAST_ANSWERS_SECONDS, setattr, self, "force_exit", True)


async def serve_http(app: App, address: Address) -> None:
    """Serve streamable HTTP at `MCP_PATH` until a signal says to stop. Raises `AddressRefused` for a port in use.

    `Host` and `Origin` must name this machine, which stops DNS rebinding: a web page whose name has come to stand for
    127.0.0.1 is refused, and so is a page that another port of this machine serves.

    Upon the signal calls at work go on for `DRAIN_SECONDS` at most, or until the next signal, and new ones are refused.
    """
    settings = app.settings
    tools = tools_of(app)
    requests = OpenRequests()
    with address.listen() as listener:
        port = listener.getsockname()[1]
        mcp = mcp_server(app, requests, tools)
        exchanges = _asgi(mcp, settings, address, port)
        config = uvicorn.Config(
            exchanges,
            log_config=None,
            access_log=False,
            backlog=ACCEPTED_AT_ONCE,
            http=Bounds(connections_max(), settings.http_receive_seconds).protocol(),
            timeout_graceful_shutdown=math.ceil(LAST_ANSWERS_SECONDS),
            ws="none",
        )
        server = _Server(config)
        print(  # noqa: T201 - which port was taken for :0 is worth saying; stdout is not for this
            f"sealab serves MCP at http://{address.in_url}:{port}{MCP_PATH}",
            file=sys.stderr,
            flush=True,
        )
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        async with signals() as signalled:
            with warming(tools):
                await asyncio.wait({serving, signalled.first}, return_when=asyncio.FIRST_COMPLETED)
            if signalled.first.done():
                loop = asyncio.get_running_loop()
                deadline = loop.time() + settings.drain_seconds
                exchanges.stop()
                await requests.drain(settings.drain_seconds, signalled.second)
                left = max(LAST_ANSWERS_SECONDS, deadline - loop.time())
                signalled.second.add_done_callback(lambda _signalled: server.hurry())
                await exchanges.end(left, signalled.second)
                config.timeout_graceful_shutdown = math.ceil(left)
            server.should_exit = True
            await serving


def _asgi(mcp: MCPServer[None], settings: Settings, address: Address, port: int) -> Exchanges:
    """Return the ASGI app: each layer bounds one thing, the SDK's own app is the innermost."""
    names = ["127.0.0.1", "localhost", "[::1]", address.in_url]
    web = mcp.streamable_http_app(
        streamable_http_path=MCP_PATH,
        transport_security=TransportSecuritySettings(
            allowed_hosts=[form for name in names for form in (name, f"{name}:*")],
            allowed_origins=[f"http://{name}:{port}" for name in names],
        ),
        max_request_body_size=BODY_BYTES_MAX,
        max_sessions=settings.http_sessions_max * CALLERS_WORTH,
    )
    sessions = Sessions(web, settings.http_sessions_max, host="127.0.0.1", path=MCP_PATH)
    return Exchanges(Bodies(sessions, settings.http_bodies_mb * 1_000_000))
