"""Security boundary: the operator's own sign-ins, where several servers share the operator's database.

They stand there as those of tenants and callers do, under an owner of their own (`OPERATOR`), which no caller is. Each
is renewed by one server at a time and ends for all. A file that a home has of one is taken over at its first use, by
the first server that looks, and removed: two servers must not renew from two copies (RFC 9700, section 4.14.2).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ...skills_db.errors import SignInUnreadable, SkillsDbError
from ...tools_registry.configuration import ServerConfig
from ...tools_registry.errors import ConnectFailed, SignInFailed, SignInNeeded
from ...tools_registry.sign_in.owners import OPERATOR
from ..database import HomeDatabase
from ..errors import AuditUnwritten, HostWorkRefused, VaultKeyError
from ..home import Home
from ..identity import LOCAL_IDENTITY

if TYPE_CHECKING:
    import httpx2

    from ...skills_db.sign_ins.sign_in_store import StoredSignIn
    from ...tools_registry.sign_in.token_endpoint import Granted
    from .sign_ins import SignIns

_LOG = logging.getLogger(__name__)


class OperatorsSignIns:
    """The operator's sign-ins in a database that servers share; `home` is the one whose files are taken over."""

    def __init__(self, sign_ins: SignIns, home: Home) -> None:
        self._sign_ins = sign_ins
        self._home = home

    def signs(self, config: ServerConfig) -> httpx2.Auth | None:
        """Return what signs requests to a server, None where the operator is not signed in to it. Blocks.

        Raises `SignInNeeded` where the sign-in cannot be read, else `ConnectFailed` where that cannot be told now.
        """
        from ...tools_registry.sign_in.browsers import can_sign_in
        from ...tools_registry.sign_in.kept_sign_ins import is_over
        from ...tools_registry.sign_in.signed_requests import SignedRequests

        if not can_sign_in(config):
            return None
        over = is_over(config)
        try:
            stored = self._stored(config)
        except SignInUnreadable:
            raise SignInNeeded(over) from None
        except (SkillsDbError, VaultKeyError, OSError) as error:
            raise ConnectFailed(
                f"It cannot be told now whether the operator is signed in to the server {config.name!r}. {error}"
            ) from error
        if stored is None or stored.told.get("url") != config.url:
            return None

        async def token() -> str:
            try:
                return await self._sign_ins.token(config, OPERATOR)
            except SignInNeeded:
                raise SignInNeeded(over) from None

        return SignedRequests(config, token, over)

    async def keep(self, config: ServerConfig, granted: Granted) -> None:
        """Keep what a sign-in of the operator gave, for all servers.

        Raises `SignInFailed` where it cannot be kept; the issuer is asked to revoke it then.
        """
        from .sign_ins import all_revoked

        try:
            await self._sign_ins.keep(config, OPERATOR, granted, principal=LOCAL_IDENTITY.principal)
        except AuditUnwritten as error:  # it was revoked there
            raise _not_kept(error) from error
        except (SkillsDbError, VaultKeyError, HostWorkRefused) as error:
            await all_revoked([granted.model_dump(mode="json", exclude_none=True)])
            raise _not_kept(error) from error

    async def sign_out(self, config: ServerConfig) -> tuple[bool, bool]:
        """Forget a sign-in for all servers; return whether there was one, and whether its issuer revoked it."""
        from ..host_work import Kind, in_thread

        await in_thread(Kind.DATABASE, lambda: self._take_over(config), charged=False)
        return await self._sign_ins.sign_out(config, OPERATOR)

    def _stored(self, config: ServerConfig) -> StoredSignIn | None:
        self._take_over(config)
        if self._sign_ins.is_empty():
            return None  # without a look at the vault's key, which there need not be
        return self._sign_ins.store().get(OPERATOR, config.name)

    def _take_over(self, config: ServerConfig) -> None:
        """Have the database keep what a file of this home has, unless it has a sign-in to that server's URL already."""
        from ...tools_registry.sign_in.kept_sign_ins import KeptSignIn
        from ...tools_registry.upstream.upstreams import SIGN_INS

        with KeptSignIn(self._home.operators_registry / SIGN_INS, config).taken_over() as granted:
            if granted is None:
                return
            store, told = self._sign_ins.store(), granted.model_dump(mode="json", exclude_none=True)
            if not store.put_if_absent(OPERATOR, config.name, told):
                stored = store.get(OPERATOR, config.name)
                if stored is not None and stored.told.get("url") == config.url:
                    _LOG.warning(
                        "The database has a sign-in to the server %s. The one in a file of this home is removed.",
                        config.name,
                    )
                    return
                store.put(OPERATOR, config.name, told)
            _LOG.info("The sign-in to the server %s was moved from a file of this home to the database.", config.name)


def _not_kept(error: Exception) -> SignInFailed:
    return SignInFailed(f"What the issuer gave cannot be kept, so it is not used. {error}")


def operators_sign_ins(sign_ins: SignIns, home: Home, database: HomeDatabase) -> OperatorsSignIns | None:
    """Return the operator's sign-ins of a home, from those of the operator's `database`; None where they are files."""
    return OperatorsSignIns(sign_ins, home) if database.is_server else None
