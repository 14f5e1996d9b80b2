"""Security boundary: which names the dialect lets stand in source, and how private ones are spelled inside.

Every attribute name has one verdict, the same at compile time and for a name made at run time:

    PLAIN     means what it says and costs nothing
    PRIVATE   `self._x`: spelled with `PREFIX` inside, so it can never name a private attribute of a host object.
              So are dunder names that only the host would ask for, such as `__reduce__`: a class may define one, which
              nothing of the host ever finds, and a guest module has its `__file__` under it
    GUARDED   the value that comes back is judged at run time, by `sealab.sandbox.dialect.guards`
    REFUSED   never means anything harmless

Variables, parameters and keyword arguments keep their spelling: nothing of the sandbox's own lives under a name that
source can spell (`sealab.sandbox.guest.spelling`).
"""

# ruff: noqa: SIM905 - a table of words is read as words, not as quoted strings

from __future__ import annotations

from enum import Enum
from typing import Final
from unicodedata import normalize

from ..guest.spelling import PREFIX, demangle, exact

__all__ = ["PREFIX", "demangle", "exact"]  # the dialect has all that concerns names from here


class Verdict(Enum):
    """What an attribute name may do."""

    PLAIN = "plain"
    PRIVATE = "private"
    GUARDED = "guarded"
    REFUSED = "refused"


def _dunders(words: str) -> frozenset[str]:
    return frozenset(f"__{word}__" for word in words.split())


SPECIAL_METHODS: Final = _dunders(
    "new del call repr str bytes format hash bool len length_hint contains iter next reversed missing index int "
    "float complex round trunc floor ceil sizeof dir lt le eq ne gt ge add radd iadd sub rsub isub mul rmul imul "
    "matmul rmatmul imatmul truediv rtruediv itruediv floordiv rfloordiv ifloordiv mod rmod imod divmod rdivmod pow "
    "rpow ipow lshift rlshift ilshift rshift rrshift irshift and rand iand or ror ior xor rxor ixor neg pos abs invert "
    "getitem setitem delitem set delete enter exit aenter aexit await aiter anext init_subclass class_getitem "
    "post_init copy deepcopy fspath subclasshook replace getnewargs getnewargs_ex"
)
"""Methods that Python itself looks up: a class may define them, and a call by name does what the operator does."""

ATTRIBUTE_METHODS: Final = _dunders("getattribute getattr setattr delattr")
"""They take attribute names as data. A class may define them; calling one that exists goes through a check."""

BINDING_METHOD: Final = "__get__"
"""A class may define it. The host's own would pass the real type of whatever it is given on to what it binds."""

INITIALIZER: Final = "__init__"
"""A class may define it. The host's own, called again, would change a descriptor in a class of the host."""

REPLACING_METHOD: Final = "__replace__"
"""A class may define it (Python 3.13). That of `SimpleNamespace` trusts what a guest class returns."""

KEPT_PRIVATELY: Final = _dunders("self defaults kwdefaults")
"""What objects of the code that stand for functions copy from these. Only the code itself finds what is stored."""

REDUCING: Final = _dunders("reduce reduce_ex")
"""Of a class of the host they stand for what `pickle` does by default, and do nothing else."""

GUEST_ONLY_METHODS: Final = _dunders("getstate setstate set_name mro_entries")
"""A class may define them; only what the code itself defined may be called. The host's own take names as data, or give
what a class of the host is made from."""

_DESCRIPTIONS: Final = _dunders(
    "name qualname doc module cause context suppress_context notes dataclass_fields dataclass_params "
    "match_args abstractmethods isabstractmethod total required_keys optional_keys metadata forward_arg "
    "static_attributes firstlineno stdin stdout stderr"
)
"""Attributes that only describe: text, names, exceptions, and what a class was declared with."""

_JUDGED_BY_VALUE: Final = _dunders(
    "annotations class dict mro bases base subclasses wrapped self func origin args parameters bound constraints value "
    "supertype type_params orig_bases orig_class default defaults kwdefaults members weakref traceback"
)

CLASS_BODY: Final = _dunders(
    "classcell classdictcell classdict annotate_func annotations_cache conditional_annotations"
)
"""What the compiler itself puts into a class body. Source can neither read nor write these."""

SETTABLE: Final = _dunders("name qualname doc annotations cause context suppress_context notes")
"""Descriptions that code may replace on anything, as decorators and `raise` do."""

TITLES: Final = _dunders("name qualname")
"""What things are called. Python takes any kind of string, and host code and the report read it."""

DECLARATIONS: Final = _dunders("slots match_args doc module qualname annotations total hash")
"""What a class body may assign beside methods."""

SUNDER_METHODS: Final = frozenset("_asdict _replace _make _missing_ _generate_next_value_ _numeric_repr_".split())
SUNDER_DATA: Final = frozenset("_fields _value_ _name_ _order_ _ignore_ _sort_order_ _boundary_".split())
NAMING_METHOD: Final = "_add_alias_"
"""It makes an attribute of an enum class from data (Python 3.13)."""
VALUE_METHOD: Final = "_add_value_alias_"
"""It gives a member of an enum another value."""
CLASS_TABLES: Final = frozenset("_member_names_ _member_map_ _value2member_map_ _field_defaults __slots__".split())
"""What an enum class keeps its members in, a named tuple its defaults, and any class the names of its slots.

A class of the host shows copies.
"""
PUBLIC_SUNDERS: Final = SUNDER_METHODS | SUNDER_DATA | CLASS_TABLES | {NAMING_METHOD, VALUE_METHOD}
"""Names of named tuples and enums that start with an underscore and are documented all the same."""

RUNTIME_PUBLIC: Final = frozenset(
    (
        "format format_map mro obj parser get_loop get_context get_coro get_stack print_stack groupindex fget fset "
        "fdel getter setter deleter"
    ).split()
)
"""Public names that are harmless on the code's own objects and a way out on some host object of some version."""

INSPECTION: Final = frozenset(
    "tb_frame tb_next f_back f_builtins f_code f_generator f_globals f_locals f_trace co_code cell_contents gi_frame "
    "gi_code gi_yieldfrom cr_await cr_frame cr_code cr_origin ag_await ag_frame ag_code".split()
)
"""What leads from a traceback, generator or coroutine to a frame, and from there to everything."""

LINEAGE: Final = _dunders("mro bases base")
"""What a class derives from. Of a host class only a module that is imported receives it."""

_USE_INSTEAD: Final = {
    "__globals__": "pass the values as arguments, or use globals()",
    "__code__": "use inspect.signature(function), or its __name__ and __doc__",
    "__closure__": "return the value from the function, or keep it in an object",
    "__builtins__": "call the builtin by its name",
    "__import__": "use an import statement",
    "__instancecheck__": "define __subclasshook__ as a class method of an abc.ABC",
    "__subclasscheck__": "define __subclasshook__ as a class method of an abc.ABC",
}
_REFUSED_DUNDERS: Final = (
    _dunders(
        "objclass thisclass self_class weakrefoffset dictoffset basicsize itemsize flags text_signature "
        "prepare build_class getformat buffer release_buffer annotate evaluate_forward_ref"
    )
    | _USE_INSTEAD.keys()
)

HOOK_NAMES: Final = CLASS_BODY | frozenset(
    "_getattr_ _write_ _print_ _print _getiter_ _getitem_ _inplacevar_ _unpack_sequence_ _iter_unpack_sequence_ "
    "_apply_ __metaclass__ __builtins__ __build_class__".split()
)
"""Names no source may bind or read: RestrictedPython's hooks, and what CPython itself looks up by name.

Among the latter are variables that the compiler makes: `__classdict__` is the real dictionary of a class in the scope
of an annotation or of a type parameter (PEP 695).
"""

INERT: Final = _dunders("annotate wrapped")
"""A class may define them, and nothing finds what it defined: not the host, nor the code by reading the attribute."""

NATIVE: Final = SPECIAL_METHODS | _DESCRIPTIONS | PUBLIC_SUNDERS
GUARDED: Final = (
    _JUDGED_BY_VALUE
    | ATTRIBUTE_METHODS
    | GUEST_ONLY_METHODS
    | RUNTIME_PUBLIC
    | CLASS_TABLES
    | {BINDING_METHOD, INITIALIZER, NAMING_METHOD, VALUE_METHOD, REPLACING_METHOD}
)
REFUSED: Final = _REFUSED_DUNDERS | INSPECTION | CLASS_BODY
DEFINABLE: Final = (
    SPECIAL_METHODS
    | ATTRIBUTE_METHODS
    | GUEST_ONLY_METHODS
    | DECLARATIONS
    | PUBLIC_SUNDERS
    | {BINDING_METHOD, INITIALIZER, "__default__"}
)
_KNOWN: Final = NATIVE | GUARDED | REFUSED | DECLARATIONS


def judge(name: str) -> Verdict:
    """Return what the attribute `name` may do. An unknown dunder is as private as `_x`."""
    if name in GUARDED:
        return Verdict.GUARDED
    if name in REFUSED:
        return Verdict.REFUSED
    if not name.startswith("_") or name in NATIVE:
        return Verdict.PLAIN
    return Verdict.PRIVATE if name not in _KNOWN else Verdict.REFUSED


def is_of_host(name: str) -> bool:
    """Return whether only the host's own code asks an object for the attribute `name`, spelled as it is.

    Guest source spells its private names inside with `PREFIX`. What an object of a guest class answered to such a name
    the host would take for its own state (`graphlib.TopologicalSorter._node2info`).
    """
    return name.startswith("_") and (name in REFUSED or name in _OWN_STATE or judge(name) is Verdict.PRIVATE)


def member_name(name: object) -> str:
    """Return the name of an enum member that guest code gave as data.

    Raises `TypeError` for what is not a string, `ValueError` for a private or refused name.
    """
    plain = given(name, "the name of an enum member")
    if plain.startswith("_") or judge(plain) is Verdict.REFUSED:
        raise ValueError(f"{plain!r} cannot be the name of an enum member here")
    return plain


_OWN_STATE: Final = _dunders("dict class mro bases traceback")


def mangle(name: str, class_name: str | None = None) -> str:
    """Spell a private attribute name as it is spelled inside; other names come back as they are.

    Inside the class `class_name`, `__x` first becomes `_Class__x`, as in Python itself.
    """
    if not name.startswith("_") or name in _KNOWN:
        return name
    return PREFIX + class_private(name, class_name)


def given(name: object, what: str = "a name") -> str:
    """Return a name that guest code gave as data, in the spelling that its source would have.

    This is the one way by which data becomes a name. Raises `TypeError` for anything but an exact `str`: a subclass
    may equal one name and spell another. The compiler normalizes identifiers by NFKC (Language Reference 2.3), so what
    is judged is normalized first.
    """
    if type(name) is not str:
        raise TypeError(f"{what} must be a string, not {type(name).__name__!r}")
    return demangle(name if name.isascii() else normalize("NFKC", name))


def class_private(name: str, class_name: str | None) -> str:
    """Spell `__x` as Python does inside a class (Language Reference 6.2.1, private name mangling)."""
    if class_name is None or not name.startswith("__") or name.endswith("__"):
        return name
    owner = class_name.lstrip("_")
    return f"_{owner}{name}" if owner else name


def why_refused(name: str) -> tuple[str, str | None]:
    """Return why an attribute name is refused, and what to write instead where there is something."""
    if name in INSPECTION:
        return f"the attribute {name!r} leads to the interpreter's frames", None
    return f"the attribute {name!r} leads into the interpreter", _USE_INSTEAD.get(name)
