"""What keeps added recognizers within bounds: names of types, expressions that end, nothing fetched.

A security boundary: Presidio skips an expression that takes too long, and shows what it did not look at. Here such a
recognizer fails, and with it the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import presidio_analyzer  # noqa: F401 - by its own name first, as threads need it
import regex
from presidio_analyzer import EntityRecognizer, PatternRecognizer
from presidio_analyzer.predefined_recognizers import EmailRecognizer

from ..findings import TYPE_NAME, PiiType

_EXPRESSION_SECONDS = 2.0
_OWN_NAMES = {
    "EMAIL_ADDRESS": PiiType.EMAIL,
    "PHONE_NUMBER": PiiType.PHONE,
    "CREDIT_CARD": PiiType.CARD,
    "IBAN_CODE": PiiType.IBAN,
    "US_SSN": PiiType.SSN,
    "IP_ADDRESS": PiiType.IP,
    "MAC_ADDRESS": PiiType.MAC,
    "US_PASSPORT": PiiType.PASSPORT,
    "US_DRIVER_LICENSE": PiiType.DRIVING_LICENCE,
    "US_BANK_NUMBER": PiiType.BANK,
    "US_ITIN": PiiType.TAX_ID,
    "MEDICAL_LICENSE": PiiType.MEDICAL,
}


class RecognizersInvalid(ValueError):
    """Added recognizers cannot be used as they are; the message says where and what to do."""


class ExpressionTooSlow(Exception):
    """A regular expression of an added recognizer took too long."""


def own_name(entity: str) -> str:
    """Return what sealab calls one of Presidio's entities."""
    return _OWN_NAMES.get(entity, entity)


def made_safe(recognizer: EntityRecognizer, shown: str) -> None:
    """Bound what a recognizer does. Raises `RecognizersInvalid` for what cannot be a type."""
    for entity in recognizer.supported_entities:
        if not TYPE_NAME.fullmatch(entity):
            raise RecognizersInvalid(
                f"{shown} has the entity {entity!r}, which is not made of upper-case letters and underscores alone. "
                "Rename it."
            )
    if isinstance(recognizer, EmailRecognizer):
        _fetch_no_suffixes()
    if isinstance(recognizer, PatternRecognizer):
        for pattern in recognizer.patterns:  # type: ignore[has-type]  # Presidio's modules import each other
            flags = recognizer.global_regex_flags or 0
            try:
                compiled = regex.compile(pattern.regex, flags=flags)
            except regex.error as error:
                raise RecognizersInvalid(f"{shown} has an expression that is none: {error}. Correct it.") from None
            pattern.compiled_regex = _BoundedExpression(compiled)
            pattern.compiled_with_flags = flags


class _BoundedExpression:
    """An expression as `PatternRecognizer` uses it, which ends in time."""

    def __init__(self, compiled: Any) -> None:  # a pattern of the package `regex`, which has no types
        self._compiled = compiled

    def finditer(self, text: str, **_: object) -> Iterator[Any]:
        """Yield matches. Raises `ExpressionTooSlow`: Presidio would go on after a `TimeoutError`."""
        try:
            yield from self._compiled.finditer(text, timeout=_EXPRESSION_SECONDS)
        except TimeoutError:
            raise ExpressionTooSlow(f"one of its expressions took more than {_EXPRESSION_SECONDS:g} seconds") from None


def _fetch_no_suffixes() -> None:
    """Have Presidio's recognizer of mail addresses use the list of suffixes that its package brings."""
    import tldextract.tldextract as domains

    domains.TLD_EXTRACTOR = domains.TLDExtract(suffix_list_urls=(), cache_dir=None)
