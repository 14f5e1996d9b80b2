"""What the servers of one sealab share as a secret: keys that each derives from the vault's master key.

A security boundary. Each key serves one purpose (HMAC-SHA256 as a pseudo-random function, NIST SP 800-108):

    seal     shows that another server sent a request, see `seals`
    session  what a session of code is called in the database, which shows no name
    mcp      signs the id of an MCP session, which names the server that has it: `<server>.<id>.<signature>`
    state    seals `requestState` of MCP, one for each tenant
    bearer   encrypts the token of an OAuth issuer that goes along with a request
    address  marks the address of a server in the database: who can write there alone cannot have requests sent away
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from functools import cached_property
from typing import TYPE_CHECKING

from ....skills_db.vault_keys import Seal, SealBroken

if TYPE_CHECKING:
    from ....skills_db.replicas import ReplicaRow

_SIGNATURE_CHARS = 32
_MCP_ID = re.compile(r"([0-9a-f]{16})\.([!-~]{1,128})\.([0-9a-f]{32})")


class ReplicaKeys:
    """All that is derived for the servers of one master key."""

    def __init__(self, master: bytes) -> None:
        self._master = master
        self.seal = self._derived("seal")

    def session_name(self, tenant: str, session: str) -> str:
        """Return what a session is called in the database, of what the sandbox of a tenant calls it."""
        return self._mac("session", f"{tenant}\0{session}").hex()

    def mcp_id(self, replica: str, own: str) -> str:
        """Return the id by which clients know an MCP session that a server calls `own`."""
        return f"{replica}.{own}.{self._mcp_signature(replica, own)}"

    def opened_mcp_id(self, mcp_id: str) -> tuple[str, str] | None:
        """Return the server of an MCP session and what that calls it; None for an id that none of the servers made."""
        found = _MCP_ID.fullmatch(mcp_id)
        if found is None or not hmac.compare_digest(found[3], self._mcp_signature(found[1], found[2])):
            return None
        return found[1], found[2]

    def address_mark(self, replica: str, address: str) -> str:
        """Return what stands beside the address of a server in the database."""
        return self._mac("address", f"{replica} {address}").hex()

    def marked(self, row: ReplicaRow) -> bool:
        """Return whether a server with this master key wrote a row."""
        return hmac.compare_digest(row.mark.encode(), self.address_mark(row.id, row.address).encode())

    def state_key(self, tenant: str) -> bytes:
        """Return the key for `requestState` of a tenant."""
        return self._mac("state", tenant)

    def sealed_bearer(self, token: str) -> str:
        """Return a token as it goes along; empty for none."""
        if not token:
            return ""
        return base64.b64encode(self._seal.sealed(token.encode(), "")).decode("ascii")

    def opened_bearer(self, sealed: str) -> str:
        """Return a token that came along. Raises `ValueError` for what no server sealed."""
        if not sealed:
            return ""
        try:
            return self._seal.opened(base64.b64decode(sealed, validate=True), "").decode()
        except SealBroken:
            raise ValueError("a token that no server sealed") from None

    def _mcp_signature(self, replica: str, own: str) -> str:
        return self._mac("mcp", f"{replica}.{own}").hex()[:_SIGNATURE_CHARS]

    def _mac(self, purpose: str, what: str) -> bytes:
        return hmac.digest(self._derived(purpose), what.encode("utf-8", "surrogatepass"), hashlib.sha256)

    def _derived(self, purpose: str) -> bytes:
        return hmac.digest(self._master, f"sealab replicas|{purpose}".encode(), hashlib.sha256)

    @cached_property
    def _seal(self) -> Seal:
        return Seal(self._derived("bearer"))
