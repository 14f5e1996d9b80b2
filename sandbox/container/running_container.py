"""What runs a container, whichever engine that is: what the host needs of it, and what it gets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from .host_link import HostLink


@dataclass(frozen=True, slots=True)
class ContainerNeeds:
    """What one container has to hold: its name, memory in MB, processes with threads, and perhaps processors."""

    name: str
    memory_mb: int
    processes: int
    cpus: float | None = None


class EngineTraits(Protocol):
    """What is known of an engine: what to call it, and which of its limits were proved."""

    @property
    def title(self) -> str:
        """What to call it in a message."""
        ...

    @property
    def layers(self) -> list[str]:
        """Name the layers that a container adds to what confines a worker in it."""
        ...

    @property
    def memory_held(self) -> bool:
        """Whether its limit of memory was proved."""
        ...

    @property
    def processes_held(self) -> bool:
        """Whether its limit of processes was proved."""
        ...

    @property
    def cpus_held(self) -> bool:
        """Whether its share of processors was proved."""
        ...


class RunningContainer(Protocol):
    """One container that was started, until it is gone. The end of its link ends it."""

    @property
    def link(self) -> HostLink:
        """How it is spoken to."""
        ...

    async def wait(self) -> None:
        """Wait until it is gone. May be called anew after it was cancelled."""

    async def remove(self) -> None:
        """Have the engine end it. Raises OSError where the engine cannot be reached."""

    def give_up(self) -> None:
        """End what waits for it here, since its engine does not end it."""

    def close(self) -> None:
        """Give back what it holds here, once it is gone."""

    def complaint(self) -> str:
        """Return the last line that it or its engine complained with."""
        ...


StartContainer = Callable[[ContainerNeeds], Awaitable[RunningContainer]]
"""Starts a container whose first process is the fork server. Raises `ContainerMissing`, `WorkerLost`, OSError."""
