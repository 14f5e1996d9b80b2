"""What host code hands to guest code: to a method that the guest defines, a memo, a default, or a copied dictionary.

Each program leaves what it was handed in `result`. It holds where that is nothing dangerous; a refusal holds too.
Programs of the same kinds that the attack corpus has are run from there.
"""

from __future__ import annotations

import functools
import gc
import json
import re
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest

from sealab.sandbox.dialect.compiling import compile_program

from ..guest_code import value_of as run
from ..sealed import gives_what_python_gives, run_sealed
from .test_capability_argument import reached

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
    "an __instancecheck__ set later": """
        import abc
        class A(abc.ABC): pass
        A.__subclasscheck__ = spy
        isinstance(int, A)
        result = Spy.seen""",
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


CORPUS = Path(__file__).parents[2] / "attacks" / "own_cases.jsonl"
PROGRAMS = {
    case["title"]: pytest.param(case["code"], int(case["id"][5:]), id=case["title"])
    for case in map(json.loads, CORPUS.read_text(encoding="utf-8").splitlines())
    if case["id"].startswith("O-SP-") and case["layer"] == "language"
}
_TRIED = "try: exec({!r})\nexcept Exception as error: result = type(error).__name__"
_FIRST_THAT_ENDS = 93
"""Those before it may end with a refusal, or since they were handed nothing that they could use."""


@pytest.mark.parametrize(("program", "number"), PROGRAMS.values())
def test_a_program_of_the_attack_corpus_gets_nothing_of_the_host(program: str, number: int) -> None:
    said = run_sealed(program if "\nawait " in program else _TRIED.format(program))
    held = "held" if number >= _FIRST_THAT_ENDS else r"held.*|3|SecurityError|TypeError|IndexError"
    assert re.fullmatch(held, said)


INITIALIZERS = {
    "of property": "property.__init__(Fraction.numerator, changed)",
    "of a subclass": "P.__init__(Fraction.numerator, changed)",
    "by getattr": "getattr(Fraction.numerator, '__init__')(changed)",
    "by an own super": "exec('super().__init__(changed)', {'super': lambda: Fraction.numerator, 'changed': changed})",
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


@pytest.mark.parametrize("source", ["x = 1\nfrom __future__ import annotations", "from __future__ import nothing"])
def test_features_of_the_future_stand_first_and_exist(source: str) -> None:
    with pytest.raises(SyntaxError):
        compile_program(source)


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
