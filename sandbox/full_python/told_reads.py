"""Tells the host which files of the workspace the code is about to open, where it has to know what is in them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote, urlsplit

from ..guest.guest import GUEST

WORKSPACE: Final = "/workspace"


def tell(event: str, arguments: tuple[object, ...]) -> None:
    """Ask the host before something is opened: an audit hook. Raises what the host says, and then nothing is opened."""
    said = _SAID.get(event)
    if said is None or not GUEST.tells_reads:
        return
    for path in said(arguments[0] if arguments else None):
        if path == WORKSPACE or path.startswith(f"{WORKSPACE}/"):
            if os.path.lexists(path):
                GUEST.call_host("learn_path", {"filename": path})
            return


def _path(given: object) -> tuple[str, ...]:
    """Return the places that a path may mean; one that is relative to a folder's descriptor could be any."""
    if given is None:
        return (os.path.realpath("."),)
    if not isinstance(given, str | bytes | os.PathLike):
        return ()
    path = os.fsdecode(given)
    here = os.path.realpath(path)
    return (here,) if os.path.isabs(path) or os.path.lexists(here) else (here, os.path.realpath(f"{WORKSPACE}/{path}"))


def _database(given: object) -> tuple[str, ...]:
    if isinstance(given, str | bytes | os.PathLike):
        path = os.fsdecode(given)
        return _path(unquote(urlsplit(path).path) if path.startswith("file:") else path)
    return ()


_SAID: Final[Mapping[str, Callable[[object], tuple[str, ...]]]] = MappingProxyType(
    {"open": _path, "os.listdir": _path, "os.scandir": _path, "sqlite3.connect": _database}
)
