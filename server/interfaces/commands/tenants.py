"""`sealab tenants`: which tenants there are, what each has, all of it in one file, and its end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ....skills_db.tenants.tenant_store import Tenant, TenantStatus, TenantStore
from ...base.errors import UsageError
from ...base.home import Home
from ...base.identity import DEFAULT_TENANT
from ...governance.access.names import tenant_name
from ...use_cases.tenants.contents import counts_of
from .command import AuditedAs, Group
from .opened import opened_operators, trail_beside
from .terminal import Here, Output, moment

if TYPE_CHECKING:
    from ....skills_db.audit.chain import Detail
    from ....skills_db.engine import Database


tenants = Group(opens=opened_operators)


@tenants.command()
def list_(_here: Here, database: Database) -> Output:
    """List the tenants, deleted ones too."""
    listed = [tenant_json(each) for each in TenantStore(database).all()]
    lines = [f"{each['tenant']:<24} {each['status']:<10} created {each['created']}" for each in listed]
    none = "There are no tenants but default, which is the home itself. The first token or call makes one."
    return Output({"count": len(listed), "tenants": listed}, lines or none)


@tenants.command()
def show(here: Here, database: Database, tenant: str) -> Output:
    """Count what a tenant has.

    tenant: its id, as `sealab tenants list` shows it
    """
    home = _home(here, tenant)
    described = {**tenant_json(_known(database, tenant)), **counts_of(here.settings, home, database)}
    return Output(described, [f"{name:<16} {value}" for name, value in described.items()])


@tenants.command(audit=AuditedAs("tenant.created"))
def create(here: Here, database: Database, tenant: str) -> Output:
    """Make a tenant, or let the id of a deleted one be used again.

    tenant: its id, as `sealab tenants list` shows it
    """
    _home(here, tenant)
    found = TenantStore(database).ensure(tenant)
    if found.status is TenantStatus.DELETED:
        TenantStore(database).set_status(tenant, TenantStatus.ACTIVE)
    elif found.status is not TenantStatus.ACTIVE:
        raise UsageError(f"The tenant {tenant} is {found.status} already. {_WHAT_NEXT[found.status]}")
    return Output(tenant_json(_known(database, tenant)), f"The tenant {tenant} is there.")


@tenants.command(audit=AuditedAs())
def suspend(here: Here, database: Database, tenant: str) -> Output:
    """Stop serving a tenant, and keep all of it.

    tenant: its id, as `sealab tenants list` shows it
    """
    return _changed(here, database, tenant, "active", "suspended")


@tenants.command(audit=AuditedAs())
def resume(here: Here, database: Database, tenant: str) -> Output:
    """Serve a suspended tenant again.

    tenant: its id, as `sealab tenants list` shows it
    """
    return _changed(here, database, tenant, "suspended", "active")


def _changed(here: Here, database: Database, tenant: str, before: str, status: str) -> Output:
    _home(here, tenant)
    found = _known(database, tenant)
    if tenant == DEFAULT_TENANT:
        raise UsageError("The tenant default is the home itself. Stop the server to have it served no more.")
    if found.status not in {before, status}:
        raise UsageError(f"The tenant {tenant} is {found.status}. {_WHAT_NEXT[found.status]}")
    TenantStore(database).set_status(tenant, TenantStatus(status))
    return Output(tenant_json(_known(database, tenant)), f"The tenant {tenant} is {status}.")


@tenants.command(audit=AuditedAs("tenant.exported"))
def export(here: Here, database: Database, tenant: str, file: Path) -> Output:
    """Write a tenant's files, skills and list of runs to one zip, without secrets.

    tenant: its id, as `sealab tenants list` shows it
    file: the zip to write, which must not be there
    """
    from ...use_cases.tenants.exporting import export_tenant

    home, found = _home(here, tenant), _known(database, tenant)
    if found.status in {"deleting", "deleted"}:
        raise UsageError(f"The tenant {tenant} is {found.status}, so there is nothing to export.")
    manifest = export_tenant(here.settings, home, database, file)
    here.audit_details |= _flat({name: each for name, each in manifest.items() if name not in {"left_out", "renamed"}})
    left_out = manifest["left_out"]
    lines = [f"{manifest['files']} files of {tenant} are in {file}; its manifest.json says what else."]
    if isinstance(left_out, Mapping):
        lines += [f"left out: {name}: {why}" for name, why in left_out.items()]
    return Output(manifest, lines)


@tenants.command(audit=AuditedAs("tenant.deleted", only_with="yes"))
def delete(here: Here, database: Database, tenant: str, *, yes: bool = False) -> Output:
    """Remove a tenant with everything of it, for good, and print the proof.

    tenant: its id, as `sealab tenants list` shows it
    yes: do it; without this nothing is removed
    """
    from ...use_cases.tenants.deleting import delete_tenant

    home = _home(here, tenant)
    _known(database, tenant)
    if not yes:
        raise UsageError(
            f"This would remove all of {tenant} for good; `sealab tenants show {tenant}` counts it, and `export` "
            "writes it to a file. Add --yes to do it."
        )
    with trail_beside(Home(home.operators_root), here.settings, lambda: database) as audit:
        proof = delete_tenant(here.settings, home, database, replace(audit, tenant=tenant))
    here.audit_details |= _flat(proof)
    return Output(proof, f"The tenant {tenant} is removed. The proof: {json.dumps(proof)}")


def _home(here: Here, tenant: str) -> Home:
    return here.home.of_tenant(tenant_name(tenant))


def _known(database: Database, tenant: str) -> Tenant:
    from ...use_cases.tenants.deleting import known_tenant

    if tenant == DEFAULT_TENANT:
        return Tenant(DEFAULT_TENANT, 0.0, TenantStatus.ACTIVE, 0.0)
    return known_tenant(database, tenant)


def tenant_json(tenant: Tenant) -> dict[str, object]:
    """Return a tenant as JSON."""
    return {
        "tenant": tenant.id,
        "status": tenant.status.value,
        "created": moment(tenant.created),
        "changed": moment(tenant.changed),
    }


def _flat(nested: Mapping[str, object]) -> dict[str, Detail]:
    """Return numbers and hashes of nested mappings as details, by their names joined with dots."""
    found: dict[str, Detail] = {}
    for name, value in nested.items():
        if isinstance(value, Mapping):
            found |= {f"{name}.{inner}": each for inner, each in _flat(value).items()}
        elif isinstance(value, int | float) or (isinstance(value, str) and name == "sha256"):
            found[name] = value
    return found


_WHAT_NEXT = {
    "active": "It is served.",
    "suspended": "`sealab tenants resume` serves it again.",
    "deleting": "`sealab tenants delete --yes` removes the rest of it.",
    "deleted": "`sealab tenants create` makes a new one of that id.",
}
