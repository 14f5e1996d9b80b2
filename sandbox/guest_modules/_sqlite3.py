"""What the library's `sqlite3` is made on: databases in memory. That of a file is read when it is opened, and written
when it is committed.
"""

import _sealab_sqlite
from _sealab_os import fsdecode as _fsdecode, fspath as _fspath
from _sealab_sqlite import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
    complete_statement,
    sqlite_version,
)

threadsafety = 1
version = _deprecated_version = "2.6.0"
PARSE_DECLTYPES, PARSE_COLNAMES = 1, 2
SQLITE_OK, SQLITE_DENY, SQLITE_IGNORE = 0, 1, 2
LEGACY_TRANSACTION_CONTROL = -1

_adapters = {}
_converters = {}
_open_files = {}
_saved = {}
"""How often this run wrote the file of each database."""


def _import_files():
    """Import what databases in files are made on, which takes longer than all else of this module."""
    global _absolute, _io, _os
    import io as _io
    import os as _os

    from _sealab_files import absolute as _absolute


def register_adapter(type, adapter, /):
    _adapters[type] = adapter


def register_converter(typename, converter, /):
    _converters[typename.upper()] = converter


def _plain(value):
    kind = type(value)
    if kind in (int, float, str, bytes, type(None)):
        return value
    adapter = _adapters.get(kind)
    if adapter is not None:
        return adapter(value)
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if kind is bool:
        return int(value)
    for base in (str, int, float, bytes):
        if isinstance(value, base):
            return base.__str__(value) if base is str else base(value)
    conform = getattr(value, "__conform__", None)
    return value if conform is None else conform(PrepareProtocol)


class PrepareProtocol:
    """What an object is asked to conform to."""


def _values(parameters):
    if isinstance(parameters, dict):
        return {str(name): _plain(value) for name, value in parameters.items()}
    if hasattr(parameters, "keys") and hasattr(parameters, "__getitem__") and not isinstance(parameters, Row):
        return {str(name): _plain(parameters[name]) for name in parameters.keys()}
    if isinstance(parameters, str):
        return list(parameters)
    return [_plain(value) for value in parameters]


def _text(sql):
    if not isinstance(sql, str):
        raise TypeError(f"execute() argument 1 must be str, not {type(sql).__name__}")
    return str.__str__(sql)


class Row:
    """One row, by number or by name."""

    __slots__ = ("_names", "_row")

    def __init__(self, cursor, row):
        if cursor._names is None:
            cursor._names = tuple(each[0] for each in cursor.description)
        self._names = cursor._names
        self._row = tuple(row)

    def keys(self):
        return list(self._names)

    def __getitem__(self, key):
        if isinstance(key, str):
            wanted = key.lower()
            for number, name in enumerate(self._names):
                if name.lower() == wanted:
                    return self._row[number]
            raise IndexError("No item with that key")
        return self._row[key]

    def __len__(self):
        return len(self._row)

    def __iter__(self):
        return iter(self._row)

    def __eq__(self, other):
        return isinstance(other, Row) and self._names == other._names and self._row == other._row

    def __hash__(self):
        return hash((self._names, self._row))

    def __repr__(self):
        return "<sqlite3.Row object>"


class Cursor:
    """Runs statements, and gives their rows."""

    arraysize = 1
    description = lastrowid = _results = _names = None
    rowcount = -1
    _is_closed = False

    def __init__(self, connection):
        if not isinstance(connection, Connection):
            raise TypeError("Cursor() argument 1 must be sqlite3.Connection")
        self.connection = connection
        self.row_factory = connection.row_factory

    def _check(self):
        if self._is_closed:
            raise ProgrammingError("Cannot operate on a closed cursor.")
        return self.connection._checked()

    def _run(self, sql, parameters, is_many):
        database = self._check()
        connection = self.connection
        if connection._path is not None:
            connection._refresh()
        if type(sql) is not str:
            sql = _text(sql)
        converters = _converters if connection._detect_types else {}
        results = database.execute(sql, parameters, is_many, converters, _values)
        self._results = results
        self._names = None
        self.description = results.description
        self.rowcount = results.rowcount
        if results.lastrowid is not None:
            self.lastrowid = results.lastrowid
        if connection._path is not None:
            connection._note(sql)
        return self

    def execute(self, sql, parameters=(), /):
        return self._run(sql, parameters, False)

    def executemany(self, sql, parameters, /):
        return self._run(sql, list(parameters), True)

    def executescript(self, sql_script, /):
        database = self._check()
        self.connection._refresh()
        database.execute_script(_text(sql_script))
        self.connection._is_changed = True
        return self

    def _fetch(self, count):
        self._check()
        if self._results is None:
            return []
        rows = self._results.fetch(count)
        if self.row_factory is not None:
            rows = [self.row_factory(self, row) for row in rows]
        return rows

    def fetchone(self):
        rows = self._fetch(1)
        return rows[0] if rows else None

    def fetchmany(self, size=None):
        return self._fetch(self.arraysize if size is None else int(size))

    def fetchall(self):
        return self._fetch(-1)

    def __iter__(self):
        return self

    def __next__(self):
        rows = self._fetch(1)
        if not rows:
            raise StopIteration
        return rows[0]

    def close(self):
        if self._results is not None:
            self._results.close()
        self._results = None
        self._is_closed = True

    def setinputsizes(self, sizes, /):
        pass

    def setoutputsize(self, size, column=None, /):
        pass


_BEGINNINGS_THAT_READ = ("select", "pragma", "explain", "with", "values")


class Connection:
    """A database."""

    def __init__(
        self,
        database,
        timeout=5.0,
        detect_types=0,
        isolation_level="",
        check_same_thread=True,
        factory=None,
        cached_statements=128,
        uri=False,
        *,
        autocommit=LEGACY_TRANSACTION_CONTROL,
    ):
        self._path = None
        self._is_read_only = False
        self._seen = None
        self._generation = 0
        content = b""
        name = _fspath(database)
        name = _fsdecode(name) if isinstance(name, bytes) else name
        if name not in (":memory:", ""):
            _import_files()
        if uri and name.startswith("file:"):
            from urllib.parse import parse_qs, unquote

            text, _, query = name[5:].partition("?")
            options = parse_qs(query)
            mode = options.get("mode", ["rwc"])[0]
            name = ":memory:" if mode == "memory" else unquote(text)
            self._is_read_only = mode == "ro"
            if mode in ("ro", "rw") and not _os.path.exists(name):
                raise OperationalError("unable to open database file")
        if name not in (":memory:", ""):
            self._path = _absolute(name)
            self._save_others()
            content = self._read()
        self._detect_types = int(detect_types)
        self._database = _sealab_sqlite.Database(content, self._detect_types)
        if content:
            try:
                self._database.execute("SELECT count(*) FROM sqlite_master", [], False, {}, _values).fetch(1)
            except DatabaseError:
                self._database.close()
                raise
        self._is_changed = False
        self._is_closed = False
        self._text_factory = str
        self.row_factory = None
        self._isolation_level = ""
        self.isolation_level = None if autocommit is True else isolation_level
        if self._path is not None:
            _open_files[id(self)] = self
            _io._open_files[id(self)] = lambda: self

    def _read(self):
        try:
            with _io.open(self._path, "rb") as stream:
                content = stream.read()
        except FileNotFoundError:
            try:
                _io.open(self._path, "xb").close()
            except OSError:
                raise OperationalError("unable to open database file") from None
            content = b""
        except OSError:
            raise OperationalError("unable to open database file") from None
        if _os.path.exists(self._path + "-wal") and _os.path.getsize(self._path + "-wal"):
            # What stands there is part of the database, and would be missing without a word.
            raise OperationalError(
                "this database has a write-ahead log beside it, which full Python left: open and close it once there "
                "(isolation='process')"
            )
        self._seen = self._status()
        self._generation = _saved.get(self._path, 0)
        return content

    def _save_others(self):
        for other in list(_open_files.values()):
            if other is not self and other._path == self._path:
                other._save()

    def _refresh(self):
        """Read the file again where another connection of this run has written it since."""
        if self._path is None or self._is_closed or self._is_changed or self.in_transaction:
            return
        if len(_open_files) > 1:
            self._save_others()
        if _saved.get(self._path, 0) == self._generation:
            return
        before = self._seen, self._generation
        try:
            self._database.reload(self._read())
        except OperationalError:  # rows are still to be fetched of what it was
            self._seen, self._generation = before

    def _status(self):
        try:
            found = _os.stat(self._path)
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    def _save(self):
        """Write the database to its file where it was changed and no transaction is open."""
        if self._path is None or not self._is_changed or self._is_closed or self.in_transaction:
            return
        if self._is_read_only:
            raise OperationalError("attempt to write a readonly database")
        if self._status() != self._seen:
            raise OperationalError("database is locked: its file was changed meanwhile; connect again")
        content = self._database.serialize()
        try:
            with _io.open(self._path + "-saved", "wb") as stream:
                stream.write(content)
            _os.replace(self._path + "-saved", self._path)
        except OSError as error:
            try:
                _os.remove(self._path + "-saved")
            except OSError:
                pass
            raise OperationalError(f"database or disk is full ({error})") from None
        self._is_changed = False
        self._seen = self._status()
        self._generation = _saved[self._path] = _saved.get(self._path, 0) + 1

    # What `_io.flush_all` asks of an open file.

    @property
    def closed(self):
        return self._is_closed

    @property
    def name(self):
        return self._path

    def flush(self):
        """Undo what was not committed, and write the rest."""
        if self.in_transaction:
            self._database.rollback()
        self._save()

    def _checked(self):
        if self._is_closed:
            raise ProgrammingError("Cannot operate on a closed database.")
        return self._database

    def _note(self, sql):
        if not sql.lstrip().lower().startswith(_BEGINNINGS_THAT_READ[:3]):
            self._is_changed = True

    def cursor(self, factory=Cursor):
        self._checked()
        return factory(self)

    def execute(self, sql, parameters=(), /):
        return self.cursor().execute(sql, parameters)

    def executemany(self, sql, parameters, /):
        return self.cursor().executemany(sql, parameters)

    def executescript(self, sql_script, /):
        return self.cursor().executescript(sql_script)

    def commit(self):
        self._checked().commit()
        self._save()

    def rollback(self):
        self._checked().rollback()

    def close(self):
        if self._is_closed:
            return
        self._database.state()
        try:
            self.flush()
        finally:
            self._is_closed = True
            self._database.close()
            if self._path is not None:
                _open_files.pop(id(self), None)
                _io._open_files.pop(id(self), None)

    def __enter__(self):
        self._checked()
        return self

    def __exit__(self, kind, value, traceback):
        if kind is None:
            self.commit()
        else:
            self.rollback()
        return False

    def __call__(self, sql):
        raise NotSupportedError("statements are not made by calling a connection here; use execute()")

    @property
    def in_transaction(self):
        return self._database.state()[0]

    @property
    def total_changes(self):
        return self._checked().state()[1]

    @property
    def isolation_level(self):
        return self._isolation_level

    @isolation_level.setter
    def isolation_level(self, level):
        self._checked().set_isolation_level(level)
        self._isolation_level = level

    @property
    def text_factory(self):
        return self._text_factory

    @text_factory.setter
    def text_factory(self, factory):
        if factory is not str and factory is not bytes:
            raise NotSupportedError("text_factory can be str or bytes here")
        self._checked().set_text_as_bytes(factory is bytes)
        self._text_factory = factory

    def create_function(self, name, narg, func, /, *, deterministic=False):
        called = None if func is None else lambda *arguments: _plain(func(*arguments))
        self._checked().create_function(name, narg, called, bool(deterministic))

    def create_aggregate(self, name, n_arg, aggregate_class, /):
        self._checked().create_aggregate(name, n_arg, aggregate_class)

    def create_collation(self, name, callable, /):
        self._checked().create_collation(name, callable)

    def backup(self, target, *, pages=-1, progress=None, name="main", sleep=0.25):
        content = self._checked().serialize()
        target._checked().close()
        target._database = _sealab_sqlite.Database(content, 0)
        target._is_changed = True
        target._save()

    def serialize(self, *, name="main"):
        return self._checked().serialize()

    def deserialize(self, data, /, *, name="main"):
        self._checked().close()
        self._database = _sealab_sqlite.Database(bytes(data), 0)
        self._is_changed = True

    def iterdump(self, **options):
        from sqlite3.dump import _iterdump

        return _iterdump(self, **options)

    def set_trace_callback(self, trace_callback, /):
        raise NotSupportedError("statements cannot be traced here")

    def enable_load_extension(self, enable, /):
        raise NotSupportedError("extensions cannot be loaded here")

    load_extension = set_authorizer = set_progress_handler = enable_load_extension

    def interrupt(self):
        self._checked()


def connect(database, timeout=5.0, detect_types=0, isolation_level="", check_same_thread=True, factory=Connection, *more, **options):
    """Open a database."""
    return factory(database, timeout, detect_types, isolation_level, check_same_thread, factory, *more, **options)
