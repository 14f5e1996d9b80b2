"""Security boundary: what guest code gets in place of an object's or a module's dictionary.

A view is a `dict` of the present entries under their plain names, so that `json.dumps(vars(x))`, `**vars(x)` and
`x.__dict__ == {…}` work in C. What is written to it goes to the real dictionary as well, name by name.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NoReturn, TypeGuard

from .names import DEFINABLE, HOOK_NAMES, KEPT_PRIVATELY, NATIVE, PREFIX, Verdict, demangle, judge, mangle

_MISSING = object()


class DictionaryView(dict[str, object]):
    """The `shown` entries of `target`; `spell` gives the real key of a shown one, or raises `TypeError`."""

    __slots__ = ("_spell", "_target")

    def __init__(self, shown: Mapping[str, object], target: dict[str, object], spell: Callable[[str], str]) -> None:
        if hasattr(self, "_target"):  # `__init__` is an ordinary method, which code may call again
            raise TypeError("this dictionary cannot be made anew")
        super().__init__(shown)
        self._target = target
        self._spell = spell

    def __setitem__(self, key: str, value: object) -> None:
        self._target[self._spell(key)] = value
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        self._target.pop(self._spell(key), None)

    def __ior__(self, other: object) -> DictionaryView:  # type: ignore[override,misc]  # noqa: PYI034 - narrower than dict's overloads, and never subclassed
        self.update(other)
        return self

    def update(self, *others: object, **entries: object) -> None:
        """Set every entry of the mapping or pairs given, as `dict.update` does."""
        for key, value in dict(*others, **entries).items():
            self[key] = value

    def setdefault(self, key: str, default: object = None) -> object:
        """Return the entry, after setting it to `default` when it is missing."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str, default: object = _MISSING) -> object:
        """Remove the entry and return it, or `default` when it is missing."""
        if key not in self:
            if default is _MISSING:
                raise KeyError(key)
            return default
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, object]:
        """Remove the newest entry and return it."""
        key = next(reversed(self))
        return key, self.pop(key)

    def clear(self) -> None:
        """Remove every entry that is shown."""
        for key in list(self):
            del self[key]

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise TypeError("this dictionary cannot be pickled; make a dict of it")


def namespace_of(view: object) -> dict[str, object] | None:
    """Return the variables behind a view of a module's variables, or None for anything else.

    Not the dictionary behind a view of attributes: variables keep their spelling, attributes do not.
    """
    return _target(view, _variable_name)


class SharedAttributes(dict[str, object]):
    """The attributes of the objects that were given one dictionary, `given`, as their `__dict__`."""

    __slots__ = ("__weakref__", "given")
    given: dict[str, object]


_shared: Final[weakref.WeakValueDictionary[int, SharedAttributes]] = weakref.WeakValueDictionary()
"""By the identity of the dictionary that was given, which each keeps alive."""


def are_attributes(value: object) -> TypeGuard[dict[str, object]]:
    """Return whether an object keeps its attributes in `value`, where it is what the object has as `__dict__`."""
    return type(value) is dict or type(value) is SharedAttributes


def shared_attributes(given: object) -> dict[str, object] | None:
    """Return what is to be the `__dict__` of an object for which code gave `given`, or None for no dictionary.

    Behind a view it is the dictionary of the object that the view shows. Of any other dictionary it is a copy, always
    the same one: into its own code could later put what it likes, under a private name of the host. Raises `TypeError`
    for a key that no attribute can have.
    """
    target = _target(given, _attribute_key)
    if target is not None:
        return target
    if type(given) is not dict and type(given) is not DictionaryView:
        return None
    attributes = _shared.get(id(given))
    if attributes is None:
        attributes = SharedAttributes((_attribute_key(key), value) for key, value in given.items())
        attributes.given = given
        _shared[id(given)] = attributes
    return attributes


def attributes_view(attributes: dict[str, object]) -> DictionaryView:
    """Show an object's own dictionary under plain names."""
    return DictionaryView(shown_attributes(attributes), attributes, _attribute_key)


def namespace_view(namespace: dict[str, object]) -> DictionaryView:
    """Show a module's variables, without the builtins and hooks it runs under."""
    return DictionaryView(shown_variables(namespace), namespace, _variable_name)


def shown_attributes(attributes: Mapping[str, object]) -> dict[str, object]:
    """Return the attributes that guest code may see, under plain names: never a private one of the host."""
    return {demangle(key): value for key, value in attributes.items() if _is_shown(key)}


def shown_variables(namespace: Mapping[str, object]) -> dict[str, object]:
    """Return the variables of a module or function that guest code may see."""
    return {key: value for key, value in namespace.items() if PREFIX not in key and key not in HOOK_NAMES}


def shown_names(names: Iterable[str]) -> list[str]:
    """Return the attribute names that guest code may see, sorted, under plain names."""
    return sorted({demangle(name) for name in names if _is_shown(name)})


def _is_shown(key: object) -> bool:
    if type(key) is not str or not key.startswith("_"):
        return type(key) is not str or not key.startswith(PREFIX) or key.startswith(f"{PREFIX}_")
    return key in NATIVE or key in DEFINABLE


def _target(view: object, spell: Callable[[str], str]) -> dict[str, object] | None:
    return view._target if type(view) is DictionaryView and getattr(view, "_spell", None) is spell else None


def _attribute_key(key: str) -> str:
    if type(key) is not str:
        raise TypeError(f"attribute names are strings, not {type(key).__name__}")
    key = demangle(key)
    if key in KEPT_PRIVATELY:
        return PREFIX + key
    if key.startswith("_") and judge(key) in {Verdict.GUARDED, Verdict.REFUSED}:
        _refuse(key)
    return mangle(key)


def _variable_name(key: str) -> str:
    if type(key) is not str:
        raise TypeError(f"variable names are strings, not {type(key).__name__}")
    if PREFIX in key or key in HOOK_NAMES:
        _refuse(key)
    return key


def _refuse(key: str) -> NoReturn:
    raise TypeError(f"{key!r} cannot be set here; choose another name")
