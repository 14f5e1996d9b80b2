"""The texts that a file holds, piece by piece, also where they are packed, in a spreadsheet or in a database.

A security boundary: files come from anywhere, so this runs in a reader, which its deadline and its memory limit end.
Of a packed file no more is in memory than a piece. A database is opened from memory, read-only, and nothing that its
schema names is run: see "Defense Against The Dark Arts" of SQLite's documentation. The XML of a spreadsheet of Excel
(ECMA-376, part 1, 18.3 and 18.4) is cut at the ends of its elements and not parsed, so no entity is expanded, and time
is linear whatever stands in it.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import html
import io
import lzma
import re
import sqlite3
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import IO, Protocol, cast

from ....sandbox.job import Json
from ...base.errors import PrivacyFailed
from .encodings import SAMPLE_BYTES, encoding_of, encodings_of, text_of_any

_WORKBOOK = "xl/workbook.xml"
_STRINGS = "xl/sharedStrings.xml"
_SHEETS = "xl/worksheets/"
_TEXT = re.compile(r"<(?:\w+:)?t(?:\s[^<>]*)?>([^<]*)<")
_VALUE = re.compile(r"<(?:\w+:)?v(?:\s[^<>]*)?>([^<]*)<")
_CELL = re.compile(r"<(?:\w+:)?c\s([^<>]*)>")
_PLACE = re.compile(r'\br="([A-Z]{1,3})\d+"')
_KIND = re.compile(r'\bt="(\w+)"')
_SHEET_ROWS = 2_000


def shared_strings(xml: str) -> list[str]:
    """Return the texts that cells name by their numbers."""
    return [_texts(each) for each in re.split(r"</(?:\w+:)?si>", xml)[:-1]]


def sheet_rows(xml: str, strings: Sequence[str]) -> Iterator[Json]:
    """Give the rows of a sheet, some at a time: each as an object by the texts of the first."""
    headings: dict[str, str] = {}
    some: list[dict[str, str]] = []
    for number, row in enumerate(re.split(r"</(?:\w+:)?row>", xml)[:-1]):
        cells = dict(_cells(row, strings))
        if number == 0:
            headings = cells
            yield list(cells.values())
            continue
        some.append({headings.get(column) or column: text for column, text in cells.items()})
        if len(some) == _SHEET_ROWS:
            yield some
            some = []
    if some:
        yield some


def _cells(row: str, strings: Sequence[str]) -> Iterator[tuple[str, str]]:
    for cell in re.split(r"</(?:\w+:)?c>", row)[:-1]:
        starts = list(_CELL.finditer(cell))  # empty ones have no end of their own
        if not starts or (place := _PLACE.search(starts[-1][1])) is None:
            continue
        kind, inner = _KIND.search(starts[-1][1]), cell[starts[-1].end() :]
        value = _VALUE.search(inner)
        if value is None:
            text = _texts(inner)
        elif kind is not None and kind[1] == "s":
            named = value[1].strip()
            text = strings[int(named)] if named.isdecimal() and int(named) < len(strings) else ""
        else:
            text = html.unescape(value[1])
        if text:
            yield place[1], text


def _texts(xml: str) -> str:
    return html.unescape("".join(_TEXT.findall(xml)))


PIECE_CHARS = 1_000_000
"""Characters that are looked through at once."""
WHOLE_BYTES_MAX = 128 * 1024 * 1024
"""A database, or what is packed twice, that is larger is not looked through."""
_FIRST_LINE_CHARS = 4_000
_ROWS = 2_000
_DEEP = 2
_DATABASE = b"SQLite format 3\0"
_TAPE, _TAPE_AT = b"ustar", slice(257, 262)
"""An archive of `tar` has its texts as they are, with zeros between them."""
_ZIP = b"PK\x03\x04"
_PACKED: tuple[tuple[bytes, Callable[[IO[bytes]], IO[bytes]]], ...] = (
    (b"\x1f\x8b", lambda file: cast("IO[bytes]", gzip.GzipFile(fileobj=file))),
    (b"BZh", bz2.BZ2File),
    (b"\xfd7zXZ\0", lzma.LZMAFile),
)
_ZLIB = (b"\x78\x01", b"\x78\x9c", b"\x78\xda")
_OPAQUE = (
    *(bytes.fromhex(each) for each in ("28b52ffd", "04224d18", "377abcaf271c", "526172211a07", "1f9d", "5d0000")),
    *(b"PAR1", b"ARROW1", b"ORC", b"Obj\x01", b"\x89HDF\r\n\x1a\n", b"%PDF-", bytes.fromhex("d0cf11e0a1b11ae1")),
)
"""How files begin whose texts are packed in ways that are not known here: zstd, LZ4, 7z, RAR, compress, bare LZMA;
Parquet, Arrow, ORC, Avro, HDF5, PDF, and the older files of Excel and Word."""
_DUCKDB, _DUCKDB_AT = b"DUCK", slice(8, 12)
MARKS = (_DATABASE, _ZIP, *(mark for mark, _ in _PACKED), *_ZLIB, *_OPAQUE)
"""How files begin whose texts do not stand in them as they are."""
DIRECTORY_BYTES_MAX = 8 * 1024 * 1024
"""What the directory of a zip file may have: some 100,000 files of usual names."""
_JOURNAL_MODES = slice(18, 20)
_ROLLBACK = b"\x01\x01"
_READING = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_PRAGMA,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    }
)
_VALUE_BYTES_MAX = 16 * 1024 * 1024


def is_packed(beginning: bytes) -> bool:
    """Return whether the bytes with which a file begins are those of one whose texts do not stand in it as they are."""
    return beginning.startswith((_DATABASE, _ZIP)) or _opener(beginning) is not None


def _opener(beginning: bytes) -> Callable[[IO[bytes]], IO[bytes]] | None:
    for mark, opened in _PACKED:
        if beginning.startswith(mark):
            return opened
    with suppress(zlib.error):
        if beginning.startswith(_ZLIB):
            zlib.decompressobj().decompress(beginning, 1)
            return lambda file: cast("IO[bytes]", _Inflated(file))
    return None


def hides_texts(beginning: bytes) -> bool:
    """Return whether the texts of a file that begins so are packed, be it in a way that is not known here."""
    return is_packed(beginning) or beginning.startswith(_OPAQUE) or beginning[_DUCKDB_AT] == _DUCKDB


def texts_of(file: IO[bytes], size: int, *, complete: bool = False, deep: int = 0) -> Iterator[Json]:
    """Give the texts of a file, and the rows of its tables; nothing of one that holds no text.

    With `complete`, of bytes that are about to be shown: texts in whatever else there is as well, and nothing is passed
    over. Raises `PrivacyFailed` where a packed file cannot be looked through, with `complete` to its end.
    """
    beginning = file.read(SAMPLE_BYTES)
    file.seek(0)
    if (opened := _opener(beginning)) is not None:
        yield from _unpacked(opened(file), complete, deep)
        return
    if beginning.startswith(_ZIP):
        yield from _of_zip(file, complete, deep)
        return
    if beginning.startswith(_DATABASE):
        if size > WHOLE_BYTES_MAX:
            raise PrivacyFailed(
                f"The database has more than {WHOLE_BYTES_MAX} bytes, so it was not looked through for personal data. "
                "Export what is needed as CSV or JSON."
            )
        yield from _of_database(file.read())
        return
    if complete:
        yield from _of_any(file, beginning)
    elif encodings := encodings_of(beginning):
        yield from _pieces(file, encodings)


def _of_any(file: _Reads, beginning: bytes) -> Iterator[str]:
    if hides_texts(beginning):
        _refuse_rest()
    whole = _whole(file)
    if whole:
        yield text_of_any(whole)


def _refuse_rest() -> None:
    raise PrivacyFailed("Some of it could not be unpacked, so it was not looked through for personal data.")


def _unpacked(file: IO[bytes], complete: bool, deep: int) -> Iterator[Json]:
    if deep >= _DEEP:
        if complete:
            _refuse_rest()
        return
    rest = _Unpacking(file, complete)
    beginning = rest.peek(SAMPLE_BYTES)
    if is_packed(beginning):
        whole = _whole(rest)
        yield from texts_of(io.BytesIO(whole), len(whole), complete=complete, deep=deep + 1)
        return
    if complete:
        yield from _of_any(rest, beginning)
        return
    is_tape = beginning[_TAPE_AT].startswith(_TAPE)
    if encodings := encodings_of(beginning.replace(b"\0", b"") if is_tape else beginning):
        yield from _pieces(rest, encodings)


def _whole(file: _Reads) -> bytes:
    read = bytearray()
    while some := file.read(SAMPLE_BYTES):
        read += some
        if len(read) > WHOLE_BYTES_MAX:
            raise PrivacyFailed(
                f"What is packed in the file is packed again and has more than {WHOLE_BYTES_MAX} bytes, so it was not "
                "looked through for personal data. Unpack it first."
            )
    return bytes(read)


class _Inflated:
    """A bare stream of zlib, as `zlib.compress` makes it (RFC 1950)."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._inflates = zlib.decompressobj()

    def read1(self, size: int) -> bytes:
        while not self._inflates.eof:
            packed = self._inflates.unconsumed_tail or self._file.read(SAMPLE_BYTES)
            if not packed:
                raise EOFError
            if some := self._inflates.decompress(packed, size):
                return some
        return b""


class _Unpacking:
    """What is packed in a file, as far as it can be unpacked: code gets no more of one that is damaged or locked.

    Where it is to be `complete`, what cannot be unpacked raises `PrivacyFailed`.
    """

    def __init__(self, file: IO[bytes], complete: bool) -> None:
        self._file = file
        self._complete = complete
        self._held = b""

    def peek(self, size: int) -> bytes:
        while len(self._held) < size and (some := self._more()):
            self._held += some
        return self._held

    def read(self, size: int) -> bytes:
        if not self._held:
            return self._more()
        some, self._held = self._held[:size], self._held[size:]
        return some

    def _more(self) -> bytes:
        try:
            return cast("io.BufferedReader", self._file).read1(SAMPLE_BYTES)
        except (RuntimeError, OSError, EOFError, lzma.LZMAError, zlib.error, zipfile.BadZipFile):
            if self._complete:
                _refuse_rest()
            return b""


class _Reads(Protocol):
    def read(self, size: int, /) -> bytes: ...


def _pieces(file: _Reads, encodings: Sequence[str]) -> Iterator[str]:
    readings = [_Reading(encoding) for encoding in encodings]
    while some := file.read(SAMPLE_BYTES):
        for reading in readings:
            yield from reading.pieces(some)
    for reading in readings:
        yield from reading.pieces(b"", is_last=True)


class _Reading:
    """A text in one encoding: its pieces end with a line and begin with the first, which may say what columns hold."""

    def __init__(self, encoding: str) -> None:
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        self._first_line = ""
        self._held = ""

    def pieces(self, some: bytes, *, is_last: bool = False) -> Iterator[str]:
        self._held += self._decoder.decode(some, final=is_last).replace("\0", "\n")
        if not self._held or (len(self._held) < PIECE_CHARS and not is_last):
            return
        cut = len(self._held) if is_last else self._held.rfind("\n") + 1 or len(self._held)
        yield self._first_line + self._held[:cut]
        self._first_line = self._first_line or _first_line(self._held)
        self._held = self._held[cut:]


def _first_line(text: str) -> str:
    line, end, _ = text[:_FIRST_LINE_CHARS].partition("\n")
    return line + end if end else ""


class _BoundedReads(io.RawIOBase):
    """A file of which `zipfile` gets no more at once than a directory may have: it reads that in one piece."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file
        self.seek, self.tell = file.seek, file.tell  # type: ignore[method-assign]  # the file's own

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        data = self._file.read(min(size if size >= 0 else sys.maxsize, DIRECTORY_BYTES_MAX + 1))
        if len(data) > DIRECTORY_BYTES_MAX:
            raise PrivacyFailed(
                f"The directory of the zip file has more than {DIRECTORY_BYTES_MAX} bytes, so the file was not looked "
                "through for personal data. Pack fewer files in one."
            )
        return data


def _of_zip(file: IO[bytes], complete: bool, deep: int) -> Iterator[Json]:
    if deep >= _DEEP:
        if complete:
            _refuse_rest()
        return
    with _passing_over(complete), zipfile.ZipFile(cast("IO[bytes]", _BoundedReads(file))) as archive:
        names = archive.namelist()
        yield list(names)
        if _WORKBOOK in names:
            yield from _of_spreadsheet(archive, names)
        for member in archive.infolist():
            with _passing_over(complete), archive.open(member) as packed:
                yield from _unpacked(packed, complete, deep)


@contextmanager
def _passing_over(complete: bool) -> Iterator[None]:
    """Pass over what is damaged, has a password, or is packed in a way that is not known here."""
    try:
        yield
    except (RuntimeError, zipfile.BadZipFile):
        if complete:
            _refuse_rest()


def _of_spreadsheet(archive: zipfile.ZipFile, names: Sequence[str]) -> Iterator[Json]:
    strings = shared_strings(_member(archive, _STRINGS)) if _STRINGS in names else []
    for name in names:
        if name.startswith(_SHEETS) and name.endswith(".xml"):
            yield from sheet_rows(_member(archive, name), strings)


def _member(archive: zipfile.ZipFile, name: str) -> str:
    with suppress(RuntimeError, zipfile.BadZipFile), archive.open(name) as packed:
        return _whole(_Unpacking(packed, complete=False)).decode("utf-8", "replace")
    return ""


def _of_database(data: bytes) -> Iterator[Json]:
    patched = bytearray(data)
    patched[_JOURNAL_MODES] = _ROLLBACK  # one with a write-ahead log cannot be opened from memory
    with _looking_through(), closing(sqlite3.connect(":memory:")) as database:
        database.text_factory = lambda text: text.decode("utf-8", "replace")
        database.deserialize(bytes(patched))
        for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "query_only = ON", "mmap_size = 0"):
            database.execute(f"PRAGMA {pragma}")
        database.set_authorizer(_judged)
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _VALUE_BYTES_MAX)
        # A virtual table has no page of its own; to read one would run the module that its statement names.
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0").fetchall()
        for (table,) in tables:
            yield from _rows(database, str(table))


@contextmanager
def _looking_through() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise PrivacyFailed(
            f"The database could not be looked through for personal data: {error}. Export it as CSV or JSON."
        ) from None


def _judged(action: int, *_about: object) -> int:
    return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY


def _rows(database: sqlite3.Connection, table: str) -> Iterator[Json]:
    quoted = table.replace('"', '""')
    cursor = database.execute(f'SELECT * FROM "{quoted}"')  # noqa: S608 - quoted
    columns = [each[0] for each in cursor.description]
    while rows := cursor.fetchmany(_ROWS):
        yield [{column: _value(value) for column, value in zip(columns, row, strict=True)} for row in rows]


def _value(value: object) -> Json:
    if isinstance(value, bytes):
        encoding = encoding_of(value)
        return value.decode(encoding, "replace") if encoding else None
    return cast("Json", value)
