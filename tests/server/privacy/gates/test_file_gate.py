"""Under `PRIVACY=auto` no file shows a value: not as base64, in any encoding, and in no form that code makes of it."""

from __future__ import annotations

import base64
import itertools
import json
import random
import re
from pathlib import Path

import pytest
from mcp.types import CallToolResult, TextContent

from sealab.server.privacy.reading.any_bytes import text_of_any

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
