"""The pages at which a user signs in to an upstream server with an account of their own.

A security boundary. A link is for one sign-in of one caller; whoever opens it sees for whom it is, and has to say so.
GET shows, and changes nothing; POST begins, and gives the sign-in to the browser that sent it by a cookie that no other
has. What comes back from the issuer is taken once, from that browser, with the state that was sent along. Nothing of
what the issuer says, or gave, is shown. `NamedHosts` refuses what the page of another site sends.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Receive, Scope

from .....skills_db.sign_ins.sign_in_keys import SignInKeys
from .....tools_registry.errors import RegistryError
from ....app import App
from ....governance.sign_ins.signing_in import CALLBACK, PATH, begun_in_browser, came_back, ended_in_browser
from .callers import header
from .link_pages import HEADERS, LinkKind, escaped, form_page, page, sent_answer

if TYPE_CHECKING:
    from .....skills_db.sign_ins.sign_in_flows import Flow
    from .....tools_registry.configuration import ServerConfig

COOKIE = "sealab-sign-in"
"""Names the cookie by which a browser is known again; it lasts as long as a sign-in may take."""
_COOKIE_SECONDS = 900
_QUERY_CHARS_MAX = 8192

_FORM = """\
<p>Programs that <strong>{who}</strong> runs with sealab will use <strong>your</strong> account at the server
<strong>{server}</strong>.</p>
<p>Go on only if that is you, and if you have just asked for it. If somebody sent you this link, close this page: they
would get the use of your account.</p>
<form method="post">
<button name="answer" value="go">I asked for this: sign in</button>
</form>
"""


def _answer(scope: Scope) -> dict[str, str]:
    """Return what stands in the query of a request; nothing where it is too long, or says something twice."""
    query = scope["query_string"]
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True) if len(query) <= _QUERY_CHARS_MAX else []
    answer = dict(pairs)
    return answer if len(answer) == len(pairs) else {}  # else which of two counts would be a guess


def _is_given_out(key: bytes, last: str, scope: Scope) -> bool:
    kind, secret = ("state", _answer(scope).get("state", "")) if last == CALLBACK else ("link", last)
    return SignInKeys(key).is_own(kind, secret)


async def _response(app: App | None, last: str, scope: Scope, receive: Receive) -> Response:
    try:
        return await (_came_back(app, scope) if last == CALLBACK else _opened(app, last, scope, receive))
    except RegistryError as error:
        return page(502, "Not signed in", str(error))


async def _opened(app: App | None, link: str, scope: Scope, receive: Receive) -> Response:
    if scope["method"] not in {"GET", "HEAD", "POST"}:
        return page(405, "Not allowed", "A page is read with GET, and answered with POST.", {"Allow": "GET, POST"})
    flow = None if app is None else await app.sign_ins.ask(lambda store: store.flows.get(link))
    if app is None or flow is None:
        return page(404, "Not valid", "This link is not valid: use it whole, or ask for a new one.")
    if not flow.is_open:
        return page(410, "Ended", "This link has ended. Run the code again for a new one.")
    browser = _browser(scope)
    if scope["method"] != "POST":
        return _form(flow, browser or secrets.token_urlsafe(32), is_secure=scope["scheme"] == "https")
    if not browser:
        return page(400, "Not understood", "The browser did not send the cookie of this page. Allow it, and reload.")
    if await sent_answer(receive) != "go":
        return page(400, "Not understood", "The form has to say answer=go.")
    address = await begun_in_browser(app.sign_ins, await _server(app, flow), link, flow, browser)
    if address is None:
        return page(
            409, "Opened elsewhere", "Another browser has begun this sign-in. Run the code again for a new one."
        )
    return RedirectResponse(address, 303, headers=HEADERS)


async def _came_back(app: App | None, scope: Scope) -> Response:
    if scope["method"] != "GET":
        return page(405, "Not allowed", "The issuer sends the browser here with GET.", {"Allow": "GET"})
    answer = _answer(scope)
    came = None if app is None else await came_back(app.sign_ins, answer.get("state", ""), _browser(scope))
    if app is None or came is None:
        sentence = "This browser has no sign-in that waits for this answer. Open the link again, in one browser."
        return page(403, "Not signed in", sentence)
    if await ended_in_browser(app.sign_ins, await _server(app, came[1]), came, answer):
        return page(200, "Signed in", f"You are signed in to {came[1].request['server']}. You can close this page.")
    return page(200, "Not signed in", "The sign-in was refused. You can close this page.")


async def _server(app: App, flow: Flow) -> ServerConfig:
    """Return the server that a sign-in is to, as its entry is now. Raises `RegistryError`."""
    return (await app.registry.configuration()).server(str(flow.request["server"]))


def _browser(scope: Scope) -> str:
    """Return by what a browser is known again, empty where it is not."""
    sent = header(scope, b"cookie")
    return "" if sent is None else cookie_parser(sent.decode("latin-1")).get(COOKIE, "")


def _form(flow: Flow, browser: str, *, is_secure: bool) -> HTMLResponse:
    content = _FORM.format(who=escaped(str(flow.request["who"])), server=escaped(str(flow.request["server"])))
    shown = form_page("Sign in", content, leads_to="'self' https: http:")  # the issuer may be anywhere
    shown.set_cookie(
        COOKIE, browser, max_age=_COOKIE_SECONDS, path=PATH, httponly=True, samesite="lax", secure=is_secure
    )
    return shown


PAGES = LinkKind(PATH, _is_given_out, _response, "This cannot be done now. Try again in a moment.")
