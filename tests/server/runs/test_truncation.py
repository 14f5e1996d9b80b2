"""What a model sees is short: tables in the form of fewest tokens, bounded, and with what was left out and how to read it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.server.base.settings import OutputFormat
from sealab.server.use_cases.runs.compact import STRING_CHARS_MAX, in_form, shortened, why_json, written
from sealab.server.use_cases.runs.truncation import CUTS_MAX, fit

from ..conftest import in_this_process


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def reader(file: str, where: str) -> str:
    name = f".runs/r1/{file}"
    return f'read_file("{name}", {where}) in code, or read_workspace_file(filename="{name}", {where})'


def result_reader(offset: int) -> str:
    name = ".runs/r1/result.json"
    slice_of = f'read_workspace_file(filename="{name}", offset={offset}, limit=990)'
    return f'json.loads(read_file("{name}")) in code, or {slice_of}'


def test_what_fits_is_left_alone():
    fitted = fit({"a": [1, "x"]}, "out\n", max_chars=20, run_id="r1")
    assert (fitted.result, fitted.output) == ({"a": [1, "x"]}, "out\n")
    assert fitted.truncated() == {}
    assert fitted.whole == {}


def test_the_output_keeps_its_start_and_its_end_and_names_the_gap():
    lines = "".join(f"line {number}\n" for number in range(10_000))
    fitted = fit(None, lines, max_chars=1000, run_id="r1")
    assert len(fitted.output) <= 1000
    assert fitted.output.startswith("line 0\nline 1\n")
    assert fitted.output.endswith("line 9998\nline 9999\n")
    cut = fitted.truncated()["output"]
    assert cut["total"] == len(lines)
    left_out = int(re.search(r"\[(\d+) characters left out", fitted.output)[1])
    assert cut["shown"] + left_out == len(lines)
    assert fitted.whole["output.txt"] == lines
    head, _, tail = fitted.output.partition("\n… [")
    assert cut["read_with"] == reader("output.txt", f"offset={len(head)}, limit=490")
    assert lines.startswith(head)
    assert lines.endswith(tail.partition("] …\n")[2])


def test_what_is_cut_of_the_standard_error_is_named_and_kept_whole_too():
    fitted = fit(None, "x" * 10_000, stderr="y" * 20_000, max_chars=1000, run_id="r1")
    for shown, name, total in ((fitted.output, "output", 10_000), (fitted.stderr, "stderr", 20_000)):
        assert len(shown) <= 500
        assert fitted.truncated()[name]["total"] == total
        assert str(fitted.truncated()[name]["read_with"]).startswith(f'read_file(".runs/r1/{name}.txt"')
    assert (fitted.whole["output.txt"], fitted.whole["stderr.txt"]) == ("x" * 10_000, "y" * 20_000)


def test_a_result_an_output_and_calls_that_were_not_made_share_the_room():
    rows = list(range(10_000))
    calls = [{"tool": "up.put", "arguments": {"n": number}} for number in range(1000)]
    fitted = fit(rows, "x" * 10_000, max_chars=3000, run_id="r1", dry_run=calls)
    sizes = [len(compact(fitted.result)), len(fitted.output), len(compact(fitted.dry_run))]
    assert sum(sizes) <= 3000
    assert min(sizes) > 900
    beside = fit({"n": 1}, "x" * 10_000, max_chars=3000, run_id="r1")
    assert beside.result == {"n": 1}
    assert len(beside.output) > 2900


def test_what_a_text_shows_a_part_of_is_kept_whole_though_nothing_is_cut():
    fitted = fit(["x" * 5000], "", max_chars=20_000, run_id="r1")
    assert (fitted.truncated(), json.loads(fitted.whole["result.json"])) == ({}, ["x" * 5000])


def test_a_list_keeps_its_first_items_whole():
    rows = [{"id": number, "name": "x" * 10} for number in range(10_000)]
    fitted = fit(rows, "", max_chars=2000, run_id="r1")
    assert fitted.result == rows[: len(fitted.result)]
    assert 1800 < len(compact(fitted.result)) <= 2000
    cut = fitted.truncated()["result"]
    assert cut["total"] == len(compact(rows))
    assert cut["shown"] == len(compact(fitted.result))
    assert cut["note"] == f"characters of JSON: the first {len(fitted.result)} of 10000 items"
    shown = len(compact(fitted.result)) - len("]")
    assert cut["read_with"] == result_reader(shown)
    assert fitted.whole["result.json"][:shown] == compact(fitted.result)[:shown]
    assert json.loads(fitted.whole["result.json"]) == rows


def test_a_small_value_beside_a_large_one_is_kept():
    result = {"rows": [{"id": number} for number in range(10_000)], "total": 10_000, "note": "ok"}
    fitted = fit(result, "", max_chars=2000, run_id="r1")
    assert (fitted.result["total"], fitted.result["note"]) == (10_000, "ok")
    rows = fitted.result["rows"]
    assert rows == result["rows"][: len(rows)]
    assert len(compact(fitted.result)) > 1800
    assert fitted.truncated()["result.rows"] == {
        "shown": len(rows),
        "total": 10_000,
        "read_with": result_reader(len(compact({"rows": rows})) - len("]}")),
        "note": "items",
    }


def test_large_values_share_the_room():
    fitted = fit({"a": "x" * 50_000, "b": "y" * 50_000}, "", max_chars=2000, run_id="r1")
    assert len(fitted.result["a"]) > 900
    assert len(fitted.result["b"]) > 900
    cuts = fitted.truncated()
    assert cuts["result.a"]["total"] == cuts["result.b"]["total"] == 50_000
    assert cuts["result.a"]["note"] == "characters"
    assert fitted.result["a"] == "x" * cuts["result.a"]["shown"] + "…"


def test_many_cut_places_are_counted():
    fitted = fit([["x" * 5000] * 5] * 5, "", max_chars=2000, run_id="r1")
    inner = [what for what in fitted.truncated() if what != "result"]
    assert len(inner) == CUTS_MAX
    assert re.search(r"; \d+ more places are cut$", fitted.truncated()["result"]["note"])


def test_a_number_too_long_to_show_becomes_null_and_is_named():
    fitted = fit({"n": 10**4000, "m": 1}, "", max_chars=2000, run_id="r1")
    assert fitted.result == {"n": None, "m": 1}
    assert fitted.truncated()["result.n"]["note"] == "digits of a number"
    assert fitted.truncated()["result.n"]["total"] == 4001


def test_notes_on_values_take_the_same_shape_and_join_a_cut():
    notes = {"result.price": "nan became null", "output": "stopped at 16 MiB"}
    fitted = fit({"price": None}, "x" * 3000, max_chars=1000, run_id="r1", notes=notes)
    assert fitted.truncated()["result.price"] == {"note": "nan became null"}
    output = fitted.truncated()["output"]
    assert output["total"] == 3000
    assert output["note"] == "stopped at 16 MiB"


def test_what_is_kept_nowhere_names_no_reader():
    fitted = fit(["x" * 5000], "y" * 5000, max_chars=1000)
    assert {cut["read_with"] for cut in fitted.truncated().values()} == {None}
    assert "read_workspace_file" not in fitted.output


@pytest.mark.parametrize("text", ["\x01" * 10_000, "é" * 10_000, '"' * 10_000, "\U0001f600" * 10_000])
def test_text_that_json_escapes_keeps_to_the_bound_and_uses_it(text):
    fitted = fit(text, "", max_chars=1000)
    assert 990 <= len(compact(fitted.result)) <= 1000


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=10), inner, max_size=8),
    max_leaves=40,
).map(lambda value: json.loads(json.dumps(value)))


@given(json_values, st.integers(20, 400))
def test_any_result_is_cut_to_the_bound_the_same_way_each_time_and_never_silently(value, max_chars):
    fitted = fit(value, "", max_chars=max_chars)
    assert len(compact(fitted.result)) <= max_chars
    assert fitted == fit(value, "", max_chars=max_chars)
    assert (fitted.result == value) == ("result" not in fitted.cuts)
    assert (fitted.whole.get("result.json") is None) == (len(compact(value)) <= max_chars)
    assert kept_of(fitted.result, value)


@given(st.text(), st.integers(200, 400))
def test_any_output_is_cut_to_the_bound(output, max_chars):
    output *= 50
    fitted = fit(None, output, max_chars=max_chars, run_id="r1")
    assert len(fitted.output) <= max_chars
    assert (fitted.output == output) == ("output" not in fitted.cuts)


def kept_of(shown: object, whole: object) -> bool:
    """Return whether `shown` is `whole` with only ends of lists, objects, texts, or long numbers, taken away."""
    if isinstance(shown, list) and isinstance(whole, list):
        return len(shown) <= len(whole) and all(map(kept_of, shown, whole))
    if isinstance(shown, dict) and isinstance(whole, dict):
        return list(shown) == list(whole)[: len(shown)] and all(kept_of(shown[key], whole[key]) for key in shown)
    if isinstance(shown, str) and isinstance(whole, str):
        return shown == whole or whole.startswith(shown.removesuffix("…"))
    return shown == whole or shown is None


def test_calls_that_a_dry_run_did_not_make_are_bounded_too():
    calls = [{"tool": f"up.put{number}", "arguments": {"text": "x" * 80}} for number in range(100)]
    fitted = fit(None, "", max_chars=1000, run_id="r1", dry_run=calls)
    assert len(compact(fitted.dry_run)) <= 1000
    assert list(fitted.dry_run) == calls[: len(fitted.dry_run)]
    assert json.loads(fitted.whole["dry_run.json"]) == calls
    assert fitted.truncated()["dry_run"] == {
        "shown": len(fitted.dry_run),
        "total": 100,
        "read_with": reader("dry_run.json", "offset=0, limit=490"),
        "note": "calls",
    }
    few = fit(None, "", max_chars=1000, dry_run=calls[:2])
    assert (few.dry_run, few.whole.get("dry_run.json"), few.truncated()) == (calls[:2], None, {})


def test_of_one_call_with_long_arguments_these_are_cut():
    call = {"tool": "up.put", "arguments": {"text": "x" * 5000, "to": "a"}}
    fitted = fit(None, "", max_chars=1000, run_id="r1", dry_run=[call])
    (shown,) = fitted.dry_run
    assert len(compact(fitted.dry_run)) <= 1000
    assert (shown["tool"], shown["arguments"]["to"]) == ("up.put", "a")
    assert "arguments of the first" in fitted.truncated()["dry_run"]["note"]


async def test_a_text_counts_what_the_whole_result_has(tmp_path: Path) -> None:
    async with in_this_process(tmp_path) as caller:
        for code, whole in (
            ("[{'t': 'x' * 100, 'i': i} for i in range(400)]", "of 400 items"),
            ("'x' * 100_000", "of 100000 characters"),
        ):
            answer = await caller.call("execute_code", code=code)
            assert whole in answer.content[0].text  # type: ignore[union-attr]  # a text


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
