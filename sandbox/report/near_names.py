"""The names and keys that an error could have meant, read raw and bounded, and the nearest of them.

No guest code is called: classes, instances, dicts and frames are read through what CPython itself keeps.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from types import FrameType, GetSetDescriptorType, ModuleType
from typing import cast

from ..guest.real_classes import attribute_of_class, class_dict, derives, mro_of
from ..guest.spelling import PREFIX, demangle

NAMES_MAX = 2000
NAME_CHARS_MAX = 100


def nearest(name: str, candidates: Iterable[str], likeness: float) -> str | None:
    """Return the candidate most like `name`, of those at least as like it as `likeness` (0 to 1); None without one.

    Likeness is that of `difflib.SequenceMatcher.ratio`; letters of another case count as the same first.
    """
    if not 1 < len(name) <= NAME_CHARS_MAX:
        return None
    known = [known for known in islice(candidates, NAMES_MAX) if len(known) <= NAME_CHARS_MAX and known != name]
    same = next((candidate for candidate in sorted(known) if candidate.lower() == name.lower()), None)
    if same is not None:
        return same
    close = get_close_matches(name, sorted(set(known)), n=1, cutoff=likeness)
    return close[0] if close else None


def string_keys(mapping: object) -> list[str]:
    """Return the first keys of a dict that are plain strings, in order."""
    return _strings(dict.keys(cast("dict[object, object]", mapping)))


def _kind_of_locals() -> type:
    return type(sys._getframe().f_locals)


_KINDS_OF_LOCALS = (dict, _kind_of_locals())
"""What a frame keeps its variables in: a dict, from Python 3.13 on a proxy in functions (PEP 667)."""


def locals_of(frame: FrameType) -> dict[object, object]:
    """Return a frame's local variables; none where a metaclass brought a mapping of its own."""
    space = frame.f_locals
    return dict(space.items()) if type(space) in _KINDS_OF_LOCALS else {}


def names_in_scope(frame: FrameType | None) -> list[str]:
    """Return the names that code in `frame` could have used: its own, the global ones and the builtins."""
    if frame is None:
        return []
    spaces = (locals_of(frame), frame.f_globals, frame.f_builtins)
    return [key for space in spaces for key in string_keys(space) if not key.startswith(("_", PREFIX))]


def public_names(owner: object) -> list[str]:
    """Return the public attributes of any object as its author wrote them; a class's own and inherited ones too."""
    kind = type(owner)
    names: list[str] = []
    descriptor = attribute_of_class(kind, "__dict__")
    if derives(kind, type):
        classes = [*mro_of(cast("type", owner)), *mro_of(kind)]
    else:
        classes = list(mro_of(kind))
        if type(descriptor) is GetSetDescriptorType or kind is ModuleType:
            names += _strings(object.__getattribute__(owner, "__dict__"))
    for cls in classes:
        names += _strings(class_dict(cls))
    return [name for name in map(demangle, names) if not name.startswith("__")]


def _strings(space: Iterable[object]) -> list[str]:
    return [key for key in islice(space, NAMES_MAX) if type(key) is str]
