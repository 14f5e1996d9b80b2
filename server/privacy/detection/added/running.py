"""Added recognizers in the data path: as Presidio asks them, with its context words and scores, within bounds.

A security boundary: whatever goes wrong becomes `DetectionFailed`, and the text is withheld. One that hangs is ended
with its reader.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import presidio_analyzer  # noqa: F401 - by its own name first, as threads need it
from presidio_analyzer import AnalyzerEngine, EntityRecognizer, RecognizerRegistry, RecognizerResult
from presidio_analyzer.context_aware_enhancers import LemmaContextAwareEnhancer
from presidio_analyzer.nlp_engine import NlpArtifacts, NlpEngine

from ..findings import DetectionFailed, Finding
from .bounds import ExpressionTooSlow, own_name

_LANGUAGE = "en"  # of the artifacts: words alone, in any language
_BLOCK_CHARS, _SEAM_CHARS, _LONGEST_WORD = 4_096, 1_024, 64
_SURROGATES = dict.fromkeys(range(55296, 57344), "�")


@dataclass(slots=True)
class _AtWork:
    """Which recognizer is at work."""

    name: str = ""


class AddedRecognizers:
    """Asks the recognizers that the operator added."""

    def __init__(self, engine: AnalyzerEngine, recognizers: Sequence[EntityRecognizer]) -> None:
        self._engine = engine
        self._recognizers = recognizers

    def find(self, text: str) -> Iterator[Finding]:
        """Yield what they find, block by block, each found once or twice. Raises `DetectionFailed`."""
        clean = text.translate(_SURROGATES) if not text.isascii() else text
        start = 0
        while True:
            end = _border(clean, start + _BLOCK_CHARS + _SEAM_CHARS)
            for found in self._bounded(clean[start:end]):
                yield Finding(found.start + start, found.end + start, found.type, found.score)
            if end >= len(clean):
                return
            start = _border(clean, start + _BLOCK_CHARS)

    def _bounded(self, block: str) -> list[Finding]:
        at_work = _AtWork()
        try:
            return self._analyzed(block, at_work)
        except ExpressionTooSlow as slow:
            raise _withheld(at_work.name, f"failed: {slow}") from None
        except Exception as error:
            # Not its message: that may hold what was looked at.
            raise _withheld(at_work.name, f"raised {type(error).__name__}") from error

    def _analyzed(self, block: str, progress: _AtWork) -> list[Finding]:
        artifacts = self._engine.nlp_engine.process_text(block, _LANGUAGE)
        results: list[tuple[EntityRecognizer, list[RecognizerResult]]] = []
        for recognizer in self._recognizers:
            progress.name = _name(recognizer)
            if not recognizer.is_loaded:
                recognizer.load()
                recognizer.is_loaded = True
            results.append((recognizer, _asked(recognizer, block, artifacts)))
        return [
            Finding(each.start, each.end, own_name(each.entity_type), each.score)
            for each in self._in_context(block, results, artifacts, progress)
            if 0 <= each.start < each.end <= len(block)
        ]

    def _in_context(
        self,
        block: str,
        results: Sequence[tuple[EntityRecognizer, list[RecognizerResult]]],
        artifacts: NlpArtifacts,
        progress: _AtWork,
    ) -> list[RecognizerResult]:
        """Raise scores as `AnalyzerEngine` does: each recognizer's own way first, then by context words."""
        if not any(found for _, found in results):
            return []
        enhanced: list[RecognizerResult] = []
        for recognizer, found in results:
            progress.name = _name(recognizer)
            others = [each for other, rest in results if other is not recognizer for each in rest]
            enhanced += recognizer.enhance_using_context(
                text=block,
                raw_recognizer_results=found,
                other_raw_recognizer_results=others,
                nlp_artifacts=artifacts,
                context=None,
            )
        raised: list[RecognizerResult] = self._engine.context_aware_enhancer.enhance_using_context(
            text=block, raw_results=enhanced, nlp_artifacts=artifacts, recognizers=list(self._recognizers), context=None
        )
        return raised


def added_recognizers(recognizers: Sequence[EntityRecognizer]) -> AddedRecognizers:
    """Return what asks recognizers as an engine of Presidio does that loads and downloads nothing."""
    # Presidio warns at each start of what is not a fault.
    logging.getLogger("presidio-analyzer").setLevel(logging.ERROR)
    languages = list(dict.fromkeys((_LANGUAGE, *(each.supported_language for each in recognizers))))
    registry = RecognizerRegistry(recognizers=list(recognizers), supported_languages=languages)
    engine = AnalyzerEngine(
        registry=registry,
        nlp_engine=WordsAlone(),
        supported_languages=languages,
        context_aware_enhancer=NearWords(),
    )
    return AddedRecognizers(engine, recognizers)


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


def _name(recognizer: EntityRecognizer) -> str:
    return str(recognizer.name)  # type: ignore[has-type]  # Presidio's modules import each other


def _asked(recognizer: EntityRecognizer, block: str, artifacts: NlpArtifacts) -> list[RecognizerResult]:
    found = recognizer.analyze(block, recognizer.supported_entities, artifacts) or []
    for each in found:
        each.recognition_metadata = {
            RecognizerResult.RECOGNIZER_NAME_KEY: _name(recognizer),
            RecognizerResult.RECOGNIZER_IDENTIFIER_KEY: recognizer.id,
            **(each.recognition_metadata or {}),
        }
    return found


def _border(text: str, at: int) -> int:
    """Return where the word that stands at a place begins, so that no word is cut; a very long one is."""
    if at >= len(text):
        return len(text)
    for place in range(at, at - _LONGEST_WORD, -1):
        if text[place - 1].isspace():
            return place
    return at


def _withheld(name: str, what: str) -> DetectionFailed:
    return DetectionFailed(
        f"The added recognizer {name} {what}, so the text is withheld. Correct it, or take it out of "
        "PRIVACY_RECOGNIZERS or uninstall its package."
    )
