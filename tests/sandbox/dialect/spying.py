"""The walk of spies, which is imported once the host's classes are sealed, so that its own are not.

The spies (`spies`, `spy_touches`) are guest code. The walk hands them to every callable of the modules that it is
given, to the methods of what those return, and to what guest code may do with any object; after each step it looks
through what the spies recorded and what came back, and returns what was opaque (`opaque`). `BUILTINS` stands for the
names that code finds without importing, `HELPERS` for the functions that ask the host, and what they answer.
"""

# ruff: noqa: SIM905 - a table of words is read as words, not as quoted strings

from __future__ import annotations

import contextlib
import inspect
import itertools
import signal
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from sealab.sandbox.dialect import facades, names
from sealab.sandbox.dialect.compiling import compile_program, run_program
from sealab.sandbox.dialect.guards import guarded_getattr
from sealab.sandbox.dialect.names import Verdict
from sealab.sandbox.dialect.namespace import new_namespace
from sealab.sandbox.guest import ownership
from sealab.sandbox.guest.guest import GUEST

from ...fuzz.host_state import HostState
from ..facades_walk import HELPERS, helpers
from . import spies, spy_touches
from .opaque import Opaque

BUILTINS = "the builtins"
_ATOMS = {bytes, int, float, complex, bool, type(None), bytearray, range, slice, type(NotImplemented), type(...)}
_NOT_CALLED = {
    # They end, wait for, or change the process that walks, as they should.
    *"sleep setrecursionlimit disable setcontext seed setstate run run_until_complete run_forever timeit repeat".split(),
    *"autorange set_int_max_str_digits field_size_limit register_dialect unregister_dialect purge set_event_loop".split(),
    *"breakpoint exit quit input setlocale set_trace to_thread shutdown reset_peak".split(),
}
_BLOCKING = {"queue": {"get", "put", "join"}, "asyncio": {"get", "put", "join", "acquire", "wait"}}
_BASELINE = """
BASELINE = [
    (), (1,), ("a",), (b"a",), ([1, 2],), (function,), ("a", "b"), (2, 3), (int,), ([3, 1], 2), ("a", function), (function, [1, 2]),
    ("a", "b", "c"), (1, 2, 3), ({"a": 1},), (int, "a"), ([("a", 1)],), (Plain(),), (Plain,), (Plain(), "x"), (Plain, "x", 1), (generating,),
    ("Z", ["a"]), ("Z", [("a", int)]),
]
"""
_ITEMS_MAX = 200
_SECONDS_MAX = 5


class Stuck(BaseException):
    """A call took too long."""


def stop(*_arguments: object) -> None:
    """Raise it, as the handler of a signal."""
    raise Stuck


class SpyWalk:
    """Walks with one namespace of spies. `found` is what was opaque, each with how it was reached."""

    def __init__(self) -> None:
        self.space = new_namespace()
        # What is called from here finds a namespace of its own, so that a call of `globals().clear()` ends no spy.
        GUEST.write, GUEST.namespace = lambda _text: None, new_namespace()
        self.opaque = Opaque()
        for namespace in (self.space, GUEST.namespace):
            self.opaque.add_namespace(namespace, "the real namespace of the code")
        self._programs = [compile_program(text) for text in (spies.source(), spy_touches.source(), _BASELINE)]
        self.renew()
        self.found: dict[tuple[str, str], str] = {}
        self.calls = 0
        self.slow: list[str] = []
        self._looked: dict[int, int] = {}
        self._kept_now: list[object] = []
        self._read: dict[object, int] = {}
        self._data: dict[type, list[str]] = {}
        self._called: set[object] = set()
        self._touched: set[object] = set()
        self._kept: list[object] = []

    def renew(self) -> None:
        """Make all spies anew: what they were given to may have changed them."""
        for program in self._programs:
            run_program(program, self.space)
        self.noted: list[Any] = self.space["noted"]
        self.values: Callable[[], dict[str, object]] = self.space["values"]
        self.baseline: list[tuple[object, ...]] = self.space["BASELINE"]
        self._allow(value for arguments in self.baseline for value in arguments)
        self.touches = {name: value for name, value in self.space.items() if name.startswith("touch_")}
        self.writes = {name: value for name, value in self.space.items() if name.startswith(spy_touches.WRITES)}

    # What was handed over

    def look(self, value: object, origin: str, how: str, depth: int = 3) -> None:
        """Find what is opaque in a value, in its items and in what its plain attributes give."""
        kind = type(value)
        if kind in _ATOMS or depth < 0 or self._looked.get(id(value), -1) >= depth:
            return
        self._looked[id(value)] = depth
        self._kept_now.append(value)
        reason = self.opaque.why(value)
        if reason is not None:
            kind_of_reason = reason if "real class" not in reason else "a real class"
            self.found.setdefault((origin, kind_of_reason), f"{reason} [{how}]")
            return
        for item in _items(value):
            self.look(item, origin, how, depth - 1)
        if depth > 0:
            self._read_attributes(value, origin, how, depth - 1)

    def _read_attributes(self, value: object, origin: str, how: str, depth: int) -> None:
        kind = type(value)
        key = self._key(value, kind, origin)
        if key is None or self._read.get(key, -1) >= depth:
            return
        self._read[key] = depth
        self._kept.append(value)
        for name, verdict in self._readable(value, kind):
            try:
                found = guarded_getattr(value, name) if verdict is Verdict.GUARDED else getattr(value, name)
            except BaseException as error:
                found = error
            if type(found) not in _ATOMS:
                self.look(found, origin, f"{how} .{name}", depth)

    @staticmethod
    def _key(value: object, kind: type, origin: str) -> object:
        """Return what is read once: a class, a function, or for each thing that is called one object of each class."""
        if type in kind.__mro__:
            return id(value)
        if kind is types.MethodType:
            return id(value.__func__)
        if kind in _METHODS:
            return kind, getattr(value, "__name__", ""), type(getattr(value, "__self__", None))
        if kind is types.FunctionType:
            return None if ownership.is_guest_callable(value) else id(value)
        if ownership.is_guest_class(kind) and not hasattr(kind, "__dataclass_fields__"):
            return None
        return kind, origin

    def _readable(self, value: object, kind: type) -> list[tuple[str, Verdict]]:
        """Return the names that source may read of a value: all of the first of its class, then those of data."""
        if type in kind.__mro__:
            return _verdicts(_names_of(value))
        names_of_data = self._data.get(kind)
        if names_of_data is None:
            self._data[kind] = [
                name for name in _names_of(kind) if not isinstance(inspect.getattr_static(kind, name, None), _METHODS)
            ]
            return _verdicts(_names_of(value))
        own = getattr(value, "__dict__", None)
        return _verdicts(
            [*names_of_data, *(name for name in own if type(name) is str)] if type(own) is dict else names_of_data
        )

    def drain(self, origin: str, how: str) -> None:
        """Look through what the spies recorded."""
        recorded = list(self.noted)
        self.noted.clear()
        for where, args, kwargs in recorded:
            for item in (*args, *kwargs.values()):
                self.look(item, origin, f"{how} → {where}", 2)

    def step(self, origin: str, how: str, call: Callable[[], object]) -> object:
        """Do one call; look through its result, or the exception it raised, and the record."""
        self.calls += 1
        self._looked.clear()
        self._kept_now.clear()
        try:
            result = call()
            if isinstance(result, types.CoroutineType):
                result = self._driven(result)
        except Stuck:
            raise
        except BaseException as error:
            result = error
        self.look(result, origin, how)
        self.drain(origin, how)
        return result

    @staticmethod
    def _arm() -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS_MAX)

    @staticmethod
    def _driven(coroutine: types.CoroutineType[Any, Any, Any]) -> object:
        try:
            for _ in range(3):
                coroutine.send(None)
        except StopIteration as stopped:
            return stopped.value
        finally:
            coroutine.close()
        return None

    def touch(self, origin: str, how: str, call: Callable[[], object]) -> None:
        """Do one step; leave it when it takes too long."""
        self._arm()
        try:
            self.step(origin, how, call)
        except Stuck:
            self.slow.append(how)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    # What is called

    def visit(self, value: object, path: str, depth: int = 0) -> None:
        """Touch a value in every way, call it if it can be called, and its methods."""
        kind = type(value)
        if kind in _ATOMS:
            return
        is_own = isinstance(value, type) or not _has_methods(value)
        key: object = id(value) if is_own else kind
        if isinstance(value, type) and vars(value).keys() <= _ADDS_NOTHING:
            key = value.__bases__, value.__module__ == "builtins"
        if key in self._touched:
            return
        self._touched.add(key)
        self._kept.append(value)
        if self.opaque.why(value) is not None:
            return
        self._allow([value])
        is_large = hasattr(kind, "__len__") and not isinstance(value, type) and _length(value) > _ITEMS_MAX
        for name, touch in () if is_large else self.touches.items():
            if name.startswith(_FOR_CLASSES) and not isinstance(value, type):
                continue
            self.touch(name, f"{name}({path})", lambda touch=touch: touch(value))
        if callable(value) and self._may_call(value, path):
            self.call(value, path, depth)
        for name in _names_of(value):
            self._visit_member(value, name, path, depth)

    def _visit_member(self, value: object, name: str, path: str, depth: int) -> None:
        verdict = names.judge(name)
        is_class = isinstance(value, type)
        if verdict not in {Verdict.PLAIN, Verdict.GUARDED} or name in _NOT_MEMBERS:
            return
        if is_class and name in names.SPECIAL_METHODS and name not in _OF_CLASSES:
            return  # of an instance it does the same
        owner = value if is_class else type(value)
        key = (_defined_by(owner, name), name, is_class)
        if key in self._called:
            return
        self._called.add(key)
        try:
            member = guarded_getattr(value, name) if verdict is Verdict.GUARDED else getattr(value, name)
        except BaseException:
            return
        if callable(member) and not isinstance(member, type) and self._may_call(member, f"{path}.{name}"):
            self.call(member, f"{path}.{name}", depth + 1)
        elif (isinstance(member, type) and depth < 1) or (not callable(member) and not _has_methods(member)):
            self.visit(member, f"{path}.{name}", depth + 1)

    def _may_call(self, value: object, path: str) -> bool:
        parts = path.split(".")
        name = getattr(value, "__name__", "") if isinstance(getattr(value, "__name__", ""), str) else ""
        return not (
            {name, parts[-1]} & (_NOT_CALLED | _BLOCKING.get(parts[0], set()))
        ) and not ownership.is_guest_callable(value)

    def call(self, function: Callable[..., object], path: str, depth: int) -> None:
        """Call a callable; leave it when that takes too long."""
        self._arm()
        try:
            results = self._call(function, path, depth)
        except Stuck:
            self.slow.append(path)
            return
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        if depth < _DEPTH_MAX:
            for kind, result in results.items():
                if (
                    kind not in _ATOMS
                    and not isinstance(result, str | BaseException)
                    and not ownership.is_guest_class(kind)
                ):
                    self.visit(result, f"{path}()", depth + 1)

    def _call(self, function: Callable[..., object], path: str, depth: int) -> dict[type, object]:
        """Call with what works, with hostile values in each place of it, and with hostile keywords.

        The methods of what a callable returns get fewer values than it, and special methods one argument only.
        """
        results: dict[type, object] = {}
        self.drain(path, f"{path} is found")  # what reading it told the spies, before more of them are made
        values = self.values()
        if depth:
            values = {name: value for name, value in values.items() if name in _CORE}
        self._allow(values.values())
        working: list[tuple[object, ...]] = []
        is_special = path.rpartition(".")[2] in names.SPECIAL_METHODS
        for number, given in enumerate(self.baseline[: 2 if is_special else len(self.baseline) // (1 + depth)]):
            result = self.step(path, f"{path}(baseline {number}: {_shown(given)})", partial(function, *given))
            if not isinstance(result, BaseException):
                if type(result) not in results:
                    working.append(given)
                results.setdefault(type(result), result)
        chosen = [] if is_special else working[: 1 if depth else 2]
        for how, given in _hostile(values, chosen, 1 if is_special else 2 if depth else 3):
            self._keep(results, self.step(path, f"{path}({how})", partial(function, *given)))
        keywords = () if is_special else _keywords(function)
        self.noted.clear()  # what the question for the keywords told the spies
        given = chosen[0] if chosen else ()
        for keyword, name in itertools.product(
            keywords, sorted(values.keys() & (_OF_MORE_KEYWORDS if depth else _OF_KEYWORDS))
        ):
            how = f"{path}({_shown(given)}, {keyword}={name})"
            self._keep(results, self.step(path, how, partial(function, *given, **{keyword: values[name]})))
        return results

    def _allow(self, values: Iterable[object]) -> None:
        for value in values:
            if isinstance(value, dict):
                self.opaque.allow(value)

    @staticmethod
    def _keep(results: dict[type, object], result: object) -> None:
        if len(results) < 12 and not isinstance(result, BaseException):
            results.setdefault(type(result), result)

    # What is written

    def write(self, members: Mapping[str, object]) -> None:
        """Try to change the host by way of each member."""
        for path, value in members.items():
            if type(value) not in _ATOMS:
                for name, touch in self.writes.items():
                    self.touch(path, f"{name}({path})", lambda touch=touch, value=value: touch(value))

    def find_changes(self, state: HostState, origin: str) -> None:
        """Find what was changed of the host since the last time."""
        for change in state.changes():
            self.found.setdefault((origin, change), f"writes into the host: {change}")


_DEPTH_MAX = 2
_CORE = (
    "Spy()", "Odd()", "Refusing()", "Asked()", "Deep()", "function", "raising", "dressed", "Spy", "Static", "Data()", "Memo()", "{Name}", "(Spy(),)", "{a: Spy()}",
    "names", "'format'", "'__globals__'", "StrSpy()", "IntSpy()", "DictSpy()", "TupleSpy()",
)  # fmt: skip
_FOR_CLASSES = tuple(f"touch_{name}" for name in "dataclass keys delegating static of_class data members".split())
_ADDS_NOTHING = frozenset("__init__ __new__ __doc__ __module__ __weakref__ __qualname__ __dict__".split())
"""What a class binds that is like its base: of those, one is enough."""
_OF_CLASSES = frozenset({"__class_getitem__", "__mro_entries__", "__instancecheck__", "__subclasscheck__", "__call__"})
_NOT_MEMBERS = frozenset("__init_subclass__ __del__ __new__ __dir__ __sizeof__ __subclasshook__".split())
_OF_MORE_KEYWORDS = frozenset({"Spy()", "function", "names"})
_OF_KEYWORDS = frozenset(("Spy()", "function", "Odd()", "StrSpy()", "DictSpy()", "Static", "names"))


def _hostile(
    values: Mapping[str, object], working: Iterable[tuple[object, ...]], forms: int
) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield each value alone, in `forms` forms, and in each place of arguments that work; with what to call them."""
    for name, value in values.items():
        alone = ((value,), (value, value), (value, "format"))
        yield from ((f"{name}, form {number}", given) for number, given in enumerate(alone[:forms]))
    for arguments in working:
        for place, (name, value) in itertools.product(range(len(arguments)), values.items()):
            if len(arguments) > 1:
                given = (*arguments[:place], value, *arguments[place + 1 :])
                yield f"{_shown(arguments)} with {name} at {place}", given


def _length(value: object) -> int:
    try:
        return len(value)
    except BaseException:
        return 0


_METHODS = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.MethodWrapperType,
    types.ClassMethodDescriptorType, classmethod, staticmethod,
)  # fmt: skip


def _verdicts(found: Iterable[str]) -> list[tuple[str, Verdict]]:
    """Return those of the names that source may read as attributes, special methods apart."""
    readable = []
    for name in found:
        known = _known_verdicts.get(name)
        if known is None:
            known = names.judge(name)
            if name in names.SPECIAL_METHODS or known not in {Verdict.PLAIN, Verdict.GUARDED}:
                known = Verdict.REFUSED
            _known_verdicts[name] = known
        if known is not Verdict.REFUSED:
            readable.append((name, known))
    return readable


_known_verdicts: dict[str, Verdict] = {}


def _has_methods(value: object) -> bool:
    return not isinstance(value, type | types.FunctionType | types.BuiltinFunctionType | types.MethodType)


def _defined_by(owner: type, name: str) -> type:
    return next((base for base in owner.__mro__ if name in vars(base)), owner)


def _names_of(value: object) -> list[str]:
    try:
        return [name for name in dir(value) if type(name) is str]
    except BaseException:
        return []


def _items(value: object) -> Iterable[object]:
    kind = type(value)
    if issubclass(kind, dict):
        pairs = list(itertools.islice(dict.items(value), _ITEMS_MAX))
        return [item for pair in pairs for item in pair]
    if kind is types.MappingProxyType:
        with contextlib.suppress(Exception):
            return [item for pair in itertools.islice(value.items(), _ITEMS_MAX) for item in pair]
        return []
    for base in (list, tuple, set, frozenset):
        if issubclass(kind, base):
            return list(itertools.islice(base.__iter__(value), _ITEMS_MAX))
    if issubclass(kind, BaseException):
        return BaseException.args.__get__(value)
    return ()


def _keywords(function: Callable[..., object]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except BaseException:
        return []
    return [
        each.name
        for each in parameters
        if each.kind in {each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD} and not each.name.startswith("_")
    ][:8]


def _shown(arguments: tuple[object, ...]) -> str:
    return f"({', '.join(_word(each) for each in arguments)})"


def _word(value: object) -> str:
    return repr(value) if type(value) in {int, bytes, str} else type(value).__name__


def members_of(module: str) -> dict[str, object]:
    """Return what a module gives, or the one member of a module, by dotted paths."""
    if module == HELPERS:
        return helpers()
    if module == BUILTINS or module.startswith("builtins."):
        layer = new_namespace()["__builtins__"]
        found = {name: value for name, value in layer.items() if name.isascii() and not name.startswith("__")}
        return found if module == BUILTINS else {module: found[module.partition(".")[2]]}
    listed = facades.exports()
    if module not in listed:
        module, _, name = module.rpartition(".")
        return {f"{module}.{name}": getattr(facades.find(module), name)}
    return {f"{module}.{name}": getattr(facades.find(module), name) for name in sorted(listed[module])}


def walk(modules: Iterable[str]) -> dict[str, Any]:
    """Walk the modules and return what was found, how many calls were made, and what took too long."""
    walked = SpyWalk()
    state = HostState()
    members = {module: members_of(module) for module in modules}
    for module, given in members.items():
        walked.renew()
        for path, value in given.items():
            if not isinstance(value, facades.Facade):
                walked.visit(value, path)
        walked.find_changes(state, f"calls of {module}")
    for module, given in members.items():
        walked.write(given)
        walked.find_changes(state, f"writes to {module}")
    found = [f"{origin}: {how}" for (origin, _reason), how in walked.found.items()]
    return {"found": found, "calls": walked.calls, "slow": walked.slow}
