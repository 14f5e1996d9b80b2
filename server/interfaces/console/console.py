"""Security boundary: lets people in to the console, and gives each request its page.

Who has a session's cookie is known by it, who sends a token as MCP clients do by that; nobody else sees anything but
the way in. The cookie is for scripts out of reach and goes along with no request that another site begins (HttpOnly,
SameSite=Strict); a form counts with the mark that this session was given. Pages load nothing but the style sheet, run
nothing, stand in no frame and are kept nowhere. `NamedHosts` has refused what the pages of other sites send.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Generic, Literal, TypedDict, TypeVar
from urllib.parse import parse_qsl

from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from ....skills_db.errors import JournalErased, JournalNotFound, SkillNotFound, SkillsDbError
from ...base.errors import (
    KNOWN_ERRORS,
    AuditUnwritten,
    HostWorkBusy,
    RightMissing,
    TenantRefused,
    TenantsBusy,
)
from ...base.identity import DEFAULT_TENANT, LOCAL_IDENTITY, Identity, Right
from ...governance.access.code_grant import CodeGrant
from ...governance.audit.trail import DenialReason
from ...governance.rights import CONSOLE
from ..commands.opened import OpenedHome
from ..protocol.web.access_lines import denied
from ..protocol.web.admission import whole
from ..protocol.web.authentication import Authentication, bearer_of
from ..protocol.web.callers import header
from ..protocol.web.link_pages import HEADERS
from ..tenants import Tenants
from .acts import ACTS, Act, leave_line
from .pages import PAGES, Data, Page
from .questions import TAKES_REASON
from .rendering import rendered, stylesheet
from .sessions import SESSION_SECONDS, SIGN_IN_SECONDS, ConsoleSession, ConsoleSessions
from .views import OfApp, View, Viewer

COOKIE = "sealab-console"
_SIGN_IN_COOKIE = "sealab-console-sign-in"
_SIGNED_IN = "signed-in"
_FORM_BYTES_MAX = 1_000_000
_LOGIN_BYTES_MAX = 16_384
"""Of nobody who is known."""
_POLICY = "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
_STYLE = "console.css"
_MENU = frozenset(page.menu for page in PAGES)
"""The pages that somebody who was asked to sign in comes back to."""
_LOG = logging.getLogger(__name__)
S = TypeVar("S", bound=OfApp)


@dataclass(frozen=True, slots=True)
class _Asked:
    """One request as it came: below which path, by which method, and whether the answer is to be JSON."""

    scope: Scope
    path: str
    form: Mapping[str, str]
    wants_json: bool

    @property
    def is_form(self) -> bool:
        """Whether it is to change something."""
        return str(self.scope["method"]) == "POST"

    @property
    def query(self) -> dict[str, str]:
        """What stands in its query."""
        return dict(parse_qsl(self.scope["query_string"].decode("latin-1")))

    @property
    def fault(self) -> Response | None:
        """What answers a request that is neither for a page nor a form."""
        if self.scope["method"] not in {"GET", "HEAD", "POST"}:
            return self.refusal(405, "A page is read with GET, and a form sent with POST.")
        kind = (header(self.scope, b"content-type") or b"").partition(b";")[0].strip().lower()
        if self.is_form and kind != b"application/x-www-form-urlencoded":
            return self.refusal(415, "A form is sent as application/x-www-form-urlencoded.")
        return None

    async def with_form(self, receive: Receive, bytes_max: int) -> _Asked | None:
        """Return it with its form; None where that is larger."""
        if not self.is_form:
            return self
        body = await whole(receive, bytes_max)
        if body is None:
            return None
        return replace(self, form=dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)))

    def answer(self, status: int, template: str, data: Data, *, title: str, **more: object) -> Response:
        """Return a page, or the data of it as JSON."""
        if self.wants_json:
            text, kind = json.dumps(data, ensure_ascii=False, default=str), "application/json"
        else:
            shown = {"title": title, "base": CONSOLE, "data": data, "query": self.query, "takes_reason": TAKES_REASON}
            text, kind = rendered(template, **shown, **more), "text/html"
        return Response(text, status, headers={**HEADERS, "Content-Security-Policy": _POLICY}, media_type=kind)

    def refusal(self, status: int, error: str, view: View | None = None) -> Response:
        """Return a page that says why there is no other."""
        menu = () if view is None else menu_of(view)
        return self.answer(status, "error.html", {"error": error}, title="Not shown", menu=menu, view=view)


class Console(Generic[S]):
    """An ASGI app: it answers what is below `CONSOLE`.

    Without `authentication`, where the server knows nobody, a link of `sealab console` alone opens it.
    """

    def __init__(self, tenants: Tenants[S], authentication: Authentication | None = None) -> None:
        self._tenants = tenants
        self._authentication = authentication
        operators = tenants.own.app
        self.sessions = ConsoleSessions(operators.database, operators.privacy.key)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        accepted = (header(scope, b"accept") or b"").decode("latin-1")
        wants_json = "application/json" in accepted and "text/html" not in accepted
        asked = _Asked(scope, scope["path"].removeprefix(CONSOLE).strip("/"), {}, wants_json)
        response = asked.fault or await self._response(asked, receive)
        await response(scope, receive, send)

    async def _response(self, asked: _Asked, receive: Receive) -> Response:
        if asked.path == _STYLE:
            return Response(stylesheet(), media_type="text/css", headers={"Cache-Control": "max-age=3600"})
        try:
            if asked.path.startswith("link/") and not asked.is_form:
                return await self._linked(asked)
            if asked.path in {"sign-in", _SIGNED_IN} and not asked.is_form and (grant := self._grant) is not None:
                if asked.path == "sign-in":
                    return await self._sent_to_issuer(asked, grant)
                return await self._came_from_issuer(asked, grant)
            if asked.path == "login":
                login = await asked.with_form(receive, _LOGIN_BYTES_MAX)
                return (
                    asked.refusal(413, "The form is too large. Send less.")
                    if login is None
                    else await self._signed_in(login)
                )
            viewer = await self._viewer(asked)
            if viewer is None:
                return self._way_in(asked, 401)
            given = await asked.with_form(receive, _FORM_BYTES_MAX)
            if given is None:
                return asked.refusal(413, "The form is too large. Send less.")
            asked = given
            if asked.is_form and viewer.session and not viewer.session.sent_form(asked.form.get("mark", "")):
                return asked.refusal(403, "The form is not of this session, or an old one. Open the page again.")
            if asked.path == "logout" and asked.is_form:
                return await self._signed_out(asked, viewer)
            return await self._seen(asked, viewer)
        except KNOWN_ERRORS as error:
            return asked.refusal(_status_of(error), str(error))

    async def _viewer(self, asked: _Asked) -> Viewer | None:
        """Return who sends a request, None where nobody is known."""
        token, session = None if self._authentication is None else bearer_of(asked.scope), None
        if token is None:
            session = await asyncio.to_thread(self.sessions.found, _cookie(asked.scope, COOKIE))
            if session is None or session.token is None:
                return None if session is None else Viewer(LOCAL_IDENTITY, session)
            token = session.token
        if self._authentication is None:
            return None
        judged = await self._authentication.judged(asked.scope, token)
        return Viewer(judged, session) if isinstance(judged, Identity) else None

    def _way_in(self, asked: _Asked, status: int, error: str = "") -> Response:
        takes_tokens = self._authentication is not None
        how = "Sign in with a token, or open" if takes_tokens else "Open"
        data = {"error": error or f"Nobody is signed in here, or no longer. {how} a new link of `sealab console`."}
        issuer = None if self._grant is None else self._grant.name
        to = asked.form.get("to", asked.path)
        return asked.answer(
            status, "login.html", data, title="Sign in", takes_tokens=takes_tokens, issuer=issuer, to=to
        )

    @property
    def _grant(self) -> CodeGrant | None:
        return None if self._authentication is None else self._authentication.code_grant

    def _callback(self, asked: _Asked) -> str:
        host = (header(asked.scope, b"host") or b"").decode("latin-1")
        public = self._tenants.own.app.settings.public_url or f"{asked.scope['scheme']}://{host}"
        return f"{public.rstrip('/')}{CONSOLE}/{_SIGNED_IN}"

    async def _sent_to_issuer(self, asked: _Asked, grant: CodeGrant) -> Response:
        """Send a browser to sign in at the issuer; its cookie shows that the same one comes back.

        The cookie goes along with what the issuer sends it to, and nowhere else (SameSite=Lax, the path).
        """
        secret = secrets.token_urlsafe(32)
        state = await asyncio.to_thread(self.sessions.sign_in, secret, int(time.time()) + SIGN_IN_SECONDS)
        url = await grant.url(self._callback(asked), state, _verifier(secret))
        response = RedirectResponse(url, 303, headers=HEADERS)
        self._set_cookie(asked, response, _SIGN_IN_COOKIE, secret, SIGN_IN_SECONDS, **_BACK)
        return response

    async def _came_from_issuer(self, asked: _Asked, grant: CodeGrant) -> Response:
        secret, query = _cookie(asked.scope, _SIGN_IN_COOKIE), asked.query
        is_own = await asyncio.to_thread(self.sessions.is_sign_in, secret, query.get("state", ""))
        audit, authentication = self._tenants.own.app.audit, self._authentication
        if not is_own or query.get("iss", grant.name) != grant.name:  # RFC 9207: what another issuer sent is refused
            page = self._way_in(asked, 403, "This sign-in was not begun here, or its time is over. Begin it again.")
            return await denied(audit, asked.scope, page, reason=DenialReason.STATE)

        async def redeemed() -> str | None:
            code = query.get("code")
            token = await grant.token(self._callback(asked), code, _verifier(secret)) if code else None
            return None if token is None else _usable(token)

        assert authentication is not None
        token = await authentication.in_turn(asked.scope, redeemed)
        if isinstance(token, Response):
            error = "Too many sign-ins from this address failed, or the issuer does not answer. Try again in a minute."
            return self._way_in(asked, token.status_code, error)
        page = self._way_in(asked, 401, "The issuer gave no token that is valid here. Sign in again.")
        if token is None:
            return await denied(audit, asked.scope, page, reason=DenialReason.CODE)
        judged = await authentication.judged(asked.scope, token)
        if not isinstance(judged, Identity):
            return page
        session = await asyncio.to_thread(self.sessions.begun, token, judged)
        await self._note_sign_in(judged, "oauth")
        # From a page of this server, since a redirect would go on without the cookie: another site began it.
        response = asked.answer(200, "signed_in.html", {"signed_in": True}, title="Signed in")
        self._set_cookie(asked, response, COOKIE, session.secret, SESSION_SECONDS)
        self._set_cookie(asked, response, _SIGN_IN_COOKIE, "", 0, **_BACK)
        return response

    async def _linked(self, asked: _Asked) -> Response:
        session = await asyncio.to_thread(self.sessions.taken, asked.path.removeprefix("link/"))
        if session is None:
            return self._way_in(
                asked, 403, "This link was used, or its time is over. `sealab console` makes a new one."
            )
        return await self._begun(asked, session, LOCAL_IDENTITY, "link")

    async def _signed_in(self, asked: _Asked) -> Response:
        if not asked.is_form or self._authentication is None:
            return self._way_in(asked, 405 if asked.is_form else 200, "" if asked.is_form else "Give a token.")
        token = _usable(asked.form.get("token", "").strip())
        judged = await self._authentication.judged(asked.scope, token) if token else None
        if not isinstance(judged, Identity):
            return self._way_in(asked, 401, "This token is not valid here, or cannot be judged now.")
        session = await asyncio.to_thread(self.sessions.begun, token, judged)
        return await self._begun(asked, session, judged, "console")

    async def _begun(self, asked: _Asked, session: ConsoleSession, identity: Identity, method: str) -> Response:
        await self._note_sign_in(identity, method)
        to = asked.form.get("to", "")
        return self._redirect(asked, to if to in _MENU else "", session.secret, SESSION_SECONDS)

    async def _note_sign_in(self, identity: Identity, method: str) -> None:
        audit = self._tenants.own.app.audit
        audit.signed_in(identity, method)
        await audit.kept()

    async def _signed_out(self, asked: _Asked, viewer: Viewer) -> Response:
        if viewer.session is not None:
            await asyncio.to_thread(self.sessions.end, viewer.session)
        return self._redirect(asked, "login", "", 0)

    def _redirect(self, asked: _Asked, path: str, secret: str, seconds: int) -> Response:
        response = _to(path)
        self._set_cookie(asked, response, COOKIE, secret, seconds)
        return response

    def _set_cookie(
        self,
        asked: _Asked,
        response: Response,
        name: str,
        value: str,
        seconds: int,
        *,
        path: str = CONSOLE,
        same_site: Literal["lax", "strict"] = "strict",
    ) -> None:
        """Set a cookie; a link is opened at the address that it names, all else at the public one."""
        at = f"{asked.scope['scheme']}:" if asked.path.startswith("link/") else self._callback(asked)
        secure = at.startswith("https:")
        response.set_cookie(name, value, max_age=seconds, path=path, httponly=True, samesite=same_site, secure=secure)

    async def _seen(self, asked: _Asked, viewer: Viewer) -> Response:
        async with AsyncExitStack() as stack:
            own = await stack.enter_async_context(self._tenants.using(viewer.identity.tenant))
            view = View(
                viewer,
                own.app,
                self._tenants.own.app,
                {
                    app.home.tenant: OpenedHome(app.home, app.database, app.privacy, app.journal)
                    for app in (self._tenants.own.app, *self._tenants.open_apps, own.app)
                },
                self._tenants.using,
                query=asked.query,
                form=asked.form,
            )
            try:
                return await (_done(asked, view) if asked.is_form else _shown(asked, view))
            except KNOWN_ERRORS as error:
                return asked.refusal(_status_of(error), str(error), view)


def _cookie(scope: Scope, name: str) -> str:
    sent = header(scope, b"cookie")
    return "" if sent is None else cookie_parser(sent.decode("latin-1")).get(name, "")


class _How(TypedDict):
    path: str
    same_site: Literal["lax", "strict"]


_BACK = _How(path=f"{CONSOLE}/{_SIGNED_IN}", same_site="lax")


def _verifier(secret: str) -> str:
    """Return what the issuer is shown for a secret in a browser (RFC 7636)."""
    return hmac.digest(secret.encode(), b"sealab console sign-in verifier", hashlib.sha256).hex()


def _usable(token: str) -> str | None:
    """Return a token that a request could have as its bearer; None for any other."""
    return bearer_of({"headers": [(b"authorization", f"Bearer {token}".encode("ascii", "replace"))]})


def menu_of(view: View) -> Sequence[Page]:
    """Return the pages that a viewer finds in the menu."""
    return [page for page in PAGES if (page.menu or not page.path.pattern) and page.is_for(view)]


async def _shown(asked: _Asked, view: View) -> Response:
    for page in PAGES:
        if (found := page.path.fullmatch(asked.path)) is not None:
            if not page.is_for(view):
                return asked.refusal(403, _lacking(page.needs, any_of=True), view)
            data = await page.shows(view := replace(view, named=found.groupdict()))
            return await _page(asked, view, page.template, data, page.title)
    return asked.refusal(404, "There is no such page.", view)


async def _done(asked: _Asked, view: View) -> Response:
    for act in ACTS:
        if (found := act.path.fullmatch(asked.path)) is None:
            continue
        if not act.is_for(view):
            return asked.refusal(403, _lacking(act.needs), view)
        view = replace(view, named=found.groupdict())
        data, leads_to = await _acted(act, view)
        if leads_to is not None and not asked.wants_json:
            return _to(leads_to)
        return await _page(asked, view, act.template, data, act.name.capitalize())
    return asked.refusal(404, "There is nothing to do at this address.", view)


async def _acted(act: Act, view: View) -> tuple[Data, str | None]:
    outcome = "failed"
    try:
        found = await act.does(view)
        outcome = "ok"
    finally:
        leave_line(act, view, outcome)
    await view.operators.audit.kept()
    return found


async def _page(asked: _Asked, view: View, template: str, data: Data, title: str) -> Response:
    mark = "" if view.viewer.session is None else view.viewer.session.form_mark
    more = {"menu": menu_of(view), "view": view, "mark": mark, "named": view.named, "rights": Right}
    return await asyncio.to_thread(lambda: asked.answer(200, template, data, title=title, **more))


def _lacking(needs: Sequence[Right], *, any_of: bool = False) -> str:
    scopes = (" or " if any_of else " and ").join(needs)
    return (
        f"This needs the scope {scopes}, for all tenants in the tenant {DEFAULT_TENANT}. Sign in with a token of that."
    )


def _to(path: str) -> Response:
    headers = {**HEADERS, "Content-Security-Policy": _POLICY}
    return RedirectResponse(f"{CONSOLE}/{path}".rstrip("/"), 303, headers=headers)


_STATUSES: Sequence[tuple[tuple[type[BaseException], ...], int]] = (
    ((JournalNotFound, SkillNotFound), 404),
    ((JournalErased,), 410),
    ((RightMissing, TenantRefused), 403),
    ((TenantsBusy, HostWorkBusy, AuditUnwritten, SkillsDbError), 503),
)


def _status_of(error: BaseException) -> int:
    return next((status for kinds, status in _STATUSES if isinstance(error, kinds)), 400)
