"""Has pandas do once, in the zygote, what most programs do: what it imports and compiles at first use is there then."""

from __future__ import annotations

import io
import sys
from contextlib import suppress

_TEXT = "key,number,day\nx,1,2020-01-01\ny,2.5,2020-01-02\nx,,2020-01-03\n"


def sum_by_group() -> None:
    """Add up a table of three rows: each page of memory that this writes to is then a worker's own."""
    pandas = sys.modules.get("pandas")
    if pandas is None:
        return
    with suppress(Exception):
        frame = pandas.read_csv(io.StringIO(_TEXT))
        frame.groupby("key")["number"].sum().to_dict()
        repr(frame)


def rehearse() -> None:
    """Work on a table of three rows, where pandas was imported; whatever fails concerns the code that does it."""
    pandas = sys.modules.get("pandas")
    if pandas is None:
        return
    with suppress(Exception):
        frame = pandas.read_csv(io.StringIO(_TEXT), parse_dates=["day"])
        frame.groupby("key")["number"].agg(["sum", "mean"])
        frame.groupby("key").number.sum().to_dict()
        frame.merge(frame, on="key").sort_values("day")
        frame.pivot_table(index="key", values="number", columns="day")
        frame.set_index("day").resample("D").number.sum()
        frame[frame.number > 1].assign(upper=frame.key.str.upper())
        frame.isna().sum()
        frame.describe()
        frame.value_counts()
        frame.to_csv(io.StringIO())
        frame.to_dict("records")
        frame.info(buf=io.StringIO())
        repr(frame)
