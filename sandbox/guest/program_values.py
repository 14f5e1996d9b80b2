"""Puts values into a program where its source has the texts that stand for them."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ..job import Json

NO_LITERALS: Final[Mapping[str, Json]] = MappingProxyType({})


def put_in(tree: ast.AST, literals: Mapping[str, Json]) -> None:
    """Change the constants of a tree that nobody has judged yet.

    A constant that is just one of the texts becomes the value; within a longer one the value is written out.
    """
    if not literals:
        return
    any_of = re.compile("|".join(map(re.escape, literals)))
    in_texts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            whole = None if id(node) in in_texts else literals.get(node.value)
            node.value = (
                whole
                if isinstance(whole, int | float)
                else any_of.sub(lambda found: _written(literals[found[0]]), node.value)
            )


def _written(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value)
