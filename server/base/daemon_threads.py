"""Threads that do blocking work: so many, with a bounded, fair queue, and not waited for when the process ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

from ...sandbox.job import NOBODY, Owner
from .errors import HostWorkBusy
from .fair_line import FairLine

_T = TypeVar("_T")


class DaemonThreads(Executor):
    """Does work in `most` threads at a time: that of each tenant, and in it of each caller, in turns, in its order.

    Where `waiting_max` wait, one more is refused, or the newest of whoever has more of them waiting.

    The standard library's executor makes the process wait at its end for threads that hang, in a database that does not
    answer, for as long as they do.
    """

    def __init__(self, most: int, name: str, waiting_max: int) -> None:
        self._most = most
        self._name = name
        self._waiting_max = waiting_max
        self._waiting: FairLine[tuple[Future[Any], Callable[[], Any]]] = FairLine()
        self._changed = threading.Condition()
        self._threads = 0
        self._idle = 0

    @property
    def busy(self) -> bool:
        """Whether there is work that waits or is being done."""
        with self._changed:
            return self._idle < self._threads or self._waiting.any(lambda each: not each[0].cancelled())

    def submit(self, work: Callable[..., _T], /, *args: Any, **named: Any) -> Future[_T]:
        """Submit work for nobody in particular. Raises as `submit_for`."""
        return self.submit_for(NOBODY, lambda: work(*args, **named))

    def submit_for(self, owner: Owner, work: Callable[[], _T]) -> Future[_T]:
        """Submit work for that owner. Raises `HostWorkBusy`, or its future does, where too much waits."""
        future: Future[_T] = Future()
        refused: Future[Any] | None = None
        with self._changed:
            if len(self._waiting) >= self._waiting_max:
                self._waiting.drop(lambda each: each[0].cancelled())
            if len(self._waiting) >= self._waiting_max:
                newest = self._waiting.newest_of_most(owner)
                if newest is None:
                    raise self._busy()
                refused = newest[0]
            self._waiting.put(owner, (future, work))
            wakes = self._idle >= len(self._waiting)
            if wakes:
                self._changed.notify()
            starts = not wakes and self._threads < self._most
            if starts:
                self._threads += 1
                self._idle += 1
                number = self._threads
        if refused is not None and refused.set_running_or_notify_cancel():
            refused.set_exception(self._busy())
        if starts:
            self._start(number)
        return future

    def _busy(self) -> HostWorkBusy:
        return HostWorkBusy(
            f"{self._waiting_max} calls wait for the server's {self._name}, as many as may. Try again in a moment."
        )

    def _start(self, number: int) -> None:
        try:
            threading.Thread(target=self._work, name=f"sealab {self._name}_{number}", daemon=True).start()
        except BaseException:
            with self._changed:
                self._threads -= 1
                self._idle -= 1
            raise

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    self._changed.wait()
                future, work = self._waiting.take()
                self._idle -= 1
            if future.set_running_or_notify_cancel():
                try:
                    result = work()
                except BaseException as error:  # noqa: BLE001 - it is raised where the work was asked for
                    future.set_exception(error)
                    del error
                else:
                    future.set_result(result)
                    del result
            del future, work
            with self._changed:
                self._idle += 1
