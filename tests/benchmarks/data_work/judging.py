"""Says what of a run is not as a task wants it, by value; shared by sealab and plain CPython.

What a run showed of a table may come as `{columns, index, data}`, or as sealab shows it: a list of records, or of a
large one its head, where the report's `tables` says which columns are the index.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import re
import sqlite3
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .task import ANYTHING, Archive, Case, Database, Drawn, Frame, Labelled, Picture, Sheets, Text, Written

_NUMBER = re.compile(r"(?<![\w.])[-−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?", re.IGNORECASE)
_CLOSE = 1e-6
_WHITE = 3
"""A picture of no more different bytes than this is blank."""


@dataclass
class Observed:
    """What a run gave: its error or None, result, output, pictures, and the folder with its files.

    `tables` is what sealab's report says of the tables in the result, `captions` what it says of the figures that are shown;
    `ms` is what it took, `leaks` what of somebody the model read.
    """

    error: str | None
    result: Any
    output: str
    images: int
    folder: Path
    tables: Sequence[Mapping[str, Any]] = ()
    captions: str | None = None
    ms: float = 0.0
    leaks: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class ReadByLibrary:
    """A written file that the other environment must read, and what becomes of the answer."""

    path: Path
    kind: str
    query: str
    judge: Callable[[Any], str | None]


def judge(case: Case, seen: Observed) -> tuple[list[str], list[ReadByLibrary]]:
    """Return what is not as wanted, and what is still to be read to know."""
    if seen.error is not None:
        return [seen.error], []
    wrong = [] if case.result is ANYTHING else [_result(case.result, seen)]
    wrong.append(_printed(case.printed, seen.output))
    if seen.images != case.images:
        wrong.append(f"{seen.images} figures shown instead of {case.images}")
    if seen.captions is not None and case.images:
        wrong += [f"caption: {why}" for axes in case.drawn if (why := _captioned(axes, seen.captions))]
    later: list[ReadByLibrary] = []
    for name, written in case.written.items():
        path = seen.folder / name
        wrong.append(_file(path, written, later) if path.is_file() else f"{name} is not there")
    return [each for each in wrong if each], later


def _result(wanted: Any, seen: Observed) -> str | None:
    found = seen.result
    if isinstance(wanted, Frame):
        return _frame(wanted, table_of(seen), found)
    if isinstance(wanted, Labelled):
        return _labelled(wanted, seen)
    return None if same(found, wanted) else f"result {_brief(found)} instead of {_brief(wanted)}"


Table = tuple[list[Any], list[Any] | None, list[list[Any]]]


def table_of(seen: Observed) -> Table | None:
    """Return columns, labels and rows of a table as it was shown, or None where it is none."""
    found = seen.result
    if isinstance(found, Mapping) and "columns" in found and isinstance(found.get("data"), Sequence):
        labels = found.get("index")
        return list(found["columns"]), None if labels is None else list(labels), [list(row) for row in found["data"]]
    if isinstance(found, Mapping) and "head" in found:
        found = found["head"]
    if not isinstance(found, Sequence) or not found or not all(isinstance(row, Mapping) for row in found):
        return None
    index = next((table.get("index", []) for table in seen.tables if table["name"] == "result"), [])
    labels = [row[index[0]] if len(index) == 1 else [row[name] for name in index] for row in found]
    names = [name for name in found[0] if name not in index]
    return names, labels if index else None, [[row[name] for name in names] for row in found]


def _frame(wanted: Frame, table: Table | None, found: Any) -> str | None:
    if table is None:
        return f"no table: {_brief(found)}"
    columns, labels, rows = table
    if not same(columns, list(wanted.columns)):
        return f"columns {columns} instead of {wanted.columns}"
    if wanted.labels is not None and not same(labels, list(wanted.labels)):
        return f"labels {_brief(labels)} instead of {_brief(wanted.labels)}"
    count = found["rows"] if isinstance(found, Mapping) and "head" in found else len(rows)
    if count != (len(wanted.rows) if wanted.count is None else wanted.count):
        return f"{count} rows instead of {wanted.count or len(wanted.rows)}"
    for at, (row, other) in enumerate(zip(rows, wanted.rows, strict=wanted.count is None)):
        if not same(row, list(other)):
            return f"row {at}: {_brief(row)} instead of {_brief(list(other))}"
    return None


def _labelled(wanted: Labelled, seen: Observed) -> str | None:
    found = seen.result
    if isinstance(found, Mapping) and isinstance(found.get("data"), Sequence) and "index" in found:
        labels, values = list(found["index"]), list(found["data"])
    elif isinstance(found, Mapping) and "head" not in found:
        labels, values = [*found], [*found.values()]
    else:
        table = table_of(seen)
        if table is None or table[1] is None:
            return f"no labels: {_brief(found)}"
        labels, values = table[1], [row[0] for row in table[2]]
    if [_label(each) for each in labels] != [_label(each) for each in wanted.values]:
        return f"labels {_brief(labels)} instead of {_brief([*map(str, wanted.values)])}"
    other = [*wanted.values.values()]
    return None if same(values, other) else f"values {_brief(values)} instead of {_brief(other)}"


def _label(label: Any) -> Any:
    """Return a label in a form that survives being a key of JSON."""
    return [_label(each) for each in label] if isinstance(label, list | tuple) else _day(str(label))


def same(found: Any, wanted: Any) -> bool:
    """Return whether two values are the same but for rounding, the spelling of dates and the kind of a sequence."""
    if isinstance(wanted, Mapping):
        if not isinstance(found, Mapping):
            return False
        named = {str(key): value for key, value in found.items()}
        other = {str(key): value for key, value in wanted.items()}
        return named.keys() == other.keys() and all(same(named[key], value) for key, value in other.items())
    if isinstance(wanted, list | tuple):
        return (
            isinstance(found, list | tuple)
            and len(found) == len(wanted)
            and all(same(a, b) for a, b in zip(found, wanted, strict=True))
        )
    if isinstance(wanted, bool) or isinstance(found, bool) or wanted is None or found is None:
        return found == wanted
    if isinstance(wanted, int | float):
        return isinstance(found, int | float) and math.isclose(found, wanted, rel_tol=_CLOSE, abs_tol=1e-9)
    return _day(str(found)) == _day(str(wanted))


def _day(text: str) -> str:
    return re.sub(r"^(\d{4}-\d\d-\d\d)(?:[T ]00:00:00(?:\.0+)?)?$", r"\1", text)


def _printed(wanted: Sequence[Any], output: str) -> str | None:
    at = 0
    for each in wanted:
        after = output.find(each, at) if isinstance(each, str) else -1
        if isinstance(each, str):
            if after < 0:
                return f"{each!r} is not printed in {_brief(output[at:])}"
            at = after + len(each)
            continue
        found = next((match for match in _NUMBER.finditer(output, at) if _is_printed(match[0], float(each))), None)
        if found is None:
            return f"{each} is not printed in {_brief(output[at:])}"
        at = found.end()
    return None


def _is_printed(text: str, wanted: float) -> bool:
    plain = text.replace(",", "").replace("−", "-")
    digits = len(plain.partition(".")[2]) if "e" not in plain.lower() else 15
    shown = float(plain)
    return math.isclose(shown, wanted, rel_tol=_CLOSE) or abs(shown - wanted) <= 0.5000001 * 10**-digits * (digits > 0)


def _captioned(axes: Drawn, captions: str) -> str | None:
    """Return what a text for those who cannot see leaves out of a pair of axes: title, labels, or heights of bars."""
    missing = [each for each in (axes.title, axes.x, axes.y) if each not in captions]
    return f"{missing} are not in {_brief(captions)}" if missing else _printed(axes.bars, captions)


def _file(path: Path, written: Written, later: list[ReadByLibrary]) -> str | None:
    match written:
        case Text():
            return _text(path.read_bytes(), written, path.name)
        case Archive(members):
            with zipfile.ZipFile(path) as archive:
                if sorted(archive.namelist()) != sorted(members):
                    return f"{path.name} holds {archive.namelist()} instead of {list(members)}"
                return next(filter(None, (_text(archive.read(n), each, n) for n, each in members.items())), None)
        case Database(query, rows, "sqlite"):
            database = sqlite3.connect(path)
            try:
                found = [list(row) for row in database.execute(query)]
            except sqlite3.Error as error:
                return f"{path.name}: {error}"
            finally:
                database.close()
            return None if same(found, rows) else f"{path.name} holds {_brief(found)} instead of {_brief(rows)}"
        case Picture():
            return _picture(path.read_bytes(), written, path.name)
        case Database(query, rows, engine):
            later.append(ReadByLibrary(path, engine, query, _holds(path.name, rows)))
        case Sheets(kind, sheets):
            later.append(ReadByLibrary(path, kind, "", _holds(path.name, sheets)))
    return None


def _holds(name: str, wanted: Any) -> Callable[[Any], str | None]:
    return lambda found: None if same(found, wanted) else f"{name} holds {_brief(found)} instead of {_brief(wanted)}"


def _text(content: bytes, wanted: Text, name: str) -> str | None:
    try:
        text = (gzip.decompress(content) if wanted.packed == "gzip" else content).decode(wanted.encoding)
        if wanted.form == "csv":
            found: Any = list(csv.DictReader(io.StringIO(text), delimiter=wanted.delimiter))
            other: Any = [{key: _cell(value) for key, value in row.items()} for row in wanted.holds]
            found = [{key: _cell(value) for key, value in row.items()} for row in found]
        else:
            found = [json.loads(line) for line in text.splitlines()] if wanted.form == "jsonl" else json.loads(text)
            other = wanted.holds
    except (ValueError, OSError) as error:
        return f"{name}: {error}"
    return None if same(found, other) else f"{name} holds {_brief(found)} instead of {_brief(other)}"


def _cell(value: Any) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError):
        return "" if value is None else _day(str(value))


def _picture(content: bytes, wanted: Picture, name: str) -> str | None:
    if wanted.kind == "svg":
        return None if b"<svg" in content and content.count(b"<path") > 3 else f"{name} is no drawing"
    if wanted.kind == "pdf":
        return None if content.startswith(b"%PDF") and content.rstrip().endswith(b"%%EOF") else f"{name} is no PDF"
    if not content.startswith(b"\x89PNG\r\n\x1a\n"):
        return f"{name} is no PNG"
    size = struct.unpack_from(">II", content, 16)
    if wanted.size is not None and tuple(size) != wanted.size:
        return f"{name} has {size} pixels instead of {wanted.size}"
    return f"{name} is blank" if is_blank(content) else None


def is_blank(png: bytes) -> bool:
    """Return whether a picture has nothing on it."""
    at, packed = 8, b""
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        if png[at + 4 : at + 8] == b"IDAT":
            packed += png[at + 8 : at + 8 + length]
        at += length + 12
    return len(set(zlib.decompress(packed))) <= _WHITE


def _brief(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 200 else f"{text[:200]}…"
