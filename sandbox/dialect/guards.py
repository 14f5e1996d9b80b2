"""Security boundary: attribute access where the name is made at run time, or where what comes back must be judged.

A guard judges the value returned and not the object asked, since what is asked can lie: `super().format` has a
receiver that is no `str`, and a class may answer `isinstance` as it likes. Nothing here reads a name that guest code
could have replaced: what the guards need of Python they hold themselves.
"""

# ruff: noqa: SIM905 - a table of words is read as words, not as quoted strings

from __future__ import annotations

import asyncio
import builtins
import sys
import types
import typing
from collections import UserString
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NoReturn, cast

from ..guest.dynamic import Dynamic, dynamic
from ..guest.facade import Facade
from ..guest.ownership import is_guest_callable, is_guest_class
from ..guest.real_classes import derives
from . import names
from .classes import Slots, class_of, shown_type, spelled_match_args
from .facades import call_records
from .facades.call_records import ClassCell, Frame
from .facades.module_object import GuestModule, view_of
from .formatting import format_string, format_string_map
from .metaclasses import initialize_plainly
from .names import Verdict
from .shields import JUDGED_IN_CLASSES, SHIELDED, shielded, unshielded
from .unsafe_c_methods import REMAKING, remade
from .views import (
    DictionaryView,
    are_attributes,
    attributes_view,
    shared_attributes,
    shown_attributes,
    shown_names,
)

MISSING: Final = object()

_own_dict = type.__dict__["__dict__"].__get__
_own_mro = type.__dict__["__mro__"].__get__
_subclasses_of: Final[Callable[[type], list[type]]] = type.__subclasses__
_instance_attribute = object.__getattribute__
_store_plainly = object.__setattr__
_NEVER: Final = (types.ModuleType, types.FrameType, types.CodeType, types.TracebackType, types.CellType)
_IMMUTABLE: Final = frozenset({str, bytes, int, float, complex, bool, types.NoneType})
_HINT_DEPTH_MAX: Final = 20
_NO_INITIALIZER: Final = object.__init__
_INITIALIZED_AGAIN: Final = frozenset({list, dict, set, bytearray, object, Exception})
_HOST_METHODS: Final = frozenset("get_loop get_context get_coro get_stack print_stack fget fset fdel".split())
_BOUND_ELSEWHERE: Final = frozenset({"__wrapped__", "__func__", *names.GUEST_ONLY_METHODS})
_OF_CLASSES_ALONE: Final = SHIELDED | names.GUEST_ONLY_METHODS
_OF_ALIASES: Final = frozenset({"__origin__", "__args__", "__parameters__", "__class__"})
_origin_of = types.GenericAlias.__dict__["__origin__"].__get__
_traceback_of = BaseException.__dict__["__traceback__"].__get__
_receiver_of_super = super.__dict__["__self__"].__get__
_TYPING_ALIAS: Final = cast("type", cast("Any", typing)._BaseGenericAlias)
_SLOT_DESCRIPTORS: Final = frozenset({types.MemberDescriptorType, types.GetSetDescriptorType})


class SecurityError(AttributeError):
    """The dialect does not give what the code asked for. `hasattr` and a default see it as a missing attribute."""


SecurityError.__module__ = "builtins"


def guarded_getattr(obj: object, name: str, default: object = MISSING, /) -> object:
    """Return what `obj.name` means in source, or `default` where there is no such attribute.

    Raises `TypeError` unless `name` is a string, `SecurityError` for a refused name or value.
    """
    if type(name) is not str:
        name = _exact_name(name)
    spelled = _spelling_of_plain(name)
    try:
        return _read(obj, names.demangle(name)) if spelled is None else builtins.getattr(obj, spelled)
    except AttributeError:
        if default is MISSING:
            raise
        return default


@lru_cache(maxsize=1024)
def _spelling_of_plain(name: str) -> str | None:
    """Return how a name is spelled inside whose value needs no judgement, whatever the object; None for another.

    `name` is an exact `str`, so that no code runs while it is looked up.
    """
    name = names.demangle(name)
    if names.judge(name) in {Verdict.GUARDED, Verdict.REFUSED} or name in names.REDUCING:
        return None
    return names.mangle(name)


def _exact_name(name: object) -> str:
    """Return the characters of a name, since one of a subclass answers for itself. Raises `TypeError` for no string."""
    if not derives(type(name), str):
        raise TypeError(f"attribute name must be string, not {type(name).__name__!r}")
    return names.exact(cast("str", name))


def keywords_of(mapping: Mapping[str, object], /) -> dict[str, object]:
    """Return the keyword arguments that `**mapping` stands for, each name an exact `str`, in a new dictionary.

    A name of a subclass answers for itself: looked up it may be one name, and bound by CPython another. Raises
    `TypeError` for what is not a mapping, and for a name that is not a text.
    """
    keywords = {**mapping}
    if all(type(name) is str for name in keywords):
        return keywords
    if not all(issubclass(type(name), str) for name in keywords):
        raise TypeError("keywords must be strings")
    return {names.exact(name): value for name, value in keywords.items()}


def guarded_hasattr(obj: object, name: str, /) -> bool:
    """Return whether `guarded_getattr` would return a value."""
    return guarded_getattr(obj, name, MISSING_VALUE) is not MISSING_VALUE


MISSING_VALUE: Final = object()


def guarded_setattr(obj: object, name: str, value: object, /) -> None:
    """Do what `obj.name = value` means in source. Raises as `guarded_getattr` does."""
    if type(name) is not str:
        name = _exact_name(name)
    name = names.demangle(name)
    if name == "__class__":
        _change_class(obj, value)
    elif name == "__dict__":
        _change_dict(obj, value)
    elif name in _DEFAULTS and _is_own_function(obj):
        builtins.setattr(obj, name, _default_values(name, value))
    elif name in names.KEPT_PRIVATELY and _keeps_privately(obj, name):
        builtins.setattr(obj, names.PREFIX + name, value)
    elif name == "__wrapped__" and (_is_own_function(obj) or is_guest_class(type(obj))):
        # What host code that follows it gets is of the code's own, as `functools.wraps` sets it.
        if not _is_own(value):
            raise SecurityError(
                "'__wrapped__' can be set to a function, a class or an object that the code made itself"
            )
        builtins.setattr(obj, name, value)
    elif name == "cell_contents" and type(obj) is ClassCell:
        call_records.put_class(obj, value)
    elif name == "__match_args__" and isinstance(obj, type) and is_guest_class(obj):
        builtins.setattr(obj, name, spelled_match_args(value))  # as a class body may have it
    elif name == "__module__" and _is_of_code(obj):
        # As a class body may say it. Host code looks the module up by it, and a string of another class could lie.
        builtins.setattr(obj, name, names.exact(value) if isinstance(value, str) else None)
    else:
        _check_store(obj, name)
        if name in names.TITLES and isinstance(value, str):
            value = names.exact(value)
        if name in JUDGED_IN_CLASSES and isinstance(obj, type):
            value = shielded(name, value, shown_type)
        _hold_replaced(obj, name)
        builtins.setattr(obj, names.mangle(name), value)


def _keeps_privately(obj: object, name: str) -> bool:
    return is_guest_class(type(obj)) or (name == "__self__" and _is_own_function(obj))


def _is_own_function(obj: object) -> bool:
    return type(obj) is types.FunctionType and is_guest_callable(obj)


def _is_own(value: object) -> bool:
    """Return whether `value` is a function, a class or an object of a class that the code made itself."""
    return is_guest_callable(value) or is_guest_class(value if isinstance(value, type) else type(value))


_DEFAULTS: Final[dict[str, type]] = {"__defaults__": tuple, "__kwdefaults__": dict}


def _default_values(name: str, value: object) -> object:
    """Return what the defaults of a function of the code's own are to be. Raises `TypeError`.

    C looks names up in the dictionary at each call, and does not hold it while a key that is no exact text compares.
    """
    kind = _DEFAULTS[name]
    if value is not None and type(value) is not kind:
        raise TypeError(f"{name} must be set to a {kind.__name__} object")
    if type(value) is not dict:
        return value
    if not all(isinstance(key, str) for key in value):
        raise TypeError(f"the keys of {name} must be names")
    return {names.exact(key): default for key, default in value.items()}


def _is_of_code(obj: object) -> bool:
    """Return whether `obj` is a function, a class or an object of a class that the code made itself."""
    return is_guest_callable(obj) or is_guest_class(type(obj)) or (isinstance(obj, type) and is_guest_class(obj))


def guarded_delattr(obj: object, name: str, /) -> None:
    """Do what `del obj.name` means in source. Raises as `guarded_getattr` does."""
    if type(name) is not str:
        name = _exact_name(name)
    name = names.demangle(name)
    _check_store(obj, name)
    _hold_replaced(obj, name)
    builtins.delattr(obj, names.mangle(name))


def _hold_replaced(obj: object, name: str) -> None:
    """Keep what a class had as `__getitem__`: CPython 3.13 calls it on, once the class was changed 1,000 times."""
    if name == "__getitem__" and isinstance(obj, type):
        _held.append(_own_dict(obj).get(name))


_held: Final[list[object]] = []
"""What C code may go on with after the code has replaced it."""


def guarded_vars(obj: object, /) -> object:
    """Return a view of `obj.__dict__` under plain names; a read-only one for a class. Raises `TypeError`."""
    try:
        return _dictionary(obj)
    except SecurityError as error:
        raise TypeError(str(error)) from None
    except AttributeError:
        raise TypeError("vars() argument must have __dict__ attribute") from None


def guarded_dir(obj: object, /) -> list[str]:
    """Return the attribute names that source may spell, sorted."""
    return shown_names(name for name in builtins.dir(obj) if type(name) is str)


class Slot:
    """An attribute that is a target of assignment and needs a guard: `Slot(obj, name).value = x` sets it guarded."""

    __slots__ = ("_name", "_obj")

    def __init__(self, obj: object, name: str) -> None:
        self._obj = obj
        self._name = name

    @property
    def value(self) -> object:
        """The attribute itself."""
        return guarded_getattr(self._obj, self._name)

    @value.setter
    def value(self, value: object) -> None:
        guarded_setattr(self._obj, self._name, value)

    @value.deleter
    def value(self) -> None:
        guarded_delattr(self._obj, self._name)


def slot_of(obj: object, name: str) -> Slot:
    """Return the target of an assignment to `obj.name`. A function, since code can find what stands among builtins."""
    return Slot(obj, name)


def store_field(obj: object, name: str, value: object, /) -> None:
    """Do what `object.__setattr__(obj, name, value)` means in source, for the `__init__` of a frozen dataclass.

    Code can find it among builtins, so that it trusts no name. Raises as `guarded_setattr` does.
    """
    if type(name) is not str:
        name = _exact_name(name)
    if not is_guest_class(type(obj)):
        raise SecurityError(f"{type(obj).__name__!r} object is not an instance of a class that the code made itself")
    _store_plainly(obj, _field_spelling(name), value)


@lru_cache(maxsize=1024)
def _field_spelling(name: str) -> str:
    name = names.demangle(name)
    if name.startswith("__") or names.judge(name) is Verdict.REFUSED:
        raise SecurityError(f"the attribute {name!r} of this object cannot be changed; define it in the class body")
    return names.mangle(name)


def _read(obj: object, name: str) -> object:
    verdict = names.judge(name)
    if verdict is Verdict.GUARDED:
        if name not in _OF_ALIASES:
            obj = _aliased(obj)
        if name in names.KEPT_PRIVATELY and _keeps_privately(obj, name):
            kept = builtins.getattr(obj, names.PREFIX + name, MISSING)
            if kept is not MISSING:
                return kept
        if name in names.RUNTIME_PUBLIC and _is_dynamic(obj):
            return builtins.getattr(obj, name)  # the name of a tool or skill
        reader = _READERS.get(name)
        return _JUDGES.get(name, _judged)(builtins.getattr(obj, name), name) if reader is None else reader(obj, name)
    if verdict is Verdict.REFUSED:
        return _record_attribute(obj, name)
    if name in names.REDUCING and isinstance(obj, type) and not is_guest_class(obj):
        return AS_BY_DEFAULT
    return builtins.getattr(obj, names.mangle(name))


def record_of(obj: object, name: str, /) -> object:
    """Return what `obj.name` means in a module that is imported, of the names that lead into the interpreter.

    Code can find it among builtins. Raises `SecurityError` for what a record does not have.
    """
    if obj is None and name == "tb_next":  # tracebacks are None here
        return None
    if name in names.LINEAGE and issubclass(type(obj), type):
        return _judged(builtins.getattr(obj, name), name)
    if name == "__code__" and type(obj) is types.FunctionType and is_guest_callable(obj):
        return call_records.code_of(obj.__code__)
    return guarded_getattr(obj, name)


def _record_attribute(obj: object, name: str) -> object:
    """Return what a record has under a name that leads into the interpreter anywhere else."""
    if type(obj) is Frame:
        return call_records.frame_attribute(obj, name)
    if type(obj) is ClassCell and name == "cell_contents":
        return call_records.class_in(obj)
    cells = call_records.class_cells(obj) if name == "__closure__" else ()
    if not cells:
        raise _refusal(name)
    return cells


def _not_reduced(*_arguments: object) -> NoReturn:
    raise TypeError("__reduce__() of a class of Python's own cannot be called here; use pickle or copy")


AS_BY_DEFAULT: Final = dynamic("what pickle does by default", _not_reduced, tuple, call=_not_reduced)


def _aliased(obj: object) -> object:
    """Return what `obj` is an alias of (`list` of `list[int]`): it hands attributes on, whatever its own class is."""
    while derives(type(obj), types.GenericAlias):
        obj = _origin_of(cast("types.GenericAlias", obj))
    return obj


def _is_dynamic(obj: object) -> bool:
    return type(obj) is Dynamic


def _refusal(name: str) -> SecurityError:
    reason, instead = names.why_refused(name)
    return SecurityError(f"{reason}; {instead}" if instead else reason)


def _judged(value: object, name: str) -> object:
    """Return `value`, or what guest code gets in its place, or raise `SecurityError`."""
    kind = type(value)
    if is_guest_class(kind):
        return value
    if kind is tuple:
        return tuple(_judged(item, name) for item in value)  # type: ignore[attr-defined]  # a tuple by its exact type
    if isinstance(value, type):
        return shown_type(value)
    if kind in _SLOT_DESCRIPTORS and not is_guest_class(cast("Any", value).__objclass__):
        # Bound by hand, or by another descriptor, it would give unjudged what is judged here.
        raise SecurityError(f"the attribute {name!r} of this class is not for code here; read it from an object")
    if kind is types.GenericAlias and not leads_nowhere(value):
        raise SecurityError(f"the attribute {name!r} of this object leads into the interpreter")
    if issubclass(kind, _NEVER) or issubclass(kind, asyncio.AbstractEventLoop):
        raise SecurityError(f"the attribute {name!r} of this object leads into the interpreter")
    if kind.__module__.startswith("sealab.") and kind is not DictionaryView and ".facades." not in kind.__module__:
        raise SecurityError(f"the attribute {name!r} of this object is not for code here")
    return value


def _class(obj: object, _name: str) -> object:
    return class_of(obj)


def _dictionary(obj: object, _name: str = "__dict__") -> object:
    if isinstance(obj, type):
        if not is_guest_class(obj):
            return types.MappingProxyType(_readable(obj))
        own = shown_attributes(_own_dict(obj))
        shown = {key: value.written.copy() if type(value) is Slots else unshielded(value) for key, value in own.items()}
        if "__annotations__" in shown:
            shown["__annotations__"] = _plainly_named(shown["__annotations__"])
        if "__weakref__" in _own_dict(obj):
            shown["__weakref__"] = property()
        # A frozen dataclass has these of the host's, which set whatever they are given.
        hosts = {key for key in names.GUEST_ONLY_METHODS & shown.keys() if not is_guest_callable(shown[key])}
        return types.MappingProxyType({key: value for key, value in shown.items() if key not in hosts})
    if type(obj) is GuestModule:
        return view_of(obj)
    if derives(type(obj), Facade) and not _is_dynamic(obj):
        return types.MappingProxyType({name: guarded_getattr(obj, name) for name in guarded_dir(obj)})
    if not (is_guest_class(type(obj)) or type(obj) is types.SimpleNamespace or is_guest_callable(obj)):
        raise SecurityError(f"{type(obj).__name__!r} object has no attribute '__dict__' that code may read")
    return attributes_view(_real_dictionary(obj))


def _readable(cls: type) -> dict[str, object]:
    """Return what code can read of a class of the host anyhow, each attribute as it reads it there."""
    names_of_own = [name for name in shown_names(_own_dict(cls)) if name != "__dict__"]
    found = ((name, guarded_getattr(cls, name, MISSING_VALUE)) for name in names_of_own)
    return {name: value for name, value in found if value is not MISSING_VALUE}


def _real_dictionary(obj: object) -> dict[str, object]:
    found = _instance_attribute(obj, "__dict__")
    if not are_attributes(found):
        raise AttributeError(f"{type(obj).__name__!r} object has no attribute '__dict__'", name="__dict__")
    return found


def initializer_of(obj: object, _name: str = names.INITIALIZER) -> object:
    """Return what `obj.__init__` means in source: one of the host works on objects of the code's own classes only.

    Python calls it again on whatever it is given: `property.__init__` on a property of a host class, for one. That
    `super()` gives it says nothing, since the second argument of `super` may be a class.
    """
    if type(obj) is not super:
        obj = _aliased(obj)
    value: Any = builtins.getattr(obj, names.INITIALIZER)
    kind = type(value)
    if kind is types.MethodType or kind is types.MethodWrapperType:
        if is_guest_class(type(value.__self__)) or is_guest_callable(value):
            return value
        if kind is types.MethodType and value.__func__ is initialize_plainly:
            return value
    elif is_guest_callable(value) or value is _NO_INITIALIZER or value is initialize_plainly:
        return value

    def initialize(*arguments: object, **keywords: object) -> object:
        owner = _receiver(value, obj)
        if kind is types.WrapperDescriptorType or kind is types.FunctionType:
            if not arguments:
                raise TypeError("__init__() needs an object")
            owner = arguments[0]
            cls: Any = builtins.getattr(obj, "__self__", None) if type(obj) is super else obj
            if not issubclass(type(cls), type):  # whatever hands it on does not say on what it works
                raise SecurityError("__init__() of a class of Python's own is called on the class, or by super()")
            if not derives(type(owner), cls):
                raise TypeError(
                    f"__init__() of {cls.__name__!r} needs an object of that class, not {type(owner).__name__!r}"
                )
        if not (is_guest_class(type(owner)) or type(owner) in _INITIALIZED_AGAIN):
            raise SecurityError("__init__() works on objects of classes that the code made itself")
        return value(*arguments, **keywords)

    return initialize


def shown_annotations(obj: object, name: str = "__annotations__") -> object:
    """Give the annotations of the code's own function or class as they are, of anything else a copy that leads nowhere.

    Those of a host function may hold `type[Any]`, which makes classes when it is called.
    """
    value = builtins.getattr(obj, name)
    if is_guest_callable(obj) or (issubclass(type(obj), type) and is_guest_class(cast("type", obj))):
        # A metaclass that has annotations lets a class show those of its base.
        hosts = [base for base in _own_mro(obj) if not is_guest_class(base)] if issubclass(type(obj), type) else []
        if not any(_own_dict(base).get(name) is value for base in hosts):
            return _plainly_named(value)
    if type(value) is not dict:
        return _judged(value, name)
    return {key: shown_annotation(hint) for key, hint in value.items()}


def _plainly_named(annotations: object) -> object:
    """Return annotations under the names that source gives them: a copy, where private ones are among them."""
    if type(annotations) is not dict or not any(type(key) is str and names.PREFIX in key for key in annotations):
        return annotations
    return {names.demangle(key) if type(key) is str else key: hint for key, hint in annotations.items()}


def shown_annotation(hint: object) -> object:
    """Return an annotation, or its text where it leads to a class that code may not hold."""
    return hint if leads_nowhere(hint) else repr(hint)


def leads_nowhere(hint: object, depth: int = 0) -> bool:
    """Return whether an annotation and all its parts are what code may hold."""
    if issubclass(type(hint), type):
        return shown_type(cast("type", hint)) is hint
    if is_guest_class(type(hint)):
        return True
    parts = (builtins.getattr(hint, "__origin__", None), *(builtins.getattr(hint, "__args__", None) or ()))
    return depth < _HINT_DEPTH_MAX and all(
        part is None or part is Ellipsis or type(part) in _IMMUTABLE or leads_nowhere(part, depth + 1) for part in parts
    )


def _subject(obj: object, name: str) -> object:
    """Give what an error is about only where code could hold it: inside the host that may be anything."""
    value = builtins.getattr(obj, name)
    if type(obj) is super:
        obj = _receiver_of_super(obj)
    while derives(type(obj), _TYPING_ALIAS):
        obj = cast("Any", obj).__origin__
    if not derives(type(obj), AttributeError) or is_guest_class(type(obj)):
        return _judged(value, name)
    if is_guest_class(type(value)) or type(value) in _IMMUTABLE or is_guest_callable(value):
        return value
    if isinstance(value, type):
        return shown_type(value)
    raise SecurityError(f"the attribute {name!r} of this error is not for code here")


def _proxied_copy(value: object, name: str) -> object:
    """Give a view of a copy in place of a view of a host's own table: compared, a view hands over what is behind it."""
    return types.MappingProxyType(dict(value)) if type(value) is types.MappingProxyType else _judged(value, name)


def _naming(obj: object, name: str) -> object:
    if not is_guest_class(type(obj)):
        raise SecurityError("the members of Python's own enums are read-only here")
    value = builtins.getattr(obj, name)

    def add(alias: object, /) -> object:
        return value(names.member_name(alias) if name == names.NAMING_METHOD else alias)

    return add


def _class_table(obj: object, name: str) -> object:
    """Give a table of the code's own class or object as it is, and one that a host class has as a copy."""
    value = builtins.getattr(obj, name)
    if type(value) is Slots:
        return value.written.copy()
    is_class = issubclass(type(obj), type)
    cls = cast("type", obj) if is_class else type(obj)
    owner = next((base for base in _own_mro(cls) if name in _own_dict(base)), None)
    own = (not is_class and is_guest_class(cls)) if owner is None else is_guest_class(owner)
    return value if own else _copied_container(value, name)


def _copied_container(value: object, name: str) -> object:
    if type(value) is dict or type(value) is types.MappingProxyType:
        return types.MappingProxyType(dict(value))
    return tuple(value) if type(value) is list else _judged(value, name)


def _lineage(obj: object, name: str) -> object:
    value = builtins.getattr(obj, name)
    if not is_guest_class(cast("type", obj) if issubclass(type(obj), type) else type(obj)):
        raise SecurityError(f"the attribute {name!r} of this object cannot be read here; use isinstance()")
    return _judged(value, name)


def _mro_method(value: object, name: str) -> object:
    if not isinstance(value, types.BuiltinFunctionType | types.MethodDescriptorType):
        return _judged(value, name)
    cls = getattr(value, "__self__", None)
    return lambda: list(_lineage(cls, "__mro__"))  # type: ignore[call-overload]  # a tuple of classes


def _weak_references(obj: object, name: str) -> object:
    """Return an empty property for a class with `__weakref__`, None for an object: its references may be the host's."""
    is_class = issubclass(type(obj), type)
    if not any(name in _own_dict(base) for base in _own_mro(obj if is_class else type(obj))):
        raise AttributeError(f"{type(obj).__name__!r} object has no attribute {name!r}")
    return property() if is_class else None


def _subclasses_method(obj: object, name: str) -> object:
    if not (isinstance(obj, type) and is_guest_class(obj)):
        raise SecurityError(f"{name}() works on classes that the code made itself")
    return lambda: [cls for cls in _subclasses_of(obj) if is_guest_class(cls)]


def _guest_made(obj: object, name: str) -> object:
    value = builtins.getattr(obj, name)
    if _is_own(value):
        return value
    raise SecurityError(f"the attribute {name!r} of this object is not for code here")


def _defaults(obj: object, name: str) -> object:
    if not is_guest_callable(obj):
        raise SecurityError(f"the attribute {name!r} of this object is not for code here")
    value = builtins.getattr(obj, name)
    return dict(value) if type(value) is dict else value


def _bound_to(obj: object, name: str) -> object:
    value = builtins.getattr(obj, name)
    if isinstance(value, type) or is_guest_class(type(value)) or type(value) in _IMMUTABLE:
        return _judged(value, name)
    if type(value) is list and type(obj) is types.BuiltinMethodType:  # who holds `items.append` can fill the list
        return value
    raise SecurityError(f"the attribute {name!r} of this object is not for code here")


def _host_method(value: object, name: str) -> object:
    if callable(value) and not (is_guest_callable(value) or is_guest_class(type(value))):
        raise SecurityError(f"the method {name!r} of this object leads into the interpreter")
    return _judged(value, name)


def _formatter(value: object, name: str) -> object:
    """Give the guarded stand-in for every spelling of `str.format` and `str.format_map`, bound or not."""
    if isinstance(value, types.BuiltinFunctionType) and isinstance(value.__self__, str) and value.__name__ in _FORMATS:
        return _bound_format(value.__self__, value.__name__)
    if value is _FORMATS["format"] or value is _FORMATS["format_map"]:
        return _unbound_format("format" if value is _FORMATS["format"] else "format_map")
    if _is_user_string_method(value):
        return lambda text, *args, **kwargs: _bound_format(_text(text), name)(*args, **kwargs)
    if type(value) is types.MethodType and _is_user_string_method(value.__func__):
        return _bound_format(_text(value.__self__), name)
    return _judged(value, name)


def _is_user_string_method(value: object) -> bool:
    return any(value is method for method in _USER_STRING_METHODS)  # a comparison would hand the method to the value


def _bound_format(template: str, name: str) -> Callable[..., str]:
    if name == "format":
        return lambda *args, **kwargs: format_string(template, args, kwargs, guarded_getattr)
    return lambda mapping: format_string_map(template, mapping, guarded_getattr)


def _unbound_format(name: str) -> Callable[..., str]:
    def unbound(template: str, /, *args: object, **kwargs: object) -> str:
        if not isinstance(template, str):
            raise TypeError(
                f"descriptor {name!r} for 'str' objects doesn't apply to a {type(template).__name__!r} object"
            )
        return _bound_format(template, name)(*args, **kwargs)

    return unbound


_FORMATS: Final = {"format": str.format, "format_map": str.format_map}
_USER_STRING_METHODS: Final = (_own_dict(UserString)["format"], _own_dict(UserString)["format_map"])


def _text(user_string: object) -> str:
    text = _instance_attribute(user_string, "data")
    if not isinstance(text, str):
        raise TypeError("the data of a UserString must be a string")
    return text


def _named_access(obj: object, name: str) -> object:
    """Give `__getattribute__`, `__setattr__` and their kind a form that judges the name they are called with."""
    value = builtins.getattr(obj, name)
    written = unshielded(value)
    if written is not value and is_guest_callable(written):
        return written  # code that calls it tells it nothing but its own

    def checked(*arguments: object) -> object:
        *target, attribute, stored = arguments if name == "__setattr__" else (*arguments, None)
        if type(attribute) is not str:
            attribute = _exact_name(attribute)
        attribute = names.demangle(attribute)
        owner = target[0] if target else _receiver(value, obj)
        given = (stored,) if name == "__setattr__" else ()
        if is_guest_callable(value):
            return value(*target, attribute, *given)
        if not is_guest_class(type(owner)) and not (isinstance(owner, type) and is_guest_class(owner)):
            raise SecurityError(
                f"{name} works on objects of classes that the code made itself; use getattr() or setattr()"
            )
        if name in {"__setattr__", "__delattr__"}:
            _check_store(owner, attribute)
        elif issubclass(type(owner), type):
            return _read(owner, attribute)  # the one of `object` would read the metaclass
        elif names.judge(attribute) is Verdict.REFUSED:
            raise _refusal(attribute)
        elif attribute in _READERS:
            return _read(owner, attribute)
        elif names.judge(attribute) is Verdict.GUARDED:
            return _JUDGES.get(attribute, _judged)(value(*target, attribute), attribute)
        return value(*target, names.mangle(attribute), *given)

    return checked


def _binding(obj: object, name: str) -> object:
    """Give `__get__` a form that names the owner: left out, `classmethod` would take the real type of the instance."""
    value = builtins.getattr(obj, name)
    if is_guest_callable(value):
        return value
    unbound = not hasattr(value, "__self__")

    def bind(*arguments: object) -> object:
        descriptor, (instance, owner) = arguments[:unbound], (*arguments[unbound:], None, None)[:2]
        if owner is None and instance is not None:
            owner = shown_type(type(instance))
        elif owner is not None and not issubclass(type(owner), type):
            raise TypeError(f"the owner of an attribute must be a class, not {type(owner).__name__!r}")
        return value(*descriptor, instance, owner, *arguments[unbound + 2 :])

    return bind


def _traceback(obj: object, name: str) -> object:
    """Give the traceback of an exception, which `__exit__` of the code's own is passed as well.

    Code can hand it on and read its line. What leads from it to a frame is refused by name.
    """
    if derives(type(obj), BaseException):
        return _traceback_of(cast("BaseException", obj))
    return _judged(builtins.getattr(obj, name), name)


def _receiver(method: object, obj: object) -> object:
    return builtins.getattr(method, "__self__", obj)


_READERS: Final[dict[str, Callable[[object, str], object]]] = {
    "__class__": _class,
    "__dict__": _dictionary,
    "__subclasses__": _subclasses_method,
    "__weakref__": _weak_references,
    "__self__": _bound_to,
    names.BINDING_METHOD: _binding,
    names.INITIALIZER: initializer_of,
    "__annotations__": shown_annotations,
    "__traceback__": _traceback,
    "obj": _subject,
    names.NAMING_METHOD: _naming,
    names.VALUE_METHOD: _naming,
    "__defaults__": _defaults,
    "__kwdefaults__": _defaults,
    **dict.fromkeys(names.CLASS_TABLES, _class_table),
    **dict.fromkeys(names.LINEAGE, _lineage),
    **dict.fromkeys(_BOUND_ELSEWHERE, _guest_made),
    **dict.fromkeys(names.ATTRIBUTE_METHODS, _named_access),
}
_JUDGES: Final[dict[str, Callable[[object, str], object]]] = {
    "mro": _mro_method,
    "format": _formatter,
    "format_map": _formatter,
    "groupindex": _proxied_copy,
    "__members__": _proxied_copy,
    **dict.fromkeys(_HOST_METHODS, _host_method),
    **dict.fromkeys(REMAKING, lambda value, name: _judged(remade(value, name), name)),
}


_HOST_DESCRIPTORS: Final[set[int]] = set()
"""What stands in classes of the host and takes stores, by identity. It exists as long as they do."""


def keep_descriptors(descriptors: Iterable[object]) -> None:
    """Let no store describe these otherwise: a sealed class still holds properties whose texts can be changed."""
    _HOST_DESCRIPTORS.update(map(id, descriptors))


_STORABLE_METHODS: Final = names.DEFINABLE - (names.DECLARATIONS - names.SPECIAL_METHODS)


def _check_store(obj: object, name: str) -> None:
    verdict = names.judge(name)
    if name in names.SETTABLE and id(obj) in _HOST_DESCRIPTORS:
        raise SecurityError(f"{name!r} of an attribute of a class of Python's own cannot be changed")
    if verdict is Verdict.PRIVATE or not name.startswith("_") or name in names.SETTABLE:
        if name in names.INSPECTION:
            raise _refusal(name)
        return
    if name == "__traceback__" and derives(type(obj), BaseException):
        return  # as `with_traceback` does; Python takes nothing but a traceback, or None
    own = obj if isinstance(obj, type) else type(obj)
    # Python looks special methods up in the class. On an instance these would be seen by host code alone, unshielded.
    on_class = name not in _OF_CLASSES_ALONE or own is obj
    if name in _STORABLE_METHODS and is_guest_class(own) and on_class:
        return
    raise SecurityError(f"the attribute {name!r} of this object cannot be changed; define it in the class body")


def _change_class(obj: object, value: object) -> None:
    if not (isinstance(value, type) and is_guest_class(value) and is_guest_class(type(obj))):
        raise SecurityError("an object's class can only be changed from one class of the code's own to another")
    # A dictionary that the code chose may hold what a class of the host takes for its own state.
    if _host_bases(type(obj)) != _host_bases(value):
        raise SecurityError(
            "an object's class cannot be changed to one that derives from other classes of Python's own"
        )
    object.__setattr__(obj, "__class__", value)


def _change_dict(obj: object, value: object) -> None:
    """Let objects share their attributes (the Borg pattern), where no class of the host reads them."""
    if not _is_pure(type(obj)):
        raise SecurityError("'__dict__' of this object cannot be replaced; set its attributes one by one")
    attributes = shared_attributes(value)
    if attributes is None:
        raise TypeError(f"__dict__ must be set to a dictionary, not a {type(value).__name__!r}")
    if sys.version_info < (3, 13):
        # A store in C goes on with the dictionary after the old value's `__del__`, which may come here.
        _held.append(_instance_attribute(obj, "__dict__"))
    object.__setattr__(obj, "__dict__", attributes)


def _is_pure(cls: type) -> bool:
    return not _host_bases(cls)


def _host_bases(cls: type) -> list[type]:
    return [base for base in _own_mro(cls) if not is_guest_class(base) and base is not object]
