"""The small data helpers that code finds without an import: summarise, filter, aggregate, format.

They save a model from writing the same ten lines each time, and its context from holding data it only wanted to glance
at. Bad input raises TypeError or ValueError that says what was expected.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TypeAlias, cast

Number: TypeAlias = int | float
Row: TypeAlias = Mapping[str, object]


def helpers() -> dict[str, object]:
    """Return the helpers by the name that code calls them by."""
    return {
        "summarize_list": summarize_list,
        "filter_by_field": filter_by_field,
        "aggregate_stats": aggregate_stats,
        "format_output": format_output,
    }


def summarize_list(data: Iterable[object], limit: int = 10) -> dict[str, object]:
    """Return `{"count": how many items there are, "sample": the first `limit` of them}`.

    Raises TypeError when `data` is not a list of items, ValueError when `limit` is negative.
    """
    items = _items(data, "summarize_list")
    _count(limit, "limit")
    return {"count": len(items), "sample": list(islice(items, limit))}


def filter_by_field(data: Iterable[object], field: str, value: object) -> list[object]:
    """Return the objects whose `field` equals `value`; one without the field is left out.

    Raises TypeError when an item is not an object.
    """
    rows = _rows(data, "filter_by_field")
    return [row for row in rows if field in row and row[field] == value]


def aggregate_stats(data: Iterable[object], numeric_fields: Sequence[str] | None = None) -> dict[str, Number]:
    """Return `count` and, per field, `<field>_sum`, `_avg`, `_min` and `_max` over the rows where it is a number.

    Without `numeric_fields` all fields count that hold a number in at least one row, in the order they first appear.
    A field without any number has no keys. Raises TypeError when a row is not an object or `numeric_fields` not a list.
    """
    rows = _rows(data, "aggregate_stats")
    if isinstance(numeric_fields, str):
        raise TypeError(f"numeric_fields is a list of names. Write numeric_fields=[{numeric_fields!r}].")
    wanted = None if numeric_fields is None else list(numeric_fields)
    numbers: dict[str, list[Number]] = {name: [] for name in wanted or ()}
    for row in rows:
        for name in row if wanted is None else wanted:
            number = row.get(name)
            if isinstance(number, int | float) and not isinstance(number, bool):
                numbers.setdefault(name, []).append(number)
    stats: dict[str, Number] = {"count": len(rows)}
    for name, values in numbers.items():
        if values:
            total = sum(values)
            stats[f"{name}_sum"] = total
            stats[f"{name}_avg"] = total / len(values)
            stats[f"{name}_min"] = min(values)
            stats[f"{name}_max"] = max(values)
    return stats


def format_output(data: object, max_chars: int = 5000) -> str:
    """Return `data` as text of at most about `max_chars` characters: a string as it is, else indented JSON.

    What JSON cannot hold is written as `str` writes it. When something is cut, a last line says how much. Raises
    ValueError when `max_chars` is negative.
    """
    _count(max_chars, "max_chars")
    text = data if isinstance(data, str) else _indented(data)
    if len(text) <= max_chars:
        return text
    return f"{text[:max_chars]}\n… ({len(text) - max_chars} of {len(text)} characters left out)"


def _indented(data: object) -> str:
    try:
        return json.dumps(data, indent=2, ensure_ascii=False, default=str)
    except (TypeError, ValueError):  # keys that are not strings, cycles
        return str(data)


def _items(data: Iterable[object], caller: str) -> list[object]:
    if isinstance(data, str | bytes | Mapping) or not isinstance(data, Iterable):
        raise TypeError(
            f"{caller} takes a list of items, not a {type(data).__name__}. Pass the list that is inside it."
        )
    return list(data)


def _rows(data: Iterable[object], caller: str) -> list[Row]:
    rows = _items(data, caller)
    for index, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise TypeError(
                f"{caller} takes a list of objects, but item {index} is a {type(row).__name__}. Pass a list of dicts."
            )
    return cast("list[Row]", rows)


def _count(value: object, name: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} is a whole number, not a {type(value).__name__}.")
    if value < 0:
        raise ValueError(f"{name} is {value}. Use 0 or more.")
