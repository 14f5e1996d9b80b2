"""What files hold is given piece by piece, also where it is packed, and what cannot be looked through is said."""

from __future__ import annotations

import gzip
import io
import sqlite3
import tarfile
import zipfile
from pathlib import Path

import pytest

from sealab.sandbox.job import Json
from sealab.server.base.errors import PrivacyFailed
from sealab.server.privacy.reading import file_texts
from sealab.server.privacy.reading.file_texts import PIECE_CHARS, texts_of

HEAD = "customer_name;n\n"


def texts(data: bytes) -> list[Json]:
    return list(texts_of(io.BytesIO(data), len(data)))


def test_a_long_text_comes_in_pieces_of_whole_lines_that_begin_with_its_first_line() -> None:
    lines = "".join(f"Ann Krug{n};{n}\n" for n in range(200_000))
    pieces = texts((HEAD + lines).encode())
    assert len(pieces) > 2
    assert all(str(piece).startswith(HEAD) and str(piece).endswith("\n") for piece in pieces)
    assert max(len(str(piece)) for piece in pieces) < 2 * PIECE_CHARS
    assert "".join(str(piece).removeprefix(HEAD) for piece in pieces) == lines


def test_an_archive_of_tar_is_read_between_its_zeros() -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        member = tarfile.TarInfo("people.csv")
        member.size = len(HEAD) * 100
        archive.addfile(member, io.BytesIO(HEAD.encode() * 100))
    assert HEAD * 99 in "".join(map(str, texts(file.getvalue())))


def test_a_zip_file_gives_names_and_members_and_passes_over_what_it_cannot_unpack() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ann.krug.txt", HEAD)
        archive.writestr("picture.png", b"\x89PNG\0\0\xff")
        archive.writestr("second.txt", HEAD * 3)
    assert texts(file.getvalue()) == [["ann.krug.txt", "picture.png", "second.txt"], HEAD, HEAD * 3]
    damaged = bytearray(file.getvalue())
    damaged[40:60] = b"\xff" * 20
    assert texts(bytes(damaged))[0] == ["ann.krug.txt", "picture.png", "second.txt"]
    assert HEAD * 3 in texts(bytes(damaged))


SHEET = """<?xml version="1.0"?><worksheet><sheetData>
<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" s="4"/><c r="C1" t="inlineStr"><is><t>mobile</t></is></c></row>
<row r="2"><c r="A2" t="s"><v>1</v></c><c r="B2"><v>7</v></c><c r="C2" t="str"><f>X()</f><v>a &amp;amp; b</v></c></row>
<row r="3"><c r="A3" t="s"><v>99</v></c><c r="C3" t="s"><v>2</v></c></row>
</sheetData></worksheet>"""
STRINGS = "<sst><si><t>customer_name</t></si><si><r><t xml:space='preserve'>Ann </t></r><r><t>Krug</t></r></si><si><t>x</t></si></sst>"


def test_rows_of_a_spreadsheet_come_under_the_headings_of_their_columns() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
        archive.writestr("xl/sharedStrings.xml", STRINGS)
        archive.writestr("xl/worksheets/sheet1.xml", SHEET)
    rows = [{"customer_name": "Ann Krug", "B": "7", "mobile": "a &amp; b"}, {"mobile": "x"}]
    assert rows in texts(file.getvalue())
    hostile = "<row>" * 200_000 + "<c r=" * 200_000 + "</c>" + "<si>" * 200_000
    assert list(file_texts.sheet_rows(hostile, file_texts.shared_strings(hostile))) == []


def test_of_what_is_packed_again_and_again_two_layers_are_looked_through() -> None:
    data = HEAD.encode()
    for _ in range(2):
        data = gzip.compress(data)
    assert texts(data) == [HEAD]
    assert texts(gzip.compress(data)) == []


def test_rows_of_a_database_come_with_their_columns_and_nothing_of_it_is_run(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as database:
        database.execute('CREATE TABLE "odd ""name" (customer_name, raw BLOB)')
        database.execute('INSERT INTO "odd ""name" VALUES (?, ?)', ("Ann Krug", "Bea Krug".encode("utf-16")))
        database.execute("CREATE VIEW told AS SELECT load_extension('evil')")
        database.execute("CREATE VIRTUAL TABLE found USING fts5(body)")
        database.execute("INSERT INTO found VALUES ('Cora Krug')")
    database.close()
    rows = texts(path.read_bytes())
    assert [{"customer_name": "Ann Krug", "raw": "Bea Krug"}] in rows
    assert "Cora Krug" in str(rows)  # in the table behind the virtual one
    with pytest.raises(PrivacyFailed, match="could not be looked through"):
        texts(path.read_bytes()[:5000])


def test_a_database_that_is_too_large_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(file_texts, "WHOLE_BYTES_MAX", 1000)
    with sqlite3.connect(tmp_path / "a.db") as database:
        database.execute("CREATE TABLE t (a)")
    database.close()
    with pytest.raises(PrivacyFailed, match="more than 1000 bytes"):
        texts((tmp_path / "a.db").read_bytes())
    with pytest.raises(PrivacyFailed, match="packed again"):
        texts(gzip.compress(gzip.compress(bytes(5000), 0)))


def test_a_zip_file_with_a_larger_directory_than_may_be_is_said_before_any_of_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(1500):
            archive.writestr(f"{number:030}", b"")
    assert len(texts(file.getvalue())) == 1
    monkeypatch.setattr(file_texts, "DIRECTORY_BYTES_MAX", 100_000)
    monkeypatch.setattr(zipfile, "ZipInfo", pytest.fail)
    with pytest.raises(PrivacyFailed, match="directory of the zip file has more than 100000 bytes"):
        texts(file.getvalue())


def test_of_bytes_to_be_shown_nothing_is_passed_over() -> None:
    def all_of(data: bytes) -> list[Json]:
        return list(texts_of(io.BytesIO(data), len(data), complete=True))

    assert "Ann Krug" in str(all_of(gzip.compress(b"\x80\x04" + "Ann Krug".encode("utf-16-le") + b"\xff\x00")))
    assert all_of(gzip.compress(HEAD.encode())) == [HEAD]
    deep = HEAD.encode()
    for _ in range(4):
        deep = gzip.compress(deep)
    for data in (gzip.compress(HEAD.encode())[:-9], deep, gzip.compress(b"PAR1" + bytes(9)), b"PK\3\4" + bytes(99)):
        with pytest.raises(PrivacyFailed, match="could not be unpacked"):
            all_of(data)
