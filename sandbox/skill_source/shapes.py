"""The classes and names that a module defines for its hints: dataclasses, typed dictionaries, enums, aliases."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Final

from ..job import Json
from .literals import NOT_LITERAL, constant, plain

_ENUMS: Final = frozenset({"Enum", "StrEnum", "IntEnum", "Flag", "IntFlag"})


@dataclass(frozen=True, slots=True)
class ClassField:
    """One field of a class; `default` is `NOT_LITERAL` where there is none or it is not a literal."""

    name: str
    hint: ast.expr
    required: bool
    default: object


class Shapes:
    """What the top level of one module binds, as far as hints and defaults need it."""

    def __init__(self, tree: ast.Module) -> None:
        self._classes: dict[str, ast.ClassDef] = {}
        self._values: dict[str, ast.expr] = {}
        for statement in tree.body:
            if isinstance(statement, ast.ClassDef):
                self._classes[statement.name] = statement
            elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                self._bind(statement.targets[0], statement.value)
            elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
                self._bind(statement.target, statement.value)
            elif type(statement).__name__ == "TypeAlias":  # Python 3.12
                self._bind(statement.name, statement.value)  # type: ignore[attr-defined]  # Python 3.11 knows no such node

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            if isinstance(value, ast.Call) and final_name(value.func) == "NewType" and len(value.args) > 1:
                value = value.args[1]
            self._values[target.id] = value

    def own(self, name: str) -> ast.ClassDef | ast.expr | None:
        """Return the class or the aliased hint of that name."""
        found = self._classes.get(name)
        if found is not None:
            return found
        alias = self._values.get(name)
        return alias if isinstance(alias, ast.Subscript | ast.Name | ast.Attribute | ast.BinOp) else None

    def default(self, node: ast.expr | None) -> object:
        """Return what a default is: a literal, a constant of the module, or an enum's member; else `NOT_LITERAL`."""
        value = constant(node)
        if value is not NOT_LITERAL:
            return value
        if isinstance(node, ast.Name):
            return constant(self._values.get(node.id))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = self._classes.get(node.value.id)
            if owner is not None:
                return dict(_members(owner)).get(node.attr, NOT_LITERAL)
        return NOT_LITERAL

    def enum_values(self, cls: ast.ClassDef) -> list[Json] | None:
        """Return the values of an enum's members, or None for a class that is not an enum; empty if any is unknown."""
        if not any(final_name(base) in _ENUMS for base in cls.bases):
            return None
        values = [value for _name, value in _members(cls)]
        return [] if any(value is NOT_LITERAL for value in values) else [plain(value) for value in values]

    def fields(self, cls: ast.ClassDef) -> list[ClassField] | None:
        """Return the fields of a dataclass, a typed dictionary or a named tuple; None for any other class."""
        kinds = {final_name(base) for base in cls.bases}
        decorated = any(
            final_name(part.func if isinstance(part, ast.Call) else part) == "dataclass" for part in cls.decorator_list
        )
        inherited: list[ClassField] = []
        typed = "TypedDict" in kinds
        for base in cls.bases:
            parent = self._classes.get(final_name(base) or "")
            if parent is not None and parent is not cls:
                above = self.fields(parent)
                inherited += above or []
                typed = typed or (above is not None and not decorated)
        if not (decorated or typed or "NamedTuple" in kinds):
            return None
        total = not any(keyword.arg == "total" and constant(keyword.value) is False for keyword in cls.keywords)
        own = [
            _field(statement, typed=typed, total=total)
            for statement in cls.body
            if isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and _wrapper(statement.annotation) != "ClassVar"
        ]
        fields = {field.name: field for field in inherited}
        fields |= {field.name: field for field in own if field is not None}
        return list(fields.values())


def _field(statement: ast.AnnAssign, *, typed: bool, total: bool) -> ClassField | None:
    assert isinstance(statement.target, ast.Name)
    name, value = statement.target.id, statement.value
    if typed:
        required = {"Required": True, "NotRequired": False}.get(_wrapper(statement.annotation) or "", total)
        return ClassField(name, statement.annotation, required, NOT_LITERAL)
    if isinstance(value, ast.Call) and final_name(value.func) == "field":
        options = {keyword.arg: keyword.value for keyword in value.keywords}
        if constant(options.get("init")) is False:
            return None
        required = not options.keys() & {"default", "default_factory"}
        return ClassField(name, statement.annotation, required, constant(options.get("default")))
    return ClassField(name, statement.annotation, value is None, constant(value))


def _wrapper(hint: ast.expr) -> str | None:
    return final_name(hint.value if isinstance(hint, ast.Subscript) else hint)


def _members(cls: ast.ClassDef) -> list[tuple[str, object]]:
    """Return the members of an enum with their values; those of `auto()` are counted as `enum` counts them."""
    texts = any(final_name(base) == "StrEnum" for base in cls.bases)
    found: list[tuple[str, object]] = []
    last = 0
    for statement in cls.body:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        target = statement.targets[0]
        if not isinstance(target, ast.Name) or target.id.startswith("_"):
            continue
        value = constant(statement.value)
        if isinstance(statement.value, ast.Call) and final_name(statement.value.func) == "auto":
            value = target.id.lower() if texts else last + 1
        if type(value) is int:
            last = max(last, value)
        found.append((target.id, value))
    return found


def final_name(node: ast.expr) -> str | None:
    """Return `c` of `c` and of `a.b.c`; None of anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None
