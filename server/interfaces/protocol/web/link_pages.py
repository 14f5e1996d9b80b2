"""What the pages behind links have in common: a plain form, its answer, and headers that keep both to themselves.

A security boundary. Nothing on a page can run or be loaded, no other page can show it in a frame, it is kept nowhere,
and all text on it is escaped.
"""

from __future__ import annotations

import html
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from starlette.responses import HTMLResponse, Response
from starlette.types import Receive, Scope

from ....app import App
from ....base.terminal_escaping import visible
from .admission import whole

HEADERS = {
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    # The address holds a secret, which the page that comes next must not learn. Under `no-referrer` a browser would
    # send the form with `Origin: null` (Fetch, "append a request Origin header").
    "Referrer-Policy": "same-origin",
}
_BODY_BYTES_MAX = 1024
# A form that is answered with a redirect may lead where that leads (CSP 3, form-action).
_POLICY = "default-src 'none'; form-action {leads_to}; base-uri 'none'; frame-ancestors 'none'"
_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>sealab: {title}</title></head>
<body>
<h1>{title}</h1>
{content}
</body>
</html>
"""


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages below a path, each of which a link leads to; what stands last in a link's path is its secret."""

    path: str
    is_given_out: Callable[[bytes, str, Scope], bool]
    """Takes the key of a tenant, what stands last, and a request; says whether that tenant gave it out. Blocks."""
    response: Callable[[App | None, str, Scope, Receive], Awaitable[Response]]
    """Takes the tenant's app, None for a link that was not given out, what stands last, and the request."""
    unavailable: str
    """What the page says where that cannot be done now."""


def escaped(text: str) -> str:
    """Return a text as it may stand in HTML, its control characters shown."""
    return html.escape(visible(text))


def page(status: int, title: str, sentence: str, headers: Mapping[str, str] | None = None) -> HTMLResponse:
    """Return a page that says one thing."""
    return form_page(title, f"<p>{escaped(sentence)}</p>", status=status, headers=headers)


def form_page(
    title: str,
    content: str,
    *,
    status: int = 200,
    leads_to: str = "'self'",
    headers: Mapping[str, str] | None = None,
) -> HTMLResponse:
    """Return a page with HTML as it is; `leads_to` says where its form may be sent, with the redirects that follow."""
    policy = {"Content-Security-Policy": _POLICY.format(leads_to=leads_to)}
    content = _PAGE.format(title=escaped(title), content=content)
    return HTMLResponse(content, status, headers={**HEADERS, **policy, **(headers or {})})


async def sent_answer(receive: Receive) -> str | None:
    """Return the `answer` that a form was sent with; None where it was sent with anything else, or beside it."""
    body = await whole(receive, _BODY_BYTES_MAX)
    match parse_qsl((body or b"").decode("latin-1"), keep_blank_values=True):
        case [("answer", answer)]:
            return answer
    return None
