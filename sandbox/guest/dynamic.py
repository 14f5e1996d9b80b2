"""A security boundary: a frozen namespace whose members are looked up when they are asked for.

`tools`, `tools.git` and `skills` are such: what they hold is known to the host alone, and changes. Like a facade it
takes no stores, and its class cannot be called or subclassed. Functions of the host's say what it holds and what a call
of it does; guest source cannot spell the slots in which they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .facade import Facade
from .spelling import PREFIX

FindModule = Callable[[str], object]
"""Gives the member of a name, or raises `AttributeError` with a message that names the nearest."""
Listing = Callable[[], Iterable[str]]
Call = Callable[..., object]


class Dynamic(Facade):
    """A namespace that asks `find` for each member and `listing` for all their names; see `dynamic`."""

    __slots__ = ("_call", "_find", "_item", "_listing", "_title")
    __module__ = "builtins"
    _title: str
    _find: FindModule
    _item: FindModule
    _call: Call | None
    _listing: Listing

    def __getattr__(self, name: str) -> object:
        if not is_public(name):
            raise AttributeError(f"{self._title} has no attribute {name!r}", name=name, obj=self)
        return self._find(name)

    def __getitem__(self, key: object) -> object:
        if type(self) is not Dynamic or type(key) is not str:
            raise TypeError(f"{self._title}[…] takes a name, as a str")
        return self._item(key)

    def __call__(self, *positional: object, **named: object) -> object:
        """Do what the host gave for a call. Raises TypeError where it gave nothing."""
        if type(self) is not Dynamic or self._call is None:
            raise TypeError(f"{self._title} cannot be called. Call one of its members.")
        return self._call(*positional, **named)

    def __contains__(self, key: object) -> bool:
        return type(self) is Dynamic and key in list(self._listing())

    def __len__(self) -> int:
        return len(list(self._listing())) if type(self) is Dynamic else 0

    def __bool__(self) -> bool:
        return True  # without asking the host

    def __iter__(self) -> object:
        return iter(self.__dir__())

    def __repr__(self) -> str:
        return f"<{self._title}>"

    def __dir__(self) -> list[str]:
        return sorted(self._listing()) if type(self) is Dynamic else []


def dynamic(
    title: str, find: FindModule, listing: Listing, *, item: FindModule | None = None, call: Call | None = None
) -> Dynamic:
    """Make a namespace that shows itself as `title`; `item` answers `namespace["any text"]`, else `find` does.

    `call` answers `namespace(…)`; without it that raises TypeError.
    """
    made = object.__new__(Dynamic)
    slots = {"_title": title, "_find": find, "_item": item or find, "_listing": listing, "_call": call}
    for slot, value in slots.items():
        object.__setattr__(made, slot, value)
    return made


def is_public(name: str) -> bool:
    """Return whether source may spell `name` as the public attribute of something."""
    return name.isidentifier() and not name.startswith("_") and PREFIX not in name
