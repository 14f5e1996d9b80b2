"""Locks by which a tenant is not removed while a process of this machine serves it."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from ...base.errors import TenantRefused
from ...base.home import Home

STILL_SERVED = (
    "A server still serves the tenant, so it was not removed yet; it is refused from now on. Run the command again "
    "in a moment, or stop the server."
)
_POLL_SECONDS = 0.05


class TenantLock:
    """The lock file of one tenant, beside its home: many may serve it, or one may remove it (flock(2))."""

    def __init__(self, home: Home) -> None:
        self._file: Path = home.tenants / f"{home.tenant}.lock"  # no id has a dot
        self._handle = -1

    def serve(self) -> Self:
        """Take it to serve the tenant. Blocks for a moment. Raises `TenantRefused` while it is being removed."""
        if not self._taken(fcntl.LOCK_SH):
            raise TenantRefused("The tenant is being removed. Ask the operator.")
        return self

    def remove(self, wait_seconds: float) -> Self:
        """Take it to remove the tenant, once no process serves it. Blocks.

        Raises `TenantRefused` where one still does after that time.
        """
        deadline = time.monotonic() + wait_seconds
        while not self._taken(fcntl.LOCK_EX):
            if time.monotonic() >= deadline:
                raise TenantRefused(STILL_SERVED)
            time.sleep(_POLL_SECONDS)
        return self

    def forget(self) -> None:
        """Remove the file; whoever opens a new one looks first whether the tenant may be served."""
        with suppress(FileNotFoundError):
            self._file.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _where: TracebackType | None
    ) -> None:
        self.release()

    def release(self) -> None:
        """Give it back. Twice is allowed."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _taken(self, how: int) -> bool:
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(handle, how | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return False
        self._handle = handle
        return True
