"""Security boundary: a worker's report of its run, judged value by value: taken only in its exact form.

A judge returns what a value means, or raises `FrameError`.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final, TypeAlias, TypeVar

from ..errors import FrameError
from ..job import Column, Failure, Json, Outcome, Refusal, SessionVariable, Status, Table

TABLES_MAX: Final = 20
"""Tables that a report describes."""
COLUMNS_MAX: Final = 100
"""Columns of one table that are named."""
HELD_MAX: Final = 20
"""Variables of a session that are named, the largest first."""
DISPLAYED_MAX: Final = 50
"""Values that a run displays."""
FIGURES_MAX: Final = 10
FIGURE_BYTES_MAX: Final = 2 * 1024 * 1024
FIGURE_PIXELS_MAX: Final = 2000
"""The most that a figure is wide or high."""
CAPTION_CHARS_MAX: Final = 2_000
NAME_CHARS_MAX: Final = 200
TEXT_CHARS_MAX: Final = 1_000
SAID_CHARS_MAX: Final = 256 * 1024
"""The most of a message, a note, a hint or a traceback."""
NOTES_MAX: Final = 1000

_TYPE_CHARS_MAX: Final = 256
_MODULES_MAX: Final = 50
_DIMENSIONS_MAX: Final = 64
_COUNT_MAX: Final = 1 << 63
_LINE_MAX: Final = 1 << 31
_PNG_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
_PNG: Final = struct.Struct(f">{len(_PNG_SIGNATURE)}sII")
_REPORTABLE = frozenset({Status.OK, Status.ERROR, Status.REFUSED, Status.MEMORY})
"""What a child may say of itself; time-outs, crashes and cancellations only the parent can see."""
_T = TypeVar("_T")
JudgeFrame: TypeAlias = Callable[[Json], _T]


def fields(made: Callable[..., _T], may: AbstractSet[str] = frozenset(), **judges: JudgeFrame[Any]) -> JudgeFrame[_T]:
    """Return a judge of objects with exactly these keys, of which those that they `may` have can be missing or null."""

    def judge(value: Json) -> _T:
        if not isinstance(value, dict) or value.keys() - may != judges.keys() - may or value.keys() - judges.keys():
            raise FrameError(f"A frame's object does not have exactly the keys {', '.join(sorted(judges))}.")
        given = {name: each for name, each in value.items() if each is not None or name not in may}
        return made(**{name: judges[name](each) for name, each in given.items()})

    return judge


def many(most: int, judge: JudgeFrame[_T]) -> JudgeFrame[tuple[_T, ...]]:
    """Return a judge of lists of at most so many values, each judged."""

    def judge_all(value: Json) -> tuple[_T, ...]:
        if not isinstance(value, list) or len(value) > most:
            raise FrameError(f"A frame has no list of at most {most} values where one should be.")
        return tuple(judge(each) for each in value)

    return judge_all


def text(most: int) -> JudgeFrame[str]:
    """Return a judge of texts of at most so many characters."""

    def judge(value: Json) -> str:
        if not isinstance(value, str) or len(value) > most:
            raise FrameError(f"A frame has no text of at most {most} characters where one should be.")
        return value

    return judge


def number(most: int) -> JudgeFrame[int]:
    """Return a judge of whole numbers from 0 up, below `most`."""

    def judge(value: Json) -> int:
        if type(value) is not int or not 0 <= value < most:
            raise FrameError("A frame has no number where one should be.")
        return value

    return judge


def or_none(judge: JudgeFrame[_T]) -> JudgeFrame[_T | None]:
    """Return a judge that takes null too."""
    return lambda value: None if value is None else judge(value)


def data(bytes_max: int) -> JudgeFrame[bytes]:
    """Return a judge of base64 of at most so many bytes, about."""
    is_text = text(bytes_max * 4 // 3 + 4)

    def judge(value: Json) -> bytes:
        try:
            return base64.b64decode(is_text(value), validate=True)
        except ValueError:
            raise FrameError("A frame has no base64 where it should be.") from None

    return judge


def anything(value: Json) -> Json:
    """Take whatever JSON it is."""
    return value


def _is_true(value: Json) -> bool:
    return value is True


def _status(value: Json) -> Status:
    if not isinstance(value, str) or value not in _REPORTABLE:
        raise FrameError("A report has no status that a child may give.")
    return Status(value)


def _notes(value: Json) -> Mapping[str, str]:
    if not isinstance(value, dict) or len(value) > NOTES_MAX:
        raise FrameError("A report's notes are not a small object.")
    judge = text(SAID_CHARS_MAX)
    return {judge(where): judge(note) for where, note in value.items()}


def _figure(value: Json) -> bytes:
    """Read one figure: base64 of what at least begins as a PNG does (RFC 2083, section 12.12) and has a sane size."""
    image = data(FIGURE_BYTES_MAX)(value)
    if len(image) < _PNG.size:
        raise FrameError("A report's figure is not a PNG.")
    signature, width, height = _PNG.unpack_from(image)
    if signature != _PNG_SIGNATURE or not 0 < width <= FIGURE_PIXELS_MAX or not 0 < height <= FIGURE_PIXELS_MAX:
        raise FrameError("A report's figure is not a PNG of the size allowed.")
    return image


_NAME, _TEXT, _SAID, _COUNT = text(NAME_CHARS_MAX), text(TEXT_CHARS_MAX), text(SAID_CHARS_MAX), number(_COUNT_MAX)
_COLUMN = fields(Column, name=_NAME, dtype=_NAME, nulls=or_none(_COUNT), is_index=_is_true)
_TABLE = fields(
    Table,
    place=_TEXT,
    kind=_NAME,
    shape=many(_DIMENSIONS_MAX, _COUNT),
    columns=many(COLUMNS_MAX, _COLUMN),
    columns_left_out=_COUNT,
    shown=_COUNT,
    file=or_none(_TEXT),
    read_with=or_none(_TEXT),
    why_not_kept=or_none(_TEXT),
)
_FAILURE = fields(
    Failure,
    type=text(_TYPE_CHARS_MAX),
    message=_SAID,
    line=or_none(number(_LINE_MAX)),
    hint=or_none(_SAID),
    traceback=or_none(_SAID),
)
_MODULE = text(_TYPE_CHARS_MAX)
_OUTCOME = fields(
    Outcome,
    may=frozenset({"refusal", "figures", "diverged", "captions", "tables", "displayed", "held", "compile_us"}),
    status=_status,
    result=anything,
    error=or_none(_FAILURE),
    notes=_notes,
    refusal=fields(Refusal, module=or_none(_MODULE), modules=many(_MODULES_MAX, _MODULE)),
    figures=many(FIGURES_MAX, _figure),
    diverged=_is_true,
    captions=many(FIGURES_MAX, text(CAPTION_CHARS_MAX)),
    tables=many(TABLES_MAX, _TABLE),
    displayed=lambda value: list(many(DISPLAYED_MAX, anything)(value)) or None,
    held=many(HELD_MAX, fields(SessionVariable, name=_NAME, kind=_NAME, bytes=_COUNT, extent=_NAME)),
    compile_us=_COUNT,
)


def outcome_of(report: Json) -> Outcome:
    """Read what a worker says of its run. Raises `FrameError` for anything but the exact form."""
    outcome = _OUTCOME(report)
    if outcome.captions and len(outcome.captions) != len(outcome.figures):
        raise FrameError("A report does not have one caption for each figure.")
    return outcome
