"""Helpers that reach files: long contents travel in parts that each fit a call, and come together as they were."""

from __future__ import annotations

import base64
import random

import pytest

from sealab.sandbox.guest_api import hosted
from sealab.sandbox.guest_api.hosted import parts_of
from sealab.sandbox.wire import frames

PIECES = ("a", "é", "\x00", "\U0001f600", "\n", "line after line\n", " ", "[", "[EMAIL_abcdefghjk]")


@pytest.mark.parametrize("piece", PIECES)
def test_a_long_text_is_cut_into_parts_that_fit_a_call_and_lose_nothing(piece):
    text = piece * (2_000_000 // len(piece))
    parts = list(parts_of(text, "utf-8"))
    assert "".join(part for part, _ in parts) == text
    assert [last for _, last in parts] == [False] * (len(parts) - 1) + [True]
    for part, _ in parts:
        call = {"t": "call", "name": "write_file", "args": {"filename": "f" * 200, "content": part, "last": 0}}
        assert frames.encode(call, bytes_max=frames.CALL_BYTES_MAX)
    assert len(parts) <= 4


@pytest.mark.parametrize("between", ["", " ", "\n", "x" * 50, "." * 500])
def test_no_token_is_cut_in_two(between):
    token = "[EMAIL_ADDRESS_abcdefghjk]"
    text = random.Random(7).randbytes(5).hex() + (token + between) * (2_000_000 // len(token + between))
    assert sum(part.count(token) for part, _ in parts_of(text, "utf-8")) == text.count(token)


def test_base64_is_cut_between_whole_groups():
    data = bytes(range(256)) * 30_000
    parts = list(parts_of(base64.b64encode(data).decode(), "base64"))
    assert len(parts) > 1
    assert b"".join(base64.b64decode(part, validate=True) for part, _ in parts) == data


def test_what_fits_is_one_call(monkeypatch):
    calls = []
    monkeypatch.setattr(hosted.GUEST, "call_host", lambda name, arguments: calls.append((name, arguments)))
    hosted.write_file("a", b"abc")
    hosted.write_file("b", "abc")
    assert calls == [
        ("write_file", {"filename": "a", "content": "YWJj", "encoding": "base64"}),
        ("write_file", {"filename": "b", "content": "abc", "encoding": "utf-8"}),
    ]
