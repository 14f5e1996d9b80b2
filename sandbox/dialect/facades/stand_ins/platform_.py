"""`platform` as far as it concerns the language, not the machine."""

from __future__ import annotations

__all__ = ["machine", "node", "platform", "processor", "python_implementation", "release", "system", "version"]


def system() -> str:
    """Return the kind of operating system."""
    return "Linux"


def python_implementation() -> str:
    """Return the name of the interpreter."""
    return "CPython"


def _unknown() -> str:
    """Return an empty string, as Python does for what it cannot find out."""
    return ""


machine = node = platform = processor = release = version = _unknown
