"""What the guest module `sqlite3` is made on: a database in memory, closed around the interpreter's own.

A security boundary. The real connection is never handed out, and it only knows `:memory:`: an authorizer refuses other
databases, extensions, virtual tables but full-text search, and what could make a database contradict itself. Text of
SQL and values are of exactly the types that SQLite has. While it calls a function of the code's own, it takes no call:
SQLite does not bear to be closed within its own step. So no class of the code derives from these, and no database is
made anew.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import chain
from typing import Any, cast

from ....guest.type_flags import final
from .sqlite_runs import Moment, keep_time, seed

__all__ = ["Database", "Results", "complete_statement", "sqlite_version"]

sqlite_version = sqlite3.sqlite_version
_PLAIN = frozenset({type(None), int, float, str, bytes})
_TUPLE = frozenset({tuple})
_Adapt = Callable[[object], object]
_PRAGMAS = frozenset(
    """
    table_info table_xinfo table_list index_list index_info index_xinfo foreign_key_list foreign_key_check foreign_keys
    user_version application_id integrity_check quick_check database_list collation_list function_list compile_options
    encoding page_count page_size freelist_count cache_size case_sensitive_like recursive_triggers synchronous
    journal_mode auto_vacuum busy_timeout optimize temp_store data_version max_page_count locking_mode
    reverse_unordered_selects automatic_index defer_foreign_keys full_column_names short_column_names
    """.split()  # noqa: SIM905 - a table of words
)
_REFUSED_FUNCTIONS = frozenset({"load_extension", "fts3_tokenizer", "edit", "readfile", "writefile"})
_SEARCH = frozenset({"fts3", "fts4", "fts5"})
_WAL = slice(18, 20)
"""Where a database's header says that it has a log of its own beside it (SQLite file format, 1.3.3)."""


def _authorize(action: int, first: str | None, second: str | None, *_where: str | None) -> int:
    """Return whether a statement may be prepared; `action` says what `first` and `second` are."""
    if action == sqlite3.SQLITE_ATTACH:
        return sqlite3.SQLITE_OK if first == "" else sqlite3.SQLITE_DENY  # VACUUM attaches one without a name
    if action == sqlite3.SQLITE_PRAGMA and (first or "").lower() not in _PRAGMAS:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _REFUSED_FUNCTIONS:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_CREATE_VTABLE and (second or "").lower() not in _SEARCH:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


@final
class Database:
    """A database in memory."""

    __slots__ = ("_use",)

    def __init__(self, content: bytes, detect_types: int, /) -> None:
        if hasattr(self, "_use"):
            raise TypeError("a database is made once")
        if type(content) is not bytes or type(detect_types) is not int:
            raise TypeError("a database is made of bytes, and of an int for its types")
        connection = _opened(content, detect_types)
        for setting in ("temp_store=MEMORY", "trusted_schema=OFF", "cell_size_check=ON"):
            connection.execute(f"PRAGMA {setting}")
        moment = Moment()
        if not content:
            # Its tables are all made by the code. So they may have the functions of the code, and those of `keep_time`,
            # as default values and in views: in what was loaded, SQLite takes neither.
            connection.execute("PRAGMA trusted_schema=ON")
            keep_time(connection, moment)
        connection.set_authorizer(_authorize)
        self._use = _Use(connection, moment)

    def execute(self, sql: str, parameters: object, is_many: bool, converters: object, adapt: _Adapt, /) -> Results:
        """Run one statement, with values, or with each of a list of these.

        Values are a list or tuple of what SQLite has; of others, `adapt` returns a list or dict of what to take.
        `converters` are functions of bytes by the names of declared types, for a database that detects types.
        """
        known = _known(converters) if converters else {}
        given = _rows(parameters, adapt) if is_many is True else _row(parameters, adapt)
        text = _sql(sql)
        with self._use as connection:
            try:
                sqlite3.converters.update(known)
                cursor = connection.executemany(text, given) if is_many is True else connection.execute(text, given)
            finally:
                sqlite3.converters.clear()
        return _results(self._use, cursor)

    def execute_script(self, sql: str, /) -> None:
        """Run many statements."""
        with self._use as connection:
            connection.executescript(_sql(sql))

    def commit(self) -> None:
        """Keep what was done."""
        with self._use as connection:
            connection.commit()

    def rollback(self) -> None:
        """Undo what was not kept."""
        with self._use as connection:
            connection.rollback()

    def close(self) -> None:
        """Close the database."""
        if self._use.connection is not None:
            with self._use as connection:
                self._use.connection = None
                connection.close()

    def serialize(self) -> bytes:
        """Return the database as the bytes of its file."""
        with self._use as connection:
            return connection.serialize()

    def reload(self, content: bytes, /) -> None:
        """Put another database in the place of this one; functions and settings stay.

        Raises sqlite3.OperationalError while rows of it are still to be fetched.
        """
        if type(content) is not bytes or not content:
            raise TypeError("a database is made of bytes")
        with self._use as connection, closing(_opened(content, 0)) as other:
            if connection.in_transaction:
                raise sqlite3.OperationalError("database is locked")
            other.backup(connection)  # which SQLite refuses where `deserialize` would take pages from under a statement

    def state(self) -> tuple[bool, int]:
        """Return whether a transaction is open, and how many rows were changed so far."""
        connection = self._use.opened()
        return connection.in_transaction, connection.total_changes

    def set_isolation_level(self, level: str | None, /) -> None:
        """Choose how transactions begin by themselves."""
        if level is not None and type(level) is not str:
            raise TypeError("isolation_level must be str or None")
        self._use.opened().isolation_level = cast("Any", level)

    def set_text_as_bytes(self, as_bytes: bool, /) -> None:
        """Give texts as bytes, or as str."""
        self._use.opened().text_factory = bytes if as_bytes is True else str

    def create_function(
        self, name: str, count: int, function: Callable[..., object] | None, deterministic: bool, /
    ) -> None:
        """Let SQL call a function of the code's own; None takes it away."""
        if type(count) is not int:
            raise TypeError("narg must be an int")

        def called(*arguments: object) -> object:
            return _plain(cast("Any", function)(*arguments))

        self._use.opened().create_function(
            _sql(name), count, None if function is None else cast("Any", called), deterministic=deterministic is True
        )

    def create_aggregate(self, name: str, count: int, make: Callable[[], Any] | None, /) -> None:
        """Let SQL gather with objects that `make` returns, by their methods `step` and `finalize`."""
        if type(count) is not int:
            raise TypeError("n_arg must be an int")

        class Gathering:
            def __init__(self) -> None:
                self._own = cast("Any", make)()

            def step(self, *arguments: object) -> None:
                self._own.step(*arguments)

            def finalize(self) -> object:
                return _plain(self._own.finalize())

        self._use.opened().create_aggregate(_sql(name), count, cast("Any", None if make is None else Gathering))

    def create_collation(self, name: str, compare: Callable[[str, str], int] | None, /) -> None:
        """Let SQL order texts by a function of the code's own."""

        def called(one: str, two: str) -> int:
            order = cast("Any", compare)(one, two)
            return order if type(order) is int else 0

        self._use.opened().create_collation(_sql(name), None if compare is None else called)


class _Use:
    """Gives the connection, and lets nothing else use it meanwhile."""

    __slots__ = ("_is_busy", "_moment", "connection")

    def __init__(self, connection: sqlite3.Connection, moment: Moment) -> None:
        self.connection: sqlite3.Connection | None = connection
        self._moment = moment
        self._is_busy = False

    def opened(self) -> sqlite3.Connection:
        if self._is_busy:
            raise sqlite3.ProgrammingError("Recursive use of a database is not allowed.")
        if self.connection is None:
            raise sqlite3.ProgrammingError("Cannot operate on a closed database.")
        return self.connection

    def __enter__(self) -> sqlite3.Connection:
        connection = self.connection
        if self._is_busy or connection is None:
            connection = self.opened()  # which raises
        self._is_busy = True
        self._moment.forget()
        return connection

    def __exit__(self, *_error: object) -> None:
        self._is_busy = False


def _opened(content: bytes, detect_types: int) -> sqlite3.Connection:
    seed()
    connection = sqlite3.connect(":memory:", detect_types=detect_types & 3, check_same_thread=True)
    if content:
        if content[_WAL] == b"\2\2":
            content = content[: _WAL.start] + b"\1\1" + content[_WAL.stop :]
        connection.deserialize(content)
    return connection


@final
class Results:
    """The rows of one statement, and what is known of them."""

    __slots__ = ("_cursor", "_use", "description", "lastrowid", "rowcount")

    _cursor: sqlite3.Cursor
    _use: _Use
    description: tuple[tuple[object, ...], ...] | None
    lastrowid: int | None
    rowcount: int

    def fetch(self, count: int, /) -> list[tuple[object, ...]]:
        """Return the next rows, at most so many; all of them where that is negative."""
        if type(count) is not int:
            raise TypeError("a number of rows must be an int")
        with self._use:
            return self._cursor.fetchall() if count < 0 else self._cursor.fetchmany(count)

    def close(self) -> None:
        """Drop the rows."""
        with self._use:
            self._cursor.close()


def _results(use: _Use, cursor: sqlite3.Cursor) -> Results:
    made = object.__new__(Results)
    made._use, made._cursor = use, cursor
    made.description, made.lastrowid, made.rowcount = cursor.description, cursor.lastrowid, cursor.rowcount
    return made


def _known(converters: object) -> dict[str, Any]:
    """Return the code's own converters. SQLite finds them while a statement begins, and remembers those it needs."""
    if type(converters) is not dict:
        raise TypeError("converters must be a dict")
    return {_sql(name): convert for name, convert in converters.items()}


def complete_statement(statement: str, /) -> bool:
    """Return whether a text holds whole statements."""
    return sqlite3.complete_statement(_sql(statement))


def _sql(text: object) -> str:
    if type(text) is not str:
        raise TypeError(f"a plain str is needed here, not {type(text).__name__!r}")
    return text


def _rows(given: Any, adapt: _Adapt) -> Any:
    if type(given) is not list:
        raise TypeError("rows must be a list")
    rows = tuple(given)
    if _TUPLE.issuperset(map(type, rows)) and _PLAIN.issuperset(map(type, chain.from_iterable(rows))):
        return rows
    return [_row(each, adapt) for each in rows]


def _row(given: Any, adapt: _Adapt) -> Any:
    row = tuple(given) if type(given) is list else given
    return row if type(row) is tuple and _PLAIN.issuperset(map(type, row)) else _values(adapt(given))


def _values(given: Any) -> Any:
    if type(given) is list or type(given) is tuple:
        return tuple(map(_plain, given))
    if type(given) is dict:
        return _NamedValues((_sql(name), value) for name, value in given.items())
    raise TypeError("parameters must be a list or a dict")


class _NamedValues(dict[str, object]):
    """Values by name, of which only those that a statement names must be what SQLite has."""

    __slots__ = ()

    def __getitem__(self, name: str) -> object:
        return _plain(super().__getitem__(name))


def _plain(value: object) -> object:
    if type(value) not in _PLAIN:
        if type(value) is bool:
            return int(value)
        raise sqlite3.ProgrammingError(f"type '{type(value).__name__}' is not supported")
    return value
