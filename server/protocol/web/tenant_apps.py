"""What HTTP serves of each tenant: an MCP server with MCP sessions of its own, which its identity leads to.

A security boundary: the tenant of a request is that of its identity, which authentication has put into its scope.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from mcp.server.request_state import RequestStateSecurity
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Receive, Scope, Send

from ....skills_db.errors import SkillsDbError
from ....skills_db.journal.approval_links import judged
from ....skills_db.journal.sealing import JournalKeys
from ....skills_db.sign_ins.sign_in_keys import SignInKeys
from ....skills_db.vault_keys import tenants_key
from ...access.names import tenant_name
from ...app import App
from ...audit.trail import UNAUDITED, AuditTrail, DenialReason
from ...errors import HomeError, HostWorkBusy, RequestRefused, TenantRefused, TenantsBusy
from ...host_work import Kind, in_thread
from ...identity import DEFAULT_TENANT, identity_in
from ...scopes import mcp_session_of
from ...sign_ins.signing_in import CALLBACK
from ...tenants.tenants import Tenants
from ..draining import OpenRequests
from ..serving import mcp_server
from ..strict_tool import StrictTool
from ..tools import tools_of
from .access_lines import AccessLines
from .approval_pages import QuestionPlace
from .bodies import BODY_BYTES_MAX
from .error_responses import refusal
from .mcp_sessions import CALLERS_WORTH, McpSessions
from .sign_in_pages import SignInPlace


async def _tenant_of_link(operators: App, path: str) -> tuple[str, str] | None:
    """Return the tenant and the token of a link, `token` or `tenant/token`; None where it was not signed for that.

    Raises what reading the operator's key raises.
    """
    if (named := _named_tenant(path)) is None:
        return None
    tenant, token = named
    if tenant == DEFAULT_TENANT:
        return DEFAULT_TENANT, token  # its own store judges the token

    def is_signed() -> bool:
        return judged(JournalKeys(tenants_key(operators.privacy.key(), tenant)), token) is not None

    return (tenant, token) if await in_thread(Kind.DATABASE, is_signed, charged=False) else None


def _named_tenant(path: str) -> tuple[str, str] | None:
    """Return the tenant that a path names, and what stands last in it; None where it has not the form of a link."""
    tenant, slash, last = path.rpartition("/")
    if not slash:
        return DEFAULT_TENANT, last
    try:
        tenant_name(tenant)
    except RequestRefused:
        return None
    return None if tenant == DEFAULT_TENANT else (tenant, last)


async def _tenant_of_sign_in(operators: App, path: str, state: str) -> tuple[str, str] | None:
    """Return the tenant and the last part of a path, `secret` or `tenant/secret`; None where it was not given out.

    Where `CALLBACK` stands in the place of the secret, it is `state` that was. Raises what reading the operator's key
    raises.
    """
    if (named := _named_tenant(path)) is None:
        return None
    tenant, last = named
    kind, secret = ("state", state) if last == CALLBACK else ("link", last)

    def is_own() -> bool:
        operators_key = operators.privacy.key()
        key = operators_key if tenant == DEFAULT_TENANT else tenants_key(operators_key, tenant)
        return SignInKeys(key).is_own(kind, secret)

    return named if await in_thread(Kind.DATABASE, is_own, charged=False) else None


MCP_PATH = "/mcp"
_RETRY_SECONDS = 5


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
        sessions = McpSessions(web, most, host="127.0.0.1", path=MCP_PATH, all_sessions=all_sessions)
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
        self._lines = AccessLines(audit)
        self._authenticates = authenticates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._tenants.own.sessions(scope, receive, send)
            return
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
                reason = DenialReason.TENANT
                app = await self._lines.denied(scope, answer, status=403, reason=reason, identity=identity)
            except (TenantsBusy, HostWorkBusy, SkillsDbError, HomeError) as error:
                app = refusal(503, str(error), retry_after=_RETRY_SECONDS)
            await app(scope, receive, send)


@asynccontextmanager
async def question_place(tenants: Tenants[ServedApp], path: str) -> AsyncIterator[QuestionPlace | None]:
    """Give the place of the question whose link has this path, None where it is not a link that was given."""
    async with AsyncExitStack() as stack:
        place = None
        if (found := await _tenant_of_link(tenants.own.app, path)) is not None:
            tenant, token = found
            try:
                app = (await stack.enter_async_context(tenants.using(tenant))).app
                place = QuestionPlace(app.background, app.privacy, token)
            except TenantRefused:
                pass  # what was deleted has no questions
        yield place


@asynccontextmanager
async def sign_in_place(tenants: Tenants[ServedApp], path: str, state: str) -> AsyncIterator[SignInPlace | None]:
    """Give the place of the sign-in whose link has this path, or whose state this is, None where neither was given."""
    async with AsyncExitStack() as stack:
        place = None
        if (found := await _tenant_of_sign_in(tenants.own.app, path, state)) is not None:
            tenant, last = found
            try:
                app = (await stack.enter_async_context(tenants.using(tenant))).app
                place = SignInPlace(app.sign_ins, app.registry, last)
            except TenantRefused:
                pass  # nobody signs in for what is served no more
        yield place
