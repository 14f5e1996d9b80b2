"""What programs are composed of: the spies and words that every session has, and what modules give."""

# ruff: noqa: SIM905 - a table of words is read as words, not as quoted strings

from __future__ import annotations

import inspect
import typing
from functools import cache

from sealab.sandbox.dialect import facades, names
from sealab.sandbox.guest import ownership
from sealab.sandbox.guest_api import data_helpers, hosted

from .oracle import instance_dict

own_dict = type.__dict__["__dict__"].__get__
mro_of = type.__dict__["__mro__"].__get__

SPIES = '''
SEEN = []
def see(value=None, *arguments, **named):
    SEEN.append((value, arguments, named))
    return value
class Lie(str):
    """Equals what it looks like, and whatever it is asked about the second time."""
    def __eq__(self, other): return str.__eq__(self, other) or see(False, other)
    def __hash__(self): return str.__hash__(self)
class Two(str):
    """Looks like one name and hashes as another."""
    def __eq__(self, other): return see(True, other)
    def __hash__(self): return hash("__builtins__")
class Spy:
    def __eq__(self, *a, **k): return see(True, a, k)
    def __hash__(self): return 1
    def __call__(self, *a, **k): return see(None, a, k)
    def __or__(self, *a, **k): return see(self, a, k)
    def __ror__(self, *a, **k): return see(self, a, k)
    def __get__(self, *a, **k): return see(self, a, k)
    def __set_name__(self, *a, **k): see(None, a, k)
    def __iter__(self, *a, **k): return iter([see(self, a, k)])
    def __contains__(self, *a, **k): return see(True, a, k)
    def __getitem__(self, *a, **k): return see(self, a, k)
    def __format__(self, *a, **k): return see("", a, k) and ""
    def __deepcopy__(self, *a, **k): return see(self, a, k)
    def __mro_entries__(self, *a, **k): return see((), a, k)
    def __lt__(self, *a, **k): return see(True, a, k)
spy = Spy()
'''
HELPERS = "the helpers"
SKIPPED_MODULES = frozenset(
    {
        "__future__", "errno", "html.entities", "math", "cmath", "colorsys", "zlib", "bz2", "gzip", "lzma",
        "binascii", "unicodedata", "typing_extensions", "hashlib", "secrets",
    }
)  # fmt: skip
SKIPPED_MEMBERS = frozenset(
    "sleep setrecursionlimit scrypt pbkdf2_hmac TestProgram main timeit repeat Timer run_forever exit quit input open"
    " set_int_max_str_digits breakpoint help available_timezones".split()
)
FAVOURITES = (
    "copy dataclasses enum functools typing types abc operator inspect contextlib collections collections.abc weakref"
    " string json asyncio contextvars fractions decimal"
).split()
WORDS = tuple(
    "format format_map mro name value default register dispatch registry func fget field fields obj key items keys get a b x"
    " run test_a runTest cache_clear data args __class__ __dict__ __globals__ __name__ __doc__ __module__ __wrapped__"
    " __builtins__ __init__ __call__ __getattr__ __getattribute__ __setattr__ __match_args__ __slots__ __mro_entries__"
    " __subclasshook__ __code__ __annotations__ __qualname__ __new__ __eq__ __hash__ __set_name__ __get__"
    " __dataclass_fields__ __post_init__ __weakref__ __mro__ __import__ __build_class__ _name _fields _member_map_ _x os"
    " __spec__ __loader__ _value_ __func__ __self__ __getstate__ __setstate__ __reduce__ __closure__ __defaults__".split()
)
TEXTS = (
    "''", "'a b'", "'int'", "'{0.__class__}'", "'{0.format}'", "'{a.b[0]}'", "'1'", "b'a'", "'x: int'", "'%s'",
    "'.*'",
)  # fmt: skip
NUMBERS = ("0", "1", "2", "-1", "True", "None", "1.5", "...", "NotImplemented")
SPECIAL_BASES = (
    "str int dict list tuple Exception set float bytes object property abc.ABC enum.Enum enum.Flag enum.IntEnum typing.NamedTuple"
    " typing.TypedDict typing.Protocol typing.Generic[typing.TypeVar('T')] collections.UserString collections.UserDict"
    " collections.OrderedDict string.Formatter functools.cached_property staticmethod classmethod fractions.Fraction"
    " typing.Type[int] json.JSONEncoder contextlib.ContextDecorator"
).split()
DECORATORS = (
    "dataclasses.dataclass dataclasses.dataclass(slots=True) dataclasses.dataclass(frozen=True)"
    " dataclasses.dataclass(order=True,unsafe_hash=True) dataclasses.dataclass(kw_only=True)"
    " functools.total_ordering typing.runtime_checkable enum.unique typing.final"
).split()
FUNCTION_DECORATORS = (
    "functools.singledispatch functools.wraps(see) functools.lru_cache functools.cache contextlib.contextmanager"
    " property staticmethod classmethod functools.cached_property functools.singledispatchmethod functools.partialmethod"
    " abc.abstractmethod typing.overload typing.no_type_check types.DynamicClassAttribute contextlib.asynccontextmanager"
    " enum.property enum.member enum.nonmember"
).split()
CALLABLE_WORDS = frozenset(
    "func function f key callback wrapper wrapped user_function fget fset fdel default_factory object_hook predicate factory"
    " dict_factory tuple_factory method callable target object_pairs_hook parse_float parse_int filterfunc func1 call"
    " hook finder timer stmt setup cmp mycmp decorating_function implementation getter".split()
)
CLASS_WORDS = frozenset(
    "cls typ type klass bases base owner class_or_tuple tp types expected_exception category kind subclass typeobj testcaseclass".split()
)
NAME_WORDS = frozenset(
    "name attr attrs attribute names cls_name typename field_names module qualname methodname alias".split()
)
MANY_WORDS = frozenset(
    "iterable seq iterables it data items fields args population x values initlist list sequence lines tests pairs fieldnames".split()
)
MAPPING_WORDS = frozenset(
    "memo mapping namespace globals locals globalns localns kwargs dict m vars d initialdata metadata kwds globs extra".split()
)
BINARY = "== != < <= > >= | & ^ + - * @ / // % << >> in is".split()
UNARY = ("len", "iter", "list", "tuple", "dict", "set", "sorted", "repr", "str", "hash", "bool", "vars", "dir", "type", "next",
          "reversed", "sum", "max", "callable", "int", "format", "enumerate", "super", "frozenset", "bytes", "print")  # fmt: skip
DEFINABLE = tuple(
    sorted(
        names.DEFINABLE
        - names.PUBLIC_SUNDERS
        - {"__slots__", "__match_args__", "__annotations__", "__doc__", "__module__", "__qualname__"}
    )
)
LIKELY = (
    "__eq__ __hash__ __call__ __get__ __set__ __set_name__ __mro_entries__ __subclasscheck__ __instancecheck__ __subclasshook__"
    " __init_subclass__ __class_getitem__ __new__ __init__ __post_init__ __getattr__ __getattribute__ __setattr__ __deepcopy__"
    " __copy__ __getstate__ __setstate__ __iter__ __getitem__ __missing__ __format__ __repr__ __str__ __bool__ __len__ __index__"
    " __or__ __ror__ __contains__ __enter__ __exit__ __del__ __lt__ __fspath__ __dir__ __replace__".split()
)
ASKED = (
    "__class__ __dict__ __mro__ __init__ __get__ __call__ __eq__ __new__ __set_name__ __mro_entries__ format __wrapped__"
    " __self__ __func__ __annotations__ __args__ __origin__".split()
)
"""What any object is asked for now and then, whether it has it or not."""
SUNDERS = tuple(sorted(names.PUBLIC_SUNDERS))


def prelude() -> str:
    """Return what every session starts with: the imports and the spies."""
    return f"import {', '.join(module for module in members()[1] if module != HELPERS)}\n{SPIES}"


@cache
def given_helpers() -> dict[str, object]:
    """Return what code finds beside modules: the functions that ask the host, tools and skills."""
    found = {**hosted.helpers(), **data_helpers.helpers(), **hosted.modules()}
    return {name: value for name, value in found.items() if name.isidentifier()}


@cache
def members() -> tuple[dict[str, object], dict[str, tuple[str, ...]]]:
    """Return what modules give by the expression for it, and the expressions by module."""
    values: dict[str, object] = {}
    by_module: dict[str, tuple[str, ...]] = {}
    for module in sorted(facades.exports()):
        if module in SKIPPED_MODULES:
            continue
        facade = facades.find(module)
        found = [name for name in dir(facade) if name not in SKIPPED_MEMBERS and not name.isupper()]
        by_module[module] = tuple(f"{module}.{name}" for name in found)
        values |= {f"{module}.{name}": getattr(facade, name) for name in found}
    helpers = given_helpers()
    by_module[HELPERS] = tuple(helpers)
    return values | helpers, by_module


@cache
def containers() -> tuple[str, ...]:
    """Return the expressions for what can be changed and stands in what modules give."""
    found = []
    for expression, value in members()[0].items():
        if type(value) in MUTABLE:
            found.append(expression)
        found += [f"{expression}.{name}" for name in names_on(value) if type(raw_attribute(value, name)) in MUTABLE]
    return tuple(found)


MUTABLE = frozenset({dict, list, set, bytearray})
MUTATIONS = "clear() update(x=see) append(spy) pop() popitem() add(spy) sort() remove(spy) extend([spy])".split()


@cache
def generics() -> dict[str, object]:
    return {
        "typing.Type[int]": typing.Type[int], "typing.List[int]": typing.List[int], "list[int]": list[int], "int | str": int | str,  # noqa: UP006
        "typing.Callable[..., int]": typing.Callable[..., int], "typing.Annotated[int, spy]": typing.Annotated[int, 1],
        "typing.NamedTuple": typing.NamedTuple, "typing.Generic[typing.TypeVar('T')]": typing.Generic[typing.TypeVar("T")],
    }  # fmt: skip


@cache
def parameters_of(function: object) -> tuple[inspect.Parameter, ...] | None:
    try:
        return tuple(inspect.signature(function).parameters.values())  # type: ignore[arg-type]  # whatever is callable
    except Exception:
        return None


RAW_NAMES: dict[type, tuple[str, ...]] = {}


def names_on(value: object) -> list[str]:
    """Return the names on an object as its class and itself hold them, without asking it."""
    kind = type(value)
    found = RAW_NAMES.get(kind)
    if found is None or ownership.is_guest_class(kind):
        found = RAW_NAMES[kind] = tuple(
            sorted(
                {
                    name
                    for cls in mro_of(kind)
                    for name in own_dict(cls)
                    if type(name) is str and names.PREFIX not in name
                }
            )
        )
    listed = list(found)
    if issubclass(kind, type):
        for cls in mro_of(value):
            listed += [name for name in own_dict(cls) if type(name) is str and names.PREFIX not in name]
    else:
        listed += [name for name in instance_dict(value) or () if type(name) is str and names.PREFIX not in name]
    return listed


def raw_attribute(value: object, name: str) -> object:
    for owner in (value, type(value)):
        if isinstance(owner, type):
            for cls in mro_of(owner):
                if name in own_dict(cls):
                    found = own_dict(cls)[name]
                    return found.__func__ if type(found) in {classmethod, staticmethod} else found
    return (instance_dict(value) or {}).get(name)
