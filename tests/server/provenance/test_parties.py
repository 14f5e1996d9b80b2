"""Which arguments name a party, a place or a sum: by their names, their schemas and the forms of their values."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sealab.server.governance.provenance.parties import identifying


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("recipient", "US133000000121212121212"),
        ("to", "anna"),
        ("user_email", "anna"),
        ("cc", ["anna"]),
        ("amount", 12.5),
        ("totalAmount", 12),
        ("accountNumber", "a"),
        ("fileid", "7"),
        ("fileId", 7),
        ("path", "notes"),
        ("city", "Bern"),
        ("permission", "rw"),
        ("sql", "DELETE FROM t"),
        ("x", "anna.meier@example.org"),
        ("x", "Anna Meier <anna.meier@example.org>"),
        ("body", "www.secure-systems-252.com"),
        ("body", "https://example.org/a?b=c"),
        ("x", "DE89 3704 0044 0532 0130 00"),
        ("x", "+41 44 668 18 00"),
        ("x", "/etc/passwd"),
        ("x", "owner/repo"),
        ("x", "€ 1'200.00"),
        ("x", "1200 EUR"),
        ("x", "5b8f4c0e-3c9d-4f21-8d7e-0f6a0e2f7c11"),
        ("x", {"inner": {"recipient": "anna"}}),
        ("x", ["hello there", "anna@example.org"]),
        ("x", {"anna@example.org": "writer"}),
        ("x", [{"anna@example.org, bob@example.org": None}]),
        ("isAdmin", True),
        ("permissions_public", False),
        ("x", {"inner": {"grant_access": True}}),
        ("data", ' {"inner": [{"to": "anna"}]}'),
        ("x", {"data": '["hello", {"to": "anna"}]'}),
        ("x", json.loads('{"v": ' * 20 + '{"to": "anna"}' + "}" * 20)),
    ],
)
def test_what_names_a_party_a_place_or_a_sum(name: str, value: Any) -> None:
    assert identifying(name, {}, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("body", "Dear Anna, we meet at noon. Write to me@example.org."),
        ("email_body", "Hello"),
        ("file_content", '{"to": "anna"}'),
        ("data", '{"hello": "there"}'),
        ("data", "[" * 2_000),
        ("subject", "Rent for May"),
        ("title", "Fix the build"),
        ("line", "12"),
        ("number", 3),
        ("left", 1),
        ("date", "2026-11-30"),
        ("start_time", "2026-11-30 12:00"),
        ("recipient", None),
        ("recipient", ""),
        ("shared", True),
        ("x", {"text": "hello there"}),
        ("x", {"hello there": 1, "Good-bye": "then"}),
        ("x", {"shared": True, "to": False}),
        ("x", ["hello", "there"]),
    ],
)
def test_what_names_none(name: str, value: Any) -> None:
    assert not identifying(name, {}, value)


def test_a_schema_says_it_at_any_depth_and_in_alternatives() -> None:
    assert identifying("x", {"type": "string", "format": "uri"}, "a")
    assert identifying("x", {"anyOf": [{"type": "string", "format": "email"}, {"type": "null"}]}, "a")
    assert identifying("x", {"items": {"type": "string", "format": "hostname"}}, ["a"])
    assert identifying("x", {"properties": {"y": {"format": "uuid"}}}, {"y": "a"})


def test_what_cannot_be_looked_at_whole_counts() -> None:
    assert identifying("x", {}, ["a b"] * 20_001)
    assert not identifying("x", {}, ["a b"] * 1_000)


@pytest.mark.parametrize(
    "text", ["1 " * 1_000, "a" * 2_000, "a." * 1_000, "a@" * 1_000, "<" * 2_000, "a/" * 1_000, "::" * 1_000]
)
def test_a_text_that_is_made_to_take_long_is_judged_at_once(text: str) -> None:
    from time import process_time

    began = process_time()
    for _ in range(20):
        identifying("x", {}, text)
    assert process_time() - began < 0.5
