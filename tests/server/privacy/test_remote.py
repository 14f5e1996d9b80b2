"""The detector in a reader: as the one in this process, killed at its deadline, and judged in what it sends."""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, cast

import pytest

from sealab.sandbox.confine import default_level
from sealab.sandbox.host.readers import Readers
from sealab.sandbox.job import Json
from sealab.sandbox.wire.zygote_config import ReaderCode
from sealab.server.base.errors import HostWorkRefused, PrivacyFailed
from sealab.server.base.host_work import Account, charged_to
from sealab.server.base.settings import Settings
from sealab.server.privacy.detection.detect import Mode
from sealab.server.privacy.detection.findings import DetectionFailed, KeyedText
from sealab.server.privacy.detectors import Detectors
from sealab.server.privacy.reading.file_texts import texts_of
from sealab.server.privacy.remote import RemoteDetector, texts_of_file

from .found import in_mode

PHONES = ("tel" + "'" * 48 + "     212-555-0123\n") * 8
"""The expression for words before a number takes minutes for these 560 characters, or did."""
LOG = "\n".join(f"2026-11-24 10:{n // 60:02}:{n % 60:02} INFO login jane.roe{n}@corp.example ok" for n in range(1500))
OPTIONS: Json = {"mode": "balanced", "types": [], "patterns": {"TICKET": r"TCK-\d{6}"}, "file": None}


@pytest.fixture(scope="module")
def readers() -> Iterator[Readers]:
    with Readers(ReaderCode("sealab.server.privacy.reader", OPTIONS), required=default_level()) as made:
        yield made


@pytest.fixture(scope="module")
def remote(readers: Readers) -> RemoteDetector:
    return RemoteDetector(lambda: readers, "shown")


def test_it_finds_what_the_detector_of_this_process_finds(remote: RemoteDetector) -> None:
    leaves = [
        KeyedText(("customer", "name"), "Jane Roe"),
        KeyedText((), "write to jane.roe@corp.example, SSN: 536-90-4399"),
        KeyedText((), "Zo\u00eb \ud800 and \U0001f600 then jo@corp.example"),
        KeyedText((), "Yesterday Thessaly Delacroix asked whether her order had been shipped."),
    ]
    assert len(remote.find_leaves(leaves)[3]) == 1
    assert remote.find_leaves(leaves) == in_mode(Mode.BALANCED).find_leaves(leaves)
    cells = [f"p{number}@corp.example" for number in range(300)] + ["none", "Jane Roe"]
    assert remote.find_column(("mail",), cells, ["mail"]) == in_mode(Mode.BALANCED).find_column(
        ("mail",), cells, ["mail"]
    )
    assert remote.find_leaves([KeyedText((), LOG)]) == in_mode(Mode.BALANCED).find_leaves([KeyedText((), LOG)])
    assert [each.type for each in remote.find_leaves([KeyedText((), "see TCK-123456")])[0]] == ["TICKET"]


def test_a_text_without_end_is_ended_with_the_time_of_its_run_and_the_next_one_is_read(remote: RemoteDetector) -> None:
    account = Account(0.5)
    with charged_to(account), pytest.raises(HostWorkRefused):
        remote.find_leaves([KeyedText((), PHONES * 40)])
    assert account.spent_seconds > 0.3
    assert remote.find_leaves([KeyedText((), "jo@corp.example")])[0]


@pytest.mark.parametrize(
    "sent",
    [
        [[[0, 99, "EMAIL", 1.0]]],
        [[[-1, 2, "EMAIL", 1.0]]],
        [[[2, 2, "EMAIL", 1.0]]],
        [[[0, True, "EMAIL", 1.0]]],
        [[[0, 2, "an email", 1.0]]],
        [[[0, 2, "EMAIL", float("nan")]]],
        [[[0, 2, "EMAIL"]]],
        [[], []],
        [],
        {"a": 1},
        None,
    ],
)
def test_an_answer_that_cannot_be_right_withholds_the_text(sent: Any) -> None:
    class Taken:
        """Readers that were taken over."""

        def read(self, *_asked: object, **_options: object) -> bytes:
            return json.dumps(sent).encode()

    taken = RemoteDetector(lambda: cast("Readers", Taken()), "shown")
    with pytest.raises(DetectionFailed, match="cannot be right"):
        taken.find_leaves([KeyedText((), "some text")])


def workbook(strings: str) -> bytes:
    """Return a spreadsheet of which only the texts are there."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
        archive.writestr("xl/sharedStrings.xml", strings)
        archive.writestr("xl/worksheets/sheet1.xml", "<row><c r='A1'></c></row>")
    return file.getvalue()


def database(statement: str, rows: int) -> bytes:
    """Return a database with a table, and rows of which some columns are computed when they are read."""
    with closing(sqlite3.connect(":memory:")) as made:
        made.execute("CREATE TABLE t (a)")
        made.executemany("INSERT INTO t VALUES (?)", [(number,) for number in range(rows)])
        made.execute("PRAGMA writable_schema = ON")
        made.execute("UPDATE sqlite_master SET sql = ?", (statement,))
        made.commit()
        return made.serialize()


def test_a_file_is_read_by_a_reader_as_in_this_process(readers: Readers) -> None:
    strings = workbook("<sst><si><t>Jane Roe</t></si></sst>")
    for data in (
        strings,
        b"name;mail\nJane;jo@corp.example\n",
        gzip.compress(b"packed"),
        database("CREATE TABLE t (a)", 3),
    ):
        told = list(texts_of_file(lambda: readers, io.BytesIO(data)))
        assert told == json.loads(json.dumps(list(texts_of(io.BytesIO(data), len(data))))) != []


@pytest.mark.parametrize(
    "data",
    [
        workbook("<t " * 60_000 + "</si>"),
        b"a" * 10_000 + b" \xe9t\xe9 " * 10,
        gzip.compress(b"a" * 20_000 + b" \xe9t\xe9 " * 10),
        gzip.compress(b"a line of it\n" * 5_000_000),
        database("CREATE TABLE t (a, b AS (instr(hex(zeroblob(2e7)), hex(zeroblob(1e7)) || '1')))", 2),
        database("CREATE TABLE t (a, b AS (hex(zeroblob(2e8))))", 40),
        database("CREATE\nVIRTUAL TABLE t USING fts5(a)", 1),
    ],
    ids=["spreadsheet", "latin", "packed latin", "no end", "one step of a database", "large values", "odd statement"],
)
def test_a_hostile_file_ends_with_the_time_and_memory_of_a_reader(readers: Readers, data: bytes) -> None:
    with charged_to(Account(0.3)), suppress(PrivacyFailed, HostWorkRefused):
        assert all(text is not None for text in texts_of_file(lambda: readers, io.BytesIO(data)))
    assert list(texts_of_file(lambda: readers, io.BytesIO(b"next"))) == ["next"]


def test_the_setting_says_how_many_readers_compute_at_once(tmp_path: Path) -> None:
    with closing(Detectors(Settings(readers=1), tmp_path)) as detectors:
        running = detectors._running()
        assert (running._at_once, running._of_one_caller) == (1, 1)
        assert detectors.text_of_any(b"a text") == "a text"
