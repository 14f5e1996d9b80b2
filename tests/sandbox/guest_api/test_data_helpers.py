"""The data helpers do what the contract says, refuse bad input in words, and never cut silently."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.sandbox.guest_api.data_helpers import (
    aggregate_stats,
    filter_by_field,
    format_output,
    helpers,
    summarize_list,
)

ROWS = [{"name": "a", "price": 2, "n": 1.5}, {"name": "b", "price": 4}, {"name": "a", "price": None}]


def test_the_helpers_are_found_by_their_names():
    assert helpers() == {
        "summarize_list": summarize_list,
        "filter_by_field": filter_by_field,
        "aggregate_stats": aggregate_stats,
        "format_output": format_output,
    }


def test_a_list_is_summarised_by_its_count_and_first_items():
    assert summarize_list(range(100), limit=2) == {"count": 100, "sample": [0, 1]}
    assert len(summarize_list(range(100))["sample"]) == 10
    assert summarize_list([]) == {"count": 0, "sample": []}
    assert summarize_list((n for n in range(3)), 0) == {"count": 3, "sample": []}


def test_rows_are_filtered_by_the_value_of_a_field():
    assert filter_by_field(ROWS, "name", "a") == [ROWS[0], ROWS[2]]
    assert filter_by_field(ROWS, "n", 1.5) == [ROWS[0]]
    assert filter_by_field(ROWS, "price", None) == [ROWS[2]]
    assert filter_by_field(ROWS, "missing", None) == []


def test_statistics_are_of_the_rows_where_the_field_is_a_number():
    assert aggregate_stats(ROWS) == {
        "count": 3,
        "price_sum": 6,
        "price_avg": 3.0,
        "price_min": 2,
        "price_max": 4,
        "n_sum": 1.5,
        "n_avg": 1.5,
        "n_min": 1.5,
        "n_max": 1.5,
    }
    assert aggregate_stats(ROWS, ["price"]).keys() == {"count", "price_sum", "price_avg", "price_min", "price_max"}
    assert aggregate_stats(ROWS, ["name"]) == {"count": 3}
    assert aggregate_stats([]) == {"count": 0}
    assert aggregate_stats([{"flag": True}]) == {"count": 1}


def test_text_is_formatted_as_it_is_and_data_as_indented_json():
    assert format_output("a\nb") == "a\nb"
    assert json.loads(format_output(ROWS)) == ROWS
    assert "\n" in format_output(ROWS)
    assert format_output({"é": {1, 2}.__class__}) == '{\n  "é": "<class \'set\'>"\n}'


def test_what_json_cannot_hold_is_still_formatted():
    cycle: list[object] = []
    cycle.append(cycle)
    assert format_output(cycle) == "[[...]]"
    assert format_output({(1, 2): 3}) == "{(1, 2): 3}"


def test_formatting_says_how_much_it_cut():
    text = format_output("x" * 100, max_chars=30)
    assert text == "x" * 30 + "\n… (70 of 100 characters left out)"
    assert format_output("x" * 30, max_chars=30) == "x" * 30
    assert "4000 of 9000" in format_output("y" * 9000)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: summarize_list("text"), TypeError, "summarize_list takes a list of items, not a str"),
        (lambda: summarize_list({"a": 1}), TypeError, "not a dict"),
        (lambda: summarize_list(5), TypeError, "not a int"),
        (lambda: summarize_list([1], -1), ValueError, "limit is -1"),
        (lambda: summarize_list([1], "2"), TypeError, "limit is a whole number, not a str"),
        (lambda: summarize_list([1], True), TypeError, "limit is a whole number, not a bool"),
        (lambda: filter_by_field([1], "a", 1), TypeError, "item 0 is a int"),
        (lambda: aggregate_stats([{}, "x"]), TypeError, "item 1 is a str"),
        (lambda: aggregate_stats(ROWS, "price"), TypeError, "numeric_fields=['price']"),
        (lambda: format_output("x", max_chars=-1), ValueError, "max_chars is -1"),
    ],
)
def test_bad_input_is_refused_in_words(call, error, said):
    with pytest.raises(error) as raised:
        call()
    assert said in str(raised.value)


@given(st.lists(st.dictionaries(st.sampled_from("ab"), st.integers() | st.none() | st.text(max_size=2), max_size=2)))
def test_the_average_lies_between_the_least_and_the_most(rows):
    stats = aggregate_stats(rows)
    assert stats["count"] == len(rows)
    for field in "ab":
        numbers = [row[field] for row in rows if isinstance(row.get(field), int)]
        assert (f"{field}_sum" in stats) == bool(numbers)
        if numbers:
            assert stats[f"{field}_sum"] == sum(numbers)
            assert stats[f"{field}_min"] == min(numbers)
            assert stats[f"{field}_max"] == max(numbers)
