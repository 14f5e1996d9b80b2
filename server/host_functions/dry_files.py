"""What a dry run would have written in the workspace: its code finds it there, and the workspace is as it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ...sandbox.errors import HostCallError
from ...sandbox.job import Json
from ...workspace.names import Name

BYTES_MAX = 64 * 1024 * 1024
"""What one dry run holds of the files that it did not write."""


@dataclass(slots=True)
class DryFiles:
    """The files of one dry run by their names: their content, or None for one that it would have deleted."""

    files: dict[str, bytes | None] = field(default_factory=dict)

    def write(self, filename: str, content: bytes) -> None:
        """Hold a file. Raises `HostCallError` when the run holds too much."""
        held = sum(len(each) for each in self.files.values() if each is not None)
        if held + len(content) > BYTES_MAX:
            raise HostCallError(
                f"A dry run holds at most {BYTES_MAX} bytes of files that it does not write. Write less in it.",
                type="OSError",
            )
        self.files[_key(filename)] = content

    def delete(self, filename: str, *, hides: bool) -> None:
        """Forget a file that this run wrote; `hides` says that the workspace has it, so that it is gone for the run."""
        if hides:
            self.files[_key(filename)] = None
        else:
            del self.files[_key(filename)]

    def read(self, filename: str) -> bytes | None:
        """Return a file's content, or None for one that the workspace has. Raises `HostCallError` where it is gone."""
        key = _key(filename)
        if key in self.files and self.files[key] is None:
            raise HostCallError(f"There is no {key!r} any more: this run deleted it.", type="FileNotFoundError")
        return self.files.get(key)

    def listed(self, folder: str, found: Sequence[Mapping[str, Json]]) -> list[Json]:
        """Return the files below a folder as the run sees them; `found` are those that the workspace has."""
        below = Name.parse_folder(folder).parts
        known: dict[str, Json] = {str(each["name"]): dict(each) for each in found if each["name"] not in self.files}
        now = datetime.now(UTC).isoformat(timespec="seconds")
        for name, content in self.files.items():
            if content is not None and tuple(name.split("/"))[: len(below)] == below:
                known[name] = {"name": name, "size": len(content), "modified": now}
        return [known[name] for name in sorted(known)]


def _key(filename: str) -> str:
    return str(Name.parse(filename))
