"""Security boundary: reads JSON from a hostile child under bounds, and large JSON in steps, both ways.

CPython's decoder and encoder are linear, but one call holds the interpreter from beginning to end: for 32 MB that is
most of a second, in which no other thread runs. Here no call gets more than `STEP_CHARS` of text or one scalar, so
that a caller in a thread of its own delays no other. Every byte is looked at a fixed number of times.

Depth and the number of values are bounded before anything is decoded, since a short text can decode to much memory.

Sources: RFC 8259 (JSON; section 4 leaves duplicate names undefined, so they are refused), RFC 3629 (UTF-8).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]  # the type stubs leave it out
from json.encoder import encode_basestring
from typing import NoReturn, TypeAlias, cast

from ..job import Json

DEPTH_MAX = 100
STEP_CHARS = 1 << 15
"""A few milliseconds of decoding, whatever it is."""
_LIGHT_VALUES = 500
_SCALAR_CHARS_MAX = 5000
"""Digits of a number: more than Python reads as an int (docs: `sys.set_int_max_str_digits`)."""

_Container: TypeAlias = "list[Json] | dict[str, Json]"
_CONTAINERS = (dict, list, tuple)

# Each alternative begins with characters of its own and keeps what it took, so nothing is tried a second way; a string
# without an end is taken whole, or each quote in it would begin anew. Groups are atomic and not possessive: until
# CPython 3.11.5 possessive groups gave back what they took (gh-106052).
_STRING = re.compile(rb'"[^"\\]*+(?>(?:\\.[^"\\]*+)*)\\?+"?+', re.DOTALL)
_WHOLE = r'"[^"\\]*+(?>(?:\\.[^"\\]*+)*)"'
_FLAT = rf'(?>(?:[^"\[\]{{}}]++|{_WHOLE})*)'
_MEMBER = rf'(?>(?:[^",\[\]{{}}]++|{_WHOLE}|\[{_FLAT}\]|\{{{_FLAT}\}})*)'
_MEMBERS = re.compile(rf"(?>(?:{_MEMBER},)*)(?>(?:{_MEMBER}(?=[\]}}]))?)", re.DOTALL)
"""Members of a list or object that are no deeper than a list or object of scalars."""
_INSIDE = re.compile(r'(?>(?:[^"\\]++|\\u[0-9a-fA-F]{4}|\\[^u])*)')
_SCALAR = re.compile(rf"[-+.\w]{{1,{_SCALAR_CHARS_MAX}}}+", re.ASCII)
_SPACE = re.compile(r"[ \t\n\r]*+")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_OPENING = frozenset(b"[{")


def read(text: bytes, *, values_max: int) -> Json:
    """Decode UTF-8 in one step. Raises `ValueError`, also for what is too deep or has too many values."""
    brackets = text.count(b"[") + text.count(b"{")
    if brackets > DEPTH_MAX or text.count(b",") + brackets >= values_max:
        # Brackets and commas inside strings only matter once there are many.
        bare = _STRING.sub(b"", text)
        if _parts(bare) >= values_max:
            raise _too_many(values_max)
        _depth_after(bare, 0)
    return cast("Json", _read(text.decode()))


def read_in_steps(text: bytes, *, values_max: int, lenient: bool = False) -> dict[str, Json]:
    """Decode an object of UTF-8 in steps. Raises `ValueError` as `read` does.

    With `lenient`, about as Python's `json` does by itself: what is deeper, NaN, infinities and control characters in
    strings are taken, and of a name that stands twice the last.
    """
    return _BoundedReader(text, values_max, lenient=lenient).read()


def check(text: bytes, *, values_max: int, names_max: int) -> None:
    """Raise `ValueError` for JSON that is too deep, has too many values or too many names of objects, or is not UTF-8.

    Nothing is decoded, and no step gets more than `STEP_CHARS`: it is cheap beside decoding, and ends at the bound.
    Text that is not JSON may pass; a decoder stops where it is not, and what stands before is judged as the decoder
    reads it.
    """
    if b"\0" in text:  # as UTF-16 and UTF-32 have it, whose quotes are not found here; JSON escapes it
        raise ValueError("it is not UTF-8")
    if text.count(b"[") + text.count(b"{") <= DEPTH_MAX and _parts(text) < values_max and text.count(b":") <= names_max:
        return
    at = values = names = depth = 0
    in_string = False
    while at < len(text):
        end = at + STEP_CHARS
        step = text[at:end]
        if (len(step) - len(step.rstrip(b"\\"))) % 2:  # what a backslash escapes stands in its step
            end += 1
            step = text[at:end]
        at = end
        parts = step.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        bare = b"".join(parts[in_string::2])
        in_string ^= len(parts) % 2 == 0
        values += _parts(bare)
        names += bare.count(b":")
        if values >= values_max:
            raise _too_many(values_max)
        if names > names_max:
            raise ValueError(f"its objects hold more than {names_max} names")
        depth = _depth_after(bare, depth)


def is_light(value: Json) -> bool:
    """Return whether a value is written in less than a step; takes no longer than that itself."""
    values, chars = _LIGHT_VALUES, STEP_CHARS
    waiting: list[Json] = [value]
    while waiting:
        each = waiting.pop()
        values -= 1
        if isinstance(each, str):
            chars -= len(each)
        elif isinstance(each, dict):
            if len(each) > values:
                return False
            waiting += each.values()
            chars -= sum(len(key) for key in each if isinstance(key, str))
        elif isinstance(each, list | tuple):
            if len(each) > values:
                return False
            waiting += each
        if values < 0 or chars < 0:
            return False
    return True


def write(value: Json) -> str:
    """Return the compact JSON text in one step. Raises `ValueError`, `RecursionError` and `TypeError` as json does."""
    return _write(value)


def write_in_steps(value: Json) -> str:
    """Return the compact JSON text, made in steps. Raises `ValueError` and `TypeError` as json does."""
    return "".join(_fragments(value))


class _BoundedReader:
    """One text that is read in steps: `_at` is how far it was read, in `_container`, with those around it outside."""

    def __init__(self, text: bytes, values_max: int, *, lenient: bool) -> None:
        self._text = text.decode()
        self._lenient = lenient
        self._decode = _read_leniently if lenient else _read
        self._depth_max = 5 * DEPTH_MAX if lenient else DEPTH_MAX
        self._values_max = values_max
        self._values = 0
        self._counts = _parts(text) >= values_max
        self._outer: list[tuple[_Container, str]] = []
        self._at = 0

    def read(self) -> dict[str, Json]:
        if self._next() != "{":
            raise ValueError("it is not an object")
        self._at += 1
        whole: dict[str, Json] = {}
        container: _Container = whole
        begun = needs_member = False
        while True:
            char = self._next()
            if char == ("}" if isinstance(container, dict) else "]") and not needs_member:
                self._at += 1
                if not self._outer:
                    if self._next():
                        raise ValueError("more follows the object")
                    return whole
                container, _ = self._outer.pop()
                begun = True
                continue
            if begun and not needs_member:
                if char != ",":
                    raise ValueError("a comma or the end of a list or object is missing")
                self._count(1)
                self._at += 1
                needs_member = True
                continue
            if self._take_members(container):
                needs_member = self._text[self._at - 1] == ","
                begun = True
                continue
            inner = self._take_one(container)
            begun, needs_member = inner is None, False
            container = container if inner is None else inner

    def _next(self) -> str:
        """Return the next character that is not a space, or nothing at the end."""
        at = self._at
        while (end := cast("re.Match[str]", _SPACE.match(self._text, at, at + 64 * STEP_CHARS)).end()) != at:
            at = end
        self._at = at
        return self._text[at : at + 1]

    def _take_members(self, container: _Container) -> bool:
        """Take the members that fit into a step, if any do."""
        found = cast("re.Match[str]", _MEMBERS.match(self._text, self._at, self._at + STEP_CHARS))
        members = found[0]
        if not members:
            return False
        if self._counts:
            self._count(_parts(_STRING.sub(b"", members.encode())))
        members = members.removesuffix(",")
        taken: _Container
        if isinstance(container, dict):
            fields: dict[str, Json] = self._decode(f"{{{members}}}")
            both = len(container) + len(fields)
            container.update(fields)
            if len(container) != both and not self._lenient:
                raise _twice()
            taken = fields
        else:
            taken = cast("list[Json]", self._decode(f"[{members}]"))
            container += taken
        if not taken:
            raise ValueError("a value is missing")
        if len(self._outer) + 1 >= self._depth_max:
            values = taken.values() if isinstance(taken, dict) else taken
            if any(isinstance(each, list | dict) for each in values):
                raise _too_deep(self._depth_max)
        self._at = found.end()
        return True

    def _take_one(self, container: _Container) -> _Container | None:
        """Take the one member that does not fit into a step; return it if it is a container that is yet to be read."""
        key = ""
        if isinstance(container, dict):
            key = self._string()
            if self._next() != ":":
                raise ValueError("a name has no value")
            self._at += 1
            if key in container and not self._lenient:
                raise _twice()
        char = self._next()
        inner: _Container | None = [] if char == "[" else {} if char == "{" else None
        value: Json
        if inner is not None:
            value = inner
            self._outer.append((container, key))
            self._count(1)
            if len(self._outer) >= self._depth_max:
                raise _too_deep(self._depth_max)
            self._at += 1
        elif char == '"':
            value = self._string()
        else:
            scalar = _SCALAR.match(self._text, self._at)
            if scalar is None:
                raise ValueError("a value is missing")
            value = self._decode(scalar[0])
            self._at = scalar.end()
        if isinstance(container, dict):
            container[key] = value
        else:
            container.append(value)
        return inner

    def _string(self) -> str:
        if self._text[self._at : self._at + 1] != '"':
            raise ValueError("a string is missing")
        at = self._at + 1
        pieces: list[str] = []
        while True:
            end = cast("re.Match[str]", _INSIDE.match(self._text, at, at + STEP_CHARS)).end()
            piece = scanstring(f'"{self._text[at:end]}"', 1, not self._lenient)[0]
            if pieces and "\ud800" <= pieces[-1][-1:] < "\udc00" <= piece[:1] < "\ue000":
                # The two halves of one character, as RFC 8259 writes it.
                whole = (pieces[-1][-1] + piece[0]).encode("utf-16", "surrogatepass").decode("utf-16")
                pieces[-1], piece = pieces[-1][:-1], whole + piece[1:]
            pieces.append(piece)
            if self._text[end : end + 1] == '"':
                self._at = end + 1
                return "".join(pieces)
            if end == at:
                raise ValueError("a string does not end")
            at = end

    def _count(self, values: int) -> None:
        self._values += values
        if self._values >= self._values_max:
            raise _too_many(self._values_max)


def _fragments(value: Json) -> Iterator[str]:
    """Yield the text of a value, scalar for scalar."""
    if not isinstance(value, _CONTAINERS):
        yield _write(value)
        return
    open_ones = [_opened(value)]
    while open_ones:
        for each in open_ones[-1]:
            if not isinstance(each, str):
                if len(open_ones) >= 10 * DEPTH_MAX:
                    raise ValueError("it is too deep, or holds itself")
                open_ones.append(_opened(each))
                break
            yield each
        else:
            open_ones.pop()


def _opened(container: Json) -> Iterator[str | _Container]:
    """Yield the text of a list or object, and in their places the lists and objects in it."""
    if isinstance(container, dict):
        before, end = "{", "}"
        for key, value in container.items():
            name = encode_basestring(key) if type(key) is str else _write({key: 0})[1:-3]
            if isinstance(value, _CONTAINERS):
                yield f"{before}{name}:"
                yield cast("_Container", value)
            else:
                yield f"{before}{name}:{_write(value)}"
            before = ","
    else:
        before, end = "[", "]"
        for value in cast("list[Json]", container):
            if isinstance(value, _CONTAINERS):
                yield before
                yield cast("_Container", value)
            else:
                yield f"{before}{_write(value)}"
            before = ","
    yield end if before == "," else before + end


def _parts(text: bytes) -> int:
    """Count what may begin a value: each but the first has a bracket or a comma of its own."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _depth_after(bare: bytes, depth: int) -> int:
    for bracket in bare.translate(None, _NOT_BRACKETS):
        depth += 1 if bracket in _OPENING else -1
        if depth > DEPTH_MAX:
            raise _too_deep(DEPTH_MAX)
    return depth


def _too_many(values_max: int) -> ValueError:
    return ValueError(f"it holds more than {values_max} values")


def _too_deep(depth_max: int) -> ValueError:
    return ValueError(f"it is nested deeper than {depth_max}")


def _twice() -> ValueError:
    return ValueError("a name stands twice in one object")


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _twice()
    return value


def _finite(text: str) -> float:
    number = float(text)
    if number - number != 0:
        raise ValueError("a number is too large")
    return number


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not valid JSON")


# Made once: `json.dumps` and `json.loads` make one anew for each frame.
_write = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_read = json.JSONDecoder(object_pairs_hook=_object, parse_float=_finite, parse_constant=_no_constant).decode
_read_leniently = json.JSONDecoder(strict=False).decode
