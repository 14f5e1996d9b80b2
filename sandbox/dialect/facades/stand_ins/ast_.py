"""`ast.literal_eval`, and nothing else: the node classes are those that the dialect's own compiler works with."""

from __future__ import annotations

import ast
import gc

__all__ = ["literal_eval", "parse"]


class Expression:
    """A text that was parsed, for `literal_eval`."""

    __slots__ = ("_text",)
    __module__ = "ast"
    _text: str


def parse(source: str, filename: object = "<unknown>", mode: str = "exec") -> Expression:  # noqa: ARG001 - Python's own
    """Return an expression for `literal_eval`, with the mode "eval". Raises SyntaxError, TypeError for another mode."""
    if mode != "eval":
        raise TypeError("parse() takes mode='eval' here, for literal_eval()")
    made = Expression()
    made._text = _text_of(source)
    _without_collection(made._text, parse_only=True)
    return made


def literal_eval(node_or_string: str | Expression, /) -> object:
    """Return the value of a Python literal. Raises ValueError or SyntaxError for anything else."""
    if type(node_or_string) is Expression:
        return _without_collection(node_or_string._text)
    return _without_collection(_text_of(node_or_string).lstrip(" \t"))


def _text_of(source: object) -> str:
    if not isinstance(source, str):
        raise TypeError(f"literal_eval() takes a string here, not {type(source).__name__}")
    return str.__str__(source)


def _without_collection(text: str, *, parse_only: bool = False) -> object:
    """Return the value of a literal that may not begin with a blank, or nothing of one that is parsed alone."""
    collects = gc.isenabled()
    gc.disable()  # a finalizer of the code could wait in the midst of this, and the compiler counts how deep it is
    try:
        parsed = ast.parse(text, mode="eval")
        return None if parse_only else ast.literal_eval(parsed)
    finally:
        if collects:
            gc.enable()
