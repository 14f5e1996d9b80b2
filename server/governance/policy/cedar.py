"""The one module that imports Cedar, and what is asked of it: parsing, validation, decisions.

Source of the language and of how it decides: the Cedar policy language reference, https://docs.cedarpolicy.com (a
`forbid` that applies wins over every `permit`, and what no `permit` allows is denied).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ...base.errors import SettingsError
from ...base.identity import Identity
from .access import RESOURCE_OF, Access

if TYPE_CHECKING:
    import cedarpy

_SCHEMA_FILE = Path(__file__).with_name("sealab.cedarschema")


@dataclass(frozen=True, slots=True)
class CedarDecision:
    """What Cedar said: `by` are the ids of the policies that decided, `failed` what it says of those that could not."""

    allowed: bool
    by: tuple[str, ...]
    failed: tuple[str, ...]


def schema_text() -> str:
    """Return the schema, as it is printed. Blocks."""
    return _SCHEMA_FILE.read_text(encoding="utf-8")


@cache
def _cedar() -> Any:
    """Import Cedar. Raises `SettingsError` where it is not installed."""
    try:
        import cedarpy
    except ImportError as error:
        raise SettingsError(
            f"POLICY needs the package cedarpy, which cannot be imported: {error}. Install sealab[policy]."
        ) from None
    return cedarpy


@cache
def _schema() -> cedarpy.Schema:
    return cast("cedarpy.Schema", _cedar().Schema.from_str(schema_text()))


def parsed(text: str) -> Sequence[Mapping[str, Any]]:
    """Return the policies of a text in Cedar's JSON form. Raises ValueError, in Cedar's words."""
    whole = json.loads(_cedar().policies_to_json_str(text))
    if whole["templates"]:
        raise ValueError("a template with ?principal or ?resource, which decides nothing by itself")
    return list(whole["staticPolicies"].values())


def faults(text: str) -> list[str]:
    """Return what is wrong with policies that can be parsed, by the schema, in Cedar's words."""
    result = _cedar().validate_policies(text, _schema(), release_gil=True)
    found = [each.error.removeprefix("for policy `policy0`, ") for each in result.errors]
    return found if found or result.validation_passed else ["it does not fit the schema"]


class PolicySet:
    """Policies in Cedar's JSON form under ids of their own, ready to decide; safe to use from several threads."""

    def __init__(self, policies: Mapping[str, Mapping[str, Any]]) -> None:
        text = json.dumps({"staticPolicies": dict(policies), "templates": {}, "templateLinks": []})
        self._policies = _cedar().PolicySet.from_json_str(text, release_gil=True)

    def answer(self, identity: Identity, access: Access) -> CedarDecision:
        """Return what Cedar says of a request."""
        request = {
            "principal": _uid("Principal", principal_id(identity)),
            "action": _uid("Action", access.action.value),
            "resource": _uid(RESOURCE_OF[access.action], access.name),
            "context": dict(access.context),
        }
        found = _cedar().is_authorized(request, self._policies, json.dumps(_entities(identity, access)))
        said = found.diagnostics
        return CedarDecision(found.allowed, tuple(said.reasons), tuple(map(str, said.errors)))


def principal_id(identity: Identity) -> str:
    """Return the id of a principal's entity. A tenant's name has no slash, so no two principals share one."""
    return f"{identity.tenant}/{identity.principal}"


def _uid(kind: str, name: str) -> dict[str, str]:
    return {"type": kind, "id": name}


def _entities(identity: Identity, access: Access) -> list[dict[str, Any]]:
    tenant = _uid("Tenant", identity.tenant)
    principal = {
        "uid": _uid("Principal", principal_id(identity)),
        "attrs": {
            "tenant": {"__entity": tenant},
            "name": identity.principal,
            "rights": sorted(right.value for right in identity.rights),
        },
        "parents": [tenant],
    }
    if access.server is None:
        return [principal]
    server = _uid("Server", access.server)
    tool = {
        "uid": _uid("Tool", access.name),
        "attrs": {"server": {"__entity": server}, **dict(access.attributes)},
        "parents": [server],
    }
    return [principal, tool]
