"""`logging.handlers` as guest code: handlers that keep, pass on, or write to files of the workspace."""

import logging
import os
import threading

DEFAULT_TCP_LOGGING_PORT = 9020


class BaseRotatingHandler(logging.FileHandler):
    """A file that is begun anew from time to time; `namer(name)` gives the name under which the old one is kept."""

    namer = None
    rotator = None

    def rotation_filename(self, default_name):
        """Return the name under which the file is kept."""
        return self.namer(default_name) if callable(self.namer) else default_name

    def rotate(self, source, dest):
        """Keep a file under another name."""
        if callable(self.rotator):
            self.rotator(source, dest)
        elif os.path.exists(source):
            os.replace(source, dest)

    def emit(self, record):
        """Write a record, to a new file where it is time for one."""
        if self.shouldRollover(record):
            self.doRollover()
        super().emit(record)


class RotatingFileHandler(BaseRotatingHandler):
    """A file of at most `maxBytes`; of those before, `backupCount` are kept as `name.1`, `name.2` and so on."""

    def __init__(self, filename, mode="a", maxBytes=0, backupCount=0, encoding=None, delay=False, errors=None):
        super().__init__(filename, "a" if maxBytes > 0 else mode, encoding, delay, errors)
        self.maxBytes = maxBytes
        self.backupCount = backupCount
        self._path = os.fspath(filename)
        self._coding = encoding
        self._size = os.path.getsize(self._path) if os.path.exists(self._path) else 0

    def shouldRollover(self, record):
        """Return whether a record would make the file too large."""
        added = len(f"{self.format(record)}\n".encode(self._coding or "utf-8", "replace"))
        too_large = 0 < self.maxBytes <= self._size + added
        self._size = added if too_large else self._size + added
        return too_large

    def doRollover(self):
        """Begin a new file."""
        self.close()
        for number in range(self.backupCount - 1, 0, -1):
            source = self.rotation_filename(f"{self._path}.{number}")
            if os.path.exists(source):
                os.replace(source, self.rotation_filename(f"{self._path}.{number + 1}"))
        if self.backupCount > 0:
            self.rotate(self._path, self.rotation_filename(f"{self._path}.1"))
        self.setStream(open(self._path, "w", encoding=self._coding))


class TimedRotatingFileHandler(BaseRotatingHandler):
    """A file; no run lasts until it would be begun anew."""

    def __init__(
        self, filename, when="h", interval=1, backupCount=0, encoding=None, delay=False, utc=False, atTime=None, errors=None
    ):
        super().__init__(filename, "a", encoding, delay, errors)
        self.when = when.upper()
        self.interval = interval
        self.backupCount = backupCount

    def shouldRollover(self, record):
        """Return False."""
        return False


class WatchedFileHandler(logging.FileHandler):
    """A file."""


class BufferingHandler(logging.Handler):
    """Keeps records until there are `capacity` of them."""

    def __init__(self, capacity):
        super().__init__()
        self.capacity = capacity
        self.buffer = []

    def shouldFlush(self, record):
        """Return whether there are enough."""
        return len(self.buffer) >= self.capacity

    def emit(self, record):
        """Keep a record."""
        self.buffer.append(record)
        if self.shouldFlush(record):
            self.flush()

    def flush(self):
        """Forget the records."""
        self.buffer = []

    def close(self):
        """Flush."""
        self.flush()


class MemoryHandler(BufferingHandler):
    """Keeps records until there are enough, or a bad one, and passes them on to `target`."""

    def __init__(self, capacity, flushLevel=logging.ERROR, target=None, flushOnClose=True):
        super().__init__(capacity)
        self.flushLevel = flushLevel
        self.target = target
        self.flushOnClose = flushOnClose

    def shouldFlush(self, record):
        """Return whether there are enough, or a bad one."""
        return super().shouldFlush(record) or record.levelno >= self.flushLevel

    def setTarget(self, target):
        """Set the handler that gets the records."""
        self.target = target

    def flush(self):
        """Pass the records on."""
        if self.target is not None:
            for record in self.buffer:
                self.target.handle(record)
            self.buffer = []

    def close(self):
        """Pass the records on, if that was asked for."""
        if self.flushOnClose:
            self.flush()
        self.target = None


class QueueHandler(logging.Handler):
    """Puts records into a queue."""

    def __init__(self, queue):
        super().__init__()
        self.queue = queue

    def enqueue(self, record):
        """Put a record into the queue."""
        self.queue.put_nowait(record)

    def prepare(self, record):
        """Return what is put into the queue."""
        return record

    def emit(self, record):
        """Put a record into the queue."""
        self.enqueue(self.prepare(record))


class QueueListener:
    """Takes records from a queue in a thread and passes them to handlers."""

    def __init__(self, queue, *handlers, respect_handler_level=False):
        self.queue = queue
        self.handlers = handlers
        self.respect_handler_level = respect_handler_level
        self._thread = None

    def start(self):
        """Begin to listen."""
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def stop(self):
        """Pass on what is in the queue, and end."""
        if self._thread is not None:
            self.queue.put_nowait(None)
            self._thread.join()
            self._thread = None

    def handle(self, record):
        """Pass a record to the handlers."""
        for handler in self.handlers:
            if not self.respect_handler_level or record.levelno >= handler.level:
                handler.handle(record)

    def _listen(self):
        while (record := self.queue.get()) is not None:
            self.handle(record)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_error):
        self.stop()


class SocketHandler(logging.Handler):
    """Refuses: there is no network."""

    def __init__(self, *_arguments, **_keywords):
        raise NotImplementedError("there is no network here; use a StreamHandler, or a FileHandler and send the file")


class DatagramHandler(SocketHandler):
    """Refuses."""


class SysLogHandler(SocketHandler):
    """Refuses."""


class SMTPHandler(SocketHandler):
    """Refuses."""


class HTTPHandler(SocketHandler):
    """Refuses."""
