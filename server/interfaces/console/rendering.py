"""Pages from templates: every text is escaped, whatever is in it, and nothing on a page can run.

A security boundary. What is shown was written by programs, models and servers that nobody vouches for. Jinja escapes
each value; control characters are shown as such before. Nothing here marks a value as safe.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple, cast

import jinja2

from ....sandbox.job import Json
from ...base.terminal_escaping import visible

ROWS_MAX = 200
"""Rows of a result that are shown as a table; all of it is in the JSON."""
_COLUMNS_MAX = 20
_BARS_MAX = 40
"""Numbers that are shown as bars; more of them are a table alone."""
_MOST = 1e300
WIDTH = 640
"""Units across the picture of a timeline."""
_LANE = 22


class Bar(NamedTuple):
    """One call in the picture of a timeline."""

    n: int
    x: float
    y: int
    width: float
    ok: bool
    label: str


class Timeline(NamedTuple):
    """The calls of a run as bars; those at the same time lie below each other."""

    bars: tuple[Bar, ...]
    width: int
    height: int
    ms: float


class Column(NamedTuple):
    """One number of a result in its picture; `y` is its upper edge, `x` and `width` where its bar is."""

    label: str
    value: float
    x: float
    y: int
    width: float


class Chart(NamedTuple):
    """The numbers of a result as bars below each other, of what they are called."""

    name: str
    bars: tuple[Column, ...]
    width: int
    height: int


class ResultTable(NamedTuple):
    """A result as rows."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Json, ...], ...]
    total: int


def timeline(run: Mapping[str, Json]) -> Timeline | None:
    """Return the calls of a run as bars, None where there are none."""
    calls = cast("Sequence[Mapping[str, Json]]", run.get("calls") or ())
    if not calls:
        return None
    timed = [(cast("float", each["at_ms"] or 0), cast("float", each["ms"] or 0), each) for each in calls]
    whole = max(cast("float", run.get("ms") or 0), *(at + ms for at, ms, _ in timed), 1.0)
    ends: list[float] = []
    bars = []
    for at, ms, each in sorted(timed, key=lambda one: one[0]):
        lane = next((number for number, end in enumerate(ends) if end <= at), len(ends))
        ends[lane : lane + 1] = [at + ms]
        width = max(2.0, ms / whole * WIDTH)
        is_ok = "answer" in each
        label = f"{each['n']}. {each['call']}: at {at:g} ms, {ms:g} ms{'' if is_ok else ', failed'}"
        bars.append(Bar(cast("int", each["n"]), min(at / whole * WIDTH, WIDTH - 2), lane * _LANE, width, is_ok, label))
    return Timeline(tuple(bars), WIDTH, len(ends) * _LANE, whole)


def table(value: Json) -> ResultTable | None:
    """Return a list of objects as rows, None for any other value."""
    if not isinstance(value, list) or not value or not all(isinstance(each, dict) for each in value):
        return None
    rows = cast("list[dict[str, Json]]", value)
    columns = tuple(dict.fromkeys(name for row in rows for name in row))
    if len(columns) > _COLUMNS_MAX:
        return None
    shown = tuple(tuple(row.get(name) for name in columns) for row in rows[:ROWS_MAX])
    return ResultTable(columns, shown, len(rows))


def chart(value: Json) -> Chart | None:
    """Return the numbers of an object, or of a list of objects the first that each has, as bars; else None."""
    name, pairs = "", list(value.items()) if isinstance(value, dict) else []
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        rows = cast("list[dict[str, Json]]", value[: _BARS_MAX + 1])
        labels = next((key for key, each in rows[0].items() if isinstance(each, str)), None)
        name = next((key for key in rows[0] if all(_is_number(row.get(key)) for row in rows)), "")
        pairs = [] if labels is None or not name else [(str(row.get(labels)), row[name]) for row in rows]
    if not 1 < len(pairs) <= _BARS_MAX or not all(_is_number(each) for _, each in pairs):
        return None
    numbers = [(label, float(cast("float", each))) for label, each in pairs]
    low, high = min(0.0, *(each for _, each in numbers)), max(0.0, *(each for _, each in numbers))
    scale = WIDTH / ((high - low) or 1.0)
    bars = tuple(
        Column(label, each, (min(each, 0.0) - low) * scale, number * _LANE * 2, max(2.0, abs(each) * scale))
        for number, (label, each) in enumerate(numbers)
    )
    return Chart(name, bars, WIDTH, len(bars) * _LANE * 2)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MOST


def text(value: object) -> str:
    """Return any value as text: JSON of what is JSON, control characters shown."""
    is_json = value is None or isinstance(value, bool | int | float | list | tuple | dict)
    return visible(json.dumps(value, ensure_ascii=False, indent=2, default=str) if is_json else str(value))


def rendered(template: str, **values: object) -> str:
    """Return a page."""
    return _environment().get_template(template).render(values)


def stylesheet() -> str:
    """Return the one style sheet."""
    return _source("console.css")


def _shown(value: object) -> object:
    """Make control characters visible in whatever a template puts out; what Jinja made itself is left."""
    return value if hasattr(value, "__html__") else "" if value is None else text(value)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__),
        autoescape=True,
        undefined=jinja2.ChainableUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"text": text}
    environment.globals |= {"timeline": timeline, "table": table, "chart": chart}
    return environment


@cache
def _source(name: str) -> str:
    environment = _environment()
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]
