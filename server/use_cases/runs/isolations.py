"""Which isolations there are: the one place that says how each is made, and why one that is allowed is not offered."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ....sandbox.container import engine
from ....sandbox.container import image as images
from ....sandbox.container.image import ContainerImage
from ....sandbox.errors import LevelMissing
from ....sandbox.host.pool import Pool, PoolSettings
from ....sandbox.host.pools import JobRunner
from ....sandbox.host.scheduler import OwnBound, RunBounds
from ....sandbox.job import Isolation, Limits
from ....sandbox.python_versions import require_walked
from ...base.errors import RequestRefused, SettingsError
from ...base.home import Home
from ...base.settings import Settings
from ...base.storage.opening import shown_folder
from ..managed_python.full_python import NOT_SET_UP, OR_SET_UP, FullPythonInterpreter

NO_IMAGE = "There is no image for containers yet. Run `sealab container build`, or set CONTAINER_IMAGE."

AUTO = "auto"
"""What a request asks for that leaves the choice to sealab."""

CHOICES = (AUTO, *(isolation.value for isolation in Isolation))


ALLOWED_BY_DEFAULT = (Isolation.RESTRICTED, Isolation.CONTAINER)
"""What a caller may ask for where ALLOWED_ISOLATION is not set; `managed_python.full_python` adds `process`."""


def allowed_isolations(settings: Settings) -> tuple[Isolation, ...]:
    """Return what the operator allows by name, or what is allowed where nothing was said."""
    return ALLOWED_BY_DEFAULT if settings.allowed_isolation is None else settings.allowed_isolation


@dataclass(frozen=True, slots=True)
class Offer:
    """What a request may ask for: how each isolation's pool is made, and why others that are allowed are missing.

    The first one is what a request gets that does not ask. `image` is what containers run, where they are offered.
    `full_python` is what `process` runs; it may come and go while the server runs.
    """

    makers: Mapping[Isolation, Callable[[], JobRunner]]
    missing: Mapping[Isolation, str]
    full_python: FullPythonInterpreter
    image: ContainerImage | None = None

    def is_there(self, isolation: Isolation) -> bool:
        """Return whether an isolation can be had now."""
        return isolation is not Isolation.PROCESS or self.full_python.why_not() is None

    def named(self, choice: str, settings: Settings) -> Isolation | None:
        """Return the isolation that a request asks for, or None for `auto`. Raises `RequestRefused`."""
        if choice == AUTO:
            return None
        for isolation in self._there():
            if isolation == choice:
                return isolation
        others = self.others()
        if choice not in CHOICES:
            raise RequestRefused(f"There is no isolation {choice!r}. {others}")
        isolation = Isolation(choice)
        if isolation in self.missing:
            raise RequestRefused(f"{self.missing[isolation]} {others}")
        why = self.full_python.why_not() if isolation in self.makers else None
        if why not in (None, NOT_SET_UP):
            raise RequestRefused(f"{why} {others}")
        raise RequestRefused(
            f"isolation={choice!r} is not allowed here: ALLOWED_ISOLATION is {','.join(allowed_isolations(settings))}. "
            f"{others[:-1]}, or ask the operator to add {choice}{'' if why is None else OR_SET_UP}."
        )

    def others(self) -> str:
        """Return which isolations can be asked for now."""
        return f"Give one of {', '.join((AUTO, *self._there()))}."

    def _there(self) -> list[Isolation]:
        return [isolation for isolation in self.makers if self.is_there(isolation)]


def offer(settings: Settings, home: Home, own_bound: OwnBound | None = None) -> Offer:
    """Find out which of the allowed isolations can be offered, `restricted` first; `own_bound` is as of `RunBounds`.

    Raises `SettingsError` when there is none, for `restricted` on a version of Python that it was not examined on, for
    PACKAGES that cannot be imported, or for a PROCESS_PYTHON that cannot be used.
    """
    wider: list[Isolation] = []
    makers: dict[Isolation, Callable[[], JobRunner]] = {}
    missing: dict[Isolation, str] = {}
    image: ContainerImage | None = None
    bounds = RunBounds(settings.caller_runs_max, settings.tenant_runs_max, own_bound)
    full_python = FullPythonInterpreter(settings, home)
    allowed = {*allowed_isolations(settings), *((Isolation.PROCESS,) if settings.allowed_isolation is None else ())}
    for isolation in Isolation:
        if isolation not in allowed:
            continue
        match isolation:
            case Isolation.RESTRICTED:
                _judge_own_python()
                packages = _found(settings.packages)
                makers[isolation] = partial(_restricted_pool, settings, home, bounds, wider, packages)
            case Isolation.PROCESS:
                makers[isolation] = partial(_process_pool, settings, home, bounds, full_python)
            case Isolation.CONTAINER:
                image = chosen_image(settings, home)
                reason = _no_container(settings, image)
                if image is None or reason is not None:
                    missing[isolation] = reason or NO_IMAGE
                else:
                    makers[isolation] = partial(_container_pool, settings, home, bounds, image)
        is_there = isolation is not Isolation.PROCESS or full_python.why_not() is None
        if isolation in makers and isolation is not Isolation.RESTRICTED and is_there:
            wider.append(isolation)
    if not makers:
        raise SettingsError(f"ALLOWED_ISOLATION leaves nothing to run code in: {' '.join(missing.values())}")
    return Offer(makers, missing, full_python, image if Isolation.CONTAINER in makers else None)


def why_no_process(settings: Settings, home: Home) -> str | None:
    """Return why code cannot run in full Python beside this server, or None where it can. Raises `SettingsError`."""
    return FullPythonInterpreter(settings, home).why_not()


def chosen_image(settings: Settings, home: Home) -> ContainerImage | None:
    """Return the image that containers run: the operator's, else the newest that was built below the home."""
    if settings.container_image is not None:
        return images.named(settings.container_image)
    return images.current(home.containers)


def _no_container(settings: Settings, image: ContainerImage | None) -> str | None:
    if not engine.is_there(settings.container_runtime):
        return f"There is no {settings.container_runtime or 'container engine'} here. {engine.HOW_TO_INSTALL}"
    return NO_IMAGE if image is None else None


def _restricted_pool(
    settings: Settings,
    home: Home,
    bounds: RunBounds,
    wider: Sequence[Isolation],
    packages: tuple[tuple[str, str], ...],
) -> JobRunner:
    pool = _pool_settings(
        settings, home, bounds, Isolation.RESTRICTED, tuple(wider)
    )  # read late: `wider` grows meanwhile
    return Pool(replace(pool, packages=packages))


def _process_pool(settings: Settings, home: Home, bounds: RunBounds, full_python: FullPythonInterpreter) -> JobRunner:
    pool = _pool_settings(settings, home, bounds, Isolation.PROCESS)
    python, level = full_python.python(), full_python.required_level
    return Pool(replace(pool, python=python, required_level=level, installed=full_python.installed))


def _container_pool(settings: Settings, home: Home, bounds: RunBounds, image: ContainerImage) -> JobRunner:
    from ....sandbox.container.container_pool import ContainerPool, ContainerSettings

    pool = _pool_settings(settings, home, bounds, Isolation.CONTAINER)
    return ContainerPool(
        ContainerSettings(
            pool=replace(pool, spares=min(pool.spares, 1)),
            image=image,
            folder=home.containers.absolute(),
            wanted=settings.container_runtime,
            idle_seconds=settings.session_idle_seconds,
        )
    )


def _pool_settings(
    settings: Settings, home: Home, bounds: RunBounds, isolation: Isolation, wider: tuple[Isolation, ...] = ()
) -> PoolSettings:
    full_python = isolation is not Isolation.RESTRICTED
    return PoolSettings(
        spares=settings.workers_spare,
        workers_max=settings.workers_max,
        queue_max=settings.queue_max,
        queue_seconds=settings.queue_seconds,
        sessions_max=settings.sessions_max,
        session_idle_seconds=settings.session_idle_seconds,
        maximum=Limits(
            timeout_seconds=settings.max_timeout_seconds,
            memory_mb=settings.max_memory_mb,
            pids_max=settings.pids_max,
            file_size_mb=settings.scratch_mb * 9 // 10 if isolation is Isolation.PROCESS else Limits().file_size_mb,
        ),
        isolation=isolation,
        required_level=settings.required_level,
        python=sys.executable,
        workspace=str(shown_folder(settings, home).absolute()) if full_python else None,
        wider=wider,
        cpus=settings.cpus,
        bounds=bounds,
        caller_sessions_max=settings.caller_sessions_max,
        tenant_sessions_max=settings.tenant_sessions_max,
        run_folders=str(home.scratch.absolute()) if isolation is Isolation.PROCESS else None,
        run_folder_bytes=settings.scratch_mb * 1_000_000,
    )


def _judge_own_python() -> None:
    """Raise `SettingsError` unless the restricted dialect may run on this interpreter."""
    try:
        require_walked()
    except LevelMissing as missing:
        raise SettingsError(str(missing)) from None


def _found(packages: Sequence[str]) -> tuple[tuple[str, str], ...]:
    if not packages:
        return ()
    from ...base.startup.packages import find_packages

    return find_packages(packages)
