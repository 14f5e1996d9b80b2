"""A security boundary: the texts of errors whose parts code may set to anything.

Written in C, the text of a Unicode error reads the object at a place that is not checked, before its first byte too,
and takes whatever object is there for bytes or a string. The text of an `OSError` goes on with parts that the
conversion of the first one may have taken away (CPython 3.11 to 3.13).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ....guest.type_flags import replace_method

_PLAIN: Final = frozenset({str, int, bytes, bool, type(None)})
_UNICODE: Final = (
    (UnicodeDecodeError, "encoding object start end reason".split()),  # noqa: SIM905 - read as words
    (UnicodeEncodeError, "encoding object start end reason".split()),  # noqa: SIM905 - as above
    (UnicodeTranslateError, "object start end reason".split()),  # noqa: SIM905 - as above
)


def keep_to_the_object() -> None:
    """Let the texts of these errors be made of what the error holds, and of no memory beside it."""
    for cls, parts in _UNICODE:
        replace_method(cls, "__str__", _unicode_text(cls, parts))
    replace_method(OSError, "__str__", _text_of_os_error())


def _unicode_text(cls: type[UnicodeError], parts: list[str]) -> Callable[[Any], str]:
    getters = [_getter(cls, part) for part in parts]
    verb = {UnicodeDecodeError: "decode", UnicodeEncodeError: "encode"}.get(cls, "translate")
    kind: Any = bytes if cls is UnicodeDecodeError else str

    def text_of(self: Any, /) -> str:
        *encoding, failed, start, end, reason = [get(self) for get in getters]
        if failed is None:
            return ""  # it was not initialized
        reason = str(reason)
        codec = f"'{encoding[0]!s}' codec " if encoding else ""
        place = f"position {start}-{end - 1}"
        what = "bytes" if kind is bytes else "characters"
        if end == start + 1 and isinstance(failed, kind) and 0 <= start < kind.__len__(failed):
            what, place = _shown(kind.__getitem__(failed, start)), f"position {start}"
        return f"{codec}can't {verb} {what} in {place}: {reason}"

    return text_of


def _shown(unit: int | str) -> str:
    if isinstance(unit, int):
        return f"byte 0x{unit:02x}"
    code = ord(unit)
    letter, digits = ("x", 2) if code < 1 << 8 else ("u", 4) if code < 1 << 16 else ("U", 8)
    return f"character '\\{letter}{code:0{digits}x}'"


def _text_of_os_error() -> Callable[[Any], str]:
    get_number, get_reason, get_name, get_other = (
        _getter(OSError, part) for part in ("errno", "strerror", "filename", "filename2")
    )
    text = OSError.__str__

    def text_of(self: Any, /) -> str:
        errno, strerror, filename, other = parts = get_number(self), get_reason(self), get_name(self), get_other(self)
        if _PLAIN.issuperset(map(type, parts)):
            return text(self)
        shown = f"[Errno {errno!s}] {strerror!s}"
        if filename is not None:
            shown += f": {filename!r}"
            return shown if other is None else f"{shown} -> {other!r}"
        return shown if errno is not None and strerror is not None else BaseException.__str__(self)

    return text_of


def _getter(cls: type, name: str) -> Callable[[Any], Any]:
    getter: Callable[[Any], Any] = cls.__dict__[name].__get__
    return getter
