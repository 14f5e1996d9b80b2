"""Puts one known way out back into a process of its own, and says what the oracle finds in a program that takes it.

python -m tests.fuzz.planted NAME
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_CHECKS = frozenset({"__instancecheck__", "__subclasscheck__"})


def _nothing() -> None:
    """Put nothing back."""


def _names_are_plain(*words: str) -> None:
    # Before anything else takes them from there.
    from sealab.sandbox.dialect import names

    names.GUARDED -= set(words)  # type: ignore[misc,operator]  # to break it is the point
    names.REFUSED -= set(words)  # type: ignore[misc,operator]
    for table in ("SPECIAL_METHODS", "NATIVE", "DEFINABLE", "_KNOWN"):
        setattr(names, table, getattr(names, table) | set(words))


def _initializer_is_plain() -> None:
    from sealab.sandbox.dialect import names

    _names_are_plain(names.INITIALIZER)
    names.INITIALIZER = "no name"  # type: ignore[misc]


def _any_base() -> None:
    from sealab.sandbox.dialect import classes, metaclasses

    classes._check_base = classes._check_mixed = lambda _bases: None  # type: ignore[assignment]
    metaclasses.check_bases = lambda _bases: None  # type: ignore[assignment]
    classes.derives = lambda *_: False  # type: ignore[attr-defined]  # what asks for metaclasses refuses other objects too


def _any_key() -> None:
    from sealab.sandbox.dialect import classes

    classes.given = lambda name, *_: name  # type: ignore[assignment]
    classes._check_keys = lambda _entries: None  # type: ignore[assignment]


def _real(module: str, name: str, value: object) -> Callable[[], None]:
    def plant() -> None:
        import importlib

        setattr(importlib.import_module(f"sealab.sandbox.dialect.facades.stand_ins.{module}"), name, value)

    return plant


def _dispatching(func: Callable[..., object]) -> object:
    generic = functools.singledispatch(func)
    return lambda *arguments: generic.dispatch(type(arguments[0]))(*arguments)


def _telling(value: object, memo: dict[int, object]) -> object:
    memo[id(value)] = value.__reduce_ex__(4)
    return value


def _memo_is_told() -> None:
    _real("copy_", "deepcopy", _telling)()
    from sealab.sandbox.dialect.views import DictionaryView

    DictionaryView.__reduce_ex__ = object.__reduce_ex__  # type: ignore[method-assign]


def _builtins_as_given() -> None:
    from sealab.sandbox.dialect import compiling

    marked = compiling.marked_code
    compiling.marked_code = lambda code, name: code if name == "<string>" else marked(code, name)  # type: ignore[assignment]


def _raw_methods_kept() -> None:
    from sealab.sandbox.dialect import guards

    del guards._JUDGES["format"]


@dataclass(frozen=True)
class Plant:
    """A way out: how it is put back, a program that takes it, and what must be found."""

    program: str
    reason: str
    before: Callable[[], None] = _nothing
    after: Callable[[], None] = _nothing


PLANTS: Mapping[str, Plant] = {
    "a field's default": Plant(
        "@dataclasses.dataclass\nclass C1(str):\n    format: object",
        "the real str.format",
        after=_real("dataclasses_", "dataclass", dataclasses.dataclass),
    ),
    "a base that is no class": Plant(
        "class C1(NameError()): pass", "the body of a class with its seal", after=_any_base
    ),
    "a class that judges classes": Plant(
        "class C1(abc.ABC):\n    __subclasscheck__ = staticmethod(see)\nv1 = isinstance(int, C1)",
        "the class type",
        before=lambda: _names_are_plain(*_CHECKS),
    ),
    "a generic function's dispatch": Plant(
        "def f1(*a): pass\nf1.dispatch = see\nv1 = functools.singledispatch(f1)\nv1(int)",
        "the class type",
        after=_real("functools_", "singledispatch", _dispatching),
    ),
    "a generic function's registry": Plant(
        "v1 = functools.singledispatch(see)\nv1.registry\nv2 = v1.registry == spy",
        "the registry behind a read-only proxy",
        after=_real("functools_", "singledispatch", functools.singledispatch),
    ),
    "a memo": Plant(
        "v1 = {}\ncopy.deepcopy(globals(), v1)", "the function sealab.sandbox.dialect.views", after=_memo_is_told
    ),
    "a name that lies": Plant(
        "C1 = dataclasses.make_dataclass('C1', [], namespace={Lie('a'): see})",
        "a class with a name in it that is a subclass of str",
        after=_any_key,
    ),
    "code that counts as the host's": Plant(
        "v1 = {}\nexec('def f1(): pass', v1)\nf1 = v1['f1']",
        "a function of the guest's that counts as the host's",
        after=_builtins_as_given,
    ),
    "a host's property made anew": Plant(
        "fractions.Fraction.numerator.__init__(see)",
        "changed: fractions.Fraction.numerator",
        before=_initializer_is_plain,
    ),
    "a raw method": Plant("v1 = 'x'\nv2 = v1.format", "the real str.format", after=_raw_methods_kept),
}


def found_by(name: str) -> str:
    """Return what the oracle says of the program, or an empty text."""
    plant = PLANTS[name]
    plant.before()
    plant.after()
    from .composer import caught
    from .worker import Worker

    session = Worker().replay([caught(plant.program)])
    return session.leak.reason if session.leak else ""


if __name__ == "__main__":
    print(found_by(sys.argv[1]))
