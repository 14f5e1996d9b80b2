"""`zoneinfo` from memory: every zone is read once, before the process loses its files, and a key is never a path."""

from __future__ import annotations

import importlib.resources
import io
import os
import struct
import zoneinfo
from datetime import datetime, timedelta, tzinfo
from functools import cache
from typing import Any, Self, cast
from zoneinfo import _common

from .. import package_data

__all__ = ["TZPATH", "ZoneInfo", "available_timezones", "reset_tzpath"]

TZPATH: tuple[str, ...] = ("/usr/share/zoneinfo",)
"""Where packages that read the files of zones themselves find them in memory, whatever the machine has there."""

_FILE_BYTES_MAX = 1 << 16
_MAGIC = b"TZif"
_UTC_BLOCK = b"TZif2" + bytes(15) + struct.pack(">6l", 0, 0, 0, 0, 1, 4) + bytes(6) + b"UTC\0"
_UTC = _UTC_BLOCK * 2 + b"\nUTC0\n"
_kept: dict[str, ZoneInfo] = {}


def add_files() -> None:
    """Let code read the files of all zones."""
    for key, data in database().items():
        package_data.add(TZPATH[0], key.split("/"), data)


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


_tzinfo_of = datetime.__dict__["tzinfo"].__get__


class ZoneInfo(tzinfo):
    """A time zone by its IANA key."""

    __slots__ = ("_key", "_zone")
    _key: str | None
    _zone: zoneinfo.ZoneInfo

    def __new__(cls, key: str) -> Self:
        """Return the zone `key`, the same object each time. Raises ZoneInfoNotFoundError."""
        if cls is not ZoneInfo:
            return cls.no_cache(key)
        kept = _kept.get(key) if type(key) is str else None
        if kept is None:
            kept = _kept[key] = cls.no_cache(key)
        return cast("Self", kept)

    @classmethod
    def no_cache(cls, key: str) -> Self:
        """Return the zone `key` as a new object."""
        data = database().get(key) if type(key) is str else None
        if data is None:
            raise zoneinfo.ZoneInfoNotFoundError(f"No time zone found with key {key!r}")
        return cls.from_file(io.BytesIO(data), key=key)

    @classmethod
    def from_file(cls, file_obj: Any, /, key: str | None = None) -> Self:
        """Return a zone from a compiled file."""
        made = tzinfo.__new__(cls)
        made._key = key
        data = file_obj.read()
        _check(data)
        made._zone = zoneinfo.ZoneInfo.from_file(io.BytesIO(data), key=key)
        return made

    @classmethod
    def clear_cache(cls, **_options: object) -> None:
        """Do nothing: zones never change here."""

    @property
    def key(self) -> str | None:
        """The key that the zone was made with."""
        return self._key

    def utcoffset(self, dt: datetime | None, /) -> timedelta | None:
        """Return the difference to UTC at `dt`."""
        return self._zone.utcoffset(dt)

    def dst(self, dt: datetime | None, /) -> timedelta | None:
        """Return the daylight saving at `dt`."""
        return self._zone.dst(dt)

    def tzname(self, dt: datetime | None, /) -> str | None:
        """Return the abbreviation in use at `dt`."""
        return self._zone.tzname(dt)

    def fromutc(self, dt: datetime, /) -> datetime:
        """Return the time in this zone for `dt`, which is in UTC."""
        # Methods of a guest class would receive the real zone, whose class reads files.
        if _tzinfo_of(dt) is not self:
            raise ValueError("fromutc: dt.tzinfo is not self")
        plain = datetime.combine(datetime.date(dt), datetime.time(dt), tzinfo=self._zone)
        there = self._zone.fromutc(plain)
        day = {"year": there.year, "month": there.month, "day": there.day}
        moment = {"hour": there.hour, "minute": there.minute, "second": there.second, "fold": there.fold}
        return datetime.replace(dt, **day, **moment, microsecond=there.microsecond, tzinfo=self)

    def __str__(self) -> str:
        return str(self._zone)

    def __repr__(self) -> str:
        return f"zoneinfo.ZoneInfo(key={self._key!r})"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self


def _check(data: bytes) -> None:
    """Refuse an index of a type that the file does not have: CPython 3.11 to 3.14 reads memory behind the types."""
    kinds, _times, offsets, *_rest = _common.load_data(io.BytesIO(data))
    if any(kind >= len(offsets) for kind in kinds):
        raise ValueError("the file of the time zone names a type that it does not have; take another file")


def reset_tzpath(to: object = None) -> None:
    """Do nothing: zones are never read from files here."""


def available_timezones() -> set[str]:
    """Return the keys of all zones."""
    return set(database())
