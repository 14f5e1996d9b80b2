"""A security boundary: an Expat parser that calls a handler is given no more text until the handler returns.

Expat reads on in its own buffer after the call; more text may have moved that. Nor does a handler go that is taken out
of the parser while it runs: C calls it by the reference that stood there. A parser that was made from another reads
the document type of that one, which therefore stays (CPython 3.11 to 3.13). What changes the buffer of text
gives its content to the handler first, in C that does not expect the handler to do so again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pyexpat import XMLParserType
from typing import Any, Final

from ....guest.type_flags import replace_method


def parse_one_text_at_a_time() -> None:
    """Let a parser that is at work refuse another text, and keep the handlers that are exchanged meanwhile."""
    for name in ("Parse", "ParseFile"):
        replace_method(XMLParserType, name, _alone(getattr(XMLParserType, name)))
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


def _alone(parse: Callable[..., Any]) -> Callable[..., Any]:
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
