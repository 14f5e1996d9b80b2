"""What host code hands to guest code: to a method that the guest defines, a memo, a default, or a copied dictionary.

Each program leaves what it was handed in `result`. It holds where that is nothing dangerous; a refusal holds too.
"""

from __future__ import annotations

from textwrap import dedent

import pytest

from .sealed import run_sealed
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


def test_a_property_of_a_host_class_keeps_its_getter() -> None:
    source = """
        from fractions import Fraction
        import abc
        tried = 0
        class P(property): pass
        ways = [
            lambda: Fraction.numerator.__init__(lambda self: 'changed'),
            lambda: property.__init__(Fraction.numerator, lambda self: 'changed'),
            lambda: P.__init__(Fraction.numerator, lambda self: 'changed'),
            lambda: abc.abstractproperty.__init__(Fraction.numerator, lambda self: 'changed'),
            lambda: getattr(Fraction.numerator, '__init__')(lambda self: 'changed'),
            lambda: exec('class A:\\n def __new__(cls): return super().__init__(lambda self: 1)', {'super': lambda: Fraction.numerator}),
            lambda: exec('super().__init__(lambda self: "changed")', {'super': lambda: Fraction.numerator}),
        ]
        for way in ways:
            try:
                way()
            except Exception:
                tried += 1
        result = [Fraction(3, 4).numerator, tried]
        """
    numerator, refused = run_sealed(dedent(source))  # type: ignore[misc]  # a list of two
    assert numerator == 3
    assert refused == 6  # the class statement itself does nothing


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


def test_hints_of_a_skill_are_evaluated_in_its_own_variables() -> None:
    source = """
        secret = 'of the caller'
        module = {'__name__': 'skill'}
        exec('import typing\\ndef peek():\\n def f(x: "secret"): pass\\n return typing.get_type_hints(f)', module)
        try:
            result = module['peek']()
        except NameError as error:
            result = error.name
        """
    assert run(source) == "secret"


def test_tables_that_a_module_gives_are_copies() -> None:
    source = """
        import doctest, html, html.entities
        html.entities.html5.clear()
        exec("x = 1", doctest.TestResults._field_defaults.copy())
        try:
            doctest.TestResults._field_defaults["x"] = 1
        except TypeError:
            pass
        result = [html.unescape("&auml;"), dict(doctest.TestResults._field_defaults)]
        """
    assert run_sealed(source) == ["ä", {}]


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
