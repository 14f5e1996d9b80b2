"""Security boundary: checks by a JSON Schema that comes from outside, which can be ended, and where they failed.

Such a check may take exponential time: references can branch at every step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any


class CheckEnded(Exception):
    """A check was ended before it had an outcome."""


def endable(kind: Any, checks: Mapping[str, Callable[..., Any]], is_over: Callable[[], bool]) -> Any:
    """Return a validator class like `kind` with a check for each keyword; each raises `CheckEnded` once it is over.

    `kind` is a class of jsonschema. `is_over` is called before every check of a keyword.
    """
    from jsonschema import validators

    def ended_in_time(check: Callable[..., Any]) -> Callable[..., Any]:
        def checked(*given: Any) -> Any:
            if is_over():
                raise CheckEnded
            return check(*given)

        return checked

    return validators.extend(kind, {keyword: ended_in_time(check) for keyword, check in checks.items()})  # type: ignore[no-untyped-call]  # the library has no types for it


def path_text(path: Iterable[str | int]) -> str:
    """Return the path of an error, such as `rows[0].name`; an empty text for the root."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def end_of(message: str, chars_max: int) -> str:
    """Return a message, or the end of a long one: the library's messages begin with the whole value."""
    return message if len(message) <= chars_max else f"…{message[-chars_max:]}"
