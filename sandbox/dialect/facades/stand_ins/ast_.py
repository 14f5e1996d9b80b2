"""`ast.literal_eval`, and nothing else: its node classes are those that the dialect's own compiler works with."""

from __future__ import annotations

import ast

__all__ = ["literal_eval"]


def literal_eval(node_or_string: str, /) -> object:
    """Return the value of a Python literal. Raises ValueError or SyntaxError for anything else."""
    if not isinstance(node_or_string, str):
        raise TypeError(f"literal_eval() takes a string here, not {type(node_or_string).__name__}")
    return ast.literal_eval(str(node_or_string))
