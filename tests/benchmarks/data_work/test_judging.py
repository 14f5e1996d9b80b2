"""The tasks of `make bench-data` are what they should be, and what comes of one is judged by value."""

from __future__ import annotations

import ast
import gzip
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from .judging import Observed, judge, same
from .looking import LOOK, raw_in
from .made_data import Numbers, People
from .task import ANYTHING, Case, Drawn, Frame, Labelled, Picture, Sheets, Task, Text
from .tasks import all_tasks

tasks = cache(all_tasks)


def seen(result: object = None, output: str = "", **more) -> Observed:
    return Observed(None, result, output, more.pop("images", 0), more.pop("folder", Path("/")), **more)


def wrong(case: Case, observed: Observed) -> list[str]:
    return judge(case, observed)[0]


def case(**wanted) -> Case:
    return Case({}, "", **wanted)


def test_forty_tasks_with_names_of_their_own_say_what_must_come_of_them_and_are_valid_python() -> None:
    assert len({task.name for task in tasks()}) == len(tasks()) == 40
    for task in tasks():
        ast.parse(LOOK + task.case.program)
        wanted = task.case.result is not ANYTHING or task.case.printed or task.case.written or task.case.drawn
        assert wanted, task.name


def test_the_same_data_is_made_each_time() -> None:
    assert [task.case for task in all_tasks()] == [task.case for task in tasks()]
    assert [Numbers(1).integer(0, 9) for _ in range(3)] == [Numbers(1).integer(0, 9) for _ in range(3)]


def test_the_people_of_a_task_stand_in_no_other() -> None:
    names = Counter(task.people[n].name for task in tasks() for n in range(People.EACH))
    assert max(names.values()) == 1


def test_the_files_of_every_task_hold_somebody() -> None:
    assert [task.name for task in tasks() if not _holds_somebody(task)] == []


def _holds_somebody(task: Task) -> bool:
    held = []
    for content in task.case.files.values():
        if isinstance(content, Sheets):
            held.append(str(content.sheets))
        elif content.startswith(b"PK"):
            return True
        else:
            plain = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
            held += [plain.decode(each, "ignore") for each in ("utf-8", "utf-16")]
    return bool(raw_in(" ".join(held), task.people))


@pytest.mark.parametrize(
    ("found", "wanted", "are_same"),
    [
        (1.0000000001, 1, True),
        (1.001, 1, False),
        ((1, 2), [1, 2], True),
        ([1], [1, 2], False),
        ("2025-01-01T00:00:00", "2025-01-01", True),
        ("2025-01-01 00:00:01", "2025-01-01", False),
        (True, 1, True),
        (None, 0, False),
        ({"1": 2}, {1: 2.0}, True),
        ({"1": 2, "3": 4}, {1: 2}, False),
        ("1", 1, False),
    ],
)
def test_values_are_the_same_but_for_rounding_dates_and_kinds_of_sequences(
    found: object, wanted: object, *, are_same: bool
) -> None:
    assert same(found, wanted) is are_same


def test_a_table_is_judged_by_columns_labels_and_cells() -> None:
    wanted = case(result=Frame(["n", "sum"], [[2, 3.5], [1, 4.0]], labels=["a", "b"]))
    rows = [{"key": "a", "n": 2, "sum": 3.5}, {"key": "b", "n": 1, "sum": 4}]
    table = [{"name": "result", "index": ["key"]}]
    assert wrong(wanted, seen(rows, tables=table)) == []
    assert wrong(wanted, seen({"columns": ["n", "sum"], "index": ["a", "b"], "data": [[2, 3.5], [1, 4]]})) == []
    assert "columns" in wrong(wanted, seen(rows))[0]
    assert "labels" in wrong(wanted, seen([rows[1], rows[0]], tables=table))[0]
    assert "row 1" in wrong(wanted, seen([rows[0], {**rows[1], "n": 2}], tables=table))[0]
    assert "no table" in wrong(wanted, seen("a text"))[0]


def test_a_series_needs_its_labels_in_order() -> None:
    wanted = case(result=Labelled({"a": 1, "b": 2}))
    assert wrong(wanted, seen({"a": 1, "b": 2})) == []
    assert wrong(wanted, seen({"index": ["a", "b"], "data": [1, 2]})) == []
    assert wrong(wanted, seen({"b": 2, "a": 1})) != []
    assert wrong(wanted, seen([1, 2])) != []
    assert wrong(wanted, seen({"a": 1, "b": 3})) != []
    pairs = case(result=Labelled({("a", "x"): 1}))
    shown = [{"k": "a", "l": "x", "value": 1}]
    assert wrong(pairs, seen(shown, tables=[{"name": "result", "index": ["k", "l"]}])) == []


def test_of_a_large_table_the_size_and_the_first_rows_count() -> None:
    wanted = case(result=Frame(["a"], [[1], [2]], count=5000))
    assert wrong(wanted, seen({"rows": 5000, "columns": 1, "head": [{"a": 1}, {"a": 2}, {"a": 3}], "tail": []})) == []
    assert wrong(wanted, seen({"rows": 4999, "columns": 1, "head": [{"a": 1}, {"a": 2}], "tail": []})) != []
    assert wrong(wanted, seen({"rows": 5000, "columns": 1, "head": [{"a": 1}, {"a": 1}], "tail": []})) != []


def test_what_is_printed_is_found_in_order_as_rounded_as_it_was() -> None:
    wanted = case(printed=[1234.567, "mean", 12.3])
    assert wrong(wanted, seen(output="total 1,234.57, mean: 12.3%")) == []
    assert wrong(wanted, seen(output="mean: 12.3%, total 1,234.57")) != []
    assert wrong(wanted, seen(output="total 1,234.58, mean: 12.3%")) != []
    assert wrong(case(printed=[12]), seen(output="112")) != []


def test_written_files_are_judged_by_what_they_hold(tmp_path: Path) -> None:
    wanted = case(written={"a.csv": Text("csv", [{"n": 1, "name": "x"}]), "b.json": Text("json", {"n": 1})})
    (tmp_path / "a.csv").write_text('name,n\r\n"x",1.0\r\n')
    assert wrong(wanted, seen(folder=tmp_path)) == ["b.json is not there"]
    (tmp_path / "b.json").write_text('{"n": 2}')
    assert len(wrong(wanted, seen(folder=tmp_path))) == 1
    (tmp_path / "b.json").write_text('{"n": 1}')
    assert wrong(wanted, seen(folder=tmp_path)) == []


def test_a_picture_needs_its_size_and_something_on_it(tmp_path: Path) -> None:
    shown = Path(__file__).parents[3] / "docs" / "pictures" / "data-1.png"
    (tmp_path / "a.png").write_bytes(shown.read_bytes())
    assert wrong(case(written={"a.png": Picture(size=(800, 400))}), seen(folder=tmp_path)) == []
    assert wrong(case(written={"a.png": Picture(size=(800, 401))}), seen(folder=tmp_path)) != []
    (tmp_path / "a.png").write_bytes(b"GIF89a")
    assert wrong(case(written={"a.png": Picture()}), seen(folder=tmp_path)) != []


def test_a_caption_names_titles_labels_and_the_heights_of_bars() -> None:
    wanted = case(images=1, drawn=[Drawn("Title", y="units", bars=[3, 4])])
    assert wrong(wanted, seen(images=1, captions="title 'Title'; y 'units'; 2 bars (a 3, b 4).")) == []
    assert wrong(wanted, seen(images=1, captions="title 'Title'; y 'units'; 2 bars (a 3, b 5).")) != []
    assert wrong(wanted, seen(images=1, captions="title 'Title'; 2 bars (a 3, b 4).")) != []
    assert wrong(wanted, seen(images=1, captions="")) != []
    assert wrong(wanted, seen(images=0)) == ["0 figures shown instead of 1"]


def test_names_last_names_mails_and_phones_of_somebody_are_raw() -> None:
    people = People(5)
    assert raw_in("nothing of anybody, [EMAIL_9g5ddg3tce]", people) == []
    for value in (people[0].name.upper(), people[1].name.split()[1], people[2].email, people[3].phone):
        assert raw_in(f"row: {value};", people) != []
