"""The names, keys and containers that an error could be about, read raw and bounded, and the nearest of them.

The failing line is parsed again, and what its subscripts stand on is looked up in the frame: variables, attributes of
instances, constant keys. No guest code is called, what would need any is not looked up: classes, instances, dicts and
frames are read through what CPython itself keeps. Tables of pandas are asked, in full Python alone, where code can do
whatever it likes anyway.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from types import FrameType, GetSetDescriptorType, ModuleType
from typing import Any, Final, cast

from ..guest.guest import GUEST
from ..guest.real_classes import attribute_of_class, class_dict, derives, mro_of
from ..guest.spelling import PREFIX, demangle
from .disclosure import bounded

NAMES_MAX = 2000
NAME_CHARS_MAX = 100
SOURCE_CHARS_MAX = 200_000
"""A longer source is not parsed again."""

_UNKNOWN = object()
_SAMPLE = 20
_ANSWERS = {"search_tools": "tools"}
"""Helpers that answer with a dict, and the key of what was asked for."""
_COLUMNS_SHOWN: Final = 12
_COLUMN_CHARS_MAX: Final = 40
_LIKELY: Final = 0.6
_QUOTED: Final = re.compile(r"'([^']{1,80})'")


@dataclass(frozen=True, slots=True)
class Scene:
    """Where an error happened: the source that it happened in, its line there, and the innermost own frame."""

    source: str
    line: int | None
    frame: FrameType | None = None

    def text(self) -> str:
        """Return the line's own text; empty where it is not known."""
        lines = self.source.split("\n", self.line or 0)
        return lines[self.line - 1] if self.line is not None and 0 < self.line <= len(lines) else ""

    def nodes(self) -> Iterator[ast.AST]:
        """Yield the nodes of the source; none of one that is too long."""
        if len(self.source) <= SOURCE_CHARS_MAX:
            yield from ast.walk(ast.parse(self.source))

    def is_on_line(self, node: ast.expr | ast.stmt) -> bool:
        """Return whether the line is one of a node's."""
        return self.line is not None and node.lineno <= self.line <= (node.end_lineno or node.lineno)


def nearest(name: str, candidates: Iterable[str], likeness: float) -> str | None:
    """Return the candidate most like `name`, of those at least as like it as `likeness` (0 to 1); None without one.

    Likeness is that of `difflib.SequenceMatcher.ratio`; letters of another case count as the same first.
    """
    if not 1 < len(name) <= NAME_CHARS_MAX:
        return None
    known = [known for known in islice(candidates, NAMES_MAX) if len(known) <= NAME_CHARS_MAX and known != name]
    same = next((candidate for candidate in sorted(known) if candidate.lower() == name.lower()), None)
    if same is not None:
        return same
    close = get_close_matches(name, sorted(set(known)), n=1, cutoff=likeness)
    return close[0] if close else None


def string_keys(mapping: object) -> list[str]:
    """Return the first keys of a dict that are plain strings, in order."""
    return _strings(dict.keys(cast("dict[object, object]", mapping)))


def _kind_of_locals() -> type:
    return type(sys._getframe().f_locals)


_KINDS_OF_LOCALS = (dict, _kind_of_locals())
"""What a frame keeps its variables in: a dict, from Python 3.13 on a proxy in functions (PEP 667)."""


def locals_of(frame: FrameType) -> dict[object, object]:
    """Return a frame's local variables; none where a metaclass brought a mapping of its own."""
    space = frame.f_locals
    return dict(space.items()) if type(space) in _KINDS_OF_LOCALS else {}


def names_in_scope(frame: FrameType | None) -> list[str]:
    """Return the names that code in `frame` could have used: its own, the global ones and the builtins."""
    if frame is None:
        return []
    spaces = (locals_of(frame), frame.f_globals, frame.f_builtins)
    return [key for space in spaces for key in string_keys(space) if not key.startswith(("_", PREFIX))]


def public_names(owner: object) -> list[str]:
    """Return the public attributes of any object as its author wrote them; a class's own and inherited ones too."""
    kind = type(owner)
    names: list[str] = []
    descriptor = attribute_of_class(kind, "__dict__")
    if derives(kind, type):
        classes = [*mro_of(cast("type", owner)), *mro_of(kind)]
    else:
        classes = list(mro_of(kind))
        if type(descriptor) is GetSetDescriptorType or kind is ModuleType:
            names += _strings(object.__getattribute__(owner, "__dict__"))
    for cls in classes:
        names += _strings(class_dict(cls))
    return [name for name in map(demangle, names) if not name.startswith("__")]


def _strings(space: Iterable[object]) -> list[str]:
    return [key for key in islice(space, NAMES_MAX) if type(key) is str]


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


def missed_by(scene: Scene, *kinds: type) -> Missed | None:
    """Return the first container of one of the built-in `kinds` that a subscript on the line misses.

    Where the key is an expression, a container can only be assumed to be the one if no other is on the line.
    """
    assumed: list[Missed] = []
    for node in () if scene.frame is None else scene.nodes():
        if not isinstance(node, ast.Subscript) or not scene.is_on_line(node):
            continue
        container = _look_up(node.value, scene.frame)
        kind = next((kind for kind in kinds if derives(type(container), kind)), None)
        if container is _UNKNOWN or kind is None:
            continue
        missed = Missed(container, kind, kind.__len__(container))  # type: ignore[attr-defined]  # containers have one
        key = _look_up(node.slice, scene.frame)
        if key is _UNKNOWN:
            assumed.append(missed)
        elif type(key) in (str, int) and _item(container, key) is _UNKNOWN:
            return missed
    return assumed[0] if len(assumed) == 1 else None


def looped_dict(scene: Scene) -> Sequence[str] | None:
    """Return what a loop goes over that gives the keys of a dict to a name of which the line takes an item.

    That is the dict's text in the source, then those of its keys that hold lists. None where there is no such loop.
    """
    for node in scene.nodes():
        match node:
            case ast.For(target=ast.Name(id=name), iter=items):
                pass
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                if not isinstance(node.generators[0].target, ast.Name):
                    continue
                name, items = node.generators[0].target.id, node.generators[0].iter
            case _:
                continue
        if any(_takes_from(each, name, scene.line) for each in ast.walk(node)):
            lists = _lists_of(items, scene.frame)
            if lists is not None:
                return [ast.unparse(items), *lists]
    return None


def taken_of_answer(scene: Scene) -> Sequence[str] | None:
    """Return the name of a helper whose answer, a dict, has a number or a slice as subscript there, and its key."""
    for node in scene.nodes():
        match node:
            case ast.Subscript(value=value, slice=ast.Slice() | ast.Constant(value=int())) if node.lineno == scene.line:
                helper = _helper_of(value)
                if helper is not None:
                    return helper
    return None


def _takes_from(node: ast.AST, name: str, line: int | None) -> bool:
    match node:
        case ast.Subscript(value=ast.Name(id=own)) | ast.Attribute(value=ast.Name(id=own)):
            return own == name and node.lineno == line
    return False


def _lists_of(items: ast.expr, frame: FrameType | None) -> Sequence[str] | None:
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


def is_text(node: ast.expr, frame: FrameType | None) -> bool:
    """Return whether an expression is a text: by its value, or a call that reads a whole text, awaited or not."""
    match node:
        case ast.Await(value=ast.expr() as awaited):
            return is_text(awaited, frame)
        case ast.Call(func=ast.Name(id="read_file") | ast.Attribute(attr="read" | "read_text")):
            return True
        case ast.JoinedStr():
            return True
    return derives(type(_look_up(node, frame)), str)


def _look_up(node: ast.expr, frame: FrameType | None) -> object:
    if frame is None:
        return _UNKNOWN
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


def columns_of_tables(key: object, scene: Scene) -> str | None:
    """Return the columns of a table that the line names and that has not the column `key`; None where there is none.

    `key` is what a KeyError holds: the column, or a text of pandas that has it in quotes.
    """
    if not GUEST.full_python or scene.frame is None or not isinstance(key, str | int):
        return None
    for name, table in _tables(scene, scene.frame):
        columns = list(table.columns)
        missing = [key] if key not in columns else []
        if isinstance(key, str) and (quoted := _QUOTED.findall(key)):
            missing = [each for each in quoted if each not in columns]
        if not missing:
            continue
        texts = [str(each) for each in columns]
        close = nearest(str(missing[0]), texts, _LIKELY)
        if close is not None:
            return f"{name} has no column {bounded(str(missing[0]), _COLUMN_CHARS_MAX)!r}: did you mean {close!r}?"
        shown = ", ".join(repr(bounded(each, _COLUMN_CHARS_MAX)) for each in texts[:_COLUMNS_SHOWN])
        more = f" and {len(texts) - _COLUMNS_SHOWN} more" if len(texts) > _COLUMNS_SHOWN else ""
        return f"{name} has the columns {shown}{more}." if texts else f"{name} has no columns."
    return None


def _tables(scene: Scene, frame: FrameType) -> Iterator[tuple[str, Any]]:
    """Yield the tables that a line names, in the order of their names there."""
    names = [node for node in scene.nodes() if isinstance(node, ast.Name) and scene.is_on_line(node)]
    for name in dict.fromkeys(node.id for node in sorted(names, key=lambda node: node.col_offset)):
        value = frame.f_locals.get(name, frame.f_globals.get(name))
        kind = type(value)
        if kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] == "pandas":
            yield name, value
