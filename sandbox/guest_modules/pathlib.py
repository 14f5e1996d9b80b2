"""`pathlib`: arithmetic on paths, and the files of the workspace behind them."""

import fnmatch
import io
import os
import re
import sys

from _sealab_files import getcwd
from _sealab_paths import PurePath, PurePosixPath, PureWindowsPath

__all__ = ["PosixPath", "Path", "PurePath", "PurePosixPath", "PureWindowsPath", "UnsupportedOperation", "WindowsPath"]

_LISTS_FILES = sys.version_info >= (3, 13)
"""Whether `**` at the end of a pattern stands for files too."""


class UnsupportedOperation(NotImplementedError):
    """This system cannot do it."""


class PosixPath(PurePosixPath):
    """A path of the workspace."""

    __slots__ = ()

    @classmethod
    def cwd(cls):
        return cls(getcwd())

    @classmethod
    def home(cls):
        return cls(os.path.expanduser("~"))

    @classmethod
    def from_uri(cls, uri):
        if not uri.startswith("file:"):
            raise ValueError(f"URI does not start with 'file:': {uri!r}")
        from urllib.parse import unquote

        text = unquote(uri[5:])
        text = text[2:] if text.startswith("///") else text
        path = cls(text)
        if not path.is_absolute():
            raise ValueError(f"URI is not absolute: {uri!r}")
        return path

    def stat(self, *, follow_symlinks=True):
        return os.stat(self)

    def lstat(self):
        return os.stat(self)

    def exists(self, *, follow_symlinks=True):
        return os.path.exists(self)

    def is_file(self, *, follow_symlinks=True):
        return os.path.isfile(self)

    def is_dir(self, *, follow_symlinks=True):
        return os.path.isdir(self)

    def is_symlink(self):
        return False

    def is_junction(self):
        return False

    def is_mount(self):
        return os.path.ismount(self)

    def is_socket(self):
        return False

    is_fifo = is_block_device = is_char_device = is_socket

    def samefile(self, other_path):
        return os.path.samefile(self, other_path)

    def open(self, mode="r", buffering=-1, encoding=None, errors=None, newline=None):
        return io.open(self, mode, buffering, encoding, errors, newline)

    def read_bytes(self):
        with self.open(mode="rb") as stream:
            return stream.read()

    def read_text(self, encoding=None, errors=None, newline=None):
        with self.open(mode="r", encoding=encoding, errors=errors, newline=newline) as stream:
            return stream.read()

    def write_bytes(self, data):
        view = memoryview(data)
        with self.open(mode="wb") as stream:
            return stream.write(view)

    def write_text(self, data, encoding=None, errors=None, newline=None):
        if not isinstance(data, str):
            raise TypeError(f"data must be str, not {type(data).__name__}")
        with self.open(mode="w", encoding=encoding, errors=errors, newline=newline) as stream:
            return stream.write(data)

    def iterdir(self):
        return iter([self / name for name in os.listdir(self)])

    def walk(self, top_down=True, on_error=None, follow_symlinks=False):
        for folder, folders, files in os.walk(self, top_down, on_error):
            yield type(self)(folder), folders, files

    def glob(self, pattern, *, case_sensitive=None, recurse_symlinks=False):
        return iter(self._matches(pattern, case_sensitive, everywhere=False))

    def rglob(self, pattern, *, case_sensitive=None, recurse_symlinks=False):
        return iter(self._matches(pattern, case_sensitive, everywhere=True))

    def _matches(self, pattern, case_sensitive, everywhere):
        text = os.fspath(pattern)
        if text.startswith("/"):
            raise NotImplementedError("Non-relative patterns are unsupported")
        parts = [part for part in text.split("/") if part not in ("", ".")]
        if not parts and not everywhere:
            raise ValueError(f"Unacceptable pattern: {text!r}")
        if everywhere:
            parts = ["**", *parts]
        if text.endswith("/") and parts:
            parts = [*parts, ""]
        flags = re.IGNORECASE if case_sensitive is False else 0
        seen = set()
        found = []
        for path in _selected(self, parts, flags):
            if path not in seen:
                seen.add(path)
                found.append(path)
        return found

    def mkdir(self, mode=0o777, parents=False, exist_ok=False):
        try:
            os.mkdir(self, mode)
        except FileNotFoundError:
            if not parents or self.parent == self:
                raise
            self.parent.mkdir(parents=True, exist_ok=True)
            self.mkdir(mode, parents=False, exist_ok=exist_ok)
        except OSError:
            if not exist_ok or not self.is_dir():
                raise

    def touch(self, mode=0o666, exist_ok=True):
        if exist_ok and self.exists():
            os.utime(self)
            return
        self.open("x").close()

    def unlink(self, missing_ok=False):
        try:
            os.unlink(self)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def rmdir(self):
        os.rmdir(self)

    def rename(self, target):
        os.rename(self, target)
        return type(self)(target)

    def replace(self, target):
        os.replace(self, target)
        return type(self)(target)

    def copy(self, target, **_options):
        import shutil

        shutil.copytree(self, target) if self.is_dir() else shutil.copy2(self, target)
        return type(self)(target)

    def copy_into(self, target_dir, **options):
        return self.copy(type(self)(target_dir) / self.name, **options)

    def move(self, target):
        import shutil

        shutil.move(self, target)
        return type(self)(target)

    def move_into(self, target_dir):
        return self.move(type(self)(target_dir) / self.name)

    def chmod(self, mode, *, follow_symlinks=True):
        os.chmod(self, mode)

    def lchmod(self, mode):
        os.chmod(self, mode)

    def owner(self, *, follow_symlinks=True):
        self.stat()
        return "user"

    group = owner

    def absolute(self):
        if self.is_absolute():
            return self
        return type(self)(getcwd(), self)

    def resolve(self, strict=False):
        return type(self)(os.path.realpath(self, strict=bool(strict)))

    def expanduser(self):
        return type(self)(os.path.expanduser(self))

    def readlink(self):
        return type(self)(os.readlink(self))

    def symlink_to(self, target, target_is_directory=False):
        os.symlink(target, self)

    def hardlink_to(self, target):
        os.link(target, self)

    def as_uri(self):
        if not self.is_absolute():
            raise ValueError("relative path can't be expressed as a file URI")
        from urllib.parse import quote

        return "file://" + quote(str(self))

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        pass


Path = PosixPath


class WindowsPath(PureWindowsPath):
    """Refuses: this is no Windows."""

    def __new__(cls, *args, **kwargs):
        raise UnsupportedOperation("cannot instantiate 'WindowsPath' on your system")


def _selected(folder, parts, flags):
    """Give the paths below a folder that match the parts of a pattern, in the order of their names."""
    if not parts:
        yield folder
        return
    first, rest = parts[0], parts[1:]
    if first == "":
        if os.path.isdir(folder):
            yield folder
    elif first == "**":
        yield from _everywhere(folder, rest, flags)
    elif first == "..":
        yield from _selected(folder / "..", rest, flags)
    elif not any(letter in first for letter in "*?[") and not flags:
        path = folder / first
        if os.path.exists(path):
            yield from _selected(path, rest, flags)
    else:
        matches = re.compile(fnmatch.translate(first), flags).match
        for entry in _listed(folder):
            if matches(entry.name) and (not rest or entry.is_dir()):
                yield from _selected(folder / entry.name, rest, flags)


def _everywhere(folder, rest, flags):
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        entries = _listed(here)
        folders = [here / entry.name for entry in entries if entry.is_dir()]
        waiting.extend(reversed(folders))
        if rest:
            yield from _selected(here, rest, flags)
        else:
            yield here
            if _LISTS_FILES:
                yield from [here / entry.name for entry in entries if not entry.is_dir()]


def _listed(folder):
    try:
        return list(os.scandir(folder))
    except OSError:
        return []

