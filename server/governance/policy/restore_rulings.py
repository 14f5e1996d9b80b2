"""Security boundary: which types of personal data the policy lets a restoring put in, and what it refused of one."""

from __future__ import annotations

from ...base.errors import PolicyRefused
from ...base.identity import Identity, Right
from .access import Decider, Ruling, restore_access

MODEL, CODE, FILE, TOOL = "model", "code", "file", "tool"
"""Where a value may go, as the schema calls it."""
_TYPES_SHOWN = 8
_WITHOUT_SCOPE = Ruling(allowed=False, problem=f"the token lacks the scope {Right.PRIVACY_RESTORE}")


class RestoreRulings:
    """Asked of each value while something is restored; remembers what was refused. For one restoring.

    `server` and `tool` say where a value goes with the destination `TOOL`.
    """

    def __init__(self, policy: Decider, who: Identity, destination: str, *, server: str = "", tool: str = "") -> None:
        self._policy = policy
        self._who = who
        self._destination = destination
        self._server, self._tool = server, tool
        self.refused: dict[str, Ruling] = {}
        """The types of which a value was refused, each with the ruling."""

    def __call__(self, path: tuple[str, ...], kind: str) -> bool:
        """Return whether a value of a type may be put in at a path of keys.

        What a tool may have, the operator's `restore` says; all else takes the scope: what code has, it can show in
        another form, and what a file has, code can read.
        """
        if self._destination != TOOL and not self._who.may(Right.PRIVACY_RESTORE):
            self.refused[kind] = _WITHOUT_SCOPE
            return False
        if not self._policy.governs:
            return True
        argument = path[0] if path and self._destination == TOOL else ""
        access = restore_access(kind, self._destination, server=self._server, tool=self._tool, argument=argument)
        ruling = self._policy.decide(self._who, access)
        if not ruling.allowed:
            self.refused[kind] = ruling
        return ruling.allowed

    def why(self) -> str:
        """Return which types were refused and by which rules; empty where none was."""
        refusals = [f"{kind} ({ruling.why()})" for kind, ruling in sorted(self.refused.items())]
        more = len(refusals) - _TYPES_SHOWN
        return ", ".join([*refusals[:_TYPES_SHOWN], *([f"{more} more types"] if more > 0 else [])])

    @property
    def named(self) -> str:
        """The rules by which values were refused, in one line for the audit log; empty where none was."""
        by = dict.fromkeys(
            name for ruling in self.refused.values() for name in ruling.by or (ruling.problem or "no rule",)
        )
        return f"policy: {', '.join(by)}" if by else ""

    def refusal(self) -> PolicyRefused | None:
        """Return the error for what was refused, None where nothing was."""
        if not self.refused:
            return None
        return PolicyRefused(
            f"The policy does not let values go to the {self._destination}: {self.why()}. Leave the tokens as they "
            "are, or ask the operator to change the policy.",
            rule=self.named,
        )
