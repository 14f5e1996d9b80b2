"""A grid is its text, each cell below its own heading; and which values stand together in one record."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.sandbox.job import Json
from sealab.server.privacy.token_texts import Span
from sealab.server.privacy.tokens import grids
from sealab.server.privacy.tokens.grids import grid_of, table_grid, whole_rows
from sealab.server.privacy.tokens.known_values import KnownValues
from sealab.server.privacy.tokens.parts import part_of
from sealab.server.privacy.tokens.records import records_in
from sealab.server.privacy.tokens.sheets import sheet_of

cells = st.one_of(st.text("ab ,;\"'\n|é漢0", max_size=8), st.text(max_size=5))
leaf_values = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8))


@pytest.fixture(autouse=True)
def short_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "LEAST_CHARS", 1)
    monkeypatch.setattr(grids, "_LEAST_ROWS", 2)


@given(rows=st.lists(st.lists(cells, min_size=1, max_size=4), max_size=8))
def test_a_table_is_its_text_and_its_cells_are_those_of_the_csv_module(rows: list[list[str]]) -> None:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    grid = table_grid(out.getvalue(), ",", ["a", "b", "c"])
    assert grid.text() == out.getvalue()
    if any("\r" in cell for row in rows for cell in row):
        return
    columns = [[column.says(source) for source in grid.sources(column)] for column in grid.columns]
    assert [list(row) for row in zip(*columns, strict=True)] == [row for row in rows if len(row) == 3]
    assert len(grid.odd) == sum(len(row) != 3 and (any(row) or row == [""]) for row in rows)


@given(
    records=st.lists(
        st.dictionaries(
            st.sampled_from(["name", "mail", "a b", 'q"']), leaf_values | st.lists(leaf_values, max_size=3)
        ),
        min_size=3,
        max_size=8,
    ),
    spaced=st.booleans(),
)
def test_lines_of_json_are_their_text_and_no_leaf_is_missed(records: list[dict[str, object]], spaced: bool) -> None:
    separators = (", ", ": ") if spaced else (",", ":")
    text = "".join(json.dumps(record, separators=separators, ensure_ascii=False) + "\n" for record in records)
    grid = grid_of(text)
    if grid is None:
        return
    assert grid.text() == text
    seen = [column.says(source) for column in grid.columns for source in grid.sources(column)]
    seen += [grid.odd_text(row) for row in grid.odd]
    for record in records:
        for value in record.values():
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, str):
                    assert any(each == one or json.dumps(each, ensure_ascii=False) in one for one in seen)


def test_cells_are_below_their_own_keys() -> None:
    text = (
        '{"name": "Jane", "to": [{"mail": "x"}, 7]}\n' * 3
        + "not json\n"
        + '{"name": "Eva", "to": [{"mail": "y"}, 8]}\n'
    )
    grid = grid_of(text)
    assert grid is not None
    assert {column.path: grid.sources(column) for column in grid.columns} == {
        ("name",): ['"Jane"'] * 3 + ['"Eva"'],
        ("to", "0", "mail"): ['"x"'] * 3 + ['"y"'],
        ("to", "1"): ["7"] * 3 + ["8"],
    }
    assert grid.headings == ("name", "to", "mail")
    assert [grid.odd_text(row) for row in grid.odd] == ["not json\n"]


@pytest.mark.parametrize(
    "text",
    [
        "Jane Roe,jane@corp.example\n" * 30,
        "one line",
        "name\n" + "Jane\n" * 30,
        "name,name\n" + "Jane,Roe\n" * 30,
        "name,mail\n" + "a sentence, with commas, and more\n" * 30,
        "[\n" + ' {"a": 1},\n' * 30,
    ],
)
def test_other_texts_are_no_grid(text: str) -> None:
    assert grid_of(text) is None


def test_a_table_is_cut_between_rows_and_not_within_quotes() -> None:
    assert whole_rows('a,b\nc,"d\ne') == len("a,b\n")
    assert whole_rows('a,b\nc,"d\ne"\nf') == len('a,b\nc,"d\ne"\n')
    assert whole_rows('"no end\nat all') == 0


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
