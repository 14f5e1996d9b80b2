"""`sealab pii forget`: shows what is kept of a person, and erases it."""
# ruff: noqa: T201 - printing is what a command line does

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING

from ..caller import LOCAL
from ..errors import Exit, UsageError
from ..home import Home
from ..settings import Settings
from ..terminal_escaping import one_line as escaped
from .pii_vault import OpenedVault, counted, opened_vault

if TYPE_CHECKING:
    from ...skills_db.vault import Person, PersonValue, Vault
    from ..privacy.erasure import Eraser, Traces

HOME, SCOPE_SHOWN = "home", 8
_SHOWN_MAX = 200
_LINES_MAX = 1 << 62
_OF_MANY = frozenset({"LOCATION", "ZIP", "DOB", "IP", "MAC"})
"""Types whose values are looked for in files only where they are asked for."""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Give the parser its arguments."""
    parser.add_argument(
        "value", metavar="VALUE", nargs="?", help="a name, an address, anything; or a token; - reads it from stdin"
    )
    parser.add_argument(
        "--scope",
        metavar="SCOPE",
        help="erase all values of this scope, as the audit names it; `home` is the scope of this home",
    )
    parser.add_argument("--only", action="store_true", help="leave what stood in one record with it")
    parser.add_argument("--yes", action="store_true", help="erase it; else it is shown only")
    parser.add_argument("--files", action="store_true", help="erase it from files of the workspace too")
    parser.add_argument(
        "--skills", action="store_true", help="erase it from the code of skills too, and remove those that are named so"
    )


def forget(chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    """Show or erase what is asked for."""
    if (chosen.value is None) is (chosen.scope is None):
        raise UsageError("It is not clear what to forget. Give either a value, such as a name, or --scope SCOPE.")
    if chosen.scope is not None:
        return _forget_scope(chosen, home, settings)
    value = sys.stdin.read().strip("\r\n") if chosen.value == "-" else str(chosen.value)
    if not value.strip():
        raise UsageError("There is nothing to forget. Give a value, such as a name.")
    return _forget_person(chosen, home, settings, value)


def _forget_scope(chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    with opened_vault(home, settings) as work:
        vault = work.privacy.vault()
        name = _scope_named(vault, chosen.scope)
        journals = work.journals(settings)
        runs = journals.of_owner(name)
        if chosen.yes:
            types = vault.forget_scope(name)
            journals.forget_scope(name)
            work.privacy.note("forget", "terminal", types, scope=LOCAL.scope)
        else:
            types = vault.types_of_scope(name)
    if chosen.json:
        _print_json({"erased": chosen.yes, "forgotten": sum(types.values()), "types": types, "runs": runs})
    else:
        print(f"{'Forgotten' if chosen.yes else 'Would be forgotten'}: {counted(types)}.")
        _print_names("Erased" if chosen.yes else "Would be erased", runs)
        _tell_to_repeat(chosen)
    return Exit.OK


def _forget_person(chosen: argparse.Namespace, home: Home, settings: Settings, value: str) -> int:
    from ..privacy.erasure import Eraser, traces
    from ..storage.opening import open_workspace

    with opened_vault(home, settings) as work:
        vault = work.privacy.vault()
        person = vault.person(value)
        gone = (*person.found, *(() if chosen.only else person.linked))
        sought = [each.entry.value for each in (*person.found, *gone) if _is_sought(each, person.found)]
        named = {(each.plain, each.type) for each in sought} or {(value, "PERSON")}  # files may have it all the same
        with open_workspace(settings, home, work.database) as workspace:
            journals = work.journals(settings)
            eraser = Eraser(named, work.privacy.detectors.texts_of)
            where = traces(
                eraser,
                workspace,
                work.database(),
                journals,
                erases=chosen.yes,
                in_files=chosen.files,
                in_skills=chosen.skills,
            )
        lines = _audit_lines(home, settings, work, eraser)
        if chosen.yes:
            types = vault.forget_entries(gone)
            work.privacy.note("forget", "terminal", types, scope=LOCAL.scope)
        else:
            types = _types(gone)
    if chosen.json:
        erased = {"erased": chosen.yes, "forgotten": sum(types.values()), "types": types}
        told = {"found": person.found, "linked": person.linked, "shared": person.shared}
        _print_json(
            {
                **erased,
                **{name: list(map(_told, values)) for name, values in told.items()},
                **asdict(where),
                "audit_lines": lines,
            }
        )
    else:
        _print_person(chosen, person)
        _print_traces(chosen, where)
        if lines:
            print(
                f"Left in lines {_some(lines)} of the audit log, which name a skill and are never changed. `sealab "
                "audit trim` removes all lines before a moment."
            )
        _tell_to_repeat(chosen)
    return Exit.OK


def _audit_lines(home: Home, settings: Settings, work: OpenedVault, eraser: Eraser) -> list[int]:
    """Return the lines of the audit log in which a skill is named after the person. None are changed."""
    from ...skills_db.audit.audit_store import Wanted
    from ..audit.audit_log import audit_store
    from ..audit.trail import AuditKind
    from .audit.opened import opened_log

    kinds = (AuditKind.SKILL_SAVED, AuditKind.SKILL_DELETED, AuditKind.SKILL_PUBLISHED)
    is_tenant = home.operators is not None
    own = nullcontext(audit_store(work.database, work.privacy.key))
    with opened_log(home, settings) if is_tenant else own as log:
        return [
            line.number
            for kind in kinds
            for line in log().lines(Wanted(event=kind, tenant=home.tenant if is_tenant else None, limit=_LINES_MAX))
            if any(isinstance(each, str) and eraser.holds(each) for each in line.event.details.values())
        ]


def _is_sought(value: PersonValue, found: Sequence[PersonValue]) -> bool:
    """Return whether a value tells of the person wherever it stands: a town or a date that is linked does not."""
    return value in found or value.entry.value.type not in _OF_MANY


def _types(values: Sequence[PersonValue]) -> dict[str, int]:
    return dict(sorted(Counter(each.entry.value.type for each in values).items()))


def _told(value: PersonValue) -> dict[str, str]:
    entry = value.entry
    return {"value": entry.value.plain, "type": entry.value.type, "token": entry.shown, "scope": value.scope}


def _print_person(chosen: argparse.Namespace, person: Person) -> None:
    verb = "Forgotten" if chosen.yes else "Would be forgotten"
    beside = "Left, though it stood in one record with it" if chosen.only else f"{verb}, since it stood in one record"
    for head, values in (
        (verb, person.found),
        (beside, person.linked),
        ("Left, since it stands in records of others too", person.shared),
    ):
        print(f"{head}: {counted(_types(values))}.")
        for each in values[:_SHOWN_MAX]:
            print(f"  {each.entry.value.type:<12} {escaped(each.entry.value.plain)}")
        if len(values) > _SHOWN_MAX:
            print(f"  and {len(values) - _SHOWN_MAX} more, which --json names")


def _print_traces(chosen: argparse.Namespace, where: Traces) -> None:
    verb = "Erased from" if chosen.yes else "Would be erased from"
    removed = "Removed for good, with all versions:" if chosen.yes else "Would be removed for good, with all versions:"
    _print_names("Erased" if chosen.yes else "Would be erased", where.runs)
    of_files = verb if chosen.files else "Left in (--files erases it)"
    for head, names in (
        (f"{verb} kept runs", where.archive),
        (f"{verb} recordings of skills", where.recordings),
        (f"{verb} descriptions and tags of skills", where.descriptions),
        (f"{verb if chosen.skills else 'Left in (--skills erases it)'} code and tests of skills", where.skills),
        (f"{removed if chosen.skills else 'Left (--skills removes them)'} skills named so", where.skill_names),
        (f"{of_files} workspace files", where.files),
        ("Left in packed workspace files and databases, which cannot be changed here", where.fixed),
    ):
        if names:
            print(f"{head}: {', '.join(map(escaped, names))}")
    if where.skills and chosen.skills and chosen.yes:
        print("What these skills run has changed: `sealab skills test` shows whether they still do what they should.")
    if where.at_work:
        print(
            f"Still at work, and may yet write of the person: {', '.join(where.at_work)}. Forget again once they have "
            "ended."
        )


def _some(numbers: Sequence[int]) -> str:
    more = len(numbers) - _SHOWN_MAX
    return ", ".join(map(str, numbers[:_SHOWN_MAX])) + (f" and {more} more, which --json names" if more > 0 else "")


def _print_names(verb: str, runs: Sequence[str]) -> None:
    if runs:
        print(f"{verb} whole, so that they cannot be shown or run again: journals of the runs {', '.join(runs)}")


def _tell_to_repeat(chosen: argparse.Namespace) -> None:
    if not chosen.yes:
        print("sealab: Nothing was erased. Say --yes to erase it.", file=sys.stderr)


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


def _print_json(value: object) -> None:
    print(json.dumps(value))
