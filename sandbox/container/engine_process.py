"""A container of podman or docker: the process of the engine that runs it in the foreground."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..wire.zygote_config import PACKETS
from . import engine
from .engine import Engine
from .host_link import DirectHostLink, HostLink, StreamHostLink
from .image import ContainerImage

_COMPLAINT_BYTES = 4000


@dataclass(frozen=True, slots=True)
class ContainerNeeds:
    """What one container has to hold: its name, memory in MB, processes with threads, and perhaps processors."""

    name: str
    memory_mb: int
    processes: int
    cpus: float | None = None


class EngineProcess:
    """A container that an engine's process runs until both are gone. The end of its link ends it."""

    def __init__(self, found: Engine, name: str) -> None:
        self._engine = found
        self._name = name
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the container
        self._process: asyncio.subprocess.Process | None = None
        self._link: HostLink | None = None

    @classmethod
    async def start(
        cls, found: Engine, image: ContainerImage, code: Path, workspace: Path | None, needs: ContainerNeeds
    ) -> EngineProcess:
        """Start one. Raises OSError where the engine cannot be run."""
        command = found.run(
            image,
            code,
            name=needs.name,
            memory_mb=needs.memory_mb,
            processes=needs.processes,
            cpus=needs.cpus,
            workspace=workspace,
            direct=found.direct,
            command=found.fork_server(image),
        )
        started = cls(found, needs.name)
        try:
            await started._run(command)
        except BaseException:
            started._stderr.close()
            raise
        return started

    @property
    def link(self) -> HostLink:
        """How it is spoken to: a socket that was passed in, or its standard streams."""
        assert self._link is not None
        return self._link

    async def wait(self) -> None:
        """Wait until the engine has ended. May be called anew after it was cancelled."""
        assert self._process is not None
        await self._process.wait()

    async def remove(self) -> None:
        """Have the engine end the container. Raises OSError where the engine cannot be reached."""
        await self._engine.remove(self._name)

    def give_up(self) -> None:
        """Kill the engine's process."""
        assert self._process is not None
        with suppress(ProcessLookupError):
            self._process.kill()

    def close(self) -> None:
        """Close what the engine wrote to."""
        self._stderr.close()

    def complaint(self) -> str:
        """Return the last line that the engine, or the container, wrote to standard error."""
        with suppress(ValueError):
            self._stderr.seek(0, os.SEEK_END)
            self._stderr.seek(max(0, self._stderr.tell() - _COMPLAINT_BYTES))
            written = self._stderr.read().decode("utf-8", "replace").strip()
            if written:
                return written.rpartition("\n")[2]
        return "it wrote nothing"

    async def _run(self, command: Sequence[str]) -> None:
        """Start the engine, and with it the container."""
        direct = self._engine.direct
        ours, theirs = socket.socketpair(socket.AF_UNIX, PACKETS) if direct else (None, None)
        try:
            process = await asyncio.create_subprocess_exec(
                *(engine.passing(theirs.fileno(), command) if theirs is not None else command),
                stdin=subprocess.DEVNULL if direct else subprocess.PIPE,
                stdout=subprocess.DEVNULL if direct else subprocess.PIPE,
                stderr=self._stderr,
                env=engine.environment(),
                cwd=self._engine.cwd(),
                start_new_session=True,
                pass_fds=[] if theirs is None else [theirs.fileno()],
            )
        except BaseException:
            if ours is not None:
                ours.close()
            raise
        finally:
            if theirs is not None:
                theirs.close()
        self._process = process
        if ours is not None:
            self._link = DirectHostLink(ours)
            return
        assert process.stdin is not None
        assert process.stdout is not None
        self._link = StreamHostLink(process.stdout, process.stdin)


StartContainer = Callable[[ContainerNeeds], Awaitable[EngineProcess]]
"""Starts a container whose first process is the fork server. Raises `ContainerMissing`, `WorkerLost`, OSError."""
