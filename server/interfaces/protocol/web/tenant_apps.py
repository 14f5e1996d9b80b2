"""What HTTP serves of each tenant: an MCP server with MCP sessions of its own, which its identity leads to.

A security boundary: the tenant of a request is that of its identity, which authentication has put into its scope.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass

from mcp.server.request_state import RequestStateSecurity
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Receive, Scope, Send

from .....skills_db.errors import SkillsDbError
from .....skills_db.vault_keys import tenants_key
from ....app import App
from ....base.errors import HomeError, HostWorkBusy, RequestRefused, ServerError, TenantRefused, TenantsBusy
from ....base.host_work import Kind, in_thread
from ....base.identity import DEFAULT_TENANT, identity_in
from ....governance.access.names import is_tenant_name
from ....governance.audit.trail import UNAUDITED, AuditTrail, DenialReason
from ....governance.scopes import mcp_session_of
from ...tenants import Tenants
from ..draining import OpenRequests
from ..serving import mcp_server
from ..strict_tool import StrictTool
from ..tools import tools_of
from .access_lines import denied
from .admission import BODY_BYTES_MAX
from .error_responses import refusal
from .link_pages import LinkKind, page
from .mcp_sessions import CALLERS_WORTH, McpSessions

MCP_PATH = "/mcp"
_RETRY_SECONDS = 5
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServedApp:
    """The MCP server of one app, as requests reach it."""

    app: App
    sessions: McpSessions
    tools: Sequence[StrictTool]

    @property
    def holds_connections(self) -> bool:
        """Whether it has MCP sessions that have not ended."""
        return bool(self.sessions.alive())


@asynccontextmanager
async def served(app: App, requests: OpenRequests, all_sessions: set[McpSessions]) -> AsyncIterator[ServedApp]:
    """Make the MCP server of an app and its sessions, which end with the context.

    `requests` counts what is at work, and `all_sessions` are those of all tenants.
    """
    tools = tools_of(app)
    mcp = mcp_server(app, requests, tools, _states_of(app))
    most = app.settings.http_sessions_max
    web = mcp.streamable_http_app(
        streamable_http_path=MCP_PATH,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # `NamedHosts` does it
        max_request_body_size=BODY_BYTES_MAX,
        max_sessions=most * CALLERS_WORTH,
    )
    async with web.router.lifespan_context(web):
        sessions = McpSessions(web, most, MCP_PATH, all_sessions=all_sessions)
        if app.replicas is not None:
            app.privacy.forgets_only(lambda scope: sessions.has(mcp_session_of(scope)))
        try:
            yield ServedApp(app, sessions, tools)
        finally:
            sessions.leave()


def _states_of(app: App) -> RequestStateSecurity | None:
    if app.replicas is None:
        return None
    from ..replicas.request_states import security_of

    return security_of(app.replicas, app.home.tenant)


class TenantApps:
    """An ASGI app: it gives each request to the MCP server of its tenant, opened at its first use.

    Where the server `authenticates`, one that came here without an identity is refused.
    """

    def __init__(
        self, tenants: Tenants[ServedApp], audit: AuditTrail = UNAUDITED, *, authenticates: bool = False
    ) -> None:
        self._tenants = tenants
        self._audit = audit
        self._authenticates = authenticates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        identity = identity_in(scope)
        if identity is None and self._authenticates:
            await refusal(401, "The request has no token. Send one that is valid.")(scope, receive, send)
            return
        async with AsyncExitStack() as stack:
            tenant = DEFAULT_TENANT if identity is None else identity.tenant
            try:
                app: ASGIApp = (await stack.enter_async_context(self._tenants.using(tenant))).sessions
            except (TenantRefused, RequestRefused) as error:
                answer = refusal(403, str(error))
                app = await denied(self._audit, scope, answer, reason=DenialReason.TENANT, identity=identity)
            except (TenantsBusy, HostWorkBusy, SkillsDbError, HomeError) as error:
                app = refusal(503, str(error), retry_after=_RETRY_SECONDS)
            await app(scope, receive, send)


class LinkPages:
    """An ASGI app before another: it answers what is sent to pages behind links, for the tenant that gave out the link.

    A link's path ends in a secret, or in the name of a tenant, a slash and a secret.
    """

    def __init__(self, app: ASGIApp, tenants: Tenants[ServedApp], *kinds: LinkKind) -> None:
        self._app = app
        self._tenants = tenants
        self._kinds = kinds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        path = scope["path"]
        pages = next((each for each in self._kinds if path.startswith(each.path)), None)
        if pages is None:
            await self._app(scope, receive, send)
            return
        named, slash, last = path.removeprefix(pages.path).rpartition("/")
        async with AsyncExitStack() as stack:
            try:
                app = None
                if not slash or (is_tenant_name(named) and named != DEFAULT_TENANT):
                    app = await self._app_of(stack, pages, named or DEFAULT_TENANT, last, scope)
                response = await pages.response(app, last, scope, receive)
            except (SkillsDbError, ServerError) as error:
                _LOG.warning("A page below %s cannot be served: %s", pages.path, error)
                response = page(503, "Not now", pages.unavailable, {"Retry-After": str(_RETRY_SECONDS)})
        await response(scope, receive, send)

    async def _app_of(self, stack: AsyncExitStack, pages: LinkKind, tenant: str, last: str, scope: Scope) -> App | None:
        """Return the app of the tenant that gave out a link, which is open until `stack` ends; None for any other."""

        def is_given_out() -> bool:
            operators_key = self._tenants.own.app.privacy.key()
            key = operators_key if tenant == DEFAULT_TENANT else tenants_key(operators_key, tenant)
            return pages.is_given_out(key, last, scope)

        if await in_thread(Kind.DATABASE, is_given_out, charged=False):
            with suppress(TenantRefused):  # what was deleted has no pages
                return (await stack.enter_async_context(self._tenants.using(tenant))).app
        return None
