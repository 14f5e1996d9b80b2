"""`multiprocessing.pool`: a pool whose work runs in threads of the worker."""

import multiprocessing
import os
from concurrent import futures


class AsyncResult:
    def __init__(self, calls, is_single, callback, error_callback):
        self._calls = calls
        self._is_single = is_single
        self._callback = callback
        self._error_callback = error_callback
        self._open = len(calls)
        for call in calls:
            call.add_done_callback(self._end_of_call)

    def _end_of_call(self, _call):
        self._open -= 1
        if self._open:
            return
        if self.successful():
            if self._callback:
                self._callback(self.get())
        elif self._error_callback:
            self._error_callback(next(filter(None, (call.exception() for call in self._calls))))

    def ready(self):
        return all(call.done() for call in self._calls)

    def successful(self):
        if not self.ready():
            raise ValueError(f"{self!r} not ready")
        return all(call.exception() is None for call in self._calls)

    def wait(self, timeout=None):
        futures.wait(self._calls, timeout)

    def get(self, timeout=None):
        self.wait(timeout)
        if not self.ready():
            raise multiprocessing.TimeoutError
        values = [call.result() for call in self._calls]
        return values[0] if self._is_single else values


ApplyResult = MapResult = AsyncResult


class Pool:
    def __init__(self, processes=None, initializer=None, initargs=(), maxtasksperchild=None, context=None):
        if processes is not None and processes < 1:
            raise ValueError("Number of processes must be at least 1")
        self._executor = futures.ThreadPoolExecutor(
            processes or os.cpu_count() or 1, "ForkPoolWorker", initializer, initargs
        )
        self._is_open = True

    def _calls(self, func, arguments):
        if not self._is_open:
            raise ValueError("Pool not running")
        return [self._executor.submit(func, *each) for each in arguments]

    def apply(self, func, args=(), kwds=None):
        return self.apply_async(func, args, kwds).get()

    def apply_async(self, func, args=(), kwds=None, callback=None, error_callback=None):
        calls = self._calls(lambda: func(*args, **(kwds or {})), [()])
        return AsyncResult(calls, True, callback, error_callback)

    def map(self, func, iterable, chunksize=None):
        return self.map_async(func, iterable).get()

    def map_async(self, func, iterable, chunksize=None, callback=None, error_callback=None):
        return AsyncResult(self._calls(func, ((each,) for each in iterable)), False, callback, error_callback)

    def starmap(self, func, iterable, chunksize=None):
        return self.starmap_async(func, iterable).get()

    def starmap_async(self, func, iterable, chunksize=None, callback=None, error_callback=None):
        return AsyncResult(self._calls(func, iterable), False, callback, error_callback)

    def imap(self, func, iterable, chunksize=1):
        calls = self._calls(func, ((each,) for each in iterable))
        return (call.result() for call in calls)

    def imap_unordered(self, func, iterable, chunksize=1):
        calls = self._calls(func, ((each,) for each in iterable))
        return (call.result() for call in futures.as_completed(calls))

    def close(self):
        self._is_open = False

    def terminate(self):
        self._is_open = False
        self._executor.shutdown(wait=False, cancel_futures=True)

    def join(self):
        if self._is_open:
            raise ValueError("Pool is still running")
        self._executor.shutdown()

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.terminate()


ThreadPool = Pool
