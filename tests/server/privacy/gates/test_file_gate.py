"""Under `PRIVACY=auto` base64 shows no text with something personal in it, whatever encoding the text is in."""

from __future__ import annotations

import base64
import itertools
import random

import pytest
from mcp.types import CallToolResult, TextContent

from sealab.server.privacy.gates.file_gate import _reading

from ...conftest import Caller, in_process_server

LINE = "customer {number}, email jane.roe{number}@example-corp.com, iban DE89370400440532013000\n"
SMALL = LINE.format(number=1)
LARGE = "".join(LINE.format(number=number) for number in range(14_000))
FOREIGN = "клиент Анна, почта anna.petrova@example-corp.com, счёт DE89370400440532013000\n"
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


caller = in_process_server({"SEALAB_PRIVACY": "auto", "SEALAB_PRIVACY_MODE": "fast"})


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
        assert text in _reading(before + text.encode(encoding)), (encoding, before)
        assert text in _reading(before + text.replace("а", "а\0").encode(encoding)), (encoding, before)


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
