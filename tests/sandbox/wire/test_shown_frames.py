"""What a child says of tables, captions, displayed values and variables is taken only in its exact form."""

from __future__ import annotations

import pytest

from sealab.sandbox.errors import FrameError
from sealab.sandbox.job import Column, Held, Json, Table
from sealab.sandbox.wire.shown_frames import captions_of, displayed_of, held_of, tables_of

COLUMN = Column("n", "int64", 1, is_index=True)
TABLE = Table("result", "pandas.DataFrame", (3, 1), (COLUMN,), 0, 3, "tables/a.parquet", "pd.read_parquet(…)")
HELD = Held("df", "DataFrame", 800, "100 rows x 1 columns")


def table(**changed: Json) -> list[Json]:
    """Return a table as it comes from the wire, where tuples are lists."""
    told = dict(TABLE.to_json())
    return [{**told, "shape": [3, 1], "columns": [dict(told["columns"][0])], **changed}]  # type: ignore[index,arg-type,call-overload]


def test_what_a_worker_sends_comes_out_as_it_was() -> None:
    assert tables_of(table()) == (TABLE,)
    assert held_of([dict(HELD.to_json())]) == (HELD,)
    assert captions_of(["a", "b"], 2) == ("a", "b")
    assert displayed_of([1, {"a": None}]) == [1, {"a": None}]


def test_what_is_left_out_is_empty() -> None:
    assert (tables_of(None), held_of(None), captions_of(None, 2), displayed_of(None)) == ((), (), (), None)


@pytest.mark.parametrize(
    "changed",
    [
        {"place": None},
        {"place": "x" * 1001},
        {"kind": 1},
        {"shape": "3"},
        {"shape": [-1]},
        {"shape": [1.5]},
        {"shape": [True]},
        {"shape": [1] * 65},
        {"columns": [{"name": "a"}]},
        {"columns": [[]] * 101},
        {"columns_left_out": None},
        {"shown": 1 << 63},
        {"file": 5},
        {"read_with": ["x"]},
        {"more": 1},
    ],
)
def test_a_table_in_any_other_form_is_refused(changed: dict[str, Json]) -> None:
    with pytest.raises(FrameError):
        tables_of(table(**changed))


@pytest.mark.parametrize("value", ["x", {}, [1], [{}], [{"name": "a"}] * 21])
def test_variables_and_tables_in_any_other_form_are_refused(value: Json) -> None:
    with pytest.raises(FrameError):
        held_of(value)
    with pytest.raises(FrameError):
        tables_of(value)


def test_each_figure_has_one_caption_or_none_has_any() -> None:
    with pytest.raises(FrameError, match="one caption for each figure"):
        captions_of(["a"], 2)
    for wrong in (["a", "b", "c"], [1, 2], ["x" * 2001, ""]):
        with pytest.raises(FrameError):
            captions_of(wrong, 2)


def test_no_more_values_than_a_report_shows_are_taken() -> None:
    assert len(displayed_of([0] * 50) or ()) == 50  # type: ignore[arg-type]
    for wrong in ([0] * 51, {"a": 1}, "text"):
        with pytest.raises(FrameError):
            displayed_of(wrong)
