"""Guest source of spies: objects that record what they are handed, and then answer so that the host goes on.

All of it is compiled and run as guest code is, so that its classes are guest classes under the rules of the dialect.
`noted` is the record: `(where, positional arguments, keyword arguments)` of every call.
"""

# ruff: noqa: SIM905 - a table of words is read as words, not as quoted strings

from __future__ import annotations

from sealab.sandbox.dialect import names

_ASYNC = "__aenter__ __aexit__ __anext__".split()
_LEFT_OUT = {
    # What makes or ends objects is written out; what is asked for every name has a spy of its own.
    *"__init__ __new__ __del__ __getattribute__ __getattr__ __setattr__ __delattr__ __init_subclass__".split(),
    *"__slots__ __match_args__ __doc__ __module__ __qualname__ __annotations__ __total__ __class_getitem__".split(),
    *"__subclasshook__ __getnewargs__ __getnewargs_ex__ __getstate__ __setstate__".split(),
}
METHODS = sorted(names.DEFINABLE - names.PUBLIC_SUNDERS - _LEFT_OUT)

_PRELUDE = """
noted = []
class Enough(BaseException): pass
def note(where, args, kwargs):
    noted.append((where, args, kwargs))
    if len(noted) > 400:
        raise Enough(where)

async def later(value): return value
async def no_more(): raise StopAsyncIteration
class Name(str):
    # A text that equals what it likes, for as long as it is asked by somebody who judges it.
    asked = 0
    def __eq__(self, other):
        note("Name.__eq__", (self, other), {})
        Name.asked += 1
        return Name.asked % 3 == 0 and str.__eq__(self, other)
    def __hash__(self): return str.__hash__(self)
    def startswith(self, *a): return False
    def isidentifier(self): return True

NATURAL = {
    "__eq__": True, "__ne__": False, "__lt__": True, "__le__": True, "__gt__": False, "__ge__": False, "__hash__": 7,
    "__bool__": True, "__len__": 2, "__length_hint__": 2, "__contains__": True, "__index__": 1, "__int__": 1,
    "__float__": 1.0, "__complex__": 1j, "__round__": 1, "__trunc__": 1, "__floor__": 1, "__ceil__": 1, "__sizeof__": 8,
    "__dir__": ["format"], "__str__": "format", "__repr__": "format", "__format__": "format", "__bytes__": b"x",
    "__fspath__": "a", "__set__": None, "__delete__": None, "__set_name__": None, "__setitem__": None, "__delitem__": None,
    "__exit__": True, "__instancecheck__": True, "__subclasscheck__": True, "__setstate__": None,
    "__divmod__": (1, 1), "__rdivmod__": (1, 1), "__missing__": "format", "__post_init__": None,
}
def natural(self, name, args):
    if name in NATURAL: return NATURAL[name]
    if name == "__call__": return args[0] if args else self
    if name in ("__iter__", "__reversed__", "__await__"): return iter(["format", 1])
    if name == "__next__": raise StopIteration
    if name == "__getitem__":
        if args and type(args[0]) is int and args[0] > 1: raise IndexError
        return "format"
    if name == "__mro_entries__": return (Plain,)
    if name in ("__aenter__", "__aexit__"): return later(True)
    if name == "__anext__": return no_more()
    return self
def odd(self, name, args):
    if name in ("__hash__", "__len__", "__index__", "__bool__", "__iter__", "__next__", "__await__", "__mro_entries__"): return natural(self, name, args)
    if name in ("__eq__", "__instancecheck__", "__subclasscheck__", "__contains__"): return False
    if name in ("__str__", "__repr__", "__format__"): return Text("__class__")
    return other
def refusing(self, name, args):
    if name in ("__hash__", "__iter__"): return natural(self, name, args)
    if name in ("__call__", "__next__", "__index__"): raise TypeError(other)
    return NotImplemented
class Plain:
    x = 1
class Text(str): pass
other = Plain()
"""

_SPY = """
class {name}({base}):
    def __init__(self, *args, **kwargs):
        note("{name}.__init__", args, kwargs)
    def __init_subclass__(cls, *args, **kwargs): note("{name}.__init_subclass__", args, kwargs)
    def __getattr__(self, name):
        if name == "obj" or name.startswith("__"): raise AttributeError(name)
        note("{name}.__getattr__", (name,), {{}})
        def method(*args, **kwargs):
            note("{name}." + name, args, kwargs)
            return {policy}(self, name, args)
        return method
    def __class_getitem__(cls, item):
        note("{name}.__class_getitem__", (item,), {{}})
        return cls
{methods}
"""
_METHOD = """    def {method}(self, *args, **kwargs):
        note("{name}.{method}", args, kwargs)
        return {policy}(self, "{method}", args)
"""
_AS_BASE = set("__eq__ __hash__ __len__ __iter__ __getitem__ __contains__ __str__ __index__ __bool__ __int__".split())
"""What C reads from a built-in value itself is left to it in some spies, so that the host takes it for one."""


def spy(
    name: str, base: str = "object", policy: str = "natural", *, leaving: frozenset[str] | set[str] = frozenset()
) -> str:
    """Return the source of a class of spies that define every method but those in `leaving`."""
    chosen = [method for method in METHODS if method not in leaving]
    methods = "".join(_METHOD.format(name=name, method=method, policy=policy) for method in chosen)
    return _SPY.format(name=name, base=base, policy=policy, methods=methods)


_CALLS = """
from abc import ABC
import abc
class Static(ABC):
    # Asked by `isinstance` and `issubclass`, in every way in which a class can answer them.
    @classmethod
    def __subclasshook__(cls, *args): note("Static.__subclasshook__", args, {}); return True
{checks}
class Whole(Static):
    @classmethod
    def __subclasshook__(*args): note("Whole.__subclasshook__", args, {}); return False
class Memo(dict):
    def get(self, *args): note("Memo.get", args, {}); return super().get(*args)
    def __getitem__(self, *args): note("Memo.__getitem__", args, {}); return super().__getitem__(*args)
    def __setitem__(self, *args): note("Memo.__setitem__", args, {}); super().__setitem__(*args)
    def __contains__(self, *args): note("Memo.__contains__", args, {}); return super().__contains__(*args)
    def setdefault(self, *args): note("Memo.setdefault", args, {}); return super().setdefault(*args)
class Data:
    # Stands for the data descriptors: found on a class, asked for instances.
    def __get__(self, *args): note("Data.__get__", args, {}); return "format"
    def __set__(self, *args): note("Data.__set__", args, {})
    def __delete__(self, *args): note("Data.__delete__", args, {})
    def __set_name__(self, *args): note("Data.__set_name__", args, {})
class Reached(Exception):
    def __str__(self): note("Reached.__str__", (), {}); return "format"
    def __repr__(self): note("Reached.__repr__", (), {}); return "format"
class Deep:
    def __deepcopy__(self, *args, **kwargs): note("Deep.__deepcopy__", args, kwargs); return self
    def __copy__(self, *args, **kwargs): note("Deep.__copy__", args, kwargs); return self
class State:
    # Restores whatever names its state holds.
    def __getstate__(self): return {"format": 1, "dispatch": 2}
    def __setstate__(self, *args): note("State.__setstate__", args, {})
class Asked:
    # Asked for every attribute.
    def __getattribute__(self, *args): note("Asked.__getattribute__", args, {}); return function
    def __setattr__(self, *args): note("Asked.__setattr__", args, {})
    def __delattr__(self, *args): note("Asked.__delattr__", args, {})
class Later(ABC): pass
def ask_later(name):
    def recording(*args): note("Later." + name, args, {}); return True
    for kind in (staticmethod, classmethod, Data, lambda f: f):
        try: setattr(Later, name, kind(recording))
        except Exception: pass
for name in ("__subclasscheck__", "__instancecheck__", "__subclasshook__"): ask_later(name)
def function(*args, **kwargs):
    note("function", args, kwargs)
    return args[0] if args else function
def raising(*args, **kwargs):
    note("raising", args, kwargs)
    raise Reached(*args)
def generating(*args, **kwargs):
    note("generating", args, kwargs)
    while len(noted) < 300:
        note("sent", ((yield args),), {})
        if len(noted) > 6: return
async def awaited(*args, **kwargs):
    note("awaited", args, kwargs)
    return args
def dressed(x: int, format: object = None, *args, **kwargs):
    note("dressed", (x, format, *args), kwargs)
    return x
def dress(name):
    def recording(*args, **kwargs):
        note("dressed." + name, args, kwargs)
        return function
    setattr(dressed, name, recording)
"""

_CHECKS = ("__subclasscheck__", "__instancecheck__")
_CHECK = """    @staticmethod
    def {check}(*args): note("Static.{check}", args, {{}}); return True
"""
BASES = "str int float bytes list tuple dict set Exception".split()
_VALUES = """
VALUES = [
    ('Spy()', lambda: Spy()),
    ('Odd()', lambda: Odd()),
    ('Refusing()', lambda: Refusing()),
    ('Asked()', lambda: Asked()),
    ('Deep()', lambda: Deep()),
    ('State()', lambda: State()),
    ('function', lambda: function),
    ('raising', lambda: raising),
    ('generating', lambda: generating),
    ('awaited', lambda: awaited),
    ('dressed', lambda: dressed),
    ('Spy', lambda: Spy),
    ('Odd', lambda: Odd),
    ('Static', lambda: Static),
    ('Whole', lambda: Whole),
    ('Later', lambda: Later),
    ('StrSpy', lambda: StrSpy),
    ('Reached', lambda: Reached),
    ('Reached()', lambda: Reached('a', function)),
    ('Data()', lambda: Data()),
    ('Memo()', lambda: Memo()),
    ('Name', lambda: Name('__class__')),
    ('[Name]', lambda: [Name('_x'), Name('__class__')]),
    ('{Name}', lambda: {Name('__match_args__'): ('__globals__',), Name('_x'): function}),
    ('[Spy()]', lambda: [Spy(), Spy()]),
    ('(Spy(),)', lambda: (Spy(), Spy())),
    ('{a: Spy()}', lambda: {'a': Spy(), 'format': Odd()}),
    ('{Spy()}', lambda: {Spy(): Spy()}),
    ('names', lambda: {'__class__': function, '_x': function, 'format': function, 'x': function}),
    ("'format'", lambda: 'format'),
    ("'__globals__'", lambda: '__globals__'),
    ("['format']", lambda: ['format', '__globals__']),
    ('template', lambda: '{0.__globals__}'),
    ('template of 1', lambda: '{1.__globals__}'),
    ('template of x', lambda: '{x.__globals__}'),
    ('[pairs]', lambda: [('format', function), ('__x__', Odd())]),
]
def values():
    # Make one hostile value of each kind; what a call spoiled is left out.
    made = {}
    for name, make in VALUES:
        try: made[name] = make()
        except Exception: pass
    for name, kind, value in KINDS:
        try: made[name + "()"] = kind(value)
        except Exception: pass
    return made
"""


def source() -> str:
    """Return the whole source."""
    kinds = [f"{base.capitalize()}Spy" for base in BASES]
    spies = [spy("Spy"), spy("Odd", policy="odd"), spy("Refusing", policy="refusing")]
    for kind, base in zip(kinds, BASES, strict=True):
        spies.append(spy(kind, base, leaving=_AS_BASE))
    values = 'format|1|1.0|b"a"|[1, "format"]|(1, "format")|{"a": 1, "format": 2}|{1, 2}|"a"'.split("|")
    values[0] = '"format"'
    table = ", ".join(f'("{kind}", {kind}, {value})' for kind, value in zip(kinds, values, strict=True))
    checks = "".join(_CHECK.format(check=check) for check in _CHECKS if check in names.DEFINABLE) or "    pass"
    return _PRELUDE + "".join(spies) + _CALLS.replace("{checks}", checks) + f"KINDS = [{table}]\n" + _VALUES
