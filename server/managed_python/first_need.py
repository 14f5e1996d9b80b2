"""Makes the environment of full Python when code first asks for a package of it, where the operator allows that."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from ..errors import PythonNotBuilt
from ..startup.package_names import distribution_of
from .environment import LOCK_FILE, locked_packages

_LOG = logging.getLogger(__name__)
_BEGUN = "Full Python, which has it, is being set up and will take some minutes: run the same code again then."
_FAILED = "Full Python, which has it, could not be set up; the server's log says why."


def is_locked(modules: Iterable[str]) -> bool:
    """Return whether one of these modules comes with a package of the lock."""
    locked = locked_packages(LOCK_FILE)
    return any((distribution_of(module) or "").lower() in locked for module in modules)


class FirstNeed:
    """The one attempt of this process to make the environment in a folder; belongs to one event loop."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._building: threading.Thread | None = None
        self._failed = False

    def begin(self) -> str:
        """Begin, unless it has begun or failed already; return what to tell whoever asked."""
        if self._building is None:
            self._building = threading.Thread(target=self._build, name="sealab data setup", daemon=True)
            self._building.start()
        return _FAILED if self._failed else _BEGUN

    def _build(self) -> None:
        from .building import set_up

        try:
            set_up(self._folder, lambda step: _LOG.info("%s.", step), lock=LOCK_FILE)
        except PythonNotBuilt as error:
            self._failed = True
            _LOG.error("Full Python could not be set up. %s", error)
        except Exception:  # noqa: BLE001 - the server goes on without
            self._failed = True
            _LOG.exception("Full Python could not be set up.")
        else:
            _LOG.warning("Full Python is set up in %s.", self._folder)


@lru_cache(maxsize=8)
def first_need_of(folder: Path) -> FirstNeed:
    """Return the attempt for a folder."""
    return FirstNeed(folder)
