"""Under `PRIVACY=auto` no file shows a value: not as base64, in any encoding, and in no form that code makes of it."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import itertools
import json
import lzma
import random
import re
import sqlite3
import zipfile
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from mcp.types import CallToolResult, TextContent

from sealab.server.privacy.reading.encodings import text_of_any

from ...conftest import Caller, in_process_server

LINE = "customer {number}, email jane.roe{number}@example-corp.com, iban DE89370400440532013000\n"
SMALL = LINE.format(number=1)
LARGE = "".join(LINE.format(number=number) for number in range(14_000))
FOREIGN = "клиент Анна, почта anna.petrova@example-corp.com, счёт DE89370400440532013000\n"
PEOPLE = [
    {"customer_name": "Jürgen Brannock", "email": "j.brannock77@corp.example", "phone": "+49 30 1234567", "birth_date": "1980-03-05"},
    {"customer_name": "Ottilie Kessling", "email": "ottilie@corp.example", "phone": "+1 202-555-0143", "birth_date": "1971-11-30"},
]  # fmt: skip
AUTO = {"SEALAB_PRIVACY": "auto", "SEALAB_PRIVACY_MODE": "fast"}
WIDE = ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]


async def write(caller: Caller, data: bytes) -> None:
    content = base64.b64encode(data).decode()
    answer = await caller.call("write_workspace_file", filename="f", content=content, encoding="base64")
    assert not answer.is_error, answer


async def read(caller: Caller, **where: int) -> str:
    return text_of(await caller.call("read_workspace_file", filename="f", encoding="base64", **where))


def text_of(answer: CallToolResult) -> str:
    assert isinstance(answer.content[0], TextContent)
    return answer.content[0].text


def made(home: Path) -> None:
    (home / "workspace").mkdir()
    (home / "workspace" / "people.json").write_text(json.dumps(PEOPLE), encoding="utf-8")


caller = in_process_server(AUTO, made)


async def test_a_small_text_in_any_encoding_is_refused_as_base64(caller: Caller) -> None:
    for encoding in ("utf-8", *WIDE):
        for text in (SMALL, FOREIGN):
            for before in (b"", b"\x01\xff\x00"):
                await write(caller, before + text.encode(encoding))
                told = await read(caller)
                assert "holds personal data" in told, (encoding, text, before)
    await write(caller, ("café " + SMALL).encode("cp1252"))
    assert "holds personal data" in await read(caller)


@pytest.mark.parametrize("encoding", ["utf-8", *WIDE])
async def test_no_slice_of_a_large_text_is_shown_as_base64(caller: Caller, encoding: str) -> None:
    await write(caller, LARGE.encode(encoding))
    for offset in (0, 200_000, 200_001, 200_002, 200_003, 1_000_001):
        assert "holds personal data" in await read(caller, offset=offset, limit=200), offset


async def test_no_text_is_shown_with_something_personal_between_nul_characters(caller: Caller) -> None:
    for text in (SMALL.encode("utf-16-le"), FOREIGN.replace("a", "a\0").encode()):
        await write(caller, text)
        for encoding in ("utf-8", "base64"):
            answer = await caller.call("read_workspace_file", filename="f", encoding=encoding)
            assert answer.is_error
            assert "holds personal data" in text_of(answer)
    await write(caller, "größe: 7\0".encode() * 10)
    answer = await caller.told("read_workspace_file", filename="f")
    assert answer["content"] == "größe: 7\0" * 10


def test_a_text_is_found_wherever_it_begins() -> None:
    text = "клиент Анна Петрова, Jörg Müller\n" * 20
    for encoding, before in itertools.product(("utf-8", *WIDE), (b"", b"\xff", b"\xff\xfe\xfd")):
        assert text in text_of_any(before + text.encode(encoding)), (encoding, before)
        assert text in text_of_any(before + text.replace("а", "а\0").encode(encoding)), (encoding, before)


async def test_bytes_that_are_no_text_are_shown(caller: Caller) -> None:
    data = random.Random(7).randbytes(40_000)
    for shown in (data, "größe: ".encode("utf-16") * 100):
        await write(caller, shown)
        answer = await caller.call("read_workspace_file", filename="f", encoding="base64")
        assert not answer.is_error, answer
        assert answer.structured_content is not None
        start = base64.b64decode(answer.structured_content["content"])
        assert start
        assert shown.startswith(start)


TOKEN = re.compile(r"\[[A-Z_]+_([0-9a-hjkmnp-tv-z]{6})[0-9a-hjkmnp-tv-z]{4}\]")
SHOWS = """
import base64, json
from datetime import date
from urllib.parse import quote
lines = []
for row in json.loads(read_file("people.json")):
    name, day = row["customer_name"], date.fromisoformat(row["birth_date"])
    first, last = name.split()
    lines += [name.lower(), f"{first}_{last}".lower(), first + last, f"{first[0]}. {last}", f"{last}, {first}", quote(name),
              base64.b64encode(name.encode()).decode(), f"invoice_{first[0].lower()}{last.lower()}_7.pdf",
              row["email"].split("@")[0], day.strftime("%d.%m.%Y"), day.strftime("%B %d, %Y"),
              "".join(c for c in row["phone"] if c.isdigit())]
"""


def forms() -> list[str]:
    names: dict[str, object] = {"read_file": lambda _name: json.dumps(PEOPLE)}
    exec(SHOWS, names)
    lines = names["lines"]
    assert isinstance(lines, list)
    return lines


async def test_no_form_of_what_a_file_gave_is_shown(caller: Caller) -> None:
    expected = [form.removeprefix("invoice_").removesuffix("_7.pdf") for form in forms()]
    for way in ("print('\\n'.join(lines))", "result = lines", "raise ValueError('\\n'.join(lines))"):
        seen = (await caller.call("execute_code", code=SHOWS + way)).model_dump_json()
        assert [form for form in expected if form in seen] == [], way


async def test_what_the_model_writes_of_it_is_the_form_that_stood_there(caller: Caller) -> None:
    said = str((await caller.run(SHOWS + "print('\\n'.join(lines))"))["output"])
    await caller.call("write_workspace_file", filename="forms.txt", content=said)
    assert (caller.home / "workspace" / "forms.txt").read_text(encoding="utf-8").splitlines() == forms()
    begins = [TOKEN.findall(line)[0] for line in said.splitlines()]
    half = len(begins) // 2
    assert len({*begins[:8]}) == len({*begins[half : half + 8]}) == 1, "each person's name in eight forms"
    assert begins[0] != begins[half]


CUSTOMERS = json.dumps([{"customer_name": "Friedlind Ostermark", "email": "f.ostermark@corp.example"}])
PLAIN = json.dumps([{"size": n, "colour": "red"} for n in range(9)])


def zipped(text: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.json", text)
    return file.getvalue()


def sheet(text: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
        cells = f'<row><c r="A1" t="inlineStr"><is><t>note</t></is></c></row><row><c r="A2" t="inlineStr"><is><t>{text}</t></is></c></row>'
        archive.writestr("xl/worksheets/sheet1.xml", cells)
    return file.getvalue()


def database(text: str) -> bytes:
    with closing(sqlite3.connect(":memory:")) as made:
        made.execute("PRAGMA page_size = 512")
        made.execute("CREATE TABLE t (a)")
        made.execute("INSERT INTO t VALUES (?)", (text,))
        made.commit()
        return made.serialize()


PACKERS: dict[str, Callable[[str], bytes]] = {
    "gz": lambda text: gzip.compress(text.encode()),
    "bz2": lambda text: bz2.compress(text.encode()),
    "xz": lambda text: lzma.compress(text.encode()),
    "zlib": lambda text: zlib.compress(text.encode()),
    "gz of gz": lambda text: gzip.compress(gzip.compress(text.encode())),
    "zip": zipped,
    "xlsx": sheet,
    "SQLite": database,
}
WRITTEN: dict[str, Callable[[bytes], str]] = {
    "base64": lambda data: base64.b64encode(data).decode(),
    "lines of base64": lambda data: base64.encodebytes(data).decode(),
    "URL-safe": lambda data: base64.urlsafe_b64encode(data).decode(),
    "data URI": lambda data: "data:application/gzip;base64," + base64.b64encode(data).decode(),
    "hex": bytes.hex,
    "repr": repr,
    "JSON of base64": lambda data: json.dumps({"blob": base64.encodebytes(data).decode()}),
}


async def hidden(caller: Caller, *texts: str) -> list[str]:
    """Return what the model sees of texts that code prints."""
    (caller.home / "workspace" / "shown.json").write_text(json.dumps(texts))
    report = await caller.run("import json\nprint(*json.loads(read_file('shown.json')), sep='\\n---\\n', end='')")
    return str(report["output"]).split("\n---\n")


@pytest.mark.parametrize("packer", PACKERS)
async def test_a_packed_file_leaves_in_no_writing_with_something_personal_in_it(caller: Caller, packer: str) -> None:
    data, plain = PACKERS[packer](CUSTOMERS), PACKERS[packer](PLAIN)
    texts = [f"x {written(each)} y" for written in WRITTEN.values() for each in (data, plain)]
    seen = await hidden(caller, *texts)
    for name, first, shown, second in zip(WRITTEN, seen[::2], seen[1::2], texts[1::2], strict=True):
        note = r"x .{0,45}\[\d+ bytes withheld: they hold [A-Z_, ]*EMAIL[A-Z_, ]*\]\S*\s+y"
        assert re.fullmatch(note, first), (name, first[:200])
        assert shown == second, name


async def test_bytes_that_cannot_be_unpacked_are_withheld_and_that_is_said(caller: Caller) -> None:
    locked = bytearray(zipped(CUSTOMERS))
    locked[6] |= 1  # as if it had a password
    locked[locked.rindex(b"PK\x01\x02") + 8] |= 1
    unread = [
        gzip.compress(PLAIN.encode())[:-9],
        bytes(locked),
        b"\x28\xb5\x2f\xfd" + bytes(40),
        b"PAR1" + bytes(40),
        gzip.compress(gzip.compress(gzip.compress(gzip.compress(b"x")))),
    ]
    assert await hidden(caller, *(base64.b64encode(data).decode() for data in unread)) == [
        f"[{len(data)} bytes withheld: they could not be looked through for personal data]" for data in unread
    ]


async def test_a_packed_file_is_not_read_as_base64_with_something_personal_in_it(caller: Caller) -> None:
    for pack in (PACKERS["gz"], PACKERS["xlsx"], PACKERS["SQLite"]):
        await write(caller, pack(CUSTOMERS))
        for where in ({}, {"offset": 30, "limit": 40}):
            assert "holds personal data" in await read(caller, **where)
        await write(caller, pack(PLAIN))
        answer = await caller.call("read_workspace_file", filename="f", encoding="base64")
        assert not answer.is_error, answer
    await write(caller, base64.b64encode(gzip.compress(CUSTOMERS.encode())))
    answer = await caller.call("read_workspace_file", filename="f")
    assert answer.is_error
    assert "may not be shown" in text_of(answer)


async def test_what_base64_says_is_looked_through_as_any_text_is(caller: Caller) -> None:
    said = "call Ms Friedlind at +49 30 7654321 or write to friedlind.o@corp.example, card 4539 1488 0343 6467"
    for written in (base64.b64encode(said.encode()).decode(), said.encode().hex()):
        seen = (
            await caller.call("execute_code", code=f"print({written[:40]!r} + {written[40:]!r})")
        ).structured_content
        assert seen is not None
        assert {"EMAIL", "CARD"} <= seen["privacy"]["hidden"].keys()
        assert written[60:] not in str(seen["output"])


async def test_what_code_was_given_is_not_shown_within_other_bytes(caller: Caller) -> None:
    code = """
import base64, json, pickle
people = json.loads(read_file("people.json"))
print(base64.b64encode(b"\\x80\\x04\\x95" + bytes(30) + "".join(map(str, people)).encode("utf-16-le") + b"\\xff" * 300).decode())
"""
    report = await caller.run(code.replace(", pickle", ""))
    assert re.fullmatch(r"\[\d+ bytes withheld: they hold [A-Z_, ]+\]\n", str(report["output"]))


async def test_a_packed_file_leaves_no_more_as_a_key_than_as_a_value(caller: Caller) -> None:
    keys = [base64.b64encode(gzip.compress((CUSTOMERS + end).encode())).decode() for end in ("", "x")]
    (caller.home / "workspace" / "keys.json").write_text(json.dumps(keys))
    code = "import json\nkeys = json.loads(read_file('keys.json'))\nresult = "
    (key,) = (await caller.run(f"{code}{{'a': {{keys[0]: 1}}}}"))["result"]["a"]
    assert re.fullmatch(r"\[\d+ bytes withheld: they hold [A-Z_, ]*EMAIL[A-Z_, ]*\]", key)
    report = await caller.run(f"{code}dict.fromkeys(keys, 1)")
    assert keys[0] not in str(report)
    assert keys[1] not in str(report)
