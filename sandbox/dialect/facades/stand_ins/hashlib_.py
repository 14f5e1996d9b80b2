"""`hashlib`, whose `file_digest` asks for nothing but the bytes of a file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

__all__ = ["file_digest"]

_PIECE_BYTES = 1 << 18


def file_digest(fileobj: Any, digest: str | Callable[[], Any], /) -> Any:
    """Hash what is left to read in a binary file; `digest` is the name of an algorithm, or makes a hash."""
    made = hashlib.new(digest) if isinstance(digest, str) else digest()
    while piece := fileobj.read(_PIECE_BYTES):
        made.update(piece)
    return made
