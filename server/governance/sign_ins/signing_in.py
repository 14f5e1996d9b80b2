"""Security boundary: has a user sign in to an upstream server, in their browser.

Where this server has an address of its own, the user is given a link to a page of it; the page says for whom the
sign-in is, and only then goes on to the issuer. A link is for one sign-in. The browser that begins it is the one that
ends it, and what it comes back with is taken once. Any process with the same database serves the steps.

Over stdio there is no such page: the user is sent to the issuer, and comes back to a port of this machine that is open
meanwhile (RFC 8252, section 7.3).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....tools_registry.configuration import ServerConfig, SignInOf
from ....tools_registry.errors import SignInFailed, SignInNeeded
from ....tools_registry.sign_in.owners import SignInOwner
from ...base.identity import LOCAL_IDENTITY
from ..audit.trail import who as who_asks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ....skills_db.sign_ins.sign_in_flows import Flow
    from ..caller import Caller
    from .sign_ins import SignIns

PATH = "/sign-in/"
"""Where the pages of sign-ins are; a link's secret follows, after the name of a tenant that is not the default one."""
CALLBACK = "callback"
"""What stands there in the place of a link's secret where browsers come back to."""
SIGN_IN_SECONDS = 300.0
"""How long a user may take to sign in."""
_LOOK_SECONDS = 0.5
_STATE_CHARS_MAX = 200
_CODE_CHARS_MAX = 4096
Show = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class AskedSignIn:
    """A sign-in that a user is asked for: the secret of its link, and whether it ended well."""

    sign_ins: SignIns
    server: str
    link: str

    async def ended(self) -> None:
        """Wait until the user has signed in. Raises `SignInNeeded` where they did not, or not in time."""
        from ....skills_db.sign_ins.sign_in_flows import REFUSED, SIGNED_IN

        while True:
            flow = await self.sign_ins.ask(lambda store: store.flows.get(self.link))
            if flow is not None and flow.outcome == SIGNED_IN:
                return
            if flow is not None and flow.outcome == REFUSED:
                raise SignInNeeded(f"The sign-in to the server {self.server!r} was refused or failed. Sign in again.")
            if flow is None or not flow.is_open:
                raise SignInNeeded(f"Nobody signed in to the server {self.server!r} in time. Call again, and sign in.")
            await asyncio.sleep(_LOOK_SECONDS)


async def asked_sign_in(sign_ins: SignIns, server: ServerConfig, owner: SignInOwner, caller: Caller) -> AskedSignIn:
    """Begin to ask a caller's user to sign in to a server, by a link to a page of this server."""
    link = await sign_ins.ask(lambda store: store.flows.new_secret("link"))
    identity = caller.identity
    who = "the local user" if identity == LOCAL_IDENTITY else f"{identity.principal} of the tenant {identity.tenant}"
    if server.sign_in is SignInOf.TENANT:
        who = f"everybody of the tenant {identity.tenant}"
    request = {
        "server": server.name,
        "url": server.url,
        "owner": owner,
        "who": who,
        "principal": who_asks(caller, identity.tenant).principal,
        "origin": caller.origin,
    }
    await sign_ins.ask(lambda store: store.flows.open(link, owner, server.name, request, seconds=SIGN_IN_SECONDS))
    return AskedSignIn(sign_ins, server.name, link)


async def begun_in_browser(sign_ins: SignIns, server: ServerConfig, link: str, flow: Flow, browser: str) -> str | None:
    """Begin the sign-in of a link for the browser that asks for it; return the issuer's address, where it goes.

    None where the link has ended, or another browser has it. Raises `SignInFailed`.
    """
    from ....tools_registry.sign_in.authorization import begin
    from ....tools_registry.sign_in.token_endpoint import issuer_client

    _require_same(server, flow)
    async with issuer_client() as client:
        state = await sign_ins.ask(lambda store: store.flows.new_secret("state"))
        begun = await begin(client, server, f"{flow.request['origin']}{PATH}{sign_ins.place}{CALLBACK}", state)
    pending = begun.pending.model_dump(mode="json", exclude_none=True)
    is_taken = await sign_ins.ask(lambda store: store.flows.begin(link, browser, state, pending))
    return begun.address if is_taken else None


async def came_back(sign_ins: SignIns, state: str, browser: str) -> tuple[str, Flow] | None:
    """Return the sign-in that a browser comes back with, once; None for all that was not begun in it."""
    if not state or not browser or len(state) > _STATE_CHARS_MAX or len(browser) > _STATE_CHARS_MAX:
        return None
    return await sign_ins.ask(lambda store: store.flows.come_back(state, browser))


async def ended_in_browser(
    sign_ins: SignIns, server: ServerConfig, came: tuple[str, Flow], answer: Mapping[str, str]
) -> bool:
    """End a sign-in with what its browser came back with; return whether the user is signed in.

    Raises `SignInFailed`, `SignInNeeded`; then too the link has ended.
    """
    from ....skills_db.sign_ins.sign_in_flows import REFUSED, SIGNED_IN
    from ....tools_registry.sign_in.authorization import finish
    from ....tools_registry.sign_in.token_endpoint import Pending, issuer_client

    key, flow = came
    outcome, code = REFUSED, answer.get("code", "")
    try:
        _require_same(server, flow)
        if not code or len(code) > _CODE_CHARS_MAX or "error" in answer:
            return False
        async with issuer_client() as client:
            granted = await finish(client, Pending.model_validate(flow.secrets), code, answer.get("iss"))
        principal = str(flow.request["principal"])
        await sign_ins.keep(server, SignInOwner(str(flow.request["owner"])), granted, principal=principal)
        outcome = SIGNED_IN
    finally:
        await sign_ins.ask(lambda store: store.flows.end(key, outcome))
    return True


async def signed_in_here(
    sign_ins: SignIns,
    server: ServerConfig,
    owner: SignInOwner,
    show: Show,
    *,
    principal: str = LOCAL_IDENTITY.principal,
    scope: str | None = None,
) -> None:
    """Sign in the user of this machine, for a principal; `show` is given the issuer's address.

    `scope` is what the server asked for beside what it asks for at first. Raises `SignInFailed`, `SignInNeeded`.
    """
    from ....tools_registry.sign_in.authorization import begin, finish
    from ....tools_registry.sign_in.browsers import coming_back
    from ....tools_registry.sign_in.token_endpoint import issuer_client

    async with coming_back(server, show, SIGN_IN_SECONDS) as browsers, issuer_client() as client:
        begun = await begin(client, server, browsers.redirect_uri, secrets.token_urlsafe(32), scope=scope)
        await browsers.show(begun.address)
        came = await browsers.answered()
        granted = await finish(client, begun.pending, came.code, came.iss)
    await sign_ins.keep(server, owner, granted, principal=principal)


def _require_same(server: ServerConfig, flow: Flow) -> None:
    """Raise `SignInFailed` where the operator has changed the server's entry since the link was made."""
    if server.sign_in is SignInOf.OPERATOR or server.token_exchange is not None or server.url != flow.request["url"]:
        raise SignInFailed(f"The server {server.name!r} was changed meanwhile. Call it again for a new link.")
