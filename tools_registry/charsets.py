"""Character sets by the names that servers give, without codecs that are not for documents.

One of these, `punycode`, takes time that grows with the square of the length.
"""

from __future__ import annotations

import codecs

_OF_NO_DOCUMENT = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"})


def charset_named(name: str) -> str | None:
    """Return the codec of a character set as Python calls it, or None for what is none or no document's."""
    try:
        found = codecs.lookup(name)
        "".encode(found.name)  # raises for what is not about text
    except (LookupError, ValueError):
        return None
    return None if found.name.replace("_", "-") in _OF_NO_DOCUMENT else found.name


def charset_of(content_type: str) -> str | None:
    """Return the codec that a media type names as its `charset`, or None."""
    named = content_type.lower().partition("charset=")[2].split(";")[0].strip("\"' ")
    return charset_named(named) if named else None
