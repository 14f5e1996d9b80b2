"""`sealab pii forget`: shows what is kept of a person, and erases it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from ...base.errors import UsageError
from ...base.home import Home
from ...base.terminal_escaping import one_line as escaped
from ...governance.audit.audit_log import audit_store
from ...governance.audit.trail import AuditKind
from ...governance.caller import LOCAL
from .opened import OpenedHome, opened_home, opened_log, opened_vault, trail_beside
from .terminal import Here, Output, print_error

if TYPE_CHECKING:
    from ....skills_db.vault import Person, PersonValue, Vault
    from ...privacy.erasure import Eraser, Traces

HOME, SCOPE_SHOWN = "home", 8
_SHOWN_MAX = 200
_LINES_MAX = 1 << 62
_OF_MANY = frozenset({"LOCATION", "ZIP", "DOB", "IP", "MAC"})
"""Types whose values are looked for in files only where they are asked for."""


def forget(
    here: Here,
    value: str | None = None,
    *,
    scope: str | None = None,
    principal: str | None = None,
    only: bool = False,
    yes: bool = False,
    files: bool = False,
    skills: bool = False,
) -> Output:
    """Show what is kept of a person, and erase it with --yes.

    value: a name, an address, anything; or a token; - reads it from stdin
    scope: erase all values of this scope, as the audit names it; `home` is the scope of this home
    principal NAME: erase what is kept of a person who used sealab and leaves: runs, sign-ins, answers, use and limits,
        and revoke its tokens
    only: leave what stood in one record with it
    yes: erase it; else it is shown only
    files: erase it from files of the workspace too
    skills: erase it from the code of skills too, and remove those that are named so
    """
    from ...base.storage.opening import open_workspace
    from ...privacy.erasure import Eraser, traces

    if [value, scope, principal].count(None) != 2:  # noqa: PLR2004 - two of three
        raise UsageError(
            "It is not clear what to forget. Give a value, such as a name, or --scope SCOPE, or --principal NAME."
        )
    if principal is not None:
        return _forget_principal(here, principal, erases=yes)
    if scope is not None:
        return _forget_scope(here, scope, erases=yes)
    value = sys.stdin.read().strip("\r\n") if value == "-" else str(value)
    if not value.strip():
        raise UsageError("There is nothing to forget. Give a value, such as a name.")
    with opened_vault(here.home, here.settings) as work:
        vault = work.privacy.vault()
        person = vault.person(value)
        gone = (*person.found, *(() if only else person.linked))
        sought = [each.entry.value for each in (*person.found, *gone) if _is_sought(each, person.found)]
        named = {(each.plain, each.type) for each in sought} or {(value, "PERSON")}  # files may have it all the same
        eraser = Eraser(named, work.privacy.detectors.texts_of)
        with open_workspace(here.settings, here.home, work.database) as workspace:
            database, journals = work.database(), work.journal.store()
            where = traces(eraser, workspace, database, journals, erases=yes, in_files=files, in_skills=skills)
        lines = _audit_lines(here, work, eraser)
        if yes:
            types = vault.forget_entries(gone)
            work.privacy.note("forget", "terminal", types, scope=LOCAL.scope)
        else:
            types = _types(gone)
    groups = {"found": person.found, "linked": person.linked, "shared": person.shared}
    data = {
        "erased": yes,
        "forgotten": sum(types.values()),
        "types": types,
        **{name: list(map(_value_json, values)) for name, values in groups.items()},
        **asdict(where),
        "audit_lines": lines,
    }

    def shown() -> None:
        _print_person(person, yes=yes, only=only)
        _print_traces(where, yes=yes, files=files, skills=skills)
        if lines:
            print(
                f"Left in lines {_some(lines)} of the audit log, which name a skill and are never changed. `sealab "
                "audit trim` removes all lines before a moment."
            )
        _tell_to_repeat(yes=yes)

    return Output(data, shown)


def _forget_scope(here: Here, said: str, *, erases: bool) -> Output:
    with opened_vault(here.home, here.settings) as work:
        vault, journals = work.privacy.vault(), work.journal.store()
        name = _scope_named(vault, said)
        runs = journals.of_owner(name)
        if erases:
            types = vault.forget_scope(name)
            journals.forget_scope(name)
            work.privacy.note("forget", "terminal", types, scope=LOCAL.scope)
        else:
            types = vault.types_of_scope(name)

    def shown() -> None:
        print(f"{'Forgotten' if erases else 'Would be forgotten'}: {of_types(types)}.")
        _print_runs(runs, yes=erases)
        _tell_to_repeat(yes=erases)

    return Output({"erased": erases, "forgotten": sum(types.values()), "types": types, "runs": runs}, shown)


def _forget_principal(here: Here, principal: str, *, erases: bool) -> Output:
    from ...base.storage.opening import open_workspace
    from ...use_cases.tenants.contents import operators_database
    from ...use_cases.tenants.deleting import left_of

    if principal == LOCAL.identity.principal:
        raise UsageError("local is whoever uses this home itself. Give --scope home to erase what is kept of it.")
    home, operators_home = here.home, Home(here.home.operators_root)
    with opened_home(here) as work, ExitStack() as stack:
        operators = work.database()
        if home.operators is not None:
            operators = stack.enter_context(operators_database(here.settings, home))
        workspace = stack.enter_context(open_workspace(here.settings, home, work.database))
        audit = stack.enter_context(trail_beside(operators_home, here.settings, lambda: operators))
        left = left_of(
            here.settings,
            home,
            operators,
            principal,
            journals=work.journal.store(),
            workspace=workspace,
            erases=erases,
            audit=replace(audit, tenant=home.tenant),
        )
    here.audit_details |= {"of": principal, "tenant": home.tenant, "runs": len(left.runs), **left.rows}
    sign_ins = {"ended": left.sign_ins.sign_ins, "revoked": left.sign_ins.revoked}

    def shown() -> None:
        _print_runs(left.runs, yes=erases)
        rows = [f"{count} {name}" for name, count in {"kept runs": len(left.kept_runs), **left.rows}.items()]
        print(f"{'Erased' if erases else 'Would be erased'}, tokens revoked: {', '.join(rows)}.")
        if erases:
            print(f"Sign-ins to upstream servers that were ended: {sign_ins['ended']}.")
        print("Lines of the audit log stay, and so do values in the vault, which all people of a tenant share.")
        _tell_to_repeat(yes=erases)

    summary = {"erased": erases, "principal": principal, "runs": left.runs, "kept_runs": left.kept_runs}
    return Output({**summary, **left.rows, "sign_ins": sign_ins}, shown)


def _audit_lines(here: Here, work: OpenedHome, eraser: Eraser) -> list[int]:
    """Return the lines of the audit log in which a skill is named after the person. None are changed."""
    from ....skills_db.audit.audit_store import LineFilter

    kinds = (AuditKind.SKILL_SAVED, AuditKind.SKILL_DELETED, AuditKind.SKILL_PUBLISHED)
    home = here.home
    is_tenant = home.operators is not None
    own = nullcontext(audit_store(work.database, work.privacy.key))
    with opened_log(home, here.settings) if is_tenant else own as log:
        return [
            line.number
            for kind in kinds
            for line in log().lines(LineFilter(event=kind, tenant=home.tenant if is_tenant else None, limit=_LINES_MAX))
            if any(isinstance(each, str) and eraser.holds(each) for each in line.event.details.values())
        ]


def _is_sought(value: PersonValue, found: Sequence[PersonValue]) -> bool:
    """Return whether a value identifies the person by itself, which a linked town or date does not."""
    return value in found or value.entry.value.type not in _OF_MANY


def _types(values: Sequence[PersonValue]) -> dict[str, int]:
    return dict(sorted(Counter(each.entry.value.type for each in values).items()))


def _value_json(value: PersonValue) -> dict[str, str]:
    entry = value.entry
    return {"value": entry.value.plain, "type": entry.value.type, "token": entry.shown, "scope": value.scope}


def _print_person(person: Person, *, yes: bool, only: bool) -> None:
    verb = "Forgotten" if yes else "Would be forgotten"
    beside = "Left, though it stood in one record with it" if only else f"{verb}, since it stood in one record"
    for head, values in (
        (verb, person.found),
        (beside, person.linked),
        ("Left, since it stands in records of others too", person.shared),
    ):
        print(f"{head}: {of_types(_types(values))}.")
        for each in values[:_SHOWN_MAX]:
            print(f"  {each.entry.value.type:<12} {escaped(each.entry.value.plain)}")
        if len(values) > _SHOWN_MAX:
            print(f"  and {len(values) - _SHOWN_MAX} more, which --json names")


def _print_traces(where: Traces, *, yes: bool, files: bool, skills: bool) -> None:
    verb = "Erased from" if yes else "Would be erased from"
    removed = "Removed for good, with all versions:" if yes else "Would be removed for good, with all versions:"
    _print_runs(where.runs, yes=yes)
    of_files = verb if files else "Left in (--files erases it)"
    for head, names in (
        (f"{verb} kept runs", where.archive),
        (f"{verb} recordings of skills", where.recordings),
        (f"{verb} descriptions and tags of skills", where.descriptions),
        (f"{verb if skills else 'Left in (--skills erases it)'} code and tests of skills", where.skills),
        (f"{removed if skills else 'Left (--skills removes them)'} skills named so", where.skill_names),
        (f"{of_files} workspace files", where.files),
        ("Left in packed workspace files and databases, which cannot be changed here", where.fixed),
    ):
        if names:
            print(f"{head}: {', '.join(map(escaped, names))}")
    if where.skills and skills and yes:
        print("What these skills run has changed: `sealab skills test` shows whether they still do what they should.")
    if where.at_work:
        print(
            f"Still at work, and may yet write of the person: {', '.join(where.at_work)}. Forget again once they have "
            "ended."
        )


def _some(numbers: Sequence[int]) -> str:
    more = len(numbers) - _SHOWN_MAX
    return ", ".join(map(str, numbers[:_SHOWN_MAX])) + (f" and {more} more, which --json names" if more > 0 else "")


def _print_runs(runs: Sequence[str], *, yes: bool) -> None:
    if runs:
        verb = "Erased" if yes else "Would be erased"
        print(f"{verb} whole, so that they cannot be shown or run again: journals of the runs {', '.join(runs)}")


def _tell_to_repeat(*, yes: bool) -> None:
    if not yes:
        print_error("sealab: Nothing was erased. Say --yes to erase it.")


def _scope_named(vault: Vault, said: str) -> str:
    """Return the scope that is meant: by its name in the audit or, since the audit prints no more, how that begins."""
    if said == HOME:
        return vault.scope_name(LOCAL.scope)
    meant = [name for name in vault.scopes() if name.startswith(said)] if len(said) >= SCOPE_SHOWN else []
    if len(meant) != 1:
        raise UsageError(
            f"{said!r} does not name exactly one scope that has values. Give it as `sealab pii audit` does, or home."
        )
    return meant[0]


def of_types(types: Mapping[str, int]) -> str:
    """Return how many there are of each type, in words."""
    return ", ".join(f"{count} {kind}" for kind, count in sorted(types.items())) or "nothing"
