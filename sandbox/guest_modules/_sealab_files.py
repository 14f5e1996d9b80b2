"""Paths of the workspace as code names them, and the errors of its files: what `io`, `os` and `pathlib` share."""

import errno

import _sealab_os
import posixpath
from _sealab_os import fsdecode, fspath, strerror

HOME = "/workspace"
ELSEWHERE = "/mnt/data"
"""What models write for the workspace: other services have it there."""
TEMPORARY = "/tmp"
_state = {"cwd": HOME}


def getcwd():
    return _state["cwd"]


def set_cwd(path):
    _state["cwd"] = path


def absolute(path):
    """Return the path from the root, without `.` and `..`, as the host takes it; an empty one stays empty."""
    text = path if type(path) is str else fsdecode(fspath(path))
    if type(text) is not str:
        text = str.__str__(text)
    if "\0" in text:
        raise ValueError("embedded null byte")
    if not text:
        return text
    if not text.startswith("/"):
        text = f"{_state['cwd']}/{text}"
    if "//" in text or "/." in text or text.endswith("/"):
        text = posixpath.normpath(text)
        if text.startswith("//"):
            text = text[1:]
    if text == ELSEWHERE or text.startswith(f"{ELSEWHERE}/"):
        return HOME + text[len(ELSEWHERE) :]
    return text


def error_of(number, path, target=None, why=None):
    """Return the exception that Python raises for an errno; of a name that cannot be, it says why."""
    said = why.rstrip(".") if number == errno.EINVAL and type(why) is str else strerror(number)
    if target is None:
        return OSError(number, said, path)
    return OSError(number, said, path, None, target)


def checked(answer, path, target=None):
    """Return what the host answered, or raise what it refused."""
    if answer[0]:
        raise error_of(answer[0], shown(path), None if target is None else shown(target), answer[1])
    return answer


def shown(path):
    return path if type(path) is str or type(path) is bytes else fspath(path)


def status(path):
    """Return `(0, identity, whether it is a folder, bytes, when it was changed in ns)`; raise where nothing is there."""
    if type(path) is int:
        raise OSError(errno.EBADF, strerror(errno.EBADF))
    return checked(_sealab_os.path_status(absolute(path)), path)
