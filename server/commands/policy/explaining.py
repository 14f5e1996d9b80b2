"""`sealab policy`: checks the rules of a policy, explains what they make of a request, and tests expectations."""
# ruff: noqa: T201 - printing is what a command line does

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from ...errors import Exit, UsageError
from ...identity import DEFAULT_TENANT, Identity
from ..group import Begin, Options, add_commands
from ..terminal import print_error
from .written_requests import WrittenRequest, access_of, expectations_in, identity_of

if TYPE_CHECKING:
    from ...home import Home
    from ...policy.access import Access
    from ...policy.policy_rules import PolicyRule, Rulebook
    from ...settings import Settings


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
    context: Mapping[str, str | bool | int]
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


def add_to(parser: argparse.ArgumentParser, begin: Begin, options: Options) -> None:
    """Give the parser of `sealab policy` its commands; `options` adds those that all commands have."""
    make = add_commands(parser, begin, options)
    check = make(
        "check", lambda chosen, _home: _check(chosen, *begin(chosen)), "say what is wrong with the rules of a policy"
    )
    check.add_argument("file", metavar="FILE", nargs="?", help="a file, or a folder of *.cedar files; else POLICY")
    explain = make(
        "explain",
        lambda chosen, _home: _explain(chosen, *begin(chosen)),
        "say whether a request is allowed, and by which rules (exit code 3 where it is refused)",
    )
    explain.add_argument("principal", metavar="PRINCIPAL", help="who: NAME, or TENANT/NAME")
    explain.add_argument("action", metavar="ACTION", help="run, call or restore")
    explain.add_argument(
        "resource", metavar="RESOURCE", help="an isolation, SERVER.TOOL, or a type of personal data such as EMAIL"
    )
    explain.add_argument("--tenant", metavar="TENANT", help=f"the tenant of the principal ({DEFAULT_TENANT})")
    explain.add_argument(
        "--right", metavar="RIGHT", action="append", dest="rights", help="a scope that it has; without any, all"
    )
    explain.add_argument("--context", metavar="JSON", help="the context, as one JSON object; the rest is the usual")
    explain.add_argument("--reads", action="store_true", help="take a tool that is not known for one that only reads")
    explain.add_argument("--policy", metavar="FILE", help="the policy, instead of POLICY")
    test = make(
        "test",
        lambda chosen, _home: _test(chosen, *begin(chosen)),
        "check a file of expectations: which requests are to be allowed, and which refused",
    )
    test.add_argument("file", metavar="FILE", help="a list in YAML or JSON")
    test.add_argument("--policy", metavar="FILE", help="the policy, instead of POLICY")
    make("schema", lambda chosen, _home: _schema(chosen), "print the schema that rules are checked by")


def _check(chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    from ...policy.policy_rules import PolicyFaulty

    path = _path(chosen.file, home, settings)
    try:
        rules: Sequence[PolicyRule] = _read(path).rules
        faults: Sequence[Mapping[str, object]] = ()
        lines: Sequence[str] = ()
    except PolicyFaulty as faulty:
        rules, lines = (), [str(each) for each in faulty.faults]
        faults = [{"file": each.file, "line": each.line, "message": each.message} for each in faulty.faults]
    if chosen.json:
        print(json.dumps({"ok": not faults, "rules": [_named(rule) for rule in rules], "faults": faults}))
    elif faults:
        print("\n".join(lines))
    else:
        permits = sum(rule.permits for rule in rules)
        print(f"{path}: {permits} permit and {len(rules) - permits} forbid rules, and nothing wrong with them")
    return Exit.FAILED if faults else Exit.OK


def _explain(chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    context: dict[str, object] | None = None
    if chosen.context is not None:
        try:
            given: object = json.loads(chosen.context)
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            raise UsageError('--context is no JSON object. Give one, such as {"timeout_seconds": 60}.')
        context = given
    asked = WrittenRequest(
        chosen.principal, chosen.action, chosen.resource, chosen.tenant, chosen.rights, context, reads=chosen.reads
    )
    [told] = asyncio.run(_explained([asked], _book(chosen, home, settings), home, settings))
    if chosen.json:
        print(json.dumps(told, ensure_ascii=False))
    else:
        print("\n".join(_lines(told)))
    return Exit.OK if told["allowed"] else Exit.REFUSED


def _test(chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    expectations = expectations_in(chosen.file)
    asked = [each.asked for each in expectations]
    found = asyncio.run(_explained(asked, _book(chosen, home, settings), home, settings))
    results: list[Tested] = []
    for number, (expected, told) in enumerate(zip(expectations, found, strict=True), 1):
        wrong = ""
        if told["allowed"] != expected.allowed:
            decided = ", ".join(rule["id"] for rule in told["by"]) or told["problem"] or "no rule"
            wrong = f"{_shown(told)} is {'allowed' if told['allowed'] else 'refused'}, by {decided}"
        elif expected.approval not in {None, told["approval"]}:
            wrong = f"{_shown(told)} has the approval {told['approval']}, not {expected.approval}"
        results.append(Tested(number=number, ok=not wrong, wrong=wrong))
    failed = [each for each in results if not each["ok"]]
    if chosen.json:
        print(json.dumps({"ok": not failed, "expectations": results}, ensure_ascii=False))
    else:
        for each in failed:
            print(f"{chosen.file}: number {each['number']}: {each['wrong']}")
        print(f"{len(results) - len(failed)} of {len(results)} expectations are met")
    return Exit.FAILED if failed else Exit.OK


def _schema(chosen: argparse.Namespace) -> int:
    from ...policy.cedar import schema_text

    text = schema_text()
    print(json.dumps({"schema": text}) if chosen.json else text, end="\n" if chosen.json else "")
    return Exit.OK


def _path(given: str | None, home: Home, settings: Settings) -> Path:
    from ...policy.policy_file import path_of

    path = Path(given) if given is not None else path_of(settings, home)
    if path is None:
        raise UsageError("There is no policy: POLICY is not set. Set it, or name a file.")
    return path


def _read(path: Path) -> Rulebook:
    from ...policy.policy_file import PolicyMissing, read_rules

    try:
        return read_rules(path)
    except PolicyMissing:
        raise UsageError(f"{path} is no file, and no folder with *.cedar files. Name one.") from None


def _book(chosen: argparse.Namespace, home: Home, settings: Settings) -> Rulebook:
    from ...policy.policy_rules import PolicyFaulty

    path = _path(chosen.policy, home, settings)
    try:
        return _read(path)
    except PolicyFaulty as faulty:
        print_error("\n".join(map(str, faulty.faults)))
        raise UsageError("The policy cannot be used. Correct what `sealab policy check` names.") from None


async def _explained(
    asked: Sequence[WrittenRequest], book: Rulebook, home: Home, settings: Settings
) -> list[Explanation]:
    from ...upstream_tools.registry import Registry
    from ...upstream_tools.registry_state import opened_state

    with opened_state(home, settings.database_url) as state:
        registry = Registry(home, discovers=settings.discover, state=state)
        try:
            return [_explanation(book, identity_of(each), await access_of(each, registry, settings)) for each in asked]
        finally:
            await registry.close()


def _explanation(book: Rulebook, who: Identity, access: Access) -> Explanation:
    from ...policy.cedar import principal_id

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


def _shown(told: Explanation) -> str:
    return f"{told['principal']} {told['action']} {told['resource']}"


def _lines(told: Explanation) -> Iterator[str]:
    yield f"{_shown(told)}: {'allowed' if told['allowed'] else 'refused'}"
    if told["context"]:
        yield f"  with {json.dumps(told['context'], ensure_ascii=False)}"
    if told["problem"]:
        yield f"  {told['problem']}"
    elif not told["by"]:
        yield "  no rule permits it"
    for rule in told["by"]:
        yield f"  by {rule['effect']} {rule['id']} ({rule['file']}:{rule['line']})"
    if told["allowed"] and told["action"] == "call":
        yield f"  approval by the policy: {told['approval']}; mcp.json may ask for more, or refuse it"
    for rule in told["unmet"]:
        yield f"  {rule['effect']} {rule['id']} ({rule['file']}:{rule['line']}) would apply but for a condition"
