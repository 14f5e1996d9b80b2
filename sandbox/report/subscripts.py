"""Find the dict or list that a failed subscript was about, without running anything.

The failing line is parsed again, and what its subscripts stand on is looked up in the frame: variables, attributes of
instances, constant keys. No guest code is called; what would need any is not looked up.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from types import FrameType, GetSetDescriptorType
from typing import cast

from ..guest.real_classes import attribute_of_class, derives
from ..guest.spelling import PREFIX
from .near_names import locals_of

SOURCE_CHARS_MAX = 200_000

_UNKNOWN = object()
_SAMPLE = 20
_ANSWERS = {"search_tools": "tools"}
"""Helpers that answer with a dict, and the key of what was asked for."""


@dataclass(frozen=True, slots=True)
class Missed:
    """A container that does not hold what was asked of it; `kind` is its built-in type."""

    container: object
    kind: type
    length: int

    def sample(self) -> list[object]:
        """Return a few of a dict's keys."""
        keys = dict.keys(cast("dict[object, object]", self.container)) if self.kind is dict else ()
        return list(islice(keys, _SAMPLE))


def missed_by(source: str, line: int, frame: FrameType, kinds: Sequence[type]) -> Missed | None:
    """Return the first container of one of the built-in `kinds` that a subscript on `line` misses.

    Where the key is an expression, a container can only be assumed to be the one if no other is on the line.
    """
    if len(source) > SOURCE_CHARS_MAX:
        return None
    assumed: list[Missed] = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Subscript) or not node.lineno <= line <= (node.end_lineno or node.lineno):
            continue
        container = _look_up(node.value, frame)
        kind = next((kind for kind in kinds if derives(type(container), kind)), None)
        if container is _UNKNOWN or kind is None:
            continue
        missed = Missed(container, kind, kind.__len__(container))  # type: ignore[attr-defined]  # containers have one
        key = _look_up(node.slice, frame)
        if key is _UNKNOWN:
            assumed.append(missed)
        elif type(key) in (str, int) and _item(container, key) is _UNKNOWN:
            return missed
    return assumed[0] if len(assumed) == 1 else None


def looped_dict(source: str, line: int, frame: FrameType) -> Sequence[str] | None:
    """Return what a loop goes over that gives the keys of a dict to a name which `line` takes an item or attribute of.

    That is the dict's text in the source, then those of its keys that hold lists. None where there is no such loop.
    """
    if len(source) > SOURCE_CHARS_MAX:
        return None
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.For(target=ast.Name(id=name), iter=items):
                pass
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                if not isinstance(node.generators[0].target, ast.Name):
                    continue
                name, items = node.generators[0].target.id, node.generators[0].iter
            case _:
                continue
        if any(_takes_from(each, name, line) for each in ast.walk(node)):
            lists = _lists_of(items, frame)
            if lists is not None:
                return [ast.unparse(items), *lists]
    return None


def taken_of_answer(source: str, line: int) -> Sequence[str] | None:
    """Return the name of a helper whose answer, a dict, has a number or a slice as subscript on `line`, and its key."""
    if len(source) > SOURCE_CHARS_MAX:
        return None
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Subscript(value=value, slice=ast.Slice() | ast.Constant(value=int())) if node.lineno == line:
                helper = _helper_of(value)
                if helper is not None:
                    return helper
    return None


def _takes_from(node: ast.AST, name: str, line: int) -> bool:
    match node:
        case ast.Subscript(value=ast.Name(id=own)) | ast.Attribute(value=ast.Name(id=own)):
            return own == name and node.lineno == line
    return False


def _lists_of(items: ast.expr, frame: FrameType) -> Sequence[str] | None:
    """Return the keys under which a dict has lists; None where an expression is not a dict."""
    helper = _helper_of(items)
    if helper is not None:
        return [helper[1]]
    found = _look_up(items, frame)
    if not derives(type(found), dict):
        return None
    pairs = islice(dict.items(cast("dict[object, object]", found)), _SAMPLE)
    return [key for key, value in pairs if type(key) is str and derives(type(value), list)]


def _helper_of(node: ast.expr) -> Sequence[str] | None:
    match node:
        case ast.Await(value=ast.expr() as awaited):
            return _helper_of(awaited)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _ANSWERS:
            return name, _ANSWERS[name]
    return None


def is_text(node: ast.expr, frame: FrameType) -> bool:
    """Return whether an expression is a text: by its value, or a call that reads a whole text, awaited or not."""
    match node:
        case ast.Await(value=ast.expr() as awaited):
            return is_text(awaited, frame)
        case ast.Call(func=ast.Name(id="read_file") | ast.Attribute(attr="read" | "read_text")):
            return True
        case ast.JoinedStr():
            return True
    return derives(type(_look_up(node, frame)), str)


def _look_up(node: ast.expr, frame: FrameType) -> object:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return -value
        case ast.Name(id=name):
            own = _item(locals_of(frame), name)
            return _item(frame.f_globals, name) if own is _UNKNOWN else own
        case ast.Attribute(value=owner, attr=name):
            return _attribute(_look_up(owner, frame), f"{PREFIX}{name}" if name.startswith("_") else name)
        case ast.Subscript(value=owner, slice=key):
            return _item(_look_up(owner, frame), _look_up(key, frame))
        case _:
            return _UNKNOWN


def _attribute(owner: object, name: str) -> object:
    if type(attribute_of_class(type(owner), "__dict__")) is not GetSetDescriptorType:
        return _UNKNOWN
    own = object.__getattribute__(owner, "__dict__")
    return dict.get(own, name, _UNKNOWN) if derives(type(own), dict) else _UNKNOWN


def _item(container: object, key: object) -> object:
    kind = type(container)
    if derives(kind, dict) and type(key) in (str, int):
        # A loop, since a look-up would compare with the guest's own keys, by methods of their own.
        pairs = dict.items(cast("dict[object, object]", container))
        return next((value for own, value in pairs if type(own) is type(key) and own == key), _UNKNOWN)
    if type(key) is not int:
        return _UNKNOWN
    if derives(kind, list):
        items = cast("list[object]", container)
        return list.__getitem__(items, key) if -list.__len__(items) <= key < list.__len__(items) else _UNKNOWN
    if derives(kind, tuple):
        members = cast("tuple[object, ...]", container)
        return tuple.__getitem__(members, key) if -tuple.__len__(members) <= key < tuple.__len__(members) else _UNKNOWN
    if derives(kind, str):
        text = cast("str", container)
        return str.__getitem__(text, key) if -str.__len__(text) <= key < str.__len__(text) else _UNKNOWN
    return _UNKNOWN
