"""Guards: what attribute access by a name made at run time gives, changes and refuses."""

from __future__ import annotations

import json

import pytest

from sealab.sandbox.dialect.guards import SecurityError, guarded_getattr, guarded_hasattr, guarded_setattr
from sealab.sandbox.dialect.namespace import new_namespace
from sealab.sandbox.guest.guest import GUEST

from ..guest_code import value_of as run


def test_a_refused_attribute_is_absent_for_hasattr_and_a_default() -> None:
    assert not guarded_hasattr(guarded_getattr, "__globals__")
    assert guarded_getattr(guarded_getattr, "__globals__", 5) == 5
    with pytest.raises(SecurityError, match="globals"):
        guarded_getattr(guarded_getattr, "__globals__")


def test_a_private_attribute_of_a_host_object_is_absent() -> None:
    decoder = json.JSONDecoder()
    decoder._secret = 1  # type: ignore[attr-defined]  # planted
    assert not guarded_hasattr(decoder, "_secret")
    guarded_setattr(decoder, "_secret", 2)
    assert decoder._secret == 1  # type: ignore[attr-defined]  # untouched by what guest code called `_secret`


def test_a_name_of_a_subclass_counts_as_its_characters() -> None:
    class Sly(str):
        __slots__ = ()

        def startswith(self, *_args: object) -> bool:  # type: ignore[override]  # it lies
            return False

        def __str__(self) -> str:
            return "__name__"

        def __eq__(self, other: object) -> bool:
            return other == "__name__"

        def __hash__(self) -> int:
            return hash("__name__")

    with pytest.raises(SecurityError, match="globals"):
        guarded_getattr(guarded_getattr, Sly("__globals__"))
    with pytest.raises(SecurityError):
        guarded_setattr(guarded_getattr, Sly("__code__"), 1)
    assert guarded_getattr("text", Sly("upper"))() == "TEXT"  # type: ignore[operator]


def test_a_name_must_be_a_string() -> None:
    for name in (b"x", None, 3):
        with pytest.raises(TypeError, match="attribute name must be string"):
            guarded_getattr(guarded_getattr, name)  # type: ignore[arg-type]  # what is tested


def test_dir_and_vars_show_no_private_name_of_the_host() -> None:
    assert run(
        """
        import random
        from enum import Enum
        class Own(random.Random):
            def _mine(self): pass
        class Color(Enum):
            RED = 1
            def _shade(self): pass
        names = [n for n in dir(Own) if n.startswith("_") and not n.startswith("__")]
        entries = [n for n in vars(Color) if n.startswith("_") and not n.endswith("_")]
        result = [names, entries]
        """
    ) == [["_mine"], ["_shade"]]


def test_globals_is_a_view_that_hides_the_machinery() -> None:
    assert run(
        """
        x = 1
        _y = 2
        g = globals()
        g["z"] = 3
        del g["x"]
        def f():
            local = 1
            return sorted(locals()), "f" in globals()
        result = ["__builtins__" in g, "x" in globals(), z, g["_y"], f(), "_y" in dir(), any(not k.isascii() for k in g)]
        """
    ) == [False, False, 3, 2, (["local"], True), True, False]


def test_what_code_stores_under_a_dunder_name_must_be_its_own() -> None:
    assert run(
        """
        import json
        class A: pass
        A.__len__ = lambda self: 7
        def f(): pass
        f.__name__ = "g"
        refused = []
        for change in (
            lambda: setattr(json.JSONEncoder, "__init__", f),
            lambda: setattr(f, "__code__", f),
            lambda: setattr(A, "__bases__", ()),
            lambda: setattr(A(), "__class__", dict),
            lambda: setattr(Exception(), "__dict__", {}),
        ):
            try:
                change()
            except AttributeError as error:
                refused.append(type(error).__name__)
        result = [len(A()), f.__name__, refused]
        """
    ) == [7, "g", ["SecurityError"] * 5]


def test_print_writes_plain_names_to_the_guests_output() -> None:
    written: list[str] = []
    before, GUEST.write = GUEST.write, written.append
    try:
        run(
            """
            class A:
                def __init__(self): self._x = 1
            try:
                A()._nope
            except AttributeError as error:
                print(error, A().__dict__, sep="|", end="!")
            print()
            """
        )
    finally:
        GUEST.write = before
    assert "".join(written) == "'A' object has no attribute '_nope'|{'_x': 1}!\n"


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        ("input('? ')", "EOFError", "context_vars"),
        ("breakpoint()", "SecurityError", "print"),
        ("__import__('subprocess')", "ModuleNotFoundError", "not available"),
    ],
)
def test_a_builtin_that_is_not_available_says_what_to_use(call: str, error: str, says: str) -> None:
    with pytest.raises(Exception, match=says) as raised:
        run(call)
    assert type(raised.value).__name__ == error


@pytest.mark.parametrize("call", ["exit()", "quit(0)", "import sys\nsys.exit(None)", "raise SystemExit"])
def test_leaving_well_is_an_ordinary_end(call: str) -> None:
    assert run(f"1\n{call}") is None
    assert run(f"result = 2\n{call}") is None


@pytest.mark.parametrize("call", ["exit('no')", "quit(3)", "import sys\nsys.exit(2)", "raise SystemExit(1)"])
def test_leaving_otherwise_passes_through_to_the_worker(call: str) -> None:
    with pytest.raises(SystemExit):
        run(call)


def test_what_only_the_host_would_ask_for_is_a_private_name_like_any_other() -> None:
    program = """
class A:
    def __reduce__(self): return (A, ())
    __signature__ = "s"
    __wrapped__ = property(lambda self: 1 / 0)
a = A()
a.__file__ = "f"
import json
result = [a.__reduce__()[0] is A, a.__signature__, a.__file__, hasattr(json, "__file__"), hasattr(len, "__signature__"),
          hasattr(json, "__spec__"), hasattr(a, "__wrapped__"), hasattr(object(), "__reduce__")]
"""
    namespace = new_namespace()
    assert run(program, namespace) == [True, "s", "f", False, False, False, False, False]
    a = namespace["a"]
    assert type(a).__reduce__ is object.__reduce__
    assert not hasattr(a, "__signature__")


def test_a_class_of_three_arguments_is_what_a_class_statement_makes() -> None:
    program = """
class Base:
    def __init_subclass__(cls, /, mark=None): cls.mark = mark
C = type("C", (Base,), {"x": 1, "_y": 2, "get": lambda self: self._y, "__len__": lambda self: 3, "__module__": "m"},
         mark="k")
result = [C().x, C().get(), len(C()), C.__name__, C.mark, isinstance(C(), Base), C.__module__, type(C) is type]
"""
    assert run(program) == [1, 2, 3, "C", "k", True, "m", True]
    for wrong in ("type('C', [], {})", "type('C', (), [])", "type(1, (), {})", "type()", "type(1, 2)"):
        with pytest.raises(TypeError):
            run(wrong)


def test_code_may_set_the_defaults_and_the_module_of_its_own_functions_alone() -> None:
    program = """
def f(a, b=1, *, c=2): return a, b, c
f.__defaults__, f.__kwdefaults__, f.__module__ = (5,), {"c": 6}, "here"
class A: pass
A.__module__ = "there"
told = [f(0), f.__module__, A.__module__]
import json, functools
for target in (json.dumps, functools.reduce, json.JSONEncoder, json, (1).bit_length, print):
    for name, value in (("__module__", "x"), ("__defaults__", ()), ("__kwdefaults__", {})):
        try:
            setattr(target, name, value)
        except AttributeError:
            continue
        told.append((target, name))
result = told
"""
    assert run(program) == [(0, 5, 6), "here", "there"]


def test_module_type_makes_modules_and_is_a_base_class() -> None:
    program = """
import types, json
class Lazy(types.ModuleType):
    def __init__(self, name, extra):
        self.extra = extra
        super().__init__(name, "text")
m, lazy = types.ModuleType("m", "d"), Lazy("l", 1)
exec("a = 1\\ndef f(): return a", vars(m))
m.a = 2
result = [m.__name__, m.__doc__, m.f(), lazy.__name__, lazy.__doc__, lazy.extra, isinstance(json, types.ModuleType),
          isinstance(lazy, types.ModuleType), isinstance(m, types.ModuleType), type(json) is types.ModuleType,
          isinstance(1, types.ModuleType), "__builtins__" in vars(m)]
"""
    assert run(program) == [
        "m", "d", 2, "l", "text", 1, True, True, True, True, False, False,
    ]  # fmt: skip


def test_a_keyword_of_type_is_an_exact_text() -> None:
    program = """
class N(str): pass
class Base:
    def __init_subclass__(cls, **given): cls.given = [type(name).__name__ for name in given]
type("X", (Base,), {}, **{N("named"): 1}).given"""
    assert run(program) == ["str"]
