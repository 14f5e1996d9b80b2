"""Security boundary: judges values by a JSON Schema that comes from outside.

`judged_schema` says what of it counts: nothing that it refers to is fetched, and no pattern of it is run, which could
take exponential time. So could references that branch at every step: judging can be ended between two keywords and
between two items. No step takes long by itself, neither in C code, which would keep all threads from running.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from decimal import Context, Decimal, localcontext
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from .judged_schema import judged_schema
from .short_values import holds_more, short

if TYPE_CHECKING:
    from jsonschema import FormatChecker, ValidationError

_KEYWORDS_PER_CHECK = 16
_ERRORS_PER_BRANCH = 10
_ERRORS_MAX = 50
"""Errors of which the best is reported: a list of 200,000 wrong items would give one for each."""
_DIALECT_CHARS_MAX = 100
_UNIQUE_VALUES_MAX = 20_000
"""Values in a list whose items are compared with one another: that is done in one step."""


class CheckEnded(Exception):
    """A check was ended before it had an outcome."""


def bounded_validator(schema: object) -> Any:
    """Return the validator class of a schema's dialect under the bounds above, for use within `judging`.

    It takes `registry=Registry()`, which fetches nothing.
    """
    dialect = schema.get("$schema") if isinstance(schema, Mapping) else None
    named = isinstance(dialect, str) and len(dialect) <= _DIALECT_CHARS_MAX and dialect.isascii()
    return _validator_class(dialect if named else "")


def best_error(
    schema: object,
    value: object,
    check: Callable[[], None],
    *,
    formats: FormatChecker | None = None,
    counts: Callable[[ValidationError], bool] = lambda _error: True,
) -> ValidationError | None:
    """Return the error nearest to the root, of the first that count; None where there is none, or none is looked for.

    What of the schema is judged by is said in `judged_schema`; values are shown in short. `check` is called before
    every step and raises where judging is to end. Raises what it raises, and whatever a broken schema makes of it.
    """
    from jsonschema import exceptions
    from referencing import Registry

    part = judged_schema(schema, check)
    if part is None:
        return None
    with judging(check):
        validator = bounded_validator(schema)(part, registry=Registry(), format_checker=formats)
        errors = validator.iter_errors(short(value, check))
        found: ValidationError | None = exceptions.best_match(itertools.islice(filter(counts, errors), _ERRORS_MAX))
    return found


@contextmanager
def judging(check: Callable[[], None]) -> Iterator[None]:
    """Call `check` before every keyword that validators judge by in this thread; it raises where they are to end."""
    before, _JUDGING.check = _JUDGING.check, check
    try:
        yield
    finally:
        _JUDGING.check = before


def ending_after(seconds: float, checkpoint: Callable[[], None] = lambda: None) -> Callable[[], None]:
    """Return what raises `CheckEnded` once so long has passed, and calls `checkpoint` now and then."""
    until, calls = time.monotonic() + seconds, itertools.count()

    def check() -> None:
        if next(calls) % _KEYWORDS_PER_CHECK == 0:
            checkpoint()
            if time.monotonic() > until:
                raise CheckEnded

    return check


class _Judging(threading.local):
    """What is called before a keyword in this thread."""

    def __init__(self) -> None:
        self.check: Callable[[], None] = lambda: None
        self.depth = 0


_JUDGING = _Judging()


@lru_cache(maxsize=32)
def _validator_class(dialect: str) -> Any:
    from jsonschema import Draft202012Validator, validators

    base: Any = validators.validator_for({"$schema": dialect} if dialect else {}, default=Draft202012Validator)
    own = {
        "additionalItems": partial(_items, base.VALIDATORS.get("additionalItems")),
        "additionalProperties": _additional_properties,
        "anyOf": _any_of,
        "items": partial(_items, base.VALIDATORS["items"]),
        "multipleOf": _multiple_of,
        "uniqueItems": _unique_items,
    }
    checks = {**base.VALIDATORS, **{name: check for name, check in own.items() if name in base.VALIDATORS}}
    made: Any = validators.extend(base, {keyword: _endable(check) for keyword, check in checks.items()})  # type: ignore[no-untyped-call]  # the library has no types for it
    # A list is gone through by these, also where its items are to fulfil nothing.
    made.descend, made.iter_errors = _endable(made.descend), _endable(made.iter_errors)
    return made


def _multiple_of(_validator: object, of: object, instance: object, _schema: object) -> Iterator[ValidationError]:
    """Judge as the numbers are written: 0.07 is a multiple of 0.01, and not in binary."""
    from jsonschema import ValidationError

    both = (instance, of)
    if all(isinstance(each, int | float) and not isinstance(each, bool) for each in both) and of:
        with suppress(ArithmeticError), localcontext(Context(prec=1_000)):
            if Decimal(str(instance)) % Decimal(str(of)):
                yield ValidationError(f"{instance!r} is not a multiple of {of!r}")


def _unique_items(_validator: object, wanted: object, instance: object, _schema: object) -> Iterator[ValidationError]:
    from jsonschema import ValidationError

    if wanted is not True or not isinstance(instance, list) or holds_more(instance, _UNIQUE_VALUES_MAX):
        return
    if len(set(map(_comparable, instance))) < len(instance):
        yield ValidationError(f"{instance!r} has non-unique elements")


def _comparable(value: object) -> Hashable:
    """Return what is equal for equal JSON values; `true` is not 1."""
    if isinstance(value, dict):
        return frozenset((key, _comparable(each)) for key, each in value.items())
    if isinstance(value, list):
        return tuple(map(_comparable, value))
    return value if isinstance(value, str) else (isinstance(value, bool), value)


def _items(
    judge: Callable[..., Any], validator: Any, value: object, instance: object, schema: Mapping[str, object]
) -> Any:
    """Judge as the library does, without showing all items that are too many."""
    if value is not False or not isinstance(instance, list):
        return judge(validator, value, instance, schema)
    before = schema.get("prefixItems", schema.get("items"))
    return _too_many(instance, len(before) if isinstance(before, list) else 0)


def _too_many(instance: list[object], taken: int) -> Iterator[ValidationError]:
    from jsonschema import ValidationError

    if len(instance) > taken:
        yield ValidationError(f"{instance!r} is too long: at most {taken} items are expected")


def _additional_properties(
    validator: Any, value: object, instance: object, schema: Mapping[str, object]
) -> Iterator[ValidationError]:
    """Judge as the library does, without its sorted list of all that is too much."""
    from jsonschema import ValidationError

    known = schema.get("properties", {})
    if not isinstance(instance, dict) or not isinstance(known, dict):
        return
    others = (name for name in instance if name not in known)
    if isinstance(value, dict):
        for name in others:
            yield from validator.descend(instance[name], value, path=name)
    elif not value and (first := next(others, None)) is not None:
        yield ValidationError(f"Additional properties are not allowed ({end_of(repr(first), 200)} was unexpected)")


def _any_of(validator: Any, value: list[object], instance: object, _schema: object) -> Iterator[ValidationError]:
    """Judge as the library does, but keep few errors: references that branch would make millions of them."""
    from jsonschema import ValidationError

    errors: list[ValidationError] = []
    for at, schema in enumerate(value):
        found = _branch(validator, instance, schema, at)
        if not found:
            return
        errors += found[: max(_ERRORS_MAX - len(errors), 0)]
    yield ValidationError(
        f"{instance!r} is not valid under any of the given schemas", context=[] if _JUDGING.depth else errors
    )


def _branch(validator: Any, instance: object, schema: object, at: int) -> list[ValidationError]:
    """Return the first errors of one of several schemas; those within another branch hold none of their own."""
    _JUDGING.depth += 1
    try:
        return list(itertools.islice(validator.descend(instance, schema, schema_path=at), _ERRORS_PER_BRANCH))
    finally:
        _JUDGING.depth -= 1


def _endable(judge: Callable[..., Any]) -> Callable[..., Any]:
    def judged(*given: Any, **named: Any) -> Any:
        _JUDGING.check()
        return judge(*given, **named)

    return judged


def path_text(path: Iterable[str | int]) -> str:
    """Return the path of an error, such as `rows[0].name`; an empty text for the root."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def end_of(message: str, chars_max: int) -> str:
    """Return a message, or the end of a long one: the library's messages begin with the whole value."""
    return message if len(message) <= chars_max else f"…{message[-chars_max:]}"
