"""What a run is to show: the `result` that it set itself, else the value of its last expression."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, cast

from ..guest.guest import GUEST
from .disclosure import said_by

_MISSING: Final = object()
_WORDS_CHARS_MAX: Final = 2000
_LEFT_OUT: Final = "The code ended itself, so its `result` is not shown. Let it run to its end to return one.\n"
_FUTURES: Final = (asyncio.Future, asyncio.Task, asyncio.tasks._GatheringFuture)  # type: ignore[attr-defined]
_exit_code_of = SystemExit.__dict__["code"].__get__


def result_of(
    run: Callable[[], object], namespace: dict[str, object], beneath: dict[str, object], last_value: str
) -> object:
    """Call `run`, which runs code in `namespace`, and return its result.

    A `result` of an earlier run stays readable, from `beneath`, where names are looked up that the namespace has not;
    but it does not count. Under the name `last_value` the code leaves the value of its last expression. Whatever the
    code raises comes through, but for an ordinary `SystemExit`: that is an end without a result, since what `result`
    holds by then may be of an earlier step, and standard error says so.
    """
    before = namespace.pop("result", _MISSING)
    if before is not _MISSING:
        beneath["result"] = before
    try:
        run()
        return _awaited(namespace.get("result", namespace.get(last_value)))
    except SystemExit as leaving:
        if not _is_ordinary(leaving):
            raise
        if "result" in namespace:
            GUEST.error_output(_LEFT_OUT)
        return None
    finally:
        namespace.pop(last_value, None)
        if before is not _MISSING:
            beneath.pop("result", None)
            namespace.setdefault("result", before)


def _awaited(value: object) -> object:
    """Return what a task came to that ran to its end: `asyncio.gather(…)` as the last line leaves out the `await`."""
    future = future_of(value)
    if future is None:
        return value
    done = future.done() and not future.cancelled() and future.exception() is None
    return future.result() if done else value


def future_of(value: object) -> asyncio.Future[object] | None:
    """Return the value if it is a future as asyncio makes them, and of no class of the code's own."""
    return cast("asyncio.Future[object]", value) if any(type(value) is each for each in _FUTURES) else None


def exit_text(leaving: SystemExit) -> str:
    """Return what Python writes to standard error when code ends itself with a text or another object."""
    code = _exit_code_of(leaving)
    if code is None or type(code) in {int, bool}:
        return ""
    return f"{said_by(code, str, '__str__', _WORDS_CHARS_MAX)}\n"


def _is_ordinary(leaving: SystemExit) -> bool:
    code = _exit_code_of(leaving)
    return code is None or (type(code) in {int, bool} and code == 0)
