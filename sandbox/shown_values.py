"""What a report says of values beside their JSON: of tables what they are, of sessions what they hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from .job import Json


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; `nulls` counts its missing values, None where that was not counted."""

    name: str
    dtype: str
    nulls: int | None = 0
    is_index: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table or array that a result holds at `place`, such as `result.top`.

    `kind` is its class. `shape` counts rows, and columns without those of the index. `columns` begin with the index;
    `columns_left_out` more are not named. `shown` rows stand in the result: where that is not all, the result has its
    head and tail, and `file` is where the whole lies in the workspace, which `read_with` reads. `why_not_kept` says why
    there is no file.
    """

    place: str
    kind: str
    shape: tuple[int, ...]
    columns: tuple[Column, ...] = ()
    columns_left_out: int = 0
    shown: int = 0
    file: str | None = None
    read_with: str | None = None
    why_not_kept: str | None = None

    def to_json(self) -> Mapping[str, Json]:
        """Return it as it travels from a worker."""
        return cast("Mapping[str, Json]", asdict(self))


@dataclass(frozen=True, slots=True)
class Held:
    """A variable that a session holds: its class, about how many bytes it takes, and how much is in it, in words."""

    name: str
    kind: str
    bytes: int
    extent: str = ""

    def to_json(self) -> Mapping[str, Json]:
        """Return it as it travels from a worker."""
        return cast("Mapping[str, Json]", asdict(self))
