"""Programs as models write them by habit give what CPython gives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..guest_code import run

ROWS = Path(__file__).resolve().parents[2] / "data" / "habits" / "programs.jsonl"


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=row["id"]) for row in map(json.loads, ROWS.read_text().splitlines())]
)
def test_a_program_written_by_habit_gives_what_cpython_gives(row):
    ran = run(row["code"])
    assert ran.output.rstrip() == row["expect"]["stdout"].rstrip()
    if row["expect"]["result"] is not None:
        assert json.loads(json.dumps(ran.value)) == row["expect"]["result"]
