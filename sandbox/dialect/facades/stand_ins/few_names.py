"""The members of standard modules of which few are replaced: `MEMBERS`, by the name of the module."""

from __future__ import annotations

import abc
import csv
import hashlib
import locale
import math
import operator
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import StringIO
from typing import Any, Final
from urllib import parse

from ....guest.facade import Module
from ...classes import OPAQUE, abstract_metaclass, type_of
from ...guards import guarded_getattr
from ...names import Verdict, given, judge, mangle
from ..private import copy_of
from .held_items import alone

_PIECE_BYTES: Final = 1 << 18
_CALL_NOTHING: Final = frozenset({list, tuple, StringIO})
"""Iterables that call no code."""
_reader: Final = csv.reader


class ABC(metaclass=abc.ABCMeta):  # noqa: B024 - nothing is abstract in it, as in Python's own
    """A class to inherit from where methods are marked with `abstractmethod`."""

    __slots__ = ()


def reader(iterable: Iterable[str], /, *arguments: Any, **keywords: Any) -> Any:
    """Return an iterator of the rows of text; takes the arguments of Python's own.

    A reader is at work on a row while it asks for the next line: called again there, C code has no fields to go on
    with.
    """
    lines = iterable if type(iterable) in _CALL_NOTHING else alone(iter(iterable))
    return _reader(lines, *arguments, **keywords)


def read_alone() -> None:
    """Let the readers of the library (`csv.DictReader`) be such."""
    vars(csv)["reader"] = reader


def file_digest(fileobj: Any, digest: str | Callable[[], Any], /) -> Any:
    """Hash what is left to read in a binary file; `digest` is the name of an algorithm, or makes a hash.

    Of a file it asks for nothing but its bytes.
    """
    made = hashlib.new(digest) if isinstance(digest, str) else digest()
    while piece := fileobj.read(_PIECE_BYTES):
        made.update(piece)
    return made


def setlocale(category: int, locale_name: object = None) -> str:  # noqa: ARG001 - Python's own signature
    """Return "C" when asked, or when asked to stay there. Raises `locale.Error` for any other locale."""
    if locale_name in {None, "", "C", "POSIX"}:
        return "C"
    raise locale.Error('unsupported locale setting; format with f"{value:,.2f}", which depends on no locale')


def getlocale(category: int = locale.LC_CTYPE) -> tuple[None, None]:  # noqa: ARG001 - Python's own signature
    """Return what Python returns for the C locale."""
    return (None, None)


def getpreferredencoding(do_setlocale: bool = True) -> str:  # noqa: ARG001 - Python's own signature
    """Return "utf-8"."""
    return "utf-8"


def sumprod(p: Iterable[Any], q: Iterable[Any], /) -> Any:
    """Return the sum of the products of two sequences of the same length, which Python has from 3.12 on."""
    products = [a * b for a, b in zip(p, q, strict=True)]
    return math.fsum(products) if all(type(each) is float for each in products) and products else sum(products)


def attrgetter(attr: str, /, *attrs: str) -> Callable[[object], object]:
    """Return a function that reads `attr`, a dotted name, from its argument; several give a tuple."""
    paths = [given(name, "an attribute name").split(".") for name in (attr, *attrs)]
    if all(_is_plain(part) for path in paths for part in path):
        return operator.attrgetter(*(".".join(map(mangle, path)) for path in paths))
    if len(paths) == 1:
        only = paths[0]
        return lambda obj: _follow(obj, only)
    return lambda obj: tuple(_follow(obj, path) for path in paths)


def methodcaller(name: str, /, *args: object, **kwargs: object) -> Callable[[object], object]:
    """Return a function that calls the method `name` of its argument."""
    method = given(name, "an attribute name")
    if _is_plain(method):
        return operator.methodcaller(mangle(method), *args, **kwargs)
    return lambda obj: _follow(obj, [method])(*args, **kwargs)


def _is_plain(name: str) -> bool:
    """Return whether source may write `.name` without any guard at run time."""
    return judge(name) in {Verdict.PLAIN, Verdict.PRIVATE}


def _follow(obj: object, path: list[str]) -> Any:
    for name in path:
        obj = guarded_getattr(obj, name)
    return obj


def system() -> str:
    """Return the kind of operating system."""
    return "Linux"


def python_implementation() -> str:
    """Return the name of the interpreter."""
    return "CPython"


def _unknown() -> str:
    """Return an empty string, as Python does for what it cannot find out."""
    return ""


def TokenizerIter(  # noqa: N802 - Python's own name
    readline: Callable[[], str | bytes], *, encoding: str | None = None, extra_tokens: bool = False
) -> Iterator[tuple[Any, ...]]:
    """Give the tokens of the lines that `readline` returns, as C's tokenizer. Raises SyntaxError, TypeError."""
    from _tokenize import TokenizerIter as Tokens  # type: ignore[import-not-found]  # its stubs are missing

    def line() -> str | bytes:
        """Read a line. A null byte in one makes the tokenizer return a token and raise at once (CPython 3.12, 3.13)."""
        read = readline()
        if (type(read) is str and "\0" in read) or (type(read) is bytes and b"\0" in read):
            raise SyntaxError("source code cannot contain null bytes")
        if type(read) is not str and type(read) is not bytes:
            raise TypeError(f"readline() returned {type(read).__name__!r}, not a line")
        return read

    if encoding is not None and type(encoding) is not str:
        raise TypeError(f"encoding must be a string or None, not {type(encoding).__name__!r}")
    options = {} if encoding is None else {"encoding": encoding}
    tokens: Iterator[tuple[Any, ...]] = Tokens(line, extra_tokens=extra_tokens is True, **options)
    return alone(tokens)  # `readline` could enter it


def new_class(
    name: str,
    bases: tuple[object, ...] = (),
    kwds: Mapping[str, object] | None = None,
    exec_body: Callable[[dict[str, object]], object] | None = None,
) -> object:
    """Make a class as `type(name, bases, body)` or its metaclass does; `exec_body` fills the body."""
    keywords = {given(key, "a keyword of a class"): value for key, value in dict(kwds or {}).items()}
    metaclass: Any = keywords.pop("metaclass", type_of)
    body: dict[str, object] = {}
    if exec_body is not None:
        exec_body(body)
    return metaclass(name, bases, body, **keywords)


def urlsplit(url: Any, scheme: Any = "", allow_fragments: Any = True) -> Any:
    """Return the five parts of a URL.

    The real one keeps results by arguments and types, in an order that depends on how many arguments are keywords; so
    it could compare an argument with the type of another.
    """
    return parse.urlsplit(url, scheme, allow_fragments)


_OPAQUE_TYPES: Final = (
    "AsyncGeneratorType BuiltinFunctionType BuiltinMethodType CodeType CoroutineType FrameType FunctionType "
    "GeneratorType LambdaType TracebackType"
)
"""Types whose constructors lead into the interpreter: what stands for them tests instances alone."""

MEMBERS: Final[Mapping[str, Mapping[str, object]]] = {
    "_tokenize": {"TokenizerIter": TokenizerIter},
    "abc": {"ABC": ABC, "ABCMeta": abstract_metaclass},
    "csv": {"reader": reader},
    "hashlib": {"file_digest": file_digest},
    "locale": {
        "getencoding": getpreferredencoding,
        "getlocale": getlocale,
        "getpreferredencoding": getpreferredencoding,
        "setlocale": setlocale,
    },
    "math": {"sumprod": sumprod} if sys.version_info < (3, 12) else {},
    "operator": {"attrgetter": attrgetter, "methodcaller": methodcaller},
    "platform": {
        "python_implementation": python_implementation,
        "system": system,
        **dict.fromkeys(("machine", "node", "platform", "processor", "release", "version"), _unknown),
    },
    # Its own copy reads the attributes in a template through the guard.
    "string": {"Formatter": copy_of("string", replacing={"getattr": guarded_getattr}).Formatter},
    "types": {
        "MethodType": types.MethodType,  # binding a function to an object is what attribute access does all the time
        "ModuleType": Module,
        "new_class": new_class,
        **{name: OPAQUE[getattr(types, name)] for name in _OPAQUE_TYPES.split()},
    },
    "urllib.parse": {"urlsplit": urlsplit},
}
