"""What host code hands to guest code: to a method that the guest defines, a memo, a default, or a copied dictionary.

Each program leaves what it was handed in `result`. It holds where that is nothing dangerous; a refusal holds too.
"""

from __future__ import annotations

import functools
import gc
from textwrap import dedent
from types import ModuleType

import pytest

from sealab.sandbox.dialect.compiling import compile_program

from ..sealed import gives_what_python_gives, run_sealed
from .test_capability_argument import reached, run

SPY = """
class Spy:
    seen = []
    def __eq__(self, other): Spy.seen.append(other); return True
    def __ror__(self, other): Spy.seen.append(other); return other
    def __hash__(self): return 1
class Liar(str):
    def __eq__(self, other): return True
    def __hash__(self): return str.__hash__(self)
def spy(*args, **kwargs):
    Spy.seen.extend(args)
    Spy.seen.extend(kwargs.values())
"""

HANDED = {
    "the default of a field is an attribute of a host class": """
        from dataclasses import dataclass
        @dataclass
        class S(str):
            format: object
        result = S.__dataclass_fields__['format'].default""",
    "the default of an init-only field": """
        from dataclasses import dataclass, InitVar
        @dataclass
        class S(str):
            format: InitVar[object]
            def __post_init__(self, format): Spy.seen.append(format)
        S()
        result = Spy.seen""",
    "a signature shows the default of a field": """
        from dataclasses import dataclass
        import inspect
        @dataclass
        class S(str):
            format: object
        result = [p.default for p in inspect.signature(S).parameters.values()]""",
    "asdict reads the name that a field was given": """
        from dataclasses import asdict, astuple, dataclass, fields
        @dataclass
        class S(str):
            x: object = 1
        s = S()
        fields(s)[0].name = 'format'
        result = [*asdict(s).values(), *astuple(s)]""",
    "replace reads the name that a field was given": """
        from dataclasses import dataclass, fields, replace
        @dataclass
        class S(str):
            x: object = 1
            def __new__(cls, *args, **kwargs): spy(*args, **kwargs); return str.__new__(cls)
        s = S()
        fields(s)[0].name = 'format'
        try: replace(s)
        except Exception: pass
        result = Spy.seen""",
    "an object that is no class as a base": """
        import json, operator
        class C(operator.methodcaller("x")): h = json.dumps
        result = C""",
    "an object of a guest class as a base": """
        class Made:
            def __init__(self, name=None, bases=(), body=None): self.body = body
        class C(Made()): pass
        result = list(C.body.values()) if C.body else None""",
    "a __subclasscheck__ of an abstract class": """
        import abc
        class A(abc.ABC):
            __subclasscheck__ = staticmethod(spy)
        isinstance(int, A)
        result = Spy.seen""",
    "an __instancecheck__ set later": """
        import abc
        class A(abc.ABC): pass
        A.__subclasscheck__ = spy
        isinstance(int, A)
        result = Spy.seen""",
    "singledispatch calls what a function's dictionary holds": """
        import functools
        def f(x): pass
        f.dispatch = spy
        try: functools.singledispatch(f)(int)
        except Exception: pass
        result = Spy.seen""",
    "singledispatchmethod calls what a function's dictionary holds": """
        import functools
        def f(self, x): pass
        f.dispatch = spy
        class A:
            m = functools.singledispatchmethod(f)
        try: A().m(int)
        except Exception: pass
        result = Spy.seen""",
    "a generic alias says what a class is made from": """
        import typing
        result = typing.Type[int].__mro_entries__((typing.Type[int],))""",
    "a deep copy leaves code in the memo": """
        import copy
        memo = {}
        try: copy.deepcopy(compile('1', 'x', 'eval'), memo)
        except Exception: pass
        result = [*memo.values(), *[item for value in memo.values() if type(value) is list for item in value]]""",
    "a deep copy leaves the variables of the program in the memo": """
        import copy
        memo = {}
        copy.deepcopy([globals()], memo)
        result = [item for value in memo.values() for item in (value if type(value) in (list, tuple) else [value])]""",
    "a __deepcopy__ is handed the state of the host": """
        import copy
        class Deep:
            def __deepcopy__(self, memo): spy(*memo.values()); return self
        d = compile('1', 'x', 'eval')
        try: copy.deepcopy([d, globals(), Deep()])
        except Exception: pass
        result = [item for value in Spy.seen for item in (value if type(value) in (list, tuple) else [value])]""",
    "the copy of a view": """
        import copy
        result = copy.copy(globals()).get('__builtins__')""",
    "an element copies what it holds by the real module": """
        import copy
        from xml.etree.ElementTree import Element
        e = Element('a')
        e.text = compile('1', 'x', 'eval')
        memo = {}
        try: e.__deepcopy__(memo)
        except Exception: pass
        result = [*memo.values(), *[item for value in memo.values() if type(value) is list for item in value]]""",
    "a function whose builtins were taken away counts as the host's": """
        import copy, functools
        ns = {}
        exec('def make():\\n def f(): pass\\n return f', ns)
        ns['__builtins__'] = {}
        f = ns['make']()
        exec('def g(): pass', ns)
        result = None
        try:
            f.__wrapped__ = 1
        except Exception:
            pass
        functools.update_wrapper(f, ns['g'])
        result = f.__defaults__ is None and 'held' or 'ESCAPED'""",
    "an error inside the host is about the body of a class": """
        import enum
        try:
            class C(metaclass=enum.EnumMeta): pass
        except AttributeError as error:
            result = 'ESCAPED' if '__qualname__' in error.obj else None""",
    "a descriptor that host code binds to a class": """
        import collections.abc, inspect
        class Descriptor:
            def __get__(self, instance, owner): spy(instance, owner); return lambda: 1
        class C(collections.abc.AsyncIterator):
            __init__ = Descriptor()
            __call__ = Descriptor()
        try: inspect.signature(C)
        except Exception: pass
        result = Spy.seen""",
    "pprint reads the name that a field was given": """
        from dataclasses import dataclass, fields
        import pprint
        @dataclass
        class S(str):
            x: object = 1
        class P(pprint.PrettyPrinter):
            def format(self, object, *rest): spy(object); return super().format(object, *rest)
        s = S()
        fields(s)[0].name = 'format'
        P(width=1).pformat([s])
        result = Spy.seen""",
    "a functional enum with a module of its own": """
        from enum import Enum
        class E(Enum):
            A = 1
        try: E._member_names_.clear()
        except Exception: pass
        made = E('Made', '__globals__ x', module='os')
        result = 'ESCAPED'""",
    "a key that lies in the namespace of make_dataclass": """
        from dataclasses import make_dataclass
        make_dataclass('C', [], namespace={Liar('__class_getitem__x'): 1, Liar('__prepare__'): spy})
        result = 'ESCAPED'""",
    "a key that lies in __slots__": """
        class C:
            __slots__ = (Liar('__class__'),)
        result = 'ESCAPED'""",
    "a key that lies in annotations": """
        class C:
            __annotations__[Liar('x; import os')] = int
        result = 'ESCAPED'""",
    "a field name in another normal form": """
        from dataclasses import make_dataclass
        make_dataclass('C', ['\\uff3f\\uff3fglobals\\uff3f\\uff3f'])
        result = 'ESCAPED'""",
}


@pytest.mark.parametrize("program", HANDED.values(), ids=HANDED.keys())
def test_the_host_hands_out_nothing_dangerous(program: str) -> None:
    assert reached(SPY + dedent(program)) is None


def test_a_registry_can_be_read_but_not_reached() -> None:
    source = """
        import functools
        @functools.singledispatch
        def f(x): return 'any'
        f.register(int, lambda x: 'int')
        f.registry == Spy()
        f.registry | Spy()
        for seen in Spy.seen:
            seen[int] = spy
        result = f(1)
        """
    assert run(SPY + dedent(source)) == "int"


def test_the_tables_of_host_enums_cannot_be_changed() -> None:
    source = """
        from http import HTTPStatus
        HTTPStatus.__members__ == Spy()
        HTTPStatus.__members__ | Spy()
        for seen in Spy.seen:
            seen.clear()
        try:
            HTTPStatus._member_map_.clear()
        except AttributeError:
            pass
        result = len(HTTPStatus.__members__) > 10 and HTTPStatus['OK'].value
        """
    assert run_sealed(SPY + dedent(source)) == 200


INITIALIZERS = {
    "of the property": "Fraction.numerator.__init__(changed)",
    "of property": "property.__init__(Fraction.numerator, changed)",
    "of a subclass": "P.__init__(Fraction.numerator, changed)",
    "of an abstract property": "abc.abstractproperty.__init__(Fraction.numerator, changed)",
    "by getattr": "getattr(Fraction.numerator, '__init__')(changed)",
    "by an own super": "exec('super().__init__(changed)', {'super': lambda: Fraction.numerator, 'changed': changed})",
    "by super in a class method": """
        class Q(property):
            @classmethod
            def get(cls): return super().__init__
        Q.get()(Fraction.numerator, changed)""",
    "by super with a class for self": """
        class Q(property):
            def __init__(self, *a): super().__init__(*a)
        Q.__init__(Q, Fraction.numerator, changed)""",
    "by super of two classes": "super(P, P).__init__(Fraction.numerator, changed)",
    "by a __class__ of its own": """
        def outer():
            __class__ = P
            def inner(self):
                self = P
                return super().__init__
            return inner(None)
        outer()(Fraction.numerator, changed)""",
    "by an example with names of its own": """
        import doctest
        got = []
        doctest.run_docstring_examples(">>> got.append(super().__init__)\\n", {"super": lambda: property, "got": got})
        got[0](Fraction.numerator, changed)""",
    "by attrgetter": "operator.attrgetter('__init__')(property)(Fraction.numerator, changed)",
}


@pytest.mark.parametrize("way", INITIALIZERS.values(), ids=INITIALIZERS.keys())
def test_a_property_of_a_host_class_keeps_its_getter(way: str) -> None:
    source = [
        "from fractions import Fraction",
        "import abc, operator",
        "class P(property): pass",
        "changed = lambda self: 'changed'",
        "try:",
        f"    exec({dedent(way)!r})",
        "except Exception:",
        "    pass",
        "result = Fraction(3, 4).numerator",
    ]
    assert run_sealed("\n".join(source)) == 3


FORGED = {
    "a comparison named past the check of TestCase": """
        import json, unittest
        seen = []
        class A:
            def __format__(self, spec): seen.append(spec); return ""
            def __eq__(self, other): return False
        class T(unittest.TestCase, str):
            def __new__(cls, *a): return str.__new__(cls, "{0:{1.f.__globals__}}")
            def __init__(self): super().__init__("runTest")
            def runTest(self): pass
        a, b = A(), A()
        b.f = json.dumps
        t = T()
        try:
            super(unittest.TestCase, t).addTypeEqualityFunc(A, "format")
            t.assertEqual(a, b)
        except Exception: pass
        result = len(seen)""",
    "a name of a class that answers for itself": """
        seen = []
        class S(str):
            def __contains__(self, x): seen.append(1); return False
            def __format__(self, spec): seen.append(1); return ""
        class A: pass
        A.__name__ = S("n")
        A.__qualname__ = S("q")
        result = len(seen) + (type(A.__name__) is not str)""",
    "the name of an enum's redirect": """
        from enum import Enum
        class Mix:
            def x(self): pass
        class E(Mix, Enum):
            x = 1
            z = 3
        found = 0
        try:
            vars(E)["x"].name = "__globals__"
            E.z._value_ = print
            found = len(E.z.x)
        except Exception: pass
        result = found""",
    "an alias of an enum member": """
        from enum import Enum
        class E(Enum):
            A = 1
        for name in ("__getattr__", "_fill", "__class__"):
            try: E.A._add_alias_(name)
            except Exception: pass
        result = int(any(name in dir(E) for name in ("__getattr__", "_fill")))""",
    "the state of a host class by SimpleNamespace": """
        import types, functools
        got = []
        class G:
            def find(self, cls): got.append(cls); return lambda *a: None
        try:
            class S(types.SimpleNamespace, functools.singledispatchmethod): pass
            class C: m = S(_generic=G(), _func=len)
            C().m(int)
        except TypeError: pass
        result = len(got)""",
    "the state of a host class by __setstate__": """
        import copy, functools
        got, told = [], []
        class G:
            def find(self, cls): told.append(cls); return lambda *a: None
        class S(functools.singledispatchmethod):
            def __setstate__(self, state): got.append(state)
        s = S(len)
        copy.copy(s)
        copy.deepcopy(s)
        parts = [part for state in got for part in (state if type(state) is tuple else [state]) if type(part) is dict]
        private = sum(name.startswith("_") for part in parts for name in part)
        for part in parts:
            part["_generic"] = G()
        class C: m = s
        try: C().m(int)
        except Exception: pass
        result = len(told) + private""",
    "the state of two host classes under one name": """
        import configparser, functools
        class Parser: converters = ()
        class S(functools.singledispatchmethod): pass
        s = S(len)
        found = 0
        try:
            class X(functools.cached_property, configparser.SectionProxy): pass
            x = X(lambda self: "MADE")
            configparser.SectionProxy.__init__(x, Parser(), "_generic")
            x.__get__(s, S)
            found = 1
        except TypeError: pass
        result = found""",
    "the state of two stand-ins under one name": """
        import contextlib, warnings
        try:
            class X(warnings.catch_warnings, contextlib.redirect_stdout): pass
            result = 1
        except TypeError:
            result = 0""",
    "the state of a host class by an initializer of another": """
        import configparser, functools
        class X(configparser.SectionProxy): pass
        class Y: pass
        try:
            super(X, X).__init__(Y(), Y(), "_generic")
            result = 1
        except Exception:
            result = 0""",
    "the state of a host class by a field that is renamed meanwhile": """
        import functools
        from dataclasses import dataclass, field
        told = []
        class G:
            def find(self, cls): told.append(cls); return lambda *a: None
        class Trick:
            def __get__(self, i, o): f1.name = "_generic"; return 1
        class D: __hash__ = Trick()
        f1 = field(default=property(lambda self: G(), lambda self, v: None))
        class S(functools.singledispatchmethod):
            a: int = f1
            _generic: int = field(default=1)
            b: int = D()
        try:
            dataclass(S, init=False, eq=False, repr=False)
            class C: m = S(len)
            C().m(int)
        except Exception: pass
        result = len(told)""",
    "a table of the host by a bound method": """
        import json
        try:
            json.JSONDecoder().parse_constant.__self__["NaN"] = 1
        except Exception: pass
        result = int(json.loads("NaN") == 1)""",
    "the streams of the process by a test's result": """
        import unittest
        class T(unittest.TestCase):
            def runTest(self): pass
        tests = unittest.TestResult()
        tests.buffer = True
        tests.startTest(T())
        result = 0  # which the harness writes to the real standard output""",
    "the class of finalizers": """
        import weakref
        try:
            weakref.finalize.peek = lambda self: 1
            result = 1
        except TypeError:
            result = 0""",
    "the dictionary of a class in the scope of an annotation": """
        try:
            exec("class A:\\n type X = __classdict__\\nfound = A.X.__value__")
            result = 1
        except Exception:
            result = 0""",
    "the variables of the scope of a type parameter": """
        try:
            exec("class A:\\n def f[T: locals()](self): pass\\nfound = A.f.__type_params__[0].__bound__")
            result = int("__classdict__" in found)
        except Exception:
            result = 0""",
    "a cell that a class body from data fills": """
        import dataclasses
        try:
            dataclasses.make_dataclass("D", ["x"], namespace={"__classdictcell__": 1})
            result = 1
        except TypeError:
            result = 0""",
    "a namespace that takes out its own builtins": """
        own = {"mine": open}
        own["own"] = own
        try:
            exec("own.pop('__builtins__')\\nexec('out = open')", own)
        except Exception: pass
        result = int(own.get("out", open) is not open)""",
    "the name of a file that answers for itself": """
        seen = []
        class S(str):
            def __hash__(self): seen.append(1); raise SystemExit
            def __eq__(self, other): return True
        class N:
            def __str__(self): return S("x")
        try:
            exec(compile("1/0", N(), "exec"))
        except ZeroDivisionError as error:
            import traceback
            traceback.format_exception(error)
        result = len(seen)""",
}


@pytest.mark.parametrize("program", FORGED.values(), ids=FORGED.keys())
def test_nothing_of_the_host_can_be_forged(program: str) -> None:
    assert run_sealed(dedent(program)) == 0


def test_a_cached_property_writes_only_into_objects_of_the_code() -> None:
    source = """
        import functools, json
        class C:
            @functools.cached_property
            def x(self): return 1
        try:
            C.x.__get__(json.dumps, C)
        except TypeError:
            pass
        result = hasattr(json.dumps, 'x')
        """
    assert run_sealed(source) is False


def test_tables_that_a_module_gives_are_copies() -> None:
    source = """
        import doctest
        exec("x = 1", doctest.TestResults._field_defaults.copy())
        try:
            doctest.TestResults._field_defaults["x"] = 1
        except TypeError:
            pass
        result = dict(doctest.TestResults._field_defaults)
        """
    assert run_sealed(source) == {}


def test_the_getter_of_a_host_property_is_not_handed_out() -> None:
    source = """
        import fractions
        class Own:
            @property
            def x(self): return 1
        try:
            got = fractions.Fraction.numerator.fget
        except AttributeError:
            got = None
        result = [got is None, Own.x.fget(Own())]
        """
    assert run(source) == [True, 1]


def test_the_machinery_is_put_back_before_code_runs_in_a_changed_namespace() -> None:
    source = """
        seen = []
        own = {}
        exec("x = 1", own)
        for name in list(own["__builtins__"]):
            own["__builtins__"][name] = lambda *args, **kwargs: seen.append(args)
        exec("class A: pass\\nkind = A.__class__", own)
        result = [seen, own["kind"] is type]
        """
    assert run(source) == [[], True]


def test_annotations_of_the_host_make_no_classes() -> None:
    source = """
        import functools, inspect, typing
        found = [
            *typing.dataclass_transform.__annotations__.values(),
            *[p.annotation for p in inspect.signature(typing.dataclass_transform).parameters.values()],
            *inspect.get_annotations(typing.dataclass_transform).values(),
        ]
        made = []
        def called(hint, depth=0):
            for part in (hint, *(getattr(hint, "__args__", None) or ())):
                try:
                    made.append(part(int))
                except Exception:
                    pass
                if depth < 4 and part is not hint:
                    called(part, depth + 1)
        for hint in found:
            called(hint)
        @functools.cache
        def own(x: list[int]) -> str: ...
        result = [len([each for each in made if each is not int and isinstance(each, type)]), str(own.__annotations__["x"])]
        """
    assert run(source) == [0, "list[int]"]


def test_what_needs_a_loop_gets_one_of_the_kind_of_guests() -> None:
    source = """
        import asyncio
        got = []
        async def main(): got.append(1)
        future = asyncio.Future()
        try:
            asyncio.Runner.run(future, main())
        except TypeError:
            got.append("refused")
        future.set_result(2)
        result = [got, asyncio.get_event_loop().run_until_complete(future)]
        """
    assert run_sealed(source) == [["refused"], 2]


def test_host_code_compares_nothing_private_with_objects_of_the_code() -> None:
    source = """
        import inspect, json
        got = []
        class V:
            def __eq__(self, other): got.append(other); return False
            def __hash__(self): return 0
            def __call__(self): pass
        class O: pass
        o = O()
        o.format = V()
        o.format
        try: inspect.signature(V())
        except Exception: pass
        result = len(got)
        """
    assert run(source) == 0


KEPT = """
made, told = [], []
class G:
    def find(self, cls): told.append(cls); return lambda *a: None
    def get(self, cls, default=None): told.append(cls)
class Told:
    def __eq__(self, other): told.append(other); return False
    def __hash__(self): return 0
def make(kind):
    try: made.append(kind("X", (), {"__mro__": 1}))  # which the dialect's own type() refuses
    except Exception: pass
def parts(hint):
    import typing
    make(hint)
    for part in typing.get_args(hint): parts(part)
def use(method):
    class C: m = method
    try: C().m(int)
    except Exception: pass
def attempt(source):
    try: exec(source)
    except Exception: pass
"""
"""What programs find metaclasses with: each is made to call what it was handed, and counts what it was told."""

WAYS = {
    "a variable of a generated method": """
        import functools
        from dataclasses import dataclass, field
        @dataclass(frozen=True)
        class A:
            x: object = field(default_factory=locals)
            y: object = field(default_factory=vars)
            z: object = field(default_factory=dir)
        class N(str):
            def startswith(self, *a): return False
        class S(functools.singledispatchmethod): pass
        s = S(len)
        for value in [*A().x.values(), *A().y.values()]:
            try: value(s, N("_generic"), G())
            except Exception: pass
        use(s)""",
    "what stores the fields of a frozen dataclass, found among builtins": """
        import functools
        ns = {}
        exec("1", ns)
        class S(functools.singledispatchmethod): pass
        s = S(len)
        for name, value in ns["__builtins__"].items():
            if name.endswith("store"):
                for field in ("_generic", "__class__", "__dict__"):
                    try: value(s, field, G())
                    except Exception: pass
        use(s)
        made += [] if type(s) is S else [type(s)]""",
    "an annotation that shadows the mark of a class": """
        import copy, functools
        from dataclasses import dataclass
        class S(functools.singledispatchmethod):
            x: int = 1
            def __getstate__(self): return (None, {"_generic": G(), "_func": len})
        S.__annotations__["_abc_sealab"] = int
        try: dataclass(S, init=False, eq=False, repr=False)
        except TypeError: pass
        try: use(copy.copy(S(len)))
        except TypeError: pass
        try: made += [] if type(S.__subclasses__()) is list else [1]
        except AttributeError: made.append(1)""",
    "an annotation that sets private state": """
        import functools
        from dataclasses import dataclass, field
        class S(functools.singledispatchmethod):
            x: int = 1
        S.__annotations__["_generic"] = int
        S._generic = property(lambda self: G())
        try: dataclass(S, init=False, eq=False, repr=False)
        except TypeError: pass
        use(S(len))""",
    "a name that an enum ignores": """
        import enum
        class E(enum.Enum):
            _ignore_ = ["_abc_sealab"]
            A = 1
            def __init__(self, value):
                try: type(self).__subclasses__()
                except AttributeError: made.append(1)""",
    "a __getstate__ that takes itself away": """
        import copy, functools
        class S(functools.singledispatchmethod):
            def __getstate__(self):
                del S.__getstate__
                return (None, {"_generic": G(), "_func": len})
        try: use(copy.copy(S(len)))
        except TypeError: pass""",
    "a __getstate__ that is taken away while an object is made": """
        import copy, functools
        class S(functools.singledispatchmethod):
            def __getstate__(self): return (None, {"_generic": G(), "_func": len})
            def __new__(cls, *a):
                if ready: del S.__getstate__
                return functools.singledispatchmethod.__new__(cls)
        ready = []
        s = S(len)
        ready.append(1)
        try: use(copy.copy(s))
        except TypeError: pass""",
    "a __getstate__ that is taken away while its state is copied": """
        import copy, functools
        class Deep(G):
            def __deepcopy__(self, memo): del S.__getstate__; return self
        class S(functools.singledispatchmethod):
            def __getstate__(self): return (None, {"_generic": Deep(), "_func": len})
        try: use(copy.deepcopy(S(len)))
        except TypeError: pass""",
    "a __getstate__ that comes late": """
        import copy, functools
        class S(functools.singledispatchmethod):
            def __getnewargs__(self):
                S.__getstate__ = lambda self: (None, {"_generic": G(), "_func": len})
                return ()
            def __new__(cls, *a): return functools.singledispatchmethod.__new__(cls)
        try: use(copy.copy(S(len)))
        except TypeError: pass""",
    "the address of an object that a deep copy dropped": """
        import copy, functools
        kept = []
        class Bomb:
            def __deepcopy__(self, memo): raise ValueError
        class Own(G): pass
        class S(functools.singledispatchmethod): pass
        class Driver:
            def __deepcopy__(self, memo):
                dropped = [Own() for _ in range(300)]
                for each in dropped:
                    each.bomb = Bomb()
                    try: copy.deepcopy(each, memo)
                    except ValueError: pass
                each = None
                dropped.clear()
                objects = [S(lambda self, x: None) for _ in range(300)]
                for each in objects: kept.append(copy.deepcopy(each, memo))
                return self
        copy.deepcopy(Driver())
        for each in kept: use(each)""",
    "the class of a test, kept by its result": """
        import unittest
        class R: shouldStop = False
        r, kept = R(), {"_moduleSetUpFailed": False}
        r.__dict__ = kept
        try: unittest.TestSuite([int]).run(r)
        except TypeError: pass
        make(kept.get("_previousTestClass"))""",
    "the class of a test, compared with what its result keeps": """
        import unittest
        class R: shouldStop = False
        r = R()
        r.__dict__ = {"_previousTestClass": Told()}
        try: unittest.TestSuite([int]).run(r)
        except TypeError: pass""",
    "a test that a suite of the code's own yields": """
        import unittest
        class S(unittest.TestSuite):
            def __iter__(self): return iter([int])
        try: S().run(unittest.TestResult())
        except TypeError: pass""",
    "a key of the code's own among the comparisons of a test": """
        import typing, unittest
        m = 2 ** 64
        p1, p2, p5 = 11400714785074694791, 14029467366897019727, 2870177450012600261
        back = lambda x: ((x >> 31) | (x << 33)) % m
        i1, i2 = pow(p1, -1, m), pow(p2, -1, m)
        found = (hash(typing.Type[int]) - (2 ^ (p5 ^ 3527539))) % m
        found = (back(found * i1 % m) - hash((int,)) * p2) % m
        found = (back(found * i1 % m) - p5) * i2 % m
        class Key(Told):
            def __hash__(self): return found - m if found >= m // 2 else found
        class T(unittest.TestCase):
            def runTest(self): pass
        for target in (T(), super(unittest.TestCase, T())):
            try:
                target.addTypeEqualityFunc(Key(), lambda *a: None)
                target.assertEqual(int, str)
            except (AssertionError, TypeError): pass
        told[:] = [each for each in told if each is not int and each is not str]""",
    "the annotations of a host function by wraps": """
        import functools, inspect, typing
        @functools.wraps(typing.dataclass_transform)
        def f(): pass
        for hint in [*f.__annotations__.values(), *inspect.get_annotations(f).values(),
                     *inspect.getfullargspec(f).annotations.values()]: parts(hint)""",
    "the annotations of a host function by its wrapper's signature": """
        import functools, inspect, typing
        @functools.wraps(typing.dataclass_transform, assigned=())
        def f(): pass
        for each in inspect.signature(f).parameters.values(): parts(each.annotation)""",
    "the annotations of a host function by a class method": """
        import inspect, typing
        found = inspect.Signature.from_callable(typing.dataclass_transform)
        for each in found.parameters.values(): parts(each.annotation)""",
    "the annotations of a host function by a method of a class of the code's own": """
        import functools, inspect, typing
        class C:
            __init__ = typing.dataclass_transform
            __call__ = typing.dataclass_transform
        for each in (C, functools.partial(typing.dataclass_transform)):
            try: found = inspect.signature(each)
            except (TypeError, ValueError): continue
            for part in found.parameters.values(): parts(part.annotation)""",
    "the annotations of a host function by an alias": """
        import types, typing
        try:
            class A(types.GenericAlias): pass
        except TypeError:
            A = types.GenericAlias
        for hint in A(typing.dataclass_transform, ()).__annotations__.values(): parts(hint)""",
    "the real dictionary of annotations": """
        import functools, re
        @functools.wraps(re.compile)
        def f(): pass
        f.__annotations__["x"] = 1
        made += [] if "x" not in re.compile.__annotations__ else [1]""",
    "a property of a host class": """
        import collections
        class M: maps = [0, "X", (), {"a": 1}]
        class N: maps = [0, int]
        for each in (M, N):
            try: make(collections.ChainMap.parents.__get__(each))
            except TypeError: pass
        made = [each for each in made if each is not None]""",
    "a property of a host class as an attribute of the code's own": """
        import collections
        class M:
            maps = [0, int]
            p = classmethod(collections.ChainMap.parents)
            q = collections.ChainMap.parents
        class A:
            parents = collections.ChainMap.parents
            maps = [0, 1]
        for get in (lambda: M.p, lambda: A().parents):
            try: make(get())
            except TypeError: pass""",
    "match arguments that a decorator left": """
        import abc, dataclasses
        class A(abc.ABC):
            __slots__ = ()
            format: int
            @classmethod
            def __subclasshook__(cls, sub): return True
        try: dataclasses.dataclass(slots=True)(A)
        except TypeError: pass
        try: exec("match '{0.__class__}':\\n case A(f): made.append(f)")
        except TypeError: pass""",
    "match arguments while a decorator works": """
        import abc, dataclasses
        class Base(abc.ABC):
            def __init_subclass__(cls, **k):
                try: exec("match '{0.__class__}':\\n case cls(f): made.append(f)", {"cls": cls, "made": made})
                except TypeError: pass
            @classmethod
            def __subclasshook__(cls, sub): return True
        try:
            @dataclasses.dataclass(slots=True)
            class A(Base):
                format: int
        except TypeError: pass""",
    "a field put in while a decorator works": """
        import dataclasses
        calls = []
        class P: pass
        p = P()
        p.__dict__ = {"_field_type": Told(), "name": "z", "init": False, "kw_only": False, "repr": False,
                      "default": dataclasses.MISSING, "default_factory": dataclasses.MISSING, "compare": False,
                      "hash": None}
        class M:
            def __hash__(self):
                calls.append(1)
                if len(calls) == 2: B.__dataclass_fields__["z"] = p
                return 7
            def __eq__(self, other): return False
        @dataclasses.dataclass
        class B:
            x: int = 1
        try:
            class C(B):
                __module__ = M()
                y: int = 2
            dataclasses.dataclass(C)
        except Exception: pass""",
    "an option of a decorator that changes the fields": """
        import dataclasses
        class M:
            def __bool__(self):
                B.__dataclass_fields__["z"] = p
                return False
        class P: pass
        p = P()
        p.__dict__ = {"_field_type": Told(), "name": "z", "init": False}
        @dataclasses.dataclass
        class A:
            x: int = 1
        class B(A):
            y: int = 1
        B = dataclasses.dataclass(B)
        class C(B):
            y: int = 2
        try: dataclasses.dataclass(C, init=M(), frozen=M(), eq=M(), order=M())
        except Exception: pass""",
    "the state of a frozen dataclass": """
        import copy, dataclasses
        @dataclasses.dataclass(frozen=True, slots=True)
        class A:
            x: int = 1
        for name in ("__setstate__", "__getstate__"):
            if name in vars(A): made.append(1)
        class F:
            name = "__class__"
        A.__dataclass_fields__["x"] = F()
        try: copy.copy(A())
        except TypeError: pass""",
    "the table of a host class by a class of the code's own": """
        import dataclasses, doctest, http, types
        class C(doctest.TestResults): pass
        for each in (C, C(1, 2), dataclasses.make_dataclass("D", [], bases=(doctest.TestResults,))):
            try: each._field_defaults["x"] = 1
            except TypeError: pass
        try: types.GenericAlias(http.HTTPStatus, ())._member_map_["x"] = 1
        except TypeError: pass
        made += list(doctest.TestResults._field_defaults)""",
    "an enum of bases that nobody judged": """
        import enum, types, unittest
        class E(unittest.TestCase, enum.Enum): pass
        for kind in (types.SimpleNamespace, classmethod, staticmethod):
            try: made.append(E("Y", {"A": ({"_type_equality_funcs": G()},)}, type=kind))
            except TypeError: pass
        class F(enum.Enum): pass
        try: type(F("Z", "a b")).__name__, F("Z", "a b").__subclasses__()
        except AttributeError: made.append(1)""",
    "the metaclass by object's __getattribute__": """
        import enum, typing
        class T(typing.TypedDict): a: int
        class A:
            @classmethod
            def get(cls): return super().__getattribute__("__new__")
        class E(enum.Enum): pass
        for each in (T, A, E):
            try: object.__getattribute__(each, "__new__")(None, "X", (), {"a": 1})
            except (TypeError, AttributeError): continue
            made.append(1)""",
    "an initializer of the host on another object": """
        import pprint, types
        class P(pprint.PrettyPrinter): pass
        class O: pass
        o, kept = O(), {}
        o.__dict__ = kept
        try: types.GenericAlias(super(pprint.PrettyPrinter, P), ()).__init__(o)
        except Exception: pass
        made += list(kept)""",
    "an initializer of the host in a copied dictionary": """
        import contextlib, json
        class O: pass
        o, kept = O(), {}
        o.__dict__ = kept
        try: contextlib.contextmanager(json.JSONEncoder).__init__(o)
        except Exception: pass
        made += list(kept)""",
    "what an alias among the bases of a class stands for": """
        import typing
        class V(Told):
            def __mro_entries__(self, bases): return ()
        for source in ("class C(typing.Type[int], V()): pass", "class C(V(), typing.Type[int]): pass"):
            try: exec(source)
            except TypeError: pass
        told[:] = [each for each in told if each not in (type, typing.Type[int])]""",
    "a traceback that is joined to another": """
        got = []
        class A:
            def __enter__(self): pass
            def __exit__(self, kind, error, tb): got.append(tb); return True
        for _ in range(2):
            with A(): 1 / 0
        try: exec("got[0].tb_next = got[1]")
        except AttributeError: pass
        else: made.append(1)""",
    "the real zone of a stand-in": """
        import datetime, zoneinfo
        z = zoneinfo.ZoneInfo("UTC")
        class D(datetime.datetime):
            def __new__(cls, *a, **k): told.append(k.get("tzinfo", a[7] if len(a) > 7 else None)); return super().__new__(cls, *a, **k)
            def replace(self, **k): told.append(k["tzinfo"]); return super().replace(**k)
        class Fake:
            tzinfo = z
            def replace(self, **k): told.append(k["tzinfo"]); raise ValueError
        for each in (lambda: z.fromutc(Fake()), lambda: z.fromutc(D(2024, 1, 1, 0, 0, 0, 0, z)),
                     lambda: D(2024, 1, 1, 0, 0, 0, 0, z).astimezone(z)):
            try: each()
            except (TypeError, ValueError): pass
        told[:] = [each for each in told if each is not None and each is not z]""",
    "the name of a bound method that is copied": """
        import copy, json, types
        def f(self): pass
        for name, target in (("__globals__", json.dumps), ("__class__", int)):
            f.__name__ = name
            found = copy.copy(types.MethodType(f, target))
            made += [] if isinstance(found, types.MethodType) else [found]
        class Call:
            def __call__(self, *a): pass
        call = Call()
        call.__dict__ = {"__name__": "__class__"}
        try: found = copy.copy(types.MethodType(call, int))
        except TypeError: found = None
        made += [] if found is None or isinstance(found, types.MethodType) else [found]""",
    "a __getstate__ of the object itself": """
        import copy, functools
        class S(functools.singledispatchmethod): pass
        s = S(len)
        try: s.__getstate__ = lambda: (None, {"_generic": G(), "_func": len})
        except AttributeError: pass
        try: use(copy.copy(s))
        except TypeError: pass""",
    "a descriptor of the host for a hook": """
        import abc, functools
        class O:
            def __call__(self, *a): return NotImplemented
        o = O()
        try: o.__dict__ = {"__get__": lambda obj, cls: told.append(cls) or (lambda *x: NotImplemented)}
        except TypeError: pass
        class A(abc.ABC): __subclasshook__ = classmethod(functools.partialmethod(o))
        try: isinstance(1, A)
        except TypeError: pass
        for each in told[:]: make(each)
        told.clear()""",
    "the loop by a __new__ of the code's own": """
        import asyncio, collections
        target = []
        class U(collections.UserDict):
            def __new__(cls, *a): return target[0] if target else object.__new__(cls)
        class L(collections.UserList):
            def __new__(cls, *a): return target[0] if target else object.__new__(cls)
        async def main():
            loop = asyncio.get_running_loop()
            call = loop.call_soon
            u, v = U(), L()
            u.call_soon = v.call_soon = lambda *a, **k: told.append(a) or call(*a, **k)
            target.append(loop)
            for each in (u, v):
                try: each.__copy__()
                except TypeError: pass
            await asyncio.gather(asyncio.sleep(0))
        asyncio.run(main())""",
}


@pytest.mark.parametrize("program", WAYS.values(), ids=WAYS.keys())
def test_no_way_leads_to_a_metaclass_or_a_host_table(program: str) -> None:
    assert run_sealed(f"{KEPT}\n{dedent(program)}\nresult = len(made) + len(told)") == 0


@pytest.mark.parametrize("source", ["x = 1\nfrom __future__ import annotations", "from __future__ import nothing"])
def test_features_of_the_future_stand_first_and_exist(source: str) -> None:
    with pytest.raises(SyntaxError):
        compile_program(source)


BESIDE = {
    "the origin of typing.Type, compared by an alias": """
        import typing
        alias = typing.Annotated[Told(), 1]
        told.clear()
        typing.Type[int] == alias, alias == typing.Type[int]
        told[:] = [each for each in told if each is not type]""",
    "the origin of a copied typing.Type": """
        import copy, typing
        alias = typing.Annotated[Told(), 1]
        told.clear()
        for way in (copy.copy, copy.deepcopy):
            way(typing.Type[int]) == alias
        for hint in typing.get_type_hints(lambda: 0, None, None), typing.get_type_hints(typing.NamedTuple("N", [("x", "typing.Type[int]")])):
            hint.get("x") == alias
        told[:] = [each for each in told if each is not type]""",
    "the hash of a metaclass": """
        import typing
        made += [] if hash(typing.Type[int]) == hash((type, (int,))) else [1]""",
    "a module's name that wraps copies": """
        import functools
        other = Told()
        class W:
            def __getattribute__(self, name):
                if name == "__module__": return other
                raise AttributeError(name)
        class C: pass
        attempt("functools.update_wrapper(C, W())")
        made += [1] if C.__module__ is other else []""",
    "a module's name that a named tuple takes from the variables": """
        import typing
        __name__ = Told()
        for kind in (typing.NamedTuple("N", [("x", int)]), typing.TypedDict("T", {"x": int})):
            made += [1] if type(kind.__module__) is not str else []""",
    "the class of a class, told to a descriptor by a signature": """
        import functools, inspect, types
        def bind(*args):
            told.extend(each for each in args if each not in (C, type, None))
            return lambda *a: None
        class C: __init__ = functools.partialmethod(types.SimpleNamespace(**{"__get__": bind}))
        try: inspect.signature(C)
        except Exception: pass""",
    "what an alias of type stands for, told to other bases": """
        import typing
        class Base(Told):
            def __mro_entries__(self, bases): told.extend(bases); return ()
        for bases in ((typing.Type[int], Base()), (Base(), typing.Type[int]), (typing.Type, Base()), (type[int], Base())):
            try:
                class C(*bases): pass
            except TypeError: pass
        for each in told: make(each)
        told.clear()""",
    "an initializer of the host, called by an enum": """
        import enum, fractions, http, pprint
        class S(property): pass
        class P(pprint.PrettyPrinter): pass
        class O: pass
        o, kept = O(), {}
        o.__dict__ = kept
        for target, values in ((S, (fractions.Fraction.numerator, lambda self: "MARK")), (P, (o,)), (http.HTTPStatus.OK, 1)):
            try:
                class E(enum.Enum):
                    def __new__(cls, *args): return target
                    A = values
            except TypeError: pass
        made += [1] if fractions.Fraction(1, 3).numerator == "MARK" or kept or http.HTTPStatus.OK.name != "OK" else []""",
    "the name of a member of a host enum": """
        import enum, http
        class M(int):
            def __new__(cls, *args): return http.HTTPStatus.OK if E else int.__new__(cls, *args)
        E = None
        class E(M, enum.Flag):
            A = 1
            B = 2
        try: E(3)
        except (AttributeError, ValueError): pass
        try: http.HTTPStatus.OK.phrase = "MARK"
        except AttributeError: pass
        made += [1] if (http.HTTPStatus.OK.name, http.HTTPStatus.OK.phrase) != ("OK", "OK") else []""",
    "the text of an attribute of a host class": """
        import doctest, http, numbers
        for each in (numbers.Real.real, doctest.TestResults.failed):
            before = each.__doc__, getattr(each, "__name__", None)
            try: each.__doc__ = "MARK"
            except AttributeError: pass
            try: each.__name__ = "MARK"
            except AttributeError: pass
            made += [] if (each.__doc__, getattr(each, "__name__", None)) == before else [1]
        class Own:
            @property
            def x(self): pass
        Own.x.__doc__ = "mine"
        made += [] if Own.x.__doc__ == "mine" else [1]""",
    "what a guarded attribute is read by, bound by hand": """
        import fractions, re, typing
        ways = [lambda: property.fget.__get__(fractions.Fraction.numerator), lambda: AttributeError.obj.__get__(error),
                lambda: typing.Annotated[error, 1].obj]
        error = None
        try: re.compile("x").nothing
        except AttributeError as caught: error = caught
        for way in ways:
            try: made.append(way())
            except AttributeError: pass
        pattern = re.compile("(?P<a>x)")
        try: re.Pattern.groupindex.__get__(pattern) == Told()
        except AttributeError: pass""",
    "an enum without its members": """
        import enum
        try:
            class E(enum.Flag, _simple=True): A = 1
            made.append(E)
        except TypeError: pass""",
}


@pytest.mark.parametrize("program", BESIDE.values(), ids=BESIDE.keys())
def test_nothing_of_the_host_comes_by_the_side(program: str) -> None:
    assert run_sealed(f"{KEPT}\n{dedent(program)}\nresult = len(made) + len(told)") == 0


@pytest.mark.parametrize(
    "kind",
    [
        "sqlite3._sealab_sqlite.Database",
        "sqlite3._sealab_sqlite.Results",
        "contextvars.ContextVar",
        "contextvars.Token",
        "dataclasses.Field",
    ],
)
def test_no_class_derives_from_one_that_has_to_be_its_own_not_even_with_a_base_that_answers_for_it(kind: str) -> None:
    source = f"""
        import contextvars, dataclasses, sqlite3
        class Answers:
            def __init_subclass__(cls, **more): pass
        result = []
        for bases in ({kind},), (Answers, {kind}):
            try:
                class Derived(*bases): pass
                result.append("derived")
            except TypeError as error:
                result.append(str(error))
        """
    assert run_sealed(source) == [f"type '{kind.rpartition('.')[2]}' is not an acceptable base type"] * 2


def test_a_database_is_neither_made_again_nor_closed_within_its_own_step() -> None:
    source = """
        import sqlite3
        database = sqlite3._sealab_sqlite.Database(b"", 0)
        result = []
        def again(x):
            for call in (lambda: type(database).__init__(database, b"", 0)), (lambda: database.__init__(b"", 0)), database.close:
                try: result.append(call())
                except Exception as error: result.append(type(error).__name__)
            return x
        database.create_function("again", 1, again, False)
        result.append(database.execute("select again(1)", [], False, {}).fetch(1))
        """
    assert run_sealed(source) == ["SecurityError", "SecurityError", "ProgrammingError", [[1]]]


AROUND = {
    "the metaclass of data, called on their mean": """
        import abc, statistics
        class A(abc.ABC): pass
        class P:
            def __radd__(self, other): return self
            def __add__(self, other): return self
            def is_finite(self): return False
            def __truediv__(self, n): return A
        class C:
            @classmethod
            def as_integer_ratio(cls): return (P(), None)
        for way in (statistics.mean, statistics.harmonic_mean, statistics.variance, statistics.pvariance):
            try: make(way([C]))
            except Exception: pass""",
    "the dictionary of an object, handed to its __setstate__": """
        import copy, unittest
        class T(unittest.TestCase):
            def __init__(self): self.a = 1
            def __setstate__(self, state): state["_type_equality_funcs"] = G()
        t = T()
        copy.copy(t)
        try: t.assertEqual(int, str)
        except (AssertionError, AttributeError): pass""",
    "names that a list of slots gets later": """
        import copy, functools, unittest
        asked, states = [], []
        class N(str):
            def __eq__(self, other): asked.append(other); return len(asked) > 2 and str.__eq__(self, other)
            def __hash__(self): return str.__hash__(self)
        for base, names, args in (
            (unittest.TestCase, [N("__dict__"), "__reduce_ex__", "_outcome"], ()),
            (functools.singledispatchmethod, [str.__new__(N, "_generic"), "_func"], (len,)),
        ):
            for slots in (["q"], {"q": "a text"}):
                class T(base):
                    __slots__ = slots
                    def __setstate__(self, state): states.append(state)
                    def runTest(self): pass
                for name in names:
                    for table in (T.__slots__, slots):
                        table.append(name) if type(table) is list else table.update({name: ""})
                try: copy.copy(T(*args))
                except TypeError: pass
        for state in states:
            for part in state if type(state) is tuple else [state]:
                made += [name for name in part or () if name in ("__dict__", "__reduce_ex__", "_generic", "_func")]""",
    "a host's value under a key of the code's own": """
        import copy, unittest
        class N(str): pass
        states = []
        class T(unittest.TestCase):
            def __init__(self): vars(self).update({"a": 1}); super().__init__()
            def __getstate__(self): return {N("_type_equality_funcs"): 1, N("b"): 2, 3: 4}
            def __setstate__(self, state): states.append(state)
            def runTest(self): pass
        copy.copy(T())
        made += [1] if states != [{"b": 2, 3: 4}] else []""",
    "text for a signature, evaluated in a module of the host": """
        import dataclasses, functools
        class O:
            def __call__(self, a=1): pass
        o = O()
        try: o.__dict__ = {"__signature__": "(self, x=prefix)", "__text_signature__": "(x=prefix)", "__module__": "sys"}
        except TypeError: pass
        def w(self): pass
        functools.update_wrapper(w, o)
        class C:
            x: int = 1
            __init__ = w
        class B:
            "B(x=prefix)\\n--\\n\\n"
            __module__ = "sys"
        class D(B):
            x: int = 1
        class E:
            x: int = 1
            __init__ = o
        for each in (C, D, E):
            try: dataclasses.dataclass(init=False)(each)
            except (TypeError, ValueError): continue
            made += [1] if "x='/" in each.__doc__ else []""",
    "a method of the host, bound to what a __deepcopy__ gives": """
        import copy, json, typing
        target = None
        class S(typing.NewType):
            def __deepcopy__(self, memo): return target
        class D(json.JSONDecoder):
            def __deepcopy__(self, memo): return target
        class O: pass
        target, kept = O(), {}
        target.__dict__ = kept
        for method in (S("A", int).__init__, D().__init__):
            raw = copy.deepcopy(method)
            try: raw("MARK", int)
            except TypeError: raw()
        made += list(kept)""",
    "an attribute of a host class, copied by a decorator of the host": """
        import contextlib, reprlib, statistics, types, unittest
        class F: pass
        f = F()
        alias = types.GenericAlias(statistics.NormalDist, ())
        for wrap in (contextlib.contextmanager, contextlib.asynccontextmanager, contextlib.nullcontext,
                     reprlib.recursive_repr(), contextlib.suppress()):
            try: found = wrap(alias)
            except TypeError: continue
            for name in ("from_samples", "samples", "mean"):
                if isinstance(getattr(found, name, None), (classmethod, property, types.FunctionType)):
                    made.append(name)
        try: made.append(classmethod(lambda cls: cls).__get__(None, f))
        except TypeError: pass""",
    "a value given to a member of a host enum": """
        import enum, http
        try: http.HTTPStatus.OK._add_value_alias_(999)
        except AttributeError: pass
        try: made.append(http.HTTPStatus(999))
        except ValueError: pass
        class E(enum.Enum):
            A = 1
            B = 3
        if hasattr(E.A, "_add_value_alias_"):
            E.A._add_value_alias_(2)
            made += [] if E(2) is E.A else [1]""",
    "what the host writes to, copied": """
        import contextlib, copy, io
        kept = io.StringIO()
        redirect = contextlib.redirect_stdout(kept)
        with redirect:
            try: other = copy.deepcopy(redirect)
            except TypeError: pass
            print("x")
        made += [] if kept.getvalue() == "x\\n" else [1]""",
    "a type that a cache of typing keeps": """
        import typing
        class S(Told):
            def __hash__(self): return hash(int) + OF_MODULE
        for ask in (lambda s: typing.Union[s, str], lambda s: typing.Optional[s]):
            try: ask(S())
            except TypeError: pass
        told[:] = [each for each in told if isinstance(each, type) and each.__name__ == "module"]""",
    "an object that has a private name, for a method of the host": """
        import calendar, fractions, pathlib, types
        class O: pass
        asked = []
        class Flavour:
            def normcase(self, text): asked.append(1); raise LookupError
        o = O()
        o.__dict__ = {"_flavour": Flavour(), "parser": Flavour(), "_numerator": "MARK", "_firstweekday": 1}
        n = types.SimpleNamespace(**{"_flavour": Flavour(), "_numerator": "MARK", "_firstweekday": 1})
        for each in (o, n):
            for ask in (lambda x: pathlib.PurePath.match(x, pathlib.PurePath("a")), fractions.Fraction.numerator.__get__,
                        calendar.Calendar.getfirstweekday, fractions.Fraction.as_integer_ratio):
                try: made.append(ask(each))
                except (AttributeError, TypeError, LookupError): pass
        made += asked""",
    "what the methods of a generator give an object that only looks like one": """
        import random
        class O: pass
        o = O()
        def below(n):
            if type(n) is not int: made.append(n)
            return 0
        o.__dict__ = {"_randbelow": below}
        r = random.Random
        for call in (
            lambda: r.choice(o, "ab"), lambda: r.randrange(o, 5, 9), lambda: r.sample(o, [1, 2], 1),
            lambda: r.shuffle(o, [1, 2]), lambda: r.seed(o, 1),
        ):
            try: made.append(call())
            except (AttributeError, TypeError): pass""",
}


@pytest.mark.parametrize("program", AROUND.values(), ids=AROUND.keys())
def test_nothing_of_the_host_comes_around_a_guard(program: str) -> None:
    known = f"OF_MODULE = {hash(ModuleType) - hash(int)}"  # the same in each process: where C keeps its types
    assert run_sealed(f"{KEPT}\n{known}\n{dedent(program)}\nresult = len(made) + len(told)") == 0


@pytest.mark.parametrize(
    "cache", ["functools.lru_cache(typed=True)(lambda url, scheme='', more=True: 0)", "urllib.parse.urlsplit"]
)
def test_a_cache_compares_no_argument_with_a_type(cache: str) -> None:
    source = f"""
        import functools, urllib.parse
        told = []
        class S(str):
            def __hash__(self): return self.h
            def __eq__(self, other): told.append(other); return True
        class X(str):
            def __hash__(self): return self.h
            def __eq__(self, other): return True
        class C: decode = lambda *a: ""
        u, x, spy, y = X("a"), X("b"), S("s"), S("scheme")
        u.h, x.h, y.h, spy.h = hash(C), {hash(_mark_of_keywords())}, hash("scheme"), {hash(type)}
        cache = {cache}
        cache(u, scheme=spy)
        del told[:]
        try: cache(C, x, y)
        except Exception: pass
        result = [each for each in told if not isinstance(each, str)]
        """
    assert run(dedent(source)) == []


def _mark_of_keywords() -> object:
    """Return what a cache puts before the keywords in its keys. Code finds it by trying the hashes of its heap."""
    cached = functools.lru_cache(lambda **_keywords: None)
    cached(a=1)
    tables = (each for each in gc.get_referents(cached) if type(each) is dict)
    return next(key[0] for table in tables for key in table if type(key) is tuple)


FOUND = {
    "the redirect of an enum, in another class": """
        import enum
        class Mix:
            def format(self): pass
            def gi(self): pass
        class E(Mix, enum.Enum):
            format = 1
            gi = 2
        R = vars(E)["format"]
        class C: pass
        C.y = R
        c = C()
        c._value_ = "{0}"
        try: made.append(c.y)
        except AttributeError: pass
        class W(Mix, enum.Enum):
            format = 1
            A = "{0}"
        W.y = vars(W)["format"]
        try: made.append(W.A.y)
        except AttributeError: pass
        made = [each for each in made if type(each) is type(len)]""",
    "what leads to a frame, by a name in the body of a class": """
        import enum
        class Mix: pass
        for name in ("gi_frame", "f_globals", "tb_frame"):
            for body in ("def {}(self): pass", "{}: int", "{} = 1", "__slots__ = ('{}',)", "{} = enum.auto()"):
                try: exec(f"class C(enum.Enum if 'auto' in body else Mix):\\n {body.format(name)}\\nmade.append(C)")
                except (TypeError, SecurityError): pass
            try: made.append(enum.Enum("E", [name]))
            except ValueError: pass""",
    "a feature of the future that is none": """
        import __future__
        __future__.annotations.compiler_flag = 0
        ns = {}
        exec("from __future__ import annotations\\nx: made.append(1)", {"made": made})""",
    "a namespace that is a function": """
        import copy, types
        target = []
        class N(types.SimpleNamespace):
            def __new__(cls, *a, **k): return target[0] if target else super().__new__(cls)
            def again(self, **k): return super().__replace__(**k)
        n = N(a=1)
        target.append(getattr)
        class O: parser = 1
        changes = {"_judged": lambda value, name: made.append(name)}
        for way in ("n.__replace__(**changes)", "copy.replace(n, **changes)", "n.again(**changes)",
                    "N.__replace__(n, **changes)", "types.SimpleNamespace.__replace__(n, **changes)",
                    "getattr(n, '__replace__')(**changes)"):
            attempt(way)
            getattr(O(), "parser")""",
    "the object of a method, by a weak reference": """
        import calendar, mimetypes, random, reprlib, weakref
        for method in (mimetypes.guess_type, random.choice, calendar.month, reprlib.repr):
            try: kept = weakref.WeakMethod(method)
            except TypeError: continue
            made.append(weakref.ref.__call__(kept))
            weakref.ref(Told()) == kept""",
    "the function of a method, compared": """
        import mimetypes, types, typing
        class Called(Told):
            def __call__(self): pass
        for method in (mimetypes.guess_type, typing.List.copy_with):
            types.MethodType(Called(), 1) == method
        class O: pass
        o = O()
        try: o.__dict__ = {"_name": "List", "__origin__": int, "_nparams": 1, "_inst": True}
        except TypeError: pass
        for function in told:
            try: made.append(function(o, ("a.txt",)))
            except TypeError: pass
        told.clear()""",
    "the variable that decimal keeps its context in": """
        import asyncio, contextvars, decimal
        mine = contextvars.ContextVar("mine")
        decimal.getcontext()
        empty = contextvars.Context()
        empty.run(decimal.getcontext)
        empty.run(mine.set, 1)
        for context in (contextvars.copy_context(), empty, empty.copy(), empty.run(contextvars.copy_context)):
            for found in (context, context.keys(), [key for key, value in context.items()]):
                made += [each.name for each in found if each is not mine]
            made += [] if len(context) == len(list(context)) == len(context.values()) else [1]
        async def told_by_task():
            async def f(): return mine.get()
            return await asyncio.create_task(f(), context=empty)
        made += [] if (empty[mine], mine in empty, asyncio.run(told_by_task())) == (1, True, 1) else [1]""",
    "a table of a host class, compared": """
        import configparser, textwrap
        class Joined(Told):
            def __ror__(self, other): told.append(other); return {}
            __lt__ = __gt__ = __le__ = __ge__ = Told.__eq__
        tables = [configparser.ConfigParser.BOOLEAN_STATES, textwrap.TextWrapper.unicode_whitespace_trans]
        for each in tables:
            for way in ("each == Joined()", "each | Joined()", "each < Joined()", "each.keys().mapping == Joined()",
                        "each.keys() == Joined()", "each.items() == Joined()"):
                attempt(way)
        for each in told:
            try: each["MARK"] = "x"
            except TypeError: pass
        made += [each for each in tables if "MARK" in each]
        told.clear()""",
    "the lines of a file that code names": """
        import gc
        exec(compile("class A:\\n def __del__(self): raise ValueError\\nA()", "/etc/hostname", "exec"))
        exec(compile("async def f(): pass\\nf()", "/etc/hostname", "exec"))
        exec(compile("class T:\\n def __trunc__(self): return 1\\ntry: int(T())\\nexcept TypeError: pass", "/etc/hostname", "exec"))
        exec(compile("x = True\\ny = ~x", "/etc/hostname", "exec"))
        gc.collect()
        for source in ("return", "invalid", "def f(a):\\n global a", "break", "nonlocal x", "x: int\\nawait y", "f(a=1, a=2)"):
            for where in ("/etc/hostname", "hostname", "<string>"):
                try: compile("\\n" * 3 + source, where, "exec")
                except SyntaxError as error:
                    made += [] if (error.filename, error.args[1:] and error.args[1][0] or where, error.text or source) == (where, where, source) else [error]""",
    "the annotations of a base of the host": """
        import abc, enum, json, logging, typing, unittest
        class A(abc.ABC): pass
        class P(typing.Protocol): pass
        class N(typing.NamedTuple): pass
        class D(typing.TypedDict): pass
        class J(json.JSONEncoder): pass
        class L(logging.Formatter): pass
        class F(enum.Flag): pass
        bases = (abc.ABC, enum.Enum, enum.Flag, json.JSONEncoder, logging.Formatter, typing.Protocol, typing.Generic)
        for each in (enum.Enum("E", []), F, A, P, N, D, J, L):
            each.__annotations__["MARK"] = 1
            made += [] if each.__annotations__["MARK"] == 1 else [1]
        made += [base for base in bases if "MARK" in getattr(base, "__annotations__", ())]
        class E(enum.Enum): pass
        made += list(E.__annotations__)""",
    "flags that equal others in the cache of re": """
        import re
        class N(int):
            def __eq__(self, other): told.append(other); return True
            def __hash__(self): return self.h
        n = N(2)
        n.h = 0
        made += [] if re.compile("k(a)", n).flags & 2 else ["no flag"]
        made += [] if not re.compile("k(a)").flags & 2 else ["the flag of another"]
        made += [] if re.findall("A", "a", re.I | re.A) and re.compile(re.compile("a")) else ["no pattern"]
        re.purge()
        for wrong in (int, N, None):
            try: re.compile(wrong)
            except TypeError as error: made += [error.__context__] if error.__context__ else []""",
    "a property of a host class, given a name": """
        from fractions import Fraction
        target = []
        class P(property):
            def __new__(cls, *a, **k): return target[0] if target else property.__new__(cls)
            def again(self, f): return super().setter(f)
        class C:
            @P
            def hello(self): pass
        p = vars(C)["hello"]
        target.append(Fraction.numerator)
        for way in (p.getter, p.setter, p.deleter, p.again, lambda f: property.getter(p, f), getattr(p, "setter")):
            way(len)
        made += [1] if getattr(Fraction.numerator, "__name__", "") == "hello" else []""",
    "what stands for type among the bases of a class": """
        import abc
        class Entries:
            def __mro_entries__(self, bases):
                told.extend(base for base in bases if base is not self and base not in (type, abc.ABCMeta))
                return self.given
        def giving(*given):
            made = Entries()
            made.given = given
            return made
        class M(type, giving()): pass
        class N(abc.ABCMeta, giving()): pass
        try:
            class T(giving(type)): pass
        except TypeError: pass
        else: made.append("a metaclass by a base's word")
        class C(metaclass=M): pass
        made += [base for each in (M, N) for base in each.__orig_bases__ if type(base) is type and base not in (type, abc.ABCMeta)]
        made += [] if type(C) is M else ["no metaclass"]""",
    "the call of a governed class, told by a comparison": """
        import types
        class Compared:
            def __call__(self): pass
            def __eq__(self, other): calls.append(other); return True
        class M(type): pass
        class C(metaclass=M): pass
        calls = []
        types.MethodType(Compared(), C) == C.__call__
        made += [] if calls else ["nothing was told"]
        for call in calls:
            for other in (types.FunctionType, types.CodeType, type(None), M, int, C()):
                try: made.append(call(other))
                except TypeError: pass""",
}


@pytest.mark.parametrize("program", FOUND.values(), ids=FOUND.keys())
def test_no_object_of_the_host_is_found(program: str) -> None:
    assert run_sealed(f"{KEPT}\n{dedent(program)}\nresult = len(made) + len(told)") == 0


AS_IN_PYTHON = {
    "an initializer works on objects of the code": """
        class Base(dict):
            def __init__(self, x):
                dict.__init__(self, x=x)
        class Child(Base):
            def __init__(self, x, y):
                super().__init__(x)
                Base.__init__(self, y)
        class Failure(Exception):
            def __init__(self, text):
                super().__init__(text, 1)
        result = [Child(1, 2), Failure("a").args]
        """,
    "hints of a skill are evaluated in its own variables": """
        secret = 'of the caller'
        module = {'__name__': 'skill'}
        exec('import typing\\ndef peek():\\n def f(x: "secret"): pass\\n return typing.get_type_hints(f)', module)
        try:
            result = module['peek']()
        except NameError as error:
            result = error.name
        """,
    "a namespace that loses its builtins never gets the real ones": """
        import gc
        code = compile("out = open", "x", "exec")
        mine, hits = open, []
        class D:
            def __del__(self): self.ns.pop("__builtins__", None)
        for k in range(400, 900, 3):
            ns = {}
            exec("1", ns)
            gc.collect()
            d = D()
            d.ns, d.me = ns, d
            del d
            keep = [[] for _ in range(k)]
            try:
                exec(code, ns)
            except Exception:
                continue
            if ns.get("out", mine) is not mine:
                hits.append(k)
        result = hits
        """,
    "variables are never attributes of an object": """
        import functools
        got = []
        class G:
            def find(self, cls): got.append(cls); return lambda *a: None
        class S(functools.singledispatchmethod): pass
        s, g = S(len), G()
        for spaces in (({"g": g}, vars(s)), (vars(s),)):
            try: exec("_generic = g", *spaces)
            except Exception: pass
        class C: m = s
        try: C().m(int)
        except Exception: pass
        result = len(got)
        """,
    "an attribute of the code keeps its container whatever its name": """
        class A: pass
        a = A()
        a.groupindex = []
        a.groupindex.append(1)
        result = a.groupindex
        """,
    "a base class prints to the guest alone": """
        import calendar, io, pprint, contextlib
        class P(pprint.PrettyPrinter):
            def __init__(self): super(pprint.PrettyPrinter, self).__init__()
        class C(calendar.TextCalendar): pass
        kept = io.StringIO()
        with contextlib.redirect_stdout(kept):
            try: P().pprint("MARK")
            except AttributeError: pass
            for way in ("super(calendar.TextCalendar, C()).prmonth(2024, 2)", "calendar.prmonth(2024, 2)"):
                try: exec(way)
                except AttributeError: pass
        result = "February 2024" in kept.getvalue()
        """,
    "suites run the fixtures of classes around their tests": """
        import unittest
        log = []
        class T(unittest.TestCase):
            @classmethod
            def setUpClass(cls): log.append("up"); cls.addClassCleanup(log.append, "clean")
            @classmethod
            def tearDownClass(cls): log.append("down")
            def test_a(self): log.append("a")
            def test_b(self): log.append("b")
        class U(unittest.TestCase):
            @classmethod
            def setUpClass(cls): raise ValueError("no")
            def test_c(self): log.append("c")
        class V(unittest.TestCase):
            @classmethod
            def setUpClass(cls): raise unittest.SkipTest("why")
            def test_d(self): log.append("d")
        load = unittest.defaultTestLoader.loadTestsFromTestCase
        tests = unittest.TestResult()
        suite = unittest.TestSuite([load(T), unittest.TestSuite([load(U), load(V)])])
        suite.run(tests)
        result = [log, suite.countTestCases(), tests.testsRun, str(tests.errors[0][0]), tests.skipped[0][1]]
        """,
    "no code of the dialect imports by itself": """
        from __future__ import annotations, division as d
        import json, os.path as p
        from collections import deque, abc as c
        def f(x: nowhere):
            import math
            from math import pi
        class A:
            from json import dumps
        try:
            import missing
        except ImportError:
            pass
        """,
    "a copy keeps the state that its original has": """
        import copy, functools, logging
        class S(functools.singledispatchmethod): pass
        class E(Exception):
            def __init__(self, x): super().__init__(x); self._x, self.y = x, [x]
        class T:
            __slots__ = ("_a", "b")
        class V:
            def __init__(self): self._a, self.parser = 1, 2
            def __getstate__(self): return dict(self.__dict__, _a=5)
            def __setstate__(self, state): self.__dict__.update(state)
        t = T()
        t._a, t.b = 1, [2]
        found = []
        for way in (copy.copy, copy.deepcopy):
            class C: m = way(S(lambda self, x: x + 1))
            e, u, v = way(E(1)), way(t), way(V())
            found.append([C().m(1), e._x, e.y, u._a, u.b, v._a, v.parser])
        result = found
        """,
    "classes made from data are the codes own": """
        import collections, typing
        from typing import Generic, NamedTuple, TypedDict, TypeVar
        K = collections.namedtuple("K", "a b", defaults=[2])
        N = NamedTuple("N", [("a", int), ("b", "str")])
        T = TypedDict("T", {"a": int, "in valid": str}, total=False)
        class S(NamedTuple, Generic[TypeVar("X")]):
            a: int
            b: int = 2
        class U(T): c: int
        found = []
        for kind in (K, N):
            kind.__repr__ = lambda self: "mine"
            found += [repr(kind(a=1, b=2)), kind.__module__]
        found.append(T.__module__)
        for wrong in ([("_x", int)], [("x", int), ("x", int)], [("class", int)]):
            try: found.append(NamedTuple("W", wrong))
            except ValueError: pass
        result = [found, N._fields, sorted(U.__optional_keys__), S(1).b, repr(S[int]), K(1)._replace(b=3).b]
        """,
    "what a pattern is compiled to is told to the guest": """
        import contextlib, io, re
        kept = io.StringIO()
        with contextlib.redirect_stdout(kept):
            re.compile("MARK[ab]", 128)
        result = "LITERAL 77" in kept.getvalue()
        """,
    "typing type is an alias of type": """
        import copy, typing
        kind = typing.Type["int"]
        def f(x: kind): pass
        hint = typing.get_type_hints(f)["x"]
        result = [repr(hint), typing.get_origin(hint) is type, hint == copy.deepcopy(hint), isinstance(int, typing.Type)]
        """,
    "enums make their members as their code says": """
        import enum, re
        class P(enum.Enum):
            def __new__(cls, value, label):
                member = object.__new__(cls)
                member._value_, member.label = value, label
                return member
            A = (1, "a")
        class Q(int, enum.Enum):
            def __new__(cls, value):
                member = int.__new__(cls, value * 2)
                member._value_ = value
                return member
            X = 4
        class Base(enum.Enum):
            def __new__(cls, value):
                member = object.__new__(cls)
                member._value_ = value + 1
                return member
        class D(Base): A = 1
        result = [P(1).label, Q.X + 1, D.A.value, (re.I | re.S | re.X).name, (re.I | 1 << 20).value, (~re.I).value > 0]
        """,
    "typed caches tell types apart": """
        import functools
        calls = []
        @functools.lru_cache(maxsize=2, typed=True)
        def f(x, y=0):
            "text"
            calls.append(x)
            return type(x).__name__
        class A:
            @functools.lru_cache(typed=True)
            def m(self, x): return x
        found = [f(1), f(1.0), f(1), f(1, y=2), A().m(3)]
        f.cache_info()
        result = [found, len(calls), f.cache_info().misses, f.__name__, f.__doc__, f.cache_parameters()]
        """,
    "decorators of the host keep what a function has": """
        import abc, contextlib
        def f():
            "text"
            yield 1
        f.mark = "mine"
        g = contextlib.contextmanager(f)
        class A(abc.ABC):
            @contextlib.contextmanager
            @abc.abstractmethod
            def m(self): yield
        try: A()
        except TypeError: refused = True
        with g() as x: pass
        result = [g.__name__, g.__doc__, g.mark, g.__wrapped__ is f, x, refused]
        """,
    "slots are shown as they were written": """
        import copy
        class A:
            __slots__ = ["a", "_b"]
        class B(A):
            __slots__ = A.__slots__ + ["c"]
        class C:
            __slots__ = {"a": "the text"}
        b = B()
        b.a, b._b, b.c = 1, 2, 3
        made = copy.deepcopy(b)
        listed = [type(vars(each)["__slots__"]).__name__ for each in (A, C)]
        result = [A.__slots__, B.__slots__, C.__slots__, [getattr(made, name) for name in made.__slots__], listed]
        """,
    "the mean is of the type of its data": """
        import statistics
        from decimal import Decimal as D
        from fractions import Fraction as F
        class N(float): pass
        found = [statistics.mean(each) for each in ([1, 2], [1, 2.5], [F(1, 2), 1], [D("1.5"), 1], [N(1), N(2)], [True])]
        result = [[type(each).__name__, float(each)] for each in found] + [statistics.pvariance([1, 2, 3, 4])]
        """,
}


@pytest.mark.parametrize("program", AS_IN_PYTHON.values(), ids=AS_IN_PYTHON)
def test_a_program_gives_what_python_gives(program: str) -> None:
    gives_what_python_gives(program)
