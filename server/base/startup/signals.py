"""SIGINT and SIGTERM: the first asks a server to stop, the second to stop at once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Signals:
    """What is done once a first signal has come, and a second one."""

    first: asyncio.Future[None]
    second: asyncio.Future[None]


@asynccontextmanager
async def signals() -> AsyncIterator[Signals]:
    """Take SIGINT and SIGTERM in the block; after it they end the process as they usually do."""
    loop = asyncio.get_running_loop()
    given = Signals(loop.create_future(), loop.create_future())

    def take() -> None:
        if not given.first.done():
            given.first.set_result(None)
        elif not given.second.done():
            given.second.set_result(None)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, take)
    try:
        yield given
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
