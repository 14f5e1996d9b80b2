"""What values of numpy and pandas are in plain Python, so that a report of full Python can show them.

Neither library is imported here: a value of theirs exists only where the code imported it.
"""

from __future__ import annotations

import sys
from typing import Any

MEMBERS_MAX = 900_000
"""Of a larger array or table not even the beginning is converted: its `repr` says more."""


def plainly(value: object) -> object:
    """Return the value in plain Python, or the value itself where there is none. Raises what a library raises.

    A scalar becomes a number or text, an array nested lists, a table a list of its rows as objects, with its index
    unless that only counts them; a column becomes an object by index, an index a list.
    """
    numpy, pandas = sys.modules.get("numpy"), sys.modules.get("pandas")
    if pandas is not None:
        if isinstance(value, pandas.DataFrame):
            return _with_index(value).to_dict("records") if value.size <= MEMBERS_MAX else value
        if isinstance(value, pandas.Series):
            return value.to_dict() if value.size <= MEMBERS_MAX and value.index.is_unique else value
        if isinstance(value, pandas.Index):
            return value.tolist() if value.size <= MEMBERS_MAX else value
        if value is pandas.NaT or value is pandas.NA:
            return None
    if numpy is not None:
        if isinstance(value, numpy.datetime64 | numpy.timedelta64):
            return str(value)
        if isinstance(value, numpy.generic):
            plain = value.item()
            return value if isinstance(plain, numpy.generic) else plain
        if isinstance(value, numpy.ndarray) and value.dtype.kind in "biufUSO":
            return value.tolist() if value.size <= MEMBERS_MAX else value
    return value


def _with_index(table: Any) -> Any:
    """Return a table whose first columns are its index, where that says more than the number of the row."""
    index = table.index
    if list(index.names) == [None] and index.dtype.kind in "iu" and list(index) == list(range(len(index))):
        return table
    taken = {str(column) for column in table.columns}
    names: list[str] = []
    for number, name in enumerate(index.names):
        said = str(name) if name is not None else "index" if len(index.names) == 1 else f"index_{number}"
        while said in taken:
            said += "_"
        taken.add(said)
        names.append(said)
    return table.reset_index(names=names)
