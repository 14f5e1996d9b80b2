"""`tempfile`: files in a temporary folder of the run, which is gone when the run ends."""

import functools
import io
import os
import random
import shutil
import weakref

__all__ = [
    "NamedTemporaryFile",
    "SpooledTemporaryFile",
    "TMP_MAX",
    "TemporaryDirectory",
    "TemporaryFile",
    "gettempdir",
    "gettempdirb",
    "gettempprefix",
    "gettempprefixb",
    "mkdtemp",
    "mkstemp",
    "mktemp",
    "tempdir",
]

TMP_MAX = 10000
template = "tmp"
tempdir = None
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789_"
_random = random.Random(os.urandom(16))


def gettempdir():
    return os.fspath("/tmp" if tempdir is None else tempdir)


def gettempdirb():
    return os.fsencode(gettempdir())


def gettempprefix():
    return template


def gettempprefixb():
    return os.fsencode(template)


def _chosen(suffix, prefix, folder):
    kinds = {bytes if isinstance(each, bytes) else str for each in (suffix, prefix, folder) if each is not None}
    if len(kinds) > 1:
        raise TypeError("Can't mix bytes and non-bytes in path components.")
    is_bytes = kinds == {bytes}
    suffix = (b"" if is_bytes else "") if suffix is None else suffix
    prefix = (gettempprefixb() if is_bytes else gettempprefix()) if prefix is None else prefix
    folder = (gettempdirb() if is_bytes else gettempdir()) if folder is None else os.fspath(folder)
    return suffix, prefix, folder


def _names(suffix, prefix, folder):
    for _number in range(TMP_MAX):
        letters = "".join(_random.choices(_LETTERS, k=8))
        middle = os.fsencode(letters) if isinstance(suffix, bytes) else letters
        yield os.path.abspath(os.path.join(folder, prefix + middle + suffix))
    raise FileExistsError(17, "No usable temporary file name found")


def mkdtemp(suffix=None, prefix=None, dir=None):
    for name in _names(*_chosen(suffix, prefix, dir)):
        try:
            os.mkdir(name, 0o700)
        except FileExistsError:
            continue
        return name


def mkstemp(suffix=None, prefix=None, dir=None, text=False):
    for name in _names(*_chosen(suffix, prefix, dir)):
        try:
            return os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL), name
        except FileExistsError:
            continue


def mktemp(suffix="", prefix=template, dir=None):
    for name in _names(*_chosen(suffix, prefix, dir)):
        if not os.path.exists(name):
            return name


def _removed(name):
    try:
        os.unlink(name)
    except OSError:
        pass


class _TemporaryFile:
    """A file with a name that is removed when it is closed, or with the context that it is used as."""

    def __init__(self, file, name, delete, delete_on_close):
        self.file = file
        self.name = name
        self.delete = delete
        self._deletes_on_close = delete and delete_on_close
        self._finalizer = weakref.finalize(self, _removed, name) if delete else None

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(self.file, name)
        if not callable(found):
            return found

        # The file must not be closed while one of its methods is used and nobody holds this object.
        @functools.wraps(found)
        def held(*arguments, **keywords):
            return found(*arguments, **keywords) if self is not None else None

        return held

    def __enter__(self):
        self.file.__enter__()
        return self

    def __exit__(self, *error):
        result = self.file.__exit__(*error)
        self._close(self.delete)
        return result

    def __iter__(self):
        yield from self.file

    def close(self):
        self._close(self._deletes_on_close)

    def _close(self, removes):
        self.file.close()
        if removes and self._finalizer is not None:
            self._finalizer()

    def __repr__(self):
        return f"<tempfile._TemporaryFileWrapper for {self.name!r}>"


def NamedTemporaryFile(
    mode="w+b",
    buffering=-1,
    encoding=None,
    newline=None,
    suffix=None,
    prefix=None,
    dir=None,
    delete=True,
    *,
    errors=None,
    delete_on_close=True,
):
    descriptor, name = mkstemp(suffix, prefix, dir)
    os.close(descriptor)
    letters = mode.replace("x", "w")
    file = io.open(name, letters, buffering, encoding, errors, newline)
    return _TemporaryFile(file, name, delete, delete_on_close)


def TemporaryFile(
    mode="w+b", buffering=-1, encoding=None, newline=None, suffix=None, prefix=None, dir=None, *, errors=None
):
    return NamedTemporaryFile(mode, buffering, encoding, newline, suffix, prefix, dir, errors=errors)


class SpooledTemporaryFile(io.IOBase):
    """A stream in memory that becomes a temporary file when it grows."""

    def __init__(
        self,
        max_size=0,
        mode="w+b",
        buffering=-1,
        encoding=None,
        newline=None,
        suffix=None,
        prefix=None,
        dir=None,
        *,
        errors=None,
    ):
        memory = io.BytesIO()
        if "b" not in mode:
            memory = io.TextIOWrapper(memory, encoding or "utf-8", errors, newline, write_through=True)
        self._file = memory
        self._max_size = max_size
        self._rolled = False
        self._options = (mode, buffering, encoding, newline, suffix, prefix, dir)
        self._errors = errors

    def rollover(self):
        if self._rolled:
            return
        memory = self._file
        position = memory.tell()
        memory.seek(0)
        self._file = TemporaryFile(*self._options, errors=self._errors)
        self._file.write(memory.read())
        self._file.seek(position)
        self._rolled = True

    def _checked(self):
        if not self._rolled and self._max_size and self._file.tell() > self._max_size:
            self.rollover()

    def write(self, data):
        count = self._file.write(data)
        self._checked()
        return count

    def writelines(self, lines):
        self._file.writelines(lines)
        self._checked()

    def read(self, *size):
        return self._file.read(*size)

    def readline(self, *size):
        return self._file.readline(*size)

    def readlines(self, *hint):
        return self._file.readlines(*hint)

    def seek(self, *where):
        return self._file.seek(*where)

    def tell(self):
        return self._file.tell()

    def truncate(self, size=None):
        if size is not None and self._max_size and size > self._max_size:
            self.rollover()
        return self._file.truncate(size)

    def flush(self):
        self._file.flush()

    def fileno(self):
        self.rollover()
        return self._file.fileno()

    def close(self):
        self._file.close()

    @property
    def closed(self):
        return self._file.closed

    @property
    def mode(self):
        return self._options[0]

    @property
    def name(self):
        return self._file.name if self._rolled else None

    @property
    def encoding(self):
        return self._file.encoding

    def readable(self):
        return True

    writable = seekable = readable

    def __iter__(self):
        return iter(self._file)

    def __enter__(self):
        if self.closed:
            raise ValueError("Cannot enter context with closed file")
        return self

    def __exit__(self, *_error):
        self.close()


class TemporaryDirectory:
    """A folder that is removed with the context that it is used as."""

    def __init__(self, suffix=None, prefix=None, dir=None, ignore_cleanup_errors=False, *, delete=True):
        self.name = mkdtemp(suffix, prefix, dir)
        self._ignores = ignore_cleanup_errors
        self._deletes = delete
        self._finalizer = weakref.finalize(self, shutil.rmtree, self.name, ignore_errors=True) if delete else None

    def __repr__(self):
        return f"<TemporaryDirectory {self.name!r}>"

    def __enter__(self):
        return self.name

    def __exit__(self, *_error):
        if self._deletes:
            self.cleanup()

    def cleanup(self):
        if self._finalizer is None or self._finalizer.detach() or os.path.exists(self.name):
            shutil.rmtree(self.name, ignore_errors=self._ignores)
