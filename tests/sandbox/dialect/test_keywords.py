"""Names of keyword arguments that code gives as data: what they are looked up as is what CPython binds."""

from __future__ import annotations

from textwrap import dedent

import pytest

from ..sealed import run_sealed
from .test_capability_argument import run
from .test_handed_out import KEPT

CHANGING = """
class Name(str):
    "A name that equals what its characters spell from the second time on that it is hashed, or the third …"
    late = asked = 0
    def __eq__(self, other): return str.__eq__(self, other)
    def __hash__(self):
        Name.asked += 1
        return str.__hash__(self) if Name.asked > Name.late else 0
"""
FOUND = {
    "a keyword of a class that becomes its metaclass": """
        import abc
        for Name.late in range(8):
            Name.asked = 0
            try:
                class A(abc.ABC, **{Name("metaclass"): object}):
                    __subclasshook__ = classmethod(lambda c, s: told.append(s) or NotImplemented)
                isinstance(int, A)
            except TypeError: pass
        for each in told: make(each)
        told.clear()""",
    "an enum without its members": """
        import enum
        Name.late = 10 ** 9
        try:
            class E(enum.Flag, **{Name("_simple"): True}): A = 1
            made += [] if type(E.A) is E else [E]
        except TypeError: pass""",
    "the title of a class": """
        class S(str):
            def __contains__(self, x): told.append(x)
            def __format__(self, spec): told.append(spec); return ""
            def __str__(self): told.append("str"); return "x"
            def startswith(self, *a): told.append(a); return False
        class A:
            __qualname__ = S("q")
        made += [each for each in (A.__qualname__, A.__name__) if type(each) is not str]
        own = {}
        exec("1", own)
        try: made.append(own["__builtins__"]["__build_class__"](lambda: None, S("B")).__name__)
        except TypeError: pass
        made = [each for each in made if type(each) is not str]""",
    "what steps a task, by a context of the code's own": """
        import asyncio
        class Context:
            def run(self, function, *args):
                told.append(function)
                return function(*args)
        async def one(): await asyncio.sleep(0)
        async def main():
            loop = asyncio.get_running_loop()
            for way in (lambda: asyncio.create_task(one(), context=Context()),
                        lambda: asyncio.Task(one(), loop=loop, context=Context()),
                        lambda: loop.call_soon(len, context=Context()),
                        lambda: loop.call_later(0, len, context=Context()),
                        lambda: loop.create_future().add_done_callback(len, context=Context())):
                try: await way()
                except TypeError: pass
        asyncio.run(main())""",
    "the state of what a __new__ of the code's own returns": """
        import contextlib, hmac
        kept = {}
        class Other: pass
        other = Other()
        other.__dict__ = kept
        ready = []
        class Stack(contextlib.ExitStack):
            def __new__(cls, *a): return other if ready else object.__new__(cls)
        class Hash(hmac.HMAC):
            def __new__(cls, *a, **k): return other if ready else object.__new__(cls)
        stack, hashed = Stack(), Hash(b"k", b"m", "sha256")
        stack.callback(print, 1)
        ready.append(1)
        for way in (stack.pop_all, hashed.copy):
            try: way()
            except TypeError: pass
        made += kept""",
}


@pytest.mark.parametrize("program", FOUND.values(), ids=FOUND.keys())
def test_no_name_given_as_data_is_two_names(program: str) -> None:
    assert run_sealed(f"{KEPT}\n{CHANGING}\n{dedent(program)}\nresult = len(made) + len(told)") == 0


def test_keywords_from_mappings_are_what_python_makes_of_them() -> None:
    source = """
    import collections, enum
    class Color(str, enum.Enum):
        RED = "red"
    class Own:
        def keys(self): return ["a", "b"]
        def __getitem__(self, key): return key * 2
    def f(*args, **kwargs): return kwargs
    class Base:
        def __init_subclass__(cls, **options): cls.options = options
    class A(Base, **{"x": 1}, y=2): pass
    def error(call):
        try: call()
        except TypeError as error: return str(error)
    result = [
        f(**{"a": 1}, b=2, **Own() if False else {}), f(**Own()), f(**{Color.RED: 1}),
        [type(name) is str for name in f(**{Color.RED: 1})], f(**collections.ChainMap({"c": 3}), d=4), A.options,
        error(lambda: f(**{1: 2})), error(lambda: f(a=1, **{"a": 2})).split()[-1], "mapping" in error(lambda: f(**3)),
        f(**collections.OrderedDict(z=1)), dict(**{"k": 1}),
    ]
    """
    assert run(dedent(source)) == [
        {"a": 1, "b": 2}, {"a": "aa", "b": "bb"}, {"red": 1}, [True], {"c": 3, "d": 4}, {"x": 1, "y": 2},
        "keywords must be strings", "'a'", True, {"z": 1}, {"k": 1},
    ]  # fmt: skip


def test_copies_of_hashes_and_moved_stacks_work_as_ever() -> None:
    source = """
    import contextlib, hmac
    first = hmac.new(b"key", b"text", "sha256")
    second = first.copy()
    second.update(b" more")
    class Own(hmac.HMAC):
        note = "kept class"
    third = Own(b"key", b"text", "sha256").copy()
    log = []
    with contextlib.ExitStack() as stack:
        stack.callback(log.append, 1)
        moved = stack.pop_all()
    before = list(log)
    moved.close()
    result = [
        second.hexdigest() == hmac.new(b"key", b"text more", "sha256").hexdigest(),
        first.hexdigest() == third.hexdigest() == hmac.digest(b"key", b"text", "sha256").hex(),
        third.note, third.digest_size, before, log,
    ]
    """
    assert run(dedent(source)) == [True, True, "kept class", 32, [], [1]]
