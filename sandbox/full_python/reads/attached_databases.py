"""Has the host know of databases that a connection to SQLite attaches; the audit hook sees what is connected to.

SQLite says so before it opens the file, to the authorizer of the connection (sqlite.org, sqlite3_set_authorizer).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

from ...guest.guest import GUEST
from .told_reads import database_paths, is_own, tell_everything, tell_path

if TYPE_CHECKING:
    import sqlite3

_OK: Final = 0
_DENY: Final = 1
_ATTACH: Final = 24
"""Of sqlite3.h; the module is loaded, and changed, when code imports it."""


def change(module: Any) -> None:
    """Give each connection that `sqlite3` makes an authorizer; code may set one of its own in its place."""
    if not hasattr(module.connect, "__wrapped__"):  # of `sqlite3.dbapi2` it may have come changed
        module.connect = _with_authorizer(module.connect)


def _with_authorizer(connect: Callable[..., sqlite3.Connection]) -> Callable[..., sqlite3.Connection]:
    @wraps(connect)
    def connected(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        if GUEST.tells_reads and not is_own():
            connection.set_authorizer(_judge)
        return connection

    return connected


def _judge(action: int, name: str | None, *_more: str | None) -> int:
    """Have the host know what a database holds before it is attached; without, it is not."""
    if action != _ATTACH or not GUEST.tells_reads:
        return _OK
    try:
        if name is None:  # it is no literal, and SQLite does not say what it is
            tell_everything()
        else:
            for path in database_paths(name):
                if tell_path(path):
                    break
    except Exception as error:  # noqa: BLE001 - SQLite takes any for a no, and says nothing of it
        warnings.warn(f"The database is not attached: {error}", stacklevel=2)
        return _DENY
    return _OK
