"""`multiprocessing`: processes are threads of the worker, so they share the variables of the program."""

import itertools
import os
import queue
import threading
from threading import Barrier, BoundedSemaphore, Condition, Event, Lock, RLock, Semaphore
from types import SimpleNamespace

_numbers = itertools.count(1)


class ProcessError(Exception):
    """The base class of the errors of this module."""


class TimeoutError(ProcessError):
    """A result was not there in time."""


class BufferTooShort(ProcessError):
    """Raised by nothing here."""


AuthenticationError = BufferTooShort


def cpu_count():
    return os.cpu_count() or 1


def freeze_support():
    """Do nothing: no process is started."""


def set_start_method(method, force=False):
    """Do nothing: no process is started."""


def get_start_method(allow_none=False):
    return "spawn"


def get_all_start_methods():
    return ["spawn"]


class Process(threading.Thread):
    def __init__(self, group=None, target=None, name=None, args=(), kwargs=None, *, daemon=None):
        super().__init__(group, target, name or f"Process-{next(_numbers)}", args, kwargs, daemon=daemon)
        self._code = None

    @property
    def pid(self):
        return self.ident

    @property
    def exitcode(self):
        return None if self.is_alive() else self._code

    def start(self):
        self._code, tell = 0, self._invoke_excepthook

        def fail(*arguments):
            self._code = 1
            tell(*arguments)

        self._invoke_excepthook = fail
        super().start()

    def close(self):
        """Do nothing: there is no process."""

    def terminate(self):
        raise NotImplementedError("a process is a thread here and cannot be ended; let its function return")

    kill = terminate


class _MainProcess:
    name = "MainProcess"
    daemon = False
    pid = 1
    exitcode = None

    def is_alive(self):
        return True


_main = _MainProcess()


def current_process():
    running = threading.current_thread()
    return running if isinstance(running, Process) else _main


def parent_process():
    return _main if isinstance(threading.current_thread(), Process) else None


def active_children():
    return [each for each in threading.enumerate() if isinstance(each, Process)]


class Queue(queue.Queue):
    def close(self):
        """Do nothing: there is no pipe to close."""

    def join_thread(self):
        """Do nothing: no thread feeds it."""

    cancel_join_thread = join_thread


JoinableQueue = Queue
SimpleQueue = queue.SimpleQueue


class Connection:
    def __init__(self, incoming, outgoing):
        self._incoming = incoming
        self._outgoing = outgoing
        self.closed = False

    def send(self, value):
        self._outgoing.put((value,))

    def recv(self):
        got = self._incoming.get()
        if got is None:
            self._incoming.put(None)
            raise EOFError
        return got[0]

    def poll(self, timeout=0.0):
        try:
            got = self._incoming.get(timeout=timeout) if timeout is None or timeout > 0 else self._incoming.get_nowait()
        except queue.Empty:
            return False
        self._incoming.queue.appendleft(got)
        return True

    def close(self):
        if not self.closed:
            self.closed = True
            self._outgoing.put(None)

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.close()


def Pipe(duplex=True):
    first, second = queue.Queue(), queue.Queue()
    return Connection(first, second), Connection(second, first)


class _Locked:
    def get_lock(self):
        return self._lock

    def get_obj(self):
        return self

    def __enter__(self):
        self._lock.acquire()
        return self

    def __exit__(self, *_error):
        self._lock.release()


class _Shared(_Locked):
    def __init__(self, value):
        self.value = value
        self._lock = RLock()


def Value(typecode_or_type, *args, lock=True):
    return _Shared(args[0] if args else 0)


class _SharedArray(_Locked, list):
    def __init__(self, values):
        super().__init__(values)
        self._lock = RLock()


def Array(typecode_or_type, size_or_initializer, *, lock=True):
    given = size_or_initializer
    return _SharedArray([0] * given if isinstance(given, int) else given)


RawValue, RawArray = Value, Array


class Manager:
    Namespace = SimpleNamespace
    Queue = Queue
    JoinableQueue = Queue
    Lock = staticmethod(Lock)
    RLock = staticmethod(RLock)
    Event = Event
    Condition = Condition
    Semaphore = Semaphore
    BoundedSemaphore = BoundedSemaphore
    Barrier = Barrier
    Value = staticmethod(Value)
    Array = staticmethod(Array)
    dict = dict
    list = list

    def start(self):
        """Do nothing: there is no process to start."""

    def shutdown(self):
        """Do nothing: there is no process to end."""

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.shutdown()


from multiprocessing.pool import Pool as Pool  # noqa: E402


def get_context(method=None):
    return SimpleNamespace(**{name: value for name, value in globals().items() if not name.startswith("_")})
