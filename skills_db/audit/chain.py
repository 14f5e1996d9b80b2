r"""Security boundary: what an event of the audit log is, and the chain of hashes that shows whether one was changed.

Each line has a hash: HMAC-SHA-256 (RFC 2104), under a key that is derived from the vault's master key, of

    "sealab audit line 1\n" + previous hash + "\n" + the line's canonical encoding

where the canonical encoding is the ASCII JSON array (no spaces, every other character as `\uXXXX`, RFC 8259)

    [number, at_us, tenant, principal, credential, event, run, tool, decision, rule, bytes_in, bytes_out, outcome,
     details]

with the numbers as decimal integers, the time in microseconds since 1970 in UTC, and `details` as the text that is
stored. Hashes are lowercase hexadecimal; that before the first line is empty. So a line that is edited, removed, put in
or moved breaks the chain where it stands, and who can write to the database and has no key cannot mend it.

The head says how many lines there are, the last one's hash, and after which line the log begins; it is sealed by
HMAC-SHA-256 under a second derived key. So lines cut off at the end show too. What nothing in a database can show is
that all of it was put back to an earlier state: for that a head that is kept elsewhere is compared.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

TEXT_CHARS_MAX = 300
"""Characters of a text of a line; of a longer one its beginning is kept, and how long it was."""
DETAILS_MAX = 50
"""Details of one line."""
_NUMBER_MAX = (1 << 63) - 1

Detail: TypeAlias = "str | int | float | bool"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """Something that happened, as the log keeps it; never a value, an argument, code, or a text of a user.

    `at_us` is the time in microseconds since 1970. `tenant`, `principal` and `credential` say who; `decision` what was
    decided, `rule` by what; `bytes_in` and `bytes_out` are sizes, `outcome` is how it ended. What does not apply is
    empty. `details` are few: counts, names from closed sets.
    """

    event: str
    at_us: int
    tenant: str = ""
    principal: str = ""
    credential: str = ""
    run: str = ""
    tool: str = ""
    decision: str = ""
    rule: str = ""
    bytes_in: int = 0
    bytes_out: int = 0
    outcome: str = ""
    details: Mapping[str, Detail] = field(default_factory=dict)

    def columns(self) -> dict[str, str | int]:
        """Return the event as a row has it, with texts that every database can hold."""
        return {
            "at_us": self.at_us,
            "tenant": kept_text(self.tenant),
            "principal": kept_text(self.principal),
            "credential": kept_text(self.credential),
            "event": kept_text(self.event),
            "run": kept_text(self.run),
            "tool": kept_text(self.tool),
            "decision": kept_text(self.decision),
            "rule": kept_text(self.rule),
            "bytes_in": min(self.bytes_in, _NUMBER_MAX),
            "bytes_out": min(self.bytes_out, _NUMBER_MAX),
            "outcome": kept_text(self.outcome),
            "details": _details_text(self.details) if self.details else "",
        }


@dataclass(frozen=True, slots=True)
class KeptLine:
    """A line as it is stored: its number, the event, the hash before it and its own."""

    number: int
    event: AuditEvent
    previous: str
    hash: str


@dataclass(frozen=True, slots=True)
class Head:
    """How far the log goes: `number` lines were written, the last has `hash`; it begins after `before_number`."""

    number: int
    hash: str
    before_number: int = 0
    before_hash: str = ""


class AuditKeys:
    """What is derived from the vault's master key for the audit log."""

    def __init__(self, master: bytes) -> None:
        self._lines = hmac.digest(master, b"sealab audit|lines", hashlib.sha256)
        self._heads = hmac.digest(master, b"sealab audit|head", hashlib.sha256)
        self.mark = hmac.digest(master, b"sealab audit|check", hashlib.sha256).hex()
        """What distinguishes this master key from others, and shows nothing else about it."""

    def hash_of(self, number: int, columns: Mapping[str, str | int], previous: str) -> str:
        """Return the hash of a line with that number behind the line with the hash `previous`."""
        encoded = json.dumps([number, *(columns[name] for name in COLUMNS)], separators=(",", ":"))
        message = f"sealab audit line 1\n{previous}\n{encoded}".encode("ascii")
        return hmac.digest(self._lines, message, hashlib.sha256).hex()

    def seal_of(self, head: Head) -> str:
        """Return what shows that a head was written by one who has the key."""
        encoded = json.dumps([head.number, head.hash, head.before_number, head.before_hash], separators=(",", ":"))
        return hmac.digest(self._heads, f"sealab audit head 1\n{encoded}".encode("ascii"), hashlib.sha256).hex()


COLUMNS = (
    "at_us",
    "tenant",
    "principal",
    "credential",
    "event",
    "run",
    "tool",
    "decision",
    "rule",
    "bytes_in",
    "bytes_out",
    "outcome",
    "details",
)
"""The columns of a line in the order of its canonical encoding, behind its number."""


def kept_text(text: str) -> str:
    """Return a text as a line keeps it: what no database can hold is written as an escape, and no text is long."""
    if len(text) > TEXT_CHARS_MAX:
        text = f"{text[:TEXT_CHARS_MAX]}… ({len(text)} characters)"
    if text.isascii() and text.isprintable():
        return text
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")


def _details_text(details: Mapping[str, Detail]) -> str:
    kept: dict[str, Detail] = {
        kept_text(name): kept_text(value) if isinstance(value, str) else value
        for name, value in list(details.items())[:DETAILS_MAX]
    }
    if len(details) > DETAILS_MAX:
        kept["left_out"] = len(details) - DETAILS_MAX
    return json.dumps(kept, separators=(",", ":"))
