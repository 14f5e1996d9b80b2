"""Security boundary: whose account an upstream server sees, and the tokens by which it does.

The owner of a sign-in follows from the server's entry in `mcp.json` and from the connection of the caller, never from
what code says. The operator's own (`OPERATOR`) stand in the operator's database, for all tenants. Tokens are read anew
for each request, so that one that was revoked is not sent again. They are renewed by one process at a time, see
`sign_in_store`; a renewal goes on where its caller is cancelled, since the issuer may have ended the token that it was
asked with.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from ....skills_db.errors import SignInUnreadable, SkillsDbError
from ....tools_registry.configuration import ServerConfig, SignInOf
from ....tools_registry.errors import ConnectFailed, SignInFailed, SignInNeeded
from ....tools_registry.names import test_of
from ....tools_registry.sign_in.owners import OPERATOR, SignInOwner
from ...base.errors import AuditUnwritten, HostWorkRefused, RequestRefused, VaultKeyError
from ...base.host_work import Kind, in_thread
from ...base.identity import DEFAULT_TENANT, LOCAL_IDENTITY, Identity
from ...base.lru import Lru
from ..audit.trail import UNAUDITED, AuditKind, AuditTrail
from ..scopes import is_one_user

if TYPE_CHECKING:
    import httpx2

    from ....skills_db.audit.chain import Detail
    from ....skills_db.engine import Database
    from ....skills_db.sign_ins.sign_in_keys import StoredTokens
    from ....skills_db.sign_ins.sign_in_store import SignInStore, StoredSignIn
    from ....tools_registry.sign_in.token_endpoint import Granted
    from ..caller import Caller

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")

LEASE_SECONDS = 60.0
"""How long a process may take to renew a sign-in; then another may."""
RENEWED_WITHIN_SECONDS = 75.0
"""How long a request waits until another has renewed its sign-in."""
_LOOK_SECONDS = 0.1
REVOKED_WITHIN_SECONDS = 60.0
"""How long issuers have at most to revoke all sign-ins of a principal, or of a tenant."""
_REVOKED_AT_ONCE = 8
EXCHANGED_MAX = 1024
"""Exchanged tokens that are kept in memory; with a further one the oldest is forgotten."""


class SignIns:
    """The sign-ins of one home, which is one tenant's; those of the operator are those of `operators`, or here too."""

    def __init__(
        self,
        database: Callable[[], Database],
        key: Callable[[], bytes],
        *,
        tenant: str = DEFAULT_TENANT,
        audit: AuditTrail = UNAUDITED,
        operators: SignIns | None = None,
    ) -> None:
        self._operators = operators
        self._audit = audit
        self._database = database
        self._key = key
        self._tenant = tenant
        self._process = secrets.token_hex(8)
        self._opened: SignInStore | None = None
        self._renewing: dict[tuple[str, SignInOwner], asyncio.Task[str]] = {}
        self._exchanged: Lru[tuple[str, SignInOwner], tuple[str, float]] = Lru(EXCHANGED_MAX)

    def owner(self, server: ServerConfig, caller: Caller) -> SignInOwner:
        """Return whose sign-in a caller's call of a server uses. Raises `RequestRefused` where that is unknown."""
        if server.sign_in is SignInOf.OPERATOR:
            return OPERATOR
        if caller.identity != LOCAL_IDENTITY and caller.identity.tenant != self._tenant:
            raise RequestRefused("This caller is another tenant's. Call the server of that tenant.")
        if server.sign_in is SignInOf.TENANT:
            return SignInOwner(f"tenant\0{self._tenant}")
        if not is_one_user(caller.scope):
            raise RequestRefused(
                f"The server {server.name!r} is called with each caller's own sign-in, and this caller cannot be known "
                "again. Serve with AUTH=tokens or AUTH=oauth, or over stdio."
            )
        return self.of_scope(caller.scope, caller.bearer if server.token_exchange is not None else "")

    def of_scope(self, scope: str, bearer: str = "") -> SignInOwner:
        """Return the owner of what the callers of a scope have; what a token was exchanged for is that token's own."""
        own = person_of(self._tenant, scope)
        return SignInOwner(f"{own}\0{hashlib.sha256(bearer.encode()).hexdigest()}" if bearer else own)

    @property
    def place(self) -> str:
        """What stands before the secret in the path of a link: the tenant, with a slash, unless it is `default`."""
        return "" if self._tenant == DEFAULT_TENANT else f"{self._tenant}/"

    async def version(self, server: ServerConfig, owner: SignInOwner) -> int | None:
        """Return the version of an owner's sign-in, None where there is none for this very server."""
        stored = await self._stored(server, owner)
        return None if stored is None else stored.version

    def signs(self, server: ServerConfig, owner: SignInOwner) -> httpx2.Auth | None:
        """Return what signs an owner's requests to a server; None where the operator is not signed in to it. Blocks.

        Of the operator it raises `SignInNeeded` where the sign-in cannot be read, else `ConnectFailed` where that
        cannot be determined now.
        """
        from ....tools_registry.sign_in.token_endpoint import SignedRequests

        if owner != OPERATOR:
            return SignedRequests(server, partial(self.token, server, owner))
        if self._operators is not None:
            return self._operators.signs(server, OPERATOR)
        over = f"The sign-in to the server {server.name!r} is over. Run {test_of(server.name)} in a terminal."
        if not self._has_operators(server, over):
            return None

        async def token() -> str:
            try:
                return await self.token(server, OPERATOR)
            except SignInNeeded:
                raise SignInNeeded(over) from None

        return SignedRequests(server, token, over)

    def _has_operators(self, server: ServerConfig, over: str) -> bool:
        """Return whether the operator is signed in to a server. Raises as `signs`."""
        from ....skills_db.sign_ins.sign_in_store import sign_ins_of

        try:
            if not sign_ins_of(self._database()):
                return False  # without a look at the vault's key, which there need not be
            stored = self._store().get(OPERATOR, server.name)
        except SignInUnreadable:
            raise SignInNeeded(over) from None
        except (SkillsDbError, VaultKeyError, OSError) as error:
            raise ConnectFailed(
                f"It cannot be told now whether the operator is signed in to the server {server.name!r}. {error}"
            ) from error
        return stored is not None and stored.tokens.get("url") == server.url

    @property
    def is_renewing(self) -> bool:
        """Whether this process renews a sign-in."""
        return bool(self._renewing)

    async def keep(self, server: ServerConfig, owner: SignInOwner, granted: Granted, *, principal: str) -> None:
        """Keep what a sign-in gave, in the place of an earlier one; `principal` is for whom it was made.

        Raises `SignInFailed` where it cannot be kept, or its line of the audit log is required and cannot be written:
        nothing is kept then, and the issuer is asked to revoke what it gave.
        """
        if owner == OPERATOR and self._operators is not None:
            await self._operators.keep(server, owner, granted, principal=principal)
            return
        tokens = granted.model_dump(mode="json", exclude_none=True)
        details: dict[str, Detail] = {"server": server.name, "sign_in": server.sign_in.value}
        self._note(AuditKind.UPSTREAM_SIGNED_IN, principal, details)
        try:
            await self._audit.kept()
            await self.ask(lambda store: store.put(owner, server.name, tokens))
        except (AuditUnwritten, SkillsDbError, VaultKeyError, HostWorkRefused) as error:
            await all_revoked([tokens])
            raise SignInFailed(f"What the issuer gave cannot be kept, so it is not used. {error}") from error
        _LOG.info("A sign-in to the server %s was made.", server.name)

    async def exchange(self, server: ServerConfig, caller: Caller, *, anew: bool = False) -> None:
        """Return a token for a caller's calls of a server whose entry has a `token_exchange`.

        `anew` gets another where there is one. Raises `SignInNeeded` where the caller has no token to exchange, and
        `SignInFailed`.
        """
        assert server.token_exchange is not None
        key = (server.name, self.owner(server, caller))
        known = self._exchanged.get(key)
        if known is not None and time.time() < known[1] and not anew:
            return
        if not caller.bearer:
            raise SignInNeeded(
                f"The server {server.name!r} is called with what the caller's own token is exchanged for, and this run "
                "has no such token: only a caller under AUTH=oauth sends one, and a background run does not keep it."
            )
        from ....tools_registry.sign_in.token_endpoint import exchanged, issuer_client

        async with issuer_client() as client:
            self._exchanged[key] = await exchanged(client, server.token_exchange, caller.bearer)

    async def sign_out(
        self, server: ServerConfig, owner: SignInOwner, *, principal: str = LOCAL_IDENTITY.principal
    ) -> tuple[bool, bool]:
        """Forget an owner's sign-in to a server; return whether there was one, and whether its issuer revoked it.

        One that cannot be read ends too, and cannot be revoked.
        """
        if owner == OPERATOR and self._operators is not None:
            return await self._operators.sign_out(server, owner, principal=principal)
        try:
            stored = await self.ask(lambda store: store.get(owner, server.name))
        except SignInUnreadable:
            stored = None
        removed = await self.ask(lambda store: store.remove(owner, server.name))
        revoked = removed and stored is not None and await _revoked(stored.tokens)
        if removed:
            details = {"server": server.name, "sign_in": server.sign_in.value, "revoked": revoked}
            self._note(AuditKind.UPSTREAM_SIGNED_OUT, principal, details)
        return removed, revoked

    def _note(self, kind: AuditKind, principal: str, details: Mapping[str, Detail]) -> None:
        self._audit.acted(kind, Identity(self._tenant, principal, frozenset()), details=details)

    async def ask(self, work: Callable[[SignInStore], _T]) -> _T:
        """Do work with the store, in a thread."""
        return await in_thread(Kind.DATABASE, lambda: work(self._store()), charged=False)

    def _store(self) -> SignInStore:
        if self._opened is None:
            from ....skills_db.sign_ins.sign_in_store import SignInStore

            self._opened = SignInStore(self._database(), self._key())
        return self._opened

    async def _stored(self, server: ServerConfig, owner: SignInOwner) -> StoredSignIn | None:
        """Return an owner's sign-in to a server; None where it was made for another URL."""
        stored = await self.ask(lambda store: store.get(owner, server.name))
        return None if stored is None or stored.tokens.get("url") != server.url else stored

    async def token(self, server: ServerConfig, owner: SignInOwner) -> str:
        """Return the access token of now; what signs requests calls it.

        Raises `SignInNeeded` where there is none, and `httpx2.ConnectError` where that is unknown.
        """
        import httpx2

        if server.token_exchange is not None:
            known = self._exchanged.get((server.name, owner))
            if known is None or time.time() >= known[1]:
                raise SignInNeeded(f"The token for the server {server.name!r} has ended. Call again.")
            return known[0]
        try:
            return await self._kept_token(server, owner)
        except (SignInFailed, SkillsDbError, HostWorkRefused) as error:
            raise httpx2.ConnectError(f"the sign-in cannot be used now. {error}") from None

    async def _kept_token(self, server: ServerConfig, owner: SignInOwner) -> str:
        from ....tools_registry.sign_in.token_endpoint import Granted

        deadline = time.monotonic() + RENEWED_WITHIN_SECONDS
        while time.monotonic() < deadline:
            stored = await self._stored(server, owner)
            if stored is None:
                raise SignInNeeded(f"Nobody is signed in to the server {server.name!r} for this call. Sign in.")
            granted = Granted.model_validate(stored.tokens)
            if not granted.is_over_soon:
                return granted.tokens.access_token
            renewing = self._renewing.get((server.name, owner))
            if renewing is None and await self._lease(server, owner, stored.version):
                renewing = self._begin_renewal(server, owner, stored.version, granted)
            if renewing is not None:
                return await asyncio.shield(renewing)
            await asyncio.sleep(_LOOK_SECONDS)  # another process renews it
        raise SignInFailed(f"The sign-in to the server {server.name!r} is not renewed in time. Try again in a moment.")

    async def _lease(self, server: ServerConfig, owner: SignInOwner, version: int) -> bool:
        return await self.ask(lambda store: store.lease(owner, server.name, version, self._process, LEASE_SECONDS))

    def _begin_renewal(
        self, server: ServerConfig, owner: SignInOwner, version: int, granted: Granted
    ) -> asyncio.Task[str]:
        key = (server.name, owner)
        task = asyncio.create_task(self._renewed(server, owner, version, granted))
        self._renewing[key] = task
        task.add_done_callback(lambda done: (self._renewing.pop(key, None), done.cancelled() or done.exception()))
        return task

    async def _renewed(self, server: ServerConfig, owner: SignInOwner, version: int, granted: Granted) -> str:
        from ....tools_registry.sign_in.token_endpoint import issuer_client, renewed, revoked

        name, process = server.name, self._process
        async with issuer_client() as client:
            try:
                fresh = await renewed(client, granted)
            except SignInNeeded:
                await self.ask(lambda store: store.remove(owner, name, version))
                raise
            except SignInFailed:
                await self.ask(lambda store: store.release(owner, name, version, process))
                raise
            tokens = fresh.model_dump(mode="json", exclude_none=True)
            if await self.ask(lambda store: store.renew(owner, name, version, process, tokens)):
                return fresh.tokens.access_token
            await revoked(client, fresh)  # signed out, or in anew, meanwhile
        raise SignInNeeded(f"The sign-in to the server {name!r} was ended. Sign in again.")


def person_of(tenant: str, scope: str) -> str:
    """Return what stands for the callers of a scope of a tenant, as whose the store keeps sign-ins."""
    return f"caller\0{tenant}\0{scope}"


async def all_revoked(given: Sequence[StoredTokens]) -> int:
    """Revoke at the issuers what sign-ins gave (RFC 7009); return how many answered within `REVOKED_WITHIN_SECONDS`."""
    asked = asyncio.Semaphore(_REVOKED_AT_ONCE)

    async def one(tokens: StoredTokens) -> bool:
        async with asked:
            return await _revoked(tokens)

    tasks = [asyncio.create_task(one(each)) for each in given]
    if not tasks:
        return 0
    done, late = await asyncio.wait(tasks, timeout=REVOKED_WITHIN_SECONDS)
    for task in late:
        task.cancel()
    return sum(task.exception() is None and task.result() for task in done)


async def _revoked(tokens: object) -> bool:
    from ....tools_registry.sign_in.token_endpoint import Granted, issuer_client, revoked

    async with issuer_client() as client:
        return await revoked(client, Granted.model_validate(tokens))
