"""Serving streamable HTTP on one address until a signal says to stop."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import sys
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import uvicorn
from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings

from ...app import App
from ...host_work import Kind, in_thread
from ...scopes import of_mcp_session
from ...startup.signals import signals
from ..address import Address
from ..draining import OpenRequests
from ..serving import mcp_server
from ..tools import tools_of
from ..warming import warming
from .approval_pages import ApprovalPages
from .bodies import BODY_BYTES_MAX, Bodies
from .connections import ACCEPTED_AT_ONCE, HttpBounds, connections_max
from .exchanges import LAST_ANSWERS_SECONDS, Exchanges
from .fair_starts import FairStarts
from .header_checks import NamedHosts
from .mcp_sessions import CALLERS_WORTH, McpSessions
from .sign_in_pages import SignInPages

MCP_PATH = "/mcp"
QUEUE_FULL = "As many runs wait to begin as may. Call again in a moment."
_KERNEL_BACKLOG = 4096
_FORGOTTEN_SECONDS = 1.0
_LOG = logging.getLogger(__name__)


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
        exchanges, sessions = _asgi(mcp, app, address, port)
        config = uvicorn.Config(
            exchanges,
            log_config=None,
            access_log=False,
            backlog=ACCEPTED_AT_ONCE,
            http=HttpBounds(connections_max(), settings.http_receive_seconds).protocol(),
            timeout_graceful_shutdown=math.ceil(LAST_ANSWERS_SECONDS),
            ws="none",
        )
        server = _Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        forgetting = asyncio.create_task(_keep_forgetting(app, sessions))
        async with signals() as signalled:
            print(  # noqa: T201 - which port was taken for :0 is worth saying; stdout is not for this
                f"sealab serves MCP at http://{address.in_url}:{port}{MCP_PATH}",
                file=sys.stderr,
                flush=True,
            )
            with warming(tools):
                await asyncio.wait({serving, signalled.first}, return_when=asyncio.FIRST_COMPLETED)
            if signalled.first.done():
                await _drain(server, exchanges, requests, settings.drain_seconds, signalled.second)
            server.should_exit = True
            await serving
            forgetting.cancel()


async def _drain(
    server: _Server, exchanges: Exchanges, requests: OpenRequests, seconds: float, hurry: asyncio.Future[None]
) -> None:
    """Let calls at work end, refuse new ones, and set how long the server waits for the answers that are left."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    exchanges.stop()
    await requests.drain(seconds, hurry)
    left = max(LAST_ANSWERS_SECONDS, deadline - loop.time())
    hurry.add_done_callback(lambda _signalled: server.hurry())
    await exchanges.end(left, hurry)
    server.config.timeout_graceful_shutdown = math.ceil(left)


async def _keep_forgetting(app: App, sessions: McpSessions) -> None:
    """Have the values of MCP sessions forgotten soon after these have ended; until it is cancelled."""
    while not app.privacy.is_off:
        await sessions.ended.wait()
        await asyncio.sleep(_FORGOTTEN_SECONDS)
        sessions.ended.clear()
        alive = {of_mcp_session(name) for name in sessions.alive()}
        try:
            await in_thread(Kind.DATABASE, partial(app.privacy.forget_ended, alive), charged=False)
        except Exception as error:  # noqa: BLE001 - it is tried again, and once more when the server ends
            _LOG.warning("The values of MCP sessions that have ended are not forgotten yet: %s", error)


def _why_not_ready(app: App) -> str | None:
    waiting = max((pool.waiting for pool in app.pools.stats().values()), default=0)
    return QUEUE_FULL if waiting >= max(1, app.settings.queue_max) else None


def _asgi(mcp: MCPServer[None], app: App, address: Address, port: int) -> tuple[Exchanges, McpSessions]:
    """Return the ASGI app and its sessions: each layer bounds one thing, the SDK's own app is the innermost."""
    settings = app.settings
    names = ["127.0.0.1", "localhost", "[::1]", address.in_url]
    web = mcp.streamable_http_app(
        streamable_http_path=MCP_PATH,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # `NamedHosts` does it
        max_request_body_size=BODY_BYTES_MAX,
        max_sessions=settings.http_sessions_max * CALLERS_WORTH,
    )
    sessions = McpSessions(web, settings.http_sessions_max, host="127.0.0.1", path=MCP_PATH)
    bodies = Bodies(sessions, settings.http_bodies_mb * 1_000_000)
    pages = ApprovalPages(FairStarts(bodies), app.background, app.privacy)
    named = NamedHosts(SignInPages(pages, app.sign_ins, app.registry), names, port)
    return Exchanges(named, partial(_why_not_ready, app)), sessions
