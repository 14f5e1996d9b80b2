"""The lines that a tenant's requests leave in the audit log: one function for each kind of event.

Never a value, an argument, code, a file's or session's name, or a text of a user: names of tools, ids, sizes, counts,
and names of skills, with tokens in place of what is personal in them under `PRIVACY=auto`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from typing_extensions import TypedDict, Unpack

from ....skills_db.audit.chain import AuditEvent, Detail
from ...base.errors import AuditUnwritten, KnownError, PolicyRefused
from ...base.identity import DEFAULT_TENANT, LOCAL_IDENTITY, Identity
from ..caller import Caller
from ..scopes import principal_of
from .audit_log import AuditLog, now_us
from .sums import Sums

if TYPE_CHECKING:
    from collections.abc import Iterable

_TOOLS_NAMED = 5
"""Tools of one question that its line names; of more it says how many."""
_KNOWN_DESTINATIONS = frozenset({"model", "code", "terminal", "workspace", "figure"})


class AuditKind(StrEnum):
    """What a line is about."""

    SERVER_STARTED = "server.started"
    SERVER_STOPPED = "server.stopped"
    RUN_BEGAN = "run.began"
    RUN_ENDED = "run.ended"
    RUN_REFUSED = "run.refused"
    TOOL_SENT = "tool.sent"
    TOOL_CALLED = "tool.called"
    APPROVAL_ASKED = "approval.asked"
    APPROVAL_ANSWERED = "approval.answered"
    PRIVACY_RESTORED = "privacy.restored"
    PRIVACY_SENT = "privacy.sent"
    PRIVACY_REFUSED = "privacy.refused"
    PRIVACY_FORGOTTEN = "privacy.forgotten"
    SKILL_SAVED = "skill.saved"
    SKILL_DELETED = "skill.deleted"
    SKILL_PUBLISHED = "skill.published"
    EXPORTED = "exported"
    ADMINISTERED = "administered"
    SIGNED_IN = "access.signed_in"
    DENIED = "access.denied"
    LIMITED = "access.limited"
    TOKEN_CREATED = "token.created"  # noqa: S105 - no password
    TOKEN_REVOKED = "token.revoked"  # noqa: S105 - no password
    TENANT_CREATED = "tenant.created"
    TENANT_EXPORTED = "tenant.exported"
    TENANT_DELETED = "tenant.deleted"
    UPSTREAM_SIGNED_IN = "upstream.signed_in"
    UPSTREAM_SIGNED_OUT = "upstream.signed_out"
    LIMIT_SET = "limit.set"
    KEY_ROTATED = "key.rotated"
    TRIMMED = "audit.trimmed"


class DenialReason(StrEnum):
    """Why a request was answered 400, 401, 403, 429 or 503 before it reached a tenant; missing scopes are named too."""

    NO_TOKEN = "no token"  # noqa: S105 - no password
    MISPLACED = "token misplaced"
    INVALID = "token invalid"
    """Unknown, expired, revoked, or of another issuer or audience."""
    ENDED = "token ended"
    """It was revoked or expired while its request was open."""
    TOO_MANY = "too many invalid tokens"
    UNJUDGED = "token not judged"
    """What knows whether it is valid did not answer."""
    STATE = "sign-in not begun here"
    CODE = "sign-in refused"
    """At the console: the issuer gave no token for what a browser came back with."""
    SCOPE = "scope missing"
    TENANT = "tenant not served"


_OF_PRIVACY: Mapping[str, AuditKind] = {
    "restore": AuditKind.PRIVACY_RESTORED,
    "send": AuditKind.PRIVACY_SENT,
    "refuse": AuditKind.PRIVACY_REFUSED,
    "forget": AuditKind.PRIVACY_FORGOTTEN,
}
"""What the privacy filter does with values and is kept here too; that it hides some, or knows a token not, is not."""


class Fields(TypedDict, total=False):
    """What a line says beside its kind and whose it is; see `AuditEvent`."""

    run: str
    tool: str
    decision: str
    rule: str
    bytes_in: int
    bytes_out: int
    outcome: str
    details: Mapping[str, Detail]


@dataclass(frozen=True, slots=True)
class ToolCallLine:
    """A call of an upstream tool: what was decided, by which rule, and, once it has ended, how."""

    tool: str
    decision: str
    rule: str
    bytes_in: int = 0
    bytes_out: int = 0
    outcome: str = ""
    ms: float = 0.0
    sources: str = ""
    """Kinds, sources and tools of the arguments that name something: `party text bank.read_file; sum program`."""

    @classmethod
    def of_unfound(cls, left_out_of: str | None, outcome: str) -> ToolCallLine:
        """Return that of a tool that was not found, or is left out of a server: its name is not kept."""
        if left_out_of is None:
            return cls("", "unknown tool", "", outcome=outcome)
        return cls(f"{left_out_of}.?", "refused", "allow, deny", outcome=outcome)


@dataclass(frozen=True, slots=True)
class AuditTrail:
    """What notes the events of one tenant. Without a `log` none are kept.

    Functions that wait are those of requests: they wait for room, and where lines `is_required` until they are written;
    then they raise `AuditUnwritten` where that fails, and the request goes no further.
    """

    log: AuditLog | None = None
    tenant: str = DEFAULT_TENANT
    is_required: bool = False
    sums: Sums = field(default_factory=Sums)
    """What adds up the lines of refused requests, for all tenants."""

    def close(self) -> None:
        """Write what waits, and end. Blocks."""
        self.sums.close()
        if self.log is not None:
            self.log.close()

    def trouble(self) -> str | None:
        """Return what to say where lines could not be written for a while, else None."""
        return None if self.log is None else self.log.trouble()

    async def server_started(self, transport: str) -> None:
        """Note that a server began to serve; it is written with the first line of a request, unless it is required."""
        self._note(AuditKind.SERVER_STARTED, LOCAL_IDENTITY, idly=True, details={"transport": transport})
        await self.kept()

    def server_stopped(self) -> None:
        """Note that a server ends."""
        self.sums.close()
        if self.log is not None:
            self._note(AuditKind.SERVER_STOPPED, LOCAL_IDENTITY, idly=not self.log.has_written)

    async def run_began(self, caller: Caller, run_id: str, *, isolation: str, code_bytes: int, dry_run: bool) -> None:
        """Note that a run is about to begin. Raises `AuditUnwritten`."""
        details: dict[str, Detail] = {"isolation": isolation, **({"dry_run": True} if dry_run else {})}
        self._note(AuditKind.RUN_BEGAN, self._who(caller), run=run_id, bytes_in=code_bytes, details=details)
        await self.kept()

    def run_ended(
        self,
        caller: Caller,
        run_id: str,
        *,
        status: str,
        isolation: str,
        ms: float,
        calls: int,
        shown_bytes: int = 0,
        moved_bytes: int = 0,
    ) -> None:
        """Note how a run ended; `shown_bytes` is what it printed, `moved_bytes` what went to and came from tools."""
        details: dict[str, Detail] = {"isolation": isolation, "ms": round(ms, 3)}
        if calls:
            details |= {"calls": calls, "tool_bytes": moved_bytes}
        fields: Fields = {"run": run_id, "bytes_out": shown_bytes, "outcome": status, "details": details}
        self._note(AuditKind.RUN_ENDED, self._who(caller), **fields)

    def run_refused(self, caller: Caller, run_id: str, error: KnownError) -> None:
        """Note that a run was refused before it began: by which rules of the policy, else by which kind of error."""
        rule = error.rule if isinstance(error, PolicyRefused) else error.code
        self._note(AuditKind.RUN_REFUSED, self._who(caller), run=run_id, decision="refused", rule=rule)

    async def tool_sent(self, caller: Caller, run_id: str, call: ToolCallLine) -> None:
        """Note, where lines are required, that a tool is about to be called. Raises `AuditUnwritten`."""
        if self.is_required:
            self._note_call(AuditKind.TOOL_SENT, caller, run_id, call)
        await self.kept()

    def tool_called(self, caller: Caller, run_id: str, call: ToolCallLine) -> None:
        """Note what became of a call of a tool."""
        self._note_call(AuditKind.TOOL_CALLED, caller, run_id, call)

    def approval_asked(self, caller: Caller, run_id: str, tools: Iterable[str]) -> None:
        """Note that a user is asked about tools."""
        tool, details = _named(tools)
        self._note(AuditKind.APPROVAL_ASKED, self._who(caller), run=run_id, tool=tool, details=details)

    def approval_answered(
        self, caller: Caller | None, run_id: str, tools: Iterable[str], decision: str, *, by: str
    ) -> None:
        """Note an answer; `by` says where it was given: `client`, `page` or `terminal`. A link has no caller."""
        tool, details = _named(tools)
        identity = Identity(self.tenant, "", frozenset()) if caller is None else self._who(caller)
        fields: Fields = {"run": run_id, "tool": tool, "decision": decision, "details": {**details, "by": by}}
        self._note(AuditKind.APPROVAL_ANSWERED, identity, **fields)

    def of_privacy(  # noqa: PLR0917 - as `OnTypes` has them
        self, scope: str, action: str, destination: str, counts: Mapping[str, int], run: str, rule: str = ""
    ) -> None:
        """Note what the privacy filter did with values: which types, how many, where they went, by which rule."""
        kind = _OF_PRIVACY.get(action)
        if kind is None or not any(counts.values()):
            return
        is_tool = destination not in _KNOWN_DESTINATIONS
        details: dict[str, Detail] = {"to": "tool" if is_tool else destination}
        details |= {kept or "tokens": count for kept, count in counts.items()}
        identity = Identity(self.tenant, principal_of(scope), frozenset())
        decision = "refused" if kind is AuditKind.PRIVACY_REFUSED else ""
        tool = destination if is_tool else ""
        self._note(kind, identity, run=run, tool=tool, decision=decision, rule=rule, details=details)

    def skill_changed(self, caller: Caller, kind: AuditKind, name: str, *, version: int | None = None) -> None:
        """Note that a skill was saved, deleted or published; the name as it may be kept, see `name_noted`."""
        details: dict[str, Detail] = {"skill": name, **({} if version is None else {"version": version})}
        self._note(kind, self._who(caller), details=details)

    def acted(self, kind: AuditKind, identity: Identity, **fields: Unpack[Fields]) -> None:
        """Note any other act of an identity: an export, an admin act, a token, a tenant, a sign-in to an upstream."""
        self._note(kind, identity, **fields)

    def signed_in(self, identity: Identity, method: str) -> None:
        """Note that a credential was accepted which the server did not remember; `method` is `token` or `oauth`."""
        self._note(AuditKind.SIGNED_IN, identity, decision="allowed", rule=method)

    def denied(
        self, identity: Identity | None, *, status: int, reason: DenialReason, lacks: str = "", address: str = ""
    ) -> None:
        """Note a request that was not let in, or count it; `lacks` are the scopes that are missing."""
        shown = identity or Identity("", "", frozenset())
        details: dict[str, Detail] = {"status": status, **({"from": address} if address else {})}
        rule = f"{reason}: {lacks}" if lacks else reason.value
        self._count(AuditKind.DENIED, shown, decision="refused", rule=rule, details=details)

    def limited(self, caller: Caller, limit: str) -> None:
        """Note that a share was used up, or count it; `limit` names it."""
        self._count(AuditKind.LIMITED, self._who(caller), decision="refused", rule=limit)

    async def kept(self) -> None:
        """Wait as a request does after its line was noted. Raises `AuditUnwritten`."""
        if self.log is None:
            return
        if self.is_required:
            try:
                await self.log.stored()
            except AuditUnwritten as error:
                raise AuditUnwritten(f"This was refused, since AUDIT is required. {error}") from error
        else:
            await self.log.room()

    def _who(self, caller: Caller) -> Identity:
        return who(caller, self.tenant)

    def _note(self, kind: AuditKind, identity: Identity, *, idly: bool = False, **fields: Unpack[Fields]) -> None:
        if self.log is not None:
            self.log.note(_event(kind, identity, **fields), idly=idly)

    def _count(self, kind: AuditKind, identity: Identity, **fields: Unpack[Fields]) -> None:
        if self.log is not None:
            self.sums.add(_event(kind, identity, **fields), self.log.note)

    def _note_call(self, kind: AuditKind, caller: Caller, run_id: str, call: ToolCallLine) -> None:
        fields = asdict(call)
        details: dict[str, Detail] = {name: value for name in ("ms", "sources") if (value := fields.pop(name))}
        self._note(kind, self._who(caller), run=run_id, details=details, **fields)


def _event(kind: AuditKind, identity: Identity, **fields: Unpack[Fields]) -> AuditEvent:
    return AuditEvent(
        event=kind.value,
        at_us=now_us(),
        tenant=identity.tenant,
        principal=identity.principal,
        credential=identity.credential,
        **fields,
    )


UNAUDITED = AuditTrail()
"""What notes nothing."""


def who(caller: Caller, tenant: str) -> Identity:
    """Return whose a request is. Where the server authenticates nobody, the connection says as much as is known."""
    if caller.identity != LOCAL_IDENTITY:  # that of a run which goes on was kept and read again
        return caller.identity
    return Identity(tenant, principal_of(caller.scope), frozenset())


def _named(tools: Iterable[str]) -> tuple[str, dict[str, Detail]]:
    names = sorted(tools)
    more = len(names) - _TOOLS_NAMED
    return " ".join(names[:_TOOLS_NAMED]), {"more_tools": more} if more > 0 else {}
