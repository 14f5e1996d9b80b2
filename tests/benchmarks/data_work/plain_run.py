"""Runs one program as plain CPython does, and says what it showed: the other side of the comparison.

    PYTHON plain_run.py PROGRAM ANSWER

PYTHON is the interpreter that sealab runs full Python with. The program runs in the current folder; ANSWER becomes JSON:
its last value, the number of figures shown, the error, and when the program ended by the monotonic clock. Turning values
into JSON comes after that. This file stands alone: it is run by another environment.
"""

from __future__ import annotations

import ast
import io
import json
import math
import sys
import time
import traceback
from pathlib import Path

SHOWN = [0]


def main() -> None:
    program, answer = sys.argv[1:3]
    source = Path(program).read_text(encoding="utf-8")
    sys.path.insert(0, ".")
    tree = ast.parse(source)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    names: dict = {"__name__": "__main__", "display": print}
    value, error = None, None
    sys.meta_path.insert(0, _Watch())
    try:
        exec(compile(tree, "<program>", "exec"), names)
        if last is not None:
            value = eval(compile(last, "<program>", "eval"), names)
        _show_open()
    except Exception as failed:
        error = f"{type(failed).__name__}: {failed}"
        traceback.print_exc()
    ended = time.monotonic()
    sys.stdout.flush()
    if "result" in names:
        value = names["result"]
    told = {"ended": ended, "error": error, "shown": SHOWN[0], "result": _plain(value)}
    with open(answer, "w", encoding="utf-8") as file:
        json.dump(told, file)


class _Watch:
    """Has `show` draw what is open, once matplotlib is there."""

    def find_spec(self, name: str, *_where: object) -> None:
        if name == "matplotlib.pyplot":
            sys.meta_path.remove(self)
            import matplotlib.pyplot as plt

            plt.switch_backend("agg")
            plt.show = lambda *_arguments, **_options: _show_open()


def _show_open() -> None:
    if "matplotlib.pyplot" not in sys.modules:
        return
    pyplot = sys.modules["matplotlib.pyplot"]
    for number in pyplot.get_fignums():
        pyplot.figure(number).savefig(io.BytesIO(), format="png")
        SHOWN[0] += 1
    pyplot.close("all")


def _plain(value: object) -> object:
    """Return a value as JSON, with labels."""
    kind = type(value).__module__.partition(".")[0]
    if isinstance(value, float) and math.isnan(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value.item() if kind == "numpy" else value
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if kind == "numpy":
        return _plain(value.tolist())
    if kind == "pandas":
        return _pandas(value)
    if kind == "polars":
        return {"columns": value.columns, "index": None, "data": [_plain(row) for row in value.rows()]}
    return str(value)


def _pandas(value) -> object:
    import pandas as pd

    if value is pd.NaT or value is pd.NA:
        return None
    if isinstance(value, pd.DataFrame):
        return {
            "columns": [_plain(each) for each in value.columns],
            "index": [_plain(each) for each in value.index],
            "data": [_plain(list(row)) for row in value.itertuples(index=False, name=None)],
        }
    if isinstance(value, pd.Series):
        return {"index": [_plain(each) for each in value.index], "data": [_plain(each) for each in value]}
    return str(value)


if __name__ == "__main__":
    main()
