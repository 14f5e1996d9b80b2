"""`os.path`: arithmetic on text, and what is there in the workspace."""

import genericpath
import os
from genericpath import (
    exists,
    getatime,
    getctime,
    getmtime,
    getsize,
    isdir,
    isfile,
    samefile,
    sameopenfile,
    samestat,
)
from posixpath import (
    altsep,
    basename,
    commonpath,
    commonprefix,
    curdir,
    dirname,
    extsep,
    isabs,
    join,
    normcase,
    normpath,
    pardir,
    pathsep,
    sep,
    split,
    splitdrive,
    splitext,
)

from _sealab_files import HOME, getcwd, status
from _sealab_os import devnull, fsencode, fspath

defpath = "/bin:/usr/bin"
supports_unicode_filenames = True


def splitroot(p):
    p = fspath(p)
    slash, empty = (b"/", b"") if isinstance(p, bytes) else ("/", "")
    rest = p.lstrip(slash)
    count = len(p) - len(rest)
    if not count:
        return empty, empty, p
    return (empty, slash * 2, rest) if count == 2 else (empty, slash, p[1:])


def islink(path):
    return False


isjunction = isdevdrive = islink
lexists = exists


def ismount(path):
    return abspath(path) in ("/", HOME)


def realpath(filename, *, strict=False):
    if strict is True:
        status(filename)
    return abspath(filename)


def expanduser(path):
    path = fspath(path)
    tilde, slash = (b"~", b"/") if isinstance(path, bytes) else ("~", "/")
    if not path.startswith(tilde) or path[1:2] not in (slash, path[:0]):
        return path
    home = fsencode(HOME) if isinstance(path, bytes) else HOME
    return home + path[1:]


def expandvars(path):
    import re
    from os import environ

    path = fspath(path)
    if isinstance(path, bytes):
        return path

    def value(match):
        name = match[1]
        name = name[1:-1] if name.startswith("{") else name
        return environ.get(name, match[0])

    return re.sub(r"\$(\w+|\{[^}]*\})", value, path)
