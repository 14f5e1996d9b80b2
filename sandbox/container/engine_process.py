"""A container of podman or docker: the process of the engine that runs it in the foreground."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import IO

from ..wire.zygote_config import PACKETS
from . import engine
from .engine import Engine
from .host_link import DirectHostLink, HostLink, StreamHostLink

_COMPLAINT_BYTES = 4000


class EngineProcess:
    """A container that an engine's process runs until both are gone. The end of its link ends it."""

    def __init__(self, process: asyncio.subprocess.Process, stderr: IO[bytes], link: HostLink) -> None:
        self._process = process
        self._stderr = stderr
        self.link = link
        """How it is spoken to: a socket that was passed in, or its standard streams."""

    @classmethod
    async def start(cls, found: Engine, command: Sequence[str]) -> EngineProcess:
        """Start the engine, and with it the container. Raises OSError where the engine cannot be run."""
        stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the container
        try:
            return cls(*await _started(found, command, stderr))
        except BaseException:
            stderr.close()
            raise

    async def wait(self) -> None:
        """Wait until the engine has ended. May be called anew after it was cancelled."""
        await self._process.wait()

    def give_up(self) -> None:
        """Kill the engine's process."""
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


async def _started(
    found: Engine, command: Sequence[str], stderr: IO[bytes]
) -> tuple[asyncio.subprocess.Process, IO[bytes], HostLink]:
    start = partial(
        asyncio.create_subprocess_exec,
        stderr=stderr,
        env=engine.environment(),
        cwd=found.cwd(),
        start_new_session=True,
    )
    if not found.direct:
        process = await start(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        return process, stderr, StreamHostLink(process.stdout, process.stdin)
    ours, theirs = socket.socketpair(socket.AF_UNIX, PACKETS)
    with theirs:
        try:
            process = await start(
                *engine.passing(theirs.fileno(), command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        except BaseException:
            ours.close()
            raise
    return process, stderr, DirectHostLink(ours)
