"""`asyncio` on the guest's own loop. Tasks, locks and time-outs are the real ones."""

from __future__ import annotations

import asyncio
from asyncio import coroutines, format_helpers
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any, ParamSpec, Self, TypeVar

from ....guest.type_flags import replace_method
from ... import event_loop, green_threads

__all__ = ["Runner", "create_task", "get_event_loop", "new_event_loop", "run", "set_event_loop", "to_thread"]

P = ParamSpec("P")
T = TypeVar("T")


class _Policy:
    """Gives what asks outside of a running loop (`asyncio.Future()`) a loop of the guest's kind.

    Not of the class that Python has for it, which is deprecated from 3.14 on.
    """

    def get_event_loop(self) -> asyncio.AbstractEventLoop:
        """Return the loop that `get_event_loop` of this module gives."""
        return get_event_loop()


def keep_loops() -> None:
    """Let nothing in this process make a loop that has descriptors, threads or processes."""
    asyncio.events.__dict__["_event_loop_policy"] = _Policy()  # `set_event_loop_policy` warns from Python 3.14 on


def keep_paths() -> None:
    """Let the text of a task or a handle show of a file of the host its name alone."""
    source: Callable[[object], tuple[str, int] | None] = vars(format_helpers)["_get_function_source"]
    described: Callable[[object], str] = vars(coroutines)["_format_coroutine"]

    def named(function: object) -> tuple[str, int] | None:
        found = source(function)
        return found and (_file_name(found[0]), found[1])

    def shown(coroutine: object) -> str:
        text = described(coroutine)
        code = getattr(coroutine, "cr_code", None) or getattr(coroutine, "gi_code", None)
        return text.replace(code.co_filename, _file_name(code.co_filename)) if type(code) is CodeType else text

    vars(format_helpers)["_get_function_source"] = named
    vars(coroutines)["_format_coroutine"] = shown


class _Callback:
    """A callable of a class of the code's own, which is compared in Python: C holds neither of two that it compares."""

    __slots__ = ("_call",)

    def __init__(self, call: Callable[[object], object]) -> None:
        self._call = call

    def __call__(self, future: object, /) -> object:
        return self._call(future)

    def __eq__(self, other: object) -> bool:
        return bool(self._call == (other._call if type(other) is _Callback else other))

    __hash__ = None  # type: ignore[assignment]  # nothing asks for it

    def __repr__(self) -> str:
        return repr(self._call)


_COMPARED_BY_IDENTITY = frozenset({FunctionType, BuiltinFunctionType, partial})


def hold_callbacks() -> None:
    """Let futures hold the callbacks that they compare."""
    for cls in (asyncio.Future, asyncio.Task):
        replace_method(cls, "add_done_callback", _adding(cls.add_done_callback))
        replace_method(cls, "remove_done_callback", _removing(cls.remove_done_callback))


def _adding(add: Callable[..., None]) -> Callable[..., None]:
    def add_done_callback(self: Any, callback: Any, /, **options: Any) -> None:
        add(self, _compared(callback), **options)

    return add_done_callback


def _removing(remove: Callable[..., int]) -> Callable[..., int]:
    def remove_done_callback(self: Any, callback: Any, /) -> int:
        return remove(self, _compared(callback))

    return remove_done_callback


def _compared(callback: Any) -> Any:
    function = callback.__func__ if type(callback) is MethodType else callback
    return callback if type(function) in _COMPARED_BY_IDENTITY else _Callback(callback)


def _file_name(path: str) -> str:
    return path.rpartition("/")[2] if path.startswith("/") else path


_current: list[event_loop.GuestLoop] = []
"""The loop that `get_event_loop` gives while none runs, if it was asked for or set."""


def run(main: Coroutine[Any, Any, T], *, debug: bool | None = None, loop_factory: object = None) -> T:  # noqa: ARG001 - Python's own signature
    """Run a coroutine to its end and return its value. Raises RuntimeError where a loop is running already."""
    return event_loop.run(main)


def get_event_loop() -> asyncio.AbstractEventLoop:
    """Return the running loop, else the one that was set, else a new one."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        if not _current or _current[0].is_closed():
            _current[:] = [event_loop.new_loop()]
        return _current[0]


def create_task(coro: Coroutine[Any, Any, T], **options: Any) -> asyncio.Task[T]:
    """Run a coroutine beside the others; at the top level, where no loop runs yet, at the end of the program."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        if green_threads.current() is not green_threads.main():
            coro.close()
            raise
        loop = get_event_loop()
    return loop.create_task(coro, **options)


def finish() -> None:
    """Run the tasks that were made where no loop ran. Raises what one of them raised."""
    if _current:
        event_loop.finish(_current[0])


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a new loop."""
    return event_loop.new_loop()


def set_event_loop(loop: asyncio.AbstractEventLoop | None) -> None:
    """Make `loop` the one that `get_event_loop` gives while none runs."""
    if loop is not None and not isinstance(loop, event_loop.GuestLoop):
        raise TypeError(f"a loop made by new_event_loop() was expected, got {type(loop).__name__!r}")
    _current[:] = [] if loop is None else [loop]


async def to_thread(func: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `func` in a thread of its own, in a copy of the context, and return what it returns."""
    call = partial(copy_context().run, func, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(None, call)


class Runner:
    """Runs several coroutines, one after another, on one loop."""

    __slots__ = ("__dict__", "__weakref__", "_loop")

    def __init__(self, *, debug: bool | None = None, loop_factory: object = None) -> None:  # noqa: ARG002 - Python's own signature
        self._loop = event_loop.new_loop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def run(self, coro: Coroutine[Any, Any, T], *, context: object = None) -> T:  # noqa: ARG002 - Python's own signature
        """Run one coroutine and return its value."""
        return self._loop.run_until_complete(coro)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Return the loop."""
        return self._loop

    def close(self) -> None:
        """Cancel what is pending and close the loop."""
        self._loop.close()
