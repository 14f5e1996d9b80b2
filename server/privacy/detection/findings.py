"""What detection answers with: where in a text something personal stands, and of what type it is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

TYPE_NAME = re.compile(r"[A-Z][A-Z_]{0,30}[A-Z]")
"""What an own type may be called, so that tokens can be distinguished from other text."""


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
