"""What tools gave that is not text: images, audio and binary resources, kept as files of the run.

The code gets a handle, `.runs/<run_id>/<name>`, and reads it with `read_file(handle, encoding=None)` if it wants the
bytes. They are in memory while the run lasts, and are then kept with it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ....sandbox.errors import HostCallError
from ....sandbox.job import Json
from ....workspace.names import RUNS

BYTES_MAX = 64 * 1024 * 1024
"""What one run may hold of them, in bytes."""
FILES_MAX = 1_000
"""How many one run may hold: each becomes a file of its own, and an empty one too."""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_STEM_CHARS_MAX = 80
_OF_THE_RUN = frozenset({"code.py", "output.txt", "stderr.txt", "result.json", "dry_run.json", "displayed.json"})


@dataclass(slots=True)
class Attachments:
    """The files of one run, by their names below its folder."""

    run_id: str = "run"
    files: dict[str, bytes] = field(default_factory=dict)
    size: int = 0
    """Of all files together, in bytes."""
    _next_numbers: dict[str, int] = field(default_factory=dict)
    """For each name that was taken, the number that the next file of this name tries first."""

    async def keep(self, content: bytes, _mime_type: str, name: str) -> str:
        """Keep content and return its handle. Raises `HostCallError` when the run holds too much."""
        if self.size + len(content) > BYTES_MAX or len(self.files) >= FILES_MAX:
            raise HostCallError(
                f"The tools gave more than {BYTES_MAX} bytes or {FILES_MAX} files of images and the like, "
                "the most that a run holds. Ask for less in one run.",
                type="ToolError",
            )
        stem, dot, suffix = name.rpartition(".")
        stem = _NOT_IN_NAMES.sub("_", stem or suffix).strip("._")[:_STEM_CHARS_MAX] or "file"
        ending = _NOT_IN_NAMES.sub("", suffix) if dot else "bin"
        chosen, number = f"{stem}.{ending}", self._next_numbers.get(f"{stem}.{ending}", 2)
        while chosen in self.files or chosen in _OF_THE_RUN:
            chosen, number = f"{stem}-{number}.{ending}", number + 1
        self._next_numbers[f"{stem}.{ending}"] = number
        self.files[chosen] = content
        self.size += len(content)
        return f"{RUNS}/{self.run_id}/{chosen}"

    def read(self, arguments: Mapping[str, Any]) -> Json:
        """Answer `read_file` for a handle of this run, or None for any other file. Raises `HostCallError`."""
        content = self.held(arguments["filename"])
        return None if content is None else slice_of(content, **arguments)

    def held(self, filename: Json) -> bytes | None:
        """Return what a handle of this run stands for, or None for any other file."""
        prefix = f"{RUNS}/{self.run_id}/"
        if not isinstance(filename, str) or not filename.startswith(prefix):
            return None
        return self.files.get(filename.removeprefix(prefix))


def slice_of(content: bytes, filename: str, offset: int = 0, limit: int | None = None, encoding: str = "utf-8") -> Json:
    """Answer `read_file` with the slice of a content that it asks for. Raises `HostCallError` where it is not text."""
    end = None if limit is None else offset + limit
    size = len(content)
    if encoding == "base64":
        part = content[offset:end]
        shown, more = base64.b64encode(part).decode("ascii"), offset + len(part) < size
    else:
        try:
            text = content.decode()
        except UnicodeDecodeError:
            raise HostCallError(
                f"{filename} is not text. Read it with encoding=None, which gives bytes.", type="ValueError"
            ) from None
        shown = text[offset:end]
        more = offset + len(shown) < len(text)
    return {"filename": filename, "content": shown, "size": size, "truncated": more}
