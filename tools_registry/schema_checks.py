"""Security boundary: judges values by a JSON Schema that comes from outside.

Nothing that it refers to is ever fetched, no pattern of it is run, and judging can be ended between two keywords: a
regular expression can take exponential time, and so can references that branch at every step. No keyword takes long by
itself, neither in C code, which would keep all threads from running.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from typing_extensions import override

if TYPE_CHECKING:
    from jsonschema import FormatChecker, ValidationError
    from jsonschema.protocols import Validator

_SHOWN_CHARS_MAX = 200
_KEYWORDS_PER_CHECK = 16
_ERRORS_PER_BRANCH = 10
_ERRORS_MAX = 50
"""Errors of which the best is told: a list of 200,000 wrong items would give one for each."""
_UNIQUE_ITEMS_MAX = 500
"""Items of a list that are compared with one another, each with all others."""

_NOT_JUDGED = ("pattern", "patternProperties", "unevaluatedProperties", "unevaluatedItems")
"""The last two run the patterns of all that a schema is made of."""


class CheckEnded(Exception):
    """A check was ended before it had an outcome."""


def bounded_validator(schema: object) -> Any:
    """Return the validator class of a schema's dialect under the bounds above, for use within `judging`.

    It takes `registry=Registry()`, which fetches nothing.
    """
    dialect = schema.get("$schema") if isinstance(schema, Mapping) else None
    return _validator_class(dialect if isinstance(dialect, str) else "")


def best_error(
    schema: object,
    value: object,
    check: Callable[[], None],
    *,
    formats: FormatChecker | None = None,
    counts: Callable[[ValidationError], bool] = lambda _error: True,
) -> ValidationError | None:
    """Return the error nearest to the root, of the first that count; None where there is none.

    `check` is called as in `judging`. Raises what it raises, and whatever a broken schema makes of it.
    """
    from jsonschema import exceptions
    from referencing import Registry

    with judging(check):
        errors = bounded_validator(schema)(schema, registry=Registry(), format_checker=formats).iter_errors(value)
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
    unique = base.VALIDATORS.get("uniqueItems", _not_judged)

    def unique_if_few(validator: Validator, value: object, instance: object, schema: Mapping[str, object]) -> object:
        if not isinstance(instance, list) or len(instance) > _UNIQUE_ITEMS_MAX:
            return ()
        # Lists are sorted in one step that compares all their items.
        has_lists = any(isinstance(each, list) for each in instance)
        return () if has_lists else unique(validator, value, instance, schema)

    checks = {
        **base.VALIDATORS,
        "additionalProperties": _additional_properties,
        **{name: judge for name, judge in (("anyOf", _any_of), ("oneOf", _one_of)) if name in base.VALIDATORS},
        "uniqueItems": unique_if_few,
        **dict.fromkeys(_NOT_JUDGED, _not_judged),
    }
    return validators.extend(base, {keyword: _endable(check) for keyword, check in checks.items()})  # type: ignore[no-untyped-call]  # the library has no types for it


def _not_judged(*_arguments: object) -> Iterator[ValidationError]:
    return iter(())


def _additional_properties(
    validator: Any, value: object, instance: object, schema: Mapping[str, object]
) -> Iterator[ValidationError]:
    """Judge as the library does, without its sorted list of all that is too much."""
    from jsonschema import ValidationError

    known = schema.get("properties", {})
    if "patternProperties" in schema or not isinstance(instance, dict) or not isinstance(known, dict):
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
        errors += found
    yield ValidationError(
        f"{instance!r} is not valid under any of the given schemas", context=[] if _JUDGING.depth else errors
    )


def _one_of(validator: Any, value: list[object], instance: object, schema: object) -> Iterator[ValidationError]:
    from jsonschema import ValidationError

    yield from _any_of(validator, value, instance, schema)
    valid = [at for at, each in enumerate(value) if not _branch(validator, instance, each, at)]
    if len(valid) > 1:
        yield ValidationError(f"{instance!r} is valid under {len(valid)} of the given schemas")


def _branch(validator: Any, instance: object, schema: object, at: int) -> list[ValidationError]:
    """Return the first errors of one of several schemas; those within another branch hold none of their own."""
    _JUDGING.depth += 1
    try:
        return list(itertools.islice(validator.descend(instance, schema, schema_path=at), _ERRORS_PER_BRANCH))
    finally:
        _JUDGING.depth -= 1


def _endable(judge: Callable[..., Any]) -> Callable[..., Any]:
    def judged(*given: Any) -> Any:
        _JUDGING.check()
        return judge(*given)

    return judged


def short(value: object) -> object:
    """Return a copy of a JSON value that is shown in short, since the library's messages hold whole values.

    For use within `judging`, which can end it.
    """
    if isinstance(value, dict):
        _JUDGING.check()
        return _Object((key, short(each)) for key, each in value.items())
    if isinstance(value, list):
        _JUDGING.check()
        return _List(map(short, value))
    return _Text(value) if isinstance(value, str) and len(value) > _SHOWN_CHARS_MAX else value


def holds_more(value: object, values_max: int) -> bool:
    """Return whether a JSON value holds more than so many values; takes no longer than counting those."""
    left, waiting = values_max, [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict | list):
            left -= len(each)
            if left < 0:
                return True
            waiting += each.values() if isinstance(each, dict) else each
    return False


class _Object(dict[str, object]):
    @override
    def __repr__(self) -> str:
        return f"an object of {len(self)} keys"


class _List(list[object]):
    @override
    def __repr__(self) -> str:
        return f"a list of {len(self)} items"


class _Text(str):
    __slots__ = ()

    @override
    def __repr__(self) -> str:
        return f"{self[:_SHOWN_CHARS_MAX]!r}…"


def path_text(path: Iterable[str | int]) -> str:
    """Return the path of an error, such as `rows[0].name`; an empty text for the root."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def end_of(message: str, chars_max: int) -> str:
    """Return a message, or the end of a long one: the library's messages begin with the whole value."""
    return message if len(message) <= chars_max else f"…{message[-chars_max:]}"
