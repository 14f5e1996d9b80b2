"""`sealab policy`: checks the rules of a policy, explains what they make of a request, and tests expectations."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ....sandbox.job import Isolation
from ....tools_registry.models import Tool
from ...base.errors import Exit, UsageError
from ...base.identity import ALL_RIGHTS, DEFAULT_TENANT, Identity, Right
from ...governance.policy.access import (
    Access,
    Action,
    Attributes,
    call_access,
    call_context,
    restore_access,
    run_access,
)
from ...governance.policy.cedar import principal_id, schema_text
from ...governance.policy.policy_file import PolicyMissing, path_of, read_rules
from ...governance.policy.policy_rules import PolicyFaulty, PolicyRule, Rulebook
from ...use_cases.upstream_tools.registry import Registry
from ...use_cases.upstream_tools.registry_state import opened_state
from .command import Group
from .terminal import Here, Output, print_error

if TYPE_CHECKING:
    from ...base.settings import Settings

policy = Group()
_UID = re.compile(r'\w+::"(.*)"')


class WrittenRequest(BaseModel):
    """A request as it is written on a command line or in a file of expectations."""

    model_config = ConfigDict(extra="forbid", strict=True)
    principal: str
    action: str
    resource: str
    tenant: str | None = None
    rights: list[str] | None = None
    context: dict[str, Any] = Field(default_factory=dict)
    reads: bool = False


class Expectation(WrittenRequest):
    """What is to come of a request; without an `approval` any will do."""

    expect: Literal["allow", "refuse"]
    approval: str | None = None


class NamedRule(TypedDict):
    """A rule, and where it stands."""

    id: str
    file: str
    line: int
    effect: str


class Explanation(TypedDict):
    """What a policy makes of a request: `by` are the rules that decided it.

    `unmet` are those that speak of the principal, the action and the resource, but have a condition that fails.
    """

    principal: str
    action: str
    resource: str
    context: Mapping[str, str | bool | int | tuple[str, ...]]
    allowed: bool
    approval: str
    by: list[NamedRule]
    unmet: list[NamedRule]
    problem: str


class Tested(TypedDict):
    """What came of one expectation; `wrong` says what is not as expected, or is empty."""

    number: int
    ok: bool
    wrong: str


@policy.command()
def check(here: Here, file: str | None = None) -> Output:
    """Show what is wrong with the rules of a policy.

    file: a file, or a folder of *.cedar files; else POLICY
    """
    path = _path(here, file)
    try:
        rules = _read(path).rules
    except PolicyFaulty as faulty:
        faults = [{"file": each.file, "line": each.line, "message": each.message} for each in faulty.faults]
        return Output({"ok": False, "rules": [], "faults": faults}, map(str, faulty.faults), Exit.FAILED)
    permits = sum(rule.permits for rule in rules)
    return Output(
        {"ok": True, "rules": [_named(rule) for rule in rules], "faults": []},
        f"{path}: {permits} permit and {len(rules) - permits} forbid rules, and nothing wrong with them",
    )


@policy.command()
def explain(
    here: Here,
    principal: str,
    action: str,
    resource: str,
    *,
    tenant: str | None = None,
    right: Sequence[str] = (),
    context: str | None = None,
    reads: bool = False,
    policy: str | None = None,
) -> Output:
    """Show whether a request is allowed, and by which rules (exit code 3 where it is refused).

    principal: who: NAME, or TENANT/NAME
    action: run, call or restore
    resource: an isolation, SERVER.TOOL, or a type of personal data such as EMAIL
    tenant: the tenant of the principal (default)
    right: a scope that it has; without any, all
    context JSON: the context, as one JSON object; the rest is the usual
    reads: take a tool that is not known for one that only reads
    policy FILE: the policy, instead of POLICY
    """
    given: object = {}
    try:
        given = json.loads(context or "{}")
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise UsageError('--context is no JSON object. Give one, such as {"timeout_seconds": 60}.')
    asked = WrittenRequest(
        principal=principal,
        action=action,
        resource=resource,
        tenant=tenant,
        rights=[*right] or None,
        context=given,
        reads=reads,
    )
    [explanation] = asyncio.run(_explained(here, [asked], _book(here, policy)))
    return Output(explanation, _lines(explanation), Exit.OK if explanation["allowed"] else Exit.REFUSED)


@policy.command()
def _test(here: Here, file: str, *, policy: str | None = None) -> Output:
    """Check a file of expectations: which requests are to be allowed, and which refused.

    file: a list in YAML or JSON
    policy FILE: the policy, instead of POLICY
    """
    expectations = _expectations_in(file)
    found = asyncio.run(_explained(here, expectations, _book(here, policy)))
    results: list[Tested] = []
    for number, (expected, explanation) in enumerate(zip(expectations, found, strict=True), 1):
        wrong = ""
        if explanation["allowed"] != (expected.expect == "allow"):
            decided = ", ".join(rule["id"] for rule in explanation["by"]) or explanation["problem"] or "no rule"
            wrong = f"{_shown(explanation)} is {'allowed' if explanation['allowed'] else 'refused'}, by {decided}"
        elif expected.approval not in {None, explanation["approval"]}:
            wrong = f"{_shown(explanation)} has the approval {explanation['approval']}, not {expected.approval}"
        results.append(Tested(number=number, ok=not wrong, wrong=wrong))
    lines = [f"{file}: number {each['number']}: {each['wrong']}" for each in results if not each["ok"]]
    met = len(results) - len(lines)
    return Output(
        {"ok": not lines, "expectations": results},
        [*lines, f"{met} of {len(results)} expectations are met"],
        Exit.FAILED if lines else Exit.OK,
    )


@policy.command()
def schema(_here: Here) -> Output:
    """Print the schema that rules are checked by."""
    return Output({"schema": schema_text()}, schema_text().removesuffix("\n"))


def _path(here: Here, given: str | None) -> Path:
    path = Path(given) if given is not None else path_of(here.settings, here.home)
    if path is None:
        raise UsageError("There is no policy: POLICY is not set. Set it, or name a file.")
    return path


def _read(path: Path) -> Rulebook:
    try:
        return read_rules(path)
    except PolicyMissing:
        raise UsageError(f"{path} is no file, and no folder with *.cedar files. Name one.") from None


def _book(here: Here, given: str | None) -> Rulebook:
    try:
        return _read(_path(here, given))
    except PolicyFaulty as faulty:
        print_error("\n".join(map(str, faulty.faults)))
        raise UsageError("The policy cannot be used. Correct what `sealab policy check` names.") from None


async def _explained(here: Here, asked: Sequence[WrittenRequest], book: Rulebook) -> list[Explanation]:
    with opened_state(here.home, here.settings.database_url) as state:
        registry = Registry(here.home, discovers=here.settings.discover, state=state)
        try:
            return [
                _explanation(book, _identity_of(each), await _access_of(each, registry, here.settings))
                for each in asked
            ]
        finally:
            await registry.close()


def _explanation(book: Rulebook, who: Identity, access: Access) -> Explanation:
    ruling = book.decide(who, access)
    named = {rule.name: rule for rule in book.rules}
    unmet = [each.rule for each in book.explain(who, access) if not each.applies]
    return Explanation(
        principal=principal_id(who),
        action=access.action.value,
        resource=access.name,
        context=dict(access.context),
        allowed=ruling.allowed,
        approval=ruling.approval.value,
        by=[_named(named[name]) for name in ruling.by],
        unmet=[_named(rule) for rule in unmet],
        problem=ruling.problem,
    )


def _named(rule: PolicyRule) -> NamedRule:
    return NamedRule(id=rule.name, file=rule.file, line=rule.line, effect="permit" if rule.permits else "forbid")


def _shown(explanation: Explanation) -> str:
    return f"{explanation['principal']} {explanation['action']} {explanation['resource']}"


def _lines(explanation: Explanation) -> Iterator[str]:
    yield f"{_shown(explanation)}: {'allowed' if explanation['allowed'] else 'refused'}"
    if any(explanation["context"].values()):
        yield f"  with {json.dumps(explanation['context'], ensure_ascii=False)}"
    if explanation["problem"]:
        yield f"  {explanation['problem']}"
    elif not explanation["by"]:
        yield "  no rule permits it"
    for rule in explanation["by"]:
        yield f"  by {rule['effect']} {rule['id']} ({rule['file']}:{rule['line']})"
    if explanation["allowed"] and explanation["action"] == "call":
        yield f"  approval by the policy: {explanation['approval']}; mcp.json may ask for more, or refuse it"
    for rule in explanation["unmet"]:
        yield f"  {rule['effect']} {rule['id']} ({rule['file']}:{rule['line']}) would apply but for a condition"


def _identity_of(asked: WrittenRequest) -> Identity:
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


async def _access_of(asked: WrittenRequest, registry: Registry, settings: Settings) -> Access:
    """Return what is asked about, with the usual context where nothing else is given. Raises `UsageError`."""
    action, resource = _bare(asked.action), _bare(asked.resource)
    context = asked.context
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
        usual = {name: [*each] if isinstance(each, tuple) else each for name, each in call_context()}
        given = call_context(**_merged(usual, context))  # type: ignore[arg-type]
        return await _call(resource, registry, given, reads=asked.reads)
    raise UsageError(f"There is no action {action!r}. Give one of {', '.join(Action)}.")


async def _call(resource: str, registry: Registry, context: Attributes, *, reads: bool) -> Access:
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
    return call_access(tool, configuration.servers.get(tool.server), context)


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


def _expectations_in(file: str) -> list[Expectation]:
    """Return what a file expects. Raises `UsageError`."""
    try:
        found = yaml.safe_load(Path(file).read_bytes())
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}. Name a file of expectations.") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{file} is no YAML: {' '.join(str(error).split())[:200]}. Correct it.") from None
    if not isinstance(found, list):
        raise UsageError(f"{file} is no list of expectations. See docs/policy.md for one.")
    expectations = []
    for number, each in enumerate(found, 1):
        try:
            expectations.append(Expectation.model_validate(each))
        except ValidationError as error:
            wrong = error.errors()[0]
            where = f"{file}: number {number}{''.join(f', {part}' for part in wrong['loc'])}"
            raise UsageError(f"{where}: {wrong['msg']}. See docs/policy.md for what it can have.") from None
    return expectations


def _bare(name: str) -> str:
    """Return the id of an entity as Cedar writes it, or what was given."""
    found = _UID.fullmatch(name)
    return name if found is None else found[1]
