"""Waiting for what comes about in other processes: for as long as a busy machine may take, the same for all tests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import psutil

_PAUSE_SECONDS = 0.02
_SECONDS_MAX = 120.0


async def until(condition: Callable[[], object | Awaitable[object]]) -> None:
    """Return once a condition holds, which may be a coroutine. Raises AssertionError where it never does."""
    end = time.monotonic() + _SECONDS_MAX
    while True:
        holds = condition()
        if await holds if isinstance(holds, Awaitable) else holds:
            return
        assert time.monotonic() < end, "it did not come about"
        await asyncio.sleep(_PAUSE_SECONDS)


def wait_until(condition: Callable[[], object]) -> None:
    """Do the same where there is no event loop."""
    end = time.monotonic() + _SECONDS_MAX
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(_PAUSE_SECONDS)


def has_ended(process: psutil.Process) -> bool:
    """Return whether a process has ended; its parent may wait for it at any moment."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
