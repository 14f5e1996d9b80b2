"""Short forms of JSON values for messages, and values without the numbers that JSON lacks."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isfinite
from typing import Any

from typing_extensions import override

from .models import Json

_SHOWN_CHARS_MAX = 200
_SHOWN_VALUES_MAX = 20


def short(value: object, check: Callable[[], None]) -> object:
    """Return a JSON value, or a copy equal to it, whose `repr` is short: a list of few values is shown whole.

    `check` is called for each large list and object, and may raise. Raises `RecursionError` for what nests too deep.
    """
    if is_small(value):
        return value
    if isinstance(value, dict):
        check()
        return _Object((short(key, check), short(each, check)) for key, each in value.items())
    if isinstance(value, list):
        check()
        return _List(short(each, check) for each in value)
    return _Text(value) if isinstance(value, str) else value


def holds_more(value: object, values_max: float, *, text_chars_max: float = inf, chars_max: float = inf) -> bool:
    """Return whether a JSON value holds more values than so many, a longer text, or more characters in all its texts.

    Keys are texts too. It takes no longer than counting so many.
    """
    counts_texts = min(text_chars_max, chars_max) < inf
    values, chars, waiting = values_max, chars_max, [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict | list):
            values -= len(each)
            if values < 0:
                return True
            waiting += each.values() if isinstance(each, dict) else each
            if counts_texts and isinstance(each, dict):
                waiting += each
        elif counts_texts and isinstance(each, str):
            chars -= len(each)
            if chars < 0 or len(each) > text_chars_max:
                return True
    return False


def null_what_json_lacks(value: Json) -> tuple[Json, bool]:
    """Return a value with null in the places of NaN and infinities, and whether it held any; it is changed itself.

    Many writers give them, and many readers take them, but JSON has none (RFC 8259, section 6).
    """
    outermost = [value]
    held = False
    waiting: list[Any] = [outermost]
    while waiting:
        each = waiting.pop()
        for key, inner in each.items() if isinstance(each, dict) else enumerate(each):
            if isinstance(inner, float) and not isfinite(inner):
                each[key], held = None, True
            elif isinstance(inner, dict | list):
                waiting.append(inner)
    return outermost[0], held


def is_small(value: object) -> bool:
    """Return whether a JSON value has few values and no long text."""
    return not holds_more(value, _SHOWN_VALUES_MAX, text_chars_max=_SHOWN_CHARS_MAX)


class _Object(dict[object, object]):
    @override
    def __repr__(self) -> str:
        return f"an object of {len(self)} keys"


class _List(list[object]):
    @override
    def __repr__(self) -> str:
        return f"a list of {len(self)} items"


class _Text(str):
    __slots__ = ()

    @override
    def __repr__(self) -> str:
        return f"{self[:_SHOWN_CHARS_MAX]!r}…"
