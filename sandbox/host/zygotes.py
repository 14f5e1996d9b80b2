"""The zygote of a pool: started when it is needed, replaced when it died, and renewed in time.

All workers of one zygote have its address layout, and in full Python its hash seed, so what one run learns of them
holds for the next. Nothing relies on either being secret, but neither is kept for long: after some time in which code
ran, a successor is started. When it is warm it makes all further workers; the earlier one ends with the last worker
that it made.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from ..errors import SandboxError
from .worker_process import Launches

_LOG = logging.getLogger(__name__)


class Zygotes:
    """The zygotes of one pool, of which the newest makes workers.

    `launch` makes one that is not started. A successor is started once one is older than `seconds`; `renewed` is called
    when it has taken over, `failed` when it could not start.
    """

    def __init__(
        self,
        launch: Callable[[], Launches],
        *,
        seconds: float,
        renewed: Callable[[], None],
        failed: Callable[[], None] = lambda: None,
    ) -> None:
        self._launch_it = launch
        self._outdated = False
        self._seconds = seconds
        self._renewed = renewed
        self._failed = failed
        self.newest: Launches | None = None
        self.started = 0
        self._drops = 0
        self._since = 0.0
        self._launching = asyncio.Lock()
        self._renewing: asyncio.Task[None] | None = None
        self._retired: list[Launches] = []
        self._ending: set[asyncio.Task[None]] = set()

    async def ready(self) -> Launches:
        """Return the one that makes workers, started if it is not. Raises what starting raises."""
        if self.newest is not None and self.newest.alive and not self._launching.locked():
            return self.newest
        async with self._launching:
            if self.newest is not None and self.newest.alive:
                return self.newest
            if self.newest is not None:
                await self.newest.close()
            launcher = self._launch()
            self._take_over(launcher)
            await launcher.start()
            return launcher

    def renew_if_due(self) -> None:
        """Start a successor, if it is due. Call it when there is time, after a run."""
        if self._renewing is not None or self.newest is None or not self.newest.alive or self._launching.locked():
            return
        loop = asyncio.get_running_loop()
        if self._outdated or loop.time() - self._since > self._seconds:
            self._renewing = loop.create_task(self._renew())

    def outdate(self) -> None:
        """Start a successor at the next `renew_if_due`, since it would import more ahead of time."""
        self._outdated = True

    async def drop(self) -> None:
        """Let the next worker wait for a new zygote: the newest makes no more, and ends with the last that it made.

        A successor that is starting does not take over.
        """
        self._drops += 1
        async with self._launching:
            if self.newest is not None:
                self.newest.retire()
                self._retired.append(self.newest)
                self.newest = None
        self.end_retired()

    def end_retired(self) -> None:
        """End the earlier ones whose workers have all ended."""
        for retired in [each for each in self._retired if not each.busy]:
            self._retired.remove(retired)
            task = asyncio.create_task(retired.close())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def aclose(self) -> None:
        """End them all, with every worker that they made, and wait until they are gone."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)
        await asyncio.gather(*self._ending, *(each.close() for each in self._retired))
        if self.newest is not None:
            await self.newest.close()  # the last one, which removes what all shared

    def _launch(self) -> Launches:
        self._outdated = False
        return self._launch_it()

    async def _renew(self) -> None:
        drops = self._drops
        successor: Launches | None = None
        try:
            successor = self._launch()
            await successor.start()
            async with self._launching:  # one that is starting since the earlier died is not ended in the middle
                is_wanted = drops == self._drops
                replaced = self.newest if is_wanted else successor
                if replaced is not None:
                    replaced.retire()
                    self._retired.append(replaced)
                if is_wanted:
                    self._take_over(successor)
        except BaseException as error:
            if successor is not None:
                successor.retire()
                await successor.close()
            if not isinstance(error, SandboxError):
                raise
            _LOG.warning("The zygote could not be renewed, and goes on: %s", error)
            self._since = asyncio.get_running_loop().time()
            self._failed()
        else:
            if is_wanted:
                self._renewed()
            self.end_retired()
        finally:
            self._renewing = None

    def _take_over(self, launcher: Launches) -> None:
        self.newest = launcher
        self.started += 1
        self._since = asyncio.get_running_loop().time()


_MODULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "duckdb": "duckdb",
        "matplotlib": "matplotlib.pyplot",
        "openpyxl": "openpyxl",
        "parquet": "pyarrow.parquet",
        "polars": "polars",
        "pyarrow": "pyarrow",
        "scipy": "scipy.stats",
        "seaborn": "seaborn",
        "sklearn": "sklearn",
        "to_excel": "openpyxl",
        "read_excel": "openpyxl",
    }
)
_NAMED: Final = re.compile("|".join(_MODULES))


class LateImports:
    """Which libraries a zygote of full Python imports ahead beside those that it always does: what code has used once.

    They are seen in the text of the code, which costs nothing and is no more than a guess: who guesses wrong imports
    one for nothing, or in its own run. A library that cannot be imported ahead is not tried again.
    """

    def __init__(self) -> None:
        self.modules: tuple[str, ...] = ()
        self._tried: set[str] = set()
        self._newest: frozenset[str] = frozenset()

    def add(self, code: str) -> bool:
        """Note what code uses; return whether something is new."""
        new = {_MODULES[name] for name in _NAMED.findall(code)} - self._tried
        if not new:
            return False
        self._tried |= new
        self._newest = frozenset(new)
        self.modules = tuple(sorted({*self.modules, *new}))
        return True

    def drop_newest(self) -> None:
        """Leave out what was added last."""
        self.modules = tuple(module for module in self.modules if module not in self._newest)
