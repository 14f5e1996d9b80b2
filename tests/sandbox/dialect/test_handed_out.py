"""What host code hands to guest code: to a method that the guest defines, a memo, a default, or a copied dictionary.

Each program leaves what it was handed in `result`. It holds where that is nothing dangerous; a refusal holds too.
Programs that can say so themselves stand in the attack corpus, and are run from there.
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
PROGRAMS = [
    pytest.param(case["code"], int(case["id"][5:]), id=f"{case['id']} {case['title']}")
    for case in map(json.loads, CORPUS.read_text(encoding="utf-8").splitlines())
    if case["id"].startswith("O-SP-") and case["layer"] == "language"
]
_TRIED = "try: exec({!r})\nexcept Exception as error: result = type(error).__name__"
_FIRST_THAT_ENDS = 93
"""Those before it may end with a refusal, or since they were handed nothing that they could use."""


@pytest.mark.parametrize(("program", "number"), PROGRAMS)
def test_a_program_of_the_attack_corpus_gets_nothing_of_the_host(program: str, number: int) -> None:
    said = run_sealed(program if "\nawait " in program else _TRIED.format(program))
    held = "held" if number >= _FIRST_THAT_ENDS else r"held.*|3|SecurityError|TypeError|IndexError"
    assert re.fullmatch(held, said)


def test_tables_that_a_module_gives_are_copies() -> None:
    source = """
        import difflib
        exec("x = 1", difflib.Match._field_defaults.copy())
        try:
            difflib.Match._field_defaults["x"] = 1
        except TypeError:
            pass
        result = dict(difflib.Match._field_defaults)
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


@pytest.mark.parametrize("source", ["x = 1\nfrom __future__ import annotations", "from __future__ import nothing"])
def test_features_of_the_future_stand_first_and_exist(source: str) -> None:
    with pytest.raises(SyntaxError):
        compile_program(source)


@pytest.mark.parametrize(
    "kind",
    [
        "_sqlite3._sealab_sqlite.Database",
        "_sqlite3._sealab_sqlite.Results",
        "contextvars.ContextVar",
        "contextvars.Token",
        "dataclasses.Field",
    ],
)
def test_no_class_derives_from_one_that_has_to_be_its_own_not_even_with_a_base_that_answers_for_it(kind: str) -> None:
    source = f"""
        import _sqlite3, contextvars, dataclasses
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
        import _sqlite3
        database = _sqlite3._sealab_sqlite.Database(b"", 0)
        result = []
        def again(x):
            for call in (lambda: type(database).__init__(database, b"", 0)), (lambda: database.__init__(b"", 0)), database.close:
                try: result.append(call())
                except Exception as error: result.append(type(error).__name__)
            return x
        database.create_function("again", 1, again, False)
        result.append(database.execute("select again(1)", [], False, {}, list).fetch(1))
        """
    assert run_sealed(source) == ["SecurityError", "SecurityError", "ProgrammingError", [[1]]]


def test_rows_of_a_database_may_hold_what_has_to_be_adapted_among_what_it_has() -> None:
    source = """
        import sqlite3
        sqlite3.register_adapter(complex, str)
        database = sqlite3.connect(":memory:")
        database.execute("create table t (a, b)")
        database.executemany("insert into t values (?, ?)", iter([(1, "x"), [2, True], (3, 1j), "ab"]))
        database.execute("insert into t values (?, ?)", [4, 2j])
        result = database.execute("select a, b from t").fetchall()
        """
    assert run_sealed(source) == [[1, "x"], [2, 1], [3, "1j"], ["a", "b"], [4, "2j"]]


def test_rows_of_a_database_are_those_that_were_given_whatever_code_does_to_them_meanwhile() -> None:
    source = """
        import sqlite3
        database = sqlite3.connect(":memory:")
        rows = [[1, "x"], [2, "y"]]
        def meddle(x):
            rows[1][1] = object()
            rows.append(None)
            return x
        database.create_function("meddle", 1, meddle)
        database.execute("create table t (a, b)")
        database.executemany("insert into t values (meddle(?), ?)", rows)
        class Ends:
            def __conform__(self, protocol): database.close()
        result = [database.execute("select * from t").fetchall()]
        try: database.executemany("insert into t values (?, ?)", [(3, "z"), (Ends(), "z")])
        except sqlite3.ProgrammingError as error: result.append(str(error))
        """
    assert run_sealed(source) == [[[1, "x"], [2, "y"]], "Cannot operate on a closed database."]


def test_a_database_in_memory_is_opened_without_what_files_need() -> None:
    source = """
        import sqlite3, sys
        sqlite3.connect(":memory:").close()
        result = [name for name in ("io", "os", "urllib.parse") if name in sys.modules]
        """
    assert run_sealed(source) == []


def test_rows_of_a_database_come_in_turn_however_they_are_asked_for() -> None:
    source = """
        import sqlite3
        database = sqlite3.connect(":memory:")
        database.row_factory = sqlite3.Row
        cursor = database.execute("select 1 as A, 'x' as b union all select 2, 'y' union all select 3, 'z' union all select 4, 'w'")
        one = cursor.fetchone()
        result = [one["a"], one.keys(), tuple(next(cursor)), [row["B"] for row in cursor.fetchmany(1)]]
        result += [[tuple(row) for row in cursor], cursor.fetchone(), cursor.fetchall(), one == one]
        result.append([row.keys() for row in cursor.execute("select 5 as c")])
        """
    assert run_sealed(source) == [1, ["A", "b"], [2, "y"], ["z"], [[4, "w"]], None, [], True, [["c"]]]


def test_a_cache_of_typing_compares_no_type_that_it_keeps() -> None:
    source = f"""
        import typing
        told = []
        class S:
            def __eq__(self, other): told.append(other); return False
            def __hash__(self): return hash(int) + {hash(ModuleType) - hash(int)}  # the same in each process
        for ask in (lambda s: typing.Union[s, str], lambda s: typing.Optional[s]):
            try: ask(S())
            except TypeError: pass
        result = [each.__name__ for each in told if isinstance(each, type) and each.__name__ == "module"]
        """
    assert run_sealed(source) == []


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
