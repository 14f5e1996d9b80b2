"""`help`: what an object is called, how it is called, and its documentation, on standard output.

The real one, `pydoc`, imports what it is asked about and looks behind every class. Here everything is asked for as code
could ask itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..guest.guest import GUEST
from . import facades, guards
from .facades import Facade, title

_MEMBERS_MAX = 100
_NOTHING = object()


def guarded_help(obj: object = _NOTHING, /) -> None:
    """Print what can be said of an object, much as Python does; of a text the module or builtin of that name."""
    if obj is _NOTHING:
        GUEST.write("Call help(thing) for help about a thing.\n")
        return
    if type(obj) is str:
        found = facades.find(obj) or GUEST.namespace.get(obj)
        if found is None:
            GUEST.write(f"No Python documentation found for {obj!r}.\n")
            return
        obj = found
    GUEST.write("\n".join(_lines(obj)) + "\n")


def _lines(obj: object) -> Iterator[str]:
    if isinstance(obj, Facade):
        yield from [f"Help on module {title(obj)}:", "", "NAME", f"    {title(obj)}", "", "CONTENTS"]
        yield from _indented(", ".join(guards.guarded_dir(obj)))
        return
    name = _text(obj, "__name__")
    if name is None:  # an instance is shown by its class
        obj = guards.guarded_getattr(obj, "__class__")
        name = _text(obj, "__name__") or "object"
    home = _text(obj, "__module__")
    where = f" in module {home}" if home else ""
    if not isinstance(obj, type):
        kind = "function" if callable(obj) and home == "__main__" else "built-in function"
        yield from [f"Help on {kind} {name}{where}:", "", f"{name}{_signature(obj)}", *_documented(obj, 4), ""]
        return
    yield from [f"Help on class {name}{where}:", "", f"class {name}{_signature(obj)}", *_documented(obj, 4), ""]
    yield from _members(obj)


def _members(cls: type) -> Iterator[str]:
    public = [name for name in guards.guarded_dir(cls) if not name.startswith("_")]
    for name in public[:_MEMBERS_MAX]:
        member = guards.guarded_getattr(cls, name, None)
        yield f"    {name}{_signature(member) if callable(member) else ''}"
        yield from [*_documented(member, 8), ""]
    if len(public) > _MEMBERS_MAX:
        yield f"    … and {len(public) - _MEMBERS_MAX} more: dir() names them"


def _signature(obj: object) -> str:
    inspect: Any = facades.find("inspect")
    try:
        return str(inspect.signature(obj))
    except (TypeError, ValueError):
        return "(...)" if callable(obj) and not isinstance(obj, type) else ""


def _documented(obj: object, indent: int) -> list[str]:
    inspect: Any = facades.find("inspect")
    said = inspect.getdoc(obj)
    return _indented(said, indent) if type(said) is str else []


def _indented(text: str, indent: int = 4) -> list[str]:
    return [f"{' ' * indent}{line}".rstrip() for line in text.splitlines()]


def _text(obj: object, name: str) -> str | None:
    said = guards.guarded_getattr(obj, name, None)
    return said if type(said) is str else None
