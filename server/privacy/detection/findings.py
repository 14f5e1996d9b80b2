"""What detection answers with: where in a text something personal stands, and of what type it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

TYPE_NAME = re.compile(r"[A-Z][A-Z_]{0,30}[A-Z]")
"""What an own type may be called, so that tokens can be distinguished from other text."""
ENTRY_POINTS = "sealab.recognizers"
"""The group of entry points by which installed packages add recognizers."""


class PiiType(StrEnum):
    """The types that sealab finds by itself, named as the model sees them in tokens such as `[EMAIL_k3v9q2m8xa]`.

    Own patterns and added recognizers of the operator may add names; those are upper-case letters and underscores too.
    """

    PERSON = "PERSON"
    EMAIL = "EMAIL"
    PHONE = "PHONE"
    CARD = "CARD"
    IBAN = "IBAN"
    BANK = "BANK"
    CRYPTO = "CRYPTO"
    SSN = "SSN"
    TAX_ID = "TAX_ID"
    NATIONAL_ID = "NATIONAL_ID"
    PASSPORT = "PASSPORT"
    DRIVING_LICENCE = "DL"
    MEDICAL = "MEDICAL"
    DATE_OF_BIRTH = "DOB"
    ADDRESS = "ADDRESS"
    LOCATION = "LOCATION"
    ZIP = "ZIP"
    USERNAME = "USERNAME"
    IP = "IP"
    MAC = "MAC"
    SECRET = "SECRET"  # noqa: S105 - the name of a type


THING, SURE_THING = "-", 0.7
"""The type, until findings are decided on, of what a key says is no person's, and how sure that is."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Characters `start` to `end` (half open) of a text are of `type`; `score` is 0 to 1."""

    start: int
    end: int
    type: str
    score: float


class DetectionFailed(Exception):
    """Personal data could not be looked for. The caller must answer with an error, never with the raw text."""

    code = "detection"


@dataclass(frozen=True, slots=True)
class KeyedText:
    """One text of a structured value, with the keys that lead to it: `("customer", "emails", "0")`, outermost first."""

    path: tuple[str, ...]
    text: str


@dataclass(slots=True)
class TableFindings:
    """Cells that are personal as a whole, by type, and what is personal within others."""

    whole: dict[str, list[str]] = field(default_factory=dict)
    within: dict[str, Sequence[Finding]] = field(default_factory=dict)

    def add(self, text: str, findings: Sequence[Finding]) -> None:
        """Take in what was found in a cell."""
        if len(findings) == 1 and findings[0].start == 0 and findings[0].end == len(text):
            self.whole.setdefault(str(findings[0].type), []).append(text)
        elif findings:
            self.within[text] = findings


class Detection(Protocol):
    """What finds personal data: a detector, or one in a reader. Each raises `DetectionFailed`, `HostWorkRefused`."""

    def warm(self) -> None:
        """Load whatever is needed."""

    def find_leaves(self, leaves: Sequence[KeyedText]) -> list[list[Finding]]:
        """Return the findings of each leaf."""
        ...

    def find_column(self, path: tuple[str, ...], texts: Sequence[str], headings: Sequence[str] = ()) -> TableFindings:
        """Return what is personal in different cells of a column."""
        ...
