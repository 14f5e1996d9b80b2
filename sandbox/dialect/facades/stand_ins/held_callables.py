"""A security boundary: what C code calls, and keeps in a place that the call may empty, is held until the call returns.

C code calls it by the reference that stands there. Code that empties the place meanwhile, or initializes the object
anew, had the memory freed of what was at work: a `partial`, or the list of a bound `list.sort` (CPython 3.11 to 3.13).
An iterator of a sequence lets go of it twice, where it ends within itself: such a one is not entered again.

An Expat parser that calls a handler is given no more text until the handler returns: Expat reads on in its own buffer
after the call, and more text may have moved that. Nor does a handler go that is taken out of the parser while it runs.
A parser that was made from another reads the document type of that one, which therefore stays (CPython 3.11 to 3.13).
What changes its buffer of text gives the content to the handler first, in C that does not expect the handler to do so
again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from pyexpat import XMLParserType
from typing import Any, Final

from ....guest.type_flags import replace_method


class _Sequence:
    def __getitem__(self, index: int) -> object:
        raise IndexError(index)


_parts_of_property: Final = tuple(vars(property)[name].__get__ for name in ("fget", "fset", "fdel"))
_initialize_property: Final[Callable[..., None]] = property.__init__
_ITERATOR: Final[Any] = type(iter(int, 1))
_factory_of: Final[Callable[[Any], Any]] = vars(defaultdict)["default_factory"].__get__
_parts_of_iterator: Final = _ITERATOR.__reduce__

_ITEMS: Final[Any] = type(iter(_Sequence()))
_next_item: Final = _ITEMS.__next__
_entered: Final[set[int]] = set()
"""The identities of the iterators of sequences that are at work."""
_next: Final = _ITERATOR.__next__
_shown: Final = defaultdict.__repr__


def hold() -> None:
    """Let default factories, iterators and properties hold what they call."""
    replace_method(defaultdict, "__missing__", _call_factory)
    replace_method(defaultdict, "__repr__", _show_table)
    replace_method(_ITERATOR, "__next__", _give_next)
    replace_method(_ITEMS, "__next__", _give_next_item)
    replace_method(property, "__init__", _initialize_once)


def _call_factory(self: defaultdict[Any, Any], key: object, /) -> object:
    factory = _factory_of(self)
    if factory is None:
        raise KeyError(key)
    value = self[key] = factory()
    return value


def _show_table(self: defaultdict[Any, Any], /) -> str:
    _held = _factory_of(self)
    return _shown(self)


def _give_next(self: Any, /) -> object:
    _held = _parts_of_iterator(self)
    return _next(self)


def _give_next_item(self: Any, /) -> object:
    if id(self) in _entered:
        raise ValueError("the iterator is at work: ask it for the next item after __getitem__() has returned")
    try:
        _entered.add(id(self))
        return _next_item(self)
    finally:
        _entered.discard(id(self))


def _initialize_once(self: property, /, *arguments: Any, **keywords: Any) -> None:
    if type(self) is not property and any(get(self) is not None for get in _parts_of_property):
        raise TypeError("a property is initialized once; make another one")
    _initialize_property(self, *arguments, **keywords)


def parse_one_text_at_a_time() -> None:
    """Let a parser that is at work refuse another text, and keep the handlers that are exchanged meanwhile."""
    for name in ("Parse", "ParseFile"):
        replace_method(XMLParserType, name, _parse_alone(getattr(XMLParserType, name)))
    replace_method(XMLParserType, "__setattr__", _set_and_keep)
    replace_method(XMLParserType, "ExternalEntityParserCreate", _make_child)


_OF_BUFFER: Final = frozenset({"buffer_text", "buffer_size"})
_at_work: dict[int, list[object]] = {}
"""For each parser at work, what was exchanged in it since it was given the text."""


_make_from: Callable[..., XMLParserType] = XMLParserType.ExternalEntityParserCreate
_parents: list[XMLParserType] = []


def _make_child(self: XMLParserType, /, *arguments: Any) -> XMLParserType:
    child = _make_from(self, *arguments)
    _parents.append(self)  # once it is known to be a parser
    return child


def _parse_alone(parse: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(parse, assigned=("__name__", "__doc__"), updated=())
    def checked(self: XMLParserType, /, *arguments: object) -> Any:
        if id(self) in _at_work:
            raise RuntimeError("the parser is at work: give it the text when its handler has returned")
        _at_work[id(self)] = []
        try:
            return parse(self, *arguments)
        finally:
            del _at_work[id(self)]

    del checked.__wrapped__  # which `wraps` sets
    return checked


def _set_and_keep(self: XMLParserType, name: str, value: object, /) -> None:
    kept = _at_work.get(id(self))
    if kept is not None:
        if name in _OF_BUFFER:
            raise RuntimeError(f"the parser is at work: set its {name} before it is given the text")
        kept.append(getattr(self, name, None))
    object.__setattr__(self, name, value)
