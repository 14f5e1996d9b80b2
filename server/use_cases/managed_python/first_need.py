"""Makes the environment of full Python when code first asks for a package of it, where the operator allows that."""

from __future__ import annotations

import logging
import math
import re
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from ...base.errors import PythonNotBuilt
from ...base.startup.package_names import distribution_of
from .building import set_up
from .environment import LOCK_FILE, keep_problem, locked_packages

TRY_AGAIN_SECONDS = (60.0, 300.0, 900.0, 3600.0)
"""How long after an attempt that failed code that needs it begins another; the last one holds for all that follow."""

_LOG = logging.getLogger(__name__)
_BEGUN = "Full Python, which has it, is being set up and will take some minutes: run the same code again then."
_REASON_CHARS_MAX = 300
_OF_THE_HOST = re.compile(r"\b\w+://\S+|(?<![\w.])/\S+")
"""Addresses and paths: the log tells them, and code's author has no use for them."""


def is_locked(modules: Iterable[str]) -> bool:
    """Return whether one of these modules comes with a package of the lock."""
    locked = locked_packages(LOCK_FILE)
    return any((distribution_of(module) or "").lower() in locked for module in modules)


class FirstNeed:
    """The attempts of this process to make the environment in a folder; belongs to one event loop.

    One is made at a time. After one that failed the next is begun by code that needs it, once `TRY_AGAIN_SECONDS` are
    over.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._building: threading.Thread | None = None
        self._failures = 0
        self._failed: str | None = None
        self._try_again = 0.0

    def begin(self) -> str:
        """Begin, unless it has begun, or failed a short while ago; return what to tell whoever asked."""
        if self._building is not None and self._building.is_alive():
            return _BEGUN
        if self._failed is not None and (seconds := self._try_again - time.monotonic()) > 0:
            return (
                f"Full Python, which has it, could not be set up: {self._failed} "
                f"Code that needs it in {_duration_text(seconds)} has it tried again."
            )
        self._building = threading.Thread(target=self._build, name="sealab data setup", daemon=True)
        self._building.start()
        return _BEGUN

    def _build(self) -> None:
        try:
            set_up(self._folder, lambda step: _LOG.info("%s.", step), lock=LOCK_FILE)
        except PythonNotBuilt as error:
            pause = self._has_failed(str(error))
            with suppress(OSError):
                keep_problem(self._folder, str(error))  # `sealab data status` and `sealab doctor` tell it
            _LOG.error("Full Python could not be set up. %s Code that needs it in %s has it tried again.", error, pause)
        except Exception:  # noqa: BLE001 - the server goes on without
            pause = self._has_failed("The server's log says why.")
            _LOG.exception("Full Python could not be set up. Code that needs it in %s has it tried again.", pause)
        else:
            self._failed, self._failures = None, 0
            _LOG.warning("Full Python is set up in %s.", self._folder)

    def _has_failed(self, why: str) -> str:
        """Keep why it failed; return how long it is left alone."""
        seconds = TRY_AGAIN_SECONDS[min(self._failures, len(TRY_AGAIN_SECONDS) - 1)]
        self._failures += 1
        self._try_again = time.monotonic() + seconds
        why = _OF_THE_HOST.sub("…", why)
        self._failed = why if len(why) <= _REASON_CHARS_MAX else f"{why[:_REASON_CHARS_MAX]} … (the log says more)."
        return _duration_text(seconds)


def _duration_text(seconds: float) -> str:
    """Format a time as whole seconds, or of more than two minutes as whole minutes."""
    return f"{seconds:.0f} seconds" if seconds <= 120 else f"{math.ceil(seconds / 60)} minutes"  # noqa: PLR2004


@lru_cache(maxsize=8)
def first_need_of(folder: Path) -> FirstNeed:
    """Return the attempts for a folder."""
    return FirstNeed(folder)
