"""Zygotes that serve one pool after the other: to start one takes more than all that most tests do with it."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from collections.abc import Callable, Iterator
from typing import ClassVar

import pytest

from sealab.sandbox.host.zygote_launcher import ZygoteLauncher
from sealab.sandbox.job import Isolation
from sealab.sandbox.wire.zygote_config import ZygoteConfig

Launch = Callable[..., ZygoteLauncher]


class Lent(ZygoteLauncher):
    """A zygote that serves the next pool of the same configuration where its pool ends it, and nothing of it runs."""

    free: ClassVar[dict[ZygoteConfig, list[Lent]]] = {}

    @classmethod
    def to(cls, config: ZygoteConfig, python: str = sys.executable) -> ZygoteLauncher:
        free = cls.free.setdefault(dataclasses.replace(config, group=None), [])
        if config.isolation is not Isolation.RESTRICTED or python != sys.executable:
            return ZygoteLauncher(config, python)
        return free.pop() if free else cls(config)

    async def start(self) -> None:
        if self._process is None or self._control is None:
            await super().start()
        else:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._control.fileno(), self._receive_packet)

    async def close(self) -> None:
        for _ in range(50):  # what the pool ended ends soon
            if not self.busy:
                break
            await asyncio.sleep(0.01)
        hello = self._hello is not None and self._hello.done() and self._hello.exception() is None
        if self._control is None or self._retired or self.busy or not hello or self._loop is None:
            await super().close()
        else:
            self._loop.remove_reader(self._control.fileno())
            self.free.setdefault(dataclasses.replace(self._config, group=None), []).append(self)

    async def end(self) -> None:
        self._loop = asyncio.get_running_loop()
        await super().close()


@pytest.fixture(scope="session")
def lent_zygotes() -> Iterator[Launch]:
    """Give what makes the zygotes of a pool, or lends those of earlier ones."""
    yield Lent.to

    async def end() -> None:
        while Lent.free:
            for launcher in Lent.free.popitem()[1]:
                await launcher.end()

    asyncio.run(end())
