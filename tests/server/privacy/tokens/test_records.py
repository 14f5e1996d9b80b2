"""Which values stand together in one record."""

from __future__ import annotations

import json

import pytest

from sealab.sandbox.job import Json
from sealab.server.privacy.token_texts import Span
from sealab.server.privacy.tokens.answer_parts import sheet_of
from sealab.server.privacy.tokens.known_values import KnownValues
from sealab.server.privacy.tokens.parts import part_of
from sealab.server.privacy.tokens.records import records_in

PEOPLE = ["Ann Krug", "ann@a.example", "Halle Ost", "Bea Veit", "bea@b.example", "Cora Lenz"]


def linked(value: Json) -> set[tuple[str, ...]]:
    """Return what is linked in a value in which the words above are hidden, each by itself as its token."""
    sheet = sheet_of(part_of(value))
    known = KnownValues()
    for position, leaf in enumerate(sheet.leaves):
        starts = [(leaf.text.find(person), person) for person in PEOPLE]
        spans = [Span(at, at + len(person), "PERSON") for at, person in sorted(starts) if at >= 0]
        sheet.mark_spans(position, spans, known)
    sheet.name({value: value.text for value in sheet.unnamed()})
    return set(records_in([sheet]))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([{"name": "Ann Krug", "mail": "ann@a.example"}, {"name": "Bea Veit"}], {("Ann Krug", "ann@a.example")}),
        ({"name": "Ann Krug", "home": {"city": "Halle Ost"}}, {("Ann Krug", "Halle Ost")}),
        ({"name": "Ann Krug", "mails": ["ann@a.example"]}, {("Ann Krug", "ann@a.example")}),
        ({"7": {"name": "Ann Krug"}, "8": {"name": "Bea Veit"}}, set()),
        ({"lead": "Cora Lenz", "team": [{"name": "Ann Krug"}, {"name": "Bea Veit"}]}, set()),
        ([["Ann Krug", "ann@a.example"], ["Bea Veit", "bea@b.example"]], {("Ann Krug", "ann@a.example"), ("Bea Veit", "bea@b.example")}),
        ("n,m\nAnn Krug,ann@a.example\nBea Veit,bea@b.example\n", {("Ann Krug", "ann@a.example"), ("Bea Veit", "bea@b.example")}),
        ("who=Ann Krug mail=ann@a.example\nwho=Bea Veit\n", {("Ann Krug", "ann@a.example")}),
        ("Ann Krug met Bea Veit and Cora Lenz.", set()),
        ({"body": "Ann Krug wrote.\nBea Veit answered.", "mail": "ann@a.example"}, set()),
        ({"Ann Krug": {"mail": "ann@a.example"}}, set()),
    ],
)  # fmt: skip
def test_what_stands_in_one_object_row_or_line_of_fields_is_linked(value: Json, expected: set[tuple[str, ...]]) -> None:
    assert linked(value) == expected
    if not isinstance(value, str):
        assert linked(json.dumps(value)) == expected
