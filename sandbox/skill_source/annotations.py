"""Type hints as JSON Schema (draft 2020-12), read from the syntax tree: nothing of the source runs.

A hint that says nothing about JSON (a callable, a type variable, a name from elsewhere) becomes `{}`, which admits
anything: a schema must never refuse what the function would take.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Final

from ..job import Json
from .docstring_types import hint_of
from .literals import NOT_LITERAL, constant, plain
from .shapes import Shapes, final_name

Schema = dict[str, Json]

DEPTH_MAX: Final = 16
"""Hints nest no deeper in a schema; what lies below becomes `{}`."""

_SCALARS: Final[Mapping[str, Schema]] = {
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "complex": {},
    "str": {"type": "string"},
    "bool": {"type": "boolean"},
    "None": {"type": "null"},
    "NoneType": {"type": "null"},
    "bytes": {"type": "string"},
    "LiteralString": {"type": "string"},
    "Text": {"type": "string"},
    "date": {"type": "string", "format": "date"},
    "datetime": {"type": "string", "format": "date-time"},
    "time": {"type": "string", "format": "time"},
    "UUID": {"type": "string", "format": "uuid"},
    "Path": {"type": "string"},
    "PurePath": {"type": "string"},
    "Decimal": {"type": ["number", "string"]},
    "Fraction": {"type": ["number", "string"]},
    "Number": {"type": "number"},
    "Real": {"type": "number"},
    "Integral": {"type": "integer"},
}
_KINDS: Final[Mapping[type, str]] = {str: "string", int: "integer", bool: "boolean"}
_ARRAYS: Final = frozenset(
    {"list", "List", "Sequence", "MutableSequence", "Iterable", "Iterator", "Collection", "Container", "deque"}
    | {"Deque", "set", "Set", "frozenset", "FrozenSet", "AbstractSet", "MutableSet", "Reversible"}
)
_OBJECTS: Final = frozenset(
    {"dict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict", "DefaultDict", "Counter"}
)
_WRAPPERS: Final = frozenset({"Final", "ClassVar", "Required", "NotRequired", "ReadOnly", "Unpack", "InitVar"})


class Reader:
    """Turns hints into schemas, knowing the classes and aliases that the module itself defines."""

    def __init__(self, shapes: Shapes) -> None:
        self._shapes = shapes
        self._within: list[str] = []

    def schema(self, hint: ast.expr | None, depth: int = 0) -> Schema:
        """Return the schema of a hint; `{}` where there is none."""
        if hint is None or depth > DEPTH_MAX:
            return {}
        if isinstance(hint, ast.Constant):
            return self._of_constant(hint, depth)
        if isinstance(hint, ast.BinOp) and isinstance(hint.op, ast.BitOr):
            return self._union(_alternatives(hint), depth)
        if isinstance(hint, ast.Subscript):
            return self._subscript(hint, depth)
        name = final_name(hint)
        return {} if name is None else self._named(name, depth)

    def described(self, hint: ast.expr | None) -> str | None:
        """Return the text in `Annotated[T, "text"]` or `Annotated[T, Doc("text")]`, if there is one."""
        hint = self._read_text(hint)
        if isinstance(hint, ast.BinOp):
            return next(filter(None, map(self.described, _alternatives(hint))), None)
        if not isinstance(hint, ast.Subscript) or final_name(hint.value) != "Annotated":
            return None
        for part in _items(hint.slice)[1:]:
            if isinstance(part, ast.Call):
                texts: Sequence[ast.expr] = [
                    *part.args[:1],
                    *(keyword.value for keyword in part.keywords if keyword.arg == "description"),
                ]
            else:
                texts = [part]
            for text in texts:
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    return text.value
        return None

    def text(self, written: str) -> Schema:
        """Return the schema of a type as a docstring says it, in words or as a hint; `{}` where it is none."""
        try:
            return self.schema(ast.parse(hint_of(written), mode="eval").body)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return {}

    def _of_constant(self, hint: ast.Constant, depth: int) -> Schema:
        if hint.value is None:
            return {"type": "null"}
        inner = self._read_text(hint)
        return {} if inner is None or isinstance(inner, ast.Constant) else self.schema(inner, depth + 1)

    @staticmethod
    def _read_text(hint: ast.expr | None) -> ast.expr | None:
        if isinstance(hint, ast.Constant) and isinstance(hint.value, str):
            try:
                return ast.parse(hint.value.strip(), mode="eval").body
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return None
        return hint

    def _named(self, name: str, depth: int) -> Schema:
        if (own := self._shapes.own(name)) is not None:
            if name in self._within:
                return {}  # a type within itself
            self._within.append(name)
            try:
                return self._own(own, depth)
            finally:
                self._within.pop()
        if name in _SCALARS:
            return dict(_SCALARS[name])
        if name in _ARRAYS or name in {"tuple", "Tuple", "NamedTuple"}:
            return {"type": "array"}
        return {"type": "object"} if name in _OBJECTS else {}

    def _own(self, own: ast.ClassDef | ast.expr, depth: int) -> Schema:
        if not isinstance(own, ast.ClassDef):
            return self.schema(own, depth + 1)
        values = self._shapes.enum_values(own)
        if values is not None:
            return _choices(values) if values else {}
        fields = self._shapes.fields(own)
        if fields is None:
            return {}
        properties: dict[str, Json] = {}
        for field in fields:
            schema = self.schema(field.hint, depth + 1)
            if field.default is not NOT_LITERAL:
                schema["default"] = plain(field.default)
            properties[field.name] = schema
        made: Schema = {"type": "object", "properties": properties}
        required = [field.name for field in fields if field.required]
        if required:
            made["required"] = required
        return {**made, "additionalProperties": False}

    def _subscript(self, hint: ast.Subscript, depth: int) -> Schema:
        name = final_name(hint.value)
        items = _items(hint.slice)
        if name == "Annotated" and items:
            return self.schema(items[0], depth + 1)
        if name == "Literal":
            return _literal(items)
        if name == "Optional" and items:
            return self._union([items[0], ast.Constant(None)], depth)
        if name == "Union":
            return self._union(items, depth)
        if name in _WRAPPERS and items:
            return self.schema(items[0], depth + 1)
        if name in _ARRAYS and items:
            return _with({"type": "array"}, "items", self.schema(items[0], depth + 1))
        if name in {"tuple", "Tuple"} and items:
            return self._tuple(items, depth)
        if name in _OBJECTS:
            values: Schema = self.schema(items[1], depth + 1) if len(items) > 1 else {}
            if name == "Counter":
                values = {"type": "integer"}
            return _with({"type": "object"}, "additionalProperties", values)
        return {} if name is None else self._named(name, depth)

    def _tuple(self, items: Sequence[ast.expr], depth: int) -> Schema:
        if isinstance(items[-1], ast.Constant) and items[-1].value is ...:
            return _with({"type": "array"}, "items", self.schema(items[0], depth + 1))
        if len(items) == 1 and isinstance(items[0], ast.Tuple):
            return {"type": "array", "maxItems": 0}
        if any(isinstance(item, ast.Starred) for item in items):
            return {"type": "array"}
        parts = [self.schema(item, depth + 1) for item in items]
        return {"type": "array", "prefixItems": parts, "minItems": len(parts), "maxItems": len(parts)}

    def _union(self, hints: Sequence[ast.expr], depth: int) -> Schema:
        parts: list[Schema] = []
        for hint in hints:
            part = self.schema(hint, depth + 1)
            if not part:
                return {}
            if part not in parts:
                parts.append(part)
        if len(parts) == 1:
            return parts[0]
        if all(part.keys() == {"type"} for part in parts):
            names = [name for part in parts for name in _names(part["type"])]
            return {"type": list(dict.fromkeys(names))}
        if all("enum" in part or part == {"type": "null"} for part in parts):
            values: list[Json] = []
            for part in parts:
                values += part.get("enum", [None])  # type: ignore[arg-type]  # an enum is a list
            return _choices(values)
        return {"anyOf": parts}


def _alternatives(hint: ast.expr) -> list[ast.expr]:
    found: list[ast.expr] = []
    while isinstance(hint, ast.BinOp) and isinstance(hint.op, ast.BitOr):
        found.append(hint.right)
        hint = hint.left
    return [hint, *reversed(found)]


def _items(inner: ast.expr) -> list[ast.expr]:
    return list(inner.elts) if isinstance(inner, ast.Tuple) and inner.elts else [inner]


def _names(kind: Json) -> list[str]:
    return [kind] if isinstance(kind, str) else [str(name) for name in kind]  # type: ignore[union-attr]  # a name or several


def _literal(items: Sequence[ast.expr]) -> Schema:
    values: list[Json] = []
    for item in items:
        value = constant(item)
        if value is NOT_LITERAL:
            return {}
        values.append(plain(value))
    return _choices(values)


def _choices(values: list[Json]) -> Schema:
    """Return the schema of a choice, with the type where all are of one."""
    kinds = {_KINDS.get(type(value)) for value in values}
    kind = kinds.pop() if len(kinds) == 1 else None
    return {"enum": values} if kind is None else {"type": kind, "enum": values}


def _with(schema: Schema, key: str, inner: Schema) -> Schema:
    return {**schema, key: inner} if inner else schema
