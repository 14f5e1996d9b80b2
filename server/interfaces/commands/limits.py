"""`sealab limits`: the bounds that one tenant or one person has in place of the settings, changed while servers run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ....skills_db.tenants.tenant_store import LimitOf, LimitStore
from ...base.errors import SettingsError, UsageError
from ...base.identity import DEFAULT_TENANT
from ...base.settings import parsed_setting
from ...governance.access.claims import is_plain
from ...governance.access.names import tenant_name
from ...governance.shares.limits import KINDS, REFRESH_SECONDS
from .command import AuditedAs, Group
from .opened import opened_operators
from .terminal import Here, Output, moment, nearest

if TYPE_CHECKING:
    from ....skills_db.engine import Database
    from ....skills_db.tenants.tenant_store import SetLimit

_DEFAULT = "default"


limits = Group(opens=opened_operators)


@limits.command()
def list_(here: Here, database: Database, *, tenant: str | None = None, who: str | None = None) -> Output:
    """List the limits that tenants and people have by themselves, and the settings that count for all others.

    tenant: those of one tenant
    who PRINCIPAL: those of one person
    """
    rows = [
        _row(limit, found)
        for limit, found in LimitStore(database).all().items()
        if tenant in {None, limit.tenant} and who in {None, limit.principal}
    ]
    names = [f"{whose}_{kind}" for whose in ("caller", "tenant") for kind in KINDS]
    usual = {name: getattr(here.settings, name) for name in names}
    lines = [f"{_whose(each)}  {each['name']}  {each['value']:g}  since {each['since']}" for each in rows]
    lines += [f"all others  {name}  {f'{value:g}' if value else 'no bound'}" for name, value in usual.items()]
    return Output({"count": len(rows), "limits": rows, "settings": usual}, lines)


@limits.command(audit=AuditedAs("limit.set", about="name"))
def set_(
    here: Here, database: Database, name: str, value: str, *, tenant: str = DEFAULT_TENANT, who: str | None = None
) -> Output:
    """Give a tenant, or one person of it, a limit of its own, which running servers take up within seconds.

    name: runs_max, runs_per_minute, cpu_seconds_per_day or sessions_max
    value: a number, 0 for no bound, or default for what the settings say
    tenant: the tenant; else default
    who PRINCIPAL: a person of the tenant; without it the limit is that of the whole tenant
    """
    whose = "tenant" if who is None else "caller"
    kind = name.lower().replace("-", "_").removeprefix(f"{whose}_")
    if kind not in KINDS:
        raise UsageError(
            f"{name} is not a limit of a {whose}.{nearest(kind, KINDS)} The limits are {', '.join(KINDS)}; those of a "
            "person need --who."
        )
    if who is not None and not is_plain(who):
        raise UsageError("--who does not name a person. Give the principal, as `sealab runs list` shows it.")
    limit = LimitOf(tenant_name(tenant), who or "", f"{whose}_{kind}")
    most: float | None = None
    if value != _DEFAULT:
        try:
            most = parsed_setting(limit.name, value)
        except SettingsError as error:
            raise UsageError(f"{error} Or give {_DEFAULT}.") from None
    LimitStore(database).put(limit, most)
    here.audit_details |= {"of": "/".join(filter(None, limit[:2])), "limit": limit.name, "value": value}
    row = {"tenant": limit.tenant, "who": who, "name": limit.name, "value": most}
    now = "as the settings say" if most is None else f"{most:g}" if most else "no bound"
    return Output(row, f"{limit.name} of {_whose(row)} is {now}, within {REFRESH_SECONDS:g} seconds.")


def _row(limit: LimitOf, found: SetLimit) -> dict[str, object]:
    return {
        "tenant": limit.tenant,
        "who": limit.principal or None,
        "name": limit.name,
        "value": int(found.most) if found.most == int(found.most) else found.most,
        "since": moment(found.changed),
    }


def _whose(row: Mapping[str, object]) -> str:
    return f"{row['tenant']}/{row['who']}" if row["who"] else f"{row['tenant']} (all)"
