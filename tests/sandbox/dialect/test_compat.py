"""Python as agents write it runs: each program checks itself."""

from __future__ import annotations

import sys
from textwrap import dedent

import pytest

from sealab.sandbox.dialect.compiling import compile_program, run_program
from sealab.sandbox.dialect.namespace import new_namespace
from sealab.sandbox.guest.guest import GUEST

PROGRAMS = {
    "private attributes and methods": """
        class Queue:
            _made = 0
            def __init__(self, items=()):
                self._items = list(items)
                self.__secret = 7
                Queue._made += 1
            def _push(self, item):
                self._items.append(item)
                return self
            def push(self, item):
                return self._push(item)
            @property
            def _size(self):
                return len(self._items)
            def __len__(self):
                return self._size
            def secret(self):
                return self.__secret
        q = Queue().push(1).push(2)
        assert len(q) == 2 and q._items == [1, 2] and q.secret() == 7 and q._Queue__secret == 7
        assert Queue._made == 1
        q._items += [3]
        q._items[0] -= 5
        assert getattr(q, "_items") == [-4, 2, 3] and hasattr(q, "_size") and not hasattr(q, "_nope")
        setattr(q, "_extra", 1)
        assert q._extra == 1 and vars(q)["_extra"] == 1 and "_extra" in dir(q)
        del q._extra
        delattr(q, "_items")
        assert not hasattr(q, "_items")
        try:
            q.__secret
        except AttributeError:
            pass
        else:
            raise AssertionError
        """,
    "two classes of one hierarchy keep their own double-underscore attributes apart": """
        class A:
            def __init__(self):
                self.__x = 1
            def a(self):
                return self.__x
        class B(A):
            def __init__(self):
                super().__init__()
                self.__x = 2
            def b(self):
                return self.__x
        b = B()
        assert (b.a(), b.b()) == (1, 2)
        assert b.__dict__ == {"_A__x": 1, "_B__x": 2}
        """,
    "ordinary dunder methods": """
        from functools import total_ordering
        @total_ordering
        class V:
            def __init__(self, x, y): self.x, self.y = x, y
            def __add__(self, o): return V(self.x + o.x, self.y + o.y)
            def __radd__(self, o): return self if o == 0 else NotImplemented
            def __iadd__(self, o): self.x += o.x; return self
            def __mul__(self, k): return V(self.x * k, self.y * k)
            __rmul__ = __mul__
            def __matmul__(self, o): return self.x * o.x + self.y * o.y
            def __neg__(self): return V(-self.x, -self.y)
            def __abs__(self): return (self @ self) ** 0.5
            def __eq__(self, o): return isinstance(o, self.__class__) and (self.x, self.y) == (o.x, o.y)
            def __lt__(self, o): return abs(self) < abs(o)
            def __hash__(self): return hash((self.x, self.y))
            def __bool__(self): return bool(self.x or self.y)
            def __iter__(self): yield self.x; yield self.y
            def __getitem__(self, i): return (self.x, self.y)[i]
            def __contains__(self, v): return v in (self.x, self.y)
            def __call__(self, k): return self * k
            def __repr__(self): return f"{type(self).__name__}({self.x!r}, {self.y!r})"
            def __str__(self): return self.__repr__()
            def __format__(self, spec): return f"<{self.x:{spec}}>"
            def __len__(self): return 2
            def __reversed__(self): return iter([self.y, self.x])
            def __index__(self): return self.x
            def __enter__(self): return self
            def __exit__(self, kind, error, tb): return kind is ZeroDivisionError
            def __del__(self): pass
        v = V(3, 4)
        assert abs(v) == 5 and v + V(1, 1) == V(4, 5) and 2 * v == V(6, 8) and sum([v, v]) == V(6, 8)
        assert list(v) == [3, 4] and 4 in v and v(2)[1] == 8 and repr(-v) == "V(-3, -4)" and f"{v:02d}" == "<03>"
        assert "{:>3}".format(v) == "<  3>" and sorted([V(2, 2), V(1, 1)])[0] == V(1, 1) and V(1, 0) <= v
        assert list(reversed(v)) == [4, 3] and [10, 20, 30, 40][v] == 40 and V.__add__(v, v) == V(6, 8)
        v += V(1, 0)
        assert v.x == 4 and v.__len__() == 2 and v.__class__.__name__ == "V" and {v: 1}[V(4, 4)] == 1
        with v:
            1 / 0
        """,
    "NamedTuple, namedtuple, TypedDict and Protocol": """
        from collections import namedtuple
        from typing import NamedTuple, TypedDict, Protocol, runtime_checkable
        class P(NamedTuple):
            x: int
            y: int = 2
            def _norm(self): return self.x + self.y
            def norm(self): return self._norm()
            def __str__(self): return f"P<{self.x}>"
        assert P(1)._replace(y=5)._asdict() == {"x": 1, "y": 5} and P(1).norm() == 3 and P._fields == ("x", "y")
        assert str(P(1)) == "P<1>" and P._make([1, 2]) == (1, 2)
        Q = namedtuple("Q", "a b", defaults=[3])
        assert Q(1).b == 3 and Q(1)._asdict() == {"a": 1, "b": 3}
        class Movie(TypedDict, total=False):
            name: str
            year: int
        m: Movie = {"name": "x"}
        assert m["name"] == "x" and Movie(name="y") == {"name": "y"}
        @runtime_checkable
        class Sized(Protocol):
            def size(self) -> int: ...
        class Box:
            def size(self): return 1
        assert isinstance(Box(), Sized) and not isinstance(3, Sized)
        """,
    "abstract classes": """
        from abc import ABC, ABCMeta, abstractmethod
        class Shape(ABC):
            @abstractmethod
            def area(self): ...
            @property
            @abstractmethod
            def name(self): ...
            def __str__(self): return f"{self.name} {self.area()}"
        class Square(Shape):
            def __init__(self, side): self._side = side
            def area(self): return self._side ** 2
            @property
            def name(self): return "square"
        class Other(metaclass=ABCMeta):
            @abstractmethod
            def f(self): pass
        assert str(Square(2)) == "square 4" and issubclass(Square, Shape)
        for cls in (Shape, Other):
            try:
                cls()
            except TypeError as error:
                assert "abstract" in str(error)
            else:
                raise AssertionError
        Shape.register(int)
        assert isinstance(3, Shape)
        """,
    "generics": """
        from typing import Generic, TypeVar, Optional, Union, Callable, Iterator, Any, ClassVar, Final, Literal
        T = TypeVar("T")
        class Stack(Generic[T]):
            limit: ClassVar[int] = 3
            def __init__(self) -> None:
                self._items: list[T] = []
            def push(self, item: T) -> "Stack[T]":
                self._items.append(item)
                return self
            def pop(self) -> Optional[T]:
                return self._items.pop() if self._items else None
            def __iter__(self) -> Iterator[T]:
                return iter(self._items)
            def __class_getitem__(cls, item): return super().__class_getitem__(item)
        s: Stack[int] = Stack[int]().push(1)
        assert s.pop() == 1 and s.pop() is None
        def apply(f: Callable[[int], int], x: int | None = None, *a: Any, **k: "dict[str, int]") -> Union[int, str]:
            return f(x or 0)
        MODE: Final = "r"
        def kind(x: type[int], y: Literal["a"]) -> type: return x
        assert apply(lambda v: v + 1, 2) == 3 and kind(int, "a") is int
        """,
    "descriptors": """
        class Positive:
            def __set_name__(self, owner, name):
                self.public = name
                self.private = "_" + name
            def __get__(self, obj, owner=None):
                return self if obj is None else getattr(obj, self.private, None)
            def __set__(self, obj, value):
                if value <= 0: raise ValueError(f"{self.public} must be positive")
                setattr(obj, self.private, value)
            def __delete__(self, obj):
                delattr(obj, self.private)
        class Order:
            count = Positive()
            _rank = Positive()
            def __init__(self, count):
                self.count = count
                self._rank = 9
        o = Order(3)
        assert o.count == 3 and o._count == 3 and o._rank == 9 and Order._rank.public == "_rank"
        try:
            o.count = -1
        except ValueError as error:
            assert str(error) == "count must be positive"
        del o.count
        assert o.count is None
        class lazy:
            def __init__(self, f): self.f = f
            def __get__(self, obj, owner):
                value = self.f(obj)
                obj.__dict__[self.f.__name__] = value
                return value
        calls = []
        class L:
            @lazy
            def data(self):
                calls.append(1)
                return 5
        x = L()
        assert (x.data, x.data, calls) == (5, 5, [1])
        """,
    "attribute interception": """
        class Record:
            def __init__(self, **kw):
                self.__dict__.update(kw)
            def __getattr__(self, name):
                if name.startswith("_"):
                    raise AttributeError(name)
                return f"no {name}"
            def __setattr__(self, name, value):
                if name == "_locked":
                    raise AttributeError("locked")
                super().__setattr__(name, value)
            def __delattr__(self, name):
                object.__delattr__(self, name)
        r = Record(a=1, _b=2)
        assert r.a == 1 and r._b == 2 and r.zzz == "no zzz"
        assert not hasattr(r, "_nothing")
        r._c = 3
        assert r.__dict__ == {"a": 1, "_b": 2, "_c": 3}
        del r._c
        try:
            r._locked = 1
        except AttributeError as error:
            assert str(error) == "locked"
        else:
            raise AssertionError
        class Proxy:
            def __init__(self, target): object.__setattr__(self, "_target", target)
            def __getattr__(self, name): return getattr(self._target, name)
            def __setattr__(self, name, value): setattr(self._target, name, value)
        p = Proxy(r)
        p.new = 4
        assert p.a == 1 and r.new == 4 and p._b == 2
        class Traced:
            log = []
            def __init__(self): self.x = 1
            def __getattribute__(self, name):
                if name != "log":
                    Traced.log.append(name)
                return object.__getattribute__(self, name)
        t = Traced()
        t.x, t._private if hasattr(t, "_private") else None
        assert Traced.log == ["x", "_private"], Traced.log
        """,
    "slots": """
        class P:
            __slots__ = ("x", "_y", "__z")
            def __init__(self): self.x, self._y, self.__z = 1, 2, 3
            def z(self): return self.__z
        p = P()
        assert (p.x, p._y, p.z()) == (1, 2, 3)
        try:
            p.other = 1
        except AttributeError:
            pass
        else:
            raise AssertionError
        class Q(P):
            __slots__ = "w"
        q = Q(); q.w = 1
        assert q.w == 1
        """,
    "singletons, registries and __init_subclass__": """
        class Singleton:
            _instance = None
            def __new__(cls, *args, **kwargs):
                if cls._instance is None:
                    cls._instance = super().__new__(cls)
                return cls._instance
        assert Singleton() is Singleton()
        class Plugin:
            registry = {}
            def __init_subclass__(cls, /, key=None, **kwargs):
                super().__init_subclass__(**kwargs)
                cls.registry[key or cls.__name__] = cls
        class A(Plugin, key="a"): pass
        class B(Plugin): pass
        assert Plugin.registry == {"a": A, "B": B} and Plugin.__subclasses__() == [A, B]
        class Borg:
            _shared = {}
            def __init__(self): self.__dict__ = self._shared
        one, two = Borg(), Borg()
        one.x = 1
        assert two.x == 1
        class State:
            def go(self): self.__class__ = Done
        class Done(State): pass
        s = State(); s.go()
        assert type(s) is Done
        """,
    "decorators": """
        import functools, time
        def timed(f):
            @functools.wraps(f)
            def wrapper(*args, **kwargs):
                wrapper.calls += 1
                return f(*args, **kwargs)
            wrapper.calls = 0
            return wrapper
        def repeat(n):
            def decorate(f):
                def inner(*a, **k): return [f(*a, **k) for _ in range(n)]
                inner.__name__ = f.__name__
                inner.__doc__ = f.__doc__
                return inner
            return decorate
        @timed
        def add(a, b=1):
            "adds"
            return a + b
        @repeat(2)
        def hi(): "says hi"; return "hi"
        assert add(1) == 2 and add.calls == 1 and add.__name__ == "add" and add.__doc__ == "adds"
        assert add.__wrapped__(1, 1) == 2 and hi() == ["hi", "hi"] and hi.__name__ == "hi"
        class Memo:
            def __init__(self, f): self.f = f; self._cache = {}; functools.update_wrapper(self, f)
            def __call__(self, n):
                if n not in self._cache: self._cache[n] = self.f(n)
                return self._cache[n]
            def __get__(self, obj, owner): return functools.partial(self, obj)
        @Memo
        def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
        assert fib(50) == 12586269025 and fib.__name__ == "fib"
        def with_repr(cls):
            def _repr(self): return f"<{cls.__name__} {self.__dict__}>"
            cls.__repr__ = _repr
            cls.extra = 1
            return cls
        @with_repr
        class K:
            def __init__(self): self._v = 1
        assert repr(K()) == "<K {'_v': 1}>" and K.extra == 1
        @functools.lru_cache(maxsize=None)
        def slow(n): return n * 2
        assert slow(2) == 4 and slow.cache_info().misses == 1
        class T:
            @functools.cached_property
            def _big(self): return [1]
            @staticmethod
            def _s(): return 1
            @classmethod
            def _c(cls): return cls.__name__
        t = T()
        assert t._big is t._big and T._s() == 1 and t._c() == "T"
        """,
    "scopes": """
        counter = 0
        _private = 1
        def bump():
            global counter, _private
            counter += 1
            _private = _private + 1
        bump(); bump()
        assert counter == 2 and _private == 3
        def make():
            n = 0
            def inc(by=1, /, *, _extra=0, **_kw):
                nonlocal n
                n += by + _extra
                return n
            return inc
        inc = make(); inc(); inc(2, _extra=3)
        assert inc(_z=1) == 7
        class Scope:
            _a = 1
            _b = _a + 1
            c = [x for x in range(_b)]
            for _i in range(3): pass
            if _b == 2:
                def _f(self): return self._b
            _g = lambda self: self._f()
        assert Scope()._g() == 2 and Scope._i == 2
        x = 10
        f = lambda _x=x, *_a, **_k: (_x, _a, _k)
        assert f(1, 2, z=3) == (1, (2,), {"z": 3})
        def outer():
            class Local:
                def get(self): return __class__.__name__
            return Local().get()
        assert outer() == "Local"
        """,
    "unpacking, walrus and comprehensions": """
        (a, (b, *c)), d = (1, (2, 3, 4)), 5
        assert (a, b, c, d) == (1, 2, [3, 4], 5)
        first, *_, last = range(5)
        [x, y], z = [1, 2], 3
        assert (first, last, x, y, z) == (0, 4, 1, 2, 3)
        assert [y for v in (1, 5) if (y := v * 2) > 5] == [10]
        m = {k: v for k, v in zip("ab", (1, 2))}
        assert {**m, "c": 3} == {"a": 1, "b": 2, "c": 3} and [*m, *"xy"] == ["a", "b", "x", "y"]
        grid = [[0] * 3 for _ in range(2)]
        grid[0][1] += 5
        grid[1][:2] = [8, 9]
        del grid[1][0], m["a"]
        assert grid == [[0, 5, 0], [9, 0]] and m == {"b": 2} and {x % 2 for x in range(4)} == {0, 1}
        class O: pass
        o = O()
        o.a, o._b = 1, 2
        o.a += 1; o._b **= 3; o.l = [1]; o.l[0] |= 6; o.s = "x"; o.s *= 3
        for o.i in range(3): pass
        assert (o.a, o._b, o.l, o.s, o.i) == (2, 8, [7], "xxx", 2)
        t: tuple[int, ...] = (1,)
        u: int
        o.typed: int = 4
        assert t[0] == 1 and o.typed == 4
        i = j = 3
        i, j = j + 1, i
        assert (i, j) == (4, 3) and 1 < 2 < 3 != 4
        """,
    "match": """
        from dataclasses import dataclass
        import math
        @dataclass
        class P:
            x: int
            _y: int = 0
        class Q:
            __match_args__ = ("a", "_b")
            def __init__(self, a, b): self.a, self._b = a, b
        def f(v):
            match v:
                case 0 | 1: return "small"
                case -1.5: return "neg"
                case "a" | b"b": return "ab"
                case None: return "none"
                case math.pi: return "pi"
                case [1, 2, *rest]: return rest
                case {"op": "add", "args": [x, y], **others}: return x + y + len(others)
                case P(x=0, _y=n): return ("zero", n)
                case P(x, n): return ("p", x, n)
                case Q(a, b) if a == b: return "same"
                case Q(a=1): return "q1"
                case str() as s if len(s) > 2: return s.upper()
                case int(n) | float(n): return n + 1
                case (x, _): return x
                case _: return "other"
        assert [f(v) for v in (1, -1.5, "a", None, math.pi, [1, 2, 3, 4])] == ["small", "neg", "ab", "none", "pi", [3, 4]]
        assert f({"op": "add", "args": [1, 2], "z": 0}) == 4 and f(P(0, 7)) == ("zero", 7) and f(P(5)) == ("p", 5, 0)
        assert f(Q(3, 3)) == "same" and f(Q(1, 2)) == "q1" and f("abc") == "ABC" and f(9) == 10 and f((8, 9)) == 8
        assert f("zz") == "other"
        """,
    "imports of every form": """
        import collections.abc
        import os.path as p
        import json as j, math
        from collections import Counter, OrderedDict as OD
        from collections.abc import Iterable
        from math import *
        try:
            import numpy as np
        except ImportError:
            np = None
        try:
            from nowhere import thing
        except (ImportError, AttributeError) as error:
            thing = str(error)
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            import pandas
        def inner():
            from statistics import mean
            return mean([1, 3])
        class Holder:
            import string as _s
            letters = _s.ascii_lowercase[:2]
        assert np is None and "nowhere" in thing and sqrt(4) == 2 and inner() == 2 and Holder.letters == "ab"
        assert isinstance([], collections.abc.Iterable) and isinstance([], Iterable) and p.join("a", "b") == "a/b"
        assert j.loads("[1]") == [1] and Counter("aab").most_common(1) == [("a", 2)] and OD(a=1)["a"] == 1
        """,
    "postponed annotations": """
        from __future__ import annotations
        from dataclasses import dataclass
        @dataclass
        class Node:
            value: int
            next: Node | None = None
            _tag: Undefined = None
        def f(x: Missing[int]) -> list[Node]: ...
        n = Node(1, Node(2))
        assert n.next.value == 2 and f.__annotations__ == {"x": "Missing[int]", "return": "list[Node]"}
        """,
    "class attributes with unusual names": """
        class Model:
            __tablename__ = "models"
            __abstract = True
            def __repr_args__(self): return [self.__tablename__]
        assert Model.__tablename__ == "models" and Model().__repr_args__() == ["models"] and Model._Model__abstract
        class Config:
            format = "json"
            parser = None
            def get_context(self): return {"a": self.format}
            def mro(self): return 1
        c = Config()
        c.obj = [1]
        c.obj += [2]
        c.format += "x"
        assert c.get_context() == {"a": "jsonx"} and c.obj == [1, 2] and c.parser is None and c.mro() == 1
        """,
    "subclasses of builtins": """
        from collections import UserDict, UserList, defaultdict
        class D(dict):
            def __missing__(self, key): return key * 2
            def __getattr__(self, name):
                try: return self[name]
                except KeyError: raise AttributeError(name)
            def __setitem__(self, k, v): super().__setitem__(k, v + 1)
        d = D(); d["a"] = 1
        assert d["a"] == 2 and d["zz"] == "zzzz" and d.a == 2
        class L(list):
            def _sum(self): return sum(self)
        assert L([1, 2])._sum() == 3
        class I(int):
            def __new__(cls, v): return super().__new__(cls, v * 2)
            def __add__(self, o): return I(int(self) + o)
        assert I(2) == 4
        class U(UserDict):
            def __setitem__(self, k, v): super().__setitem__(str(k), v)
        u = U(); u[1] = 2
        assert u["1"] == 2 and u.data == {"1": 2}
        class S(str):
            def shout(self): return self.upper() + "!"
        assert S("a").shout() == "A!" and S("{}").format(1) == "1"
        """,
}

NEWER_PROGRAMS = {
    "type parameters": """
        from typing import Protocol
        type Pair[T] = tuple[T, T]
        type _Hidden = int
        def first[T](items: list[T]) -> T: return items[0]
        class Many[*Ts, **P]: pass
        class Box[T: (int, str)]:
            def __init__(self, value: T) -> None: self._value = value
            def get(self) -> T: return self._value
            def map[U](self, f) -> "Box[U]": return Box(f(self._value))
        assert first([1]) == 1 and Box[int](3).map(str).get() == "3" and Pair.__name__ == "Pair"
        from dataclasses import dataclass
        @dataclass
        class Node[T]:
            value: T
            next: "Node[T] | None" = None
        assert Node(1, Node(2)).next.value == 2
        """,
    "nested quotes in f-strings": """
        d = {"a": [1]}
        assert f"{d["a"][0]:{"0" + "3"}}" == "001"
        """,
}


def run(source: str) -> object:
    namespace = new_namespace()
    GUEST.namespace = namespace
    return run_program(compile_program(dedent(source)), namespace)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_as_agents_write_it_runs(name: str) -> None:
    run(PROGRAMS[name])


@pytest.mark.skipif(sys.version_info < (3, 12), reason="syntax of Python 3.12")
@pytest.mark.parametrize("name", NEWER_PROGRAMS)
def test_a_program_in_newer_syntax_runs(name: str) -> None:
    run(NEWER_PROGRAMS[name])
