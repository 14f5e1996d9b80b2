"""Python as agents write it runs, with names that the dialect spells otherwise: each program checks itself.

`test_habits.py` has programs without such names.
"""

from __future__ import annotations

import sys

import pytest

from ..guest_code import run
from ..sealed import gives_what_python_gives

PROGRAMS = {
    "private names as variables, parameters and targets": """
        counter = _private = 0
        def bump():
            global counter, _private
            counter += 1
            _private = _private + 1
        bump(); bump()
        assert counter == _private == 2
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
            for _i in range(3): pass
            if _b == 2:
                def _f(self): return self._b
            _g = lambda self: self._f()
            import string as _s
            letters = _s.ascii_lowercase[:2]
        assert Scope()._g() == 2 and Scope._i == 2 and Scope.letters == "ab"
        def outer():
            class Local:
                def get(self): return __class__.__name__
            return Local().get()
        assert outer() == "Local"
        class O: pass
        o = O()
        o.a, o._b = 1, 2
        o.a += 1; o._b **= 3; o.l = [1]; o.l[0] |= 6; o.s = "x"; o.s *= 3
        for o.i in range(3): pass
        o.typed: int = 4
        assert (o.a, o._b, o.l, o.s, o.i, o.typed) == (2, 8, [7], "xxx", 2, 4)
        from math import *
        assert sqrt(4) == 2
        """,
    "match on private names": """
        from dataclasses import dataclass
        @dataclass
        class P:
            x: int
            _y: int = 0
        class Q:
            __match_args__ = ("a", "_b")
            def __init__(self, a, b): self.a, self._b = a, b
        def f(v):
            match v:
                case P(x=0, _y=n): return ("zero", n)
                case P(x, n): return ("p", x, n)
                case Q(a, b) if a == b: return "same"
                case Q(a=1): return "q1"
                case {"op": "add", "args": [x, y], **others}: return x + y + len(others)
                case int(_n) | float(_n): return _n + 1
        assert [f(v) for v in (P(0, 7), P(5), Q(3, 3), Q(1, 2), 9)] == [("zero", 7), ("p", 5, 0), "same", "q1", 10]
        assert f({"op": "add", "args": [1, 2], "z": 0}) == 4
        """,
    "methods that stand for operators": """
        class V:
            def __init__(self, x): self.x = x
            def __add__(self, o): return V(self.x + o.x)
            def __radd__(self, o): return self if o == 0 else NotImplemented
            def __iadd__(self, o): self.x += o.x; return self
            def __matmul__(self, o): return self.x * o.x
            def __reversed__(self): return iter([self.x])
            def __index__(self): return self.x
            def __format__(self, spec): return f"<{self.x:{spec}}>"
            def __class_getitem__(cls, item): return super().__class_getitem__(item) if item is None else cls
        v = V(3)
        v += V(1)
        assert sum([v, v]).x == 8 and v @ v == 16 and list(reversed(v)) == [4] and [*range(9)][v] == 4
        assert "{:>3}".format(v) == "<  4>" and V.__add__(v, v).x == 8 and V[int] is V and v.__index__() == 4
        """,
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


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_as_agents_write_it_runs(name: str) -> None:
    run(PROGRAMS[name])


@pytest.mark.skipif(sys.version_info < (3, 12), reason="syntax of Python 3.12")
@pytest.mark.parametrize("name", NEWER_PROGRAMS)
def test_a_program_in_newer_syntax_runs(name: str) -> None:
    run(NEWER_PROGRAMS[name])


AS_IN_PYTHON = {
    "a comparison that moves keys itself comes to an end": """
        from collections import OrderedDict
        order = OrderedDict()
        class Key:
            def __hash__(self): return 1
            def __eq__(self, other):
                order.move_to_end((self,))
                return True
        order[(Key(),)] = 1
        order.move_to_end((Key(),))
        result = len(order)
        """,
    "vars is a dictionary that writes through": """
        import json
        class A:
            def __init__(self): self.x, self._y = 1, 2
        a = A()
        v = vars(a)
        v["z"] = 3
        a.__dict__.update(_w=4)
        v.pop("x")
        del a.__dict__["_y"]
        a.__dict__.setdefault("s", []).append(1)
        a.__dict__ |= {"t": 5}
        result = [hasattr(a, "x"), hasattr(a, "_y"), a.z, a._w, json.dumps(vars(a)), isinstance(v, dict), a.s, type(v) is dict]
        """,
    "the type of an object is told but cannot make functions or metaclasses": """
        class A: pass
        failures = 0
        for make in (lambda: (type,)[0]("X", (type,), {})(), lambda: A.__class__("X", (type(A),), {})(), lambda: type(lambda: 0)(1, {})):
            try:
                make()
            except TypeError:
                failures += 1
        result = [type(A()) is A, type(A) is type, isinstance(A, type), type(1) is int, repr(type), failures,
                  isinstance(f := (lambda: 0), type(f)), issubclass(bool, type(1)), str(type[int])]
        """,
    "a signature that code declares is its signature": """
        import inspect
        class Call:
            def __init__(self, f): self.f = f
            def __call__(self, *args): return self.f(*args)
            @property
            def __signature__(self): return inspect.signature(self.f)
        def g(x): pass
        g.__signature__ = 34
        try:
            inspect.signature(g)
        except TypeError:
            result = str(inspect.signature(Call(lambda a, b=1: a)))
        """,
    "c code that imports for itself still works": """
        import datetime, re, time
        result = [datetime.datetime.strptime("2024-02-03", "%Y-%m-%d").day, len(str(10**3000 + 1)),
                  "\\N{SNOWMAN}".encode("ascii", "namereplace"), re.compile("(a)").sub(r"<\\1>", "xa"),
                  (10**60000 // 7) % 10, time.strftime("%Y", time.gmtime(0))]
        """,
    "the older ways to run a coroutine work": """
        import asyncio
        async def one(): return 1
        loop = asyncio.get_event_loop()
        values = [loop.run_until_complete(one())]
        loop.close()
        with asyncio.Runner() as runner:
            values.append(runner.run(one()))
        fresh = asyncio.new_event_loop()
        asyncio.set_event_loop(fresh)
        values.append(asyncio.get_event_loop() is fresh)
        values
        """,
    "the tools of asyncio work": """
        import asyncio
        async def work(n, seconds=0.001):
            await asyncio.sleep(seconds)
            return n
        async def main():
            async with asyncio.TaskGroup() as group:
                first = group.create_task(work(1))
            try:
                await asyncio.wait_for(work(0, 60), 0.01)
            except TimeoutError:
                late = True
            try:
                async with asyncio.timeout(0.01):
                    await work(0, 60)
            except TimeoutError:
                later = True
            queue, event, lock = asyncio.Queue(), asyncio.Event(), asyncio.Lock()
            async def produce():
                async with lock:
                    await queue.put("item")
                    event.set()
            task = asyncio.create_task(produce())
            await event.wait()
            done, pending = await asyncio.wait([task, asyncio.create_task(work(2))])
            ordered = [await each for each in asyncio.as_completed([work(3, 0.02), work(4)])]
            loop = asyncio.get_running_loop()
            return [first.result(), late, later, await queue.get(), len(done), len(pending), ordered,
                    await asyncio.to_thread(sum, [1, 2]), await loop.run_in_executor(None, lambda: 7), loop.time() > 0]
        asyncio.run(main())
        """,
}


@pytest.mark.parametrize("program", AS_IN_PYTHON.values(), ids=AS_IN_PYTHON)
def test_a_program_gives_what_python_gives(program: str) -> None:
    gives_what_python_gives(program)
