"""What a report may say about a guest's objects: bounded, repeatable, and nothing of the machine.

Security boundary: every text that describes an object or an exception passes here. Names of the guest's own classes and
functions are shown as the guest wrote them. Memory addresses and paths of the interpreter, its packages and this
program are removed. An object's own `__repr__` or `__str__` may raise, return a wrong text, or not return a string.

What is used here on hostile objects is captured at import, so that nothing the guest can change is relied on.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections.abc import Callable
from types import FunctionType

from ..guest.real_classes import attribute_of_class, derives
from ..guest.spelling import demangle

REPR_CHARS_MAX = 500
_NAME_CHARS_MAX = 200

_raw_type_name = type.__dict__["__name__"].__get__
_raw_qualname = type.__dict__["__qualname__"].__get__
_function_qualname = FunctionType.__dict__["__qualname__"].__get__
_type_repr = type.__repr__
_str_exactly = str.__str__
_str_slice = str.__getitem__

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{6,}")
_INSTALLED = re.compile(r"(?:/[^\s:'\"<>]*)?/(?:site-packages|dist-packages|lib/python3\.\d+)(?=/|\b)")
_OWN_MODULE = re.compile(r"\b__main__\.|<locals>\.")


def _host_folders() -> tuple[str, ...]:
    """Return the folders whose paths reveal something of the machine, longest first."""
    found = {sys.executable, *sys.path}
    own = globals().get("__file__")
    if own is not None:
        package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(own))))
        found.update(
            (
                package,
                os.path.dirname(package),
                os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(own)))),
            )
        )
    found.update(sysconfig.get_paths().values())
    found.update((sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix))
    found.update([os.path.realpath(path) for path in found if path])
    # Folders that any program may mention, and that reveal nothing.
    found -= {"", ".", "/", "/usr", "/usr/local", "/usr/bin", "/usr/include", "/tmp"}  # noqa: S108 - a name, not used
    return tuple(sorted((path for path in found if path.startswith("/")), key=lambda path: (-len(path), path)))


def _any_of(folders: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(path) + r"(?![\w-])" for path in folders) or r"(?!)")


_HOST_FOLDERS = _any_of(_host_folders())


def update_known_folders() -> None:
    """Keep only the folders that this process still knows."""
    global _HOST_FOLDERS  # noqa: PLW0603 - the zygote changes it once, before any worker
    re.purge()
    _HOST_FOLDERS = _any_of(_host_folders())


def plain(text: str) -> str:
    """Return `text` without memory addresses, host paths and module prefixes of the guest's own names."""
    if " at 0x" in text:
        text = _ADDRESS.sub("", text)
    if "/" in text:
        text = _INSTALLED.sub("<python>", _HOST_FOLDERS.sub("<python>", text))
    return text


def bounded(text: str, chars_max: int) -> str:
    """Return the start of `text`, saying how many characters are left out where any are."""
    left_out = len(text) - chars_max
    return text if left_out <= 0 else f"{text[:chars_max]}… ({left_out} more characters)"


def type_name(cls: type) -> str:
    """Return a class's plain name, as its author wrote it."""
    return bounded(demangle(_raw_type_name(cls)), _NAME_CHARS_MAX)


def repr_of(value: object, chars_max: int = REPR_CHARS_MAX) -> str:
    """Return a bounded, repeatable description of any object; never raises.

    `<P object>` stands for an object without a `__repr__` of its own, `<P object; its __repr__ raised ValueError>` for
    one whose own fails.
    """
    cls = type(value)
    if cls is FunctionType:
        return plain_names(f"<function {demangle(_function_qualname(value))}>", chars_max)
    if derives(cls, type):
        return plain_names(_type_repr(value), chars_max)
    if attribute_of_class(cls, "__repr__") is object.__repr__:
        return plain_names(f"<{demangle(_raw_qualname(cls))} object>", chars_max)
    return said_by(value, repr, "__repr__", chars_max)


def said_by(
    value: object, speak: Callable[[object], object], method: str, chars_max: int, *, keeps_end: bool = False
) -> str:
    """Return what `speak(value)`, `repr` or `str`, says, bounded and plain, or how it failed; never raises.

    With `keeps_end` a long text loses its middle.
    """
    try:
        text = speak(value)
    except BaseException as failure:  # noqa: BLE001 - guest code raises what it likes, `SystemExit` included
        return f"<{type_name(type(value))} object; its {method} raised {type_name(type(failure))}>"
    if not derives(type(text), str):
        return f"<{type_name(type(value))} object; its {method} returned no string>"
    return plain_names(_str_exactly(text), chars_max, keeps_end=keeps_end)


def plain_names(text: str, chars_max: int, *, keeps_end: bool = False) -> str:
    """Return `text` plain and bounded, with the guest's own names as the guest wrote them.

    With `keeps_end` a long text loses its middle.
    """
    if keeps_end and len(text) > chars_max:
        half = chars_max // 2
        head = plain_names(_str_slice(text, slice(0, 2 * half)), chars_max)[:half]
        tail = plain_names(_str_slice(text, slice(len(text) - 2 * half, None)), chars_max)[-half:]
        return f"{head}… ({len(text) - 2 * half} characters left out) …{tail}"
    # What is far beyond the bound is dropped first, since cleaning costs time for each character.
    left_out = max(0, len(text) - 4 * chars_max)
    text = _OWN_MODULE.sub("", demangle(plain(_str_slice(text, slice(0, 4 * chars_max)))))
    left_out += max(0, len(text) - chars_max)
    return text if not left_out else f"{text[:chars_max]}… ({left_out} more characters)"
