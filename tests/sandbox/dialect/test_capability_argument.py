"""The argument by which restricted code needs no guards at run time, point by point (docs/security/design.md).

It holds only if no reachable object has a dangerous public attribute and no host function takes names or source as
data. Each probe below tries to get hold of one dangerous object and leaves it in `result`; a refusal, an error or a
harmless stand-in is a pass.
"""

from __future__ import annotations

import asyncio
import builtins
import enum
import subprocess
import sys
import types
from abc import ABCMeta

import pytest

from sealab.sandbox.dialect.compiling import compile_program
from sealab.sandbox.dialect.event_loop import GuestLoop
from sealab.sandbox.dialect.transformer import ATTRIBUTE_HOOK
from sealab.sandbox.errors import Refused

from ..guest_code import value_of as run
from ..sealed import gives_what_python_gives, run_sealed

DANGEROUS_TYPES = (types.ModuleType, types.FrameType, types.CodeType, types.TracebackType, types.CellType)
DANGEROUS_OBJECTS = (
    type,
    ABCMeta,
    enum.EnumMeta,
    types.FunctionType,
    types.CodeType,
    types.ModuleType,
    str.format,
    str.format_map,
    type.mro,
    type.__subclasses__,
    object.__getattribute__,
    object.__setattr__,
    type.__getattribute__,
    builtins.__import__,
    builtins.open,
    builtins.exec,
    builtins.eval,
    builtins.compile,
    builtins.getattr,
    builtins.setattr,
    builtins.vars,
    builtins.globals,
    builtins.__build_class__,
)


def danger(value: object) -> str | None:
    """Name what is dangerous about a value, or a value directly inside it, or return None."""
    for item in [value, *(value if type(value) in {list, tuple} else ())]:
        if item == "ESCAPED":
            return "an effect that shows the way is open"
        if isinstance(item, DANGEROUS_TYPES) or any(item is known for known in DANGEROUS_OBJECTS):
            return f"{type(item).__name__} {item!r}"
        if isinstance(item, asyncio.AbstractEventLoop) and type(item) is not GuestLoop:
            return "an event loop"
        if (
            type(item) is types.BuiltinMethodType
            and isinstance(item.__self__, str)
            and item.__name__.startswith("format")
        ):
            return "a bound str.format"
        if isinstance(item, (dict, types.MappingProxyType)) and (item is vars(builtins) or ATTRIBUTE_HOOK in item):
            return "a table of builtins"
        if isinstance(item, dict) and "__builtins__" in item:
            return "a module's globals"
        if isinstance(item, types.FunctionType) and item.__module__ in {"os", "posixpath", "importlib._bootstrap"}:
            return f"the function {item.__qualname__}"
    return None


def reached(source: str) -> str | None:
    try:
        result = run(source)
    except (Refused, Exception):  # however it fails, it did not get there
        return None
    return danger(result)


GUARDED_VALUES = {
    "a bound format of a variable": "t = '{}'; result = t.format",
    "format of str itself": "result = str.format",
    "format_map of str itself": "result = str.format_map",
    "format by super": """
        class S(str):
            def format(self): return super().format
        result = S("{0.__class__}").format()""",
    "format by super with arguments": """
        class S(str):
            pass
        result = super(S, S("x")).format""",
    "format by augmented assignment": """
        class Catch:
            def __radd__(self, other): self.got = other; return 1
        c = Catch()
        class S(str): pass
        s = S("{0.__class__}")
        s.format += c
        result = c.got""",
    "format by a deleted override": """
        class S(str):
            format = None
        del S.format
        result = S("x").format""",
    "format taken by map": "result = list(map(str.format, ['{0.__globals__}'], [print]))",
    "mro of a class": "result = int.mro",
    "mro by type": "result = type.mro",
    "the class of a class": "class A: pass\nresult = A.__class__",
    "the class of an abstract class": "from abc import ABC\nresult = ABC.__class__",
    "the class of an enum": "from enum import Enum\nresult = Enum.__class__",
    "the class of a function": "result = (lambda: 0).__class__",
    "the class of a module": "import json\nresult = [json.__class__, type(json)]",
    "the class of the class of a class": "class A: pass\nresult = A.__class__.__class__.__class__",
    "type of type": "result = [type(type), type(int), type(type(int))]",
    "type of a method descriptor": "result = type(str.upper).__get__",
    "the dictionary of a class of the host": "result = int.__dict__",
    "the dictionary of type": "result = vars(type)",
    "the dictionary of a function of the host": "result = print.__dict__",
    "the dictionary of a module": "import json\nresult = json.__dict__",
    "bases of a class of the host": "result = bool.__bases__ + bool.__mro__",
    "the object of a bound builtin": "result = len.__self__",
    "the object of print": "result = print.__self__",
    "the object in an AttributeError": """
        try:
            import json
            json.nothing
        except AttributeError as error:
            result = error.obj.__class__""",
    "the parser of a path": "from pathlib import PurePath\nresult = [PurePath.parser, PurePath('x').parser]",
    "the loop of a task": """
        import asyncio
        async def f(): return asyncio.current_task().get_loop()
        result = await f()""",
    "the loop of a future": """
        import asyncio
        async def f(): pass
        t = asyncio.create_task(f())
        got = t.get_loop
        await t
        result = got()""",
    "the stack of a task": """
        import asyncio
        async def f(): return asyncio.current_task().get_stack()
        result = await f()""",
    "the coroutine of a task": """
        import asyncio
        async def f(): return asyncio.current_task().get_coro().cr_frame
        result = await f()""",
    "the running loop": "import asyncio\nasync def f(): return asyncio.get_running_loop()\nresult = await f()",
    "the wrapped function of the host": "import contextlib\nresult = contextlib.contextmanager.__wrapped__",
    "the origin of typing.Type": "import typing\nresult = [typing.Type[int].__origin__, typing.get_origin(typing.Type[int])]",
    "the origin of type[...]": "result = [type[int].__origin__, type[int].__class__]",
    "the bound of a type variable": "from typing import TypeVar\nresult = TypeVar('T', bound=type).__bound__",
    "subclasses of object": "result = object.__subclasses__()",
    "subclasses of a class of the host": "result = int.__subclasses__()",
    "a UserString's format": "from collections import UserString\nresult = UserString.format(UserString('{0.__globals__}'), print)",
    "the class that a subclass hook is asked about": """
        from abc import ABC
        got = []
        class Asked(ABC):
            @classmethod
            def __subclasshook__(cls, subclass):
                got.append(subclass)
                return False
        isinstance(lambda: 0, Asked), isinstance(Asked, Asked)
        result = got""",
    "the class that a subclass hook made later is asked about": """
        from abc import ABC
        got = []
        class Asked(ABC): pass
        Asked.__subclasshook__ = classmethod(lambda cls, subclass: got.append(subclass))
        isinstance(lambda: 0, Asked)
        result = got""",
    "the owner that a class method is bound to": "result = [classmethod(lambda c: c).__get__(x)() for x in (len, lambda: 0, int)]",
    "the owner, by an unbound __get__": "result = classmethod.__get__(classmethod(lambda c: c), lambda: 0)()",
    "the owner, by a generic method": """
        import functools
        chosen = functools.singledispatchmethod(classmethod(lambda cls, _: cls))
        result = chosen.__get__(lambda: 0)(1)""",
    "the class of a getter": "import operator\nresult = type(operator.attrgetter('x'))('__globals__')(print)",
    "the class of a caller": "import operator\nresult = type(operator.methodcaller('x'))('__getattribute__', '__globals__')(print)",
    "the class that a stand-in derives from": "from enum import Enum\nclass E(Enum): pass\nresult = [c('X', {'__class__': 1}) for c in E.__mro__[1:-1]] and 'ESCAPED'",
    "the class that an alias leads to": "import types, http\nresult = types.GenericAlias(http.HTTPStatus, ()).__mro__[3]('X', {'__a__': 1}) and 'ESCAPED'",
}

DYNAMIC_NAMES = {
    "getattr": "result = getattr(print, '__glo' + 'bals__')",
    "getattr with a default": "result = getattr(print, '__globals__', None)",
    "getattr by map": "result = list(map(getattr, [print], ['__globals__']))",
    "getattr with a str that lies": """
        class S(str):
            def startswith(self, *a): return False
            def __eq__(self, o): return False
            def __hash__(self): return 1
        result = getattr(print, S('__globals__'))""",
    "getattr with the inner spelling": "result = getattr(print, '\\u16e5\\u02c8__globals__')",
    "hasattr and AttributeError.obj": """
        try:
            getattr(getattr(print, '__globals__'), 'x')
        except AttributeError as error:
            result = error.obj""",
    "attrgetter": "import operator\nresult = operator.attrgetter('__globals__')(print)",
    "attrgetter with dots": "import operator\nresult = operator.attrgetter('__class__.__mro__')(1)",
    "methodcaller": "import operator\nresult = operator.methodcaller('__getattribute__', '__globals__')(print)",
    "methodcaller of format": "import operator\nresult = '__name__' in operator.methodcaller('format', print)('{0.__globals__}') and 'ESCAPED'",
    "__getattribute__ of object": "result = object.__getattribute__(print, '__globals__')",
    "__getattribute__ of a function": "result = print.__getattribute__('__globals__')",
    "__getattribute__ of type": "result = type.__getattribute__(int, '__subclasses__')",
    "__getattribute__ unbound": "result = object.__getattribute__",
    "__getattribute__ by super": """
        class A:
            def f(self): return super().__getattribute__('__class__')
        result = A().f().__class__""",
    "__getattribute__ of a guest's str": """
        class S(str): pass
        result = object.__getattribute__(S('{0.__globals__}'), 'format')""",
    "__setattr__ on a module": "import json\nobject.__setattr__(json, 'dumps', 1)\nresult = json.dumps == 1 and 'ESCAPED'",
    "__setattr__ of a class": "class A: pass\nobject.__setattr__(A(), '__class__', int)\ntype.__setattr__(A, '__bases__', (int,))",
    "setattr of __class__": "class A: pass\na = A()\nsetattr(a, '__class__', dict)",
    "setattr of __code__": "def f(): pass\nsetattr(f, '__code__', 1)",
    "setattr of __defaults__ on a host function": "setattr(print, '__kwdefaults__', {})\nresult = 'ESCAPED'",
    "delattr of a hook": "delattr(print, '__defaults__')\nresult = 'ESCAPED'",
    "vars of an object, then a dunder key": """
        class A: pass
        a = A()
        vars(a)['__class__'] = 1
        result = 'ESCAPED'""",
    "a template": "result = '__name__' in '{0.__globals__}'.format(print) and 'ESCAPED'",
    "a template with a nested look-up": "result = 'obj' in '{0:{1.__class__.__mro__}}'.format(1, 1) and 'ESCAPED'",
    "a broken template": """
        try:
            '{0.__globals__[__builtins__].nope} {'.format(print)
        except Exception as error:
            result = getattr(error, 'obj', None)""",
    "a template for map": "result = list(map('{0.__globals__}'.format, [print])) and 'ESCAPED'",
    "a template by Formatter": "import string\nresult = string.Formatter().get_field('0.__globals__', (print,), {})",
    "a Formatter whose get_value returns a host function": """
        import string
        class F(string.Formatter):
            def get_value(self, key, args, kwargs): return print
        result = F().format('{x.__globals__}') and 'ESCAPED'""",
    "a hook name by globals()": "globals()['\\u16e5\\u02c8attribute'] = 1\nresult = 'ESCAPED'",
    "the builtins by globals()": "result = globals()['__builtins__']",
    "the builtins by an exec'd namespace": "exec('result = globals()[\"__builtins__\"]')",
    "the builtins by locals()": "result = locals()['__builtins__']",
    "the builtins by globals().get": "result = globals().get('__builtins__')",
    "the builtins by update": "globals().update(__builtins__={})\nresult = 'ESCAPED'",
    "a cached property on a host function": """
        import functools
        p = functools.cached_property(lambda self: 0)
        p.attrname = '__wrapped__'
        def f(): pass
        result = p.__get__(functools.wraps(f)(print), None)""",
    "a dataclass field that names a dunder": """
        import dataclasses
        @dataclasses.dataclass
        class A: x: int
        dataclasses.fields(A)[0].name = '__class__'
        result = dataclasses.astuple(A(1))""",
    "the state of an exception": "e = Exception()\ne.__setstate__({'__class__': int, '_x': 1})\nresult = 'ESCAPED'",
    "a compiled object made anew": """
        c = compile('1', 'x', 'eval')
        c.__init__('().__class__.__base__.__subclasses__()')
        result = eval(c) and 'ESCAPED'""",
    "a view made anew around a mapping that lies": """
        class A: pass
        class Lying(dict):
            def get(self, name, default=None): return known["__builtins__"]
        known = {}
        exec("1", known)
        view = vars(A())
        view.__init__({}, Lying(), str)
        exec("opened = open", view)
        result = view.get("opened")""",
    "a dictionary that lies as a namespace": """
        class Lying(dict):
            def get(self, name, default=None): return known["__builtins__"]
        known = {}
        exec("1", known)
        ns = Lying()
        exec("opened = open", ns)
        result = ns.get("opened")""",
    "a namespace whose builtins were replaced": """
        ns = {}
        exec("1", ns)
        ns["__builtins__"]["__build_class__"] = None
        ns["__builtins__"].clear()
        exec("result = [open, __import__('subprocess')]", ns)
        result = ns["result"]""",
    "a weak proxy of a class": "import weakref\nresult = [weakref.proxy(int).mro, weakref.proxy(int).__mro__]",
    "an exec'd program with odd locals": """
        class Locals(dict):
            def __missing__(self, name): return names.append(name) or (lambda *a: a)
        names = []
        exec("x = print.__class__", {}, Locals())
        result = [name for name in names if name == "open"] and 'ESCAPED'""",
    "a partial's function": "import functools\nresult = functools.partial(print).func.__globals__",
    "a property's getter": "class A:\n    @property\n    def x(self): pass\nresult = A.x.fget.__globals__",
    "a cached property on a class": """
        import functools
        kept = functools.cached_property(lambda self: 0)
        kept.__set_name__(object, '__getattribute__')
        kept.attrname = '__getattribute__'
        result = kept.__get__(object)""",
    "a cached property on a class, named by a class body": """
        import functools
        kept = functools.cached_property(lambda self: 0)
        class A: __repr__ = kept
        result = kept.__get__(object) and 'ESCAPED'""",
    "wraps asked to read a class": """
        import functools
        got = []
        class Taker:
            def update(self, *given): got.extend(given)
        class Asked:
            def __getattribute__(self, name): return Taker()
        functools.update_wrapper(Asked(), object)
        result = got[0]['__getattribute__']""",
    "wraps asked to change a function of the host": "import functools, json\nfunctools.update_wrapper(json.dumps, lambda: 0)\nresult = 'ESCAPED'",
    "a record that is a class": """
        import logging
        got = []
        class Taker:
            def __or__(self, other): got.append(other); return {}
        style = logging.StrFormatStyle('{x}', defaults={'x': 1})
        style._defaults = Taker()
        try:
            style.format(object)
        finally:
            result = got""",
    "host state answered by __getattr__": """
        import graphlib
        asked = []
        class Forged(graphlib.TopologicalSorter):
            def __init__(self): pass
            def __getattr__(self, name): asked.append(name); return {}
        try:
            Forged().add(1)
        except (AttributeError, ValueError):
            pass
        result = asked and 'ESCAPED'""",
    "host state answered by __getattribute__": """
        import graphlib
        asked = []
        class Forged(graphlib.TopologicalSorter):
            def __getattribute__(self, name): asked.append(name); return super().__getattribute__(name)
        Forged().add(1)
        result = '_node2info' in asked and 'ESCAPED'""",
    "host state seen by __setattr__": """
        import graphlib
        asked = []
        class Forged(graphlib.TopologicalSorter):
            def __setattr__(self, name, value): asked.append(name); super().__setattr__(name, value)
        Forged()
        result = '_node2info' in asked and 'ESCAPED'""",
    "host state by a shared dictionary": """
        import graphlib
        class Plain: pass
        class Forged(graphlib.TopologicalSorter): pass
        plain = Plain()
        plain.__dict__ = {'_get_nodeinfo': lambda *a: 'ESCAPED', '_ready_nodes': None}
        plain.__class__ = Forged
        try:
            plain.add(1)
        except AttributeError as error:  # of the node that was given
            result = "'str' object" in str(error) and 'ESCAPED'""",
    "host state by __setstate__ of the host": """
        import copy, graphlib, io
        class Forged(io.BytesIO, graphlib.TopologicalSorter):
            def __getstate__(self): return b'', 0, {'_get_nodeinfo': lambda *a: 'ESCAPED', '_ready_nodes': None}
        try:
            copy.copy(Forged()).add(1)
        except AttributeError as error:
            result = "'str' object" in str(error) and 'ESCAPED'""",
    "a slot named as a hook": "class A: __slots__ = ('__getattr__',)\nresult = 'ESCAPED'",
    "a namespace whose keys lie": """
        class Key:
            asked = 0
            def __hash__(self): return hash('__builtins__')
            def __eq__(self, other):
                Key.asked += 1
                return Key.asked <= 2
        known = {}
        exec('1', known)
        namespace = {Key(): known['__builtins__']}
        exec('opened = open', namespace)
        result = [value for name, value in namespace.items() if type(name) is str and name == 'opened']""",
    "the __init__ of a field on something else": """
        import dataclasses
        class A: pass
        try:
            dataclasses.Field.__init__(A, **{'__match_args__': ('__globals__',)})
        finally:
            result = A.__match_args__ and 'ESCAPED'""",
    "a converter whose name is a sum": """
        import configparser
        class Sum:
            def __radd__(self, other): return 'format'
        class Text(str): pass
        text, got = Text('{0.__globals__}'), []
        text.converters = [Sum()]
        class Section(configparser.SectionProxy):
            def __setattr__(self, name, value): got.append(value)
        try:
            Section(text, 'x')
        finally:
            result = got[-1].keywords['_impl']""",
    "dispatching on what looks like a class": """
        import functools
        got = []
        class Known:
            def __hash__(self): return hash(bool)
            def __eq__(self, other): got.append(other); return False
        @functools.singledispatch
        def generic(x): pass
        generic.register(int, lambda x: x)
        class Looks:
            def __getattr__(self, name): return {'__mro__': [Known()], '__bases__': (int,)}[name]
        try:
            generic.dispatch(Looks())
        finally:
            result = got and 'ESCAPED'""",
    "a field that names itself": """
        import dataclasses
        class Named(dataclasses.Field):
            name = property(lambda self: "x: int = print(globals())", lambda self, value: None)
        result = 'ESCAPED'""",
}

IMPORTS = {
    "a name the facade does not list": "from json import codecs\nresult = codecs",
    "a module that sys.modules holds": "from os import path as p, sys\nresult = sys",
    "a submodule that sys.modules holds": "import json\nfrom json import decoder\nresult = decoder",
    "__import__": "result = __import__('os')",
    "__import__ as C calls it": "result = __import__('_strptime', {}, {}, [], 0)",
    "__import__ with the real globals": "result = __import__('_io', globals())",
    "a facade's own name": "import json\nresult = json.__name__",
    "a facade's loader": "import json\nresult = json.__loader__",
    "storing into a facade": "import json\njson.dumps = 1\nresult = 'ESCAPED'",
    "making a module": "import json\nresult = type(json)('os')",
    "a star import": "from json import *\nresult = codecs",
    "a relative import": "from . import os\nresult = os",
    "an import in a function": "def f():\n    import subprocess\n    return subprocess\nresult = f()",
    "an import that a handler expects": "try:\n    import subprocess\n    result = subprocess\nexcept ImportError:\n    result = None",
    "an import in a string": "exec('import subprocess as s')\nresult = s",
    "a module in a type hint": "import typing\ndef f(x: '__import__(\"os\")'): pass\nresult = typing.get_type_hints(f)['x']",
}

PATTERNS = {
    "a keyword that needs a guard": "match '{0.__class__}':\n    case str(format=f): result = f",
    "a keyword for frames": "def g(): yield\nmatch g():\n    case object(gi_frame=f): result = f",
    "a dunder keyword": "match 1:\n    case object(__class__=c): result = c",
    "a dunder keyword that reads a class": "match int:\n    case object(__mro__=c): result = c",
    "own __match_args__ that names format": """
        from abc import ABC
        class A(ABC): __match_args__ = ('format',)
        A.register(str)
        match 'x':
            case A(f): result = f""",
    "own __match_args__ made at run time": """
        from abc import ABC
        class Lazy:
            def __get__(self, obj, owner): return ('format',)
        class A(ABC): __match_args__ = Lazy()
        A.register(str)
        match 'x':
            case A(f): result = f""",
    "own __match_args__ with a lying str": """
        from abc import ABC
        class S(str):
            def __hash__(self): return 0
            def startswith(self, *a): return False
        class A(ABC): __match_args__ = (S('__globals__'),)
        A.register(type(print))
        match print:
            case A(f): result = f""",
    "__match_args__ stored later": """
        from abc import ABC
        class A(ABC): pass
        A.__match_args__ = ('__globals__',)""",
    "__match_args__ by setattr": """
        from abc import ABC
        class A(ABC): pass
        setattr(A, '__match_args__', ('format',))
        A.register(str)
        match 'x':
            case A(f): result = f""",
    "a dataclass field called format": """
        from abc import ABC
        from dataclasses import dataclass
        @dataclass
        class A(ABC): format: str
        A.register(str)
        match 'x':
            case A(f): result = f""",
    "a named tuple field called format": """
        from abc import ABC
        from typing import NamedTuple
        class N(NamedTuple): format: str
        class A(N, ABC): pass
        A.register(str)
        match 'x':
            case A(f): result = f""",
    "a value pattern": "class A: pass\nmatch 1:\n    case A.__subclasses__: pass\nresult = 'ESCAPED'",
}

CLASSES = {
    "type as a base": "class M(type): pass\nresult = M",
    "type under another name as a base": "t = type\nclass M(t): pass\nresult = M.__class__",
    "the metaclass of an enum as a base": "from enum import EnumType\nclass M(EnumType): pass\nresult = 'ESCAPED'",
    "ABCMeta as a base": "import abc\nclass M(abc.ABCMeta): pass\nclass C(metaclass=M): pass\nresult = [M.__mro__, type(C), C.__class__, type(M)]",
    "ABCMeta called": "import abc\nresult = abc.ABCMeta('X', (), {}) and 'ESCAPED'",
    "type with three arguments": "M = [type][0]('M', (type,), {})\nresult = [M.__mro__, M.__base__, type(M), M('C', (), {}).__class__]",
    "type with three arguments and __class__": "X = type('X', (), {'__class__': property(lambda s: int)})\nresult = isinstance(X(), int) and 'ESCAPED'",
    "type with three arguments and __mro__": "X = type('X', (), {'__mro__': ()})\nresult = 'ESCAPED'",
    "type with three arguments and a private name": "X = type('X', (), {'_fill': 1})\nresult = hasattr(X, '\\u16e5\\u02c8_fill') or 'ESCAPED'",
    "type with bases that lie": "class B(tuple):\n    def __iter__(self): return iter(())\nM = type('M', B((type,)), {})\nresult = type(M) is not type and 'ESCAPED'",
    "type with a metaclass": "class M: pass\nX = type('X', (), {}, metaclass=M)\nresult = 'ESCAPED'",
    "a class by __class__": "class A: pass\nM = A.__class__('X', (A.__class__,), {})\nresult = [M.__mro__, type(M)]",
    "type.__new__": "result = type.__new__(type, 'X', (), {'_fill': 1, '__dict__': 1}) and 'ESCAPED'",
    "type.__call__": "result = type.__call__(type, 'X', (), {}) and 'ESCAPED'",
    "__mro_entries__ that returns type": "class E:\n    def __mro_entries__(self, bases): return (type,)\nclass M(E()): pass\nresult = 'ESCAPED'",
    "a metaclass that is a function": "class M(metaclass=lambda *a: a): pass\nresult = M",
    "__prepare__": "class E:\n    @classmethod\n    def __prepare__(cls, *a): return {}\nclass M(metaclass=E): pass\nresult = 'ESCAPED'",
    "__class__ in a body": "class A:\n    __class__ = int\nresult = isinstance(A(), int) and 'ESCAPED'",
    "__class__ by locals() in a body": "class A:\n    locals()['__class__'] = property(lambda s: int)\nresult = isinstance(A(), int) and 'ESCAPED'",
    "__reduce__ in a body": "import copy\nclass A:\n    def __reduce__(self): return str, ('ESCAPED',)\nresult = copy.copy(A())",
    "__reduce_ex__ in a body": "import copy\nclass A:\n    def __reduce_ex__(self, n): return str, ('ESCAPED',)\nresult = copy.deepcopy([A()])[0]",
    "a namespace for make_dataclass": """
        import dataclasses
        D = dataclasses.make_dataclass('D', ['x'], namespace={'__class__': property(lambda s: int)})
        result = isinstance(D(1), int) and 'ESCAPED'""",
    "a functional enum": "from enum import Enum\nresult = Enum('E', {'__class__': property(lambda s: int)}) and 'ESCAPED'",
    "a named tuple with a dunder field": "from collections import namedtuple\nresult = namedtuple('N', ['__class__'])(1) and 'ESCAPED'",
    "a facade as a base": "import json\nclass A(type(json)): pass\nresult = type(A) is not type and 'ESCAPED'",
    "__build_class__": "result = __build_class__",
    "a class made by a function of the host": "class A: pass\nresult = A.__init_subclass__.__self__.__class__",
    "__slots__ that name a dunder": "class A:\n    __slots__ = ('__class__',)\nresult = 'ESCAPED'",
    "__slots__ with a lying str": "class S(str):\n    def startswith(self, *a): return False\nclass A:\n    __slots__ = (S('__globals__'),)\nresult = A.__globals__",
    "__getattr__ and the inner spelling": "class A:\n    def __getattr__(self, name): return name\nresult = '\\u16e5' in A()._x and 'ESCAPED'",
    "__set_name__ of a host descriptor": "import functools\nresult = functools.cached_property.__set_name__(1, 2, 3) and 'ESCAPED'",
    "NamedTuple's base class": "from typing import NamedTuple\nresult = NamedTuple.__mro_entries__(()) ",
}

FRAMES = {
    "the frame of a generator": "def g(): yield\nresult = g().gi_frame",
    "the frame of a generator by getattr": "def g(): yield\nresult = getattr(g(), 'gi_frame')",
    "the frame of a coroutine": "async def c(): pass\nx = c()\nx.close()\nresult = x.cr_frame",
    "what a coroutine awaits": "async def c(): pass\nx = c()\nx.close()\nresult = x.cr_await",
    "the frame of an async generator": "async def c(): yield\nresult = c().ag_frame",
    "what a generator yields from": "def g(): yield from [1]\nresult = g().gi_yieldfrom",
    "the frame of a traceback": "try:\n    1 / 0\nexcept Exception as e:\n    result = e.__traceback__.tb_frame",
    "the frame of a traceback by getattr": "try:\n    1 / 0\nexcept Exception as e:\n    result = getattr(e.__traceback__, 'tb_frame')",
    "the next of a traceback by getattr": "try:\n    1 / 0\nexcept Exception as e:\n    result = getattr(e.__traceback__, 'tb_next', None) or e.__traceback__.tb_next",
    "the frame of a traceback by a template": "try:\n    1 / 0\nexcept Exception as e:\n    result = '{0.__traceback__.tb_frame}'.format(e) and 'ESCAPED'",
    "the frame of a traceback by attrgetter": "import operator\ntry:\n    1 / 0\nexcept Exception as e:\n    result = operator.attrgetter('__traceback__.tb_frame')(e)",
    "a traceback that is not one": "class A:\n    tb_frame = 'ESCAPED'\ne = ValueError()\ne.__traceback__ = A()\nresult = e.__traceback__ and 'ESCAPED'",
    "a traceback's frame in __exit__": """
        class C:
            def __enter__(self): return self
            def __exit__(self, kind, error, tb): self.got = tb.tb_frame; return True
        c = C()
        with c: 1 / 0
        result = c.got""",
    "a traceback's frame by a template": """
        class C:
            def __enter__(self): return self
            def __exit__(self, kind, error, tb): self.got = '{0.tb_frame.f_globals}'.format(tb); return True
        c = C()
        with c: 1 / 0
        result = c.got and 'ESCAPED'""",
    "a traceback stored under a public name": """
        class C:
            def __enter__(self): return self
            def __exit__(self, kind, error, tb): self.obj = tb; return True
        c = C()
        with c: 1 / 0
        result = c.obj.tb_frame""",
    "sys._getframe": "import sys\nresult = sys._getframe()",
    "sys.exc_info": "import sys\ntry:\n    1 / 0\nexcept Exception:\n    result = sys.exc_info()[2].tb_frame",
    "the code of a function": "def f(): pass\nresult = f.__code__",
    "the code by compile": "result = compile('1', 'x', 'eval').co_code",
    "the globals of a function": "def f(): pass\nresult = f.__globals__",
    "the builtins of a function": "def f(): pass\nresult = f.__builtins__",
    "the closure of a function": "def f():\n    x = 1\n    return lambda: x\nresult = f().__closure__",
    "the frame of a running generator": "def w():\n    yield g.gi_frame\ng = w()\nresult = next(g)",
}

NAMES = {
    "assignment": "_getattr_ = 1",
    "annotated assignment": "_getattr_: int = 1",
    "augmented assignment": "_write_ += 1",
    "walrus": "(_getattr_ := 1)",
    "function": "def _getattr_(): pass",
    "async function": "async def _getattr_(): pass",
    "class": "class _getattr_: pass",
    "parameter": "def f(_getattr_): pass",
    "positional-only parameter": "def f(_write_, /): pass",
    "keyword-only parameter": "def f(*, _getattr_): pass",
    "star parameter": "def f(*_getattr_): pass",
    "double-star parameter": "def f(**_getattr_): pass",
    "lambda parameter": "lambda _getattr_: 1",
    "for": "for _getiter_ in []: pass",
    "comprehension": "[1 for _getiter_ in []]",
    "async for": "async def f():\n    async for _getiter_ in x: pass",
    "with": "with x as _getattr_: pass",
    "except": "try: pass\nexcept E as _getattr_: pass",
    "import": "import json as _getattr_",
    "from import": "from json import loads as _getattr_",
    "capture": "match 1:\n    case _getattr_: pass",
    "star capture": "match 1:\n    case [*_getattr_]: pass",
    "mapping capture": "match 1:\n    case {**_getattr_}: pass",
    "as capture": "match 1:\n    case int() as _getattr_: pass",
    "global": "def f():\n    global _getattr_",
    "nonlocal": "def f():\n    __builtins__ = 1\n    def g():\n        nonlocal __builtins__",
    "del": "del __builtins__",
    "unpacking": "a, (*_getattr_,) = 1, (2,)",
    "NFKC spelling": "_ｇetattr_ = 1",
    "the inner spelling": "\u16e5\u02c8_x = 1",
    "the inner spelling of an attribute": "x.\u16e5\u02c8_x = 1",
    "the inner spelling in a pattern": "match 1:\n    case object(\u16e5\u02c8_x=1): pass",
}
if sys.version_info >= (3, 12):
    NAMES |= {
        "type parameter": "def f[_getattr_](): pass",
        "star type parameter": "def f[*_getattr_](): pass",
        "parameter specification": "class A[**_getattr_]: pass",
        "type alias": "type _getattr_ = int",
    }


@pytest.mark.parametrize("way", GUARDED_VALUES)
def test_a_guard_judges_the_value_that_an_attribute_returns(way: str) -> None:
    assert reached(GUARDED_VALUES[way]) is None


@pytest.mark.parametrize("way", DYNAMIC_NAMES)
def test_no_function_that_code_can_reach_takes_an_unjudged_name(way: str) -> None:
    assert reached(DYNAMIC_NAMES[way]) is None


@pytest.mark.parametrize("way", IMPORTS)
def test_an_import_binds_only_what_a_facade_lists(way: str) -> None:
    assert reached(IMPORTS[way]) is None


@pytest.mark.parametrize("way", PATTERNS)
def test_a_pattern_reads_no_attribute_that_needs_a_guard(way: str) -> None:
    assert reached(PATTERNS[way]) is None


@pytest.mark.parametrize("way", CLASSES)
def test_a_class_is_made_only_by_a_class_statement_under_the_rules(way: str) -> None:
    assert reached(CLASSES[way]) is None


@pytest.mark.parametrize("way", FRAMES)
def test_nothing_leads_to_a_frame(way: str) -> None:
    assert reached(FRAMES[way]) is None


@pytest.mark.parametrize("form", NAMES)
def test_no_form_of_binding_takes_a_name_of_the_machinery(form: str) -> None:
    with pytest.raises(Refused) as refusal:
        compile_program(NAMES[form])
    assert refusal.value.line is not None


def test_the_probes_would_notice_an_escape() -> None:
    for escaped in (sys, type, str.format, "{}".format, compile("1", "x", "eval"), [1, sys], vars(builtins)):
        assert danger(escaped)


def test_no_store_reaches_a_class_that_the_worker_itself_relies_on() -> None:
    result = run_sealed(
        """
        import json, graphlib, collections
        class Own(json.JSONEncoder):
            def default(self, value): return "own"
        tried = [json.dumps({1, 2}, cls=Own)]
        for target in (json.JSONEncoder, graphlib.TopologicalSorter, collections.OrderedDict, collections.Counter):
            try:
                target.default = lambda self, value: "EVIL"
                tried.append(target)
            except TypeError:
                tried.append("refused")
        result = tried
        """
    )
    assert result == ['"own"', *["refused"] * 4]


def test_a_loop_of_the_codes_own_is_refused_with_the_way_out() -> None:
    result = run_sealed(
        """
        import asyncio
        async def work(): pass
        found = []
        for make in (lambda: asyncio.Future(loop=object()), lambda: asyncio.Task(work(), loop=object())):
            try: make()
            except TypeError as error: found.append(str(error))
        result = found
        """
    )
    assert result == ["a loop made by new_event_loop() was expected, not 'object'. Leave it out."] * 2


def test_a_sealed_process_has_no_method_that_sets_a_variable_of_the_host() -> None:
    source = """
import contextvars, decimal, operator
from sealab.sandbox.dialect import facades
from sealab.sandbox.dialect.facades import sealing
facades.preload()
own = contextvars.ContextVar("own")
own.set(1), own.set(2)  # so that CPython has cached where the method is
decimal.getcontext()
sealing.seal()
held = 0
for variable in contextvars.copy_context():
    for name in ("set", "reset"):
        for way in (lambda: getattr(variable, name), lambda: getattr(contextvars.ContextVar, name),
                    lambda: vars(contextvars.ContextVar)[name], lambda: operator.methodcaller(name, 1)(variable),
                    lambda: operator.attrgetter(name)(variable), lambda: variable.set(1)):
            try: way()
            except (AttributeError, KeyError): held += 1
with decimal.localcontext() as context: context.prec = 2; text = str(decimal.Decimal(1) / 3)
print(len(contextvars.copy_context()), held, text)
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False, timeout=30)
    assert done.stdout == "2 24 0.33\n", done.stderr


def test_a_dictionary_that_objects_are_given_is_copied_and_shared() -> None:
    result = run(
        """
        import copy, functools
        class Borg:
            shared = {"first": 1, "_private": 2}
            def __init__(self): self.__dict__ = self.shared
            @functools.cached_property
            def late(self): return self.first
            def private(self): return self._private
        one, two = Borg(), Borg()
        one.second = 2
        Borg.shared["third"] = 3
        other = copy.copy(one)
        other.second = 4
        one.late
        follower = Borg()
        follower.__dict__ = one.__dict__
        follower.__dict__["fourth"] = 4
        result = [two.second, hasattr(one, "third"), other.second, two.late, one.private(), two.fourth, sorted(vars(two))]
        """
    )
    assert result == [2, False, 4, 1, 2, 4, ["_private", "first", "fourth", "late", "second"]]


@pytest.mark.parametrize("key", ["'__class__'", "'__get__'", "'__globals__'", "'__builtins__'", "1", "Text('a')"])
def test_no_dictionary_of_attributes_has_a_key_that_source_could_not_spell(key: str) -> None:
    with pytest.raises(TypeError):
        run(f"class Text(str): pass\nclass A: pass\na = A()\na.__dict__ = {{{key}: 1}}")


def test_a_decimal_context_lives_as_long_as_its_flags() -> None:
    result = run_sealed(
        """
        import decimal, gc, operator, weakref
        class Context(decimal.Context):
            __match_args__ = ("traps",)
        def traps(context):
            match context:
                case Context(found): return found
        ways = [lambda context: context.flags, lambda context: getattr(context, "traps"), operator.attrgetter("flags"),
                traps, lambda context: decimal.Context.__getattribute__(context, "flags")]
        alive, dead = [], []
        for way in ways:
            context = Context()
            known, held = weakref.ref(context), way(context)
            del context
            gc.collect()
            alive.append(known() is not None)
            held.copy()
            del held
            for number in range(2_500):  # so many that what nobody holds is looked for
                decimal.Context().flags
            dead.append(known() is None)
        result = [alive, dead]
        """
    )
    assert result == [[True] * 5, [True] * 5]


def test_the_text_of_a_task_shows_no_path_of_the_host() -> None:
    result = run_sealed(
        """
        import asyncio
        async def main():
            tasks = [asyncio.create_task(each) for each in (asyncio.sleep(9), asyncio.to_thread(len, []))]
            tasks.append(asyncio.create_task(asyncio.wait_for(asyncio.sleep(9), 9)))
            tasks.append(asyncio.gather(tasks[0]))
            await asyncio.sleep(0)
            handle = asyncio.get_running_loop().call_soon(asyncio.gather)
            return [repr(each) for each in [*tasks, handle]]
        result = asyncio.run(main())
        """
    )
    assert "sleep() running at tasks.py:" in result[0]
    assert not [text for text in result if "/" in text]


def test_no_memory_of_a_buffer_outlives_it() -> None:
    kept = """
        import io
        class Raw(io.RawIOBase):
            views = []
            def readable(self): return True
            def writable(self): return True
            def seekable(self): return True
            def readinto(self, view): Raw.views.append(view); return 5_000_000
            def write(self, data): Raw.views.append(data); return len(data)
            def seek(self, *where): return 0
            def tell(self): return 0
        told = []
        for kind in (io.BufferedReader, io.BufferedRandom, io.BufferedWriter):
            stream = kind(Raw())
            try:
                told.append(len(stream.read(10)))
            except io.UnsupportedOperation:
                stream.write(b"x" * 10)
                stream.flush()
            del stream
        result = [told, {type(view).__name__ for view in Raw.views}]
        """
    assert run(kept) == [[10, 10], {"bytearray", "bytes"}]


@pytest.mark.skipif(sys.platform == "emscripten", reason="unittest runs from sources that WebAssembly lacks")
def test_what_stands_for_exit_is_shown_as_it_was_written() -> None:
    result = run(
        """
        from unittest import mock
        class Exits:
            __exit__ = divmod
            def __enter__(self): return self
        shown = [Exits.__exit__ is divmod, vars(Exits)["__exit__"] is divmod, Exits().__exit__(7, 2)]
        class Forgives(Exits):
            __exit__ = property(lambda self: lambda *told: shown.append(told[0].__name__) or True)
        with Forgives():
            1 / 0
        class Cached(Exits):
            __exit__ = functools.cached_property(lambda self: lambda *told: True)
        with Cached():
            1 / 0
        class Fails(Exits): __exit__ = 5
        try:
            with Fails(): pass
        except TypeError as error:
            shown.append(str(error))
        manager = mock.MagicMock()
        manager.__exit__.return_value = True
        with manager:
            raise ValueError
        result = [*shown, manager.__exit__.call_args.args[0].__name__]
        """
    )
    assert result == [True, True, (3, 1), "ZeroDivisionError", "'int' object is not callable", "ValueError"]


@pytest.mark.skipif(sys.platform == "emscripten", reason="unittest runs from sources that WebAssembly lacks")
def test_an_exception_of_the_codes_own_does_not_say_what_its_traceback_is() -> None:
    result = run(
        """
        import io, unittest
        asked = []
        class Lies(Exception):
            def __getattribute__(self, name):
                asked.append(name)
                return asked if name == "__traceback__" else super().__getattribute__(name)
        class Case(unittest.TestCase):
            @classmethod
            def setUpClass(cls): raise Lies
            def test(self): pass
        told = io.StringIO()
        unittest.TextTestRunner(told).run(unittest.TestLoader().loadTestsFromTestCase(Case))
        result = ["__traceback__" in asked, "in Case.setUpClass" in told.getvalue()]
        """
    )
    assert result == [False, True]


def test_members_of_a_class_are_those_that_it_has_in_python() -> None:
    result = run(
        """
        import inspect
        class A:
            def m(self): pass
        result = [name for name, _ in inspect.getmembers(A, inspect.isfunction)]
        """
    )
    assert result == ["m"]


def test_private_attributes_of_host_objects_cannot_be_named() -> None:
    result = run(
        """
        import random, decimal
        class Own(random.Random):
            def probe(self): return hasattr(self, "_randbelow"), hasattr(random, "_inst"), hasattr(decimal, "_x")
        own = Own()
        own._randbelow = 5
        result = [own.probe()[1:], own._randbelow, own.randrange(1)]
        """
    )
    assert result == [(False, False), 5, 0]


AS_IN_PYTHON = {
    "a users own class may use every guarded public name": """
        class Own:
            parser = "p"
            def format(self, x): return x
            def get_context(self): return "c"
            def mro(self): return "m"
            def get_loop(self): return "l"
            def __init__(self): self.obj = "o"
        own = Own()
        match own:
            case Own(): pass
        result = [own.format(1), own.obj, own.parser, own.get_context(), own.mro(), own.get_loop(), getattr(own, "format")(2)]
        """,
    "a keyword argument may have any name since two stars pass any": "def f(**named): return named\nresult = f(_getattr_=1, __builtins__=2) == f(**{'_getattr_': 1, '__builtins__': 2})",
    "guards keep working when code replaces what it can reach": """
        import string, collections, json, operator
        for target in (string.Formatter, collections.UserString, json.JSONEncoder):
            for name in ("format", "get_field", "vformat", "default", "encode", "data"):
                try:
                    setattr(target, name, lambda *a, **k: "mine")
                except Exception:
                    pass
        str_, isinstance, type, len, getattr = None, None, None, None, operator.attrgetter
        tried = []
        for template in ("{0.__globals__}", "{0.__code__}"):
            try:
                tried.append(template.format(print))
            except AttributeError:
                tried.append("refused")
        result = tried
        """,
    "code of the library copies nothing into an object that the class did not have": """
        from abc import ABC
        from collections import UserDict
        class Any(ABC):
            @classmethod
            def __subclasshook__(cls, subclass): return True
        class Writes(UserDict):
            __copy__ = None
            def __new__(cls, *given): return object.__new__(cls) if given else Any
            def __getstate__(self): return None, {'__match_args__': ('__globals__',)}
        try:
            Writes({}).copy()
        except (AttributeError, TypeError):
            pass
        try:
            match print:
                case Any(found): result = "ESCAPED"
        except TypeError:
            result = None
        """,
    "a shielded method is shown as it was written": """
        class A:
            def __getattr__(self, name): return name
        result = [A().x, A()._y, vars(A)["__getattr__"](None, "z"), A.__getattr__(A(), "_w")]
        """,
    "a subclass hook may ask for what classes of python do not show": """
        from abc import ABC
        class Shape(ABC):
            @classmethod
            def __subclasshook__(cls, other): return any("area" in base.__dict__ for base in other.__mro__)
        class Square:
            def area(self): return 4
        result = [isinstance(Square(), Shape), isinstance(3, Shape)]
        """,
    "a dict whose items are attributes works as in python": """
        class Record(dict):
            __getattr__ = dict.__getitem__
            __setattr__ = dict.__setitem__
            __delattr__ = dict.__delitem__
        r = Record(a=1)
        r.b, r._c = 2, 3
        del r.a
        result = [r.b, r._c, dict(r)]
        """,
}


@pytest.mark.parametrize("program", AS_IN_PYTHON.values(), ids=AS_IN_PYTHON)
def test_a_program_gives_what_python_gives(program: str) -> None:
    gives_what_python_gives(program)
