"""What is personal in a long log: lines that differ in numbers, codes and mail addresses alone are judged by a sample.

A security boundary. Two records are of one form where they are the same once every number, code, IP and mail address is
taken out. `SAMPLE` records of a form are looked at as any text is. Where in all of these the same of what was taken out
is personal, and nothing else, so it is in the others. A record is a line with a time of day, and what follows without.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...lru import Lru
from .findings import Finding, Looks

LEAST_CHARS = 20_000
SAMPLE = 64
_FORMS_MAX = 5_000
_FORM_CHARS_MAX = 2_000
_BATCH_CHARS = 40_000
_LOOKED_AT = 50
_SHARE = 0.8
_TIME = re.compile(r".{0,60}?\d\d:\d\d:\d\d")
_MAIL = r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,5}"
_CODE = r"(?<![A-Za-z0-9])(?=[a-f]{0,40}\d)(?=\d{0,40}[a-f])[0-9a-f]{8,64}(?![A-Za-z0-9])"
_IP = r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])"
_TAKEN_OUT = re.compile(rf"{_MAIL}|{_IP}|{_CODE}|\d+")
_STEPS = (
    (re.compile(_MAIL), "\x01"),
    (re.compile(_IP), "\x02"),
    (re.compile(_CODE), "\x06"),
    (re.compile(r"\d{13,}"), "\x03"),
    (re.compile(r"\d{10,12}"), "\x04"),
    (re.compile(r"\d{7,9}"), "\x05"),
    (re.compile(r"\d+"), "0"),
)
_Marks = tuple[tuple[int, str], ...]
"""Which of what was taken out is personal, by its number, and its type."""


@dataclass(slots=True)
class _RecordForm:
    """What came of the records of one form so far; None stands for what is not as in the others."""

    outcomes: set[_Marks | None] = field(default_factory=set)
    count: int = 0

    @property
    def settled(self) -> _Marks | None:
        """What is personal in all further records of the form."""
        return next(iter(self.outcomes)) if self.count >= SAMPLE and len(self.outcomes) == 1 else None


def is_log(text: str) -> bool:
    """Return whether a text is a long log."""
    if len(text) < LEAST_CHARS:
        return False
    some = [line for line in text[:LEAST_CHARS].split("\n")[:_LOOKED_AT] if line]
    return len(some) > 1 and sum(_TIME.match(line) is not None for line in some) >= _SHARE * len(some)


class LogFinder:
    """Looks through long logs with a detector."""

    def __init__(self, detector: Looks) -> None:
        self._detector = detector
        self._forms: Lru[str, _RecordForm] = Lru(_FORMS_MAX)

    def find(self, text: str) -> list[Finding]:
        """Return what is personal, in order. Raises `DetectionFailed`."""
        found: list[Finding] = []
        waiting: list[tuple[int, str, _RecordForm | None]] = []
        chars = 0
        for start, record, form in self._records(text):
            settled = None if form is None else form.settled
            if settled is None:
                waiting.append((start, record, form))
                chars += len(record) + 1
                if chars >= _BATCH_CHARS:
                    found += self._looked_at(waiting)
                    waiting, chars = [], 0
            elif settled:
                places = [match.span() for match in _TAKEN_OUT.finditer(record)]
                for number, kind in settled:
                    low, high = places[number]
                    found += (
                        Finding(start + low + each.start, start + low + each.end, kind, 1.0)
                        for each in self._detector.kept_of(kind, 1.0, record[low:high])
                    )
        found += self._looked_at(waiting)
        return sorted(found)

    def _records(self, text: str) -> Iterator[tuple[int, str, _RecordForm | None]]:
        """Give where each record begins, the record, and its form unless it is very long."""
        bare = text
        for taken_out, mark in _STEPS:
            bare = taken_out.sub(mark, bare)
        lines, forms = text.split("\n"), bare.split("\n")
        at = first = start = 0
        for number, line in enumerate(lines):
            if number > first and _TIME.match(line):
                yield self._record(start, lines[first:number], forms[first:number])
                first, start = number, at
            at += len(line) + 1
        yield self._record(start, lines[first:], forms[first:])

    def _record(self, start: int, lines: Sequence[str], forms: Sequence[str]) -> tuple[int, str, _RecordForm | None]:
        key = "\n".join(forms)
        return start, "\n".join(lines), self._form(key) if len(key) <= _FORM_CHARS_MAX else None

    def _form(self, key: str) -> _RecordForm:
        form = self._forms.used(key)
        if form is None:
            form = self._forms[key] = _RecordForm()
        return form

    def _looked_at(self, records: Sequence[tuple[int, str, _RecordForm | None]]) -> Iterator[Finding]:
        """Look at records as at any text, and remember what came of their forms."""
        findings = self._detector.find("\n".join(record for _start, record, _form in records)) if records else []
        at = index = 0
        for start, record, form in records:
            mine: list[Finding] = []
            while index < len(findings) and findings[index].start < at + len(record):
                each = findings[index]
                mine.append(Finding(each.start - at, min(each.end - at, len(record)), each.type, each.score))
                index += 1
            at += len(record) + 1
            if form is not None:
                form.outcomes.add(_marks(record, mine))
                form.count += 1
            yield from (Finding(start + each.start, start + each.end, each.type, each.score) for each in mine)


def _marks(record: str, findings: Sequence[Finding]) -> _Marks | None:
    """Return which of what is taken out of a record was found; None where something else was."""
    if not findings:
        return ()
    places = {match.span(): number for number, match in enumerate(_TAKEN_OUT.finditer(record))}
    marks: list[tuple[int, str]] = []
    for each in findings:
        number = places.get((each.start, each.end))
        if number is None:
            return None
        marks.append((number, str(each.type)))
    return tuple(marks)
