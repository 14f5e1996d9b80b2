"""`sealab console`: a link that opens the console once, at a server that runs, or at one of its own until Ctrl-C."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ...app import running
from ...base.errors import UsageError
from ...base.startup.signals import signals
from ...governance.rights import CONSOLE
from ..console.console import Console
from ..console.sessions import LINK_SECONDS, ConsoleSessions
from ..protocol.address import Address, Exposure
from ..protocol.web.header_checks import NamedHosts
from ..protocol.web.http_serving import server_of
from ..tenants import Tenants
from .command import AuditedAs, Command
from .opened import opened_home
from .terminal import Here, Output, moment, print_error

if TYPE_CHECKING:
    from ...app import App


@dataclass(frozen=True, slots=True)
class _Served:
    """What the console uses of a tenant."""

    app: App
    holds_connections: bool = False


async def _console(here: Here, *, url: str | None = None, port: int = 0) -> Output | int:
    """Open the console: serve it on this machine until Ctrl-C, and print a link that opens it once.

    url: print a link for the server of this home at that address instead, such as http://127.0.0.1:8000
    port N: the port to listen on (default: any that is free)
    """
    if here.home.operators is not None:
        raise UsageError("The console is the operator's. Leave the tenant out.")
    if url is None:
        await _serve(here, port)
        return 0
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise UsageError(f"{url} is no address of a server. Give one such as http://127.0.0.1:8000.")

    with opened_home(here) as home:
        return await asyncio.to_thread(
            _link, ConsoleSessions(home.database, home.privacy.key), f"{parts.scheme}://{parts.netloc}"
        )


console = Command(_console, audit=AuditedAs())


async def _serve(here: Here, port: int) -> None:
    """Serve the console alone, on loopback, until a signal; runs that it begins or lets go on are run here."""
    settings = replace(here.settings, workers_spare=0)
    address = Address.parse(f"127.0.0.1:{port}")
    with address.listen() as listener:
        async with (
            running(settings, here.home, serves=True) as app,
            Tenants(app, _served, open_max=settings.tenants_open_max) as tenants,
            signals() as signalled,
        ):
            pages = Console(tenants)
            taken = listener.getsockname()[1]
            server = server_of(NamedHosts(pages, ("127.0.0.1", "localhost"), taken), settings, Exposure())
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            link = await asyncio.to_thread(_link, pages.sessions, f"http://127.0.0.1:{taken}")
            link.printed(as_json=here.json)
            print_error("Ctrl-C ends the console.")
            await asyncio.wait({serving, signalled.first}, return_when=asyncio.FIRST_COMPLETED)
            server.should_exit = True
            await serving


@asynccontextmanager
async def _served(app: App) -> AsyncIterator[_Served]:
    yield _Served(app)


def _link(sessions: ConsoleSessions, origin: str) -> Output:
    link = f"{origin}{CONSOLE}/link/{sessions.new_link()}"
    until = moment(time.time() + LINK_SECONDS)

    def shown() -> None:
        print(link, flush=True)
        print_error(
            f"The link opens the console once, until {until}. Whoever has it is the operator: pass it to nobody."
        )

    return Output({"url": link, "expires": until}, shown)
