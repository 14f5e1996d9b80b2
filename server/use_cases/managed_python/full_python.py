"""Which Python runs code at the isolation `process`, what it has, and whether it is offered without being asked for.

An operator who names `process` in ALLOWED_ISOLATION gets it at any level. Where ALLOWED_ISOLATION is not set, it is
offered once there is an environment of `sealab data setup` (or the server's own has `sealab[data]`), and only at the
level `kernel`: what keeps full Python apart is the kernel alone. What code writes must come home too, so that it is not
offered by default where workers cannot write to the workspace.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from ....sandbox.installing import modules_in
from ....sandbox.job import Isolation
from ....sandbox.levels import Level
from ...base.errors import SettingsError
from ...base.home import Home
from ...base.settings import Settings, Switch
from .environment import ManagedPython, current

NOT_SET_UP = "Full Python is not set up. The operator can do so by `sealab data setup`."
OR_SET_UP = " or to run `sealab data setup`, which brings numpy and pandas too"
BELOW_KERNEL = (
    "Full Python is allowed by default only where the level is `kernel`: see `sealab doctor`. "
    "The operator can allow it anyway with ALLOWED_ISOLATION=restricted,process,container."
)
READ_ONLY = (
    "Full Python is allowed by default only where it can write to the workspace, which an overlay is needed for: see "
    "`sealab doctor`. The operator can allow it anyway with ALLOWED_ISOLATION=restricted,process,container."
)
_EXTRA = ("duckdb", "polars", "pandas", "pyarrow", "matplotlib", "openpyxl", "seaborn")
"""Modules by which it is seen that the server's own environment has `sealab[data]`, the rarest first."""
_ANSWER_SECONDS = 10
TRY_AGAIN_SECONDS = (0.0, 5.0, 15.0, 60.0)
"""How long after a start that failed the next call may try again; the last one holds for all that follow."""
_QUESTION = """
import json, os, sys
folders = [path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")]
print(json.dumps([sys.version_info >= (3, 11), folders]))
"""
_LOG = logging.getLogger(__name__)


class FullPythonInterpreter:
    """The interpreter of `process` for one server: looked up anew each time, since it may be set up meanwhile.

    Raises `SettingsError` for a PROCESS_PYTHON that cannot be used.
    """

    def __init__(self, settings: Settings, home: Home) -> None:
        said = settings.allowed_isolation
        self._asked = said is not None and Isolation.PROCESS in said
        self._forbidden = said is not None and not self._asked
        self._named = None if self._forbidden else settings.process_python
        self._folder = home.python
        self._required = settings.required_level if self._asked else Level.KERNEL
        self._sets_up = said is None and settings.data_setup is Switch.ON
        self._impossible: str | None = None
        self._failed: str | None = None
        self._failures = 0
        self._try_again = 0.0
        self._works = False
        self.starting = asyncio.Lock()
        self._own_modules: frozenset[str] | None = None
        if self._named is not None and self.why_not() is None:
            self._own_modules = _modules_of(_folders_of(self._named))

    @property
    def required_level(self) -> Level:
        """The level below which no worker starts."""
        return self._required

    def has_started(self) -> bool:
        """Return whether a worker was made once."""
        return self._works

    def managed(self) -> ManagedPython | None:
        """Return the environment of `sealab data setup`, as it is now."""
        return None if self._forbidden else current(self._folder)

    def why_not(self) -> str | None:
        """Return why code cannot run in it now, or None where it can or may be tried."""
        if self._forbidden:
            return "ALLOWED_ISOLATION leaves out process."
        if self._impossible is not None:
            return self._impossible
        if self._failed is not None and (seconds := self._try_again - time.monotonic()) > 0:
            return f"{self._failed} A call in {seconds:.0f} seconds tries again."
        if self._asked or self.managed() is not None or _has_extra():
            return None
        return NOT_SET_UP

    @property
    def is_set_up_by_itself(self) -> bool:
        """Whether the server makes the environment when code first needs it."""
        return self._sets_up

    def set_up_for(self, modules: Iterable[str]) -> str | None:
        """Begin to set it up where that would bring one of these modules; say so, or None where it is not done."""
        if not self._sets_up or self.why_not() != NOT_SET_UP:
            return None
        from .first_need import first_need_of, is_locked

        return first_need_of(self._folder).begin() if is_locked(modules) else None

    def python(self) -> str:
        """Return the path of its interpreter: PROCESS_PYTHON, else the environment's, else the server's own."""
        if self._named is not None:
            return self._named
        managed = self.managed()
        return sys.executable if managed is None else managed.python

    def installed(self) -> str | None:
        """Name the build of the environment that it runs in, which changes with what is installed."""
        managed = None if self._named is not None else self.managed()
        return None if managed is None else managed.build

    def has_one_of(self, modules: Iterable[str]) -> bool:
        """Return whether it has one of these modules, by their dotted names, beyond the standard library."""
        return not self.modules().isdisjoint(module.partition(".")[0] for module in modules)

    def modules(self) -> frozenset[str]:
        """Return the names of the packages' modules that it has."""
        managed = self.managed()
        if self._named is None and managed is not None:
            return managed.modules
        if self._own_modules is None:
            folders = tuple(path for path in sys.path if Path(path).name in {"site-packages", "dist-packages"})
            self._own_modules = _modules_of(folders if self._named is None else _folders_of(self._named))
        return self._own_modules

    async def know_modules(self) -> None:
        """Find in a thread what `modules` returns, where code may come for it: folders are walked through."""
        if self.why_not() is None:
            await asyncio.to_thread(self.modules)

    def is_imported_by(self, code: str) -> bool:
        """Return whether text of a program looks as if it imported one of the modules; the parsed program decides."""
        return "import" in code and any(self.has_one_of(_IMPORTED.findall(line)) for line in _IMPORTING.findall(code))

    def has_worked(self) -> None:
        """Take that a worker could be made."""
        if self._failed is not None:
            _LOG.warning("Full Python can be offered again.")
        self._works = True
        self._failed, self._failures = None, 0

    @property
    def is_default(self) -> bool:
        """Whether it is offered though nobody asked for it, so that code may come without asking."""
        return not self._asked and self.why_not() is None

    @property
    def obstacle(self) -> str | None:
        """Why no worker can be made though it is set up and allowed: of the machine, or of the last attempt."""
        return self._impossible or self._failed

    @property
    def failed(self) -> str | None:
        """Why no worker could be made when it was last tried; None once one was, and before the first."""
        return self._failed

    @property
    def failures(self) -> int:
        """How often it was tried in vain since it last worked."""
        return self._failures

    def cannot(self, why: str) -> None:
        """Take that no worker can be made on this machine; where the operator asked by name, each call says so."""
        if self.is_default:
            _LOG.warning("Full Python cannot be offered: %s", why)
            self._impossible = why

    def has_failed(self, why: str) -> None:
        """Take that no worker could be made this time; a later call tries again (`TRY_AGAIN_SECONDS`)."""
        seconds = TRY_AGAIN_SECONDS[min(self._failures, len(TRY_AGAIN_SECONDS) - 1)]
        self._failures += 1
        self._failed, self._try_again = why, time.monotonic() + seconds
        when = f"a call in {seconds:g} seconds" if seconds else "the next call"
        _LOG.warning("%s This was failure %d; %s tries again.", why, self._failures, when)


_IMPORTING = re.compile(r"\b(?:from|import)[ \t\\][^\n]*(?:\\\n[^\n]*)*")
_IMPORTED = re.compile(r"[^\W\d]\w*")


@lru_cache(maxsize=8)
def _modules_of(folders: tuple[str, ...]) -> frozenset[str]:
    found: set[str] = set()
    for folder in folders:
        try:
            found.update(modules_in(Path(folder)))
        except OSError:
            continue
    return frozenset(found)


@lru_cache(maxsize=1)
def _has_extra() -> bool:
    return all(find_spec(module) is not None for module in _EXTRA)


@lru_cache(maxsize=8)
def _folders_of(python: str) -> tuple[str, ...]:
    """Return the folders of packages of an interpreter. Raises `SettingsError` where full Python cannot run on it."""
    advice = "Name a Python interpreter of version 3.11 or newer by its absolute path."
    if not os.path.isabs(python):
        raise SettingsError(f"PROCESS_PYTHON is {python}, but must be an absolute path. {advice}")
    try:
        answer = subprocess.run(
            [python, "-I", "-c", _QUESTION], capture_output=True, check=True, text=True, timeout=_ANSWER_SECONDS
        ).stdout
        new_enough, folders = json.loads(answer)
    except (OSError, subprocess.SubprocessError) as error:
        raise SettingsError(f"PROCESS_PYTHON is {python}, which cannot be run: {error}. {advice}") from None
    except (ValueError, TypeError):
        new_enough, folders = False, []
    if new_enough is not True:
        raise SettingsError(f"PROCESS_PYTHON is {python}, which is too old. {advice}")
    return tuple(map(str, folders))
