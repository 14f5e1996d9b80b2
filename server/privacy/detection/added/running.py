"""Added recognizers in the data path: as Presidio asks them, with its context words and scores, within bounds.

A security boundary: whatever goes wrong becomes `DetectionFailed`, and the text is withheld. They run in threads of
their own, since a thread that hangs cannot be ended: then each text is refused until it returns.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import presidio_analyzer  # noqa: F401 - by its own name first, as threads need it
from presidio_analyzer import AnalyzerEngine, EntityRecognizer, RecognizerResult
from presidio_analyzer.nlp_engine import NlpArtifacts

from ....daemon_threads import DaemonThreads
from ....host_work import account, checkpoint
from ..findings import DetectionFailed, Finding
from .bounds import ExpressionTooSlow, own_name

_LANGUAGE = "en"  # of the artifacts: words alone, in any language
_THREADS, _WAITING = 2, 1000
_SECONDS = 10.0
_BLOCK_CHARS, _SEAM_CHARS, _LONGEST_WORD = 4_096, 1_024, 64
_SURROGATES = dict.fromkeys(range(55296, 57344), "�")


@dataclass(slots=True)
class _AtWork:
    """Which recognizer is at work, and what the work has cost."""

    name: str = ""
    cpu_seconds: float = 0.0


class AddedRecognizers:
    """Asks the recognizers that the operator added. Safe to use from several threads, if they are."""

    def __init__(self, engine: AnalyzerEngine, recognizers: Sequence[EntityRecognizer]) -> None:
        self._engine = engine
        self._recognizers = recognizers
        self._threads = DaemonThreads(_THREADS, "added recognizers", _WAITING)
        self._hung: tuple[Future[list[Finding]], str] | None = None

    def find(self, text: str) -> Iterator[Finding]:
        """Yield what they find, block by block, each found once or twice. Raises `DetectionFailed`."""
        clean = text.translate(_SURROGATES) if not text.isascii() else text
        start = 0
        while True:
            checkpoint()
            end = _border(clean, start + _BLOCK_CHARS + _SEAM_CHARS)
            for found in self._in_time(clean[start:end]):
                yield Finding(found.start + start, found.end + start, found.type, found.score)
            if end >= len(clean):
                return
            start = _border(clean, start + _BLOCK_CHARS)

    def _in_time(self, block: str) -> list[Finding]:
        if self._hung is not None and not self._hung[0].done():
            raise _withheld(self._hung[1], "has not returned from an earlier text")
        progress = _AtWork()
        asked = self._threads.submit(self._analyzed, block, progress)
        try:
            found = asked.result(_SECONDS)
        except TimeoutError:
            if asked.done():
                raise _withheld(progress.name, "raised TimeoutError") from None
            asked.cancel()
            self._hung = (asked, progress.name)
            raise _withheld(progress.name, f"took more than {_SECONDS:g} seconds") from None
        except ExpressionTooSlow as slow:
            raise _withheld(progress.name, f"failed: {slow}") from None
        except Exception as error:
            # Not its message: that may hold what was looked at.
            raise _withheld(progress.name, f"raised {type(error).__name__}") from error
        if (payer := account()) is not None:
            payer.charge(progress.cpu_seconds)
        return found

    def _analyzed(self, block: str, progress: _AtWork) -> list[Finding]:
        began = time.thread_time()
        artifacts = self._engine.nlp_engine.process_text(block, _LANGUAGE)
        results: list[tuple[EntityRecognizer, list[RecognizerResult]]] = []
        for recognizer in self._recognizers:
            progress.name = _name(recognizer)
            if not recognizer.is_loaded:
                recognizer.load()
                recognizer.is_loaded = True
            results.append((recognizer, _asked(recognizer, block, artifacts)))
        found = [
            Finding(each.start, each.end, own_name(each.entity_type), each.score)
            for each in self._in_context(block, results, artifacts, progress)
            if 0 <= each.start < each.end <= len(block)
        ]
        progress.cpu_seconds = time.thread_time() - began
        return found

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
