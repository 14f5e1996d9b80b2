"""`calendar` of a private copy that prints to the guest's output."""

from __future__ import annotations

from ..guest import GUEST
from .private import copy_of


def _print(text: object = "", end: str = "\n") -> None:
    GUEST.write(f"{text}{end}")


_copy = copy_of("calendar", replacing={"print": _print})
# Python 3.12 and later put the members of these into the variables of the real module.
vars(_copy).update({member.name: member for name in ("Month", "Day") for member in getattr(_copy, name, ())})
__all__ = [name for name in _copy.__all__ if not name.startswith("_")]
globals().update({name: getattr(_copy, name) for name in __all__})
