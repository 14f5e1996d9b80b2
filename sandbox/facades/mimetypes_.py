"""`mimetypes` from the built-in tables: the real one reads the machine's own files at its first use."""

from __future__ import annotations

import mimetypes

__all__ = ["guess_all_extensions", "guess_extension", "guess_type"]

_types = mimetypes.MimeTypes(filenames=())
guess_type = _types.guess_type
guess_extension = _types.guess_extension
guess_all_extensions = _types.guess_all_extensions
