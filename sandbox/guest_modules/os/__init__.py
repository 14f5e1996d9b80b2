"""`os`: the workspace as the file system, an environment of the code's own, and nothing else of the machine."""

import errno
import sys
import time
from collections import namedtuple

import _sealab_os
from _sealab_files import absolute, checked, error_of, getcwd, set_cwd, shown, status
from _sealab_os import (
    PathLike,
    altsep,
    curdir,
    devnull,
    extsep,
    fsdecode,
    fsencode,
    fspath,
    linesep,
    name,
    pardir,
    pathsep,
    sep,
    strerror,
    urandom,
)

from . import path

error = OSError
defpath = "/bin:/usr/bin"
F_OK, X_OK, W_OK, R_OK = 0, 1, 2, 4
O_RDONLY, O_WRONLY, O_RDWR = 0, 1, 2
O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_CLOEXEC, O_NOFOLLOW = 0o100, 0o200, 0o1000, 0o2000, 0o2000000, 0o400000
SEEK_SET, SEEK_CUR, SEEK_END = 0, 1, 2
EX_OK = 0
supports_bytes_environ = False
supports_dir_fd = set()
supports_fd = set()
supports_follow_symlinks = set()
supports_effective_ids = set()

_walk_symlinks_as_files = False
_FILE_MODE = 0o100644
_FOLDER_MODE = 0o040755
_USER = 1000


class terminal_size(namedtuple("terminal_size", "columns lines")):
    """The width and the height of a terminal, made from a pair."""

    __slots__ = ()

    def __new__(cls, pair):
        columns, lines = pair
        return super().__new__(cls, columns, lines)

    def __repr__(self):
        return f"os.terminal_size(columns={self.columns}, lines={self.lines})"


class stat_result(tuple):
    """What is known of a file or a folder: ten numbers, and the times more exactly."""

    n_fields, n_sequence_fields, n_unnamed_fields = 19, 10, 3

    def __new__(cls, sequence, more=None):
        sequence = tuple(sequence)
        if len(sequence) < 10:
            raise TypeError(f"os.stat_result() takes an at least 10-sequence ({len(sequence)}-sequence given)")
        made = tuple.__new__(cls, sequence[:10])
        more = more or {}
        made.st_mode, made.st_ino, made.st_dev, made.st_nlink, made.st_uid = sequence[:5]
        made.st_gid, made.st_size = sequence[5:7]
        for name, value in zip(("st_atime", "st_mtime", "st_ctime"), sequence[7:10], strict=True):
            setattr(made, name, more.get(name, value))
            setattr(made, f"{name}_ns", more.get(f"{name}_ns", value * 1_000_000_000))
        made.st_blksize = more.get("st_blksize", 4096)
        made.st_blocks = more.get("st_blocks", 0)
        made.st_rdev = more.get("st_rdev", 0)
        return made

    def __repr__(self):
        names = "st_mode st_ino st_dev st_nlink st_uid st_gid st_size st_atime st_mtime st_ctime".split()
        return f"os.stat_result({', '.join(f'{name}={value}' for name, value in zip(names, self, strict=True))})"


def _here_alone(dir_fd):
    if dir_fd is not None:
        raise NotImplementedError("dir_fd unavailable on this platform")


def _status_of(found):
    identity, is_folder, size, modified_ns = found
    seconds = modified_ns // 1_000_000_000
    exact = modified_ns / 1_000_000_000
    number = int(identity.rpartition(".")[2], 16) if "." in identity else 1
    mode = _FOLDER_MODE if is_folder else _FILE_MODE
    times = {
        "st_atime": exact,
        "st_mtime": exact,
        "st_ctime": exact,
        "st_atime_ns": modified_ns,
        "st_mtime_ns": modified_ns,
        "st_ctime_ns": modified_ns,
        "st_blksize": 4096,
        "st_blocks": (size + 511) // 512,
        "st_rdev": 0,
    }
    size = 4096 if is_folder else size
    return stat_result(
        (mode, number, 1, 2 if is_folder else 1, _USER, _USER, size, seconds, seconds, seconds), times
    )


def stat(path, *, dir_fd=None, follow_symlinks=True):
    _here_alone(dir_fd)
    if isinstance(path, int):
        return fstat(path)
    return _status_of(status(path)[1:])


lstat = stat


def _opened(fd):
    from io import _descriptors

    if not isinstance(fd, int):
        raise TypeError(f"argument must be an int, or have a fileno() method, not {type(fd).__name__}")
    found = _descriptors.get(fd)
    if found is None:
        raise OSError(errno.EBADF, strerror(errno.EBADF))
    return found


def fstat(fd):
    opened = _opened(fd)
    found = _sealab_os.path_status(opened._path)
    if found[0]:
        return _status_of((opened._identity, False, opened._size(), 0))
    return _status_of(found[1:])


def getcwdb():
    return fsencode(getcwd())


def chdir(path):
    if isinstance(path, int):
        raise OSError(errno.EBADF, strerror(errno.EBADF))
    if not status(path)[2]:
        raise error_of(errno.ENOTDIR, shown(path))
    set_cwd(absolute(path))


def listdir(path="."):
    entries = _entries(path)
    if isinstance(path, bytes):
        return [fsencode(entry[0]) for entry in entries]
    return [entry[0] for entry in entries]


def _entries(path):
    path = "." if path is None else path
    if isinstance(path, int):
        raise OSError(errno.EBADF, strerror(errno.EBADF))
    return checked(_sealab_os.list_folder(absolute(path)), path)[1]


class DirEntry:
    """One entry of a folder, as it was when the folder was listed."""

    def __init__(self, folder, entry):
        if isinstance(folder, bytes):
            self.name = fsencode(entry[0])
            self._text = fsdecode(folder)
        else:
            self.name = entry[0]
            self._text = fspath(folder)
        self._folder = folder
        self._entry = entry

    @property
    def path(self):
        return path.join(self._folder, self.name)

    def __fspath__(self):
        return self.path

    def __repr__(self):
        return f"<DirEntry {self.name!r}>"

    def is_dir(self, *, follow_symlinks=True):
        return self._entry[2]

    def is_file(self, *, follow_symlinks=True):
        return not self._entry[2]

    def is_symlink(self):
        return False

    def is_junction(self):
        return False

    def stat(self, *, follow_symlinks=True):
        return _status_of(self._entry[1:])

    def inode(self):
        return self.stat().st_ino


class _Scan:
    def __init__(self, folder, entries):
        self._entries = iter([DirEntry(folder, entry) for entry in entries])

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._entries)

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.close()

    def close(self):
        self._entries = iter(())


def scandir(path="."):
    path = "." if path is None else path
    return _Scan(fspath(path), _entries(path))


def walk(top, topdown=True, onerror=None, followlinks=False):
    top = fspath(top)
    waiting = [top]
    while waiting:
        here = waiting.pop()
        if isinstance(here, tuple):
            yield here
            continue
        try:
            entries = _entries(here)
        except OSError as failed:
            if onerror is not None:
                onerror(failed)
            continue
        names = [(fsencode(entry[0]) if isinstance(here, bytes) else entry[0], entry[2]) for entry in entries]
        folders = [each for each, is_folder in names if is_folder]
        files = [each for each, is_folder in names if not is_folder]
        if topdown:
            yield here, folders, files
        else:
            waiting.append((here, folders, files))
        waiting.extend(path.join(here, each) for each in reversed(folders))


def mkdir(path, mode=0o777, *, dir_fd=None):
    _here_alone(dir_fd)
    checked(_sealab_os.make_folder(absolute(path)), path)


def remove(path, *, dir_fd=None):
    _here_alone(dir_fd)
    checked(_sealab_os.remove_path(absolute(path)), path)


unlink = remove


def rmdir(path, *, dir_fd=None):
    _here_alone(dir_fd)
    checked(_sealab_os.remove_folder(absolute(path)), path)


def rename(src, dst, *, src_dir_fd=None, dst_dir_fd=None):
    _here_alone(src_dir_fd)
    _here_alone(dst_dir_fd)
    checked(_sealab_os.rename_path(absolute(src), absolute(dst)), src, dst)


replace = rename


def access(path, mode, *, dir_fd=None, effective_ids=False, follow_symlinks=True):
    try:
        found = status(path)
    except OSError:
        return False
    return not mode & X_OK or found[2]


def chmod(path, mode, *, dir_fd=None, follow_symlinks=True):
    """Do nothing but look: all files of the workspace are the code's own."""
    stat(path)


def utime(path, times=None, *, ns=None, dir_fd=None, follow_symlinks=True):
    _here_alone(dir_fd)
    if times is not None and ns is not None:
        raise ValueError("utime: you may specify either 'times' or 'ns' but not both")
    if ns is not None:
        moment = ns[1]
    elif times is not None:
        moment = int(times[1] * 1_000_000_000)
    else:
        from time import time_ns

        moment = time_ns()
    place = _opened(path)._path if isinstance(path, int) else absolute(path)
    checked(_sealab_os.set_modified(place, max(0, int(moment))), path)


def truncate(path, length):
    if isinstance(path, int):
        return ftruncate(path, length)
    from io import open as open_stream

    with open_stream(path, "r+b") as stream:
        stream.truncate(length)


def symlink(src, dst, target_is_directory=False, *, dir_fd=None):
    raise error_of(errno.EPERM, shown(src), shown(dst))


def link(src, dst, *, src_dir_fd=None, dst_dir_fd=None, follow_symlinks=True):
    raise error_of(errno.EPERM, shown(src), shown(dst))


def readlink(path, *, dir_fd=None):
    status(path)
    raise error_of(errno.EINVAL, shown(path))


def open(path, flags, mode=0o777, *, dir_fd=None):
    _here_alone(dir_fd)
    from io import FileIO

    is_written = flags & 3 in (O_WRONLY, O_RDWR)
    is_made = flags & O_CREAT
    if is_made and flags & O_EXCL:
        kind = "x"
    elif is_written and flags & O_APPEND and is_made:
        kind = "a"
    elif flags & O_TRUNC and (is_made or is_written):
        if not is_made:
            status(path)
        kind = "w"
    elif is_made and not access(path, F_OK):
        kind = "w"
    else:
        kind = "r"
    opened = FileIO(path, kind + ("+" if is_written else ""))
    opened._readable = flags & 3 in (O_RDONLY, O_RDWR)
    opened._writable = is_written
    number = opened.fileno()
    _held[number] = opened
    return number


_held = {}


def close(fd):
    opened = _opened(fd)
    _held.pop(fd, None)
    opened.close()


def read(fd, n, /):
    return _opened(fd).read(n)


def write(fd, data, /):
    return _opened(fd).write(data)


def lseek(fd, position, whence, /):
    return _opened(fd).seek(position, whence)


def ftruncate(fd, length, /):
    _opened(fd).truncate(length)


def fsync(fd):
    """Store what was flushed; in a folder it is."""
    _opened(fd if isinstance(fd, int) else fd.fileno())._store()


fdatasync = fsync


def sync():
    """Do nothing: what was flushed is written."""


def isatty(fd, /):
    return False


class statvfs_result:
    def __init__(self, total, used):
        self.f_bsize = self.f_frsize = 1
        self.f_blocks = total
        self.f_bfree = self.f_bavail = max(0, total - used)
        self.f_files = self.f_ffree = self.f_favail = 0
        self.f_flag = 0
        self.f_namemax = 255


def statvfs(path):
    if not isinstance(path, int):
        status(path)
    _number, total, used = _sealab_os.disk_usage()
    return statvfs_result(total, used)


class _Environment(dict):
    """The environment: empty at first, and the code's own."""

    def __setitem__(self, key, value):
        for each in (key, value):
            if not isinstance(each, str):
                raise TypeError(f"str expected, not {type(each).__name__}")
        if not key or "=" in key:
            raise OSError(errno.EINVAL, strerror(errno.EINVAL))
        if "\0" in key or "\0" in value:
            raise ValueError("embedded null byte")
        dict.__setitem__(self, key, value)

    def setdefault(self, key, value):
        if key not in self:
            self[key] = value
        return self[key]

    def update(self, *others, **more):
        for key, value in dict(*others, **more).items():
            self[key] = value

    def __ior__(self, other):
        self.update(other)
        return self

    def copy(self):
        return dict(self)

    def __repr__(self):
        return f"environ({dict.__repr__(self)})"


environ = _Environment()


def getenv(key, default=None):
    if not isinstance(key, str):
        raise TypeError(f"str expected, not {type(key).__name__}")
    return environ.get(key, default)


def putenv(name, value, /):
    environ[name] = value


def unsetenv(name, /):
    environ.pop(name, None)


def get_exec_path(env=None):
    return defpath.split(pathsep)


def cpu_count():
    return 1


uname_result = namedtuple("uname_result", "sysname nodename release version machine")
times_result = namedtuple("times_result", "user system children_user children_system elapsed")


def uname():
    return uname_result("Linux", "", "", "", "")


def times():
    return times_result(time.process_time(), 0.0, 0.0, 0.0, time.monotonic())


process_cpu_count = cpu_count


def getuid():
    return _USER


geteuid = getgid = getegid = getuid


def getlogin():
    return "user"


def umask(mask, /):
    return 0o022


def get_terminal_size(fd=1, /):
    raise OSError(errno.ENOTTY, strerror(errno.ENOTTY))


def sched_getaffinity(pid, /):
    return {0}


_PROCESSES = "system popen fork forkpty posix_spawn posix_spawnp startfile kill killpg wait waitpid".split()


def __getattr__(name):
    instead = ""
    if name in _PROCESSES or name.startswith(("exec", "spawn")):
        instead = "; no other process can be started here: call an upstream tool that does it, or write it in Python"
    if name in {"getpid", "getppid"}:
        instead = "; code here has no process to name: use uuid.uuid4() for a name of its own"
    text = f"module 'os' has no attribute {name!r}{instead}"
    missing = AttributeError(text, name=name, obj=sys.modules[__name__])

    def call(*args, **kwargs):
        raise missing

    if name in {"system", "popen"}:  # packages that evaluate code name them, to forbid them
        return call
    raise missing
