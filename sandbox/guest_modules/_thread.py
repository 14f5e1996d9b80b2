"""`_thread` as guest code: locks and threads on green threads, for the `threading` of the standard library."""

from collections import deque
from weakref import WeakSet

import _green_threads

TIMEOUT_MAX = 9223372036.0
error = RuntimeError
_locals = WeakSet()
_sentinels = {}


class lock:
    """A lock that goes to whoever has waited longest."""

    __slots__ = ("__weakref__", "_is_locked", "_waiting")

    def __init__(self):
        self._is_locked = False
        self._waiting = deque()

    def acquire(self, blocking=True, timeout=-1):
        """Take the lock and return True, or return False where it cannot be had in `timeout` seconds."""
        if timeout != -1:
            if not blocking:
                raise ValueError("can't specify a timeout for a non-blocking call")
            if timeout < 0:
                raise ValueError("timeout value must be a non-negative number")
            if timeout > TIMEOUT_MAX:
                raise OverflowError("timeout value is too large")
        if not self._is_locked:
            self._is_locked = True
            return True
        if not blocking:
            return False
        number = _green_threads.current()
        self._waiting.append(number)
        is_mine = False
        try:
            is_mine = _green_threads.park(None if timeout == -1 else float(timeout))
        finally:
            if not is_mine and number in self._waiting:
                self._waiting.remove(number)
        return is_mine

    def release(self):
        """Give the lock back. Raises RuntimeError if nobody has it."""
        if not self._is_locked:
            raise RuntimeError("release unlocked lock")
        if self._waiting:
            _green_threads.wake(self._waiting.popleft())
        else:
            self._is_locked = False

    def locked(self):
        return self._is_locked

    def __enter__(self):
        return self.acquire()

    def __exit__(self, *_error):
        self.release()

    def __repr__(self):
        return f"<{'locked' if self._is_locked else 'unlocked'} _thread.lock object at {id(self):#x}>"


LockType = allocate_lock = allocate = lock


def get_ident():
    return _green_threads.current()


get_native_id = get_ident


def start_new_thread(function, args, kwargs=None):
    return start_joinable_thread(lambda: function(*args, **(kwargs or {})), daemon=_is_daemon(function)).ident


def start_joinable_thread(function, *, handle=None, daemon=True):
    """Call `function` in a new thread; return the handle with which it is waited for."""
    if not callable(function):
        raise TypeError("thread function must be callable")
    handle = _ThreadHandle() if handle is None else handle
    handle._alive = lock()
    handle._alive.acquire()

    def run():
        try:
            function()
        except SystemExit:
            pass
        finally:
            _end(handle)

    handle.ident = _green_threads.start(run, daemon)
    return handle


def _is_daemon(function):
    return bool(getattr(getattr(function, "__self__", None), "daemon", True))


def _end(handle):
    for each in list(_locals):
        each._spaces.pop(handle.ident, None)
    sentinel = _sentinels.pop(handle.ident, None)
    if sentinel is not None and sentinel.locked():
        sentinel.release()
    handle._set_done()


def exit():
    raise SystemExit


def stack_size(size=0):
    """Return 0: stacks grow as they need to."""
    return 0


def daemon_threads_allowed():
    return True


def _is_main_interpreter():
    return True


def _get_main_thread_ident():
    return _green_threads.main()


def _set_sentinel():
    made = _sentinels[get_ident()] = lock()
    return made


class _ThreadHandle:
    """One thread, for who waits for its end."""

    def __init__(self):
        self.ident = None
        self._alive = None

    def is_done(self):
        return self._alive is not None and not self._alive.locked()

    def join(self, timeout=None):
        if self._alive is None:
            raise RuntimeError("thread not started")
        if self.ident == get_ident():
            raise RuntimeError("Cannot join current thread")
        if self._alive.acquire(timeout=-1 if timeout is None or timeout < 0 else timeout):
            self._alive.release()

    def _set_done(self):
        if self._alive is None:
            self._alive = lock()
        elif self._alive.locked():
            self._alive.release()


def _make_thread_handle(ident):
    handle = _ThreadHandle()
    handle.ident = ident
    handle._alive = lock()
    handle._alive.acquire()
    return handle


def _shutdown():
    """Do nothing: the worker waits for threads when the program has ended."""


class _local:
    """An object whose attributes each thread has for itself."""

    def __new__(cls, /, *args, **kwargs):
        if (args or kwargs) and cls.__init__ is object.__init__:
            raise TypeError("Initialization arguments are not supported")
        made = object.__new__(cls)
        object.__setattr__(made, "_arguments", (args, kwargs))
        object.__setattr__(made, "_spaces", {get_ident(): {}})
        _locals.add(made)
        return made

    def _space(self):
        number = get_ident()
        if number not in self._spaces:
            self._spaces[number] = {}
            args, kwargs = self._arguments
            self.__init__(*args, **kwargs)
        return self._spaces[number]

    def __getattr__(self, name):
        space = self._space()
        if name not in space:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return space[name]

    def __setattr__(self, name, value):
        self._space()[name] = value

    def __delattr__(self, name):
        if self._space().pop(name, self) is self:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
