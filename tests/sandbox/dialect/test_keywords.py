"""Names of keyword arguments that code gives as data: what they are looked up as is what CPython binds."""

from __future__ import annotations

from textwrap import dedent

from ..guest_code import value_of as run


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
