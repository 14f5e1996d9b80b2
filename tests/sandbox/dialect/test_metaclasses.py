"""Metaclasses of the code's own: they make classes as Python's do, and are none to Python."""

from __future__ import annotations

import pytest

from sealab.sandbox.errors import Refused

from ..guest_code import run

COUNTING = """
from abc import ABCMeta, abstractmethod
class Meta(type):
    made = []
    def __new__(mcs, name, bases, body, **options):
        Meta.made.append((name, sorted(each for each in body if not each.startswith("__")), options))
        body["added"] = len(Meta.made)
        return super().__new__(mcs, name, bases, body)
    def __init__(cls, name, bases, body, **options):
        cls._registry = {}
        super().__init__(name, bases, body)
    def hello(cls):
        return "hello " + cls.__name__
    def __secret(cls):
        return 5
    def tell(cls):
        return cls.__secret()
    @property
    def title(cls):
        return cls.__name__.upper()
class Single(type):
    def __init__(cls, *arguments):
        cls.__one = None
    def __call__(cls, *arguments):
        if cls.__one is None:
            cls.__one = super().__call__(*arguments)
        return cls.__one
    def another(cls, *arguments):
        return type.__call__(cls, *arguments)
"""


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "class C(metaclass=Meta, k=1):\n    x = 1\n    _y = 2\nclass D(C): z = 3\nresult = [*Meta.made, C.added, D.added]",
            [("C", ["_y", "x"], {"k": 1}), ("D", ["z"], {}), 1, 2],
        ),
        ("class C(metaclass=Meta): pass\nresult = [C.hello(), C.tell(), C.title, hasattr(C(), 'hello')]",
         ["hello C", 5, "C", False]),
        ("class C(metaclass=Meta):\n    def hello(): return 'own'\nresult = C.hello()", "own"),
        (
            ("class C(metaclass=Meta): pass\nresult = [type(C) is Meta, C.__class__ is Meta, isinstance(C, Meta),"
            " isinstance(C, type), issubclass(Meta, type), type(Meta) is type, Meta.__bases__ == (type,)]"),
            [True] * 7,
        ),
        (
            ("class C(metaclass=Meta):\n    def who(self): return __class__\n    def base(self): return super().__hash__()\n"
            "result = [C().who() is C, isinstance(C().base(), int)]"),
            [True, True],
        ),
        (("class A:\n    def f(self): return 1\nclass M(type):\n    def __new__(m, n, b, d): return type.__new__(m, n, b, dict(d))\n"
         "class C(A, metaclass=M):\n    def f(self): return super().f() + 1\nresult = C().f()"), 2),
        ("E = Meta('E', (), {'y': 2})\nF = type('F', (E,), {})\nresult = [E.hello(), E.y, F.hello(), type(F) is Meta]",
         ["hello E", 2, "hello F", True]),
        (
            ("class C(metaclass=Single):\n    def __init__(self, n): self.n = n\n"
            "result = [C(4) is C(5), C(6).n, C.another(7).n]"),
            [True, 4, 7],
        ),
        (
            ("class M(ABCMeta):\n    def known(cls): return 1\nclass B(metaclass=M):\n    @abstractmethod\n    def f(self): ...\n"
            "class C(B):\n    def f(self): return 2\nB.register(int)\ntry:\n    B()\n    made = True\n"
            "except TypeError:\n    made = False\nresult = [made, C().f(), C.known(), isinstance(3, B)]"),
            [False, 2, 1, True],
        ),
        (("class More(Meta): pass\nclass C(metaclass=Meta): pass\nclass D(C, metaclass=More): pass\nclass E(D): pass\n"
         "result = type(E) is More"), True),
        (("class C(metaclass=Meta): pass\nimport copy, types\nresult = [copy.copy(C) is C, repr(C), sorted({*vars(C)} - {'__firstlineno__', '__static_attributes__'}),"
         " types.new_class('N', (C,), {}, lambda body: body.update(q=1)).q]"),
         [True, "<class '__main__.C'>", ["__doc__", "__module__", "__weakref__", "_registry", "added"], 1]),
    ],
)  # fmt: skip
def test_a_metaclass_makes_classes(source: str, expected: object) -> None:
    assert run(COUNTING + source).value == expected


REFUSED = {
    "iteration": "class M(type):\n    def __iter__(cls): return iter(())",
    "__instancecheck__": "class M(type):\n    def __instancecheck__(cls, each): return True",
    "__prepare__": "class M(type):\n    def __prepare__(*a): return {}",
    "a length that was assigned": "class M(type): __len__ = len",
    "a metaclass under another name": "t = type\nclass M(t):\n    def __getattribute__(cls, name): return 1",
    "one of enums": "import enum\nclass M(enum.EnumMeta): pass",
    "an enum": "import enum\nclass C(enum.Enum, metaclass=Meta): pass",
    "a protocol": "import typing\nclass C(typing.Protocol, metaclass=Meta): pass",
    "no metaclass at all": "class M: pass\nclass C(metaclass=M): pass",
    "a base that is an object of one": "class C(object.__new__(Meta)): pass",
    "two that do not fit": "class A(metaclass=Meta): pass\nclass B(metaclass=Single): pass\nclass C(A, B): pass",
    "a name for types too": "import typing\nclass M(typing.NewType, type): pass",
    "an error too": "class M(type, Warning): pass",
    "a dictionary too, by its base": "class D(dict): pass\nclass M(D, Meta): pass",
    "a table too, by data": "type('M', (ABCMeta, list), {})",
    "what a call gives that is no object of the class": "class M(type):\n    def __call__(cls): return 'x'\nclass C(metaclass=M): pass\nC()",
    "a cell": "type.__new__(Meta, 'C', (), {'__classcell__': 1})",
    "a name of the interpreter": "type.__new__(Meta, 'C', (), {'__subclasscheck__': 1})",
    "a name that answers for itself": "class S(str): pass\ntype.__new__(Meta, 'C', (), {S('x'): 1})",
    "a class of the host": "type.__new__(int, 'C', (), {})",
    "a call of a class of the host": "type.__call__(int, 3)",
    "another class for a class": "class C(metaclass=Meta): pass\nC.__class__ = Single",
    "the function of the host": "class C(metaclass=Meta): pass\nC.__call__.__func__",
    "what only the host asks for": "class M(type): _abc_impl = 1\nclass C(metaclass=M): pass\nC.__getattr__('_abc_impl').x",
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_metaclass_is_none_to_python(what: str) -> None:
    with pytest.raises((Refused, TypeError, AttributeError)):
        run(COUNTING + REFUSED[what])


@pytest.mark.parametrize(
    ("call", "expected"),
    [("", "(size, *, deep=False)"), ("def __call__(cls, one, /): return type.__call__(cls, one)", "(one, /)")],
)
def test_a_class_is_called_as_its_signature_says(call: str, expected: str) -> None:
    source = f"""
import inspect
class M(type):
    kind = 1
    {call}
class C(metaclass=M):
    def __init__(self, size, *, deep=False): self.size = size
result = [str(inspect.signature(C)), C(3).size]
"""
    assert run(source).value == [expected, 3]


def test_a_body_holds_nothing_of_the_compiler() -> None:
    source = """
class M(type):
    def __new__(mcs, name, bases, body):
        seen.append(sorted(body))
        return type.__new__(mcs, name, bases, body)
seen = []
class C(metaclass=M):
    def f(self): return super().f()
result = seen
"""
    assert run(source).value == [["__module__", "__qualname__", "f"]]


def test_no_question_to_the_class_tells_of_the_real_metaclass() -> None:
    told = run(
        COUNTING
        + """
class Told:
    def __get__(self, instance, owner): return [instance, owner]
class M(type):
    each = Told()
class C(metaclass=M): pass
import inspect, functools
@functools.singledispatch
def f(x): return type(x)
seen = [type(C), C.__class__, *C.each, *M.__mro__, *type(C).__bases__, f(C), *inspect.getmro(M), *C.__dict__.values()]
result = [each for each in seen if isinstance(each, type) and each not in (C, M, type, object)]
"""
    )
    assert told.value == []


def test_a_class_pattern_asks_a_metaclass_for_nothing() -> None:
    source = (
        COUNTING
        + """
class M(type):
    def match_args(cls): return ("x",)
class C(metaclass=M): x = 1
try:
    match C():
        case C(y): result = y
except TypeError as error: result = "no positions"
"""
    )
    assert run(source).value == "no positions"
