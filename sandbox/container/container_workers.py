"""The host's side of containers: makes a pool's workers in them.

Each worker has a container to itself. When it has ended and the fork server says that nothing is left of it, the
container takes the next one; else another container takes its place. A worker that does not end when asked to is ended
with its container. What a container says is bounded and never trusted: all that a hostile one can do is lie about the
one run that it holds.
"""

from __future__ import annotations

import asyncio
import logging
import math
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ..confine.limits import MIB
from ..errors import ContainerMissing, WorkerLost
from ..host.worker_process import WorkerProcess
from ..wire.zygote_config import ZygoteConfig
from ..wire.zygote_packets import ProcessExit
from .engine import SCRATCH_MB, Engine, new_name
from .engine_process import EngineProcess
from .host_link import HostLink
from .image import ContainerImage

KILL_SECONDS = 1.0
"""How long a worker may take to end when asked to, before its container is ended."""

SPARE_SECONDS = 0.005
"""How long the making of a spare waits, so that it does not slow down the short run in whose place it will be."""

_START_SECONDS = 60.0
_FORK_SECONDS = 10.0
_CLOSE_SECONDS = 3.0
_OWN_MB = 256
"""Memory that the fork server and the worker's interpreter have, above what code may use."""
_OWN_PROCESSES = 16
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ContainerSetup:
    """What all containers of a pool have in common.

    `code` is where sealab's own lies, as `image.code` gives it. `processes` is how many code may have, threads
    included; `cpus` the processors that the engine gives to each.
    """

    engine: Engine
    image: ContainerImage
    code: Path
    workspace: Path | None
    config: ZygoteConfig
    processes: int
    cpus: float | None = None

    def command(self, name: str) -> list[str]:
        """Give the command that runs a container of this name, whose first process is the fork server."""
        standing = self.config.standing
        return self.engine.run(
            self.image,
            self.code,
            name=name,
            memory_mb=standing.memory_bytes // MIB + standing.output_bytes // MIB + SCRATCH_MB + _OWN_MB,
            processes=self.processes + _OWN_PROCESSES,
            cpus=self.cpus,
            workspace=self.workspace,
            command=self.engine.fork_server(self.image),
        )


def reported_exit(said: Mapping[str, Any]) -> ProcessExit:
    """Return how a worker ended, as its container reports it. Raises `ValueError` for a use that no process can have.

    A use that is negative or not finite would falsify the sum over all runs of the caller (`shares.cpu_days`).
    """
    cpu_ms, memory_peak_mb = float(said["cpu_ms"]), float(said["memory_peak_mb"])
    if not (0 <= cpu_ms < math.inf and 0 <= memory_peak_mb < math.inf):
        raise ValueError("a use that no process can have")
    return ProcessExit(int(said["status"]), cpu_ms, memory_peak_mb)


class Containers:
    """The containers of one pool, as what makes its workers (`Launches`)."""

    def __init__(self, setup: ContainerSetup) -> None:
        self._setup = setup
        self._free: list[_Container] = []
        self._all: set[_Container] = set()
        self._closed = False

    @property
    def alive(self) -> bool:
        """Whether it can be asked for workers."""
        return not self._closed

    @property
    def busy(self) -> bool:
        """Whether a container is not free."""
        return len(self._all) > len(self._free)

    async def start(self) -> None:
        """Start the first container. Raises `ContainerMissing`, `WorkerLost`."""
        self._free.append(await self._new())

    async def fork(
        self,
        channel: socket.socket,
        output_fd: int,
        *,
        spare: bool = True,
        run_folder: str = "",  # noqa: ARG002 - a container shows the workspace read-only
    ) -> WorkerProcess:
        """Make a worker in a container that holds no other. Raises `WorkerLost`, `ContainerMissing`."""
        if spare:
            await asyncio.sleep(SPARE_SECONDS)
        while self._free:
            container = self._free.pop()
            if not container.gone:
                break
        else:
            container = await self._new()
        return await container.fork(channel, output_fd)

    def retire(self) -> None:
        """No-op: one pool of containers shares nothing with another."""

    async def close(self) -> None:
        """End every container, and wait until they are gone."""
        self._closed = True
        await asyncio.gather(*(container.close() for container in list(self._all)))

    async def _new(self) -> _Container:
        if self._closed:
            raise WorkerLost("The containers are closed.")
        container = _Container(self._setup, self._take_back)
        self._all.add(container)
        try:
            await container.start()
        except BaseException:
            await asyncio.shield(container.close())
            raise
        if self._closed:
            await container.close()
            raise WorkerLost("The containers are closed.")
        return container

    def _take_back(self, container: _Container) -> None:
        if container.gone:
            self._all.discard(container)
        elif not self._closed:
            self._free.append(container)


class _Container:
    """One container, and the fork server in it."""

    def __init__(self, setup: ContainerSetup, done: Callable[[_Container], None]) -> None:
        self._setup = setup
        self._done = done
        self._name = new_name()
        self._running: EngineProcess | None = None
        self._link: HostLink | None = None
        self._receiving: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._said: asyncio.Future[Mapping[str, Any]] | None = None
        self._worker: _ContainedWorker | None = None
        self.gone = False

    async def start(self) -> None:
        """Run it and wait until it is ready. Raises `ContainerMissing` where its limits do not hold, `WorkerLost`."""
        setup = self._setup
        self._said = asyncio.get_running_loop().create_future()
        self._running = await EngineProcess.start(setup.engine, setup.command(self._name))
        self._link = self._running.link
        self._receiving = asyncio.create_task(self._receive_messages(self._link))
        self._link.send(config=setup.config.to_json(), layers=list(setup.engine.layers))
        try:
            async with asyncio.timeout(_START_SECONDS):
                said = await asyncio.shield(self._said)
        except TimeoutError:
            raise WorkerLost(f"A container was not ready within {_START_SECONDS:g} seconds.") from None
        if "hello" not in said:
            raise ContainerMissing(f"A container cannot confine its workers: {str(said.get('failed'))[:1000]}")
        check_limits(setup.engine, said["hello"])
        if setup.workspace is not None and said["hello"].get("workspace") is not True:
            _LOG.warning("Code in containers of %s reads workspace files by read_file() only.", setup.engine.title)

    async def fork(self, channel: socket.socket, output_fd: int) -> WorkerProcess:
        """Make a worker through its fork server. Raises `WorkerLost`."""
        assert self._link is not None
        self._said = asyncio.get_running_loop().create_future()
        self._worker = worker = _ContainedWorker(self)
        output_bytes = self._setup.config.standing.output_bytes
        try:
            self._link.ask_for_worker(channel, output_fd, worker.kill, output_bytes=output_bytes)
            async with asyncio.timeout(_FORK_SECONDS):
                said = await asyncio.shield(self._said)
        except TimeoutError:
            self.end()
            raise WorkerLost(f"A container made no worker within {_FORK_SECONDS:g} seconds.") from None
        except WorkerLost:
            self.end()
            raise
        except BaseException:
            worker.kill()
            raise
        if "forked" not in said:
            self.end()
            raise WorkerLost(f"A container could make no worker: {str(said.get('refused'))[:200]}")
        worker.pid = int(said["forked"])
        return worker

    def begin(self) -> None:
        """Announce that its worker is about to get a job."""
        if self._link is not None and not self.gone:
            self._link.begin()

    def kill_worker(self) -> None:
        """End the worker through its fork server."""
        if self._link is not None and not self.gone:
            self._link.send(kill=True)

    def kill_from_thread(self, pid: int) -> None:
        """End the worker of that number through its fork server, where the link can be used from a thread."""
        if self._link is not None:
            self._link.kill_from_thread(pid)

    def end(self) -> None:
        """End it now, without waiting for it."""
        self.gone = True
        if self._closing is None:
            self._closing = asyncio.create_task(self._end())

    async def close(self) -> None:
        """End it and wait until it is gone."""
        self.end()
        assert self._closing is not None
        await asyncio.shield(self._closing)

    async def _receive_messages(self, link: HostLink) -> None:
        try:
            while True:
                self._handle_message(await link.receive())
        except EOFError:
            pass
        except Exception as error:  # noqa: BLE001 - what it says may be wrong in any way
            _LOG.warning("A container was ended: it sent what is not a message (%s: %s).", type(error).__name__, error)
        finally:
            self._lost()
            self.end()

    def _handle_message(self, said: Mapping[str, Any]) -> None:
        if "exit" in said:
            self._worker_ended(said["exit"])
        elif self._said is not None and not self._said.done():
            self._said.set_result(said)
        else:
            raise ValueError("an unexpected message")

    def _worker_ended(self, said: Mapping[str, Any]) -> None:
        worker, self._worker = self._worker, None
        if worker is None:
            raise ValueError("the end of no worker")
        ended = reported_exit(said)
        if said["clean"] is not True:
            self.end()
        self._detach_worker(worker, ended)
        self._done(self)

    def _lost(self) -> None:
        """Fail all that wait for it, since it is gone."""
        self.gone = True
        if self._said is not None and not self._said.done():
            complaint = "it wrote nothing" if self._running is None else self._running.complaint()
            self._said.set_exception(WorkerLost(f"A container ended: {complaint}"))
            self._said.exception()
        worker, self._worker = self._worker, None
        if worker is not None:
            self._detach_worker(worker, ProcessExit())
        self._done(self)

    def _detach_worker(self, worker: _ContainedWorker, ended: ProcessExit) -> None:
        if self._link is not None:
            self._link.detach_worker()
        worker.has_ended(ended)

    async def _end(self) -> None:
        """Close its link, by which it ends itself; where that does not help, have the engine end it."""
        running, link = self._running, self._link
        if running is None or link is None:
            self._done(self)
            return
        link.close()
        try:
            async with asyncio.timeout(KILL_SECONDS):
                await running.wait()
        except TimeoutError:
            with suppress(OSError, TimeoutError):
                await self._setup.engine.remove(self._name)
            try:
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await running.wait()
            except TimeoutError:
                running.give_up()
                await running.wait()
        if self._receiving is not None:
            self._receiving.cancel()
        self._lost()
        running.close()


class _ContainedWorker(WorkerProcess):
    """A worker in a container: only that could measure or stop it, and it sees the workspace itself."""

    def __init__(self, container: _Container) -> None:
        self._container = container
        self._overdue: asyncio.TimerHandle | None = None
        self.pid = 0
        self.exit = asyncio.get_running_loop().create_future()

    def kill(self) -> None:
        """End it through the fork server; if that does not help within `KILL_SECONDS`, end the container."""
        if self.exit.done() or self._overdue is not None:
            return
        self._container.kill_worker()
        self._overdue = asyncio.get_running_loop().call_later(KILL_SECONDS, self._container.end)

    def kill_from_thread(self) -> None:
        """End it through the fork server."""
        self._container.kill_from_thread(self.pid)

    def begin(self) -> None:
        self._container.begin()

    def has_ended(self, ended: ProcessExit) -> None:
        """Take note of how it ended."""
        if self._overdue is not None:
            self._overdue.cancel()
        self.exit.set_result(ended)


def check_limits(engine: Engine, hello: Mapping[str, Any]) -> None:
    """Raise `ContainerMissing` for a limit that neither the engine nor the container's inside can hold."""
    inner = cast("Mapping[str, bool]", hello["limits"])
    for limit, held in (("memory", engine.memory_held), ("processes", engine.processes_held)):
        if not held and inner.get(limit) is not True:
            raise ContainerMissing(
                f"The limit of {limit} does not hold in containers of {engine.title}: neither the engine's own nor a "
                "resource limit inside was kept when tried. Use another engine or OCI runtime (CONTAINER_RUNTIME)."
            )
