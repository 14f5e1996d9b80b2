"""What a child says of tables, captions, displayed values and variables is taken only in its exact form."""

from __future__ import annotations

import base64
import json
import struct
from dataclasses import asdict

import pytest

from sealab.sandbox.errors import FrameError
from sealab.sandbox.job import Column, Json, Outcome, SessionVariable, Table
from sealab.sandbox.wire.report_frame import outcome_of

COLUMN = Column("n", "int64", 1, is_index=True)
TABLE = Table("result", "pandas.DataFrame", (3, 1), (COLUMN,), 0, 3, "tables/a.parquet", "pd.read_parquet(…)")
HELD = SessionVariable("df", "DataFrame", 800, "100 rows x 1 columns")
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 1, 1)).decode()


def told(**beside: Json) -> Outcome:
    return outcome_of({"status": "ok", "result": None, "error": None, "notes": {}, **beside})


def table(**changed: Json) -> list[Json]:
    """Return a table as it comes from the wire, where tuples are lists."""
    return [{**json.loads(json.dumps(asdict(TABLE))), **changed}]


def test_what_a_worker_sends_comes_out_as_it_was() -> None:
    outcome = told(
        tables=table(),
        held=[asdict(HELD)],
        figures=[PNG, PNG],
        captions=["a", "b"],
        displayed=[1, {"a": None}],
    )
    assert (outcome.tables, outcome.held, outcome.captions) == ((TABLE,), (HELD,), ("a", "b"))
    assert outcome.displayed == [1, {"a": None}]


def test_what_is_left_out_or_null_is_empty() -> None:
    assert told() == told(tables=None, held=None, captions=None, displayed=None, figures=None, refusal=None)
    assert (told().tables, told().held, told().captions, told().displayed) == ((), (), (), None)


@pytest.mark.parametrize(
    "changed",
    [
        {"place": None},
        {"place": "x" * 1001},
        {"kind": 1},
        {"shape": "3"},
        {"shape": None},
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
        told(tables=table(**changed))


@pytest.mark.parametrize("value", ["x", {}, [1], [{}], [{"name": "a"}] * 21])
@pytest.mark.parametrize("name", ["tables", "held"])
def test_variables_and_tables_in_any_other_form_are_refused(name: str, value: Json) -> None:
    with pytest.raises(FrameError):
        told(**{name: value})


def test_each_figure_has_one_caption_or_none_has_any() -> None:
    with pytest.raises(FrameError, match="one caption for each figure"):
        told(figures=[PNG, PNG], captions=["a"])
    for wrong in (["a", "b", "c"], [1, 2], ["x" * 2001, ""]):
        with pytest.raises(FrameError):
            told(figures=[PNG, PNG], captions=wrong)


def test_no_more_values_than_a_report_shows_are_taken() -> None:
    assert len(told(displayed=[0] * 50).displayed or ()) == 50  # type: ignore[arg-type]
    for wrong in ([0] * 51, {"a": 1}, "text"):
        with pytest.raises(FrameError):
            told(displayed=wrong)
