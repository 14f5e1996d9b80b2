"""Security boundary: makes of a JSON Schema that comes from outside the part that values are judged by.

A schema can cost without end in places where nothing looks at a clock: one reference that is normalized, a text that
stands in every message, a keyword that nobody knows and every item looks up, a dialect that changes half way. So what
is judged by holds known keywords alone, references only into itself, and texts and lists that messages show in short.
What is left out counts as fulfilled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from typing_extensions import TypeIs

from .short_values import holds_more, short

VALUES_MAX: Final = 20_000
"""A schema with more values than this is not judged by: each of its keywords may be a list of all of them."""
CHARS_MAX: Final = 1_000_000
"""Nor is one with more characters in its keys and texts: comparing and showing take time for each."""

REFERENCE_CHARS_MAX: Final = 1_000
"""A longer reference leads nowhere."""

_PATH: Final = re.compile(r"#(?:/[!-$&-.0-~]*)*", re.ASCII)
"""Of plain characters: an escaped slash would add a step."""
_ONE_SCHEMA: Final = frozenset(
    {"additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"}
)
_SCHEMAS: Final = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_NAMED_SCHEMAS: Final = frozenset({"$defs", "definitions", "dependencies", "dependentSchemas", "properties"})
_VALUES: Final = frozenset(
    {"const", "dependentRequired", "enum", "exclusiveMaximum", "exclusiveMinimum", "format", "maxContains", "maxItems",
     "maxLength", "maxProperties", "maximum", "minContains", "minItems", "minLength", "minProperties", "minimum",
     "multipleOf", "required", "uniqueItems"}
)  # fmt: skip
_NOT_JUDGED: Final = frozenset(
    {"$dynamicRef", "$recursiveRef", "$ref", "disallow", "divisibleBy", "extends", "pattern", "patternProperties",
     "unevaluatedItems", "unevaluatedProperties"}
)  # fmt: skip
"""Keywords that a value may break and that are left out (`$ref` where it leads elsewhere)."""
_ONLY_IF_EXACT: Final = frozenset({"else", "if", "maxContains", "not", "then"})
"""What refuses a value since a schema takes it; and that may have been because something was left out."""


def judged_schema(schema: object, check: Callable[[], None]) -> object | None:
    """Return the part of a schema that values are judged by, or None where it is too large.

    `check` is called at every step and may raise. Raises `RecursionError` for a schema that nests without an end.
    """
    if holds_more(schema, VALUES_MAX, chars_max=CHARS_MAX):
        return None
    made = _Making(check)
    part = made.schema(schema)
    if not made.is_exact:
        part = _Making(check, is_exact=False).schema(schema)
    return short(part, check)


class _Making:
    """The making of one schema. `is_exact` becomes false once something is left out that a value may break.

    A schema that is begun as inexact keeps nothing that refuses a value since a schema takes it.
    """

    def __init__(self, check: Callable[[], None], *, is_exact: bool = True) -> None:
        self.is_exact = is_exact
        self._check = check
        self._left_out = frozenset() if is_exact else _ONLY_IF_EXACT

    def schema(self, schema: object) -> object:
        """Return what one schema is judged by."""
        self._check()
        if not isinstance(schema, Mapping):
            return schema
        part: dict[str, object] = {}
        for name, value in schema.items():
            if name in self._left_out:
                continue
            if name in _NOT_JUDGED and not (name == "$ref" and _leads_inside(value)):
                self.is_exact = False
            elif name in _NAMED_SCHEMAS and isinstance(value, Mapping):
                part[name] = {key: self._schema_or_names(each) for key, each in value.items()}
            elif name in _SCHEMAS and isinstance(value, list):
                # What fits two of the alternatives is taken: descriptions of services are seldom exact enough for one.
                part["anyOf" if name == "oneOf" else name] = [self.schema(each) for each in value]
            elif name in _ONE_SCHEMA and isinstance(value, Mapping | bool):
                part[name] = self.schema(value)
            elif name in _VALUES or name == "$ref" or (name == "type" and _names_types(value)):
                part[name] = value
        if "patternProperties" in schema:  # they take names that this would refuse
            part.pop("additionalProperties", None)
        return part

    def _schema_or_names(self, value: object) -> object:
        return value if isinstance(value, list) else self.schema(value)


def _names_types(value: object) -> bool:
    """Return whether the value of `type` holds names alone; those of draft 3 may be schemas."""
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(each, str) for each in value))


def refers_inside(reference: object) -> TypeIs[str]:
    """Return whether a reference is short and refers to something within its own document."""
    return isinstance(reference, str) and len(reference) <= REFERENCE_CHARS_MAX and reference.startswith("#")


def _leads_inside(reference: object) -> bool:
    """Return whether a reference is a path to a schema within its own, by keywords that are kept, or the whole of it.

    A path into a `const` would lead to what was not looked through.
    """
    if not refers_inside(reference) or not _PATH.fullmatch(reference):
        return False
    steps = reference.split("/")[1:]
    while steps:
        keyword = steps.pop(0)
        if keyword in _NAMED_SCHEMAS or (keyword in _SCHEMAS and steps and steps[0].isdecimal()):
            if not steps:
                return False
            del steps[0]
        elif keyword not in _ONE_SCHEMA:
            return False
    return True
