"""The commands that leave a line in the audit log: what changes who may do what, and what takes data out.

A line says which command it was, what it was about by its name or id, and how it ended; never a file's name, nor a
value that was given.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from ....skills_db.audit.chain import Detail
from ...access.names import tenant_name
from ...audit.audit_log import AuditLog
from ...audit.trail import AuditKind, AuditTrail
from ...errors import KNOWN_ERRORS, Exit, RequestRefused, exit_of
from ...home import Home
from ...identity import DEFAULT_TENANT, LOCAL_IDENTITY, Identity
from ...settings import AuditMode, Settings
from ..terminal import print_error
from .opened import opened_log
from .telling import told_by

_EXIT = MappingProxyType({exit_code.value: exit_code.name.lower() for exit_code in Exit})


@dataclass(frozen=True, slots=True)
class AuditedCommand:
    """A command that leaves a line: its kind, and the arguments that name what it is about, and its run.

    What only the command itself gets to know, such as the id of a token, it hands over by `telling.tell`.
    One with `only_with` leaves none where that option was not given, and none does with `--dry-run`, nor where it was
    given what it cannot use, and so did nothing.
    """

    kind: AuditKind
    about: str | None = None
    run: str | None = None
    only_with: str | None = None


_ADMINISTERS = AuditedCommand(AuditKind.ADMINISTERED)
_ADMINISTERS_NAMED = AuditedCommand(AuditKind.ADMINISTERED, "name")
AUDITED: Mapping[str, AuditedCommand] = MappingProxyType(
    {
        "init": _ADMINISTERS,
        "servers add": _ADMINISTERS_NAMED,
        "servers remove": _ADMINISTERS_NAMED,
        "servers import": _ADMINISTERS,
        "container build": _ADMINISTERS,
        "pii forget": AuditedCommand(AuditKind.ADMINISTERED, only_with="yes"),
        "pii restore": AuditedCommand(AuditKind.EXPORTED),
        "runs export": AuditedCommand(AuditKind.EXPORTED, run="run"),
        "runs cancel": AuditedCommand(AuditKind.ADMINISTERED, run="run"),
        "skills export": AuditedCommand(AuditKind.EXPORTED),
        "skills backup": AuditedCommand(AuditKind.EXPORTED),
        "skills import": _ADMINISTERS,
        "skills restore": _ADMINISTERS,
        "skills purge": _ADMINISTERS,
        "skills save": AuditedCommand(AuditKind.SKILL_SAVED),
        "skills delete": AuditedCommand(AuditKind.SKILL_DELETED),
        "tokens create": AuditedCommand(AuditKind.TOKEN_CREATED),
        "tokens revoke": AuditedCommand(AuditKind.TOKEN_REVOKED),
        "tenants create": AuditedCommand(AuditKind.TENANT_CREATED),
        "tenants suspend": _ADMINISTERS,
        "tenants resume": _ADMINISTERS,
        "tenants export": AuditedCommand(AuditKind.TENANT_EXPORTED),
        "tenants delete": AuditedCommand(AuditKind.TENANT_DELETED, only_with="yes"),
        "approvals approve": AuditedCommand(AuditKind.APPROVAL_ANSWERED, "approval"),
        "approvals deny": AuditedCommand(AuditKind.APPROVAL_ANSWERED, "approval"),
    }
)
"""The commands that leave a line, by their words."""


def run_audited(
    words: str, chosen: argparse.Namespace, begin: Callable[[argparse.Namespace], tuple[Home, Settings]]
) -> int:
    """Run a command of `AUDITED`, leave its line, and return its exit code.

    Where lines are required, one is written before it begins too: without that it is refused, with `AuditUnwritten`.
    """
    act = AUDITED[words]
    home, settings = begin(chosen)
    acts = (act.only_with is None or getattr(chosen, act.only_with)) and not getattr(chosen, "dry_run", False)
    if settings.audit is AuditMode.OFF or not acts:
        return int(chosen.command(chosen))
    is_required = settings.audit is AuditMode.REQUIRED
    line = _Line(act, words, chosen)
    if is_required:
        line.write(home, settings, "begins")
    outcome = "failed"
    try:
        code = int(chosen.command(chosen))
        outcome = _EXIT.get(code, str(code))
    except KNOWN_ERRORS as error:
        outcome = exit_of(error).name.lower()
        raise
    finally:
        try:
            if is_required or outcome != Exit.USAGE.name.lower():
                line.write(home, settings, outcome)
        except KNOWN_ERRORS as error:
            print_error(f"sealab: The audit log has no line of this. {error}")
    return code


@dataclass(frozen=True, slots=True)
class _Line:
    """What is written of one command."""

    act: AuditedCommand
    words: str
    chosen: argparse.Namespace

    def write(self, home: Home, settings: Settings, outcome: str) -> None:
        """Write it. Raises `AuditUnwritten`."""
        act = self.act
        details: dict[str, Detail] = {"command": self.words}
        if act.about is not None:
            details["name"] = str(getattr(self.chosen, act.about))
        details |= told_by(self.chosen)
        run = "" if act.run is None else str(getattr(self.chosen, act.run))
        with opened_log(home, settings) as store:
            log = AuditLog(store)
            AuditTrail(log).acted(act.kind, _user(self.chosen, home), run=run, outcome=outcome, details=details)
            try:
                log.flush()
            finally:
                log.close()


def _user(chosen: argparse.Namespace, home: Home) -> Identity:
    """Return the user of this machine, in the tenant that the command is about."""
    named = getattr(chosen, "tenant", None)
    try:
        tenant = tenant_name(named) if isinstance(named, str) else home.tenant or DEFAULT_TENANT
    except RequestRefused:  # which the command says too; what was given may be anything
        tenant = DEFAULT_TENANT
    return replace(LOCAL_IDENTITY, tenant=tenant)
