"""`_sealab_ast`: trees of Python's grammar as plain data, for the guest module `ast`.

The real classes of nodes are those that the dialect's own compiler works with, so code never holds one: it has classes
of its own, and a node crosses as a tuple of its kind and a dictionary of what it holds. What comes back is judged
exactly, and of it only a text or the value of a literal is made.
"""

from __future__ import annotations

import ast
import gc
from collections.abc import Callable, Mapping
from types import EllipsisType
from typing import Final, TypeAlias, cast

__all__ = ["dump", "kinds", "literal", "parse", "unparse"]

Data: TypeAlias = "tuple[str, dict[str, Data]] | list[Data] | str | bytes | float | complex | EllipsisType | None"

_KINDS: Final[Mapping[str, type[ast.AST]]] = {
    name: kind
    for name, kind in vars(ast).items()
    if type(kind) is type and issubclass(kind, ast.AST) and kind.__name__ == name and not name.startswith("_")
}
_PLACES: Final = ("lineno", "col_offset", "end_lineno", "end_col_offset")
_SCALARS: Final = frozenset({str, bytes, int, float, complex, bool, type(None), EllipsisType})
_MODES: Final = frozenset({"exec", "eval", "single", "func_type"})
_PARTS: Final = 2


def kinds() -> dict[str, tuple[str, tuple[str, ...], tuple[str, ...], str]]:
    """Return each kind of node with the kind that it derives from, its fields, its attributes and its description."""
    return {
        name: (kind.__base__.__name__, kind._fields, tuple(kind._attributes), kind.__doc__ or "")
        for name, kind in _KINDS.items()
        if kind is not ast.AST and kind.__base__ is not None and kind.__base__.__name__ in _KINDS
    }


def parse(source: str | bytes, filename: str, mode: str, type_comments: object, version: int) -> Data:
    """Return the tree of a source. Raises SyntaxError, TypeError and ValueError as `ast.parse` does."""
    if not isinstance(source, str | bytes):
        raise TypeError(f"parse() takes a string or bytes here, not {type(source).__name__}")
    text = str.__str__(source) if isinstance(source, str) else bytes.__bytes__(source)
    if type(mode) is not str or mode not in _MODES:
        raise ValueError("parse() mode must be 'exec', 'eval', 'single' or 'func_type'")
    if type(filename) is not str or type(version) is not int:
        raise TypeError("a file name is a string and a version a number")
    has_comments = type_comments is True
    try:
        tree = _without_collection(
            lambda: ast.parse(text, mode=mode, type_comments=has_comments, feature_version=version)
        )
    except SyntaxError as error:
        error.filename = filename  # given to the parser, it would show a line of that file
        raise
    return _data_of(tree)


def unparse(data: Data) -> str:
    """Return source for a tree. Raises TypeError and ValueError for what is none."""
    return ast.unparse(_tree_of(data))


def dump(data: Data, annotate_fields: object, include_attributes: object, indent: int | str | None) -> str:
    """Return the text of a tree as `ast.dump` does."""
    if type(indent) not in {int, str, type(None)}:
        raise TypeError(f"indent must be a number or a string, not {type(indent).__name__}")
    return ast.dump(
        _tree_of(data), annotate_fields is True, include_attributes=include_attributes is True, indent=indent
    )


def literal(source: Data) -> object:
    """Return the value of a literal, given its text or its tree. Raises ValueError or SyntaxError for anything else."""
    if isinstance(source, str):
        text = str.__str__(source).lstrip(" \t")
        return _without_collection(lambda: ast.literal_eval(text))
    return ast.literal_eval(_tree_of(source))


def _without_collection(read: Callable[[], object]) -> object:
    collects = gc.isenabled()
    gc.disable()  # a finalizer of the code could wait in the midst of this, and the compiler counts how deep it is
    try:
        return read()
    finally:
        if collects:
            gc.enable()


def _data_of(value: object) -> Data:
    if isinstance(value, ast.AST):
        names = (*value._fields, *(name for name in _PLACES if name in value._attributes))
        return type(value).__name__, {name: _data_of(getattr(value, name, None)) for name in names}
    return [_data_of(each) for each in value] if type(value) is list else cast("Data", value)


def _tree_of(data: object) -> ast.AST:
    tree = _real(data)
    if not isinstance(tree, ast.AST):
        raise TypeError(f"expected a node, got {type(data).__name__!r}")
    return tree


def _real(data: object) -> object:
    """Return the real node for one; every class is compared exactly, since another could answer for itself."""
    if type(data) in _SCALARS:
        return data
    if type(data) is list:
        return [_real(each) for each in data]
    if type(data) is not tuple or len(data) != _PARTS or type(data[0]) is not str or type(data[1]) is not dict:
        raise TypeError("a tree holds nodes, lists, and plain values alone")
    kind, held = _KINDS.get(data[0]), data[1]
    if kind is None:
        raise TypeError("a tree holds nodes of Python's grammar alone")
    known = {*kind._fields, *kind._attributes}
    made = ast.AST.__new__(kind)  # some warn of fields that are missing
    for name, value in list(held.items()):
        if type(name) is str and name in known:
            setattr(made, name, _real(value))
    return made
