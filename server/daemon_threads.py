"""Threads that do blocking work: a fixed number, with a bounded queue, and not waited for when the process ends."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

from .errors import HostWorkBusy

_T = TypeVar("_T")


class DaemonThreads(Executor):
    """Does work in `most` threads at a time, in the order in which it comes.

    The standard library's executor makes the process wait at its end for threads that hang, in a database that does not
    answer, for as long as they do.
    """

    def __init__(self, most: int, name: str, waiting_max: int) -> None:
        self._most = most
        self._name = name
        self._waiting_max = waiting_max
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._changed = threading.Condition()
        self._threads = 0
        self._idle = 0

    @property
    def busy(self) -> bool:
        """Whether there is work that waits or is being done."""
        with self._changed:
            return self._idle < self._threads or any(not future.cancelled() for future, _ in self._waiting)

    def submit(self, work: Callable[..., _T], /, *args: Any, **named: Any) -> Future[_T]:
        """Have work done. Raises `HostWorkBusy` where too much waits already."""
        future: Future[_T] = Future()
        with self._changed:
            if len(self._waiting) >= self._waiting_max:
                self._waiting = deque(each for each in self._waiting if not each[0].cancelled())
            if len(self._waiting) >= self._waiting_max:
                raise HostWorkBusy(
                    f"{self._waiting_max} calls wait for the server's {self._name}, as many as may. Try again in a "
                    "moment."
                )
            self._waiting.append((future, lambda: work(*args, **named)))
            if self._idle >= len(self._waiting):
                self._changed.notify()
                return future
            starts = self._threads < self._most
            if starts:
                self._threads += 1
                self._idle += 1
                number = self._threads
        if starts:
            self._start(number)
        return future

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
                future, work = self._waiting.popleft()
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
