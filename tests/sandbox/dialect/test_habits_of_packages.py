"""What packages do beyond what programs do: each was found in one that is widely used."""

from __future__ import annotations

import pytest

from sealab.sandbox.dialect.facades import given_values

from ..guest_code import run
from ..sealed import run_sealed


def test_an_attribute_is_named_by_the_characters_of_a_string_of_a_class_of_the_code() -> None:
    ran = run("""
        called = []
        def lies(kind, value):
            def method(*arguments):
                called.append(kind)
                return value
            return method
        class Token(str):
            __str__ = lies("str", "hidden")
            __repr__ = lies("repr", "hidden")
            __eq__ = lies("eq", True)
            __hash__ = lies("hash", hash("size"))
            __format__ = lies("format", "hidden")
            __len__ = lies("len", 0)
            __getitem__ = lies("getitem", "s")
            __iter__ = lies("iter", iter("size"))
            __contains__ = lies("contains", False)
            startswith = endswith = replace = lower = encode = isidentifier = lies("method", False)
        class Holder:
            size = 2
        holder = Holder()
        told = [getattr(holder, Token("size")), hasattr(holder, Token("hidden"))]
        setattr(holder, Token("width"), 3)
        told.append(holder.width)
        told += [type(each) is str for each in vars(holder)]
        delattr(holder, Token("width"))
        told.append(hasattr(holder, "width"))
        for name in ("__globals__", "__code__", "__closure__", "_secret"):
            told.append(hasattr(lambda: 1, Token(name)))
        result = told, called
    """)
    assert ran.value == ([2, False, 3, True, *[False] * 5], [])


def test_what_is_judged_of_such_a_string_is_what_is_used() -> None:
    for use in (
        "getattr(f, Name('__globals__'))",
        "setattr(f, Name('__code__'), 1)",
        "delattr(f, Name('__closure__'))",
    ):
        with pytest.raises(AttributeError, match="__"):
            run(f"""
                class Name(str):
                    def __str__(self): return "size"
                    def __eq__(self, other): return other == "size"
                    def __hash__(self): return hash("size")
                def f(): pass
                {use}
            """)


def test_a_module_of_the_host_shows_what_it_lists() -> None:
    ran = run("import math, json\nresult = [vars(math)['sqrt'](9), sorted(vars(json)) == sorted(dir(json))]")
    assert ran.value == [3.0, True]
    with pytest.raises(TypeError):
        run("import math\nvars(math)['sqrt'] = 1")


def test_an_object_of_the_code_is_found_as_what_is_wrapped() -> None:
    ran = run("""
        import functools
        class Call:
            __name__ = "call"
            def __call__(self): return 1
        class Holder: pass
        holder = functools.update_wrapper(Holder(), Call())
        of_the_host = functools.update_wrapper(Holder(), len)
        result = type(holder.__wrapped__).__name__, hasattr(of_the_host, "__wrapped__")
    """)
    assert ran.value == ("Call", False)


def test_a_list_is_found_from_its_bound_method_and_nothing_else_of_the_host() -> None:
    ran = run("""
        import math
        groups = {}
        add = groups.setdefault("a", [].append)
        add(1)
        told = [groups["a"].__self__]
        for other in (len, {}.get, "x".join, math.sqrt, [].__len__):
            try:
                told.append(type(other.__self__).__name__)
            except AttributeError:
                told.append("refused")
        result = told
    """)
    assert ran.value == [[1], "refused", "refused", "str", "refused", "refused"]


def test_no_module_lists_a_method_of_a_list_of_its_own() -> None:
    members = list(given_values())
    assert members
    assert not [each for each in members if isinstance(getattr(each, "__self__", None), list)]


def test_views_of_mappings_that_code_derives_find_their_mapping() -> None:
    source = """
        from collections.abc import ItemsView, KeysView
        class Items(ItemsView):
            __slots__ = ()
            def first(self): return next(iter(self._mapping.items()))
        class Replaced(KeysView):
            def __init__(self, mapping): self._mapping = {"b": 2}
        own = [hasattr({}.keys(), "_mapping"), hasattr(KeysView({"a": 1}), "_mapping"), hasattr(KeysView, "_mapping")]
        result = [Items({"a": 1}).first(), list(Replaced({"a": 1})), *own]
    """
    assert run_sealed(source) == [["a", 1], ["b"], False, False, False]


def test_the_class_of_functions_binds_those_of_the_code() -> None:
    assert run("def f(self, x): return self + x\nresult = f.__class__.__get__(f, 3, int)(4)").value == 7
    with pytest.raises(TypeError, match="code made itself"):
        run("def f(): pass\nf.__class__.__get__(len, 3)")


def test_an_object_that_stands_for_a_function_keeps_what_it_copies_from_it() -> None:
    ran = run("""
        def f(x, y=1, *, z=2): return x
        class Stands:
            def __init__(self, func):
                self.__defaults__ = func.__defaults__
                self.__kwdefaults__ = {**func.__kwdefaults__, "more": 3}
                self.__wrapped__ = func
            def __call__(self, *args, **kwargs): pass
        f.__self__ = f
        stands = Stands(f)
        told = [stands.__defaults__, stands.__kwdefaults__, stands.__wrapped__ is f, f.__self__ is f]
        told.append(hasattr(Stands(f), "__self__"))
        f.__wrapped__ = stands
        told.append(f.__wrapped__ is stands)
        for value in (len, 1):
            try:
                stands.__wrapped__ = value
            except AttributeError:
                told.append("refused")
        result = told
    """)
    assert ran.value == [(1,), {"z": 2, "more": 3}, True, True, False, True, "refused", "refused"]
