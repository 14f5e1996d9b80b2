"""`zoneinfo` from memory: every zone is read once, before the process loses its files, and a key is never a path."""

from __future__ import annotations

import importlib.resources
import io
import os
import struct
import zoneinfo
from functools import cache
from typing import Any, NoReturn, Self

__all__ = ["ZoneInfo", "available_timezones"]

_FILE_BYTES_MAX = 1 << 16
_MAGIC = b"TZif"
_UTC_BLOCK = b"TZif2" + bytes(15) + struct.pack(">6l", 0, 0, 0, 0, 1, 4) + bytes(6) + b"UTC\0"
_UTC = _UTC_BLOCK * 2 + b"\nUTC0\n"
_kept: dict[str, ZoneInfo] = {}


@cache
def database() -> dict[str, bytes]:
    """Return the compiled file (RFC 9636) of every zone of this machine, or of the `tzdata` package; UTC always."""
    return {"UTC": _UTC} | {
        key: data for key in sorted(zoneinfo.available_timezones()) if (data := _read(key)).startswith(_MAGIC)
    }


def _read(key: str) -> bytes:
    for folder in zoneinfo.TZPATH:
        path = os.path.join(folder, *key.split("/"))
        if os.path.isfile(path):
            with open(path, "rb") as file:
                return file.read(_FILE_BYTES_MAX)
    *package, name = f"tzdata/zoneinfo/{key}".split("/")
    try:
        return importlib.resources.files(".".join(package)).joinpath(name).read_bytes()
    except (ImportError, OSError):
        return b""


class ZoneInfo(zoneinfo.ZoneInfo):
    """A time zone by its IANA key."""

    def __new__(cls, key: str) -> Self:
        """Return the zone `key`, the same object each time. Raises ZoneInfoNotFoundError."""
        if cls is not ZoneInfo:
            return cls.no_cache(key)
        kept = _kept.get(key) if type(key) is str else None
        if kept is None:
            kept = _kept.setdefault(key, cls.no_cache(key))
        return kept  # type: ignore[return-value]  # of exactly this class

    @classmethod
    def no_cache(cls, key: str) -> Self:
        """Return the zone `key` as a new object."""
        data = database().get(key) if type(key) is str else None
        if data is None:
            raise zoneinfo.ZoneInfoNotFoundError(f"No time zone found with key {key!r}")
        return super().from_file(io.BytesIO(data), key=key)

    @classmethod
    def from_file(cls, file_obj: Any, /, key: str | None = None) -> Self:
        """Return a zone from a compiled file."""
        return super().from_file(file_obj, key=key)

    @classmethod
    def clear_cache(cls, **_options: Any) -> None:
        """Do nothing: zones never change here."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("time zones cannot be pickled here; keep their key")


def available_timezones() -> set[str]:
    """Return the keys of all zones."""
    return set(database())
