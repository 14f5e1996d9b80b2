"""The patches: each breaks one promise by a small change of one file.

`patches/<folder>.toml` holds tables `[[patch]]` with `name`, `promise`, `file`, `old`, `new` and, where tests that run on
the patched tree could harm the machine, `harm = true`. `old` stands exactly once in the file.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).with_name("patches")


class NoLongerApplies(ValueError):
    """What a patch replaces does not stand exactly once in its file."""


@dataclass(frozen=True, slots=True)
class Patch:
    """One change that breaks one promise; `origin` is the name of the file that holds it, without its suffix."""

    name: str
    promise: str
    file: str
    old: str
    new: str
    origin: str
    harm: bool = False

    def applied_to(self, text: str) -> str:
        """Return a file's text with the change. Raises NoLongerApplies."""
        times = text.count(self.old)
        if times != 1 or self.old == self.new:
            raise NoLongerApplies(
                f"What {self.name} replaces stands {times} times in {self.file}, not once. "
                f"Rewrite it in tests/planted/patches/{self.origin}.toml."
            )
        return text.replace(self.old, self.new)


def load(folder: Path = FOLDER) -> list[Patch]:
    """Return all patches, those of one file in its order. Raises TypeError for an unknown or a missing key."""
    return [
        Patch(**{"origin": path.stem, **table})
        for path in sorted(folder.glob("*.toml"))
        for table in tomllib.loads(path.read_text(encoding="utf-8"))["patch"]
    ]


@contextmanager
def planted(patch: Patch, root: Path) -> Iterator[None]:
    """Apply a patch to the tree at `root` for a while. Raises NoLongerApplies."""
    path = root / patch.file
    try:
        before = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise NoLongerApplies(f"{patch.name} changes {patch.file}, which is not there.") from error
    after = patch.applied_to(before)
    try:
        _write(path, after)
        yield
    finally:
        _write(path, before)


def _write(path: Path, text: str) -> None:
    """Write a file with a later time than it had, in whole seconds: by them Python knows its bytecode to be old."""
    later = int(path.stat().st_mtime) + 2
    path.write_text(text, encoding="utf-8")
    os.utime(path, (later, later))
