"""All that looks through a text: our recognizers, the operator's patterns, and the recognizers that were added.

Presidio, and with it spaCy, is imported only where recognizers of its kind were added: that takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import regex

from .findings import Finding, PiiType
from .recognizers.accounts import accounts
from .recognizers.addresses import addresses
from .recognizers.assignments import assignments
from .recognizers.births import births
from .recognizers.emails import emails
from .recognizers.identifiers import identifiers
from .recognizers.json_pairs import json_pairs
from .recognizers.latin_prose import latin_prose
from .recognizers.lines import lines
from .recognizers.markup import markup
from .recognizers.network import devices
from .recognizers.numbers import cards, fixed_widths, ibans, social_security_numbers, wallets
from .recognizers.people import people
from .recognizers.phones import phones
from .recognizers.secrets import long_secrets, secrets
from .recognizers.spaced_prose import spaced_prose
from .recognizers.tables import sql_rows, tables
from .recognizers.unspaced_prose import unspaced_prose

if TYPE_CHECKING:
    from presidio_analyzer import EntityRecognizer

    from .added.running import AddedRecognizers

Find = Callable[[str], Iterable[Finding]]

_OWN_PATTERN_SECONDS: Final = 2.0
_FIELD_TYPES = tuple(PiiType)
RECOGNIZERS: Sequence[tuple[Find, tuple[PiiType, ...]]] = (
    (secrets, (PiiType.SECRET,)),
    (long_secrets, (PiiType.SECRET,)),
    (emails, (PiiType.EMAIL,)),
    (cards, (PiiType.CARD,)),
    (ibans, (PiiType.IBAN,)),
    (fixed_widths, (PiiType.IBAN, PiiType.CARD)),
    (social_security_numbers, (PiiType.SSN,)),
    (wallets, (PiiType.CRYPTO,)),
    (devices, (PiiType.IP, PiiType.MAC)),
    (phones, (PiiType.PHONE,)),
    (
        identifiers,
        (
            PiiType.PASSPORT,
            PiiType.DRIVING_LICENCE,
            PiiType.MEDICAL,
            PiiType.TAX_ID,
            PiiType.SSN,
            PiiType.BANK,
            PiiType.NATIONAL_ID,
            PiiType.DATE_OF_BIRTH,
            PiiType.ZIP,
        ),
    ),
    (addresses, (PiiType.ADDRESS, PiiType.ZIP, PiiType.LOCATION)),
    (accounts, (PiiType.USERNAME,)),
    (people, (PiiType.PERSON, PiiType.USERNAME, PiiType.PHONE, PiiType.ADDRESS, PiiType.DATE_OF_BIRTH)),
    (json_pairs, _FIELD_TYPES),
    (assignments, _FIELD_TYPES),
    (lines, _FIELD_TYPES),
    (markup, _FIELD_TYPES),
    (tables, _FIELD_TYPES),
    (sql_rows, _FIELD_TYPES),
    (births, (PiiType.DATE_OF_BIRTH,)),
    (latin_prose, (PiiType.PERSON, PiiType.LOCATION)),
    (unspaced_prose, _FIELD_TYPES),
    (spaced_prose, (PiiType.PERSON, PiiType.LOCATION, PiiType.ADDRESS)),
)

RECOGNIZES = frozenset(find for find, _ in RECOGNIZERS)
OF_LATIN_FORM = frozenset(
    {
        secrets,
        long_secrets,
        emails,
        cards,
        ibans,
        fixed_widths,
        social_security_numbers,
        wallets,
        devices,
        phones,
        accounts,
        addresses,
    }
)
"""Those that look for forms of Latin letters and digits, which letters of unspaced scripts do not belong to."""

FAR_LOOKING = frozenset({json_pairs, long_secrets, markup, sql_rows, tables})
"""Those that look far: to a table's headings, to the keys around an object, to the end of a private key."""


@dataclass(frozen=True, slots=True)
class Analyzer:
    """What each of our recognizers and of the operator's patterns finds with, and the recognizers that were added.

    Together they give duplicates and overlaps too.
    """

    finds: Sequence[Find]
    added: AddedRecognizers | None


def analyzer(patterns: Mapping[str, str], added: Sequence[EntityRecognizer] = ()) -> Analyzer:
    """Return an analyzer with our recognizers and the operator's own."""
    finds = [*(find for find, _ in RECOGNIZERS), *(own_pattern(name, pattern) for name, pattern in patterns.items())]
    if not added:
        return Analyzer(finds, None)
    from .added.running import added_recognizers

    return Analyzer(finds, added_recognizers(added))


def own_pattern(name: str, pattern: str) -> Find:
    """Return a function that finds an operator's own pattern; it raises `TimeoutError` rather than take seconds."""
    compiled = regex.compile(pattern)
    group = 1 if compiled.groups else 0

    def find(text: str) -> Iterator[Finding]:
        for match in compiled.finditer(text, timeout=_OWN_PATTERN_SECONDS):
            if match.end(group) > match.start(group) >= 0:
                yield Finding(match.start(group), match.end(group), name, 1.0)

    return find
