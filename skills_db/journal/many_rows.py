"""Inserts many rows in few statements: PostgreSQL takes each row that is sent alone as a statement of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from ..sql import sa

_SIZES = (64, 16, 4, 2, 1)
"""Rows in one statement: few sizes, so that each statement is made, and planned, once."""
_VALUES = re.compile(r"VALUES \((?P<row>[^()]*)\)")
_PARAMETER = re.compile(r":(\w+)")


def insert_many(connection: sa.Connection, statement: sa.TextClause, rows: Sequence[Mapping[str, object]]) -> None:
    """Insert rows, if there are any, by a statement with `VALUES (:name, …)`, which stands for one row."""
    if not rows:
        return
    if connection.dialect.name != "postgresql":  # where a statement costs no message
        connection.execute(statement, list(rows))
        return
    for part in _parts(rows):
        told = {f"{name}_{at}": value for at, row in enumerate(part) for name, value in row.items()}
        connection.execute(_of_many(statement.text, len(part)), told)


def _parts(rows: Sequence[Mapping[str, object]]) -> Iterator[Sequence[Mapping[str, object]]]:
    at = 0
    while at < len(rows):
        size = next(each for each in _SIZES if each <= len(rows) - at)
        yield rows[at : at + size]
        at += size


@lru_cache(maxsize=64)
def _of_many(text: str, count: int) -> sa.TextClause:
    """Return the statement for so many rows."""
    found = _VALUES.search(text)
    assert found is not None, text
    rows = (_PARAMETER.sub(rf":\g<1>_{at}", found["row"]) for at in range(count))
    return sa.text(f"{text[: found.start()]}VALUES {', '.join(f'({row})' for row in rows)}{text[found.end() :]}")
