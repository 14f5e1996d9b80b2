"""What guest code can get hold of: by reading, and by calling with harmless arguments; in a process that is sealed.

`Reached` walks once, and tells then what was opaque, and of any object whether it is a secret: one that stood in the
process when it was sealed, and that neither reading nor calling gave.
"""

# ruff: noqa: SIM905 - a table of words is read as words, not as quoted strings

from __future__ import annotations

import contextlib
import gc
import signal
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sealab.sandbox.dialect import facades, names
from sealab.sandbox.dialect.guards import guarded_getattr
from sealab.sandbox.dialect.names import Verdict
from sealab.sandbox.dialect.namespace import guarded_builtins
from sealab.sandbox.guest import ownership

from .. import facades_walk
from ..facades_walk import ARGUMENTS, changes_a_container
from .opaque import Opaque

_ATOMS = frozenset(
    {bytes, int, float, complex, bool, type(None), str, bytearray, range, slice, type(NotImplemented), type(...)}
)
_ITEMS_MAX = 300
_DEPTH_MAX = 6
_CALL_DEPTH_MAX = 4
_OF_ONE_MAKER = 3
_CALL_SECONDS = 15
_OF_ONE_TYPE = 8
_BINDS_NOTHING = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    types.ClassMethodDescriptorType,
)


class Stuck(BaseException):
    """A step took too long."""


@contextlib.contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Raise `Stuck` in what takes longer than `seconds`: what computes, and what waits."""
    if sys.platform == "emscripten":  # which has no timers
        yield
        return
    signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _stop(*_arguments: object) -> None:
    raise Stuck


def is_own(value: object) -> bool:
    """Return whether the guest made a value, or its class."""
    return ownership.is_guest_class(type(value)) or ownership.is_guest_callable(value)


def standing() -> dict[int, object]:
    """Return all objects of the process but atoms, by identity; also those that the collector does not know."""
    found: dict[int, object] = {}
    waiting: list[object] = gc.get_objects()
    while waiting:
        for value in gc.get_referents(*waiting[-5000:]) + waiting[-5000:]:
            if type(value) not in _ATOMS and id(value) not in found:
                found[id(value)] = value
                if not gc.is_tracked(value):
                    waiting.insert(0, value)
        del waiting[-5000:]
    return found


class Reached:
    """The objects that guest code can get, by path. `makers` gives what was called for objects of a class."""

    def __init__(self, secrets: dict[int, object], given: Iterable[object], opaque: Opaque) -> None:
        self._standing = secrets
        for value in (each for arguments in ARGUMENTS for each in arguments):
            self._standing.pop(id(value), None)
        self._given = list(given)
        self.opaque = opaque
        self.paths: dict[int, str] = {}
        self.values: list[tuple[str, Any]] = []
        self.made: dict[type, list[tuple[str, Any]]] = {}
        self._of_maker: dict[tuple[int, type], int] = {}
        self._waiting: deque[tuple[str, object, int, int]] = deque()
        self.slow: list[str] = []
        self.found: list[str] = []
        self._called: set[object] = set()
        self._methods = {kind_of(each) for each in self._given}
        self.of_given: dict[int, type] = {}

    def is_secret(self, value: object) -> bool:
        """Return whether a value is the host's own and was not reached."""
        return (
            type(value) not in _ATOMS
            and id(value) not in self.paths
            and not any(value is each for each in self._given)
            and self._standing.get(id(value)) is value
            and not is_own(value)
        )

    def is_host(self, value: object) -> bool:
        """Return whether a value stood in the process when it was sealed."""
        return self._standing.get(id(value)) is value

    def walk(self, modules: Iterable[str], more: Iterable[tuple[str, object]] = (), *, calling: bool = True) -> None:
        """Reach everything from the builtins, from these modules and from `more`."""
        roots: list[tuple[str, object]] = [
            (name, value) for name, value in guarded_builtins().items() if name.isascii() and not name.startswith("_")
        ]
        listed = facades.exports()
        for module in modules:
            roots += [(f"{module}.{name}", getattr(facades.find(module), name)) for name in sorted(listed[module])]
        self.reach((*roots, *more), calling=calling)

    def reach(self, roots: Iterable[tuple[str, object]], *, calling: bool = True) -> None:
        """Reach everything from `roots`."""
        self._calls_max = _CALL_DEPTH_MAX if calling else 0
        for path, value in roots:
            self._add(path, value, 0, 0)
        while self._waiting:
            self._visit(*self._waiting.popleft())

    def _add(self, path: str, value: object, depth: int, calls: int) -> None:
        if type(value) in _ATOMS or id(value) in self.paths or is_own(value):
            return
        if not self.is_host(value):
            key = kind_of(value)
            if key != id(value):
                if key in self._methods:
                    return
                self._methods.add(key)
            else:
                made = self.made.setdefault(type(value), [])
                if len(made) >= _OF_ONE_TYPE:
                    return
                made.append((path, value))
        reason = self.opaque.why(value)
        if reason is not None:
            self.found.append(f"{path}: {reason}")
            return
        self.paths[id(value)] = path
        self.values.append((path, value))
        self._waiting.append((path, value, depth, calls))

    def _visit(self, path: str, value: Any, depth: int, calls: int) -> None:
        if isinstance(value, facades.Facade) or depth >= _DEPTH_MAX:
            return
        for key, item in items_of(value):
            self._add(f"{path}[{key}]", item, depth + 1, calls)
        for name in () if type(value) in _BINDS_NOTHING[1:] else readable(value):
            try:
                found = guarded_getattr(value, name)
            except BaseException as error:  # which code can catch
                found = error
            self._add(f"{path}.{name}", found, depth + 1, calls)
        if callable(value) and calls < self._calls_max and may_call(value, path):
            self._call(path, value, depth, calls)

    def _call(self, path: str, function: Callable[..., object], depth: int, calls: int) -> None:
        key = kind_of(function)
        if key in self._called:
            return
        self._called.add(key)
        arguments = [*ARGUMENTS, *((each,) for each in self._given), *(("a", each) for each in self._given)]
        for given in arguments if calls == 0 else arguments[:8]:
            try:
                with bounded(_CALL_SECONDS):
                    result = function(*given)
            except Stuck:
                self.slow.append(path)
                return
            except BaseException as error:
                result = error
            if isinstance(result, types.CoroutineType):
                result.close()
            made = id(function), type(result)
            is_of_given = bool(given) and any(given[-1] is each for each in self._given)
            # What is made from one thing may keep another inside than what is made from the next.
            if self._of_maker.setdefault(made, 0) < _OF_ONE_MAKER or is_of_given:
                self._of_maker[made] += 1
                if is_of_given:
                    self.of_given[id(result)] = type(given[-1])
                self._add(f"{path}({shown(given)})", result, depth + 1, calls + 1)


def kind_of(value: object) -> object:
    """Return what is alike for all values that need to be tried only once."""
    kind = type(value)
    if kind is types.MethodType:
        return kind, type(value.__self__), id(value.__func__)
    if kind is types.BuiltinFunctionType or kind is types.MethodWrapperType:
        return kind, type(value.__self__), value.__name__
    return id(value)


def may_call(value: object, path: str) -> bool:
    """Return whether a call ends, and leaves the process as it was."""
    known = {path.rpartition(".")[2], str(getattr(value, "__name__", ""))}
    return not (known & NOT_CALLED) and not changes_a_container(value)


NOT_CALLED = frozenset(
    facades_walk.NOT_CALLED
    | set("settrace setprofile breakpoint input shutdown reset_peak setlocale send throw acquire_lock".split())
)
"""What waits, ends, or changes the process that walks."""


def readable(value: object) -> list[str]:
    """Return the names that source may read of a value, special methods apart."""
    try:
        found = [name for name in dir(value) if type(name) is str]
    except BaseException:
        return []
    return [name for name in found if name not in names.SPECIAL_METHODS and may_read(name)]


def may_read(name: str) -> bool:
    """Return whether source may spell an attribute."""
    return names.judge(name) in {Verdict.PLAIN, Verdict.GUARDED}


def items_of(value: Any) -> Iterator[tuple[str, object]]:
    """Give the items of a container."""
    kind = type(value)
    with contextlib.suppress(BaseException):
        if issubclass(kind, dict | types.MappingProxyType):
            for key, item in list(value.items())[:_ITEMS_MAX]:
                yield "key", key
                yield repr(key)[:30], item
        elif issubclass(kind, list | tuple | set | frozenset):
            for item in list(value)[:_ITEMS_MAX]:
                yield "…", item


def shown(arguments: Iterable[object]) -> str:
    """Return what a call was given."""
    return ", ".join(repr(each)[:30] if type(each) in _ATOMS else f"a {type(each).__name__}" for each in arguments)
