"""Requests as they are written on a command line or in a file of expectations, for `sealab policy`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import yaml

from ...sandbox.job import Isolation
from ...tools_registry.models import Tool
from ..errors import UsageError
from ..identity import ALL_RIGHTS, DEFAULT_TENANT, Identity, Right
from ..policy.access import Access, Action, call_access, restore_access, run_access
from .terminal import print_error

if TYPE_CHECKING:
    from ..settings import Settings
    from ..upstream_tools.registry import Registry

_KEYS = frozenset({"principal", "action", "resource", "expect", "tenant", "rights", "context", "reads", "approval"})
_UID = re.compile(r'\w+::"(.*)"')


@dataclass(frozen=True, slots=True)
class Expectation:
    """What is to come of a request; without an `approval` any will do."""

    asked: WrittenRequest
    allowed: bool
    approval: str | None


@dataclass(frozen=True, slots=True)
class WrittenRequest:
    """A request as it is written on a command line or in a file of expectations."""

    principal: str
    action: str
    resource: str
    tenant: str | None = None
    rights: Sequence[str] | None = None
    context: Mapping[str, object] | None = None
    reads: bool = False


def identity_of(asked: WrittenRequest) -> Identity:
    """Return the identity that is asked about. Raises `UsageError`."""
    principal = _bare(asked.principal)
    tenant, slash, name = principal.partition("/")
    if not slash:
        tenant, name = asked.tenant or DEFAULT_TENANT, principal
    elif asked.tenant is not None and asked.tenant != tenant:
        raise UsageError(
            f"The principal {principal} is of the tenant {tenant}, not {asked.tenant}. Leave --tenant out."
        )
    if asked.rights is None:
        return Identity(tenant, name, ALL_RIGHTS)
    known = {right.value: right for right in Right}
    for each in asked.rights:
        if each not in known:
            raise UsageError(f"There is no right {each!r}. Give some of {', '.join(known)}.")
    return Identity(tenant, name, frozenset(known[each] for each in asked.rights))


async def access_of(asked: WrittenRequest, registry: Registry, settings: Settings) -> Access:
    """Return what is asked about, with the usual context where nothing else is given. Raises `UsageError`."""
    action, resource = _bare(asked.action), _bare(asked.resource)
    context = dict(asked.context or {})
    if action == Action.RUN:
        if resource not in set(Isolation):
            raise UsageError(f"There is no isolation {resource!r}. Give one of {', '.join(Isolation)}.")
        usual: dict[str, object] = {
            "timeout_seconds": settings.timeout_seconds,
            "memory_mb": settings.memory_mb,
            "background": False,
            "session": False,
        }
        return run_access(Isolation(resource), **_merged(usual, context))  # type: ignore[arg-type]
    if action == Action.RESTORE:
        usual = {"destination": "model", "server": "", "tool": "", "argument": ""}
        return restore_access(resource, **_merged(usual, context))  # type: ignore[arg-type]
    if action == Action.CALL:
        _merged({}, context)
        return await _call(resource, registry, reads=asked.reads)
    raise UsageError(f"There is no action {action!r}. Give one of {', '.join(Action)}.")


async def _call(resource: str, registry: Registry, *, reads: bool) -> Access:
    """Return the access of a call of a tool, as far as it is known here. Starts no server."""
    catalog, configuration = await registry.catalog(), await registry.configuration()
    if resource in catalog:
        tool = catalog.get(resource)
    else:
        server, dot, name = resource.partition(".")
        if not dot or not name:
            raise UsageError(f"{resource} is no tool. Give SERVER.TOOL.")
        print_error(
            f"sealab: {resource} is not known here, and taken for a tool that {'reads' if reads else 'writes'}."
        )
        tool = Tool(name, server, server, annotations={"readOnlyHint": reads})
    return call_access(tool, configuration.servers.get(tool.server))


def _merged(usual: Mapping[str, object], given: Mapping[str, object]) -> dict[str, object]:
    """Return the usual context with what was given in its place. Raises `UsageError`."""
    for key, value in given.items():
        if key not in usual:
            known = ", ".join(usual) or "nothing"
            raise UsageError(f"The context of this action has no {key!r}. It has {known}.")
        kind = type(usual[key])
        fits = (
            isinstance(value, int | float) and not isinstance(value, bool)
            if kind in {int, float}
            else (isinstance(value, kind))
        )
        if not fits:
            raise UsageError(
                f"{key} in the context is {value!r}, which does not fit. Give something like {usual[key]!r}."
            )
    return {**usual, **given}


def expectations_in(file: str) -> list[Expectation]:
    """Return what a file expects. Raises `UsageError`."""
    try:
        found = yaml.safe_load(Path(file).read_bytes())
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}. Name a file of expectations.") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{file} is no YAML: {' '.join(str(error).split())[:200]}. Correct it.") from None
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise UsageError(f"{file} is no list of expectations. See docs/policy.md for one.")
    return [_expectation(file, number, each) for number, each in enumerate(found, 1)]


def _expectation(file: str, number: int, told: Mapping[str, object]) -> Expectation:
    where = f"{file}: number {number}"
    for key in ("principal", "action", "resource", "expect"):
        if not isinstance(told.get(key), str):
            raise UsageError(f"{where} needs {key}, a text. Give it.")
    for key in told.keys() - _KEYS:
        raise UsageError(f"{where} has no {key}. It has {', '.join(sorted(_KEYS))}.")
    if told["expect"] not in {"allow", "refuse"}:
        raise UsageError(f"{where}: expect is {told['expect']!r}. Give allow or refuse.")
    rights, context = told.get("rights"), told.get("context")
    if not isinstance(rights, list | None) or not isinstance(context, dict | None):
        raise UsageError(f"{where}: rights are a list, and context is a table. Correct it.")
    asked = WrittenRequest(
        cast("str", told["principal"]),
        cast("str", told["action"]),
        cast("str", told["resource"]),
        None if told.get("tenant") is None else str(told["tenant"]),
        None if rights is None else [str(each) for each in rights],
        context,
        reads=told.get("reads") is True,
    )
    approval = told.get("approval")
    return Expectation(asked, told["expect"] == "allow", None if approval is None else str(approval))


def _bare(name: str) -> str:
    """Return the id of an entity as Cedar writes it, or what was given."""
    found = _UID.fullmatch(name)
    return name if found is None else found[1]
