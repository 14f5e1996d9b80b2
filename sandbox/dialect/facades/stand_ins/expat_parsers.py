"""A security boundary: an Expat parser that calls a handler is given no more text until the handler returns.

Expat reads on in its own buffer after the call; more text may have moved that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pyexpat import XMLParserType
from typing import Any

from ....guest.type_flags import replace_method


def parse_one_text_at_a_time() -> None:
    """Let a parser that is at work refuse another text."""
    for name in ("Parse", "ParseFile"):
        replace_method(XMLParserType, name, _alone(getattr(XMLParserType, name)))


_at_work: set[int] = set()


def _alone(parse: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(parse, assigned=("__name__", "__doc__"), updated=())
    def checked(self: XMLParserType, /, *arguments: object) -> Any:
        if id(self) in _at_work:
            raise RuntimeError("the parser is at work: give it the text when its handler has returned")
        _at_work.add(id(self))
        try:
            return parse(self, *arguments)
        finally:
            _at_work.discard(id(self))

    del checked.__wrapped__  # which `wraps` sets
    return checked
