"""What a run is to show: the `result` that it set itself, else the value of its last expression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

_MISSING: Final = object()


def result_of(
    run: Callable[[], object], namespace: dict[str, object], beneath: dict[str, object], last_value: str
) -> object:
    """Call `run`, which runs code in `namespace`, and return its result.

    A `result` of an earlier run stays readable, from `beneath`, where names are looked up that the namespace has not;
    but it does not count. Under the name `last_value` the code leaves the value of its last expression. Whatever the
    code raises comes through.
    """
    before = namespace.pop("result", _MISSING)
    if before is not _MISSING:
        beneath["result"] = before
    try:
        run()
        return namespace.get("result", namespace.get(last_value))
    finally:
        namespace.pop(last_value, None)
        if before is not _MISSING:
            beneath.pop("result", None)
            namespace.setdefault("result", before)
