"""What Python 3.14 brought: annotations that are evaluated late, templates, and new ways from old classes.

In continuous integration these run in CPython 3.14 compiled for Node (`make py314`).
"""

from __future__ import annotations

import sys
from textwrap import dedent

import pytest

from sealab.sandbox.errors import Refused

from ..guest_code import run
from ..sealed import run_sealed

pytestmark = pytest.mark.skipif(sys.version_info < (3, 14), reason="Python 3.14 brought it")


def test_a_forward_reference_is_evaluated_under_the_dialect() -> None:
    result = run_sealed(
        """
        import typing
        class C: pass
        ways = [{}, {"globals": {}}, {"globals": {}, "locals": {}}, {"owner": C}, {"format": 3}]
        result = []
        for text in ["open", "__import__", "__import__('os').fork()", "__builtins__", "f.__globals__"]:
            for way in ways:
                try:
                    found = typing.List[text].__args__[0].evaluate(**way)
                except Exception as error:
                        result.append(type(error).__name__)
                else:
                    result.append("the guest's own" if found is open or found is __import__ else str(found))
        """
    )
    assert result == [*["the guest's own"] * 10, *["AttributeError"] * 5, *["SecurityError"] * 10]


def test_a_forward_reference_finds_what_the_code_defined() -> None:
    result = run_sealed(
        """
        import typing
        class Node: pass
        result = typing.Optional["Node"].__args__[0].evaluate() is Node
        """
    )
    assert result is True


@pytest.mark.parametrize("form", [1, 2, 3, 4])
def test_a_signature_is_given_annotations_in_no_other_format(form: int) -> None:
    source = f"""
        import inspect
        def f(x: kept(lambda: 1)): pass
        held = []
        def kept(value):
            held.append(value)
            return int
        shown = inspect.Signature.from_callable(f, annotation_format={form}).parameters["x"].annotation
        result = shown is int and type(held[0]) is type(kept) and held[0]() == 1 and len(held) == 1
        """
    assert run(source).value is True


LATE = {
    "a class": """
        class Node:
            following: Node | None
            _kept: list[int]
        result = [str(Node.__annotations__), str(get_type_hints(Node))]
        """,
    "a data class": """
        from dataclasses import dataclass, field, fields
        @dataclass
        class Node:
            value: int
            following: Node | None = None
            _kept: list[Node] = field(default_factory=list)
            __own: int = 1
        last = Node(1, Node(2), _kept=[3])
        assert last.following.value == 2 and last._kept == [3] and repr(Node(1)) == "Node(value=1, following=None, _kept=[], _Node__own=1)"
        assert [item.name.strip("_") for item in fields(Node)][:2] == ["value", "following"]
        assert get_type_hints(Node)["following"] == Node | None
        result = str(Node.__annotations__["following"])
        """,
    "a data class with slots": """
        from dataclasses import dataclass
        @dataclass(slots=True, frozen=True)
        class Node:
            value: int
            following: Node | None = None
        result = str(Node(1, Node(2)))
        """,
    "a data class of one whose fields are defined later": """
        from dataclasses import dataclass
        @dataclass
        class Base:
            first: Later
        @dataclass
        class Derived(Base):
            second: "int" = 2
        class Later: pass
        result = [str(Derived(1)), str(get_type_hints(Derived)["second"])]
        """,
    "a data class in a function": """
        from dataclasses import dataclass
        def make():
            @dataclass
            class Node:
                following: Node | None = None
            assert Node.__annotations__["following"] == Node | None
            return Node
        result = str(make()(make()()).following is None)
        """,
    "a named tuple": """
        from typing import NamedTuple
        class Node(NamedTuple):
            value: int
            following: Node | None = None
        result = str(Node(1, Node(2)))
        """,
    "a typed dictionary": """
        from typing import TypedDict
        class Node(TypedDict, total=False):
            following: Node
            _kept: Missing | None
        result = sorted(Node.__optional_keys__)
        """,
    "a protocol": """
        from typing import Protocol, runtime_checkable
        @runtime_checkable
        class Linked(Protocol):
            following: Later | None
        class Node:
            following = None
        result = [isinstance(Node(), Linked), isinstance(1, Linked)]
        """,
    "an enum": """
        from enum import Enum
        class Color(Enum):
            RED = 1
            _extra: Missing
        result = Color(1).name
        """,
}  # fmt: skip


def test_annotations_may_name_what_is_defined_later_where_classes_are_sealed() -> None:
    sources = [_HINTS + dedent(source) for source in LATE.values()]
    result = run_sealed(
        f"""
        spaces = [{{}} for _ in range({len(sources)})]
        for space, source in zip(spaces, {sources!r}):
            exec(source, space)
        result = [bool(space["result"]) for space in spaces]
        """
    )
    assert result == [True] * len(LATE)


_HINTS = "from typing import get_type_hints\n"


def test_what_annotations_define_is_the_guests_own_even_where_a_name_is_missing() -> None:
    result = run_sealed(
        """
        import asyncio
        from dataclasses import dataclass
        from typing import NamedTuple, Protocol, TypedDict, runtime_checkable
        held = []
        def keep(function):
            held.append(function)
            return int
        @dataclass
        class A:
            x: dict[keep(lambda: globals()), Missing]
        class B(NamedTuple):
            x: dict[keep(lambda: globals()), Missing]
        class C(TypedDict):
            x: dict[keep(lambda: globals()), Missing]
        @runtime_checkable
        class D(Protocol):
            x: dict[keep(lambda: globals()), Missing]
        isinstance(1, D)
        # Only a function of the code's own shows its defaults.
        result = [function.__defaults__ is None and "held" in function() for function in held]
        """
    )
    assert len(result) >= 8
    assert all(result)


@pytest.mark.parametrize("name", ["__annotate_func__", "__annotations_cache__", "__conditional_annotations__"])
def test_source_defines_nothing_that_evaluates_annotations(name: str) -> None:
    for source in (
        f"class A:\n    {name} = print",
        f"class A:\n    def {name}(self): pass",
        f"class A:\n    {name}: int",
    ):
        with pytest.raises(Refused, match=r"cannot define|is reserved"):
            run(source)
    with pytest.raises(TypeError, match="cannot be defined"):
        run(f"from dataclasses import make_dataclass\nmake_dataclass('A', ['x'], namespace={{'{name}': print}})")
    for source in (f"def f(x: int): pass\nf.{name} = print", f"def f(x: int): pass\nsetattr(f, '{name}', print)"):
        if name == "__annotate_func__":
            with pytest.raises((Refused, AttributeError)):
                run(source)


def test_nobody_finds_what_a_class_defines_to_evaluate_annotations() -> None:
    source = """
        import typing
        class A:
            x: int
            def __annotate__(*given): raise RuntimeError
        result = typing.get_type_hints(A)
        """
    assert run(source).value == {"x": int}


def test_a_template_string_holds_what_it_was_made_of() -> None:
    source = """
        from string.templatelib import Interpolation, Template
        class A:
            _name = "Ada"
            def shown(self):
                return t"Hi {self._name!r:>{4 + 4}}!"
        made = A().shown()
        assert isinstance(made, Template) and made.strings == ("Hi ", "!") and made.values == ("Ada",)
        part = made.interpolations[0]
        assert isinstance(part, Interpolation)
        assert (part.value, part.expression, part.conversion, part.format_spec) == ("Ada", "self._name", "r", ">8")
        match part:
            case Interpolation(value, expression):
                assert (value, expression) == ("Ada", "self._name")
        result = "".join(item if isinstance(item, str) else str(item.value) for item in made + t"?")
        """
    assert run(source).value == "Hi Ada!?"


@pytest.mark.parametrize(
    "inside", ["f.__globals__", "f.__code__", "().__class__.__base__.__subclasses__()", "x:{f.__globals__}"]
)
def test_a_template_string_is_judged_as_other_code_is(inside: str) -> None:
    with pytest.raises((Refused, AttributeError)):
        run(f"def f(): pass\nx = 1\nt'{{{inside}}}'")


def test_newer_syntax_runs() -> None:
    source = """
        def f():
            try:
                int("x")
            except TypeError, ValueError:
                pass
            for _ in range(2):
                try:
                    1 / 0
                finally:
                    break
            return [*map(lambda a, b: a + b, [1, 2], [3, 4], strict=True)]
        result = f()
        """
    assert run(source).value == [4, 6]
