"""What the pages behind links have in common: a plain form, its answer, and headers that keep both to themselves.

A security boundary. Nothing on a page can run or be loaded, no other page can show it in a frame, it is kept nowhere,
and all text on it is escaped.
"""

from __future__ import annotations

import base64
import hashlib
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
_BODY_BYTES_MAX = 16_384
_FIELDS_MAX = 100
_STYLE = """
body{max-width:44rem;margin:1rem auto;padding:0 .75rem;font:16px/1.45 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.3rem}pre,code{font:.9em/1.4 ui-monospace,monospace;white-space:pre-wrap}
pre{padding:.5rem;background:#f3f3f0;border-radius:4px}
table{border-collapse:collapse;width:100%}td,th{padding:.15rem .5rem .15rem 0;vertical-align:top;text-align:left}
th{font-weight:600}fieldset{margin:.75rem 0;border:1px solid #bbb;border-radius:4px}
input[type=text],select{width:100%;box-sizing:border-box;font:inherit;padding:.35rem}
button{font:inherit;padding:.5rem 1.25rem;margin:.75rem .75rem .75rem 0}.warns{color:#9b1c1c}
@media (prefers-color-scheme:dark){body{background:#181818;color:#e6e6e6}pre{background:#262626}.warns{color:#ff9c9c}}
"""
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
"""The one style that a page may have (CSP 3, 'sha256-'): nothing is loaded."""
# A form that is answered with a redirect may lead where that leads (CSP 3, form-action).
_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; "
    "form-action {leads_to}; base-uri 'none'; frame-ancestors 'none'"
)
_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>sealab: {title}</title>
<style>{style}</style></head>
<body>
<h1>{title}</h1>
{content}
</body>
</html>
"""


@dataclass(frozen=True, slots=True)
class LinkKind:
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
    content = _PAGE.format(title=escaped(title), style=_STYLE, content=content)
    return HTMLResponse(content, status, headers={**HEADERS, **policy, **(headers or {})})


async def sent_answer(receive: Receive) -> str | None:
    """Return the `answer` that a form was sent with; None where it was sent with anything else, or beside it."""
    fields = await sent_fields(receive)
    return fields[0][1] if [name for name, _ in fields] == ["answer"] else None


async def sent_fields(receive: Receive) -> list[tuple[str, str]]:
    """Return the fields that a form was sent with, in their order; none where they are too long."""
    body = await whole(receive, _BODY_BYTES_MAX)
    return parse_qsl((body or b"").decode("latin-1"), keep_blank_values=True, max_num_fields=_FIELDS_MAX)
