"""JSON values that say in short what they are: messages about a value often hold its whole text."""

from __future__ import annotations

from collections.abc import Callable

from typing_extensions import override

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


def holds_more(value: object, values_max: int) -> bool:
    """Return whether a JSON value holds more than so many values; takes no longer than counting those."""
    left, waiting = values_max, [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict | list):
            left -= len(each)
            if left < 0:
                return True
            waiting += each.values() if isinstance(each, dict) else each
    return False


def is_small(value: object) -> bool:
    """Return whether a JSON value holds few values and no long text."""
    left, waiting = _SHOWN_VALUES_MAX, [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict | list):
            left -= len(each)
            if left < 0:
                return False
            waiting += each
            if isinstance(each, dict):
                waiting += each.values()
        elif isinstance(each, str) and len(each) > _SHOWN_CHARS_MAX:
            return False
    return True


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
