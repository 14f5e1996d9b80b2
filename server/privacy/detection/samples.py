"""What is personal in the cells of one column and in the records of one log, many of them judged by a sample.

A security boundary. Of a column the heading is asked for each cell. Of what it says nothing, cells of one plain form,
such as numbers of six digits, dates or mail addresses, are judged by `CELLS_SAMPLED` of them: where all of these are
the same, nothing or wholly one type, so are the others. Every other cell is looked at as any text is.

Two records of a log are of one form where they are the same once every number, code, IP and mail address is taken out.
`RECORDS_SAMPLED` of a form are looked at. Where in all of these the same of what was taken out is personal, and nothing
else, so it is in the others. A record is a line with a time of day, and what follows without.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Generic, Protocol, TypeVar

from .findings import Finding, KeyedText, PiiType, TableFindings
from .keys import KEYS_OF_THINGS, LIKELY, FieldVerdict, KeyJudge, is_company, is_placeholder

CELLS_SAMPLED = 128
_COLUMNS_MAX = 500
_SEEN_MAX = 2_000
_SEEN_CHARS_MAX = 200
_BATCH = 500
_FORM = re.compile(
    r"(?P<number>-?\d{1,20})|(?P<decimal>-?\d{1,12}[.,]\d{1,8})"
    r"|(?P<moment>\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?)"
    r"|(?P<uuid>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
    r"|(?P<code>[A-Z]{1,6}[-_ ]?\d{1,12})"
    r"|(?P<mail>[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,5})"
    r"|(?P<phone>\+\d[\d ()/.-]{6,20})"
    r"|(?P<address>\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})"
)
_BY_LENGTH = frozenset({"number", "code"})
_NAME = re.compile(r"[A-Z][a-z]{1,20}(?:[ -][A-Z][a-z]{1,20}){1,3}")
"""A name as most are written; others are judged one by one."""


_T = TypeVar("_T")


class Looks(Protocol):
    """The detector that columns and logs are looked through with: see `detect.Detector`."""

    @property
    def is_plain(self) -> bool: ...  # noqa: D102
    def find_leaves(self, leaves: Sequence[KeyedText]) -> list[list[Finding]]: ...  # noqa: D102
    def keeps(self, kind: str, score: float, value: str) -> bool: ...  # noqa: D102
    def kept_of(self, kind: str, score: float, value: str) -> list[Finding]: ...  # noqa: D102


@dataclass(slots=True)
class _Form(Generic[_T]):
    """What came of cells or records of one form so far; None stands for what is not as in the others."""

    sampled: int
    outcomes: set[_T | None] = field(default_factory=set)
    count: int = 0

    @property
    def settled(self) -> _T | None:
        return next(iter(self.outcomes)) if self.count >= self.sampled and len(self.outcomes) == 1 else None

    def note(self, outcome: _T | None) -> None:
        self.outcomes.add(outcome)
        self.count += 1


_CellForm = _Form[str]
"""The type of what is personal as a whole, or `""` where nothing is."""


@dataclass(slots=True)
class _Column:
    """What is known of a column from the pieces before; `thing` is a column beside it that no person has."""

    thing: str | None = None
    forms: dict[tuple[str, int], _CellForm] = field(default_factory=dict)
    seen: dict[str, Sequence[Finding]] = field(default_factory=dict)
    names: list[FieldVerdict | None] = field(default_factory=list)


class ColumnFinder:
    """Looks through columns with a detector."""

    def __init__(self, detector: Looks) -> None:
        self._detector = detector
        self._column = lru_cache(_COLUMNS_MAX)(lambda _words, thing: _Column(thing))

    def find(self, path: tuple[str, ...], texts: Sequence[str], headings: Iterable[str] = ()) -> TableFindings:
        """Return what is personal in cells, which are different ones, below a path. Raises `DetectionFailed`.

        `headings` are those of all columns of the table: beside a price, a name is no person's.
        """
        thing = next((each for each in headings if each.lower() in KEYS_OF_THINGS), None)
        is_thing = thing is not None
        column = self._column(tuple(each for each in path if not each.isdecimal()), thing)
        judge = KeyJudge(path)
        found = TableFindings()
        rest: list[str] = []
        unjudged = self._names(judge, column, texts, found, is_thing=is_thing)
        for text in unjudged:
            verdict = judge(text) if text == text.strip() else None
            if verdict is None or not self._counts(verdict, text, is_thing=is_thing):
                rest.append(text)
            else:
                found.whole.setdefault(verdict.type.value, []).append(text)
        self._look_at(path, column, rest, found)
        return found

    def _names(
        self, judge: KeyJudge, column: _Column, texts: Sequence[str], found: TableFindings, *, is_thing: bool
    ) -> Sequence[str]:
        """Take out the cells that are names as most are written, where a sample of these were all people."""
        if len(column.names) < CELLS_SAMPLED:
            some = [text for text in texts if _NAME.fullmatch(text)][: CELLS_SAMPLED - len(column.names)]
            column.names += (judge(text) for text in some if not _is_odd_name(text))
        verdicts = set(column.names)
        verdict = next(iter(verdicts), None)
        if len(column.names) < CELLS_SAMPLED or len(verdicts) > 1 or verdict is None or verdict.type != PiiType.PERSON:
            return texts
        rest: list[str] = []
        people: list[str] = []
        for text in texts:
            if _NAME.fullmatch(text) and not _is_odd_name(text) and self._counts(verdict, text, is_thing=is_thing):
                people.append(text)
            else:
                rest.append(text)
        if people:
            found.whole.setdefault(str(PiiType.PERSON), []).extend(people)
        return rest

    def _look_at(self, path: tuple[str, ...], column: _Column, texts: Sequence[str], found: TableFindings) -> None:
        """Judge cells by those of their form that were looked at before, and look at the others."""
        waiting: list[tuple[str, _CellForm | None]] = []
        for text in texts:
            if not text or text.isspace():
                continue
            form = self._form_of(column, text)
            settled = None if form is None else form.settled
            seen = column.seen.get(text)
            if seen is not None:
                found.add(text, seen)
            elif settled is None:
                waiting.append((text, form))
                if len(waiting) >= _BATCH:
                    self._detect(path, column, waiting, found)
                    waiting = []
            elif settled:
                found.add(text, self._detector.kept_of(settled, 1.0, text))
        self._detect(path, column, waiting, found)

    def _form_of(self, column: _Column, text: str) -> _CellForm | None:
        match = _FORM.fullmatch(text)
        if match is None or not self._detector.is_plain:
            return None
        name = str(match.lastgroup)
        return column.forms.setdefault((name, len(text) if name in _BY_LENGTH else 0), _CellForm(CELLS_SAMPLED))

    def _detect(
        self,
        path: tuple[str, ...],
        column: _Column,
        waiting: Sequence[tuple[str, _CellForm | None]],
        found: TableFindings,
    ) -> None:
        if not waiting:
            return
        leaves = [KeyedText(path, text) for text, _form in waiting]
        if column.thing is not None:
            leaves.append(KeyedText((*path[:-1], column.thing), ""))
        for (text, form), findings in zip(waiting, self._detector.find_leaves(leaves), strict=False):
            found.add(text, findings)
            if form is not None:
                whole = len(findings) == 1 and findings[0].start == 0 and findings[0].end == len(text)
                form.note(str(findings[0].type) if whole else None if findings else "")
            if len(column.seen) < _SEEN_MAX and len(text) <= _SEEN_CHARS_MAX:
                column.seen[text] = tuple(findings)

    def _counts(self, verdict: FieldVerdict, text: str, *, is_thing: bool) -> bool:
        if is_thing and verdict.type == PiiType.PERSON and verdict.score == LIKELY:
            return False
        return self._detector.keeps(verdict.type.value, verdict.score, text)


def _is_odd_name(text: str) -> bool:
    return is_company(text) or is_placeholder(text)


LEAST_CHARS = 20_000
RECORDS_SAMPLED = 64
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


_RecordForm = _Form[_Marks]


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
        self._form = lru_cache(_FORMS_MAX)(lambda _bare: _RecordForm(RECORDS_SAMPLED))

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

    def _looked_at(self, records: Sequence[tuple[int, str, _RecordForm | None]]) -> Iterator[Finding]:
        """Look at records as at any text, and remember what came of their forms."""
        found = self._detector.find_leaves([KeyedText((), record) for _start, record, _form in records])
        for (start, record, form), findings in zip(records, found, strict=True):
            if form is not None:
                form.note(_marks(record, findings))
            yield from (Finding(start + each.start, start + each.end, each.type, each.score) for each in findings)


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
