"""Names of skills as names of Agent Skills folders, and back: `csv_profile` and `csv-profile`.

A plain name (lower-case words and digits, single underscores) only changes its separator. Any other is cut to what a
folder may be called and ends in a mark of its own, `-u` and eight digits of its hash, so that no two names meet; a
plain name that happens to end so is marked too. The folder's SKILL.md says the name itself.
"""

from __future__ import annotations

import hashlib
import keyword
import re
import unicodedata

FOLDER_CHARS_MAX = 64
_READ_CHARS = 256
"""Of a longer name no more is read: normalizing takes time by the square of the marks in a row."""
_PLAIN = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_MARKED = re.compile(r"(?:.*_)?u[0-9a-f]{8}")
_NOT_FOLDER = re.compile(r"[^a-z0-9]+")
_NOT_NAME = re.compile(r"\W+")


def folder_name(name: str) -> str:
    """Return the folder's name: 1 to 64 of `[a-z0-9-]`, never two hyphens together."""
    if _PLAIN.fullmatch(name) and len(name) <= FOLDER_CHARS_MAX and not _MARKED.fullmatch(name):
        return name.replace("_", "-")
    mark = f"u{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    words = _NOT_FOLDER.sub("-", unicodedata.normalize("NFKD", name[:_READ_CHARS]).lower()).strip("-")
    return f"{words[: FOLDER_CHARS_MAX - len(mark) - 1].strip('-')}-{mark}".lstrip("-")


def skill_name(folder: str) -> str:
    """Return a Python name for a folder that says none: that of `folder_name` where the folder came from there."""
    name = _NOT_NAME.sub("_", unicodedata.normalize("NFKC", folder[:_READ_CHARS])).strip("_").lower()
    if not name or not name[0].isalpha():
        name = f"skill_{name}".rstrip("_")
    return f"{name}_skill" if keyword.iskeyword(name) else name
