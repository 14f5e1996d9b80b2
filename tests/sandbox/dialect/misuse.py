"""The rules of the walk of misuse, imported once the host's classes are sealed, so that its own are not.

Each rule is for every object that guest code can reach: it stands beside a spy in an operator (`operators`), its
attributes and items are stored (`stores`), it is stored in a class of the guest's and read there, if it is a
descriptor (`descriptors`), a method of a base of its class works on it (`bases`), its class makes what it is not
(`makers`), it is a variable of the context (`variables`), or a builtin that source calls without naming it (`hooks`).
"""

# ruff: noqa: SIM905 - a table of words is read as words, not as quoted strings

from __future__ import annotations

import contextlib
import contextvars
import decimal
import gc
import operator
import sys
import time
import types
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from sealab.sandbox.dialect import facades, names
from sealab.sandbox.dialect.compiling import compile_program, run_program
from sealab.sandbox.dialect.guards import guarded_delattr, guarded_getattr, guarded_setattr, guarded_vars
from sealab.sandbox.dialect.namespace import guarded_builtins, new_namespace
from sealab.sandbox.guest.guest import GUEST

from ...fuzz.host_state import HostState
from . import forks, spies
from .opaque import Opaque
from .reached import NOT_CALLED, Reached, Stuck, is_own, items_of, may_read, readable, standing

_ATOMS = frozenset({bytes, int, float, complex, bool, type(None), str})
_own_dict = type.__dict__["__dict__"].__get__
_mro = type.__dict__["__mro__"].__get__

_MORE = """
def running():
    yield 1
def suspended():
    made = running()
    next(made)
    return made
class Plain: pass
class Held: pass
class Answering:
    def __init__(self, forged): self.forged = forged
    def __getattr__(self, name): return self.forged
"""


class Misuse:
    """All rules over what was reached."""

    def __init__(self, modules: list[str]) -> None:
        self.space = new_namespace()
        GUEST.write, GUEST.namespace = lambda _text: None, new_namespace()
        secrets = standing()
        self.opaque = Opaque()
        for namespace in (self.space, GUEST.namespace):
            self.opaque.add_namespace(namespace, "the real namespace of the code")
        run_program(compile_program(spies.source() + _MORE), self.space)
        self.noted: list[Any] = self.space["noted"]  # type: ignore[assignment]  # the list of the spies
        self.reached = Reached(secrets, [], self.opaque)
        self.reached.walk(modules, self._of_library(), calling=False)  # for what to make wrappers of
        self.hosts = self._hosts()
        self.reached = Reached(secrets, self.hosts, self.opaque)
        self.reached.walk(modules, self._of_library())
        self.values = self._distinct()
        self._tried: set[types.FunctionType] = set()

    def _hosts(self) -> list[object]:
        """Return one object of the host of each kind that is told apart: what wrappers are made of."""
        found: dict[object, object] = {}
        for _path, value in self.reached.values:
            kind = type(value)
            if not self.reached.is_host(value) and kind is not types.MethodType:
                continue
            if kind is types.MethodType and not isinstance(value.__self__, type):
                found.setdefault((kind, 0 if len(found) < 3 else 1), value)
            elif kind in {types.FunctionType, types.MappingProxyType, property, dict} or kind is type:
                found.setdefault(kind, value)
        return [*found.values(), self.space["suspended"]()]  # type: ignore[operator]  # a function

    def _distinct(self) -> list[tuple[str, Any]]:
        """Return what was reached, of functions and of what was made one of each kind."""
        seen: set[object] = set()
        found = []
        for path, value in self.reached.values:
            kind = type(value)
            key: object = id(value)
            if kind is types.MethodType:
                key = kind, type(value.__self__)
            elif kind in _FUNCTIONS:
                key = kind
            elif isinstance(value, facades.Facade):
                key = facades.Facade
            elif _is_class(value):
                key = kind, _own_dict(value).get("__class_getitem__"), id(value) * (kind is not type)
            elif not self.reached.is_host(value):
                key = kind, self.reached.of_given.get(id(value))
            if key not in seen:
                seen.add(key)
                found.append((path, value))
        return found

    # Judging

    def why(self, value: object, *known: object) -> Iterator[str]:
        """Return what is wrong with a value that the guest got, and with its items."""
        if type(value) in _ATOMS or any(value is each for each in known):
            return
        yield from self._why_one(value)
        for _key, item in items_of(value):
            if type(item) not in _ATOMS and not any(item is each for each in known):
                yield from self._why_one(item)

    def _why_one(self, value: object) -> Iterator[str]:
        reason = self.opaque.why(value)
        if reason is not None:
            yield reason
        elif type(value) in {types.FunctionType, types.MethodType, classmethod, staticmethod}:
            yield from self._why_function(getattr(value, "__func__", value))
        elif self.reached.is_secret(value):
            yield f"a {_title(value)} that only the host has"

    def _why_function(self, function: Any) -> Iterator[str]:
        """Return what a function of the host's tells when code calls it on what is no instance of its class."""
        if type(function) is not types.FunctionType or not self.reached.is_secret(function) or function in self._tried:
            return
        self._tried.add(function)
        for forged in self._forged():
            for given in ((forged,), (forged, forged), (forged, "x"), (forged, "x", forged)):
                for reason in self.attempt(partial(function, *given), *given):
                    yield f"the host's {function.__qualname__}, which tells {reason}"

    def told(self, *known: object) -> Iterator[str]:
        """Return what is wrong with what the spies were told."""
        recorded = list(self.noted)
        self.noted.clear()
        for where, args, kwargs in recorded:
            for item in (*args, *kwargs.values()):
                for reason in self.why(item, *known):
                    yield f"{reason} → {where}"

    def attempt(self, call: Callable[[], object], *known: object) -> Iterator[str]:
        """Do a call and say what is wrong with what it gave, raised or told."""
        try:
            result = call()
            if isinstance(result, types.CoroutineType):
                result.close()
        except Stuck:
            raise
        except BaseException as error:
            result = error
        yield from self.why(result, *known)
        yield from self.told(*known)

    # Rules

    def operators(self) -> Iterator[forks.Step]:
        """Put each value beside a spy, and beside things of its own kind that a spy is in, on either side."""
        partners = self._partners()
        bare = [self.space[name]() for name in ("Refusing", "Odd")]  # type: ignore[operator]  # classes
        for path, value in self.values:
            if _is_endless(value):
                continue

            def act(value: Any = value) -> Iterator[str]:
                near = [partner for kind in _mro(type(value))[:-1] for partner in partners.get(kind, ())]
                for partner in (*bare, *near[:6]):
                    for name, operate in (
                        _OPERATORS if any(partner is each for each in bare) else _COMPARISONS
                    ).items():
                        for left, right in ((value, partner), (partner, value)):
                            for reason in self.attempt(partial(operate, left, right), value, partner):
                                yield f"{name} of a {type(value).__name__}: {reason}"

            yield f"operators of {path}", act

    def _partners(self) -> dict[type, list[object]]:
        """Return, for each class, things of it or of a class derived from it that hold a spy."""
        spy = self.space["Refusing"]
        found: dict[type, list[object]] = {}
        for _path, value in self.reached.values:
            if not _is_class(value):
                continue
            for given in ((spy(),), (spy(), 1), (spy(), spy()), ({"a": spy()},), ([spy()],)):  # type: ignore[operator]  # a class
                self.noted.clear()
                with contextlib.suppress(BaseException):
                    made = value(*given)
                    for base in _mro(type(made))[:-1]:
                        if len(found.setdefault(base, [])) < 4:
                            found[base].append(made)
                    break
        self.noted.clear()
        return found

    def stores(self) -> Iterator[forks.Step]:
        """Store and delete each attribute and item of each object of the host: what can be must not change it."""
        for path, value in self.reached.values:
            if not self.reached.is_host(value) or isinstance(value, facades.Facade):
                continue
            kind = type(value)
            if kind is types.FunctionType and not self._is_first(kind, path):
                continue

            def act(value: Any = value, kind: type = kind) -> Iterator[str]:
                own = kind is types.FunctionType  # may have any attribute, which nothing of the host reads
                found = [
                    name
                    for name in _names_of(value)
                    if name not in names.SETTABLE and (not own or name in _own_dict(kind))
                ]
                changed = [name for name in found if self._stored(value, name)]
                if changed and _title(value) not in _CHANGED_BY_CODE and not self._is_of_facades(value):
                    yield f"the host's {_title(value)} takes {' '.join(changed)}"
                if kind in {dict, list, set, types.MappingProxyType} and not self._is_of_facades(value):
                    yield from self._items_stored(value)

            yield f"stores in {path}", act

    def _is_first(self, kind: type, path: str) -> bool:
        first = next(
            found for found, value in self.reached.values if type(value) is kind and self.reached.is_host(value)
        )
        return first == path

    def _is_of_facades(self, value: object) -> bool:
        """Return whether the facades and their modules alone hold a value: what code does to it is its own business."""
        shared = {id(vars(module)) for name, module in list(sys.modules.items()) if not name.startswith(_FACADES)}
        holders = [each for each in gc.get_referrers(value) if self.reached.is_host(each) and type(each) is not tuple]
        return all(
            isinstance(each, facades.Facade) or (type(each) is dict and "__name__" in each and id(each) not in shared)
            for each in holders
        )

    def _stored(self, value: Any, name: str) -> bool:
        """Return whether a store or a deletion changes an attribute; undo it."""
        before = _raw(value, name)
        for given in (object(), 0, "text", self.space["Plain"]):
            try:
                guarded_setattr(value, name, given)
            except Stuck:
                raise
            except BaseException:
                self.noted.clear()
                continue
            changed = _raw(value, name) is given
            with contextlib.suppress(BaseException):
                setattr(value, name, before) if before is not _MISSING else delattr(value, name)
            return changed
        if before is not _MISSING:
            with contextlib.suppress(BaseException):
                guarded_delattr(value, name)
                changed = _raw(value, name) is not before
                setattr(value, name, before)
                return changed
        return False

    @staticmethod
    def _items_stored(value: Any) -> Iterator[str]:
        for change, undo in (
            (lambda: value.__setitem__("new", 1), lambda: value.__delitem__("new")),
            (lambda: value.append(1), lambda: value.__delitem__(-1)),
            (lambda: value.add("new"), lambda: value.discard("new")),
        ):
            try:
                change()
            except BaseException:
                continue
            undo()
            yield f"a {type(value).__name__} of the host takes items"

    def descriptors(self) -> Iterator[forks.Step]:
        """Store each descriptor in a class of the guest's, and read it where what it reads is forged."""
        seen: set[object] = set()
        for path, found in self._descriptors():
            kind = type(found)
            if not hasattr(kind, "__get__") or kind in _FUNCTIONS or kind is types.MethodType:
                continue
            key = kind, getattr(found, "__name__", None), path.rpartition(".")[2], path.partition(":")[0]
            if key in seen:
                continue
            seen.add(key)

            def act(found: Any = found) -> Iterator[str]:
                for forged in self._forged():
                    yield from self._misplaced(found, forged)

            yield f"the descriptor {path}", act

    def _forged(self) -> list[Any]:
        return [
            self.space["suspended"](),  # type: ignore[operator]  # a function
            self.hosts[0],
            guarded_getattr,
            "{0.__class__}",
            self.space["Spy"](),  # type: ignore[operator]  # a class
            int,
        ]

    def _misplaced(self, descriptor: Any, forged: Any) -> Iterator[str]:
        known = (descriptor, forged)
        run_program(compile_program("class Held: pass\nclass Answers(Answering): pass"), self.space)
        held: Any = self.space["Held"]
        answers: Any = self.space["Answers"]
        for cls in (held, answers):
            try:
                guarded_setattr(cls, "y", descriptor)
            except BaseException:
                return
        read = sorted({*names.SUNDER_DATA, *_read_by(type(descriptor)), *_own_dict(type(descriptor))})
        instance = held()
        for name in read:
            if may_read(name):
                with contextlib.suppress(BaseException):
                    guarded_setattr(instance, name, forged)
        for each in (instance, answers(forged), held, answers):
            for reason in self.attempt(partial(getattr, each, "y"), *known, each):
                yield f"read: {reason}"
            with contextlib.suppress(BaseException):
                result = each.y
                if callable(result) and not any(result is one for one in known) and not is_own(result):
                    for reason in self.attempt(result, *known, each):
                        yield f"called: {reason}"
        for each in (instance, answers(forged)):
            for reason in self.attempt(partial(setattr, each, "y", forged), *known, each):
                yield f"stored: {reason}"
            for reason in self.attempt(partial(delattr, each, "y"), *known, each):
                yield f"deleted: {reason}"

    def _descriptors(self) -> Iterator[tuple[str, object]]:
        """Give what stands in classes: those that were reached, and those that the library makes for the guest."""
        for path, cls in self.reached.values:
            if _is_class(cls):
                for name in sorted(_own_dict(cls)):
                    if type(name) is str and may_read(name):
                        with contextlib.suppress(BaseException):
                            yield f"{path}.{name}", guarded_getattr(cls, name)
        for how, text in _made_classes():
            made = self._made(text)
            for name, value in self._entries(made).items():
                yield f"{how}: {name}", value

    def _of_library(self) -> Iterator[tuple[str, object]]:
        """Give what stands of the host in classes that the library makes for the guest."""
        for title, text in _TEMPLATES.items():
            made = self._made(_IMPORTS + text.replace("NAME", "plain"))
            for name in self._entries(made):
                with contextlib.suppress(BaseException):
                    yield f"{title}: {name}", guarded_getattr(made, name)

    def _made(self, text: str) -> object:
        space = {**self.space, "__builtins__": guarded_builtins()}
        with contextlib.suppress(Exception):
            run_program(compile_program(text), space)
        return space.get("Made")

    @staticmethod
    def _entries(made: object) -> dict[str, object]:
        try:
            return dict(guarded_vars(made))  # type: ignore[call-overload]  # a mapping
        except Exception:
            return {}

    def bases(self) -> Iterator[forks.Step]:
        """Call each method of each reachable base of an object's class on the object, where the class has its own."""
        seen: set[object] = set()
        spy = self.space["Refusing"]
        for path, value in self.values:
            kind = type(value)
            for base in _mro(kind)[1:]:
                if id(base) not in self.reached.paths and base is not object:
                    continue
                for name in sorted(_own_dict(base)):
                    if type(name) is not str or not may_read(name) or name in {"__new__", "__init_subclass__"}:
                        continue
                    overridden = any(name in _own_dict(each) for each in _mro(kind)[: _mro(kind).index(base)])
                    key = (base, name, kind, self.reached.is_host(value) or path)
                    if not overridden or key in seen:
                        continue
                    seen.add(key)

                    def act(base: Any = base, name: str = name, value: Any = value) -> Iterator[str]:
                        try:
                            method: Any = guarded_getattr(base, name)
                        except BaseException:
                            return
                        if not callable(method):
                            return
                        for given in ((), (spy(),), ("format",), (value,), ("format", spy()), (value, base)):  # type: ignore[operator]  # a class
                            for reason in self.attempt(partial(method, value, *given), value, base, method, *given):
                                yield f"{name} on a {type(value).__name__}: {reason}"

                    yield f"{base.__name__}.{name} on {path}", act

    def makers(self) -> Iterator[forks.Step]:
        """Let a class derived from each class make an object of the host's, then use what copies and replaces."""
        targets = [
            value for value in self.hosts if type(value) in {types.FunctionType, property, type, types.MappingProxyType}
        ]
        for path, cls in self.reached.values:
            if not _is_class(cls):
                continue

            def act(cls: Any = cls) -> Iterator[str]:
                space = {**self.space, "v": cls, "__builtins__": guarded_builtins()}
                try:
                    run_program(compile_program(_MAKING), space)
                except Stuck:
                    raise
                except BaseException:
                    return
                derived: Any = space["N"]
                for name in readable(derived):
                    known = []
                    with contextlib.suppress(BaseException):
                        given = guarded_getattr(cls, name)
                        known = [given, *(item for _key, item in items_of(given))]
                    for reason in self.attempt(partial(guarded_getattr, derived, name), cls, *known):
                        yield f"{name} of a class derived from it: {reason}"
                made: Any = space["made"]
                for instance in made[:2]:
                    for name in dir(instance):
                        if (
                            type(name) is str
                            and may_read(name)
                            and name not in {"__new__", "__class__", "__init__"} | NOT_CALLED
                        ):
                            yield from self._remade(instance, name, space["target"], targets)

            yield f"what {path} makes", act

    def _remade(self, instance: Any, name: str, target: Any, targets: list[Any]) -> Iterator[str]:
        try:
            method: Any = guarded_getattr(instance, name)
        except BaseException:
            return
        if not callable(method) or isinstance(method, type):
            return
        for given in targets:
            before = _parts(given)
            for arguments, keywords in (((), {}), ((1,), {}), ((self.space["function"],), {}), ((), {"written": 1})):
                target[:] = [given]
                try:
                    for reason in self.attempt(partial(method, *arguments, **keywords), given, instance, *arguments):
                        yield f"{name}: {reason}"
                finally:
                    target.clear()
                now = _parts(given)
                if now != before:
                    yield f"{name}: writes into a {type(given).__name__} of the host"
                    before = now

    def variables(self) -> Iterator[forks.Step]:
        """Set each variable of the context, a real one too, to what it is not, then use all that was reached."""
        sample = [(path, value) for path, value in self.values if type(value) not in _FUNCTIONS]
        decimal.getcontext()  # keeps its context in a variable
        copy_context: Any = facades.find("contextvars").copy_context  # type: ignore[union-attr]  # as it is given
        for variable in (*contextvars.copy_context(), *copy_context()):
            for forged in (bytes(400), self.space["Spy"](), guarded_getattr, None, 1):  # type: ignore[operator]  # a class

                def act(variable: Any = variable, forged: Any = forged) -> Iterator[str]:
                    try:
                        token = guarded_getattr(variable, "set")(forged)  # type: ignore[operator]  # a method
                    except AttributeError:
                        return
                    try:
                        for path, value in sample:
                            for reason in self._used(value):
                                yield f"{path}: {reason}"
                    finally:
                        variable.reset(token)

                yield f"the context's {variable.name} is a {type(forged).__name__}", act

    def _used(self, value: Any) -> Iterator[str]:
        for use in (
            str,
            repr,
            operator.neg,
            operator.call,
            *(partial(each, value) for each in (operator.add, operator.truediv, operator.eq)),
        ):
            if use is not str and (isinstance(value, type) or _is_endless(value)):
                continue
            yield from self.attempt(partial(use, value), value)

    def hooks(self) -> Iterator[forks.Step]:
        """Put a spy in place of each builtin of a namespace while source of every kind runs in it."""
        for name in sorted(guarded_builtins()):
            for text in _SOURCES:

                def act(name: str = name, text: str = text) -> Iterator[str]:
                    space: dict[str, Any] = {**self.space}
                    for each in ("__name__", "__builtins__"):
                        space.pop(each, None)
                    program = "ns = {}\nexec('1', ns)\nns['function'] = function\nns['b'] = ns['__builtins__']\n"
                    program += f"exec({f'b[{name!r}] = function{chr(10)}{text}'!r}, ns)\nresult = ns"
                    space["__builtins__"] = guarded_builtins()
                    try:
                        run_program(compile_program(program), space)
                    except Stuck:
                        raise
                    except BaseException as error:
                        yield from self.why(error)
                    yield from self.told()
                    found: list[object] = []
                    made = space.get("ns")
                    if isinstance(made, dict):
                        for key in ("__classcell__", "A", "x", "f"):
                            with contextlib.suppress(BaseException):
                                found.append(made[key])
                    for each in found:
                        if type(each) is not types.CellType:  # what a class body returns: source cannot read it
                            yield from self.why(each)

                yield f"a builtin {name} of the code's own", act


_MAKING = """
target = []
class N(v):
    def __new__(cls, *a, **k): return target[0] if target else super().__new__(cls, *a, **k)
made = []
for given in ((), (1,), ("a",), (function,), (function, 1), ([1, 2],), (Plain,)):
    try:
        made.append(N(*given))
        class Named: hello = made[-1]
    except BaseException: pass
"""
_SOURCES = (
    "class A:\n def f(self): return __class__\n x: int = 1\nx = A().f",
    "import json\nfrom json import dumps as x\nx",
    "def f(a, *b: int, **c) -> str: return a.format\nx = f(1)",
    "class A(int): format = 1\nA.format.x = 1\nx = [A.format for A in [1]]\nprint(x)",
    "with open('x') as f: x = f\n",
)
_FUNCTIONS = frozenset(
    {
        types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType,
        types.MethodWrapperType, types.ClassMethodDescriptorType,
    }
)  # fmt: skip
_OPERATORS: dict[str, Callable[[Any, Any], object]] = {
    name: getattr(operator, name)
    for name in (
        "eq ne lt le gt ge add sub mul truediv floordiv mod matmul and_ or_ xor lshift rshift pow contains getitem iadd ior"
    ).split()
} | {"divmod": divmod, "isinstance": isinstance, "issubclass": issubclass}
_COMPARISONS = {name: _OPERATORS[name] for name in ("eq", "lt", "or_", "contains")}
_MISSING = object()


_FACADES = ("sealab.sandbox.dialect.facades", "sealab.sandbox.guest.facade", "sealab.sandbox.guest.dynamic")
_CHANGED_BY_CODE = frozenset({"logging.Logger", "decimal.Context", "typing.TypeVar"})
"""Classes of objects that code may change, as documented, and that the host reads for the code alone."""


def _is_class(value: object) -> bool:
    """Return whether a value is a class, and no proxy that says so."""
    return type in _mro(type(value))


def _is_endless(value: object) -> bool:
    return type(value).__module__ == "itertools"


def _title(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _raw(value: object, name: str) -> object:
    try:
        return getattr(value, name, _MISSING)
    except BaseException:
        return _MISSING


def _names_of(value: object) -> list[str]:
    try:
        found = {name for name in dir(value) if type(name) is str}
    except BaseException:
        found = set()
    if isinstance(value, type):
        found |= {name for name in _own_dict(type) if type(name) is str}
    return sorted(name for name in found if not name.startswith("_") or name in names._KNOWN)


def _parts(value: Any) -> object:
    """Return what of a value must stay as it is."""
    if isinstance(value, types.FunctionType):
        return len(value.__globals__), value.__defaults__, value.__code__, value.__name__
    if isinstance(value, property):
        return value.fget, value.fset, value.fdel, value.__doc__, getattr(value, "__name__", None)
    return None


def _read_by(kind: type) -> set[str]:
    """Return the names that the code of a descriptor's class reads."""
    found: set[str] = set()
    for cls in _mro(kind):
        for value in _own_dict(cls).values():
            code = getattr(value, "__code__", None)
            if type(code) is types.CodeType:
                found |= {*code.co_names, *(each for each in code.co_consts if type(each) is str)}
    return {name for name in found if name.isidentifier()}


def _made_classes() -> Iterator[tuple[str, str]]:
    """Give the source of classes that the library makes or changes, with members under each name that is guarded."""
    spelled = ["plain", *sorted(names.RUNTIME_PUBLIC | names.INSPECTION), *sorted(names.PUBLIC_SUNDERS)]
    for title, text in _TEMPLATES.items():
        for name in spelled if "NAME" in text else ["plain"]:
            yield f"{title} with {name}", _IMPORTS + text.replace("NAME", name)


_IMPORTS = "import enum, functools, dataclasses, collections, typing, abc, types, weakref, contextlib\n"
_TEMPLATES = {
    "an enum": "class Made(enum.Enum):\n    NAME = 1\n",
    "an enum over a mixin": "class Mix:\n    def NAME(self): pass\nclass Made(Mix, enum.Enum):\n    NAME = 1\n",
    "an enum over a mixin of data": "class Mix:\n    NAME = 7\nclass Made(Mix, enum.Enum):\n    NAME = 1\n",
    "an enum over a mixin with a property": "class Mix:\n    @property\n    def NAME(self): return 1\nclass Made(Mix, enum.Enum):\n    NAME = 1\n",
    "an enum's property": "class Made(enum.Enum):\n    a = 1\n    @enum.property\n    def NAME(self): return 1\n",
    "an enum's dynamic attribute": "class Made(enum.Enum):\n    a = 1\n    @types.DynamicClassAttribute\n    def NAME(self): return 1\n",
    "a flag over a mixin": "class Mix:\n    def NAME(self): pass\nclass Made(Mix, enum.Flag):\n    NAME = 1\n",
    "an enum by call": "Mix = type('Mix', (), {}) if 0 else Plain\nMade = enum.Enum('Made', {'NAME': 1})\n",
    "an enum of texts": "class Made(str, enum.Enum):\n    NAME = '{0.__class__}'\n",
    "an enum with a member": "class Made(enum.Enum):\n    NAME = enum.member(1)\n    a = enum.nonmember(function)\n",
    "an enum over slots": "class Mix:\n    __slots__ = ('NAME',)\nclass Made(Mix, enum.Enum):\n    NAME = 1\n",
    "slots": "class Made:\n    __slots__ = ('NAME',)\n",
    "a dataclass": "@dataclasses.dataclass\nclass Made:\n    NAME: object = 1\n",
    "a dataclass with slots": "@dataclasses.dataclass(slots=True, frozen=True)\nclass Made:\n    NAME: object\n",
    "a dataclass by call": "Made = dataclasses.make_dataclass('Made', ['NAME'])\n",
    "a named tuple": "Made = collections.namedtuple('Made', ['NAME'])\n",
    "a typed named tuple": "class Made(typing.NamedTuple):\n    NAME: int\n",
    "a cached property": "class Made:\n    @functools.cached_property\n    def NAME(self): return 1\n",
    "a partial method": "class Made:\n    NAME = functools.partialmethod(function, 1)\n",
    "a partial method of a name": "class Made:\n    NAME = functools.partialmethod(enum.property(function))\n",
    "a single dispatch": "class Made:\n    @functools.singledispatchmethod\n    def NAME(self, x): return x\n",
    "a cached function": "class Made:\n    NAME = functools.lru_cache(function)\n",
    "a property": "class Made:\n    NAME = property(function, function, function)\n    a = abc.abstractproperty(function)\n",
    "methods": "class Made:\n    NAME = classmethod(property(function))\n    a = staticmethod(function)\n    b = classmethod(enum.property(function))\n",
    "a protocol": "@typing.runtime_checkable\nclass Made(typing.Protocol):\n    NAME: int\n",
    "a typed dictionary": "class Made(typing.TypedDict):\n    NAME: int\n",
    "a total order": "@functools.total_ordering\nclass Made:\n    def __lt__(self, other): return True\n    NAME = 1\n",
    "a generic class": "T = typing.TypeVar('T')\nclass Made(typing.Generic[T]):\n    NAME = typing.Generic\n",
    "weak references": "class Made:\n    NAME = weakref.WeakMethod(Plain().__init__) if 0 else weakref.ref(Plain)\n",
}

RULES = ("operators", "stores", "descriptors", "bases", "makers", "variables", "hooks")


def walk(modules: list[str], rules: Iterable[str]) -> dict[str, Any]:
    """Apply the rules to what the modules lead to, and return what was found, and how many steps each took."""
    misuse = Misuse(modules)
    state = HostState()
    report: dict[str, Any] = {
        "reached": len(misuse.reached.values),
        "slow": misuse.reached.slow,
        "found": {},
        "steps": {},
        "seconds": {},
    }
    for rule in rules:
        started = time.monotonic()
        report["found"][rule], report["steps"][rule] = forks.run(getattr(misuse, rule), state.changes)
        report["seconds"][rule] = round(time.monotonic() - started, 1)
    return report
