"""The links at which parked questions are answered: where they lead, and which a client is given."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ...errors import UsageError

if TYPE_CHECKING:
    from .background import Background
    from .background_reports import Approval, RunState

PATH = "/approvals/"
"""Where the pages of questions are; a link's token follows."""
_MCP_PATH = "/mcp"


async def link_of(background: Background, state: RunState, approval: Approval, request: object) -> str | None:
    """Return the link at which a run's question is answered, at the address to which a client sent its request.

    None where the request came over no HTTP: then there is no page. A link answers the question, so it is for the
    client alone, to show to its user, and never stands where the model reads it.
    """
    headers, url = getattr(request, "headers", None), getattr(request, "url", None)
    if headers is None or url is None:
        return None
    token = await background.link(approval, state.expires or 0)
    return f"{url.scheme}://{headers['host']}{PATH}{background.place}{token}"


def pages_at(address: str) -> str:
    """Return what the links at a server's address begin with, as an operator gives it. Raises `UsageError`."""
    try:
        parts = urlsplit(address)
        good = parts.scheme in {"http", "https"} and parts.hostname and not parts.query and not parts.fragment
        _ = parts.port  # it is judged as it is read
    except ValueError:
        good = None
    if not good:
        raise UsageError(f"{address} is not the address of a server. Give one such as http://127.0.0.1:8000.")
    return address.rstrip("/").removesuffix(_MCP_PATH) + PATH
