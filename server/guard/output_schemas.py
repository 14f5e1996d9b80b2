"""What a tool says of its answers, made true of answers with tokens in them.

A token stands in the place of a number, an address of e-mail or a text of eight characters, and clients check answers:
so a number may be a string, and nothing is said of how a string is written. The rest stays, names and enumerations
among it. Source: https://json-schema.org/draft/2020-12/json-schema-core (section 10) and …-validation (6, 7).
"""

from __future__ import annotations

from collections.abc import Mapping

from ...sandbox.job import Json

_OF_STRINGS = frozenset({"contentEncoding", "contentMediaType", "format", "maxLength", "minLength", "pattern"})
_ONE = frozenset(
    {"additionalProperties", "contains", "else", "items", "then", "unevaluatedItems", "unevaluatedProperties"}
)
_SEVERAL = frozenset({"allOf", "anyOf", "prefixItems"})
_NAMED = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
_NUMBERS = frozenset({"integer", "number"})


def loosened(schema: Json) -> Json:
    """Return a schema that also takes what it took with tokens in it."""
    if not isinstance(schema, Mapping):
        return schema
    made: dict[str, Json] = {}
    for key, value in schema.items():
        if key == "type":
            made[key] = _types(value)
        elif key == "oneOf" and isinstance(value, list):  # of which more than one may now hold
            made["anyOf"] = [loosened(each) for each in value]
        elif key in _ONE:
            made[key] = [loosened(each) for each in value] if isinstance(value, list) else loosened(value)
        elif key in _SEVERAL and isinstance(value, list):
            made[key] = [loosened(each) for each in value]
        elif key in _NAMED and isinstance(value, Mapping):
            made[key] = {name: loosened(inner) for name, inner in value.items()}
        elif key not in _OF_STRINGS:
            made[key] = value
    return made


def _types(value: Json) -> Json:
    kinds = value if isinstance(value, list) else [value]
    has_numbers = any(kind in _NUMBERS for kind in kinds if isinstance(kind, str))
    return [*kinds, "string"] if has_numbers and "string" not in kinds else value
