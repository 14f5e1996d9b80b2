"""`io`: files of the workspace, in Python; memory streams are the interpreter's own, text streams stand before it."""

import errno
import weakref

import _sealab_os
from _sealab_files import absolute, error_of
from _sealab_io import (
    SEEK_CUR,
    SEEK_END,
    SEEK_SET,
    BufferedIOBase,
    BytesIO,
    IOBase,
    StringIO,
    TextIOBase,
    TextIOWrapper,
    UnsupportedOperation,
)
from _sealab_os import devnull, fspath, strerror

__all__ = [
    "BlockingIOError",
    "BufferedIOBase",
    "BufferedRWPair",
    "BufferedRandom",
    "BufferedReader",
    "BufferedWriter",
    "BytesIO",
    "DEFAULT_BUFFER_SIZE",
    "FileIO",
    "IOBase",
    "RawIOBase",
    "SEEK_CUR",
    "SEEK_END",
    "SEEK_SET",
    "StringIO",
    "TextIOBase",
    "TextIOWrapper",
    "UnsupportedOperation",
    "open",
    "open_code",
    "text_encoding",
]

DEFAULT_BUFFER_SIZE = 8192
_BUFFER_BYTES = 256 * 1024
_FIRST_BYTES = 64 * 1024
_READ_ALL_BYTES = 4 * 1024 * 1024
_MODES = {"r": "r", "w": "w", "x": "x", "a": "a"}
_UTF8 = {"utf-8", "utf8", "utf_8", "utf-8-sig", "ascii", "us-ascii", "locale"}

_open_files = {}
_descriptors = {}
_changes = [0]


class RawIOBase(IOBase):
    """The base of streams of bytes without a buffer."""

    def read(self, size=-1, /):
        if size is None:
            size = -1
        if size < 0:
            return self.readall()
        buffer = bytearray(size.__index__())
        count = self.readinto(buffer)
        if count is None:
            return None
        return bytes(buffer[:count])

    def readall(self):
        pieces = []
        while data := self.read(_BUFFER_BYTES):
            pieces.append(data)
        return b"".join(pieces)

    def readinto(self, buffer, /):
        raise UnsupportedOperation("readinto")

    def write(self, data, /):
        raise UnsupportedOperation("write")


class FileIO(RawIOBase):
    """A file of the workspace, without a buffer."""

    _is_open = False

    def __init__(self, file, mode="r", closefd=True, opener=None):
        kinds = [letter for letter in mode if letter in "rwax"]
        if any(letter not in "rwaxb+" for letter in mode) or mode.count("+") > 1 or mode.count("b") > 1:
            raise ValueError(f"invalid mode: {mode}")
        if len(kinds) != 1:
            raise ValueError("Must have exactly one of create/read/write/append mode and at most one plus")
        kind = kinds[0]
        self._readable = kind == "r" or "+" in mode
        self._writable = kind != "r" or "+" in mode
        self._appends = kind == "a"
        self._is_text = False
        self._number = None
        self._closes = closefd
        self._first = b""
        self._ended = None
        self.name = file
        if type(file) is int or isinstance(file, int):
            self._take(int(file), kind)
            return
        if opener is not None:
            number = opener(file, _flags(kind, "+" in mode))
            if not isinstance(number, int):
                raise TypeError("expected integer from opener")
            if number < 0:
                raise ValueError(f"opener returned {number}")
            self._take(int(number), kind)
            return
        if not closefd:
            raise ValueError("Cannot use closefd=False with file name")
        self._path = absolute(file)
        asked = "r+" if kind == "r" and self._writable else _MODES[kind]
        answer = _sealab_os.open_file(self._path, asked, _FIRST_BYTES if kind == "r" else 0)
        if answer[0]:
            raise error_of(answer[0], file, None, answer[1])
        if self._writable:
            _changes[0] += 1
        self._identity = answer[1]
        self._offset = answer[2] if self._appends else 0
        self._first = answer[4]
        if kind == "r" and answer[2] <= len(self._first):
            self._ended = (answer[2], _changes[0])
        self._is_open = True

    def _take(self, number, kind):
        other = _descriptors.get(number)
        if other is None:
            raise OSError(errno.EBADF, strerror(errno.EBADF))
        self._path = other._path
        self._identity = other._identity
        self._offset = other._offset
        self._first = b""
        self._shared = other
        self._number = number
        self._is_open = True
        if kind == "w":
            self.truncate(0)
        if kind == "a":
            self.seek(0, SEEK_END)

    _shared = None

    def __repr__(self):
        if not self._is_open:
            return "<_io.FileIO [closed]>"
        return f"<_io.FileIO name={self.name!r} mode={self.mode!r} closefd={self._closes!r}>"

    @property
    def mode(self):
        if self._appends:
            return "ab+" if self._readable else "ab"
        if self._writable:
            return "rb+" if self._readable else "wb"
        return "rb"

    @property
    def closefd(self):
        return self._closes

    @property
    def closed(self):
        return not self._is_open

    def _check_open(self):
        if not self._is_open:
            raise ValueError("I/O operation on closed file")

    def close(self):
        if not self._is_open:
            return
        self._is_open = False
        if self._shared is not None:
            if self._closes:
                self._shared.close()
            return
        answer = _sealab_os.close_file(self._identity)
        if self._number is not None:
            _descriptors.pop(self._number, None)
        if answer[0]:
            raise OSError(answer[0], answer[1].rstrip("."), self.name)

    def _store(self):
        """Store what was written, where the workspace is not a folder."""
        answer = _sealab_os.store_file(self._identity)
        if answer[0]:
            raise OSError(answer[0], answer[1].rstrip("."), self.name)

    def fileno(self):
        self._check_open()
        if self._number is None:
            number = 3
            while number in _descriptors:
                number += 1
            self._number = number
            _descriptors[number] = self
        return self._number

    def isatty(self):
        self._check_open()
        return False

    def readable(self):
        self._check_open()
        return self._readable

    def writable(self):
        self._check_open()
        return self._writable

    def seekable(self):
        self._check_open()
        return True

    def read(self, size=-1, /):
        self._check_open()
        if not self._readable:
            raise UnsupportedOperation("File not open for reading")
        if size is None or size < 0:
            return self.readall()
        return self._read(size)

    def _read(self, size):
        offset = self._offset
        first = self._first
        if first:
            if offset < len(first) and (offset + size <= len(first) or self._ended is not None):
                data = first[offset : offset + size]
                self._offset = offset + len(data)
                if self._offset >= len(first):
                    self._first = b""
                return data
            if offset < len(first):
                first = first[offset:]
                self._first = b""
                rest = self._ask(offset + len(first), size - len(first))
                self._offset = offset + len(first) + len(rest)
                return first + rest
        ended, self._ended = self._ended, None
        if ended is not None and ended[0] <= offset and ended[1] == _changes[0]:
            return b""
        data = self._ask(offset, size)
        self._offset = offset + len(data)
        if len(data) < size:
            self._ended = (self._offset, _changes[0])
        return data

    def _ask(self, offset, size):
        if offset < 0 or size <= 0:
            return b""
        answer = _sealab_os.read_file_at(self._path, self._identity, offset, size)
        if answer[0]:
            raise OSError(answer[0], strerror(answer[0]))
        return answer[1]

    def readall(self):
        self._check_open()
        if not self._readable:
            raise UnsupportedOperation("File not open for reading")
        pieces = []
        while data := self._read(_READ_ALL_BYTES):
            pieces.append(data)
            if self._ended is not None and self._ended == (self._offset, _changes[0]):
                self._ended = None
                break
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def readinto(self, buffer, /):
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def write(self, data, /):
        self._check_open()
        if not self._writable:
            raise UnsupportedOperation("File not open for writing")
        data = _bytes_of(data)
        taken, number = self._write(data)
        if number:
            raise OSError(number, strerror(number))
        return taken

    def _write(self, data):
        """Write all that can be written; return how many bytes of `data` that was, and an errno."""
        if not data:
            return 0, 0
        self._first = b""
        self._ended = None
        _changes[0] += 1
        offset = None if self._appends else self._offset
        answer = _sealab_os.write_file_at(self._path, self._identity, offset, data, self._is_text)
        if answer[2] is not None:
            self._offset = answer[2]
        return answer[1], answer[0]

    def seek(self, offset, whence=SEEK_SET, /):
        self._check_open()
        if isinstance(offset, float):
            raise TypeError("an integer is required")
        offset = offset.__index__()
        if whence == SEEK_CUR:
            offset += self._offset
        elif whence == SEEK_END:
            offset += self._size()
        elif whence != SEEK_SET:
            raise ValueError("invalid whence value")
        if offset < 0:
            raise OSError(errno.EINVAL, strerror(errno.EINVAL))
        self._offset = offset
        return offset

    def _size(self):
        if self._first and self._ended is not None and self._ended[1] == _changes[0]:
            return self._ended[0]
        answer = _sealab_os.path_status(self._path)
        if not answer[0] and answer[1] == self._identity:
            return answer[3]
        # It has another name by now, or none: look where it ends.
        low, high = 0, 1
        while self._ask(high, 1):
            low, high = high, high * 2
        while high - low > 1:
            middle = (low + high) // 2
            if self._ask(middle, 1):
                low = middle
            else:
                high = middle
        return high if self._ask(low, 1) else low

    def tell(self):
        self._check_open()
        return self._offset

    def truncate(self, size=None, /):
        self._check_open()
        if not self._writable:
            raise UnsupportedOperation("File not open for writing")
        if size is None:
            size = self._offset
        size = size.__index__()
        if size < 0:
            raise OSError(errno.EINVAL, strerror(errno.EINVAL))
        self._first = b""
        self._ended = None
        _changes[0] += 1
        answer = _sealab_os.truncate_file(self._path, self._identity, size)
        if answer[0]:
            raise OSError(answer[0], strerror(answer[0]))
        return size


class _NullDevice(RawIOBase):
    """`/dev/null`: it is empty, and takes whatever is written."""

    name = devnull

    def __init__(self, kind, both):
        self._readable = kind == "r" or both
        self._writable = kind != "r" or both
        self.mode = "rb+" if self._readable and self._writable else "rb" if self._readable else "wb"

    def readable(self):
        return self._readable

    def writable(self):
        return self._writable

    def seekable(self):
        return True

    def readinto(self, buffer, /):
        return 0

    def write(self, data, /):
        return len(data)

    def seek(self, offset, whence=SEEK_SET, /):
        return 0

    def truncate(self, size=None, /):
        return 0


class _Buffered(BufferedIOBase):
    """What the three kinds of buffers share."""

    _raw = None

    def _set_raw(self, raw, buffer_size):
        if buffer_size <= 0:
            raise ValueError("invalid buffer size")
        self._raw = raw

    def __repr__(self):
        name = getattr(self, "name", None)
        kind = type(self).__name__
        return f"<_io.{kind}>" if name is None else f"<_io.{kind} name={name!r}>"

    @property
    def raw(self):
        return self._raw

    @property
    def name(self):
        return self._raw.name

    @property
    def mode(self):
        return self._raw.mode

    @property
    def closed(self):
        return self._raw is None or self._raw.closed

    def _check_open(self, said="I/O operation on closed file"):
        if self._raw is None:
            raise ValueError("raw stream has been detached")
        if self._raw.closed:
            raise ValueError(said)

    def detach(self):
        self.flush()
        raw, self._raw = self._raw, None
        return raw

    def fileno(self):
        self._check_open()
        return self._raw.fileno()

    def isatty(self):
        self._check_open()
        return self._raw.isatty()

    def readable(self):
        self._check_open()
        return self._raw.readable()

    def writable(self):
        self._check_open()
        return self._raw.writable()

    def seekable(self):
        self._check_open()
        return self._raw.seekable()

    def flush(self):
        self._check_open("flush of closed file")
        self._raw.flush()

    def close(self):
        if self._raw is None or self._raw.closed:
            return
        try:
            self.flush()
        finally:
            self._raw.close()


class BufferedReader(_Buffered):
    """Reads ahead from a raw stream."""

    def __init__(self, raw, buffer_size=DEFAULT_BUFFER_SIZE):
        if not raw.readable():
            raise OSError("File or stream is not readable.")
        self._set_raw(raw, buffer_size)
        self._reads = buffer_size if buffer_size > DEFAULT_BUFFER_SIZE or type(raw) is not FileIO else _BUFFER_BYTES
        self._buffer = b""
        self._position = 0

    def writable(self):
        self._check_open()
        return False

    def _fill(self):
        self._buffer = self._raw.read(self._reads) or b""
        self._position = 0
        return self._buffer

    def read(self, size=-1, /):
        self._check_open("read of closed file")
        if size is None:
            size = -1
        if size < -1:
            raise ValueError("read length must be non-negative or -1")
        return self._read(size)

    def _read(self, size):
        start = self._position
        if size < 0:
            held = self._buffer[start:] if start else self._buffer
            self._buffer, self._position = b"", 0
            rest = self._raw.readall() if hasattr(self._raw, "readall") else self._raw.read()
            return held + rest if held and rest else held or rest or b""
        end = start + size
        if end <= len(self._buffer):
            self._position = end
            return self._buffer[start:end]
        pieces = [self._buffer[start:]]
        size -= len(pieces[0])
        self._buffer, self._position = b"", 0
        while size > 0:
            if size >= self._reads:
                data = self._raw.read(size)
                if not data:
                    break
                pieces.append(data)
                size -= len(data)
                continue
            data = self._fill()
            if not data:
                break
            pieces.append(data[:size])
            self._position = len(pieces[-1])
            size -= self._position
        return b"".join(pieces)

    def read1(self, size=-1, /):
        self._check_open("read of closed file")
        return self._read1(size)

    def _read1(self, size):
        start = self._position
        if start >= len(self._buffer):
            if size == 0 or not self._fill():
                return b""
            start = 0
        if size < 0:
            size = len(self._buffer)
        data = self._buffer[start : start + size]
        self._position = start + len(data)
        return data

    def peek(self, size=0, /):
        self._check_open("peek of closed file")
        if self._position >= len(self._buffer):
            self._fill()
        return self._buffer[self._position :]

    def readline(self, size=-1, /):
        self._check_open("readline of closed file")
        return self._line(-1 if size is None else size)

    def _line(self, size):
        start = self._position
        end = self._buffer.find(b"\n", start) + 1
        if end and (size < 0 or end - start <= size):
            self._position = end
            return self._buffer[start:end]
        pieces = []
        left = size
        while True:
            start = self._position
            end = self._buffer.find(b"\n", start) + 1
            stop = end or len(self._buffer)
            if size >= 0 and stop - start > left:
                stop, end = start + left, 0
            pieces.append(self._buffer[start:stop])
            self._position = stop
            left -= stop - start
            if end or (size >= 0 and left <= 0) or not self._fill():
                return b"".join(pieces)

    def __iter__(self):
        self._check_open()
        return self

    def __next__(self):
        self._check_open()
        line = self._line(-1)
        if not line:
            raise StopIteration
        return line

    def _ahead(self):
        return len(self._buffer) - self._position

    def tell(self):
        self._check_open()
        return self._raw.tell() - self._ahead()

    def seek(self, offset, whence=SEEK_SET, /):
        self._check_open("seek of closed file")
        if whence not in (SEEK_SET, SEEK_CUR, SEEK_END):
            raise ValueError(f"invalid whence value ({whence}, should be 0, 1 or 2)")
        if not self._raw.seekable():
            raise UnsupportedOperation("File or stream is not seekable.")
        if whence != SEEK_END:
            here = self._raw.tell()
            target = offset if whence == SEEK_SET else offset + here - self._ahead()
            start = here - len(self._buffer)
            if start <= target <= here:
                self._position = target - start
                return target
            offset, whence = target, SEEK_SET
        self._buffer, self._position = b"", 0
        return self._raw.seek(offset, whence)

    def truncate(self, size=None, /):
        self._check_open()
        return self._raw.truncate(self.tell() if size is None else size)


class BufferedWriter(_Buffered):
    """Collects what is written to a raw stream."""

    def __init__(self, raw, buffer_size=DEFAULT_BUFFER_SIZE):
        if not raw.writable():
            raise OSError("File or stream is not writable.")
        self._set_raw(raw, buffer_size)
        self._begin(raw, buffer_size)

    def _begin(self, raw, buffer_size):
        self._writes = buffer_size if buffer_size > DEFAULT_BUFFER_SIZE or type(raw) is not FileIO else _BUFFER_BYTES
        self._waiting = []
        self._waiting_bytes = 0

    def readable(self):
        self._check_open()
        return False

    def write(self, data, /):
        self._check_open("write to closed file")
        return self._take(data)

    def _take(self, data):
        data = _bytes_of(data)
        self._waiting.append(data)
        self._waiting_bytes += len(data)
        if self._waiting_bytes > self._writes:
            self._send(all_of_it=False)
        return len(data)

    def _send(self, all_of_it=True):
        if not self._waiting_bytes:
            return
        data = self._waiting[0] if len(self._waiting) == 1 else b"".join(self._waiting)
        held = b""
        if not all_of_it and getattr(self._raw, "_is_text", False):
            line = data.rfind(b"\n") + 1
            if line:
                data, held = data[:line], data[line:]
        if type(self._raw) is FileIO:
            taken, number = self._raw._write(data)
            self._hold(data[taken:] + held if taken < len(data) else held)
            if number:
                raise OSError(number, strerror(number))
            return
        view = data
        while view:
            self._hold(view + held)
            count = self._raw.write(view)
            if count is None:
                raise BlockingIOError(errno.EAGAIN, "write could not complete without blocking", 0)
            if count > len(view) or count < 0:
                raise OSError("write() returned incorrect number of bytes")
            view = view[count:]
        self._hold(held)

    def _hold(self, data):
        self._waiting = [data] if data else []
        self._waiting_bytes = len(data)

    def flush(self):
        self._check_open("flush of closed file")
        self._send()
        self._raw.flush()

    def tell(self):
        self._check_open()
        return self._raw.tell() + self._waiting_bytes

    def seek(self, offset, whence=SEEK_SET, /):
        self._check_open("seek of closed file")
        if whence not in (SEEK_SET, SEEK_CUR, SEEK_END):
            raise ValueError(f"invalid whence value ({whence}, should be 0, 1 or 2)")
        self._send()
        return self._raw.seek(offset, whence)

    def truncate(self, size=None, /):
        self._check_open()
        self._send()
        return self._raw.truncate(self._raw.tell() if size is None else size)


class BufferedRandom(BufferedReader):
    """Reads and writes one raw stream at one position."""

    def __init__(self, raw, buffer_size=DEFAULT_BUFFER_SIZE):
        if not raw.seekable():
            raise UnsupportedOperation("File or stream is not seekable.")
        BufferedReader.__init__(self, raw, buffer_size)
        if not raw.writable():
            raise OSError("File or stream is not writable.")
        BufferedWriter._begin(self, raw, buffer_size)

    def writable(self):
        self._check_open()
        return self._raw.writable()

    _take = BufferedWriter._take
    _send = BufferedWriter._send
    _hold = BufferedWriter._hold
    flush = BufferedWriter.flush

    def write(self, data, /):
        self._check_open("write to closed file")
        if self._buffer:
            self._raw.seek(-self._ahead(), SEEK_CUR)
            self._buffer, self._position = b"", 0
        return self._take(data)

    def read(self, size=-1, /):
        self._check_open("read of closed file")
        self._send()
        return self._read(-1 if size is None else size)

    def read1(self, size=-1, /):
        self._check_open("read of closed file")
        self._send()
        return self._read1(size)

    def peek(self, size=0, /):
        self._check_open("peek of closed file")
        self._send()
        return BufferedReader.peek(self, size)

    def readline(self, size=-1, /):
        self._check_open("readline of closed file")
        self._send()
        return self._line(-1 if size is None else size)

    def __next__(self):
        self._check_open()
        self._send()
        return BufferedReader.__next__(self)

    def tell(self):
        self._check_open()
        return self._raw.tell() + self._waiting_bytes if self._waiting else BufferedReader.tell(self)

    def seek(self, offset, whence=SEEK_SET, /):
        self._check_open("seek of closed file")
        self._send()
        return BufferedReader.seek(self, offset, whence)

    def truncate(self, size=None, /):
        self._check_open()
        self._send()
        if size is None:
            size = self.tell()
        if self._buffer:
            self._raw.seek(-self._ahead(), SEEK_CUR)
            self._buffer, self._position = b"", 0
        return self._raw.truncate(size)


def _bytes_of(data):
    if type(data) is bytes:
        return data
    if isinstance(data, str):
        raise TypeError(f"a bytes-like object is required, not '{type(data).__name__}'")
    return bytes(memoryview(data))


def _flags(kind, both):
    flags = 2 if both else 0 if kind == "r" else 1
    return flags | {"r": 0, "w": 0o1000 | 0o100, "x": 0o200 | 0o100, "a": 0o2000 | 0o100}[kind]


def open(
    file,
    mode="r",
    buffering=-1,
    encoding=None,
    errors=None,
    newline=None,
    closefd=True,
    opener=None,
):
    if not isinstance(file, int):
        file = fspath(file)
    if not isinstance(mode, str):
        raise TypeError(f"open() argument 'mode' must be str, not {type(mode).__name__}")
    if not isinstance(buffering, int):
        raise TypeError(f"'{type(buffering).__name__}' object cannot be interpreted as an integer")
    for name, value in (("encoding", encoding), ("errors", errors), ("newline", newline)):
        if value is not None and not isinstance(value, str):
            raise TypeError(f"open() argument '{name}' must be str or None, not {type(value).__name__}")
    letters = set(mode)
    if letters - set("axrwb+t") or len(mode) > len(letters):
        raise ValueError(f"invalid mode: {mode!r}")
    is_binary = "b" in letters
    if is_binary and "t" in letters:
        raise ValueError("can't have text and binary mode at once")
    kinds = [letter for letter in "rwax" if letter in letters]
    if len(kinds) != 1:
        if kinds:
            raise ValueError("must have exactly one of create/read/write/append mode")
        raise ValueError("Must have exactly one of create/read/write/append mode and at most one plus")
    if is_binary and encoding is not None:
        raise ValueError("binary mode doesn't take an encoding argument")
    if is_binary and errors is not None:
        raise ValueError("binary mode doesn't take an errors argument")
    if is_binary and newline is not None:
        raise ValueError("binary mode doesn't take a newline argument")
    if buffering == 0 and not is_binary:
        raise ValueError("can't have unbuffered text I/O")
    both = "+" in letters
    if type(file) is str and file == devnull:
        raw = _NullDevice(kinds[0], both)
    else:
        raw = FileIO(file, kinds[0] + ("+" if both else ""), closefd, opener)
    try:
        if buffering == 0:
            return raw
        size = buffering if buffering > 1 else DEFAULT_BUFFER_SIZE
        buffer = (BufferedRandom if both else BufferedReader if kinds[0] == "r" else BufferedWriter)(raw, size)
        if is_binary:
            if raw._writable:
                _remember(buffer)
            return buffer
        if encoding is None or encoding == "locale":
            encoding = "UTF-8"
        raw._is_text = encoding.lower() in _UTF8
        text = TextIOWrapper(buffer, encoding, errors, newline, line_buffering=buffering == 1)
        text.mode = mode
        if raw._writable:
            _remember(text)
        return text
    except BaseException:
        raw.close()
        raise


def open_code(path):
    return open(path, "rb")


def text_encoding(encoding, stacklevel=2, /):
    return "locale" if encoding is None else encoding


def _remember(stream):
    number = id(stream)
    _open_files[number] = weakref.ref(stream, lambda _gone: _open_files.pop(number, None))


def flush_all():
    """Write what open files still hold; return the names of those for which that failed, each with the reason."""
    failed = []
    for reference in list(_open_files.values()):
        stream = reference()
        if stream is None or stream.closed:
            continue
        try:
            stream.flush()
        except Exception as error:
            failed.append((str(stream.name), str(error)))
    return failed
