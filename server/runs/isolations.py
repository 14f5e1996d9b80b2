"""Which isolations there are: the one place that says how each is made, and why one that is allowed is not offered."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ...sandbox.container import engine
from ...sandbox.container import image as images
from ...sandbox.container.image import ContainerImage
from ...sandbox.errors import LevelMissing
from ...sandbox.host.pool import Pool, PoolSettings
from ...sandbox.host.pools import JobRunner
from ...sandbox.host.run_bounds import RunBounds
from ...sandbox.job import Isolation, Limits
from ...sandbox.python_versions import require_walked
from ..errors import RequestRefused, SettingsError
from ..home import Home
from ..settings import Settings
from ..storage.opening import shown_folder

_ANSWER_SECONDS = 10

NO_IMAGE = "There is no image for containers yet. Run `sealab container build`, or set CONTAINER_IMAGE."

NO_POD_IMAGE = "Pods need CONTAINER_IMAGE, an image that holds this version of sealab. Set it."

AUTO = "auto"
"""What a request asks for that leaves the choice to sealab."""

CHOICES = (AUTO, *(isolation.value for isolation in Isolation))


@dataclass(frozen=True, slots=True)
class Offer:
    """What a request may ask for: how each isolation's pool is made, and why others that are allowed are missing.

    The first one is what a request gets that does not ask. `image` is what containers run, where they are offered.
    """

    makers: Mapping[Isolation, Callable[[], JobRunner]]
    missing: Mapping[Isolation, str]
    image: ContainerImage | None = None

    def named(self, choice: str, settings: Settings) -> Isolation | None:
        """Return the isolation that a request asks for, or None for `auto`. Raises `RequestRefused`."""
        if choice == AUTO:
            return None
        for isolation in self.makers:
            if isolation == choice:
                return isolation
        offered = ", ".join((AUTO, *self.makers))
        if choice not in CHOICES:
            raise RequestRefused(f"There is no isolation {choice!r}. Give one of {offered}.")
        isolation = Isolation(choice)
        if isolation in self.missing:
            raise RequestRefused(f"{self.missing[isolation]} Give one of {offered}.")
        raise RequestRefused(
            f"isolation={choice!r} is not allowed here: ALLOWED_ISOLATION is {','.join(settings.allowed_isolation)}. "
            f"Give one of {offered}, or ask the operator to add {choice}."
        )


def offer(settings: Settings, home: Home) -> Offer:
    """Find out which of the allowed isolations can be offered, `restricted` first.

    Raises `SettingsError` when there is none, for `restricted` on a version of Python that it was not examined on, for
    PACKAGES that cannot be imported, or for a PROCESS_PYTHON that cannot be used.
    """
    wider: list[Isolation] = []
    makers: dict[Isolation, Callable[[], JobRunner]] = {}
    missing: dict[Isolation, str] = {}
    image: ContainerImage | None = None
    bounds = RunBounds(settings.caller_runs_max, settings.tenant_runs_max)
    for isolation in Isolation:
        if isolation not in settings.allowed_isolation:
            continue
        match isolation:
            case Isolation.RESTRICTED:
                _judge_own_python()
                packages = _found(settings.packages)
                makers[isolation] = partial(_restricted_pool, settings, home, bounds, wider, packages)
            case Isolation.PROCESS:
                _judge_python(settings.process_python)
                makers[isolation] = lambda: Pool(_pool_settings(settings, home, bounds, Isolation.PROCESS))
            case Isolation.CONTAINER:
                image = chosen_image(settings, home)
                reason = _no_container(settings, image)
                if image is None or reason is not None:
                    missing[isolation] = reason or NO_IMAGE
                else:
                    makers[isolation] = partial(_container_pool, settings, home, bounds, image)
        if isolation in makers and isolation is not Isolation.RESTRICTED:
            wider.append(isolation)
    if not makers:
        raise SettingsError(f"ALLOWED_ISOLATION leaves nothing to run code in: {' '.join(missing.values())}")
    return Offer(makers, missing, image if Isolation.CONTAINER in makers else None)


def chosen_image(settings: Settings, home: Home) -> ContainerImage | None:
    """Return the image that containers run: the operator's, else the newest that was built below the home."""
    if settings.container_image is not None:
        return images.named(settings.container_image)
    return images.current(home.containers)


def _no_container(settings: Settings, image: ContainerImage | None) -> str | None:
    if engine.wants_pods(settings.container_runtime):
        from ...sandbox.container.pods.pod_engine import why_not

        return why_not(os.environ) or (NO_POD_IMAGE if settings.container_image is None else None)
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


def _container_pool(settings: Settings, home: Home, bounds: RunBounds, image: ContainerImage) -> JobRunner:
    from ...sandbox.container.container_pool import ContainerPool, ContainerSettings

    pool = _pool_settings(settings, home, bounds, Isolation.CONTAINER)
    return ContainerPool(
        ContainerSettings(
            # A pod takes longer to start than a container, so as many are kept warm as there are spares elsewhere.
            pool=pool if engine.wants_pods(settings.container_runtime) else replace(pool, spares=min(pool.spares, 1)),
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
        ),
        isolation=isolation,
        required_level=settings.required_level,
        python=settings.process_python if full_python and settings.process_python is not None else sys.executable,
        workspace=str(shown_folder(settings, home).absolute()) if full_python else None,
        wider=wider,
        cpus=settings.cpus,
        bounds=bounds,
        caller_sessions_max=settings.caller_sessions_max,
        tenant_sessions_max=settings.tenant_sessions_max,
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
    from ..startup.packages import find_packages

    return find_packages(packages)


def _judge_python(python: str | None) -> None:
    """Raise `SettingsError` unless full Python can run on that interpreter."""
    if python is None:
        return
    question = "import sys; print(sys.version_info >= (3, 11))"
    advice = "Name a Python interpreter of version 3.11 or newer by its absolute path."
    if not os.path.isabs(python):
        raise SettingsError(f"PROCESS_PYTHON is {python}, but must be an absolute path. {advice}")
    try:
        answer = subprocess.run(
            [python, "-I", "-S", "-c", question], capture_output=True, check=True, text=True, timeout=_ANSWER_SECONDS
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise SettingsError(f"PROCESS_PYTHON is {python}, which cannot be run: {error}. {advice}") from None
    if answer.strip() != "True":
        raise SettingsError(f"PROCESS_PYTHON is {python}, which is too old. {advice}")
