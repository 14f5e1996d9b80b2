"""One registry of Presidio's, in which our recognizers and those that the operator added are entries.

Its NLP engine loads and downloads nothing.

Importing this imports Presidio, and with it spaCy: seconds. Everything else here does without.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import presidio_analyzer  # noqa: F401 - by its own name first, as threads need it
import regex
from presidio_analyzer import AnalyzerEngine, EntityRecognizer, RecognizerRegistry, RecognizerResult
from presidio_analyzer.context_aware_enhancers import LemmaContextAwareEnhancer
from presidio_analyzer.nlp_engine import NlpArtifacts, NlpEngine

from .added.running import AddedRecognizers
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


class WordsAlone(NlpEngine):
    """An NLP engine without a model of language: Presidio's own would load, or download, one.

    It gives the words of a text, by spaCy's tokenizer, for what looks at the words around a finding; their lemmas are
    the words themselves.
    """

    @cached_property
    def _tokenizer(self) -> Any:  # a `Language` of spaCy, which is imported only where it is needed
        import spacy

        return spacy.blank("xx").tokenizer

    def load(self) -> None:
        """Nothing."""

    def is_loaded(self) -> bool:
        """Return True: nothing is missing."""
        return True

    def process_text(self, text: str, language: str) -> NlpArtifacts:
        """Return the words of a text."""
        words = self._tokenizer(text)
        lemmas = [word.text for word in words]
        return NlpArtifacts([], words, [word.idx for word in words], lemmas, self, language)

    def process_batch(
        self, texts: Iterable[str], language: str, batch_size: int = 1, n_process: int = 1, **_: object
    ) -> Iterator[tuple[str, NlpArtifacts]]:
        """Yield each text with its words."""
        del batch_size, n_process
        for text in texts:
            yield text, self.process_text(text, language)

    def is_stopword(self, word: str, language: str) -> bool:
        """Return False: no word is a stop word."""
        del word, language
        return False

    def is_punct(self, word: str, language: str) -> bool:
        """Return whether a word has neither letters nor digits."""
        del language
        return not any(map(str.isalnum, word))

    def get_supported_entities(self) -> list[str]:
        """Return none."""
        return []

    def get_supported_languages(self) -> list[str]:
        """Return the one language there is."""
        return [_LANGUAGE]


class NearWords(LemmaContextAwareEnhancer):
    """Presidio's search for context words, where the word at a place is looked up: its own reads from the start."""

    @staticmethod
    def _find_index_of_match_token(word: str, start: int, tokens: object, tokens_indices: list[int]) -> int:
        del word, tokens
        return max(0, bisect_right(tokens_indices, start) - 1)


class LinearAnalyzer(AnalyzerEngine):
    """`AnalyzerEngine` with a way to all findings of its recognizers: its own merging is quadratic in their number.

    Its registry holds all of them: ours, the operator's patterns, and those that the operator added. Ours look at their
    context themselves.
    """

    @cached_property
    def finds(self) -> list[Find]:
        """What each of our recognizers finds with, without an object of Presidio's for each finding.

        Together they give duplicates and overlaps too.
        """
        return [each.find for each in self.registry.recognizers if isinstance(each, FunctionRecognizer)]

    @cached_property
    def added(self) -> AddedRecognizers | None:
        """The operator's recognizers, if there are any: these are asked as Presidio asks them."""
        added = [each for each in self.registry.recognizers if not isinstance(each, FunctionRecognizer)]
        return AddedRecognizers(self, added) if added else None


def analyzer(
    patterns: Mapping[str, str], types: frozenset[str], added: Sequence[EntityRecognizer] = ()
) -> LinearAnalyzer:
    """Return an analyzer with our recognizers that find one of `types` (none: all), and the operator's own."""
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
    recognizers += added
    languages = list(dict.fromkeys((_LANGUAGE, *(each.supported_language for each in added))))
    registry = RecognizerRegistry(recognizers=recognizers, supported_languages=languages)
    return LinearAnalyzer(
        registry=registry,
        nlp_engine=WordsAlone(),
        supported_languages=languages,
        context_aware_enhancer=NearWords(),
    )


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
