"""Serving streamable HTTP on one address until a signal says to stop."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import ssl
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from .....tools_registry.errors import RegistryError
from ....app import App
from ....base.errors import AddressRefused
from ....base.host_work import Kind, in_thread
from ....base.settings import Auth, Settings, Switch
from ....base.startup.signals import signals
from ....governance.access.own_tokens import OwnTokens
from ....governance.access.verifier import Verifier
from ....governance.policy.policy_file import PolicyFile
from ....governance.rights import CONSOLE
from ....governance.scopes import of_mcp_session
from ...tenants import Tenants
from ..address import Address, Exposure
from ..draining import OpenRequests
from ..monitoring.metrics_page import MetricsPage
from ..warming import warming
from .admission import Admission
from .approval_pages import PAGES as APPROVAL_PAGES
from .authentication import Authentication
from .challenges import MetadataPages, ResourceMetadata
from .connections import ACCEPTED_AT_ONCE, HttpBounds, connections_max
from .exchanges import LAST_ANSWERS_SECONDS, Exchanges
from .forwarded import Forwarded
from .header_checks import NamedHosts
from .mcp_sessions import McpSessions
from .sign_in_pages import PAGES as SIGN_IN_PAGES
from .tenant_apps import MCP_PATH, LinkPages, ServedApp, TenantApps, served

QUEUE_FULL = "As many runs wait to begin as may. Call again in a moment."
_KERNEL_BACKLOG = 4096
_FORGOTTEN_SECONDS = 1.0
_LOG = logging.getLogger(__name__)


class HttpServer(uvicorn.Server):
    """A server that leaves signals to sealab: its own handling would end the process before the workers."""

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]  # any context will do
        """Take none."""
        return nullcontext()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen. The kernel keeps more connections waiting than are accepted at once."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(_KERNEL_BACKLOG)

    def hurry(self) -> None:
        """Wait no longer than a moment for peers to read."""
        asyncio.get_running_loop().call_later(LAST_ANSWERS_SECONDS, setattr, self, "force_exit", True)


async def serve_http(app: App, address: Address, exposure: Exposure = Exposure()) -> None:  # noqa: B008 - it is frozen
    """Serve streamable HTTP at `MCP_PATH` until a signal says to stop.

    Raises `AddressRefused` for a port in use and for TLS files that cannot be used, `SettingsError` for `AUTH`.

    `Host` and `Origin` must name this machine or `PUBLIC_URL`, which stops DNS rebinding: a web page whose name has
    come to stand for 127.0.0.1 is refused, and so is a page that another port of this machine serves.

    Upon the signal calls at work go on for `DRAIN_SECONDS` at most, or until the next signal, and new ones are refused.
    """
    settings = app.settings
    _check_tls(exposure)
    requests = OpenRequests()
    tenants = Tenants(app, partial(served, requests=requests, all_sessions=set()), open_max=settings.tenants_open_max)
    with address.listen() as listener:
        async with tenants:
            await _serve(app, address, listener, tenants=tenants, requests=requests, exposure=exposure)


async def _serve(
    app: App,
    address: Address,
    listener: socket.socket,
    *,
    tenants: Tenants[ServedApp],
    requests: OpenRequests,
    exposure: Exposure,
) -> None:
    settings, own = app.settings, tenants.own
    port = listener.getsockname()[1]
    verifier = _verifier_of(app)
    exchanges = _asgi(tenants, address, port, exposure, verifier=verifier)
    authenticated = None if verifier is None else partial(Authentication, verifier=verifier, audit=app.audit)
    is_off = settings.metrics is Switch.OFF
    outermost: ASGIApp = exchanges if is_off else MetricsPage(exchanges, tenants, authenticated)
    server = server_of(outermost, settings, exposure)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    forgetting = asyncio.create_task(_keep_forgetting(app, own.sessions))
    async with signals() as signalled:
        # Which port was taken for :0 is worth saying; stdout is not for this. One write: other threads log meanwhile.
        sys.stderr.write(f"sealab serves MCP at {exposure.scheme}://{address.in_url}:{port}{MCP_PATH}\n")
        sys.stderr.flush()
        with warming(own.tools):
            await asyncio.wait({serving, signalled.first}, return_when=asyncio.FIRST_COMPLETED)
        if signalled.first.done():
            leaving = None if app.replicas is None else asyncio.create_task(app.replicas.leave())
            await _drain(server, exchanges, requests, settings.drain_seconds, signalled.second)
            if leaving is not None:
                leaving.cancel()
        server.should_exit = True
        await serving
        forgetting.cancel()
        if verifier is not None:
            await verifier.close()


def server_of(app: ASGIApp, settings: Settings, exposure: Exposure) -> HttpServer:
    """Return what serves an ASGI app over HTTP, once it is given sockets."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        backlog=ACCEPTED_AT_ONCE,
        http=HttpBounds(connections_max(), settings.http_receive_seconds).protocol(),
        proxy_headers=False,  # `Forwarded` judges whose count
        ssl_certfile=exposure.certificate,
        ssl_keyfile=exposure.key,
        timeout_graceful_shutdown=math.ceil(LAST_ANSWERS_SECONDS),
        ws="none",  # so each layer gets nothing but HTTP requests
        lifespan="off",  # MCP servers begin and end with their tenants
    )
    return HttpServer(config)


async def _drain(
    server: HttpServer, exchanges: Exchanges, requests: OpenRequests, seconds: float, hurry: asyncio.Future[None]
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
    """Forget the values of MCP sessions soon after these have ended; until it is cancelled."""
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
    policy = app.executor.policy
    if isinstance(policy, PolicyFile) and policy.is_missing:
        return policy.problem
    if app.readiness.problem is not None:
        return app.readiness.problem
    if (trouble := app.workspace.trouble()) is not None:
        return trouble
    waiting = max((pool.waiting for pool in app.pools.stats().values()), default=0)
    if waiting >= max(1, app.settings.queue_max):
        return QUEUE_FULL
    return app.audit.trouble() or (None if app.replicas is None else app.replicas.why_not_ready())


def _warning(app: App) -> str | None:
    policy = app.executor.policy.problem if isinstance(app.executor.policy, PolicyFile) else None
    return policy or app.readiness.warning


async def _upstreams(app: App) -> Mapping[str, object]:
    """Return how each upstream server of the operator stands; under `AUTH`, where anybody may ask, how many so."""
    try:
        standing = await app.registry.standing()
    except RegistryError as error:
        return {} if app.settings.auth is not Auth.OFF else {"problem": str(error)}
    return standing if app.settings.auth is Auth.OFF else Counter(str(each["state"]) for each in standing.values())


def _verifier_of(app: App) -> Verifier | None:
    """Return what tells whom a token stands for; None where nobody is authenticated. Raises `SettingsError`."""
    match app.settings.auth:
        case Auth.OFF:
            return None
        case Auth.TOKENS:
            return OwnTokens(app.database)
        case Auth.OAUTH:
            from ....governance.access.oauth_verifier import OAuthVerifier

            return OAuthVerifier(app.settings)


def _check_tls(exposure: Exposure) -> None:
    """Raise `AddressRefused` for a certificate and a key that cannot be used, or a key that asks for a passphrase."""
    if exposure.certificate is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            exposure.certificate, exposure.key, password=lambda: b""
        )
    except (OSError, ValueError) as error:
        raise AddressRefused(
            f"The certificate {exposure.certificate} with the key {exposure.key} cannot be used: {error}. Give PEM "
            "files that belong together, the key without a passphrase."
        ) from error


def _before_console(app: ASGIApp, tenants: Tenants[ServedApp], authentication: Authentication | None) -> ASGIApp:
    """Return an app before another that answers what is below `CONSOLE`, which is imported with the first such."""
    made: list[ASGIApp] = []

    def load() -> ASGIApp:
        from ...console.console import Console

        return Console(tenants, authentication)

    async def passed(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != CONSOLE and not scope["path"].startswith(f"{CONSOLE}/"):
            await app(scope, receive, send)
            return
        if not made:
            made.append(await asyncio.to_thread(load))
        await made[0](scope, receive, send)

    return passed


def _asgi(
    tenants: Tenants[ServedApp], address: Address, port: int, exposure: Exposure, *, verifier: Verifier | None
) -> Exchanges:
    """Return the ASGI app: each layer bounds one thing, and the innermost has one MCP server for each tenant."""
    app = tenants.own.app
    names = list(dict.fromkeys(("127.0.0.1", "localhost", "[::1]", address.in_url)))
    settings = app.settings
    metadata = None
    if settings.auth is Auth.OAUTH and settings.oauth_issuer is not None and settings.oauth_audience is not None:
        url = f"{exposure.public_url or f'{exposure.scheme}://{address.in_url}:{port}'}{MCP_PATH}"
        metadata = ResourceMetadata(url, settings.oauth_audience, settings.oauth_issuer)
    metadata_url = None if metadata is None else metadata.url
    innermost: ASGIApp = TenantApps(tenants, app.audit, authenticates=verifier is not None)
    if app.replicas is not None:
        from ..replicas.forwarding import Forwarding

        innermost = Forwarding(innermost, app.replicas)
    admission = Admission(innermost, settings.http_bodies_mb * 1_000_000, metadata_url, app.audit)
    authentication = None
    pages: ASGIApp = LinkPages(admission, tenants, APPROVAL_PAGES, SIGN_IN_PAGES)
    if verifier is not None:
        pages = authentication = Authentication(pages, verifier, metadata_url, app.audit)
        tenants.watch()
    if settings.console is Switch.ON:
        pages = _before_console(pages, tenants, authentication)
    if metadata is not None:
        pages = MetadataPages(pages, metadata)
    named = NamedHosts(pages, names, port, scheme=exposure.scheme, public_url=exposure.public_url)
    is_in_clear = not (address.is_loopback or exposure.has_tls)
    outermost: ASGIApp = Forwarded(named, exposure.proxies, only_through_proxies=is_in_clear)
    if app.replicas is not None:
        from ..replicas.door import Door
        from ..replicas.peer_calls import PeerCalls

        outermost = Door(outermost, admission, PeerCalls(tenants, app.replicas), app.replicas, MCP_PATH)
    return Exchanges(outermost, partial(_why_not_ready, app), partial(_warning, app), partial(_upstreams, app))
