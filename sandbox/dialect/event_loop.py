"""The event loop on which guest coroutines run: tasks, timers and one descriptor, and nothing else.

Real asyncio tasks and futures run on it. Guest code can get hold of it (`Task.get_loop` is public), so its public
surface is a security boundary: it has no executor, no subprocess, no socket, no descriptor and no file, and it takes no
stores. What it lacks of `asyncio.AbstractEventLoop` raises NotImplementedError there.
"""

from __future__ import annotations

import asyncio
import heapq
import sys
import weakref
from asyncio import events
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextvars import Context
from dataclasses import dataclass
from typing import Any, Final, NoReturn, Protocol, TypeVar, TypeVarTuple, Unpack

from ..guest import clock
from ..guest.guest import GUEST
from ..guest.host_channel import HostGone
from ..guest.type_flags import replace_method
from ..report.results import future_of
from . import green_threads
from .facades.stand_ins import contextvars_

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_TIMEOUT_MAX_SECONDS = 3600.0
_STALE_TIMERS_MIN = 100
_DEADLOCK = (
    "every task waits for something that no task is left to do (an Event, Queue, Lock or Future). "
    "Put the missing item, set the event, or wait with asyncio.wait_for(…, timeout)"
)


class Poller(Protocol):
    """Finds what has come from outside."""

    def poll(self, milliseconds: float | None = None, /) -> object:
        """Wait for something, for so long at most, and return whether there is anything."""


@dataclass(slots=True)
class _Channel:
    """The one descriptor that every loop listens to; see `set_channel`."""

    poller: Poller | None = None
    on_readable: Callable[[], None] | None = None
    waiting: Callable[[], bool] | None = None


_channel = _Channel()


def set_channel(
    poller: Poller | None,
    on_readable: Callable[[], None] | None = None,
    waiting: Callable[[], bool] | None = None,
) -> None:
    """Call `on_readable()` whenever `poller` finds something while a loop runs; None watches nothing.

    `waiting()` says whether anything is still expected from there. Where it is given and false, a program whose tasks
    all wait for one another ends with an error at once instead of running into its time limit.
    """
    _channel.poller = poller
    _channel.on_readable = on_readable
    _channel.waiting = waiting
    green_threads.set_idle(_wait_outside)


def run(coroutine: Coroutine[Any, Any, T], awaited_last: Callable[[], object] | None = None) -> T:
    """Run `coroutine` to its end on a new loop and return its value, or raise what it raised.

    Tasks that are still pending then are cancelled and waited for, but for the one that `awaited_last()` returns: that
    runs to its end too. Raises RuntimeError inside a running loop, with Python's own words, and where every task waits
    for ever.
    """
    if not asyncio.iscoroutine(coroutine):
        raise ValueError(f"a coroutine was expected, got {coroutine!r}")
    if events._get_running_loop() is not None:
        coroutine.close()
        raise RuntimeError("asyncio.run() cannot be called from a running event loop")
    loop = new_loop()
    try:
        value = loop.run_until_complete(coroutine)
        last = None if awaited_last is None else future_of(awaited_last())
        if last is not None and _loop_of(last) is loop:
            loop.run_until_complete(last)
        return value
    finally:
        loop._wind_up()


def new_loop() -> GuestLoop:
    """Return a loop that is not running yet."""
    return GuestLoop()  # type: ignore[abstract]  # what it lacks raises NotImplementedError, as meant


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A task that had not ended when its program did: the name of its coroutine, and the line that made it."""

    name: str
    line: int | None


_cancelled: list[Cancelled] = []


def take_cancelled() -> Sequence[Cancelled]:
    """Return the tasks that were cancelled with their loops since the last call."""
    taken = list(_cancelled)
    _cancelled.clear()
    return taken


def finish(loop: asyncio.AbstractEventLoop) -> None:
    """Run the tasks that were made while the loop did not run, and raise what the first of them raised."""
    tasks = sorted(asyncio.all_tasks(loop), key=asyncio.Task.get_name)
    if tasks and not loop.is_closed():
        loop.run_until_complete(asyncio.wait(tasks))
        for task in tasks:
            if not task.cancelled():
                task.result()


_new_future: Final = asyncio.Future.__new__
_initialize_future: Final[Callable[..., None]] = asyncio.Future.__init__
_loop_of: Final[Callable[..., object]] = asyncio.Future.__dict__["_loop"].__get__
_initialize_task: Final[Callable[..., None]] = asyncio.Task.__init__


def keep_contexts() -> None:
    """Let no future or task of this process hand a real context to code.

    In C, they pass a future to their loop, and to a task what it waits for. So their loop is a `GuestLoop`, and a task
    holds the stand-in for a context, which C takes as it is. A task that starts at once would need a real one: it
    starts in the next round, as it does in Python where no loop runs.
    """
    replace_method(asyncio.Future, "__init__", _future_of_loop)
    replace_method(asyncio.Task, "__init__", _task_of_loop)


def _future_of_loop(self: asyncio.Future[Any], *, loop: object = None) -> None:
    _check_once(self)
    _check_loop(loop)
    _initialize_future(self, loop=loop)


def _task_of_loop(
    self: asyncio.Task[Any],
    coro: object,
    *,
    loop: object = None,
    name: object = None,
    context: object = None,
    **options: object,
) -> None:
    _check_once(self)
    _check_loop(loop)
    if context is None:
        context = contextvars_.copy_context()
    elif type(context) is not contextvars_.Context:
        raise TypeError(contextvars_.NO_CONTEXT.format(type(context).__name__))
    if sys.version_info >= (3, 12):
        options.pop("eager_start", None)
    _initialize_task(self, coro, loop=loop, name=name, context=context, **options)


class _Submitted:
    """A call as an executor of the code's own gets it: it can be called, and has no attributes to read or set."""

    __slots__ = ("_call",)

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    def __call__(self) -> None:
        self._call()


def _check_once(future: asyncio.Future[Any]) -> None:
    """Refuse to initialize a future again: C code may be at work with what that would take away."""
    if _loop_of(future) is not None:
        raise RuntimeError(f"{type(future).__name__} object is initialized already")


def _check_loop(loop: object) -> None:
    if loop is not None and type(loop) is not GuestLoop:
        raise TypeError(f"a loop made by new_event_loop() was expected, not {type(loop).__name__!r}. Leave it out.")


class _Timer(events.TimerHandle):
    """A timer that knows whether it stands in its loop's heap."""

    __slots__ = ("_queued",)
    _queued: bool


class GuestLoop(asyncio.AbstractEventLoop):
    """An event loop that only schedules. Its names without an underscore may be called by guest code at any time."""

    def __init__(self) -> None:
        self._ready: deque[events.Handle] = deque()
        self._timers: list[_Timer] = []
        self._stale_timers = 0
        self._generators: weakref.WeakSet[AsyncGenerator[Any, Any]] = weakref.WeakSet()
        self._running = False
        self._stopped = False
        self._closed = False
        self._cut_off = False
        self._parked: green_threads.GreenThread | None = None
        self._calls: set[asyncio.Future[None]] = set()

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_"):
            raise AttributeError("the event loop is read-only here")
        object.__setattr__(self, name, value)

    def time(self) -> float:
        """Return the loop's clock in seconds."""
        return clock.monotonic()

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> events.Handle:
        """Call back in the next round."""
        handle = events.Handle(callback, args, self, contextvars_.real_context(context))
        self._ready.append(handle)
        self._wake()
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> events.TimerHandle:
        """Call back after `delay` seconds."""
        return self.call_at(clock.monotonic() + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> events.TimerHandle:
        """Call back when the loop's clock shows `when`."""
        timer = _Timer(when, callback, args, self, contextvars_.real_context(context))
        heapq.heappush(self._timers, timer)
        timer._queued = True
        self._wake()
        return timer

    def create_future(self) -> asyncio.Future[Any]:
        """Return a future of this loop."""
        future: asyncio.Future[Any] = _new_future(asyncio.Future)
        _initialize_future(future, loop=self)
        return future

    def create_task(self, coro: Coroutine[Any, Any, T], **options: Any) -> asyncio.Task[T]:  # type: ignore[override]  # its options differ between versions
        """Run a coroutine beside the others."""
        return asyncio.Task(coro, loop=self, **options)

    def run_in_executor(self, executor: Any, func: Callable[[Unpack[Ts]], T], *args: *Ts) -> asyncio.Future[T]:
        """Call `func` in a thread of its own, or in the `executor`, whose `submit` is called."""
        answer: asyncio.Future[T] = self.create_future()
        ended: asyncio.Future[None] = self.create_future()

        def call() -> None:
            try:
                _answer(answer, func, args)
            finally:
                self._calls.discard(ended)
                ended.set_result(None)

        if executor is not None:
            executor.submit(_Submitted(call))
        elif green_threads.AVAILABLE:
            self._calls.add(ended)
            green_threads.start(call)
        else:
            self.call_soon(call)
        return answer

    def run_until_complete(self, future: Awaitable[T]) -> T:  # type: ignore[override]  # no bare generators any more
        """Run until `future` is done and return its value, or raise what it raised."""
        if events._get_running_loop() is not None:
            raise RuntimeError("Cannot run the event loop while another loop is running")
        if self._closed:
            raise RuntimeError("Event loop is closed")
        goal = asyncio.ensure_future(future, loop=self)
        try:
            self._run(goal)
        except BaseException:
            if goal.done() and not goal.cancelled():
                goal.exception()  # read, so that it is not reported as never retrieved
            raise
        return goal.result()

    def run_forever(self) -> None:
        """Run until `stop` is called."""
        self.run_until_complete(self.create_future())

    def stop(self) -> None:
        """End `run_forever` after this round."""
        self._stopped = True

    def is_running(self) -> bool:
        """Return whether the loop runs."""
        return self._running

    def is_closed(self) -> bool:
        """Return whether the loop was closed."""
        return self._closed

    def close(self) -> None:
        """Close the loop for good."""
        if self._running:
            raise RuntimeError("Cannot close a running event loop")
        self._wind_up()

    def get_debug(self) -> bool:
        """Return False: there is no debug mode."""
        return False

    def set_debug(self, enabled: bool) -> None:
        """Do nothing: there is no debug mode."""

    async def shutdown_asyncgens(self) -> None:
        """Close all asynchronous generators that are still open."""
        generators = list(self._generators)
        self._generators.clear()
        await asyncio.gather(*(generator.aclose() for generator in generators), return_exceptions=True)

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - asyncio's own signature
        """Wait for the threads in which `run_in_executor` calls."""
        if self._calls:
            await asyncio.wait(set(self._calls), timeout=timeout)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Write an error that no task awaits to standard error, as asyncio logs it."""
        try:
            error = context.get("exception")
            error_text = f": {type(error).__name__}: {error}" if error is not None else ""
            GUEST.write_error(f"{context.get('message', 'Unhandled error in the event loop')}{error_text}\n")
        except Exception:  # noqa: BLE001 - the error's own text may fail, and the loop must go on
            GUEST.write_error("Unhandled error in the event loop\n")

    default_exception_handler = call_exception_handler

    def _run(self, goal: asyncio.Future[Any]) -> None:
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=self._generators.add, finalizer=self._finalize)
        events._set_running_loop(self)
        self._running = True
        self._stopped = False
        stuck = False
        try:
            while not goal.done() and not self._stopped:
                if not self._moves():
                    if stuck or not goal.cancel():
                        raise _deadlock(None)
                    stuck = True
        finally:
            self._running = False
            events._set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)
        if stuck and goal.cancelled():
            try:
                goal.result()
            except asyncio.CancelledError as cancelled:
                _deadlock(cancelled)

    def _moves(self) -> bool:
        """Do a round; return False, without one, where nothing is left that could happen."""
        if not (self._ready or self._timers or _expecting() or green_threads.are_there_others()):
            return False
        try:
            self._round()
        except green_threads.Deadlock:
            return False
        return True

    def _round(self) -> None:
        """Wait for what comes first, then call all that is due."""
        self._drop_stale_timers()
        timeout = 0.0 if self._ready else self._timers[0].when() - clock.monotonic() if self._timers else None
        if timeout is not None:
            timeout = min(max(timeout, 0.0), _TIMEOUT_MAX_SECONDS)
        if green_threads.are_there_others():
            self._let_others_run(timeout)
            timeout = 0.0
        if _channel.poller is not None:
            self._read_channel(_channel.poller, timeout)
        elif timeout:
            clock.pause(timeout)
        now = clock.monotonic() if self._timers else 0.0
        while self._timers and self._timers[0].when() <= now:
            timer = heapq.heappop(self._timers)
            timer._queued = False
            self._ready.append(timer)
        for _ in range(len(self._ready)):
            handle = self._ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _let_others_run(self, seconds: float | None) -> None:
        """Wait in favour of other threads, until one of them or the host has something for this loop."""
        self._parked = green_threads.current()
        try:
            green_threads.park(seconds)
        except HostGone:
            self._cut_off = True
            raise
        finally:
            self._parked = None

    def _wake(self) -> None:
        if self._parked is not None:
            green_threads.wake(self._parked)

    def _read_channel(self, poller: Poller, seconds: float | None) -> None:
        try:
            if poller.poll(None if seconds is None else seconds * 1000) and _channel.on_readable is not None:
                _channel.on_readable()
        except BaseException:
            self._cut_off = True
            raise

    def _drop_stale_timers(self) -> None:
        if self._stale_timers > max(_STALE_TIMERS_MIN, len(self._timers) // 2):
            self._timers = [timer for timer in self._timers if not timer._cancelled]
            heapq.heapify(self._timers)
            self._stale_timers = 0
        while self._timers and self._timers[0]._cancelled:
            heapq.heappop(self._timers)._queued = False
            self._stale_timers -= 1

    def _timer_handle_cancelled(self, handle: _Timer) -> None:
        """Count a timer that its own `cancel` reports here, so that the heap does not fill with dead ones."""
        if handle._queued:
            self._stale_timers += 1

    def _finalize(self, generator: AsyncGenerator[Any, Any]) -> None:
        self._generators.discard(generator)
        if not self._closed:
            self.create_task(generator.aclose())

    def _wind_up(self) -> None:
        """Cancel what is pending, wait for its end, and close. Without a host, nothing is waited for."""
        if self._closed:
            return
        pending = [task for task in asyncio.all_tasks(self) if not task.done()]
        if self._cut_off:
            for task in pending:
                task._log_destroy_pending = False  # type: ignore[attr-defined]  # as asyncio's own gather does
            self._closed = True
            return
        try:
            for task in pending:
                _cancelled.append(_described(task))
                task.cancel()
            if pending:
                self.run_until_complete(_all_of(pending))
            for task in pending:
                if not task.cancelled() and task.exception() is not None:
                    self.call_exception_handler(
                        {"message": "A task failed while it was being cancelled", "exception": task.exception()}
                    )
            if self._generators:
                self.run_until_complete(self.shutdown_asyncgens())
            if self._calls:
                self.run_until_complete(self.shutdown_default_executor())
        finally:
            self._closed = True
            self._ready.clear()
            self._timers.clear()


def _described(task: asyncio.Task[Any]) -> Cancelled:
    coroutine = task.get_coro()
    origin = getattr(coroutine, "cr_origin", None)
    return Cancelled(getattr(coroutine, "__qualname__", "a task"), origin[0][1] if origin else None)


def _expecting() -> bool:
    return _channel.poller is not None and (_channel.waiting is None or _channel.waiting())


def _wait_outside(seconds: float | None) -> bool:
    """Wait for the host and for so many seconds; return False if there is neither to wait for."""
    if _channel.poller is not None and _expecting():
        if _channel.poller.poll(None if seconds is None else seconds * 1000) and _channel.on_readable is not None:
            _channel.on_readable()
    elif seconds is not None:
        clock.pause(seconds)
    else:
        return False
    return True


def _answer(answer: asyncio.Future[T], func: Callable[[Unpack[Ts]], T], args: tuple[*Ts]) -> None:
    """Call `func` and put what comes of it into `answer`, unless that was cancelled meanwhile."""
    try:
        value = func(*args)
    except HostGone:
        raise
    except BaseException as error:  # noqa: BLE001 - it belongs to who waits for the answer
        if not answer.done():
            is_stop = isinstance(error, StopIteration)  # a future takes no such error
            answer.set_exception(RuntimeError("the function raised StopIteration") if is_stop else error)
    else:
        if not answer.done():
            answer.set_result(value)


def _deadlock(cancelled: asyncio.CancelledError | None) -> NoReturn:
    error = RuntimeError(_DEADLOCK)
    raise error.with_traceback(cancelled.__traceback__ if cancelled else None) from None


async def _all_of(tasks: list[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)
