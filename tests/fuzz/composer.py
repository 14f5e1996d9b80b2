"""Composes programs of the dialect, one statement after another, with an eye on what the variables hold by then.

Every statement is source text that stands for itself, so a find is a list of texts. What stands where is chosen by
what a parameter's name asks for and by what variables, facades and earlier results there are to choose from.
"""

# ruff: noqa: SIM905 - a table of words is read as words, not as quoted strings

from __future__ import annotations

import inspect
import random
import textwrap
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache

from sealab.sandbox import facades, names, ownership

from .oracle import instance_dict

_own_dict = type.__dict__["__dict__"].__get__
_mro = type.__dict__["__mro__"].__get__

_SPIES = '''
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
SKIPPED_MODULES = frozenset({"__future__", "errno", "html.entities", "math", "cmath", "colorsys", "zlib", "bz2", "gzip", "lzma", "binascii", "unicodedata", "typing_extensions", "hashlib", "secrets"})
SKIPPED_MEMBERS = frozenset(
    "sleep setrecursionlimit scrypt pbkdf2_hmac TestProgram main timeit repeat Timer run_forever exit quit input open"
    " set_int_max_str_digits breakpoint help available_timezones".split()
)
_FAVOURITES = (
    "copy dataclasses enum functools typing types abc operator inspect contextlib collections collections.abc weakref"
    " unittest warnings logging string json asyncio doctest contextvars fractions decimal pprint reprlib"
).split()
_WORDS = tuple(
    "format format_map mro name value default register dispatch registry func fget field fields obj key items keys get a b x"
    " run test_a runTest cache_clear data args __class__ __dict__ __globals__ __name__ __doc__ __module__ __wrapped__"
    " __builtins__ __init__ __call__ __getattr__ __getattribute__ __setattr__ __match_args__ __slots__ __mro_entries__"
    " __subclasshook__ __code__ __annotations__ __qualname__ __new__ __eq__ __hash__ __set_name__ __get__"
    " __dataclass_fields__ __post_init__ __weakref__ __mro__ __import__ __build_class__ _name _fields _member_map_ _x os"
    " __spec__ __loader__ _value_ __func__ __self__ __getstate__ __setstate__ __reduce__ __closure__ __defaults__".split()
)
_TEXTS = ("''", "'a b'", "'int'", "'{0.__class__}'", "'{0.format}'", "'{a.b[0]}'", "'1'", "b'a'", "'x: int'", "'%s'", "'.*'")
_NUMBERS = ("0", "1", "2", "-1", "True", "None", "1.5", "...", "NotImplemented")
_SPECIAL_BASES = (
    "str int dict list tuple Exception set float bytes object property abc.ABC enum.Enum enum.Flag enum.IntEnum typing.NamedTuple"
    " typing.TypedDict typing.Protocol typing.Generic[typing.TypeVar('T')] collections.UserString collections.UserDict"
    " collections.OrderedDict string.Formatter functools.cached_property staticmethod classmethod fractions.Fraction"
    " typing.Type[int] json.JSONEncoder logging.Formatter logging.Handler unittest.TestCase contextlib.ContextDecorator"
).split()
_DECORATORS = (
    "dataclasses.dataclass dataclasses.dataclass(slots=True) dataclasses.dataclass(frozen=True)"
    " dataclasses.dataclass(order=True,unsafe_hash=True) dataclasses.dataclass(kw_only=True)"
    " functools.total_ordering typing.runtime_checkable enum.unique typing.final"
).split()
_FUNCTION_DECORATORS = (
    "functools.singledispatch functools.wraps(see) functools.lru_cache functools.cache contextlib.contextmanager"
    " property staticmethod classmethod functools.cached_property functools.singledispatchmethod functools.partialmethod"
    " abc.abstractmethod typing.overload typing.no_type_check types.DynamicClassAttribute contextlib.asynccontextmanager"
    " unittest.skip('x') unittest.expectedFailure enum.property enum.member enum.nonmember reprlib.recursive_repr()"
).split()
_CALLABLE_WORDS = frozenset(
    "func function f key callback wrapper wrapped user_function fget fset fdel default_factory object_hook predicate factory"
    " dict_factory tuple_factory method callable target object_pairs_hook parse_float parse_int filterfunc func1 call"
    " hook finder timer stmt setup cmp mycmp decorating_function implementation getter".split()
)
_CLASS_WORDS = frozenset("cls typ type klass bases base owner class_or_tuple tp types expected_exception category kind subclass typeobj testcaseclass".split())
_NAME_WORDS = frozenset("name attr attrs attribute names cls_name typename field_names module qualname methodname alias".split())
_MANY_WORDS = frozenset("iterable seq iterables it data items fields args population x values initlist list sequence lines tests pairs fieldnames".split())
_MAPPING_WORDS = frozenset("memo mapping namespace globals locals globalns localns kwargs dict m vars d initialdata metadata kwds globs extra".split())
_BINARY = "== != < <= > >= | & ^ + - * @ / // % << >> in is".split()
_UNARY = ("len", "iter", "list", "tuple", "dict", "set", "sorted", "repr", "str", "hash", "bool", "vars", "dir", "type", "next",
          "reversed", "sum", "max", "callable", "int", "format", "enumerate", "super", "frozenset", "bytes", "print")  # fmt: skip
_DEFINABLE = tuple(sorted(names.DEFINABLE - names.PUBLIC_SUNDERS - {"__slots__", "__match_args__", "__annotations__", "__doc__", "__module__", "__qualname__"}))
_LIKELY = (
    "__eq__ __hash__ __call__ __get__ __set__ __set_name__ __mro_entries__ __subclasscheck__ __instancecheck__ __subclasshook__"
    " __init_subclass__ __class_getitem__ __new__ __init__ __post_init__ __getattr__ __getattribute__ __setattr__ __deepcopy__"
    " __copy__ __getstate__ __setstate__ __iter__ __getitem__ __missing__ __format__ __repr__ __str__ __bool__ __len__ __index__"
    " __or__ __ror__ __contains__ __enter__ __exit__ __del__ __lt__ __fspath__ __dir__ __replace__".split()
)
_SUNDERS = tuple(sorted(names.PUBLIC_SUNDERS))


def prelude() -> str:
    """Return what every session starts with: the imports and the spies."""
    return f"import {', '.join(members()[1])}\n{_SPIES}"


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
    return values, by_module


@cache
def _generics() -> dict[str, object]:
    return {
        "typing.Type[int]": typing.Type[int], "typing.List[int]": typing.List[int], "list[int]": list[int], "int | str": int | str,  # noqa: UP006
        "typing.Callable[..., int]": typing.Callable[..., int], "typing.Annotated[int, spy]": typing.Annotated[int, 1],
        "typing.NamedTuple": typing.NamedTuple, "typing.Union[int, str]": typing.Union[int, str], "typing.Generic[typing.TypeVar('T')]": typing.Generic[typing.TypeVar("T")],
    }  # fmt: skip


@cache
def _parameters(function: object) -> tuple[inspect.Parameter, ...] | None:
    try:
        return tuple(inspect.signature(function).parameters.values())  # type: ignore[arg-type]  # whatever is callable
    except Exception:
        return None


_RAW_NAMES: dict[type, tuple[str, ...]] = {}


def _names_on(value: object) -> list[str]:
    """Return the names on an object as its class and itself hold them, without asking it."""
    kind = type(value)
    found = _RAW_NAMES.get(kind)
    if found is None or ownership.is_guest_class(kind):
        found = _RAW_NAMES[kind] = tuple(
            sorted({name for cls in _mro(kind) for name in _own_dict(cls) if type(name) is str and names.PREFIX not in name})
        )
    listed = list(found)
    if issubclass(kind, type):
        for cls in _mro(value):
            listed += [name for name in _own_dict(cls) if type(name) is str and names.PREFIX not in name]
    else:
        listed += [name for name in instance_dict(value) or () if type(name) is str and names.PREFIX not in name]
    return listed


def _raw_attribute(value: object, name: str) -> object:
    for owner in (value, type(value)):
        if isinstance(owner, type):
            for cls in _mro(owner):
                if name in _own_dict(cls):
                    found = _own_dict(cls)[name]
                    return found.__func__ if type(found) in {classmethod, staticmethod} else found
    return (instance_dict(value) or {}).get(name)


class Composer:
    """One session's author: `statement` gives the next text, `learn` tells it what came of that."""

    def __init__(self, rng: random.Random, namespace: Mapping[str, object], first: int = 0) -> None:
        self.rng = rng
        self.space = namespace
        self.count = first
        self.values, self.by_module = members()
        self.all_members = list(self.values)
        self.modules = list(self.by_module)
        self.focus = rng.choice(_FAVOURITES) if rng.random() < 0.8 else rng.choice(self.modules)
        self.variables: list[str] = []
        self.pools: dict[str, list[str]] = {kind: [] for kind in ("class", "function", "call", "text", "many", "mapping", "other")}
        self.words: list[str] = []
        self.depth = 0

    # What there is to choose from

    def learn(self, name: str) -> None:
        """Note what the variable `name` holds now."""
        if name not in self.space:
            return
        value = self.space[name]
        if issubclass(type(value), BaseException) and self.chance(0.85):
            return
        if name in self.variables:
            for pool in self.pools.values():
                if name in pool:
                    pool.remove(name)
        else:
            self.variables.append(name)
        kind = type(value)
        if issubclass(kind, type):
            self.pools["class"].append(name)
        elif kind is types.FunctionType:
            self.pools["function"].append(name)
        elif issubclass(kind, str | bytes):
            self.pools["text"].append(name)
        elif issubclass(kind, dict) or kind is types.MappingProxyType:
            self.pools["mapping"].append(name)
        elif issubclass(kind, list | tuple | set | frozenset):
            self.pools["many"].append(name)
        elif any("__call__" in _own_dict(cls) for cls in _mro(kind)):
            self.pools["call"].append(name)
        elif kind not in {int, float, bool, type(None)}:
            self.pools["other"].append(name)
        if self.rng.random() < 0.3 and kind not in {int, float, bool, type(None), str}:
            found = [word for word in _names_on(value) if not word.startswith("__")]
            self.words += self.rng.sample(found, min(4, len(found)))

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def pick(self, *choices: str) -> str:
        return self.rng.choice(choices)

    def fresh(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def variable(self, *kinds: str) -> str | None:
        """Return a variable, of one of the kinds if any; a recent one more likely."""
        pool = [name for kind in kinds for name in self.pools[kind]] if kinds else self.variables
        if not pool:
            return None
        return pool[-1 - int(len(pool) * self.rng.random() ** 2)]

    def member(self, *, kind: Callable[[object], bool] | None = None) -> str:
        """Return the expression for something that a module gives."""
        for _ in range(30):
            roll = self.rng.random()
            module = self.focus if roll < 0.45 else self.rng.choice(_FAVOURITES) if roll < 0.8 else self.rng.choice(self.modules)
            found = self.by_module[module]
            if found:
                expression = self.rng.choice(found)
                if kind is None or kind(self.values[expression]):
                    return expression
        return "types.SimpleNamespace"

    # Expressions

    def any(self) -> str:
        """Return an expression for anything."""
        self.depth += 1
        try:
            if self.depth > 3:
                return self.atom()
            roll = self.rng.random()
            if roll < 0.34:
                return self.variable() or self.atom()
            if roll < 0.46:
                return self.callable()
            if roll < 0.57:
                return self.cls()
            if roll < 0.68:
                return self.atom()
            if roll < 0.79:
                return self.rng.choice((self.many, self.mapping))()
            if roll < 0.88:
                return self.call(self.member(kind=callable))
            if roll < 0.94:
                return self.instance()
            return self.text()
        finally:
            self.depth -= 1

    def atom(self) -> str:
        roll = self.rng.random()
        if roll < 0.3:
            return "spy"
        if roll < 0.4:
            return "see"
        if roll < 0.7:
            return self.rng.choice(_NUMBERS)
        return self.text()

    def word(self) -> str:
        return self.rng.choice(self.words) if self.words and self.chance(0.4) else self.rng.choice(_WORDS)

    def text(self) -> str:
        roll = self.rng.random()
        if roll < 0.55:
            return repr(self.word())
        if roll < 0.75:
            return self.rng.choice(_TEXTS)
        if roll < 0.85:
            return f"{self.pick('Lie', 'Two', 'Lie', 'str')}({self.word()!r})"
        return self.variable("text") or "'x'"

    def callable(self) -> str:
        roll = self.rng.random()
        if roll < 0.25:
            return "see"
        if roll < 0.5:
            return self.variable("function", "call", "class") or "see"
        if roll < 0.62:
            return f"lambda *a, **k: see({self.atom()}, a, k)"
        if roll < 0.72:
            return "spy"
        return self.member(kind=callable)

    def cls(self) -> str:
        roll = self.rng.random()
        if roll < 0.4:
            return self.variable("class") or "Spy"
        if roll < 0.55:
            return self.rng.choice(_SPECIAL_BASES[:10])
        if roll < 0.8:
            return self.member(kind=lambda value: isinstance(value, type))
        if roll < 0.9:
            return self.pick("type", "type(spy)", "types.FunctionType", "abc.ABCMeta", "enum.EnumMeta", "spy.__class__", "type(see)", "type(type)")
        return f"{self.pick('typing.Type', 'typing.List', 'typing.Union', 'typing.Annotated', 'list', 'type', 'typing.Callable', 'typing.Generic', 'typing.ClassVar', 'dataclasses.InitVar')}[{self.pick('int', 'spy', 'int, see', 'Spy', self.text())}]"

    def many(self) -> str:
        known = self.variable("many")
        if known is not None and self.chance(0.3):
            return known
        items = ", ".join(self.any() for _ in range(self.rng.choice((0, 1, 1, 2, 3))))
        form = self.pick("[{}]", "[{}]", "({},)" if items else "(){}", "iter([{}])", "set([{}])", "[({},)]" if items else "[{}]")
        if self.chance(0.2):
            return f"[({self.text()}, {self.any()})]"
        if self.chance(0.1):
            return f"[({self.text()}, {self.any()}, {self.any()})]"
        return form.format(items)

    def mapping(self) -> str:
        known = self.variable("mapping")
        if known is not None and self.chance(0.4):
            return known
        roll = self.rng.random()
        if roll < 0.12:
            return self.pick("globals()", "locals()", "vars(spy)", "vars(Spy)", "dict(globals())")
        if roll < 0.3:
            return "{}"
        pairs = ", ".join(f"{self.text() if self.chance(0.8) else self.any()}: {self.any()}" for _ in range(self.rng.choice((1, 1, 2))))
        return f"{{{pairs}}}"

    def instance(self) -> str:
        made = self.variable("class")
        if made is None:
            return "spy"
        return self.pick(f"{made}()", f"{made}({self.atom()})", f"{made}.__new__({made})", f"object.__new__({made})")

    def of_type(self, parameter: inspect.Parameter) -> str:
        """Return an argument that the name and the annotation of a parameter ask for, most of the time."""
        word = parameter.name.lower().lstrip("_")
        if not self.chance(0.8):
            return self.any()
        if word in _CALLABLE_WORDS:
            return self.callable()
        if word in _CLASS_WORDS:
            return f"({self.cls()},)" if word.endswith("s") and word != "cls" and self.chance(0.7) else self.cls()
        if word in _NAME_WORDS:
            return self.text()
        if word in _MANY_WORDS:
            return self.many()
        if word in _MAPPING_WORDS:
            return self.mapping()
        if isinstance(parameter.default, bool):
            return self.pick("True", "False")
        if isinstance(parameter.default, int):
            return self.rng.choice(_NUMBERS)
        return self.any()

    def arguments(self, function: object, *, bound: bool = False) -> str:
        """Return the text of the arguments of one call, fit for `function` if its parameters are known."""
        found = None
        if callable(function) and not ownership.is_guest_class(type(function)):
            try:
                found = _parameters(function)
            except TypeError:  # what cannot be hashed
                found = None
        if found is None or self.chance(0.1):
            return ", ".join(self.any() for _ in range(self.rng.choice((0, 1, 1, 1, 2, 2, 3))))
        texts: list[str] = []
        named = False
        for parameter in found[1:] if bound else found:
            if parameter.kind is parameter.VAR_POSITIONAL:
                if not named:
                    texts += [self.any() for _ in range(self.rng.choice((0, 1, 1, 2)))]
            elif parameter.kind is parameter.VAR_KEYWORD:
                if self.chance(0.15):
                    texts.append(f"**{{{self.text()}: {self.any()}}}")
                    named = True
            elif parameter.default is parameter.empty:
                text = self.of_type(parameter)
                if parameter.kind is parameter.KEYWORD_ONLY or named:
                    texts.append(f"{parameter.name}={text}")
                    named = True
                else:
                    texts.append(text)
            elif self.chance(0.25):
                if parameter.kind is parameter.POSITIONAL_ONLY:
                    if named:
                        continue
                    texts.append(self.of_type(parameter))
                else:
                    texts.append(f"{parameter.name}={self.of_type(parameter)}")
                    named = True
        return ", ".join(texts)

    def call(self, expression: str) -> str:
        """Return a call of what a module gives."""
        return f"{expression}({self.arguments(self.values.get(expression))})"

    def attribute_of(self, expression: str, value: object) -> str:
        """Return the name of an attribute that `value` has, or another."""
        roll = self.rng.random()
        if roll < 0.07:
            return self.word()
        if roll < 0.13:
            return self.rng.choice(("__class__", "__dict__", "__mro__", "__init__", "__get__", "__call__", "__eq__", "__new__", "__set_name__", "__mro_entries__", "format", "__wrapped__", "__self__", "__func__", "__annotations__", "__args__", "__origin__"))
        found = _names_on(value)
        if roll < 0.33:
            likely = [name for name in _LIKELY if name in found]
            if likely:
                return self.rng.choice(likely)
        public = [name for name in found if not name.startswith("__")]
        if public and self.chance(0.6):
            return self.rng.choice(public)
        return self.rng.choice(found) if found else "x"

    def arguments_of_attribute(self, value: object, name: str) -> str:
        """Return the text of the arguments for calling an attribute."""
        match name:
            case "__get__":
                return self.pick(f"{self.any()}, {self.cls()}", self.any(), f"{self.callable()}, {self.cls()}")
            case "__set__":
                return f"{self.any()}, {self.any()}"
            case "__set_name__":
                return f"{self.cls()}, {self.text()}"
            case "__mro_entries__":
                return f"({self.any()},)"
            case "__deepcopy__":
                return self.mapping()
            case "__init__" if isinstance(value, property):
                return ", ".join(self.callable() for _ in range(self.rng.choice((0, 1, 2))))
            case "__instancecheck__" | "__subclasscheck__" | "__subclasshook__" | "__prepare__":
                return self.pick(self.cls(), self.any())
        raw = _raw_attribute(value, name)
        if isinstance(value, type):
            given = self.arguments(raw)
            if self.chance(0.5) and given.count(",") < 1:
                return f"{self.instance()}, {given}" if given else self.any()
            return given
        return self.arguments(raw, bound=type(raw) is types.FunctionType)

    # Statements

    def statement(self) -> tuple[str, str | None]:
        """Return the text of the next statement, and the variable that it sets."""
        kinds = (
            (self.class_statement, 15), (self.function_statement, 8), (self.member_call, 18), (self.method_call, 22),
            (self.attribute_read, 10), (self.attribute_store, 7), (self.operator_statement, 8), (self.item_statement, 4),
            (self.match_statement, 2), (self.nested_statement, 6), (self.call_variable, 9), (self.format_statement, 2),
            (self.flow_statement, 3), (self.super_statement, 2), (self.copy_statement, 2), (self.builtin_statement, 4),
        )  # fmt: skip
        make = self.rng.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])[0]
        return make()

    def setting(self, expression: str) -> tuple[str, str]:
        name = self.fresh("v")
        return caught(f"{name} = {expression}", name), name

    def member_call(self) -> tuple[str, str]:
        return self.setting(self.call(self.member(kind=callable)))

    def call_variable(self) -> tuple[str, str]:
        name = self.variable("function", "call", "class")
        if name is None:
            return self.member_call()
        value = self.space[name]
        return self.setting(f"{name}({self.arguments(value)})")

    def receiver(self) -> tuple[str, object]:
        if self.chance(0.75):
            name = self.variable()
            if name is not None:
                return name, self.space[name]
        if self.chance(0.3):
            return self.rng.choice([("spy", self.space["spy"]), *_generics().items()])
        expression = self.member()
        value = self.values[expression]
        if isinstance(value, type) and self.chance(0.4):
            public = [name for name in _names_on(value) if names.judge(name) is names.Verdict.PLAIN and name not in names.SPECIAL_METHODS]
            if public:
                name = self.rng.choice(public)
                return f"{expression}.{name}", _raw_attribute(value, name)
        return expression, value

    def method_call(self) -> tuple[str, str]:
        expression, value = self.receiver()
        name = self.attribute_of(expression, value)
        return self.setting(f"{expression}.{name}({self.arguments_of_attribute(value, name)})")

    def attribute_read(self) -> tuple[str, str]:
        expression, value = self.receiver()
        name = self.attribute_of(expression, value)
        if self.chance(0.25):
            return self.setting(f"getattr({expression}, {name!r}, None)")
        if self.chance(0.1):
            return self.setting(f"operator.attrgetter({name!r})({expression})")
        return self.setting(f"{expression}.{name}")

    def attribute_store(self) -> tuple[str, str | None]:
        expression, value = self.receiver()
        name = self.word() if self.chance(0.5) else self.attribute_of(expression, value)
        roll = self.rng.random()
        given = self.pick("see", "spy", self.any())
        if roll < 0.7:
            body = f"{expression}.{name} = {given}"
        elif roll < 0.8:
            body = f"del {expression}.{name}"
        elif roll < 0.9:
            body = f"setattr({expression}, {self.text()}, {given})"
        else:
            body = f"{expression}.{name} {self.pick('+', '|', '*')}= {given}"
        return caught(body), None

    def operator_statement(self) -> tuple[str, str]:
        expression, _ = self.receiver()
        other = self.pick("spy", self.any())
        if self.chance(0.6):
            sides = (expression, other) if self.chance(0.7) else (other, expression)
            return self.setting(f"{sides[0]} {self.rng.choice(_BINARY)} {sides[1]}")
        return self.setting(f"{self.rng.choice(_UNARY)}({expression})")

    def item_statement(self) -> tuple[str, str | None]:
        name = self.variable("mapping", "many", "other") or "SEEN"
        key = self.rng.choice((self.text, self.atom, self.cls))()
        roll = self.rng.random()
        if roll < 0.4:
            return self.setting(f"{name}[{key}]")
        if roll < 0.85:
            return caught(f"{name}[{key}] = {self.any()}"), None
        return caught(f"del {name}[{key}]"), None

    def match_statement(self) -> tuple[str, str]:
        name = self.fresh("v")
        subject = self.receiver()[0]
        cls = self.variable("class") or "Spy"
        pattern = self.pick(f"{cls}(got)", f"{cls}({self.word()}=got)", "[got, *_]", "{**got}", f"{cls}(_, got)", f"typing.Any({self.word()}=got)", "object(got)")
        return caught(f"match {subject}:\n    case {pattern}:\n        {name} = got", name), name

    def format_statement(self) -> tuple[str, str]:
        word = self.word()
        return self.setting(
            self.pick(
                f"'{{0.{word}}}'.format({self.any()})", f"f'{{{self.variable() or 'spy'}!r:{{spy}}}}'", f"string.Formatter().format('{{0.{word}}}', {self.any()})",
                f"string.Formatter().get_field('0.{word}', ({self.any()},), {{}})", f"str.format('{{a.{word}}}', a={self.any()})",
                f"string.Template('$a').substitute({self.mapping()})",
            )
        )  # fmt: skip

    def builtin_statement(self) -> tuple[str, str]:
        return self.setting(
            self.pick(
                f"isinstance({self.any()}, {self.cls()})", f"issubclass({self.cls()}, {self.cls()})", f"sorted({self.many()}, key={self.callable()})",
                f"list(map({self.callable()}, {self.many()}))", f"list(filter({self.callable()}, {self.many()}))", f"vars({self.any()})",
                f"getattr({self.any()}, {self.text()}, spy)", f"hasattr({self.any()}, {self.text()})", "globals()", "locals()", f"dir({self.any()})",
                f"property({self.callable()})", f"iter({self.callable()}, {self.any()})", f"compile({self.text()}, 'x', 'eval')", "compile('see(spy)', 'x', 'exec')",
                f"__build_class__({self.callable()}, 'x', {self.any()})", f"__import__({self.text()})", f"dict(**{self.mapping()})", f"{self.callable()}(**{self.mapping()})",
                f"{self.callable()}(*{self.many()})",
            )
        )  # fmt: skip

    def flow_statement(self) -> tuple[str, str]:
        name = self.fresh("v")
        kind = self.rng.randrange(6)
        expression = self.any()
        if kind == 0:
            return caught(f"with {expression} as {name}:\n    {self.callable()}({name})", name), name
        if kind == 1:
            return caught(f"{name} = [see(item) for item in {expression}]", name), name
        if kind == 2:
            body = f"async def main():\n    return await {expression}\n{name} = asyncio.run(main())"
        elif kind == 3:
            body = f"async def main():\n    async with {expression} as got:\n        return got\n{name} = asyncio.run(main())"
        elif kind == 4:
            body = f"def main():\n    got = yield {expression}\n    yield see(got)\n{name} = main()\nnext({name})\n{name}.{self.pick('send', 'throw')}({self.any()})"
        else:
            body = f"raise {expression} from {self.any()}"
        return caught(body, name), name

    def super_statement(self) -> tuple[str, str]:
        cls = self.variable("class") or "Spy"
        name = self.word() if self.chance(0.5) else self.rng.choice(_DEFINABLE)
        return self.setting(self.pick(f"super({cls}, {self.instance()}).{name}", f"super({cls}, {cls}).{name}", f"super({self.cls()}, {self.any()}).{name}({self.any()})", f"super({cls}).__get__({self.any()}, {self.cls()}).{name}"))

    def copy_statement(self) -> tuple[str, str]:
        value = self.any()
        memo = self.variable("mapping") or "{}"
        return self.setting(self.pick(f"copy.copy({value})", f"copy.deepcopy({value})", f"copy.deepcopy({value}, {memo})", f"copy.deepcopy({value}, {self.any()})", f"copy.replace({value}, **{self.mapping()})"))

    def nested_statement(self) -> tuple[str, str | None]:
        """Return `exec` or `eval` of a program, in a namespace given or not."""
        roll = self.rng.random()
        if roll < 0.25:
            name = self.fresh("v")
            return caught(f"{name} = {self.pick('dict(globals())', '{}')}\n{name}.update(globals())\n{name}[{self.pick(repr(name), self.text())}] = {name}", name), name
        where = self.variable("mapping") or self.pick("globals()", "{}", "{'see': see, 'spy': spy}", "dict(globals())")
        if roll < 0.4:
            return self.setting(f"eval({self.any()!r}, {where})")
        inner: list[str] = []
        for _ in range(self.rng.choice((1, 2, 2, 3))):
            roll = self.rng.random()
            if roll < 0.35:
                inner.append(f"{where if where.isidentifier() else 'globals()'}[{self.pick(repr('__builtins__'), self.text())}] = {self.pick('{}', self.any())}")
            elif roll < 0.6:
                inner.append(f"def {self.fresh('f')}(*a, **k): return a, k")
            elif roll < 0.75:
                inner.append(f"{self.fresh('v')} = lambda *a: a")
            else:
                inner.append(self.rng.choice((self.class_statement, self.method_call, self.member_call, self.item_statement))()[0])
        source = "\n".join(inner)
        locals_ = f", {self.mapping()}" if self.chance(0.15) else ""
        form = self.pick("exec({!r}, {}{})", "exec({!r}, {}{})", "exec(compile({!r}, 'x', 'exec'), {}{})")
        return caught(form.format(source, where, locals_)), where if where.isidentifier() else None

    # Definitions

    def recording(self) -> str:
        return f"return see({self.pick('None', 'True', 'spy', self.atom(), self.any())}, a, k)"

    def function_statement(self) -> tuple[str, str]:
        name = self.fresh("f")
        lines = []
        for _ in range(self.rng.choice((0, 0, 1, 1, 2))):
            lines.append(f"@{self.rng.choice(_FUNCTION_DECORATORS) if self.chance(0.8) else self.callable()}")
        arguments = self.pick("*a, **k", "*a, **k", f"x: {self.annotation()}, *a, **k", f"x={self.atom()}, *a, **k", "self, *a, **k")
        body = self.pick(self.recording(), self.recording(), self.recording(), f"yield see({self.any()}, a, k)", f"return {self.any()}")
        lines += [f"{self.pick('', '', '', 'async ')}def {name}({arguments}):", f"    {body}"]
        return caught("\n".join(lines), name), name

    def annotation(self) -> str:
        return self.pick(
            "int", "object", "dataclasses.InitVar[int]", "typing.ClassVar[int]", "dataclasses.KW_ONLY", "typing.Any", "'int'", "'InitVar'",
            "'dataclasses.InitVar'", self.cls(), self.text(), "typing.Optional[int]", "'typing.ClassVar[int]'",
        )  # fmt: skip

    def base(self) -> str:
        roll = self.rng.random()
        if roll < 0.3:
            return self.rng.choice(_SPECIAL_BASES)
        if roll < 0.55:
            return self.variable("class") or "Spy"
        if roll < 0.8:
            return self.member(kind=lambda value: isinstance(value, type))
        if roll < 0.88:
            return self.call(self.member(kind=callable))
        return self.variable() or "spy"

    def class_statement(self) -> tuple[str, str]:
        name = self.fresh("C")
        written = self.word() if self.chance(0.06) else name
        lines = []
        for _ in range(self.rng.choice((0, 0, 0, 1, 1, 2))):
            lines.append(f"@{self.rng.choice(_DECORATORS) if self.chance(0.8) else self.callable()}")
        arguments = [self.base() for _ in range(self.rng.choice((0, 1, 1, 1, 1, 2)))]
        if self.chance(0.12):
            arguments.append(f"metaclass={self.pick('type', 'abc.ABCMeta', 'enum.EnumMeta', 'see', self.callable())}")
        elif self.chance(0.08):
            arguments.append(f"{self.pick('total', 'boundary', 'x', 'init', 'frozen')}={self.any()}")
        lines.append(f"class {written}({', '.join(arguments)}):")
        body = [line for _ in range(self.rng.choice((1, 2, 2, 3, 4))) for line in self.body_entry()]
        lines += [f"    {line}" for line in body]
        if written != name:
            lines.append(f"{name} = {written}")
        return caught("\n".join(lines), name), name

    def body_entry(self) -> list[str]:
        """Return the lines of one thing in a class body."""
        roll = self.rng.random()
        method = self.rng.choice(_LIKELY) if self.chance(0.7) else self.rng.choice(_DEFINABLE)
        if roll < 0.3:
            decorator = self.pick("", "", "", "@staticmethod", "@classmethod", "@property", f"@{self.rng.choice(_FUNCTION_DECORATORS)}")
            name = method if self.chance(0.85) else self.pick(self.word(), "run", "test_a", self.rng.choice(_SUNDERS))
            keyword = self.pick("def", "def", "def", "def", "async def")
            return [*([decorator] if decorator else []), f"{keyword} {name}(*a, **k): {self.recording()}"]
        if roll < 0.45:
            return [f"{method} = {self.pick('see', 'staticmethod(see)', 'classmethod(see)', 'spy', 'None', self.callable(), f'staticmethod({self.callable()})', f'property({self.callable()})')}"]
        if roll < 0.58:
            return [f"{self.word()} = {self.any()}"]
        if roll < 0.82:
            default = self.pick("", "", f" = {self.any()}", f" = dataclasses.field(default={self.any()})", f" = dataclasses.field(default_factory={self.callable()})", f" = {self.any()}")
            return [f"{self.word()}: {self.annotation()}{default}"]
        if roll < 0.87:
            return [f"__slots__ = {self.pick('()', f'({self.text()},)', self.many(), self.mapping(), self.text())}"]
        if roll < 0.9:
            return [f"__match_args__ = {self.pick(f'({self.text()},)', self.many(), self.text())}"]
        if roll < 0.95:
            return [f"def {self.pick('run', '__init__', method)}(self, *a, **k): return see(super().{self.pick(self.word(), method)}, self)"]
        nested = self.pick("class inner(dict): pass", f"x = cached = functools.cached_property({self.callable()})", f"y = {self.rng.choice(_SUNDERS)} = {self.any()}", "a, b = 1, see")
        return [nested]

    # What belongs together

    def uses(self, name: str) -> list[tuple[str, str | None]]:
        """Return some uses of what the variable `name` has just got."""
        value = self.space.get(name)
        kind = type(value)
        if kind in {int, float, bool, str, type(None)} or issubclass(kind, BaseException):
            return []
        if issubclass(kind, type):
            ways = (
                f"isinstance({self.pick('int', 'Spy', 'spy', 'json', self.any())}, {name})", f"issubclass({self.cls()}, {name})", f"{name}()", f"{name}({self.any()})",
                f"{name}({self.arguments(value)})", f"copy.deepcopy({name}())", f"{name}({self.any()}) == spy", f"vars({name})", f"dir({name})", f"{name}[{self.any()}]",
                f"inspect.signature({name})", f"dataclasses.dataclass({name})", f"dataclasses.fields({name})", f"dataclasses.asdict({name}({self.any()}))",
                f"dataclasses.replace({name}({self.any()}), **{self.mapping()})", f"typing.get_type_hints({name})", f"inspect.getmembers({name})", f"functools.total_ordering({name})",
                f"{name}.__new__({name})", f"{name}.__subclasses__()", f"{name}.mro()", f"{name}.register({self.cls()})", f"isinstance({self.cls()}, {name})",
            )  # fmt: skip
        elif callable(value) and not ownership.is_guest_class(kind):
            ways = (
                f"{name}({self.cls()})", f"{name}({self.any()})", f"{name}({self.arguments(value)})", f"functools.singledispatch({name})", f"functools.wraps({name})(lambda *a: see(a))",
                f"inspect.signature({name})", f"property({name})", f"functools.partial({name}, {self.any()})", f"contextlib.contextmanager({name})", f"{name}.__get__({self.any()}, {self.cls()})",
                f"types.MethodType({name}, {self.any()})", f"{name} == spy", f"copy.deepcopy({name}, {self.mapping()})", f"{name}.{self.attribute_of(name, value)}", f"sorted([spy, spy], key={name})",
            )  # fmt: skip
        else:
            ways = (
                f"{name} == spy", f"spy == {name}", f"{name} | spy", f"spy in {name}", f"list({name})", f"copy.copy({name})", f"copy.deepcopy({name}, {self.mapping()})", f"vars({name})",
                f"{name}.{self.attribute_of(name, value)}", f"{name}.{self.attribute_of(name, value)}({self.any()})", f"{name}.__get__({self.callable()}, {self.cls()})", f"{name}({self.any()})",
                f"isinstance({name}, {self.cls()})", f"f'{{{name}:{{spy}}}}'", f"{name}[{self.any()}]", f"next({name})", f"dict({name})", f"copy.replace({name}, **{self.mapping()})", f"{name} + spy",
            )  # fmt: skip
        found: list[tuple[str, str | None]] = []
        for way in self.rng.sample(ways, self.rng.choice((1, 1, 2, 3))):
            if "deepcopy" in way and self.chance(0.5):
                memo = self.fresh("v")
                found.append((caught(f"{memo} = {self.pick('{}', 'collections.UserDict()', 'collections.defaultdict(dict)')}\ncopy.deepcopy({name}, {memo})"), memo))
            else:
                found.append(self.setting(way))
        return found

    def perturb_and_repeat(self, history: list[tuple[str, str | None]]) -> list[tuple[str, str | None]]:
        """Give an argument of an earlier call what its result has, by name, repeat the call, and use what it gives."""
        made = [
            (text, name)
            for text, name in history
            if name is not None and name.startswith("v") and not issubclass(type(self.space.get(name)), BaseException | int | str | None.__class__)
        ]
        if not made:
            return []
        text, name = self.rng.choice(made[-12:])
        given = [word for word in self.variables if word != name and f"{word}" in text.replace("(", " ").replace(")", " ").replace(",", " ").split()]
        listed = [word for word in _names_on(self.space[name]) if not word.startswith("__")] or [self.word()]
        target = self.rng.choice(given) if given else name
        steps: list[tuple[str, str | None]] = []
        for word in self.rng.sample(listed, min(2, len(listed))):
            steps.append((caught(f"{target}.{word} = {self.pick('see', 'see', 'spy', self.any())}"), None))
        if given:
            again = self.fresh("v")
            steps.append((text.replace(f"{name} = ", f"{again} = "), again))
            name = again
        used = self.fresh("v")
        steps.append((caught(f"{used} = {name}({self.pick(self.cls(), self.any(), self.instance())})", used), used))
        return steps


def caught(body: str, name: str | None = None) -> str:
    """Return statements that end well: what they raise is what the variable holds."""
    kept = f"{name} = error" if name else "see(error)"
    return f"try:\n{textwrap.indent(body, '    ')}\nexcept BaseException as error:\n    {kept}\n"
