"""SECURITY BOUNDARY, the first half: a caller's text is judged by its letters alone. Nothing here asks a file system.

What passes is relative, has `/` between its components, no `.` or `..`, no control characters, and is bounded in every
direction. It is kept letter for letter, but for one `./` before it, which means nothing and which many write. `paths`
does not rely on any of this, and this not on `paths`.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass

from .errors import NameRefused

PATH_BYTES_MAX = 1024
COMPONENT_BYTES_MAX = 255
DEPTH_MAX = 32

RUNS = ".runs"
"""The name under which callers find what was kept of their runs. What it names lies beside the workspace, not in it."""

SHOWN_AT = "/workspace/"
"""Where the workspace stands for code, which may name a file in full."""
ELSEWHERE = "/mnt/data/"
"""Where it stands for code of other services, as models write it."""

HOME_OWNER = "home"
"""The owner of the home itself. Runs of other owners are kept under a mark of their owner."""

PART_PREFIX = ".sealab-part-"
"""Names of files that are being written; no caller can spell them and no list shows them."""

TEMPORARY_PREFIX = ".sealab-temp-"
"""Names of the folders that hold the temporary files of one run; no caller can spell them and no list shows them."""

LANDING_PREFIX = ".landing-"
"""Names, beside the workspace, of the folders in which lies for a moment what a run wrote and is taking its place."""

BLOBS = ".sealab-files"
"""Where the contents of files are, in an object store, each under a key of its own; no caller can spell it."""

TENANTS = ".sealab-tenants"
"""Where the files of other tenants are, in an object store; no caller can spell it."""

DEFINITIONS = ".sealab-tools"
"""Where definitions of tools are, in an object store; no caller can spell it."""

_DRIVE = re.compile(r"[A-Za-z]:")
_ORDINARY = re.compile(r"(?:\w[\w. -]*/)*\w[\w. -]*", re.ASCII)
_RUN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_RUN_FOLDER = re.compile(r"(?:[0-9a-f]{32}\.)?([A-Za-z0-9_-]{1,64})")
_REFUSED_CATEGORIES = frozenset({"Cc", "Zl", "Zp"})


def judge_run_id(run_id: str) -> str:
    """Return the id of a run as it was given, or raise `NameRefused`."""
    if type(run_id) is not str or not _RUN_ID.fullmatch(run_id):
        raise NameRefused(f"{shown(str(run_id))} is not a run id. Use the run_id of a report.")
    return run_id


def run_folder(owner: str, run_id: str) -> str:
    """Name the folder in which a run of this owner is kept. Raises `NameRefused`.

    An id has no dot, so no id names a folder of another owner.
    """
    judge_run_id(run_id)
    return run_id if owner == HOME_OWNER else f"{hashlib.sha256(owner.encode()).hexdigest()[:32]}.{run_id}"


def run_in(folder: str) -> str | None:
    """Return the id of the run that a folder of this name keeps, of any owner; None where it keeps no run."""
    found = _RUN_FOLDER.fullmatch(folder)
    return None if found is None else found[1]


def is_run_of(owner: str | None, folder: str) -> bool:
    """Return whether a folder of this name keeps a run of this owner; nobody has none."""
    run_id = run_in(folder)
    return run_id is not None and owner is not None and folder == run_folder(owner, run_id)


def shown(text: str) -> str:
    """Quote a caller's text for a message: bounded, and free of anything that is not printable."""
    if len(text) > 80:  # noqa: PLR2004 - a line's worth
        text = f"{text[:50]}…{text[-25:]}"
    return repr(text)


@dataclass(frozen=True, slots=True)
class Name:
    """The name of a file or folder, judged by its letters alone. The root is the name without parts."""

    parts: tuple[str, ...]

    def __str__(self) -> str:
        return "/".join(self.parts) or "."

    @classmethod
    def parse(cls, text: object) -> Name:
        """Judge the name of a file, or raise `NameRefused`.

        It is kept letter for letter, without a `./` or a `/workspace/` before it, which is where code finds it, or a
        `/mnt/data/`, where other services have it.
        """
        if type(text) is str:
            text = text.removeprefix("./").removeprefix(SHOWN_AT).removeprefix(ELSEWHERE) or text
        checked = _whole(text)
        parts = tuple(checked.split("/"))
        if len(parts) > DEPTH_MAX:
            raise NameRefused(
                f"The name {shown(checked)} has {len(parts)} components. Use at most {DEPTH_MAX}, the file included."
            )
        for part in parts:
            _judge_component(part, checked)
        return cls(parts)

    @classmethod
    def parse_folder(cls, text: object) -> Name:
        """Judge the name of a folder: `.` and the empty text are the workspace itself, a `/` at the end is allowed."""
        if type(text) is str:
            if text in {"", ".", "./", SHOWN_AT, SHOWN_AT[:-1], ELSEWHERE, ELSEWHERE[:-1]}:
                return cls(())
            return cls.parse(text.removesuffix("/") or text)
        return cls.parse(text)

    @property
    def leaf(self) -> str:
        """The last component."""
        return self.parts[-1]

    @property
    def folder(self) -> tuple[str, ...]:
        """The components before the last one."""
        return self.parts[:-1]

    @property
    def reserved(self) -> bool:
        """Whether sealab keeps this for itself: below `.runs`, however a file system may fold that spelling."""
        return bool(self.parts) and _folded(self.parts[0]) == RUNS


def _whole(text: object) -> str:
    """Judge a name before it is split. Only an exact `str` will do: a subclass could lie about itself."""
    if type(text) is not str:
        raise NameRefused(f"A file name has to be a plain string, not {type(text).__name__}. Pass it as text.")
    if not text:
        raise NameRefused("The file name is empty. Give a name such as 'data/table.csv'.")
    if len(text) > PATH_BYTES_MAX:
        raise NameRefused(f"The file name has {len(text)} characters. Use at most {PATH_BYTES_MAX} bytes.")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise NameRefused(f"The name {shown(text)} has a lone surrogate. Use text that UTF-8 can hold.") from None
    if size > PATH_BYTES_MAX:
        raise NameRefused(f"The file name has {size} bytes in UTF-8. Use at most {PATH_BYTES_MAX}.")
    if "\\" in text:
        raise NameRefused(f"The name {shown(text)} has a backslash. Write '/' between folders.")
    if text.startswith("/") or _DRIVE.match(text):
        raise NameRefused(
            f"{shown(text)} is an absolute path. Give a name inside the workspace, such as 'data/table.csv'."
        )
    return text


def _judge_component(part: str, whole: str) -> None:
    if part in {"", ".", ".."}:
        what = f"the component {part!r}" if part else "an empty component"
        raise NameRefused(
            f"The name {shown(whole)} has {what}. Write the plain name inside the workspace, such as 'data/table.csv'."
        )
    if not part.isprintable() and any(unicodedata.category(letter) in _REFUSED_CATEGORIES for letter in part):
        raise NameRefused(f"The name {shown(whole)} has a control character. Use printable characters.")
    if len(part) * 4 > COMPONENT_BYTES_MAX and len(part.encode()) > COMPONENT_BYTES_MAX:
        raise NameRefused(
            f"The name {shown(whole)} is too long. Use at most {COMPONENT_BYTES_MAX} bytes between two '/'."
        )
    if _folded(part).startswith((PART_PREFIX, TEMPORARY_PREFIX, BLOBS, TENANTS, DEFINITIONS)):
        raise NameRefused(f"Names such as {shown(whole)} belong to sealab. Choose another name.")


def _folded(part: str) -> str:
    """Fold a component as the most forgiving file systems do: case, compatibility forms, ignorable characters."""
    if part.isascii():
        return part.lower()
    visible = "".join(letter for letter in part if unicodedata.category(letter) != "Cf")
    return unicodedata.normalize("NFKC", visible).casefold()


def speakable(text: str) -> bool:
    """Whether a caller could name this; what other programs put here need not be."""
    if len(text) <= COMPONENT_BYTES_MAX and text.count("/") < DEPTH_MAX and _ORDINARY.fullmatch(text):
        return True  # so are nearly all, and a list of thousands is waited for
    try:
        Name.parse(text)
    except NameRefused:
        return False
    return True
