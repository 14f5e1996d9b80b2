"""What tools answer, as the code sees it: plain dicts, lists and texts that accept two common mistakes.

A field is found in either spelling: `row["userId"]` and `row["user_id"]` name the same one where no other field could
be meant. It is an attribute too: `row.user_id`. What discovery answers may also be awaited, since code written for
other bridges does so. To guest code they are `dict`, `list` and `str` by type (`classes.OPAQUE`), and none takes stores
of attributes.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import TypeVar, cast

T = TypeVar("T")
_KEYS_COMPARED_MAX = 200
"""With more keys it is a table and no record: a missing key must stay as cheap as in any dict."""
_NOT_ALNUM = re.compile(r"[\W_]+")


class DocumentedObject(dict[str, object]):
    """A JSON object whose fields are found in the casing of the documentation too."""

    __slots__ = ()

    def __missing__(self, key: str) -> object:
        own = _other_spelling(self, key)
        if own is None:
            raise KeyError(key)
        return dict.__getitem__(self, own)

    def __getattr__(self, name: str) -> object:
        """Return a field as an attribute, as other bridges give it; what every dict has stays that."""
        own = name if dict.__contains__(self, name) else _other_spelling(self, name)
        if own is None or name.startswith("_"):
            raise AttributeError(f"'dict' object has no attribute {name!r}", name=name, obj=self)
        return dict.__getitem__(self, own)

    def get(self, key: str, default: object = None) -> object:
        """Return the value of a field in either spelling, or `default`."""
        if dict.__contains__(self, key):
            return dict.__getitem__(self, key)
        own = _other_spelling(self, key)
        return default if own is None else dict.__getitem__(self, own)


class AwaitableAnswer(DocumentedObject):
    """An object that is there already and may be awaited all the same."""

    __slots__ = ()
    __hash__ = object.__hash__  # type: ignore[assignment]  # `asyncio.gather` looks up what it was given

    def __await__(self) -> Generator[None, None, AwaitableAnswer]:
        return _at_once(self)


class AwaitableList(list[object]):
    """A list that is there already and may be awaited all the same."""

    __slots__ = ()
    __hash__ = object.__hash__  # type: ignore[assignment]  # `asyncio.gather` looks up what it was given

    def __await__(self) -> Generator[None, None, AwaitableList]:
        return _at_once(self)


class AwaitableText(str):
    """A text that is there already and may be awaited all the same."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, AwaitableText]:
        return _at_once(self)


DocumentedObject.__name__ = AwaitableAnswer.__name__ = "dict"  # as CPython's own errors name them
AwaitableList.__name__, AwaitableText.__name__ = "list", "str"


def answer_of(value: object) -> object:
    """Return JSON with every object in it a `DocumentedObject`; lists are changed in place."""
    kind = type(value)
    if kind is dict:
        fields = cast("dict[str, object]", value)
        for key, item in fields.items():
            if type(item) is dict or type(item) is list:
                fields[key] = answer_of(item)
        return DocumentedObject(fields)
    if kind is list:
        items = cast("list[object]", value)
        for index, item in enumerate(items):
            if type(item) is dict or type(item) is list:
                items[index] = answer_of(item)
    return value


def awaitable(value: object) -> object:
    """Return what discovery answered in the form that may also be awaited."""
    answer = answer_of(value)
    match answer:
        case DocumentedObject():
            return AwaitableAnswer(answer)
        case list():
            return AwaitableList(answer)
        case str():
            return AwaitableText(answer)
        case _:
            return answer


def _at_once(value: T) -> Generator[None, None, T]:
    yield from ()
    return value


def _other_spelling(fields: dict[str, object], key: object) -> str | None:
    """Return the one field that differs from `key` in case and underscores alone."""
    if type(key) is not str or dict.__len__(fields) > _KEYS_COMPARED_MAX:
        return None
    wanted = _folded(key)
    found = [own for own in dict.keys(fields) if type(own) is str and _folded(own) == wanted] if wanted else []
    return found[0] if len(found) == 1 else None


def _folded(name: str) -> str:
    return _NOT_ALNUM.sub("", name).casefold()
