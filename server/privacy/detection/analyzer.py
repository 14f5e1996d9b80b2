"""Presidio's analyzer with a registry of our own recognizers and an NLP engine that loads and downloads nothing.

Importing this imports Presidio, and with it spaCy: seconds. Everything else here does without.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

import regex
from presidio_analyzer import AnalyzerEngine, EntityRecognizer, RecognizerRegistry, RecognizerResult
from presidio_analyzer.nlp_engine import NlpArtifacts, NlpEngine

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
from .recognizers.numbers import cards, ibans, social_security_numbers, wallets
from .recognizers.people import people
from .recognizers.phones import phones
from .recognizers.secrets import long_secrets, secrets
from .recognizers.spaced_prose import spaced_prose
from .recognizers.tables import sql_rows, tables
from .recognizers.unspaced_prose import unspaced_prose

Find = Callable[[str], Iterable[Finding]]

_LANGUAGE: Final = "en"  # Presidio wants one; the recognizers speak many
_OWN_PATTERN_SECONDS: Final = 2.0
_FIELD_TYPES = tuple(PiiType)
RECOGNIZERS: Sequence[tuple[Find, tuple[PiiType, ...]]] = (
    (secrets, (PiiType.SECRET,)),
    (long_secrets, (PiiType.SECRET,)),
    (emails, (PiiType.EMAIL,)),
    (cards, (PiiType.CARD,)),
    (ibans, (PiiType.IBAN,)),
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


class FunctionRecognizer(EntityRecognizer):
    """One of our functions as a recognizer of Presidio's."""

    def __init__(self, find: Find, types: Iterable[str], name: str) -> None:
        self.find = find
        super().__init__(supported_entities=[str(each) for each in types], name=name, supported_language=_LANGUAGE)

    def load(self) -> None:
        """Nothing: tables and expressions are made with their modules."""

    def analyze(self, text: str, entities: list[str], nlp_artifacts: NlpArtifacts) -> list[RecognizerResult]:
        """Return what the function finds of the entities asked for."""
        del nlp_artifacts
        wanted = set(entities)
        return [
            RecognizerResult(str(found.type), found.start, found.end, found.score)
            for found in self.find(text)
            if found.type in wanted
        ]


class WithoutNlp(NlpEngine):
    """An NLP engine without a model of language: Presidio's own would load, or download, a model."""

    def load(self) -> None:
        """Nothing."""

    def is_loaded(self) -> bool:
        """Return True: nothing is missing."""
        return True

    def process_text(self, text: str, language: str) -> NlpArtifacts:
        """Return artifacts without a single token."""
        del text
        return NlpArtifacts([], [], [], [], self, language)  # type: ignore[arg-type]  # no tokens need no Doc of spaCy's

    def process_batch(
        self, texts: Iterable[str], language: str, batch_size: int = 1, n_process: int = 1, **_: object
    ) -> Iterator[tuple[str, NlpArtifacts]]:
        """Yield each text with its empty artifacts."""
        del batch_size, n_process
        for text in texts:
            yield text, self.process_text(text, language)

    def is_stopword(self, word: str, language: str) -> bool:
        """Return False: no word is a stop word."""
        del word, language
        return False

    def is_punct(self, word: str, language: str) -> bool:
        """Return False: no word is punctuation."""
        del word, language
        return False

    def get_supported_entities(self) -> list[str]:
        """Return none."""
        return []

    def get_supported_languages(self) -> list[str]:
        """Return the one language there is."""
        return [_LANGUAGE]


class LinearAnalyzer(AnalyzerEngine):
    """`AnalyzerEngine` with a way to all findings of its recognizers: its own merging is quadratic in their number.

    There is no context enhancement either: it needs lemmas, and our recognizers look at their context themselves.
    """

    @cached_property
    def finds(self) -> list[Find]:
        """What each recognizer of the registry finds with, without an object of Presidio's for each finding.

        Together they give duplicates and overlaps too.
        """
        recognizers = self.registry.get_recognizers(language=_LANGUAGE, all_fields=True)
        return [each.find for each in recognizers if isinstance(each, FunctionRecognizer)]


def analyzer(patterns: Mapping[str, str], types: frozenset[str]) -> LinearAnalyzer:
    """Return an analyzer with the curated recognizers that find one of `types` (none: all), and the operator's own."""
    # Presidio warns at each start of what is not a fault.
    logging.getLogger("presidio-analyzer").setLevel(logging.ERROR)
    recognizers: list[EntityRecognizer] = [
        FunctionRecognizer(find, each, find.__name__)
        for find, each in RECOGNIZERS
        if not types or types & {str(one) for one in each}
    ]
    recognizers += [
        FunctionRecognizer(own_pattern(name, pattern), (name,), name)
        for name, pattern in patterns.items()
        if not types or name in types
    ]
    registry = RecognizerRegistry(recognizers=recognizers, supported_languages=[_LANGUAGE])
    return LinearAnalyzer(registry=registry, nlp_engine=WithoutNlp(), supported_languages=[_LANGUAGE])


def own_pattern(name: str, pattern: str) -> Find:
    """Return a function that finds an operator's own pattern; it raises `TimeoutError` rather than take seconds."""
    compiled = regex.compile(pattern)
    group = 1 if compiled.groups else 0

    def find(text: str) -> Iterator[Finding]:
        # Concurrent: what the operator wrote may take long, and other threads go on meanwhile.
        for match in compiled.finditer(text, timeout=_OWN_PATTERN_SECONDS, concurrent=True):
            if match.end(group) > match.start(group) >= 0:
                yield Finding(match.start(group), match.end(group), name, 1.0)

    return find
