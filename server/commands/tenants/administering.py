"""`sealab tenants`: which tenants there are, what each has, all of it in one file, and its end."""
# ruff: noqa: T201 - printing is what a command line does

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...access.names import tenant_name
from ...errors import Exit, UsageError
from ...identity import DEFAULT_TENANT
from ..audit.telling import flat, tell
from ..group import Begin, Make, Options, commands_of
from ..terminal import moment

if TYPE_CHECKING:
    from ....skills_db.engine import Database
    from ....skills_db.tenants.tenant_store import Tenant, TenantStatus
    from ...home import Home
    from ...settings import Settings

_Run = Callable[[argparse.Namespace, "Home", "Settings", "Database"], int]


def add_to(parser: argparse.ArgumentParser, begin: Begin, options: Options) -> None:
    """Give the parser of `sealab tenants` its commands; `options` adds those that all commands have."""
    command: Make[_Run] = commands_of(parser, options, lambda run, chosen: _opened(run, chosen, *begin(chosen)))

    def of_one(name: str, run: _Run, help_text: str) -> argparse.ArgumentParser:
        made = command(name, run, help_text)
        made.add_argument("tenant", metavar="TENANT", help="its id, as `sealab tenants list` shows it")
        return made

    command("list", _list, "list the tenants, deleted ones too")
    of_one("show", _show, "count what a tenant has")
    of_one("create", _create, "make a tenant, or let the id of a deleted one be used again")
    of_one("suspend", _suspend, "have a tenant served no more, and keep all of it")
    of_one("resume", _resume, "serve a suspended tenant again")
    export = of_one("export", _export, "write a tenant's files, skills and list of runs to one zip, without secrets")
    export.add_argument("file", type=Path, metavar="FILE", help="the zip to write, which must not be there")
    delete = of_one("delete", _delete, "remove a tenant with everything of it, for good, and print the proof")
    delete.add_argument("--yes", action="store_true", help="do it; without this nothing is removed")


def _opened(run: _Run, chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    from ...tenants.contents import operators_database

    with operators_database(settings, home) as operators:
        if (name := getattr(chosen, "tenant", None)) is not None:
            home = home.of_tenant(tenant_name(name))
        return run(chosen, home, settings, operators)


def _list(chosen: argparse.Namespace, _home: Home, _settings: Settings, operators: Database) -> int:
    from ....skills_db.tenants.tenant_store import TenantStore

    told = [_told(each) for each in TenantStore(operators).all()]
    if chosen.json:
        print(json.dumps({"count": len(told), "tenants": told}))
        return Exit.OK
    if not told:
        print("There are no tenants but default, which is the home itself. The first token or call makes one.")
    for each in told:
        print(f"{each['tenant']:<24} {each['status']:<10} created {each['created']}")
    return Exit.OK


def _show(chosen: argparse.Namespace, home: Home, settings: Settings, operators: Database) -> int:
    from ...tenants.contents import counts_of

    told = {**_told(_known(operators, home)), **counts_of(settings, home, operators)}
    if chosen.json:
        print(json.dumps(told))
        return Exit.OK
    for name, value in told.items():
        print(f"{name:<16} {value}")
    return Exit.OK


def _create(chosen: argparse.Namespace, home: Home, _settings: Settings, operators: Database) -> int:
    from ....skills_db.tenants.tenant_store import TenantStatus, TenantStore

    store = TenantStore(operators)
    found = store.ensure(home.tenant)
    if found.status is TenantStatus.DELETED:
        store.set_status(home.tenant, TenantStatus.ACTIVE)
    elif found.status is not TenantStatus.ACTIVE:
        raise UsageError(f"The tenant {home.tenant} is {found.status} already. {_WHAT_NEXT[found.status]}")
    return _said(chosen, _known(operators, home), f"The tenant {home.tenant} is there.")


def _suspend(chosen: argparse.Namespace, home: Home, _settings: Settings, operators: Database) -> int:
    from ....skills_db.tenants.tenant_store import TenantStatus

    return _changed(chosen, home, operators, {TenantStatus.ACTIVE}, TenantStatus.SUSPENDED)


def _resume(chosen: argparse.Namespace, home: Home, _settings: Settings, operators: Database) -> int:
    from ....skills_db.tenants.tenant_store import TenantStatus

    return _changed(chosen, home, operators, {TenantStatus.SUSPENDED}, TenantStatus.ACTIVE)


def _changed(
    chosen: argparse.Namespace, home: Home, operators: Database, before: set[str], status: TenantStatus
) -> int:
    from ....skills_db.tenants.tenant_store import TenantStore

    found = _known(operators, home)
    if home.tenant == DEFAULT_TENANT:
        raise UsageError("The tenant default is the home itself. Stop the server to have it served no more.")
    if found.status not in {*before, status}:
        raise UsageError(f"The tenant {home.tenant} is {found.status}. {_WHAT_NEXT[found.status]}")
    TenantStore(operators).set_status(home.tenant, status)
    return _said(chosen, _known(operators, home), f"The tenant {home.tenant} is {status}.")


def _export(chosen: argparse.Namespace, home: Home, settings: Settings, operators: Database) -> int:
    from ....skills_db.tenants.tenant_store import TenantStatus
    from ...tenants.exporting import export_tenant

    found = _known(operators, home)
    if found.status in {TenantStatus.DELETING, TenantStatus.DELETED}:
        raise UsageError(f"The tenant {home.tenant} is {found.status}, so there is nothing to export.")
    manifest = export_tenant(settings, home, operators, chosen.file)
    tell(chosen, **flat({name: each for name, each in manifest.items() if name not in {"left_out", "renamed"}}))
    if chosen.json:
        print(json.dumps(manifest))
    else:
        left_out = manifest["left_out"]
        print(f"{manifest['files']} files of {home.tenant} are in {chosen.file}; its manifest.json says what else.")
        for name, why in left_out.items() if isinstance(left_out, Mapping) else ():
            print(f"left out: {name}: {why}")
    return Exit.OK


def _delete(chosen: argparse.Namespace, home: Home, settings: Settings, operators: Database) -> int:
    from ...home import Home
    from ...tenants.deleting import delete_tenant
    from ..audit.opened import trail_beside

    _known(operators, home)
    if not chosen.yes:
        raise UsageError(
            f"This would remove all of {home.tenant} for good; `sealab tenants show {home.tenant}` counts it, and "
            "`export` writes it to a file. Add --yes to do it."
        )
    with trail_beside(Home(home.operators_root), settings, lambda: operators) as audit:
        proof = delete_tenant(settings, home, operators, replace(audit, tenant=home.tenant))
    tell(chosen, **flat(proof))
    if chosen.json:
        print(json.dumps(proof))
    else:
        print(f"The tenant {home.tenant} is removed. The proof: {json.dumps(proof)}")
    return Exit.OK


def _known(operators: Database, home: Home) -> Tenant:
    from ....skills_db.tenants.tenant_store import Tenant, TenantStatus
    from ...tenants.deleting import known_tenant

    if home.tenant == DEFAULT_TENANT:
        return Tenant(DEFAULT_TENANT, 0.0, TenantStatus.ACTIVE, 0.0)
    return known_tenant(operators, home.tenant)


def _said(chosen: argparse.Namespace, tenant: Tenant, sentence: str) -> int:
    print(json.dumps(_told(tenant)) if chosen.json else sentence)
    return Exit.OK


def _told(tenant: Tenant) -> dict[str, object]:
    return {
        "tenant": tenant.id,
        "status": tenant.status.value,
        "created": moment(tenant.created),
        "changed": moment(tenant.changed),
    }


_WHAT_NEXT = {
    "active": "It is served.",
    "suspended": "`sealab tenants resume` serves it again.",
    "deleting": "`sealab tenants delete --yes` removes the rest of it.",
    "deleted": "`sealab tenants create` makes a new one of that id.",
}
