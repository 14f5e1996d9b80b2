"""`mimetypes` from the built-in tables: the real one reads the machine's own files at its first use."""

from __future__ import annotations

from ..private import copy_of

__all__ = ["guess_all_extensions", "guess_extension", "guess_type"]

# Functions, since the object behind a method may become known, and this one reads files.
_copy = copy_of("mimetypes", keeping=("__import__",))  # from 3.14 on its methods import
_copy.inited = True  # type: ignore[attr-defined]  # the copy's own name; else it would read the machine's files
_types = _copy.MimeTypes(filenames=())


def guess_type(url: str, strict: bool = True) -> tuple[str | None, str | None]:
    """Return the type and the encoding that the name of a file or a URL says it has; None for what it does not say."""
    return _types.guess_type(url, strict)  # type: ignore[no-any-return]  # of a module that is loaded at run time


def guess_extension(type: str, strict: bool = True) -> str | None:  # noqa: A002 - Python's own name
    """Return an extension that files of the type have, or None."""
    return _types.guess_extension(type, strict)  # type: ignore[no-any-return]  # as above


def guess_all_extensions(type: str, strict: bool = True) -> list[str]:  # noqa: A002 - Python's own name
    """Return all extensions that files of the type have."""
    return _types.guess_all_extensions(type, strict)  # type: ignore[no-any-return]  # as above
