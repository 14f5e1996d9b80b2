"""`PRIVACY_RECOGNIZERS`: recognizers from a file in the format of Presidio's registry.

The format: https://microsoft.github.io/presidio/analyzer/recognizer_registry_provider/. Presidio makes the recognizers.
What it would drop in silence is refused here: unknown keys, recognizers that need a language model. A deny list without
a score has 1, as `PatternRecognizer` says; Presidio's own reader gives it 0, and finds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import presidio_analyzer  # noqa: F401 - by its own name first, as threads need it
import regex
import yaml
from presidio_analyzer import EntityRecognizer
from presidio_analyzer.predefined_recognizers import SpacyRecognizer
from presidio_analyzer.recognizer_registry import RecognizerRegistryProvider
from pydantic import ValidationError

from .bounds import RecognizersInvalid, made_safe

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
    """A file, and a node of what it holds."""

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
        made_safe(each, shown)
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
    """Refuse expressions that are none, and unknown keys of patterns, with their lines."""
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
