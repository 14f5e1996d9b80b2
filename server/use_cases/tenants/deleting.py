"""Removes a tenant with everything of it, beside a running server, and again from where a crash left it.

First it is marked, whereupon every server refuses it and closes it within a moment; then its tokens end; then, once no
process of this machine serves it, its sign-ins to upstream servers end, which their issuers are asked to revoke, and
its database, its files, and what the operator's database has of it are removed. The mark stays, so that a token or a
claim which still names the tenant does not bring it back.

A principal who leaves is erased likewise: runs, sign-ins, tokens, answers to questions, use and limits (`left_of`).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from ....skills_db.engine import Database, place_of
from ....skills_db.journal.journal_store import JournalStore
from ....skills_db.tenants import schemas
from ....skills_db.tenants.contents import forget_principal, forget_tenant
from ....skills_db.tenants.tenant_store import Tenant, TenantStatus, TenantStore
from ....skills_db.tokens import TokenStore
from ....tools_registry.upstream.pins import Pins
from ....workspace.archive import kept_of
from ....workspace.store import Workspace
from ...base.errors import TenantRefused, UsageError
from ...base.home import Home
from ...base.identity import DEFAULT_TENANT
from ...base.settings import Settings
from ...base.storage.opening import bucket_of
from ...governance.audit.trail import UNAUDITED, AuditTrail
from ...governance.scopes import of_principal
from ..upstream_tools.registry import scopes_of_tenant
from ..upstream_tools.registry_state import opened_state
from .contents import counts_of
from .locks import STILL_SERVED, TenantLock
from .sign_outs import SignedOut, principal_signed_out, tenant_signed_out

WAIT_SECONDS = 60.0
"""How long servers of this machine have at most to close the tenant, and then those of others."""


def known_tenant(operators: Database, tenant: str) -> Tenant:
    """Return a tenant that there is or was. Raises `UsageError`."""
    found = TenantStore(operators).find(tenant)
    if found is None:
        raise UsageError(f"There is no tenant {tenant}. `sealab tenants list` shows those that there are.")
    return found


def delete_tenant(
    settings: Settings, home: Home, operators: Database, audit: AuditTrail = UNAUDITED
) -> Mapping[str, object]:
    """Remove the tenant whose home this is, and return the proof: what was removed, counted before, and its hash.

    Blocks for as long as servers take to close it. May be repeated: what is removed already stays so, and the proof is
    that of the first time. Raises `TenantRefused` where a server goes on to serve it, and `UsageError` for `default`.
    """
    if home.tenant == DEFAULT_TENANT:
        raise UsageError("The tenant default is the home itself, which no command deletes. Remove its folder instead.")
    store = TenantStore(operators)
    found = known_tenant(operators, home.tenant)
    if found.status is TenantStatus.DELETED and found.proof is not None:
        return found.proof
    now = time.time()
    proof = found.proof if found.status is TenantStatus.DELETING else None
    if proof is None:
        proof = {"tenant": home.tenant, "created": found.created, "counted": counts_of(settings, home, operators)}
        store.set_status(home.tenant, TenantStatus.DELETING, proof)
    TokenStore(operators).revoke_tenant(home.tenant, now)
    with TenantLock(home).remove(WAIT_SECONDS) as lock:
        ended = tenant_signed_out(settings, home, operators, audit)
        proof = _with_sign_ins(proof, ended)
        store.set_status(home.tenant, TenantStatus.DELETING, proof)
        _drop_schema(settings, home, operators)
        _remove_objects(settings, home)
        _remove_files(home)
        _forget_approvals(settings, home)
        rows = forget_tenant(operators, home.tenant)
        proof = _signed({**proof, "rows": rows, "deleted": time.time()})
        store.set_status(home.tenant, TenantStatus.DELETED, proof)
        lock.forget()
    return proof


def _with_sign_ins(proof: Mapping[str, object], ended: SignedOut) -> dict[str, object]:
    """Return the proof with what became of sign-ins to upstream servers, now and before a crash."""
    before = proof.get("sign_ins")
    known = before if isinstance(before, Mapping) else {}
    signed = {"ended": ended.sign_ins, "revoked": ended.revoked}
    return {**proof, "sign_ins": {name: count + int(known.get(name, 0)) for name, count in signed.items()}}


def _drop_schema(settings: Settings, home: Home, operators: Database) -> None:
    """Remove the schema on a PostgreSQL server, once servers of other machines have closed the tenant.

    Raises `TenantRefused` where one goes on to have it open.
    """
    _, file = place_of(settings.database_url, home.root, tenant=home.tenant)
    schema = schemas.schema_of(home.tenant)
    if file is None and schemas.is_there(operators.migrating, schema):
        try:
            schemas.drop(operators.migrating, schema, wait_seconds=WAIT_SECONDS)
        except schemas.SchemaInUse:
            raise TenantRefused(STILL_SERVED) from None


def _remove_objects(settings: Settings, home: Home) -> None:
    """Remove a tenant's objects, whose prefix has nothing of anybody else. Raises what the store raises."""
    bucket = bucket_of(settings, home)
    if bucket is not None:
        bucket.delete_all([found.key for found in bucket.walk()])


def _remove_files(home: Home) -> None:
    """Remove a tenant's folder; links in it are removed themselves, never what they lead to."""
    if not shutil.rmtree.avoids_symlink_attacks:
        raise UsageError("This system cannot remove a folder safely that others may change. Stop the server first.")
    if os.path.lexists(home.root):
        shutil.rmtree(home.root)


def _forget_approvals(settings: Settings, home: Home) -> None:
    """Remove what users of the tenant said yes to for always, which stands beside the operator's pins."""
    with opened_state(home, settings.database_url) as state:
        if state.pins.read() is not None:
            beginning = scopes_of_tenant(home.tenant)
            Pins(state.pins).forget_scopes(lambda scope: scope.startswith(beginning))


def _signed(proof: Mapping[str, object]) -> dict[str, object]:
    """Return the proof with the hash of itself, as JSON with sorted keys."""
    text = json.dumps(proof, sort_keys=True)
    return {**proof, "sha256": hashlib.sha256(text.encode()).hexdigest()}


@dataclass(frozen=True, slots=True)
class Left:
    """What there is of a principal, or was: ids of journaled and of kept runs, and rows of the operator's tables."""

    runs: tuple[str, ...] = ()
    kept_runs: tuple[str, ...] = ()
    rows: dict[str, int] = field(default_factory=dict)
    sign_ins: SignedOut = SignedOut()  # noqa: RUF009 - it is frozen


def left_of(
    settings: Settings,
    home: Home,
    operators: Database,
    principal: str,
    *,
    journals: JournalStore,
    workspace: Workspace,
    erases: bool,
    audit: AuditTrail = UNAUDITED,
) -> Left:
    """Return what is kept of a principal of the tenant whose home this is, and erase it where it `erases`. Blocks."""
    scope = of_principal(principal)
    owner = journals.owner(scope)
    rows = forget_principal(operators, home.tenant, principal, scope, time.time(), erases=erases)
    left = Left(tuple(journals.of_owner(owner)), tuple(kept_of(workspace, scope, drops=erases)), rows)
    if not erases:
        return left
    journals.forget_scope(owner)
    beginning = "" if home.tenant == DEFAULT_TENANT else scopes_of_tenant(home.tenant)
    with opened_state(home, settings.database_url) as state:
        if state.pins.read() is not None:
            Pins(state.pins).forget_scopes(lambda each: each == f"{beginning}{scope}")
    ended = principal_signed_out(settings, home, operators, principal, audit)
    return Left(left.runs, left.kept_runs, left.rows, ended)
