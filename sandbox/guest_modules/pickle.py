"""`pickle` as guest code: plain data, the library's everyday values, and objects of the program's own classes.

The bytes are this module's own format (nodes as JSON behind a first byte that no text has), not that of CPython: a load
can name only what an import statement of the program could, and calls nothing but the classes that a dump writes.
"""

import base64
import builtins
import collections
import copyreg
import datetime
import decimal
import enum
import fractions
import io
import json
import pathlib
import re
import types
import uuid
import zoneinfo
from array import array

import _modules

__all__ = [
    "DEFAULT_PROTOCOL", "HIGHEST_PROTOCOL", "PickleError", "Pickler", "PicklingError", "Unpickler", "UnpicklingError",
    "dump", "dumps", "load", "loads",
]  # fmt: skip

HIGHEST_PROTOCOL = 5
DEFAULT_PROTOCOL = 4
_HEAD = b"\x80\x04sealab\n"
_END = b"\n."
_CONSTANTS = {"None": None, "True": True, "False": False, "Ellipsis": Ellipsis, "NotImplemented": NotImplemented}
_MAKES = {list: "list", tuple: "tuple", set: "set", frozenset: "frozenset", dict: "dict"}


class PickleError(Exception):
    """The base class of the errors of this module."""


class PicklingError(PickleError):
    """An object cannot be written."""


class UnpicklingError(PickleError):
    """The bytes cannot be read."""


def dumps(obj, protocol=None, *, fix_imports=True, buffer_callback=None):
    """Return `obj` as bytes. Raises PicklingError, TypeError, AttributeError."""
    writer = _Writer()
    root = writer.write(obj)
    return _HEAD + json.dumps([root, writer.nodes]).encode() + _END


def loads(data, /, *, fix_imports=True, encoding="ASCII", errors="strict", buffers=None):
    """Return the object that `data` was made of. Raises UnpicklingError, EOFError, AttributeError, ImportError."""
    data = bytes(data)
    if not data:
        raise EOFError("Ran out of input")
    if not data.startswith(_HEAD):
        raise UnpicklingError("the data was not made by pickle here; have it written as JSON where it comes from")
    end = data.find(_END, len(_HEAD))
    if end < 0:
        raise UnpicklingError("pickle data was truncated")
    try:
        root, nodes = json.loads(data[len(_HEAD) : end])
    except ValueError:
        raise UnpicklingError("invalid load key") from None
    return _Reader(nodes).read(root)


def dump(obj, file, protocol=None, *, fix_imports=True, buffer_callback=None):
    file.write(dumps(obj))


def load(file, *, fix_imports=True, encoding="ASCII", errors="strict", buffers=None):
    head = file.readline()
    if not head:
        raise EOFError("Ran out of input")
    if not head.startswith(b"\x80"):
        raise UnpicklingError("the data was not made by pickle here; have it written as JSON where it comes from")
    return loads(head + file.readline() + file.read(1))


class Pickler:
    """Writes objects to a binary file."""

    def __init__(self, file, protocol=None, *, fix_imports=True, buffer_callback=None):
        self._file = file

    def dump(self, obj):
        dump(obj, self._file)

    def clear_memo(self):
        """Do nothing: each dump stands alone."""


class Unpickler:
    """Reads objects from a binary file."""

    def __init__(self, file, *, fix_imports=True, encoding="ASCII", errors="strict", buffers=None):
        self._file = file

    def load(self):
        return load(self._file)


class _Writer:
    """Turns objects into nodes; each object becomes one, wherever it occurs."""

    def __init__(self):
        self.nodes = []
        self._numbers = {}
        self._alive = []

    def write(self, obj):
        if id(obj) in self._numbers:
            return self._numbers[id(obj)]
        number = self._numbers[id(obj)] = len(self.nodes)
        self._alive.append(obj)
        self.nodes.append(None)
        self.nodes[number] = self._node(obj)
        return number

    def _all(self, items):
        return [self.write(item) for item in items]

    def _node(self, obj):
        kind = type(obj)
        for name, constant in _CONSTANTS.items():
            if obj is constant:
                return ["constant", name]
        if kind is int:
            return ["int", hex(obj)]
        if kind is float:
            return ["float", obj.hex()]
        if kind is str:
            return ["str", obj]
        if kind is bytes:
            return ["bytes", base64.b64encode(obj).decode()]
        if kind is dict:
            return ["dict", [[self.write(key), self.write(value)] for key, value in obj.items()]]
        if kind in _MAKES:
            return [_MAKES[kind], self._all(obj)]
        if isinstance(obj, type) or kind in (types.FunctionType, types.BuiltinFunctionType):
            return self._name_of(obj)
        reduce = copyreg.dispatch_table.get(kind)
        if reduce is not None:
            return self._reduced(reduce(obj))
        if kind in _REDUCERS:
            return ["call", self.write(kind), self._all(_REDUCERS[kind](obj)), None]
        if isinstance(obj, re.Pattern):
            return ["call", self.write(re.compile), self._all((obj.pattern, int(obj.flags))), None]
        if isinstance(obj, enum.Enum):
            return ["call", self.write(kind), self._all([obj.value]), None]
        if isinstance(obj, pathlib.PurePath):
            return ["call", self.write(kind), self._all([str(obj)]), None]
        return self._object(obj, kind)

    def _reduced(self, reduced):
        function, args, *rest = reduced
        return ["call", self.write(function), self._all(args), self.write(rest[0]) if rest else None]

    def _object(self, obj, kind):
        if type(getattr(kind, "__reduce__", None)) is types.FunctionType:
            return self._reduced(obj.__reduce__())
        if isinstance(obj, BaseException):
            return ["call", self.write(kind), self._all(obj.args), self.write(_state_of(obj))]
        if kind.__module__ in _UNWRITABLE or kind.__module__ == "builtins" or isinstance(obj, _NOT_DATA):
            raise TypeError(f"cannot pickle {kind.__name__!r} object")
        base = next((each for each in _BASES if isinstance(obj, each)), object)
        content, arguments = None, []
        if base is dict:
            content = [[self.write(key), self.write(value)] for key, value in obj.items()]
        elif base in (list, set):
            content = self._all(obj)
        elif hasattr(obj, "__getnewargs__"):
            arguments = obj.__getnewargs__()
        elif base is not object:
            arguments = [base(obj)]
        return ["object", self.write(kind), self._all(arguments), content, self.write(_state_of(obj))]

    def _name_of(self, obj):
        module, name = getattr(obj, "__module__", None) or "builtins", obj.__qualname__
        if "<locals>" in name:
            raise AttributeError(f"Can't pickle local object {name!r}")
        try:
            found = _named(module, name)
        except (ImportError, AttributeError):
            found = None
        if found is not obj:
            name_of = [each for each, value in vars(builtins).items() if value is obj]
            module, name, found = ("builtins", name_of[0], obj) if name_of else (module, name, found)
        if found is not obj:
            raise PicklingError(f"Can't pickle {obj!r}: attribute lookup {name} on {module} failed")
        return ["name", module, name]


def _state_of(obj):
    own = getattr(type(obj), "__getstate__", None)
    if type(own) is types.FunctionType:
        return obj.__getstate__()
    state = dict(vars(obj)) if hasattr(obj, "__dict__") else {}
    for name in _slots_of(type(obj)):
        if hasattr(obj, name):
            state[name] = getattr(obj, name)
    return state or None


def _slots_of(cls):
    """Return the slots of the program's own classes; those of the library have theirs written otherwise."""
    try:
        classes = cls.__mro__
    except AttributeError:
        return []
    found = []
    for base in classes:
        try:
            slots = vars(base).get("__slots__", ())
        except TypeError:
            continue
        found += [slots] if isinstance(slots, str) else slots
    return [name for name in found if name not in ("__dict__", "__weakref__")]


def _named(module, qualified):
    found = _modules.load(module)
    for part in qualified.split("."):
        found = getattr(found, part)
    return found


class _Reader:
    """Makes the objects of nodes."""

    def __init__(self, nodes):
        self._nodes = nodes
        self._made = {}

    def read(self, number):
        if number not in self._made:
            kind, *parts = self._nodes[number]
            self._made[number] = getattr(self, "read_" + kind)(number, *parts)
        return self._made[number]

    def _all(self, numbers):
        return [self.read(number) for number in numbers]

    def read_constant(self, _number, name):
        return _CONSTANTS[name]

    def read_int(self, _number, text):
        return int(text, 16)

    def read_float(self, _number, text):
        return float.fromhex(text)

    def read_str(self, _number, text):
        return text

    def read_bytes(self, _number, text):
        return base64.b64decode(text)

    def read_list(self, number, items):
        made = self._made[number] = []
        made.extend(self._all(items))
        return made

    def read_set(self, number, items):
        made = self._made[number] = set()
        made.update(self._all(items))
        return made

    def read_dict(self, number, pairs):
        made = self._made[number] = {}
        for key, value in pairs:
            made[self.read(key)] = self.read(value)
        return made

    def read_tuple(self, _number, items):
        return tuple(self._all(items))

    def read_frozenset(self, _number, items):
        return frozenset(self._all(items))

    def read_name(self, _number, module, name):
        return _named(module, name)

    def read_call(self, number, function, arguments, state):
        made = self._made[number] = self.read(function)(*self._all(arguments))
        if state is not None:
            _set_state(made, self.read(state))
        return made

    def read_object(self, number, cls, arguments, content, state):
        cls = self.read(cls)
        made = self._made[number] = cls.__new__(cls, *self._all(arguments))
        if isinstance(made, dict):
            for key, value in content or ():
                made[self.read(key)] = self.read(value)
        elif isinstance(made, list):
            made.extend(self._all(content or ()))
        elif isinstance(made, set):
            made.update(self._all(content or ()))
        _set_state(made, self.read(state))
        return made


def _set_state(obj, state):
    own = getattr(type(obj), "__setstate__", None)
    if type(own) is types.FunctionType:
        if state is not None:
            obj.__setstate__(state)
        return
    for name, value in (state or {}).items():
        object.__setattr__(obj, name, value)


_BASES = (dict, list, set, tuple, frozenset, str, bytes, int, float, complex)
_UNWRITABLE = ("_thread", "threading", "concurrent.futures.thread")
_NOT_DATA = (io.IOBase, types.GeneratorType, types.CoroutineType, types.ModuleType)
_REDUCERS = {
    bytearray: lambda obj: (bytes(obj),),
    range: lambda obj: (obj.start, obj.stop, obj.step),
    slice: lambda obj: (obj.start, obj.stop, obj.step),
    datetime.date: lambda obj: (obj.year, obj.month, obj.day),
    datetime.time: lambda obj: (obj.hour, obj.minute, obj.second, obj.microsecond, obj.tzinfo),
    datetime.datetime: lambda obj: (
        *(obj.year, obj.month, obj.day, obj.hour, obj.minute, obj.second, obj.microsecond, obj.tzinfo),
    ),
    datetime.timedelta: lambda obj: (obj.days, obj.seconds, obj.microseconds),
    datetime.timezone: lambda obj: (obj.utcoffset(None),),
    zoneinfo.ZoneInfo: lambda obj: (obj.key,),
    decimal.Decimal: lambda obj: (str(obj),),
    fractions.Fraction: lambda obj: (obj.numerator, obj.denominator),
    uuid.UUID: lambda obj: (str(obj),),
    collections.Counter: lambda obj: (dict(obj),),
    collections.OrderedDict: lambda obj: (list(obj.items()),),
    collections.defaultdict: lambda obj: (obj.default_factory, dict(obj)),
    collections.deque: lambda obj: (list(obj), obj.maxlen),
    array: lambda obj: (obj.typecode, obj.tolist()),
}
