"""`operator` with getters that take attribute names through the guards."""

from __future__ import annotations

import operator
from collections.abc import Callable

from ...guards import guarded_getattr
from ...names import Verdict, given, judge, mangle

__all__ = ["attrgetter", "methodcaller"]


def attrgetter(attr: str, /, *attrs: str) -> Callable[[object], object]:
    """Return a function that reads `attr`, a dotted name, from its argument; several give a tuple."""
    paths = [_path(name) for name in (attr, *attrs)]
    if all(_is_plain(part) for path in paths for part in path):
        return operator.attrgetter(*(".".join(map(mangle, path)) for path in paths))
    if len(paths) == 1:
        only = paths[0]
        return lambda obj: _follow(obj, only)
    return lambda obj: tuple(_follow(obj, path) for path in paths)


def methodcaller(name: str, /, *args: object, **kwargs: object) -> Callable[[object], object]:
    """Return a function that calls the method `name` of its argument."""
    (part,) = _path(name, dotted=False)
    if _is_plain(part):
        return operator.methodcaller(mangle(part), *args, **kwargs)
    return lambda obj: _call(_follow(obj, [part]), args, kwargs)


def _path(name: str, *, dotted: bool = True) -> list[str]:
    plain = given(name, "an attribute name")
    return plain.split(".") if dotted else [plain]


def _is_plain(name: str) -> bool:
    """Return whether source may write `.name` without any guard at run time."""
    return judge(name) in {Verdict.PLAIN, Verdict.PRIVATE}


def _follow(obj: object, path: list[str]) -> object:
    for name in path:
        obj = guarded_getattr(obj, name)
    return obj


def _call(method: object, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
    if not callable(method):
        raise TypeError(f"{type(method).__name__!r} object is not callable")
    return method(*args, **kwargs)
