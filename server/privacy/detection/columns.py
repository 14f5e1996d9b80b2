"""What is personal in the cells of one column: by its heading, by a sample of its cells, and else cell by cell.

A security boundary. What the heading says is asked for each cell. Of what it says nothing, cells of one plain form,
such as numbers of six digits, dates or mail addresses, are judged by `SAMPLE` of them: where all of these are the same,
nothing or wholly one type, so are the others. Every other cell is looked at as any text is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ...lru import Lru
from .fields.judging import KEYS_OF_THINGS, KeyJudge
from .fields.name_keys import is_company, is_placeholder
from .fields.rules import LIKELY, FieldVerdict
from .findings import Finding, Found, KeyedText, Looks, PiiType

SAMPLE = 128
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


@dataclass(slots=True)
class _CellForm:
    """What came of the cells of one form so far: each time the type, `""` for nothing, or None for something else."""

    outcomes: set[str | None] = field(default_factory=set)
    count: int = 0

    @property
    def settled(self) -> str | None:
        """What all further cells of the form are."""
        return next(iter(self.outcomes)) if self.count >= SAMPLE and len(self.outcomes) == 1 else None


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
        self._columns: Lru[tuple[tuple[str, ...], str | None], _Column] = Lru(_COLUMNS_MAX)

    def find(self, path: tuple[str, ...], texts: Sequence[str], headings: Iterable[str] = ()) -> Found:
        """Return what is personal in cells, which are different ones, below a path. Raises `DetectionFailed`.

        `headings` are those of all columns of the table: beside a price, a name is no person's.
        """
        thing = next((each for each in headings if each.lower() in KEYS_OF_THINGS), None)
        is_thing = thing is not None
        column = self._column(path, thing)
        judge = KeyJudge(path)
        found = Found()
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
        self, judge: KeyJudge, column: _Column, texts: Sequence[str], found: Found, *, is_thing: bool
    ) -> Sequence[str]:
        """Take out the cells that are names as most are written, where a sample of these were all people."""
        if len(column.names) < SAMPLE:
            some = [text for text in texts if _NAME.fullmatch(text)][: SAMPLE - len(column.names)]
            column.names += (judge(text) for text in some if not _is_odd_name(text))
        verdicts = set(column.names)
        verdict = next(iter(verdicts), None)
        if len(column.names) < SAMPLE or len(verdicts) > 1 or verdict is None or verdict.type != PiiType.PERSON:
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

    def _look_at(self, path: tuple[str, ...], column: _Column, texts: Sequence[str], found: Found) -> None:
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
        return column.forms.setdefault((name, len(text) if name in _BY_LENGTH else 0), _CellForm())

    def _detect(
        self, path: tuple[str, ...], column: _Column, waiting: Sequence[tuple[str, _CellForm | None]], found: Found
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
                form.outcomes.add(str(findings[0].type) if whole else None if findings else "")
                form.count += 1
            if len(column.seen) < _SEEN_MAX and len(text) <= _SEEN_CHARS_MAX:
                column.seen[text] = tuple(findings)

    def _counts(self, verdict: FieldVerdict, text: str, *, is_thing: bool) -> bool:
        if is_thing and verdict.type == PiiType.PERSON and verdict.score == LIKELY:
            return False
        return self._detector.keeps(verdict.type.value, verdict.score, text)

    def _column(self, path: tuple[str, ...], thing: str | None) -> _Column:
        key = (tuple(each for each in path if not each.isdecimal()), thing)
        column = self._columns.used(key)
        if column is None:
            column = self._columns[key] = _Column(thing)
        return column


def _is_odd_name(text: str) -> bool:
    return is_company(text) or is_placeholder(text)
