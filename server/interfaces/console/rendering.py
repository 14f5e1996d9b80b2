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
    environment.globals |= {"timeline": timeline, "table": table}
    return environment


@cache
def _source(name: str) -> str:
    environment = _environment()
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]
