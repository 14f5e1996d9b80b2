"""Security boundary: arguments, judged against a JSON Schema that comes from outside.

So nothing that it refers to is ever fetched, no pattern of it is run, and judging ends after `JUDGING_SECONDS`: a
regular expression can take for ever, and so can references that branch at every step. What is not judged here is left
to what takes the arguments.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from ..sandbox.run import Json

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

JUDGING_SECONDS = 2.0
"""How long a schema may take; what it would have said of the arguments after that is left to what takes them."""

_UNIQUE_ITEMS_MAX = 500
"""Items of a list that are compared with one another, each with all others."""


def first_error(schema: object, arguments: Mapping[str, Json]) -> ValidationError | None:
    """Return the error nearest to the root, or None where there is none or the schema cannot be used."""
    validator = _validator_class(_dialect(schema))
    _JUDGING.until = time.monotonic() + JUDGING_SECONDS
    from jsonschema import exceptions  # noqa: PLC0415 - as `_validator_class`
    from referencing import Registry  # noqa: PLC0415 - as above

    try:
        errors = validator(schema, registry=Registry()).iter_errors(dict(arguments))
        return cast("ValidationError | None", exceptions.best_match(errors))
    except Exception:  # noqa: BLE001 - whatever a broken schema makes of it, the server itself is to judge then
        return None


def _dialect(schema: object) -> str:
    found = schema.get("$schema") if isinstance(schema, Mapping) else None
    return found if isinstance(found, str) else ""


@lru_cache(maxsize=32)
def _validator_class(dialect: str) -> Any:
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415 - it takes long to import

    base = validators.validator_for({"$schema": dialect} if dialect else {}, default=Draft202012Validator)
    additional = base.VALIDATORS["additionalProperties"]

    def unless_patterns(validator: Validator, value: object, instance: object, schema: Mapping[str, object]) -> object:
        return () if "patternProperties" in schema else additional(validator, value, instance, schema)

    def not_judged(*_arguments: object) -> Iterator[ValidationError]:
        return iter(())

    unique = base.VALIDATORS.get("uniqueItems", not_judged)

    def unique_if_few(validator: Validator, value: object, instance: object, schema: Mapping[str, object]) -> object:
        many = isinstance(instance, list) and len(instance) > _UNIQUE_ITEMS_MAX
        return () if many else unique(validator, value, instance, schema)

    # `unevaluatedProperties` runs the patterns of all that a schema is made of.
    unjudged = ("pattern", "patternProperties", "unevaluatedProperties", "unevaluatedItems")
    judges = {
        **base.VALIDATORS,
        "additionalProperties": unless_patterns,
        "uniqueItems": unique_if_few,
        **dict.fromkeys(unjudged, not_judged),
    }
    return validators.extend(  # type: ignore[no-untyped-call]  # the library has no types for it
        base, {keyword: _in_time(judge) for keyword, judge in judges.items()}
    )


class _Judging(threading.local):
    """When the judging in this thread is to end."""

    until: float = 0.0


_JUDGING = _Judging()


def _in_time(judge: Callable[..., Any]) -> Callable[..., Iterator[ValidationError]]:
    """Return what judges one keyword as `judge` does, and raises `TimeoutError` once time is up."""

    def judged(*arguments: object) -> Iterator[ValidationError]:
        if time.monotonic() > _JUDGING.until:
            raise TimeoutError
        yield from judge(*arguments) or ()

    return judged
