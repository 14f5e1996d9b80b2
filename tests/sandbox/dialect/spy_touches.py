"""Guest source of what code can do with any object that it reached, whatever that is.

Each function whose name begins with `touch_` takes one value; `WRITES` are those that try to change the host. What one
returns is looked through like any other result, and what the spies were handed in the meantime as well.
"""

# ruff: noqa: SIM905 - a table of words is read as words, not as quoted strings

from __future__ import annotations

from sealab.sandbox.dialect import names

from .spies import METHODS

_GUARDED = sorted(names.RUNTIME_PUBLIC)
_STORED = (
    "dispatch register registry default format x cache_clear __name__ __doc__ __annotations__ __qualname__".split()
)

_DERIVED = """
def derive_{kind}(v):
    class Derived(v):
{methods}
    return Derived
"""
_KINDS = {
    "delegating": '        def {m}(self, *args, **kwargs):\n            note("delegating.{m}", args, kwargs)\n'
    "            return super().{m}(*args, **kwargs)\n",
    "static": '        @staticmethod\n        def {m}(*args, **kwargs):\n            note("static.{m}", args, kwargs)\n'
    '            return natural(function, "{m}", args)\n',
    "of_class": '        @classmethod\n        def {m}(*args, **kwargs):\n            note("of_class.{m}", args, kwargs)\n'
    '            return natural(function, "{m}", args)\n',
    "data": "        {m} = Data()\n",
}
_MORE = "__getattr__ __setattr__ __delattr__ __getattribute__ __init_subclass__ __subclasshook__ __getstate__ __class_getitem__".split()
_MORE_OF = {
    "delegating": {"__setattr__", "__delattr__", "__getattribute__", "__getstate__"},
    "static": {"__init_subclass__", "__getstate__"},
    "of_class": {"__init_subclass__", "__subclasshook__", "__class_getitem__", "__getstate__"},
    "data": {"__getstate__"},
}
_SUNDERS = "_missing_ _generate_next_value_"
_NOT_DELEGATED = set("__del__ __post_init__ __instancecheck__ __subclasscheck__ __mro_entries__ __set_name__".split())
_NOT_STATIC = {"__new__", "__hash__", "__getattribute__"}

_SOURCE = """
import copy, functools, dataclasses, inspect, typing, enum, operator, json, types, weakref, pprint, contextlib, abc, string
import collections, logging, unittest, itertools, warnings, asyncio, traceback, timeit, doctest, reprlib

def attempt(results, *actions):
    for action in actions:
        try:
            results.append(action())
        except BaseException as error:
            results.append(error)
    return results

def touch_compare(v):
    return attempt([], lambda: v == Spy(), lambda: v != Odd(), lambda: v < Spy(), lambda: v >= Odd(), lambda: Spy() == v,
        lambda: v == Refusing(), lambda: v == DictSpy({"a": 1}), lambda: v in [Refusing(), Spy()], lambda: not isinstance(v, ENDLESS) and Spy() in v)
def touch_operators(v):
    return attempt([], lambda: v | Spy(), lambda: v + Spy(), lambda: v - Odd(), lambda: v * Spy(), lambda: v % Spy(), lambda: v & Spy(),
        lambda: v / Spy(), lambda: v[Spy()], lambda: v["format"], lambda: list(itertools.islice(iter(v), 3)), lambda: v @ Spy(), lambda: v ^ Spy(),
        lambda: pow(v, Spy(), Spy()), lambda: divmod(v, Spy()), lambda: v[Spy():Odd():Spy()])
def touch_copy(v):
    memo, more = {}, Memo()
    results = attempt([], lambda: copy.copy(v), lambda: copy.deepcopy(v), lambda: copy.deepcopy(v, memo), lambda: copy.deepcopy(v, more),
        lambda: copy.deepcopy([v, Deep(), {"a": v}]), lambda: copy.deepcopy(v, Spy()), lambda: copy.deepcopy((v, Deep()), memo), lambda: copy.deepcopy(v, Odd()))
    return [results, list(memo.values()), list(more.values())]
def touch_restore(v):
    # Swap what a copy is restored from.
    class Swap(dict):
        def get(self, key, *default):
            return {"format": function, "_name": "x", "name": "x", "_code": 1} if len(self) == 1 else default[0] if default else None
    return attempt([], lambda: copy.deepcopy(v, Swap()))
def touch_class(v):
    return attempt([], lambda: isinstance(v, Static), lambda: issubclass(v, Static), lambda: isinstance(v, Whole), lambda: issubclass(v, Whole), lambda: isinstance(v, Later), lambda: issubclass(v, Later),
        lambda: issubclass(Static, v), lambda: isinstance(Spy(), v), lambda: isinstance(Asked(), v), lambda: issubclass(Spy, v),
        lambda: Static.register(v), lambda: v.register(Spy), lambda: type(v), lambda: v.__class__, lambda: type(v)(Spy()))
SHOWN = []
def touch_dispatch(v):
    def generic(x, *args): return x
    for name in ("dispatch", "register", "registry", "cache_clear", "_clear_cache"):
        def recording(*args, name_=name, **kwargs):
            note("generic." + name_, args, kwargs)
            return function
        setattr(generic, name, recording)
    def fresh(x: int, *args): return x
    results = []
    for made in attempt([], lambda: functools.singledispatch(generic), lambda: functools.singledispatch(fresh), lambda: functools.singledispatch(v)):
        attempt(results, lambda: made(v), lambda: made.dispatch(type(v)), lambda: made.register(v, function), lambda: made.register(int, v),
            lambda: SHOWN.append(1) or made.registry if len(SHOWN) < 3 else 1, lambda: made.registry == Spy() if len(SHOWN) < 3 else 1, lambda: made.registry | Spy() if len(SHOWN) < 3 else 1, lambda: made(1), lambda: made(len), lambda: made(int))
    def method(self, x): return x
    method.dispatch = method.register = function
    made = functools.singledispatchmethod(method)
    class Has:
        chosen = made
    return attempt(results, lambda: Has().chosen(v), lambda: made.register(v, function), lambda: made.__get__(v, Has)(1), lambda: Has.chosen(v), lambda: Has().chosen(int))
def touch_base(v):
    def plain():
        class format(v): h = json.dumps
        return format
    def second():
        class format(Plain, v): h = json.dumps
        return format
    def keyword():
        class format(metaclass=v): h = json.dumps
        return format
    def both():
        class format(v, x=Spy(), **{"format": function}): h = json.dumps
        return format
    made = attempt([], plain, second, keyword, both, lambda: types.new_class("X", (v,)))
    return [made, attempt([], *[lambda m=m: m("{1[h].__globals__}") for m in made], *[lambda m=m: m(function) for m in made])]
def touch_dataclass(v):
    results = []
    for name in [name for name in GUARDED if hasattr(v, name)]:
        def make(name=name):
            made = FIELDS[name](v)
            return [made, made.__dataclass_fields__, inspect.signature(made), attempt([], lambda: made(), lambda: dataclasses.asdict(made()), lambda: dataclasses.astuple(made()))]
        def make_once(name=name):
            made = ONCE[name](v)
            return [made, attempt([], lambda: made(), lambda: inspect.signature(made))]
        def rename(name=name):
            made = dataclasses.make_dataclass("S", [("x", object, 1)], bases=(v,))
            field = dataclasses.fields(made)[0]
            field.name = name
            return attempt([], *[lambda f=f: f(made()) for f in (dataclasses.asdict, dataclasses.astuple, dataclasses.replace, repr, copy.replace if hasattr(copy, "replace") else repr)])
        attempt(results, make, make_once, rename, lambda: dataclasses.make_dataclass("S", [(name, object)], bases=(v,)))
    return results
def touch_default(v):
    def plain():
        @dataclasses.dataclass
        class S:
            x: object = v
            y: object = dataclasses.field(default=v, metadata={"a": v})
            z: v = None
            def __post_init__(self, *args): note("__post_init__", args, {})
        return [S, S(), dataclasses.fields(S), dataclasses.asdict(S()), S() == Spy(), dataclasses.replace(S(), x=Spy())]
    return attempt([], plain, lambda: dataclasses.field(default=v, default_factory=v), lambda: dataclasses.dataclass(v),
        lambda: dataclasses.make_dataclass("S", [("x", v, v)], bases=(v,)), lambda: dataclasses.field().__set_name__(v, "format"),
        lambda: dataclasses.asdict(v, dict_factory=function), lambda: dataclasses.fields(v))
def touch_entries(v):
    return attempt([], lambda: v.__mro_entries__((v,)), lambda: v[int].__mro_entries__((v[int],)), lambda: v[int, int].__mro_entries__((v,)),
        lambda: v[Spy()], lambda: v[Spy].__mro_entries__((Spy(),)), lambda: types.GenericAlias(v, (Spy(),)).__mro_entries__((v,)),
        lambda: v[int].__origin__, lambda: typing.get_origin(v[int]), lambda: typing.get_args(v[Spy()]), lambda: v | Spy, lambda: v[int](Spy()),
        lambda: typing.Generic[v], lambda: typing.Union[v, Spy], lambda: typing.Annotated[v, Spy()], lambda: typing.NewType("x", v).__supertype__,
        lambda: typing.TypeVar("T", bound=v).__bound__)
def touch_enum(v):
    def plain():
        class E(enum.Enum):
            a = v
            b = Spy()
        return [E, E.a, E.a.value, E.__members__, E.__members__ == Spy(), E._member_map_, E(Spy())]
    return attempt([], plain, lambda: enum.Enum("E", [("a", v), ("format", Spy())]), lambda: enum.Enum("E", {"a": v}, type=v),
        lambda: v("E", {"format": function, "__call__": function}, module="os"), lambda: enum.Enum("E", "a", type=v)("a"))
def touch_hints(v):
    def annotated(x: v, y: "v" = v) -> v: pass
    return attempt([], lambda: typing.get_type_hints(v), lambda: inspect.signature(v), lambda: inspect.signature(v).parameters == Spy(),
        lambda: inspect.getmembers(v), lambda: inspect.get_annotations(v), lambda: inspect.getfullargspec(v), lambda: inspect.getdoc(v),
        lambda: typing.get_type_hints(annotated, DictSpy({"v": 1})), lambda: inspect.getmembers(v, function), lambda: inspect.signature(annotated),
        lambda: inspect.get_annotations(v, eval_str=True), lambda: typing.get_type_hints(v, {"a": Spy()}, Memo()), lambda: vars(v), lambda: dir(v))
def touch_keys(v):
    # Names that lie where a class is made from data.
    results = []
    for key in ("__match_args__", "__slots__", "__class__", "_x", "__globals__", "__instancecheck__", "__getattribute__", "format"):
        def make(key=key): return dataclasses.make_dataclass("S", [], bases=(v,), namespace={Name(key): ("__globals__",)})
        def make_named(key=key): return dataclasses.make_dataclass(Name(key), [Name(key)], bases=(v,))
        def slots(key=key):
            class S(v): __slots__ = (Name(key),)
            return S
        def slots_of(kind, key=key):
            class S(v): __slots__ = kind([Name(key), key] if kind is not dict else {Name(key): 1})
            return S
        def match_args(key=key):
            class S(v): __match_args__ = (Name(key),)
            return S
        def store(key=key): setattr(v, Name(key), function)
        attempt(results, make, make_named, slots, lambda: slots_of(dict), lambda: slots_of(list), lambda: slots_of(iter), lambda: slots_of(ListSpy), lambda: slots_of(StrSpy), match_args, store,
            lambda: getattr(v, Name(key)), lambda: operator.attrgetter(Name(key))(v), lambda: operator.methodcaller(Name(key))(v), lambda: v(**{Name(key): v}),
            lambda: enum.Enum("E", {Name(key): v}), lambda: collections.namedtuple("N", [Name(key)]), lambda: typing.NamedTuple("N", [(Name(key), v)]),
            lambda: typing.TypedDict("N", {Name(key): v}), lambda: ("{0." + key + "}").format(v), lambda: string.Formatter().get_field(Name("0." + key), (v,), {}))
    return results
def touch_call_back(v):
    def raised():
        raise v
    def caught():
        try: raise Reached(v)
        except v: return 1
    def managed():
        with v as found: raise Reached(found)
    def closed():
        with contextlib.ExitStack() as stack:
            stack.push(function); stack.callback(function, v); stack.enter_context(v)
            raise Reached(v)
    def matched():
        match v:
            case Plain(): return 0
            case {"a": found, **rest}: return [found, rest]
            case [first, *rest]: return [first, rest]
    return attempt([], raised, caught, managed, closed, matched, lambda: json.dumps(v, default=function), lambda: json.dumps({"a": v}, cls=Derives, default=function), lambda: pprint.pformat([v, Spy()]),
        lambda: sorted([v, v], key=function), lambda: sorted([v, Spy()]), lambda: weakref.ref(v, function), lambda: weakref.finalize(v, function, v), lambda: weakref.proxy(v, function), lambda: map(v, [Spy()]),
        lambda: functools.reduce(v, [Spy(), Spy()]), lambda: functools.partial(v, Spy())(), lambda: functools.wraps(v)(function), lambda: functools.wraps(dressed)(v),
        lambda: contextlib.contextmanager(generating)(v).__enter__(), lambda: contextlib.contextmanager(v)(Spy()), lambda: property(v).__get__(Spy(), v), lambda: classmethod(v).__get__(Spy(), v)(),
        lambda: super(v, v).format, lambda: super(Spy, v), lambda: "{0}".format(v), lambda: logging.error("%s", v, extra={"x": v, "format": Spy()}), lambda: warnings.warn(v, v),
        lambda: reprlib.repr([v]), lambda: traceback.format_exception(v), lambda: collections.Counter([v, Spy()]), lambda: collections.ChainMap(v, Memo())["a"], lambda: functools.lru_cache(v)(Spy()),
        lambda: functools.cmp_to_key(v)(1) < functools.cmp_to_key(v)(Spy()), lambda: functools.total_ordering(v), lambda: types.MethodType(v, Spy())(), lambda: types.SimpleNamespace(x=v) == Spy(),
        lambda: types.MappingProxyType(v) == Spy(), lambda: next(iter(v)), lambda: abc.update_abstractmethods(v), lambda: typing.runtime_checkable(v), lambda: typing.final(v), lambda: typing.no_type_check(v))
class Derives(json.JSONEncoder):
    def default(self, *args): note("default", args, {}); return "x"
def touch_scopes(v):
    # Run source with v among what it runs in.
    results = []
    for key in ("__builtins__", "__spec__", "x"):
        def given(key=key):
            space = {key: v}
            exec("def made(): pass\\nclass Made: pass\\nclass Own(Made): pass", space)
            return space
        def set_inside(key=key, value=v):
            space = {}
            space.update(space=space, key=key, value=value)
            attempt([], lambda: exec("space[key] = value\\ndef made(): pass\\nlater = lambda: 0\\nclass Made: x = later", space))
            return [space.get("made"), space.get("later"), space.get("Made")]
        attempt(results, given, set_inside, lambda: set_inside(value={}), lambda: set_inside(value=Spy()))
    return attempt(results, lambda: exec("a = 1", v), lambda: eval("x", {"x": v}, v), lambda: exec(v), lambda: eval(v), lambda: compile(v, v, v), lambda: exec("b = v", globals(), v),
        lambda: copy.deepcopy(globals(), Memo()), lambda: [copy.deepcopy(globals() | {"x": 1}, {})], lambda: globals() == Spy(), lambda: globals() | Spy(), lambda: copy.copy(globals()))
def deep_globals():
    memo = {}
    attempt([], lambda: copy.deepcopy(globals(), memo))
    return list(memo.values())

def write_init(v):
    for name in dir(v):
        try: found = getattr(v, name)
        except BaseException: continue
        if not isinstance(found, type) and (type(found) in (property, functools.cached_property, functools.partial, classmethod, staticmethod) or type(found).__name__ in HOST_DESCRIPTORS):
            attempt([], lambda: found.__init__(function), lambda: found.__set_name__(Plain, "dispatch"), lambda: found.__init__(), lambda: found.__init__(function, function))
def write_set_name(v):
    class C:
        kept = functools.cached_property(function)
        x = functools.singledispatchmethod(function)
        y = functools.partialmethod(function)
        z = property(function, function)
    for p in (C.kept, C.z):
        attempt([], lambda: p.__get__(v, C), lambda: p.__get__(v), lambda: p.__set__(v, function), lambda: p.__init__(v))
    attempt([], lambda: functools.singledispatchmethod.__init__(v, function), lambda: functools.cached_property.__init__(v, function), lambda: functools.cached_property.__set_name__(v, C, "x"))
def write_attributes(v):
    for name in STORED:
        attempt([], lambda: setattr(v, name, function))
    def name_plainly(): v.dispatch = function
    def put(): v.x = function
    def wrap(): functools.update_wrapper(v, dressed)
    attempt([], name_plainly, put, wrap, lambda: functools.wraps(dressed)(v), lambda: setattr(v, "__wrapped__", function), lambda: delattr(v, "__doc__"), lambda: vars(v).update(x=1), lambda: typing.final(v),
        lambda: typing.no_type_check(v), lambda: typing.override(v), lambda: abc.abstractmethod(v), lambda: unittest.skip("x")(v), lambda: unittest.expectedFailure(v), lambda: typing.overload(v), lambda: typing.dataclass_transform()(v),
        lambda: v.__init__(function), lambda: v.__setstate__({"x": function}), lambda: v.__setstate__(((), {"x": function})), lambda: enum.unique(v), lambda: functools.total_ordering(v), lambda: dataclasses.dataclass(v))
def write_contents(v):
    found = [v]
    for name in dir(v):
        try: found.append(getattr(v, name))
        except BaseException: pass
    for each in found:
        if isinstance(each, (list, dict, set, collections.deque)) and not isinstance(v, (list, dict, set, collections.deque)) or each is v:
            attempt([], lambda: each.clear(), lambda: each.update({"written": function}), lambda: each.append(function), lambda: each.add(function), lambda: each.__setitem__("written", function), lambda: each.__ior__({"written": function}))

ENDLESS = (itertools.count, itertools.cycle, itertools.repeat)
def exercise(D):
    # Make instances of a class in several ways, and do with each what operators and the library do.
    instances = []
    attempt(instances, lambda: D(), lambda: D(1), lambda: D("format"), lambda: D([1, 2]), lambda: D({"a": 1}), lambda: D(function), lambda: D("a", 1), lambda: D(1, 2), lambda: D("a", Spy()), lambda: D(Spy(), Spy()), lambda: D(Spy, Spy(), Spy()))
    attempt([], lambda: isinstance(int, D), lambda: isinstance(len, D), lambda: isinstance(json, D), lambda: issubclass(int, D), lambda: issubclass(D, D), lambda: issubclass(Spy, D), lambda: isinstance(D, D), lambda: isinstance(Static, D),
        lambda: isinstance(abc.ABC, D), lambda: D[int], lambda: D.register(int), lambda: D._missing_(1), lambda: sorted(D), lambda: D["a"], lambda: D | int, lambda: functools.singledispatch(function).register(D, function)(D))
    def derive():
        class E(D, x=1): a = Data()
        return E
    def of_alias():
        class E(D[int]): pass
        return E
    attempt([], derive, of_alias)
    for x in [each for each in instances if isinstance(each, D)][:3]:
        def of_instance():
            class E(x): pass
            return E
        def managed():
            with x: raise Reached("a")
        async def managed_later():
            async with x: raise Reached("a")
        async def looped():
            async for each in x: break
        def send(make):
            made = make()
            try: made.send(None)
            finally: made.close()
        def change(): x.a = 1; del x.a
        def matched():
            match x:
                case D(a, b): return 1
                case {"a": 1}: return 2
                case [1, 2]: return 3
        attempt([], of_instance, managed, change, matched, lambda: send(managed_later), lambda: send(looped), lambda: str(x), lambda: repr(x), lambda: hash(x), lambda: x == x, lambda: x == 1, lambda: x < 1, lambda: not isinstance(x, ENDLESS) and 1 in x, lambda: len(x),
            lambda: list(itertools.islice(x, 3)), lambda: bool(x), lambda: int(x), lambda: x + x, lambda: 1 + x, lambda: x | x, lambda: x[0], lambda: x["a"], lambda: x(1), lambda: copy.copy(x), lambda: copy.deepcopy([compile("1", "x", "eval"), x]),
            lambda: format(x, "x"), lambda: "{0.a}{0}".format(x), lambda: json.dumps([x]), lambda: sorted([x, x]), lambda: pprint.pformat(x), lambda: x.a, lambda: vars(x), lambda: dir(x), lambda: type(x), lambda: list(x.__await__()),
            lambda: next(x), lambda: reversed(x), lambda: round(x), lambda: max(x, x), lambda: isinstance(x, Static), lambda: isinstance(1, x), lambda: issubclass(int, x), lambda: functools.partial(x)(), lambda: property(x).__get__(1), lambda: weakref.ref(x)(),
            lambda: contextlib.ExitStack().enter_context(x), lambda: x.__init__(Spy()), lambda: os_fspath(x), lambda: functools.singledispatch(function)(x), lambda: print(x, file=x))
    return [D, instances]
from os import fspath as os_fspath
def touch_delegating(v): return exercise(derive_delegating(v))
def touch_static(v): return exercise(derive_static(v))
def touch_of_class(v): return exercise(derive_of_class(v))
def touch_data(v): return exercise(derive_data(v))
def touch_members(v):
    # Override every public method and property of a class by one that records and goes on.
    class Derived(v): pass
    for name in [name for name in dir(v) if not name.startswith("_")]:
        original = getattr(v, name)
        if callable(original) and not isinstance(original, type):
            def recording(*args, name_=name, **kwargs):
                note("members." + name_, args, kwargs)
                return getattr(v, name_)(*args, **kwargs)
            try: setattr(Derived, name, recording)
            except BaseException: pass
    return exercise(Derived)
"""

_FIELDS = """
def fields_of_{name}(v):
    @dataclasses.dataclass
    class S(v): {name}: object
    return S
FIELDS["{name}"] = fields_of_{name}
def once_{name}(v):
    @dataclasses.dataclass
    class S(v):
        {name}: dataclasses.InitVar[object]
        def __post_init__(*args): note("__post_init__", args, {{}})
    return S
ONCE["{name}"] = once_{name}
"""
WRITES = "write_"


def source() -> str:
    """Return the source, which needs that of `spies` to run before it in the same namespace."""
    derived = []
    for kind, text in _KINDS.items():
        left_out = _NOT_DELEGATED if kind == "delegating" else _NOT_STATIC
        chosen = [m for m in METHODS if m not in left_out] + [m for m in _MORE if m in _MORE_OF[kind]]
        derived.append(_DERIVED.format(kind=kind, methods="".join(text.format(m=m) for m in chosen)))
    table = f"GUARDED = {_GUARDED}\nSTORED = {_STORED}\nHOST_DESCRIPTORS = ('property', 'DynamicClassAttribute', 'nonmember', 'member', 'enum.property', 'singledispatchmethod', 'partialmethod')\n"
    fields = "".join(_FIELDS.format(name=name) for name in _GUARDED)
    return table + "".join(derived) + _SOURCE + "FIELDS, ONCE = {}, {}\n" + fields
