"""`locale`, read only: the locale is C and stays so."""

from __future__ import annotations

import locale

__all__ = ["getencoding", "getlocale", "getpreferredencoding", "setlocale"]


def setlocale(category: int, locale_name: object = None) -> str:  # noqa: ARG001 - Python's own signature
    """Return "C" when asked, or when asked to stay there. Raises `locale.Error` for any other locale."""
    if locale_name in {None, "", "C", "POSIX"}:
        return "C"
    raise locale.Error('unsupported locale setting; format with f"{value:,.2f}", which depends on no locale')


def getlocale(category: int = locale.LC_CTYPE) -> tuple[None, None]:  # noqa: ARG001 - Python's own signature
    """Return what Python returns for the C locale."""
    return (None, None)


def getpreferredencoding(do_setlocale: bool = True) -> str:  # noqa: ARG001 - Python's own signature
    """Return "utf-8"."""
    return "utf-8"


def getencoding() -> str:
    """Return "utf-8"."""
    return "utf-8"
