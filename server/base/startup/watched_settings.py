"""Takes up what changes in the settings file while a server runs, and says what only a restart takes up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

from ..errors import SettingsError
from ..host_work import Kind, in_thread
from ..settings import Settings

LOOK_SECONDS = 1.0
TAKEN_UP = frozenset(
    f"{whose}_{kind}"
    for whose in ("caller", "tenant")
    for kind in ("runs_max", "runs_per_minute", "cpu_seconds_per_day", "sessions_max")
) | {"log_level"}
"""The settings that count without a restart."""
_LOG = logging.getLogger(__name__)


class WatchedSettings:
    """One settings file, which need not exist. `read` gives the settings with it, or raises `SettingsError`."""

    def __init__(self, file: Path, read: Callable[[], Settings], settings: Settings) -> None:
        self._file = file
        self._read = read
        self._in_force = settings
        self._stamp = self._seen = self._stamped()

    async def watch(self, take: Callable[[Settings], None]) -> None:
        """Give `take` the settings when the file has changed, until it is cancelled; log which count from when on."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                changed = await in_thread(Kind.FILES, self._changed, charged=False)
            except SettingsError as error:
                _LOG.error("%s The settings before stay in force.", error)
                continue
            except Exception as error:  # noqa: BLE001 - whatever it is, the settings stay, and it is looked again
                _LOG.warning("It could not be found out whether %s has changed: %s", self._file, error)
                continue
            if changed is not None:
                self._take(changed, take)

    def _take(self, settings: Settings, take: Callable[[Settings], None]) -> None:
        names = [
            each.name for each in fields(Settings) if getattr(settings, each.name) != getattr(self._in_force, each.name)
        ]
        self._in_force = settings
        if not names:
            return
        logging.getLogger().setLevel(settings.log_level.value)
        take(settings)
        taken = ", ".join(name.upper() for name in names if name in TAKEN_UP)
        left = ", ".join(name.upper() for name in names if name not in TAKEN_UP)
        sentences = [f"In force from now on: {taken}."] if taken else []
        sentences += [f"Only a restart takes up {left}."] if left else []
        _LOG.warning("%s has changed. %s", self._file, " ".join(sentences))

    def _changed(self) -> Settings | None:
        """Return the settings where the file is another one; it counts once it has stayed the same for one look."""
        before, self._seen = self._seen, self._stamped()
        if self._seen == self._stamp or self._seen != before:
            return None
        self._stamp = self._seen
        return self._read()

    def _stamped(self) -> tuple[int, int, int] | None:
        try:
            status = self._file.stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size
