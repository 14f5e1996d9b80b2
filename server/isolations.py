"""Which isolations there are: the one place that says how each is made, and why one that is allowed is not offered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..sandbox.pool import Pool, PoolSettings
from ..sandbox.pools import Runner
from ..sandbox.run import Isolation, Limits
from .errors import RequestRefused, SettingsError
from .settings import Settings

AUTO = "auto"
"""What a request asks for that leaves the choice to sealab."""

CHOICES = (AUTO, *(isolation.value for isolation in Isolation))


@dataclass(frozen=True, slots=True)
class Offer:
    """What a request may ask for: how each isolation's pool is made, and why others that are allowed are missing.

    The first one is what a request gets that does not ask.
    """

    makers: Mapping[Isolation, Callable[[], Runner]]
    missing: Mapping[Isolation, str]

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


def offer(settings: Settings) -> Offer:
    """Find out which of the allowed isolations can be offered, `restricted` first. Raises `SettingsError` for none."""
    makers: dict[Isolation, Callable[[], Runner]] = {}
    missing: dict[Isolation, str] = {}
    for isolation in Isolation:
        if isolation not in settings.allowed_isolation:
            continue
        match isolation:
            case Isolation.RESTRICTED:
                makers[isolation] = lambda: Pool(_restricted(settings))
            case Isolation.PROCESS | Isolation.CONTAINER:
                missing[isolation] = f"This version has no {isolation} isolation yet."
    if not makers:
        raise SettingsError(f"ALLOWED_ISOLATION leaves nothing to run code in: {' '.join(missing.values())}")
    return Offer(makers, missing)


def _restricted(settings: Settings) -> PoolSettings:
    return PoolSettings(
        spares=settings.workers_spare,
        workers_max=settings.workers_max,
        sessions_max=settings.sessions_max,
        session_idle_seconds=settings.session_idle_seconds,
        maximum=Limits(
            timeout_seconds=settings.max_timeout_seconds,
            memory_mb=settings.max_memory_mb,
            pids_max=settings.pids_max,
        ),
        required_level=settings.required_level,
    )
