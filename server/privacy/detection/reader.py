"""What a reader runs to detect personal data, and what crosses to and from it: see `sandbox.host.readers`.

Down go texts as JSON, up come findings. Of a column the answer names cells by their number, so no text comes back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, cast

from ....sandbox.job import Json
from . import columns, log_lines  # noqa: F401 - a reader no longer finds modules of this package
from .detect import ENTRY_POINTS, Detector, DetectorOptions, Mode, added_recognizers
from .findings import Finding, KeyedText

SHOWN, LEARNED = "shown", "learned"
"""The names of the two detectors: of what is shown to the model, and of what is only learned."""
LEAVES, COLUMN, LOG = "leaves", "column", "log"


@dataclass(frozen=True, slots=True)
class ReaderOptions:
    """What the operator decides about detection, as it crosses to a reader; `file` has recognizers of the operator."""

    mode: str
    types: Sequence[str]
    threshold: float
    thresholds: Mapping[str, float]
    allow: Sequence[str]
    patterns: Mapping[str, str]
    file: str | None

    def to_json(self) -> Json:
        """Write it."""
        return cast("Json", asdict(self))

    def has_added(self) -> bool:
        """Return whether anything is looked for that is not always looked for."""
        return bool(self.patterns) or self.file is not None or bool(entry_points(group=ENTRY_POINTS))

    def made(self) -> DetectorOptions:
        """Return the options of a detector. Raises `DetectionFailed` where added recognizers cannot be used."""
        return DetectorOptions(
            mode=Mode(self.mode),
            types=frozenset(self.types),
            threshold=self.threshold,
            thresholds=self.thresholds,
            allow=self.allow,
            patterns=self.patterns,
            recognizers=added_recognizers(None if self.file is None else Path(self.file)),
        )


def readers(options: Json) -> Mapping[str, Callable[[bytes], bytes]]:
    """Return what a reader runs, everything loaded: each function of each detector."""
    made = ReaderOptions(**cast("Mapping[str, Any]", options)).made()
    functions: dict[str, Callable[[bytes], bytes]] = {}
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


def _log(detector: Detector, text: str) -> Json:
    return _written(detector.find_log(text))


def _written(findings: Sequence[Finding]) -> list[Json]:
    return [[each.start, each.end, str(each.type), each.score] for each in findings]


_ANSWERS: Mapping[str, Callable[[Detector, Any], Json]] = {LEAVES: _leaves, COLUMN: _column, LOG: _log}
