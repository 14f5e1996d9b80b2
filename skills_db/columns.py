"""Column types that mean the same on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from .content import json_text
from .sql import DateTime, Dialect, Text, TypeDecorator


class UtcTime(TypeDecorator[datetime]):
    """A moment, given and taken with its time zone and kept in UTC to the microsecond."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Turn any zone into UTC; SQLite then keeps it without the zone."""
        if value is None:
            return None
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Give the moment its zone back."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if dialect.name == "sqlite" else value.astimezone(UTC)


class JsonText(TypeDecorator[object]):
    """JSON kept as ASCII text: ints of any size, NUL and lone surrogates come back exactly, on every database."""

    impl = Text()
    cache_ok = True

    def process_bind_param(self, value: object, dialect: Dialect) -> str:
        """Write the value; `None` is JSON's null."""
        del dialect
        return json_text(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> object:
        """Read the value."""
        del dialect
        return None if value is None else json.loads(value)
