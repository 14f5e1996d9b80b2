"""`calendar` of a private copy that prints to the guest's output."""

from __future__ import annotations

import calendar  # noqa: F401 - into whose variables Python 3.12 and later put the members of the copy's enums

from ....guest.guest import GUEST
from ..private import copy_of


def _print(text: object = "", end: str = "\n") -> None:
    GUEST.write(f"{text}{end}")


# Formatting the name of a day imports `time`.
_copy = copy_of("calendar", keeping=("__import__",), replacing={"print": _print})
vars(_copy).update({member.name: member for name in ("Month", "Day") for member in getattr(_copy, name, ())})
__all__ = [name for name in _copy.__all__ if not name.startswith("_")]
globals().update({name: getattr(_copy, name) for name in __all__})
