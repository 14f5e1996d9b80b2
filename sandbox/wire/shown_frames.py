"""Security boundary: what a child says of its values beside its result, judged as `frames` judges the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from ..errors import FrameError
from ..job import Column, Held, Json, Table

TABLES_MAX: Final = 20
"""Tables that a report describes."""
COLUMNS_MAX: Final = 100
"""Columns of one table that are named."""
HELD_MAX: Final = 20
"""Variables of a session that are named, the largest first."""
DISPLAYED_MAX: Final = 50
"""Values that a run displays."""
CAPTION_CHARS_MAX: Final = 2_000
NAME_CHARS_MAX: Final = 200
TEXT_CHARS_MAX: Final = 1_000

_DIMENSIONS_MAX: Final = 64
_COUNT_MAX: Final = 1 << 63
_T = TypeVar("_T")


def tables_of(value: Json) -> tuple[Table, ...]:
    """Read the tables of a report. Raises `FrameError` for anything else."""
    return _each(value, TABLES_MAX, "tables", _table)


def held_of(value: Json) -> tuple[Held, ...]:
    """Read the variables that a session holds. Raises `FrameError` for anything else."""
    return _each(value, HELD_MAX, "variables", _held)


def captions_of(value: Json, figures: int) -> tuple[str, ...]:
    """Read what the figures show, one text each, or none at all. Raises `FrameError` for anything else."""
    told = _each(value, figures, "captions", lambda each: _text(each, CAPTION_CHARS_MAX))
    if told and len(told) != figures:
        raise FrameError("A done frame does not have one caption for each figure.")
    return told


def displayed_of(value: Json) -> Json:
    """Read the values that were displayed. Raises `FrameError` for more than `DISPLAYED_MAX` or for no list."""
    return list(_each(value, DISPLAYED_MAX, "displayed values", lambda each: each)) or None


def _each(value: Json, most: int, what: str, read: Callable[[Json], _T]) -> tuple[_T, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > most:
        raise FrameError(f"A done frame's {what} are not a list of at most {most}.")
    return tuple(read(each) for each in value)


def _table(value: Json) -> Table:
    told = _object(value, set(Table.__dataclass_fields__), "table")
    return Table(
        place=_text(told["place"], TEXT_CHARS_MAX),
        kind=_text(told["kind"], NAME_CHARS_MAX),
        shape=_each(told["shape"], _DIMENSIONS_MAX, "dimensions", _count),
        columns=_each(told["columns"], COLUMNS_MAX, "columns", _column),
        columns_left_out=_count(told["columns_left_out"]),
        shown=_count(told["shown"]),
        file=_text_or_none(told["file"]),
        read_with=_text_or_none(told["read_with"]),
        why_not_kept=_text_or_none(told["why_not_kept"]),
    )


def _column(value: Json) -> Column:
    told = _object(value, set(Column.__dataclass_fields__), "column")
    nulls = told["nulls"]
    return Column(
        name=_text(told["name"], NAME_CHARS_MAX),
        dtype=_text(told["dtype"], NAME_CHARS_MAX),
        nulls=None if nulls is None else _count(nulls),
        is_index=told["is_index"] is True,
    )


def _held(value: Json) -> Held:
    told = _object(value, set(Held.__dataclass_fields__), "variable")
    return Held(
        name=_text(told["name"], NAME_CHARS_MAX),
        kind=_text(told["kind"], NAME_CHARS_MAX),
        bytes=_count(told["bytes"]),
        extent=_text(told["extent"], NAME_CHARS_MAX),
    )


def _object(value: Json, keys: set[str], what: str) -> Mapping[str, Json]:
    if not isinstance(value, dict) or value.keys() != keys:
        raise FrameError(f"A done frame's {what} does not have exactly the keys {', '.join(sorted(keys))}.")
    return value


def _count(value: Json) -> int:
    if type(value) is not int or not 0 <= value < _COUNT_MAX:
        raise FrameError("A done frame has no number where a count should be.")
    return value


def _text(value: Json, chars_max: int) -> str:
    if not isinstance(value, str) or len(value) > chars_max:
        raise FrameError(f"A done frame has no text of at most {chars_max} characters where one should be.")
    return value


def _text_or_none(value: Json) -> str | None:
    return None if value is None else _text(value, TEXT_CHARS_MAX)
