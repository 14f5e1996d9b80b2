"""Tables are shown in the form with the fewest tokens, and everything else as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.server.runs.compact import STRING_CHARS_MAX, in_form, shortened, why_json, written
from sealab.server.settings import OutputFormat

PEOPLE: list[Any] = [{"id": number, "name": f"Person {number}", "mail": None} for number in range(50)]
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()


def test_a_table_names_its_keys_once() -> None:
    text = written(PEOPLE, OutputFormat.AUTO)
    assert text.splitlines()[:2] == ["[50]{id,name,mail}:", "  0,Person 0,null"]
    assert len(text) < len(json.dumps(PEOPLE)) / 2


def test_an_object_of_tables_and_plain_values_is_written_so_too() -> None:
    value: Any = {"total": 50, "next page": None, "rows": PEOPLE[:2]}
    assert written(value, OutputFormat.TOON) == (
        'total: 50\n"next page": null\nrows[2]{id,name,mail}:\n  0,Person 0,null\n  1,Person 1,null'
    )


@pytest.mark.parametrize(
    "value",
    [
        {"a": 1, "b": "x"},
        [1, 2, 3],
        [{"a": 1}],
        [{"a": 1}, {"b": 1}],
        [{"a": 1, "tags": ["x"]}, {"a": 2, "tags": []}],
        {"rows": PEOPLE, "more": {"deep": 1}},
        "text",
        None,
        [],
        [{}, {}],
    ],
)
@pytest.mark.parametrize("form", list(OutputFormat))
def test_what_is_no_table_stays_json_in_every_form(value: Any, form: OutputFormat) -> None:
    assert written(value, form) == json.dumps(value)
    assert in_form(value, form) == value


def test_a_form_that_was_asked_for_is_the_result_and_auto_leaves_it_as_it_is() -> None:
    assert in_form(PEOPLE, OutputFormat.AUTO) == in_form(PEOPLE, OutputFormat.JSON) == PEOPLE
    assert in_form(PEOPLE, OutputFormat.TOON) == written(PEOPLE, OutputFormat.TOON)
    markdown = str(in_form(PEOPLE, OutputFormat.MARKDOWN))
    assert markdown.splitlines()[:3] == ["|id|name|mail|", "|-|-|-|", "|0|Person 0|null|"]


def test_cells_of_markdown_cannot_break_the_table() -> None:
    assert written([{"a": "x|y\nz\\"}, {"a": 1.5}], OutputFormat.MARKDOWN) == "|a|\n|-|\n|x\\|y<br>z\\\\|\n|1.5|"


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("", '""'),
        ("true", '"true"'),
        ("12", '"12"'),
        ("-", '"-"'),
        ("05", '"05"'),
        (" a", '" a"'),
        ("a,b", '"a,b"'),
        ("a:b", '"a:b"'),
        ('a\n"b\\', '"a\\n\\"b\\\\"'),
        ("Ärger", "Ärger"),
        (1e-7, "0.0000001"),
        (2.0, "2"),
        (True, "true"),
    ],
)
def test_a_cell_can_only_be_read_as_what_it_was(value: Any, cell: str) -> None:
    assert written([{"a": value}, {"a": 1}], OutputFormat.TOON).splitlines()[1] == f"  {cell}"


@given(st.lists(st.fixed_dictionaries({"a": PLAIN, "b c": PLAIN}), min_size=2, max_size=5))
def test_each_row_is_one_line(rows: list[Any]) -> None:
    lines = written(rows, OutputFormat.TOON).split("\n")
    assert sorted(lines[0].removeprefix(f"[{len(rows)}]{{").removesuffix("}:").split(",")) == ['"b c"', "a"]
    assert len(lines) == len(rows) + 1


def test_long_texts_inside_records_are_shortened_with_what_is_missing() -> None:
    rows: Any = {"rows": [{"id": 1, "body": "x" * 1000, "deep": {"text": "y" * 1000}}], "text": "z" * 1000}
    short: Any = shortened(rows)
    assert short["rows"][0]["body"] == "x" * STRING_CHARS_MAX + "… [800 more characters]"
    assert short["text"] == "z" * 1000


@pytest.mark.parametrize(
    ("value", "form", "is_told"),
    [
        ([{"a": 1, "b": [1]}, {"a": 2, "b": []}], OutputFormat.MARKDOWN, True),
        ([{"a": 1, "b": [1]}, {"a": 2, "b": []}], OutputFormat.TOON, True),
        ({"rows": [{"a": 1}, {"a": 2}]}, OutputFormat.MARKDOWN, True),
        ({"rows": [{"a": 1}, {"a": 2}]}, OutputFormat.TOON, False),
        ([{"a": 1}, {"a": 2}], OutputFormat.MARKDOWN, False),
        ([{"a": [1]}, {"a": [2]}], OutputFormat.AUTO, False),
        ([{"a": [1]}, {"a": [2]}], OutputFormat.JSON, False),
        (7, OutputFormat.MARKDOWN, False),
        ("text", OutputFormat.MARKDOWN, False),
        ([], OutputFormat.TOON, False),
    ],
)
def test_a_result_that_stays_json_although_a_table_was_asked_for_says_why(
    value: Any, form: OutputFormat, is_told: bool
) -> None:
    assert (why_json(value, form) is not None) is is_told
    if is_told:
        assert json.loads(written(value, form)) == value
