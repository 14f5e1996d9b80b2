"""Recognizers of Presidio that the operator adds to ours, by a file in its format or by installed packages.

A security boundary: whatever goes wrong becomes `DetectionFailed`, and the text is withheld. Presidio skips an
expression that takes too long, and shows what it did not look at. Here such a recognizer fails, and with it the text.
One that hangs is ended with its reader. Nothing is fetched.

The format of `PRIVACY_RECOGNIZERS`: https://microsoft.github.io/presidio/analyzer/recognizer_registry_provider/.
Presidio makes the recognizers. What it would drop in silence is refused here: unknown keys, recognizers that need a
language model. A deny list without a score has 1, as `PatternRecognizer` says; Presidio's own reader gives it 0, and
finds nothing.

Packages have entry points of the group `sealab.recognizers`. Each is a class or a function without parameters that
gives a `presidio_analyzer.EntityRecognizer` or a list of them, or such an object itself.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, NamedTuple

import presidio_analyzer  # noqa: F401 - by its own name first, as threads need it
import regex
import yaml
from presidio_analyzer import AnalyzerEngine, EntityRecognizer, PatternRecognizer, RecognizerRegistry, RecognizerResult
from presidio_analyzer.context_aware_enhancers import LemmaContextAwareEnhancer
from presidio_analyzer.nlp_engine import NlpArtifacts, NlpEngine
from presidio_analyzer.predefined_recognizers import EmailRecognizer, SpacyRecognizer
from presidio_analyzer.recognizer_registry import RecognizerRegistryProvider
from pydantic import ValidationError

from .findings import TYPE_NAME, DetectionFailed, Finding, PiiType

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


class _ExpressionTooSlow(Exception):
    """A regular expression of an added recognizer took too long."""


def own_name(entity: str) -> str:
    """Return what sealab calls one of Presidio's entities."""
    return _OWN_NAMES.get(entity, entity)


def _made_safe(recognizer: EntityRecognizer, shown: str) -> None:
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
        """Yield matches. Raises `_ExpressionTooSlow`: Presidio would go on after a `TimeoutError`."""
        try:
            yield from self._compiled.finditer(text, timeout=_EXPRESSION_SECONDS)
        except TimeoutError:
            raise _ExpressionTooSlow(f"one of its expressions took more than {_EXPRESSION_SECONDS:g} seconds") from None


def _fetch_no_suffixes() -> None:
    """Make Presidio's recognizer of mail addresses use the list of suffixes that its package brings."""
    import tldextract.tldextract as domains

    domains.TLD_EXTRACTOR = domains.TLDExtract(suffix_list_urls=(), cache_dir=None)


_FILE_KEYS = ("supported_languages", "global_regex_flags", "recognizers")
_CUSTOM_KEYS = (
    *("name", "class_name", "type", "enabled", "supported_language", "supported_languages", "context", "version"),
    *("supported_entity", "supported_entities", "patterns", "deny_list", "deny_list_score"),
)
_PATTERN_KEYS = ("name", "regex", "score")
_FLAGS = regex.DOTALL | regex.MULTILINE | regex.IGNORECASE
_DEFAULT_LANGUAGES = ("en",)
_LONGEST_REASON = 300


class _Place(NamedTuple):
    path: Path
    node: yaml.Node

    def __str__(self) -> str:
        return f"{self.path}, line {self.node.start_mark.line + 1}"


def read_recognizers(path: Path) -> list[EntityRecognizer]:
    """Return the recognizers of a file that are enabled. Raises `RecognizersInvalid`, which names file and line."""
    root = _Place(path, _composed(path))
    top = _mapping(root, "the file")
    _refuse_unknown(root, _FILE_KEYS, "the file")
    if "recognizers" not in top or not isinstance(top["recognizers"], yaml.SequenceNode):
        raise RecognizersInvalid(f"{root}: there is no list `recognizers`. Write one, in the format of Presidio.")
    common = {key: _value(node) for key, node in top.items() if key != "recognizers"}
    recognizers = [
        recognizer
        for number, node in enumerate(top["recognizers"].value)
        for recognizer in _made(_Place(path, node), number, common)
    ]
    if not recognizers:
        raise RecognizersInvalid(f"{root}: no recognizer is enabled. Enable one, or leave PRIVACY_RECOGNIZERS out.")
    return recognizers


def _composed(path: Path) -> yaml.Node:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise RecognizersInvalid(
            f"The file of recognizers {path} cannot be read: {error.strerror}. Name another, or change its permissions."
        ) from None
    except UnicodeDecodeError as error:
        raise RecognizersInvalid(f"{path} is not UTF-8 text (byte {error.start}). Save it as UTF-8.") from None
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "it cannot be read"
        raise RecognizersInvalid(f"{path}{line}: this is not YAML: {problem}. Correct that line.") from None
    if node is None:
        raise RecognizersInvalid(f"{path} is empty. Write a list `recognizers` in it, in the format of Presidio.")
    return node


def _made(place: _Place, number: int, common: Mapping[str, Any]) -> Sequence[EntityRecognizer]:
    """Return what one entry of the list makes: a recognizer for each of its languages, or none if it is not enabled."""
    entry = _value(place.node)
    if isinstance(entry, str):
        entry = {"name": entry, "type": "predefined"}
    else:
        _mapping(place, f"recognizers[{number}]")
    shown = f"{place}: recognizers[{number}] ({str(entry.get('name', 'without a name'))[:60]})"
    if not entry.get("enabled", True):
        return ()
    if "patterns" in entry or "deny_list" in entry:
        _refuse_unknown(place, _CUSTOM_KEYS, shown)
        _judge_patterns(place, shown)
        if entry.get("deny_list") and entry.get("deny_list_score") is None:
            entry["deny_list_score"] = 1.0
    recognizers = _by_presidio(entry, common, shown)
    if not recognizers:
        raise RecognizersInvalid(f"{shown} makes no recognizer for {_languages(entry, common)}. Correct its languages.")
    for each in recognizers:
        if isinstance(each, SpacyRecognizer):
            raise RecognizersInvalid(
                f"{shown} needs a language model, and sealab runs none of spaCy's. Write `enabled: false` in it."
            )
        _made_safe(each, shown)
    return recognizers


def _by_presidio(entry: dict[str, Any], common: Mapping[str, Any], shown: str) -> list[EntityRecognizer]:
    configuration = {
        "supported_languages": _languages(entry, common),
        "global_regex_flags": common.get("global_regex_flags", int(_FLAGS)),
        "recognizers": [entry],
    }
    try:
        return list(
            RecognizerRegistryProvider(registry_configuration=configuration).create_recognizer_registry().recognizers
        )
    except Exception as error:  # noqa: BLE001 - a recognizer's own code may raise anything
        raise RecognizersInvalid(f"{shown} cannot be used: {_reason(error)}. Correct it.") from None


def _languages(entry: Mapping[str, Any], common: Mapping[str, Any]) -> list[str]:
    """Return the languages of an entry, else those of the file, else English; all are asked of every text."""
    if said := entry.get("supported_language"):
        return [str(said)]
    named = entry.get("supported_languages") or common.get("supported_languages") or _DEFAULT_LANGUAGES
    return [str(each.get("language")) if isinstance(each, dict) else str(each) for each in named]


def _judge_patterns(place: _Place, shown: str) -> None:
    patterns = _mapping(place, shown).get("patterns")
    for node in patterns.value if isinstance(patterns, yaml.SequenceNode) else ():
        pattern = _Place(place.path, node)
        _refuse_unknown(pattern, _PATTERN_KEYS, f"{shown}, a pattern")
        expression = _mapping(pattern, f"{shown}, a pattern").get("regex")
        if expression is None:
            continue
        try:
            regex.compile(str(_value(expression)))
        except regex.error as error:
            raise RecognizersInvalid(
                f"{_Place(place.path, expression)}: `regex` is not a regular expression: {error}. Correct it."
            ) from None


def _refuse_unknown(place: _Place, known: Sequence[str], shown: str) -> None:
    for key, node in _mapping(place, shown).items():
        if key not in known:
            raise RecognizersInvalid(
                f"{_Place(place.path, node)}: {key!r} is not a key of {shown.rpartition(': ')[2]}. "
                f"The keys are {', '.join(known)}."
            )


def _mapping(place: _Place, shown: str) -> dict[str, yaml.Node]:
    if not isinstance(place.node, yaml.MappingNode):
        raise RecognizersInvalid(f"{place}: {shown.rpartition(': ')[2]} is not a table of keys. Write it as one.")
    return {str(key.value): value for key, value in place.node.value}


def _value(node: yaml.Node) -> Any:  # what YAML holds; Presidio judges it
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _reason(error: Exception) -> str:
    cause = error.__cause__ if isinstance(error.__cause__, ValidationError) else error
    if isinstance(cause, ValidationError):
        first = cause.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if not isinstance(part, int))
        said = f"{where}: {first['msg']}" if where else str(first["msg"])
    else:
        said = f"{type(cause).__name__}: {cause}"
    return " ".join(said.split())[:_LONGEST_REASON].rstrip(".")


def installed_recognizers(group: str) -> list[EntityRecognizer]:
    """Return what entry points give, in the order of their names. Raises `RecognizersInvalid`, which names one."""
    points = sorted(entry_points(group=group), key=lambda point: point.name)
    return [recognizer for point in points for recognizer in _given(point)]


def _given(point: EntryPoint) -> list[EntityRecognizer]:
    shown = f"The entry point {point.name} ({point.value}) of {point.group}"
    try:
        loaded = point.load()
        given = loaded() if callable(loaded) and not isinstance(loaded, EntityRecognizer) else loaded
    except Exception as error:
        raise RecognizersInvalid(
            f"{shown} cannot be loaded: {type(error).__name__}: {error}. Correct or uninstall its package."
        ) from error
    recognizers = list(given) if isinstance(given, list | tuple) else [given]
    for each in recognizers:
        if not isinstance(each, EntityRecognizer):
            raise RecognizersInvalid(f"{shown} gives {type(each).__name__}. Have it give recognizers of Presidio.")
        _made_safe(each, shown)
    return recognizers


_LANGUAGE = "en"  # of the artifacts: words alone, in any language
_BLOCK_CHARS, _SEAM_CHARS, _LONGEST_WORD = 4_096, 1_024, 64
_SURROGATES = dict.fromkeys(range(55296, 57344), "�")


@dataclass(slots=True)
class _AtWork:
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
        except _ExpressionTooSlow as slow:
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
        nlp_engine=_WordsAlone(),
        supported_languages=languages,
        context_aware_enhancer=_NearWords(),
    )
    return AddedRecognizers(engine, recognizers)


class _WordsAlone(NlpEngine):
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
        return True

    def process_text(self, text: str, language: str) -> NlpArtifacts:
        words = self._tokenizer(text)
        lemmas = [word.text for word in words]
        return NlpArtifacts([], words, [word.idx for word in words], lemmas, self, language)

    def process_batch(
        self, texts: Iterable[str], language: str, batch_size: int = 1, n_process: int = 1, **_: object
    ) -> Iterator[tuple[str, NlpArtifacts]]:
        del batch_size, n_process
        for text in texts:
            yield text, self.process_text(text, language)

    def is_stopword(self, word: str, language: str) -> bool:
        del word, language
        return False

    def is_punct(self, word: str, language: str) -> bool:
        del language
        return not any(map(str.isalnum, word))

    def get_supported_entities(self) -> list[str]:
        return []

    def get_supported_languages(self) -> list[str]:
        return [_LANGUAGE]


class _NearWords(LemmaContextAwareEnhancer):
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
