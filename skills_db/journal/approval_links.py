"""Security boundary: signs what a link says that answers a question of a run, and judges what a link says.

A token names the run, the number of its question and the time at which the link ends, followed by HMAC-SHA256 of that
under a key of its own. Whoever holds one may answer that question and no other; nothing else about it is secret. It is
judged by its signature alone, before anything of it is read or looked up, so a token that was not signed here shows
nothing about which runs there are.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .sealing import JournalKeys

TOKEN_CHARS_MAX = 200


@dataclass(frozen=True, slots=True)
class ApprovalLink:
    """What a link stands for; `expires` is in seconds since 1970."""

    run_id: str
    number: int
    expires: int


def signed(keys: JournalKeys, link: ApprovalLink) -> str:
    """Return the token of a link: letters, digits, dots, dashes and underscores."""
    said = f"{link.run_id}.{link.number}.{link.expires}"
    return f"{said}.{_signature(keys, said)}"


def judged(keys: JournalKeys, token: str) -> ApprovalLink | None:
    """Return what a token stands for, None where it was not signed with these keys. It may have expired."""
    said, _, signature = token.rpartition(".")
    if len(token) > TOKEN_CHARS_MAX or not token.isascii():
        return None
    if not hmac.compare_digest(_signature(keys, said), signature):
        return None
    run_id, number, expires = said.rsplit(".", 2)
    return ApprovalLink(run_id, int(number), int(expires))


def _signature(keys: JournalKeys, said: str) -> str:
    return urlsafe_b64encode(keys.approval_mark(said.encode("ascii"))).decode("ascii").rstrip("=")
