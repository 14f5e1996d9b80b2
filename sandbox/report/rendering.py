"""What one rendering of a value has left of its bounds, the containers it stands in, and the notes taken so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..wire.result_paths import Notes, Path
from .disclosure import type_name
from .value_sizes import is_unicode, json_size, size_as_it_is

if TYPE_CHECKING:
    from ..job import Json

CYCLE = "<cycle>"

TOO_LARGE = "a report cannot hold more. Write it to the workspace with write_file to keep it whole"
_KEYS_REMEMBERED = 1000


class Rendering:
    """Bounds of depth, bytes of JSON and values, which whatever is rendered spends."""

    def __init__(self, name: str, depth_max: int, size_max: int, nodes_max: int) -> None:
        self._depth_max = depth_max
        self._bytes_left = size_max
        self._nodes_left = nodes_max
        self._open: dict[int, Path] = {}
        self.notes = Notes(name)
        self._key_sizes: dict[str, int] = {}

    def _key_size(self, key: str) -> int:
        """Return the size of a simple key, 0 for others; rows repeat their keys, so sizes are remembered."""
        size = size_as_it_is(key)
        if len(self._key_sizes) < _KEYS_REMEMBERED:
            self._key_sizes[key] = size
        return size

    def _enter(self, value: object, path: Path, levels: int) -> bool:
        if levels <= 0 or id(value) in self._open:
            return False
        self._open[id(value)] = path
        self._bytes_left -= 3
        self._nodes_left -= 2
        return True

    def _leave(self, value: object, shown: int, count: int, unit: str, path: Path) -> None:
        del self._open[id(value)]
        if shown < count:
            self.notes.add(path, f"the first {shown} of {count} {unit}: {TOO_LARGE}")

    def _marker(self, value: object, count: int, path: Path) -> Json:
        if id(value) in self._open:
            self.notes.add(path, f"refers back to {self.notes.place(self._open[id(value)])}")
            return self._text(CYCLE, path)
        self.notes.add(path, f"more than {self._depth_max} levels deep")
        return self._text(f"<{type_name(type(value))} of {count}>", path)

    def _spend(self, size: int) -> None:
        self._bytes_left -= size + 1
        self._nodes_left -= 1

    def _text(self, text: str, path: Path) -> str:
        if not text.isascii() and not is_unicode(text):
            text = text.encode("utf-8", "backslashreplace").decode()
            self.notes.add(path, "lone surrogates became \\u escapes, since JSON is UTF-8")
        self._spend(json_size(text))
        return text
