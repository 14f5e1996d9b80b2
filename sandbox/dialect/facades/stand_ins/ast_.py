"""`ast.literal_eval`, and nothing else: its node classes are those that the dialect's own compiler works with."""

from __future__ import annotations

import ast
import gc

__all__ = ["literal_eval"]


def literal_eval(node_or_string: str, /) -> object:
    """Return the value of a Python literal. Raises ValueError or SyntaxError for anything else."""
    if not isinstance(node_or_string, str):
        raise TypeError(f"literal_eval() takes a string here, not {type(node_or_string).__name__}")
    text = str.__str__(node_or_string)
    collects = gc.isenabled()
    gc.disable()  # a finalizer of the code could wait in the midst of this, and the compiler counts how deep it is
    try:
        return ast.literal_eval(text)
    finally:
        if collects:
            gc.enable()
