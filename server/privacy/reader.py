"""What a reader runs for privacy, and what crosses to and from it: see `sandbox.host.readers`.

Down go texts as JSON, up come findings. Of a column the answer names cells by their number, so no text comes back. Of a
file, whose descriptor the reader has, all texts come up. What detects is imported in readers alone: the server has the
names and options of this module, and no recognizer.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from ...sandbox.job import Json
from .detection.findings import Finding, KeyedText
from .reading.encodings import text_of_any
from .reading.file_texts import texts_of

if TYPE_CHECKING:
    from .detection.detect import Detector

SHOWN, LEARNED = "shown", "learned"
"""The names of the two detectors: of what is shown to the model, and of what is only learned."""
LEAVES, COLUMN, TEXTS, ALL_TEXTS, ANY_TEXT = "leaves", "column", "texts", "all texts", "any text"


def readers(options: Json) -> Mapping[str, Callable[..., object]]:
    """Return what a reader runs, everything loaded: each function of each detector.

    `options` are those of a detector, with a `file` of added recognizers or None, as `Detectors` gives them.
    Raises `DetectionFailed` where added recognizers cannot be used.
    """
    from .detection.detect import Detector, DetectorOptions, Mode, added_recognizers

    given = dict(cast("Mapping[str, Any]", options))
    file = given.pop("file")
    added = added_recognizers(None if file is None else Path(file))
    mode, types = Mode(given.pop("mode")), frozenset(given.pop("types"))
    made = DetectorOptions(mode=mode, types=types, recognizers=added, **given)
    functions: dict[str, Callable[..., object]] = {
        TEXTS: _texts,
        ALL_TEXTS: partial(_texts, complete=True),
        ANY_TEXT: _any_text,
    }
    for name, detector in ((SHOWN, Detector(made)), (LEARNED, Detector(replace(made, mode=Mode.FAST)))):
        detector.warm()
        functions |= {f"{name} {what}": _answering(answer, detector) for what, answer in _ANSWERS.items()}
    return functions


def _answering(answer: Callable[[Detector, Any], Json], detector: Detector) -> Callable[[bytes], bytes]:
    return lambda data: json.dumps(answer(detector, json.loads(data))).encode()


def _leaves(detector: Detector, asked: Sequence[tuple[Sequence[str], str]]) -> Json:
    leaves = [KeyedText(tuple(path), text) for path, text in asked]
    return [_written(found) for found in detector.find_leaves(leaves)]


def _column(detector: Detector, asked: tuple[Sequence[str], Sequence[str], Sequence[str]]) -> Json:
    path, texts, headings = asked
    found = detector.find_column(tuple(path), texts, headings)
    numbers = {text: number for number, text in enumerate(texts)}
    whole = {kind: [numbers[text] for text in some] for kind, some in found.whole.items()}
    return [whole, [[numbers[text], _written(findings)] for text, findings in found.within.items()]]


def _any_text(data: bytes) -> bytes:
    return json.dumps(text_of_any(data)).encode()


def _texts(file: BinaryIO, _data: bytes, *, complete: bool = False) -> Iterator[bytes]:
    for text in texts_of(file, os.fstat(file.fileno()).st_size, complete=complete):
        yield json.dumps(text).encode()


def _written(findings: Sequence[Finding]) -> list[Json]:
    return [[each.start, each.end, str(each.type), each.score] for each in findings]


_ANSWERS: Mapping[str, Callable[[Detector, Any], Json]] = {LEAVES: _leaves, COLUMN: _column}
