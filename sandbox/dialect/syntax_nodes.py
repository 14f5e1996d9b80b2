"""New syntax nodes for the dialect: calls of its hooks, placed where the source had something else."""

from __future__ import annotations

import ast
from typing import TypeVar

_Node = TypeVar("_Node", bound=ast.AST)


def hook_call(hook: str, *arguments: ast.expr | str) -> ast.Call:
    """Return a call of the builtin `hook`, whose name no source can spell; text arguments become constants."""
    nodes = [ast.Constant(item) if isinstance(item, str) else item for item in arguments]
    return ast.Call(ast.Name(hook, ast.Load()), nodes, [])


def placed(new: _Node, old: ast.AST) -> _Node:
    """Give `new`, and what in it has no place yet, the place of `old`; return it.

    What has a place was placed whole: unlike `ast.fix_missing_locations`, this does not look into it again.
    """
    for child in ast.iter_child_nodes(ast.copy_location(new, old)):
        if child._fields and not hasattr(child, "lineno"):
            placed(child, old)
    return new
