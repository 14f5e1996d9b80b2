"""Turn any Python value into JSON that a report can carry, and say what could not be shown as it was.

Security boundary: the values are hostile. Only exact built-in types are read, through methods of their C types captured
at import; a subclass is read as the base value it is, never through methods it overrides; `__class__` is never
believed. Guest code runs in three places only, each guarded: an object's own `__repr__`, a time zone of the guest's
own, and a property that a dataclass has for a field. What comes out consists of exact `dict`, `list`, `str`, `int`,
`float`, `bool` and `None` only.

| value | becomes |
| --- | --- |
| set, frozenset, tuple, range, deque, array, dict views | list; sets sorted |
| dataclass, named tuple, structseq (`time.struct_time`) | object of its fields |
| enum member | its value |
| date, time, datetime, timedelta | ISO 8601 |
| Decimal, Fraction, UUID, IP address, pure path, time zone | its text |
| int | exact: a number up to 4,300 digits, which is what JSON parsers accept; beyond, its digits as a string, noted |
| bytes, bytearray, memoryview | base64, noted |
| NaN, infinities | null, noted |
| a cycle, more than `depth_max` levels, more than `size_max` bytes of JSON | marked or cut, noted |
| tables and arrays of libraries, in full Python | see `plain_values` |
| anything else | its `repr`, bounded, noted; iterators and generators are never iterated |
"""

from __future__ import annotations

import sys
import types
from binascii import b2a_base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from json.encoder import encode_basestring
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from ..guest.guest import GUEST
from ..guest.real_classes import derives, mro_of
from ..guest.spelling import demangle
from ..wire.result_paths import Path, ResultNotes
from .disclosure import repr_of, type_name
from .value_kinds import (
    BITS_SURELY_SHORT,
    ITERATE,
    TEXTS,
    UNSET,
    dataclass_fields,
    decimal_digits,
    field_of,
    is_enum,
    length_of,
    order_of,
    tuple_fields,
)

if TYPE_CHECKING:
    from ..job import Json

_SIMPLE_CHARS_MAX = 1000


def size_as_it_is(value: object) -> int:
    """Return the size of the JSON of the simplest values, which are their own JSON, with a comma; 0 for all others."""
    if type(value) is str:
        if len(value) <= _SIMPLE_CHARS_MAX and value.isascii() and value.isprintable():
            return len(value) + 3 + value.count('"') + value.count("\\")
    elif type(value) is int:
        bits = value.bit_length()
        if bits <= BITS_SURELY_SHORT:
            return bits // 3 + 3
    elif type(value) is float:
        return 25 if isfinite(value) else 0
    elif value is None or value is True or value is False:
        return 6
    return 0


def json_size(text: str) -> int:
    """Return the bytes of a string's JSON, a lone surrogate counting as the escape that it will become."""
    if text.isascii() and text.isprintable():
        return len(text) + 2 + text.count('"') + text.count("\\")
    return len(encode_basestring(text).encode("utf-8", "backslashreplace"))


def is_unicode(text: str) -> bool:
    """Return whether UTF-8 can hold a string: it has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


CYCLE = "<cycle>"

TOO_LARGE = "a report cannot hold more. Write it to the workspace with write_file to keep it whole"
_KEYS_REMEMBERED = 1000

DEPTH_MAX = 90
"""Levels of lists and objects: with the envelope around it within `frames.DEPTH_MAX`, and within the 128 levels where
common parsers stop."""

SIZE_MAX = 20 * 1024 * 1024
"""Bytes of UTF-8 JSON, so that a report fits one frame."""

NODES_MAX = 970_000
"""Values within one result, a list or object counting as two: within `frames.VALUES_MAX`."""

DIGITS_MAX = 4300
"""Digits of an integer that Python's and pydantic's JSON parsers accept (docs: `sys.set_int_max_str_digits`)."""

_DIGITS_SHOWN_MAX = 10_000_000
_KEY_CHARS_MAX = 200
_KEY_SHOWN_MAX = 80
_RECURSION_NEEDED = 1000


@dataclass(frozen=True, slots=True)
class Rendered:
    """A value as JSON. `notes` maps where (`result.items[3].price`) to what was changed there (`nan became null`)."""

    json: Json
    notes: dict[str, str]


def render(
    value: object,
    *,
    name: str = "result",
    depth_max: int = DEPTH_MAX,
    size_max: int = SIZE_MAX,
    nodes_max: int = NODES_MAX,
) -> Rendered:
    """Return `value` as JSON with notes on whatever is not shown as it was; raises nothing but MemoryError.

    `name` starts every place in the notes; there are at most `NOTES_MAX` of them and one that counts the rest.
    `size_max` is bytes of compact UTF-8 JSON. A `__repr__` that never returns keeps this from returning: the clock that
    stops the code stops it too.
    """
    # The guest may have left a limit so low that nothing could be rendered, or encoded later.
    if sys.getrecursionlimit() < _RECURSION_NEEDED:
        sys.setrecursionlimit(_RECURSION_NEEDED)
    walk = _Walk(name, depth_max, size_max, nodes_max)
    try:
        return Rendered(walk.render(value, None, depth_max), walk.notes.all())
    except MemoryError:
        raise
    except BaseException:  # noqa: BLE001 - an unforeseen value must not fail a run that succeeded
        kind = type_name(type(value))
        return Rendered(f"<{kind} object>", {name: f"{kind} object that could not be shown"})


class _Walk:
    """One rendering of a value, with what is left of its bounds of depth, bytes of JSON and values.

    Each `from_…` method renders one kind of value, with `levels` of containers still to come, and spends its size.
    """

    def __init__(self, name: str, depth_max: int, size_max: int, nodes_max: int) -> None:
        self._depth_max = depth_max
        self._bytes_left = size_max
        self._nodes_left = nodes_max
        self._open: dict[int, Path] = {}
        self.notes = ResultNotes(name)
        self._key_sizes: dict[str, int] = {}

    def _key_size(self, key: str) -> int:
        """Return the size of a simple key, 0 for others; rows repeat their keys, so sizes are remembered."""
        size = size_as_it_is(key)
        if len(self._key_sizes) < _KEYS_REMEMBERED:
            self._key_sizes[key] = size
        return size

    def _enter(self, value: object, path: Path, levels: int) -> bool:
        if levels <= 0 or id(value) in self._open:
            return False
        self._open[id(value)] = path
        self._bytes_left -= 3
        self._nodes_left -= 2
        return True

    def _leave(self, value: object, shown: int, count: int, unit: str, path: Path) -> None:
        del self._open[id(value)]
        if shown < count:
            self.notes.add(path, f"the first {shown} of {count} {unit}: {TOO_LARGE}")

    def _marker(self, value: object, count: int, path: Path) -> Json:
        if id(value) in self._open:
            self.notes.add(path, f"refers back to {self.notes.place(self._open[id(value)])}")
            return self._text(CYCLE, path)
        self.notes.add(path, f"more than {self._depth_max} levels deep")
        return self._text(f"<{type_name(type(value))} of {count}>", path)

    def _spend(self, size: int) -> None:
        self._bytes_left -= size + 1
        self._nodes_left -= 1

    def _text(self, text: str, path: Path) -> str:
        if not text.isascii() and not is_unicode(text):
            text = text.encode("utf-8", "backslashreplace").decode()
            self.notes.add(path, "lone surrogates became \\u escapes, since JSON is UTF-8")
        self._spend(json_size(text))
        return text

    def render(self, value: object, path: Path, levels: int) -> Json:
        cls = type(value)
        renderer = _RENDERERS.get(id(cls))
        if renderer is not None:
            return renderer(self, value, path, levels)
        if is_enum(cls):
            return self.from_enum_member(value, path, levels)
        fields = dataclass_fields(cls)
        if fields is not None:
            return self.from_fields(value, [(demangle(name), field_of(value, name)) for name in fields], path, levels)
        for base in mro_of(cls):
            renderer = _RENDERERS.get(id(base))
            if renderer is not None:
                return renderer(self, value, path, levels)
        return self.from_other(value, path, levels)

    def from_none_or_bool(self, value: object, _path: Path, _levels: int) -> Json:
        self._spend(5)
        return cast("bool | None", value)

    def from_int(self, value: object, path: Path, _levels: int) -> Json:
        number = int.__int__(cast("int", value))
        bits = number.bit_length()
        if bits <= BITS_SURELY_SHORT:
            self._spend(bits // 3 + 2)
            return number
        digits_about = int(bits * 0.30103)
        if digits_about > min(self._bytes_left, _DIGITS_SHOWN_MAX):
            self.notes.add(path, f"an integer of about {digits_about} digits: {TOO_LARGE}")
            return self._text(f"<int of about {digits_about} digits>", path)
        digits = decimal_digits(number)
        self._spend(len(digits) + 2)
        count = len(digits) - (number < 0)
        if count <= DIGITS_MAX:
            return number
        self.notes.add(path, f"an integer of {count} digits became a string")
        return digits

    def from_float(self, value: object, path: Path, _levels: int) -> Json:
        number = float.__float__(cast("float", value))
        self._spend(24)
        if isfinite(number):
            return number
        self.notes.add(path, f"{number!r} became null")
        return None

    def from_str(self, value: object, path: Path, _levels: int) -> Json:
        text = str.__str__(cast("str", value))
        left = max(0, self._bytes_left)
        kept = text[: left + 1]
        while kept and (size := json_size(kept)) > left:
            kept = kept[: min(len(kept) - 1, len(kept) * left // size)]
        if len(kept) < len(text):
            self.notes.add(path, f"the first {len(kept)} of {len(text)} characters: {TOO_LARGE}")
        return self._text(kept, path)

    def from_list(self, value: object, path: Path, levels: int) -> Json:
        items = cast("list[object]", value)
        return self._items(value, list.__iter__(items), list.__len__(items), path, levels)

    def from_tuple(self, value: object, path: Path, levels: int) -> Json:
        items = tuple.__getitem__(cast("tuple[object, ...]", value), slice(None))
        names = None if type(value) is tuple else tuple_fields(type(value))
        if names is None or len(names) > len(items):
            return self._items(value, items, len(items), path, levels)
        return self.from_fields(
            value, [(demangle(name), item) for name, item in zip(names, items, strict=False)], path, levels
        )

    def from_set(self, value: object, path: Path, levels: int) -> Json:
        base: Any = set if derives(type(value), set) else frozenset
        members: list[object] = list(islice(base.__iter__(value), max(0, self._nodes_left)))
        return self._items(value, self._in_order(members, levels), base.__len__(value), path, levels)

    def from_dict(self, value: object, path: Path, levels: int) -> Json:
        pairs = cast("dict[object, object]", value)
        return self._pairs(value, dict.items(pairs), dict.__len__(pairs), path, levels)

    def from_fields(self, value: object, members: list[tuple[str, object]], path: Path, levels: int) -> Json:
        """Render an object of named fields; a field without a value is left out."""
        present: list[tuple[object, object]] = []
        for name, member in members:
            if member is UNSET:
                self.notes.add(path, f"the field {name} has no value")
            else:
                present.append((name, member))
        return self._pairs(value, present, len(present), path, levels)

    def from_enum_member(self, value: object, path: Path, levels: int) -> Json:
        own = field_of(value, "_value_")
        if own is UNSET or not self._enter(value, path, levels):
            return self.from_other(value, path, levels)
        rendered = self.render(own, path, levels - 1)
        del self._open[id(value)]
        return rendered

    def from_bytes(self, value: object, path: Path, levels: int) -> Json:
        fitting = max(0, self._bytes_left) // 4 * 3
        if derives(type(value), bytes):
            size = bytes.__len__(cast("bytes", value))
            data = bytes.__getitem__(cast("bytes", value), slice(0, fitting))
        elif derives(type(value), bytearray):
            size = bytearray.__len__(cast("bytearray", value))
            data = bytes(bytearray.__getitem__(cast("bytearray", value), slice(0, fitting)))
        else:
            view = cast("memoryview", value)
            try:
                size = view.nbytes
                data = view.tobytes() if size <= fitting else view.cast("B")[:fitting].tobytes()
            except (ValueError, TypeError):  # released, or too large and not in one piece
                return self.from_other(value, path, levels)
        if size > fitting:
            self.notes.add(path, f"the first {fitting} of {size} bytes as base64: {TOO_LARGE}")
        else:
            self.notes.add(path, f"{size} bytes as base64")
        return self._text(b2a_base64(data, newline=False).decode(), path)

    def from_textual(self, value: object, path: Path, levels: int) -> Json:
        """Render a value whose usual text says all of it, through the method of its base."""
        if self._plain(value, path) is None:  # pandas.NaT, which is a datetime to Python
            return None
        for base in mro_of(type(value)):
            speak = TEXTS.get(id(base))
            if speak is not None:
                try:
                    text = speak(value)
                except BaseException:  # noqa: BLE001 - a time zone of the guest's own may raise anything
                    break
                if type(text) is str:
                    return self.from_str(text, path, levels)
        return self.from_other(value, path, levels)

    def from_sequence(self, value: object, path: Path, levels: int) -> Json:
        """Render a range, deque, array or dict view."""
        for base in mro_of(type(value)):
            iterate = ITERATE.get(id(base))
            if iterate is not None:
                return self._items(value, iterate(value), length_of(base, value), path, levels)
        return self.from_other(value, path, levels)

    def from_other(self, value: object, path: Path, levels: int) -> Json:
        plain = self._plain(value, path)
        if plain is not value and self._enter(value, path, levels):
            rendered = self.render(plain, path, levels - 1)
            del self._open[id(value)]
            return rendered
        if type(value) is types.CoroutineType:
            self.notes.add(path, "a coroutine that was never awaited: write `await` before the call")
        else:
            self.notes.add(path, f"{type_name(type(value))} object shown as its repr")
        return self._text(repr_of(value), path)

    def _plain(self, value: object, path: Path) -> object:
        """Return what a value of a library is in plain Python, where code may have such; else the value itself."""
        if GUEST.plain is None:
            return value
        try:
            return GUEST.plain(value, self.notes.place(path))
        except Exception:  # noqa: BLE001 - then its `repr` has to do
            return value

    # Containers.

    def _items(self, value: object, members: Iterable[object], count: int, path: Path, levels: int) -> Json:
        """Render a list of `count` members, as many as the bounds allow."""
        if not self._enter(value, path, levels):
            return self._marker(value, count, path)
        shown: list[Json] = []
        # Members are taken at once: a `__repr__` on the way may change the container.
        for index, member in enumerate(list(islice(members, max(0, self._nodes_left)))):
            if self._bytes_left <= 0 or self._nodes_left <= 0:
                break
            size = size_as_it_is(member)
            if size:
                self._bytes_left -= size
                self._nodes_left -= 1
                shown.append(member)  # type: ignore[arg-type]  # it is its own JSON
            else:
                shown.append(self.render(member, (path, index), levels - 1))
        self._leave(value, len(shown), count, "items", path)
        return shown

    def _pairs(
        self, value: object, members: Iterable[tuple[object, object]], count: int, path: Path, levels: int
    ) -> Json:
        """Render an object of `count` pairs, as many as the bounds allow."""
        if not self._enter(value, path, levels):
            return self._marker(value, count, path)
        taken = list(islice(members, max(0, self._nodes_left)))
        shown: dict[str, Json] = {}
        reserved: set[str] | None = None
        for key, member in taken:
            if self._bytes_left <= 0 or self._nodes_left <= 0:
                break
            if type(key) is str and (size := self._key_sizes.get(key) or self._key_size(key)):
                name = key
                self._bytes_left -= size
            else:
                # A string key keeps its name; another key that reads the same gives way to it.
                reserved = {key for key, _ in taken if type(key) is str} if reserved is None else reserved
                name = self._key(key, reserved, shown, path)
            size = size_as_it_is(member)
            if size:
                self._bytes_left -= size
                self._nodes_left -= 1
                shown[name] = member  # type: ignore[assignment]  # it is its own JSON
            else:
                shown[name] = self.render(member, (path, name), levels - 1)
        self._leave(value, len(shown), count, "keys", path)
        return shown

    def _key(self, key: object, reserved: set[str], shown: dict[str, Json], path: Path) -> str:
        text, as_expected = self._key_text(key, path)
        name, again = text, 1
        while name in shown or (name in reserved and (type(key) is not str or name != key)):
            name = f"{text} ({type_name(type(key))}{'' if again == 1 else f' {again}'})"
            again += 1
        if name != text or not as_expected:
            change = "" if self.notes.full() else f"the key {repr_of(key, _KEY_SHOWN_MAX)} became {name!r}"
            self.notes.add(path, change if name == text else f"{change}, since there is another key {text!r}")
        return self._text(name, path)

    def _key_text(self, key: object, path: Path) -> tuple[str, bool]:
        """Return a key as a string, and whether it is what a reader expects, so that it needs no note."""
        cls = type(key)
        if key is None or cls is bool or cls is float:
            return repr(key), True
        if type(key) is int:
            return decimal_digits(key), True
        if derives(cls, str) and not is_enum(cls):
            text = self.from_str(key, path, 0)
            return cast("str", text), True
        scratch = _Walk("", 1, _KEY_CHARS_MAX, _KEY_CHARS_MAX)
        rendered = None if derives(cls, tuple) else scratch.render(key, None, 1)
        if type(rendered) is int:
            return decimal_digits(rendered), True
        if type(rendered) is str:
            return rendered, not scratch.notes.all()
        return repr_of(key, _KEY_CHARS_MAX), False

    def _in_order(self, members: list[object], levels: int) -> list[object]:
        kinds = {order_of(member) for member in members}
        if len(kinds) <= 1 and None not in kinds:
            try:
                return sorted(members)  # type: ignore[type-var]  # all are of one kind that has an order
            except BaseException:  # noqa: BLE001 - naive and aware times, or a time zone of the guest's own
                return sorted(members, key=lambda member: self._text_order(member, levels))
        return sorted(members, key=lambda member: self._text_order(member, levels))

    def _text_order(self, member: object, levels: int) -> str:
        scratch = _Walk("", self._depth_max, self._bytes_left, self._nodes_left)
        scratch._open = dict(self._open)
        text = type_name(type(member)) + repr(scratch.render(member, None, levels - 1))
        self._nodes_left = scratch._nodes_left
        return text


_Renderer: TypeAlias = Callable[[_Walk, object, Path, int], "Json"]

_BY_CLASS: dict[type, _Renderer] = {
    type(None): _Walk.from_none_or_bool,
    bool: _Walk.from_none_or_bool,
    str: _Walk.from_str,
    int: _Walk.from_int,
    float: _Walk.from_float,
    list: _Walk.from_list,
    tuple: _Walk.from_tuple,
    dict: _Walk.from_dict,
    set: _Walk.from_set,
    frozenset: _Walk.from_set,
    bytes: _Walk.from_bytes,
    bytearray: _Walk.from_bytes,
    memoryview: _Walk.from_bytes,
}

# By identity, since a metaclass may say what it likes of equality.
_RENDERERS: dict[int, _Renderer] = {
    **{id(cls): renderer for cls, renderer in _BY_CLASS.items()},
    **dict.fromkeys(TEXTS, _Walk.from_textual),
    **dict.fromkeys(ITERATE, _Walk.from_sequence),
}
