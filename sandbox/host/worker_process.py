"""What the host sees of a worker process, whatever made it: a zygote beside it, or a fork server in a container."""

from __future__ import annotations

import asyncio
import socket
from typing import Protocol

from ..wire.zygote_packets import ProcessExit


class WorkerProcess:
    """A worker process as its launcher handed it over; what cannot be seen or done from outside stays as it is here.

    `pid` is its process id in its own namespace; `exit` says how it ended, once it has.
    """

    __slots__ = ()

    pid: int
    exit: asyncio.Future[ProcessExit]

    @property
    def code_pid(self) -> int | None:
        """The process id, on this machine, of the process that runs the code; None where that cannot be seen."""
        return None

    def kill(self) -> None:
        """End it now."""
        raise NotImplementedError

    def kill_from_thread(self) -> None:
        """End it now from whatever thread, where that can be done; else do nothing. `kill` follows in the loop."""

    def close(self) -> None:
        """End it, and give back everything that belonged to it; called once."""
        self.kill()

    def begin(self) -> None:
        """Prepare for a job that is about to be sent: the output begins anew."""

    async def see_workspace_anew(self) -> None:
        """Show it what was changed in the workspace since it last looked. Raises `WorkerLost` where that fails."""

    def cpu_ms(self) -> float | None:
        """Return how much CPU time it has used, or None where that cannot be seen."""
        return None

    def computes(self) -> bool | None:
        """Return whether it computes at the moment, or None where that cannot be seen."""
        return None

    def suspend(self) -> bool:
        """Stop it until `resume`; return False where that cannot be done."""
        return False

    def has_stopped(self) -> bool:
        """Return whether no thread of it or of a process below it can run before `resume`, after `suspend`."""
        return False

    def resume(self) -> None:
        """Let it compute again."""

    def is_gone(self) -> bool:
        """Return whether no process of it runs any more, whether or not `exit` says so. Not called after `close`."""
        return self.exit.done()


class Launches(Protocol):
    """What makes workers for a pool. One that ended does not start again; its owner makes another."""

    @property
    def alive(self) -> bool:
        """Whether it can be asked for workers."""
        ...

    @property
    def busy(self) -> bool:
        """Whether a worker that it made runs, or is being made."""
        ...

    async def start(self) -> None:
        """Get ready. Raises `SandboxError` when it cannot make workers as required."""

    async def fork(
        self, channel: socket.socket, output_fd: int, *, spare: bool = True, run_folder: str = ""
    ) -> WorkerProcess:
        """Make a worker that holds the other ends of channel and output, at leisure if it is a spare.

        It writes to the workspace through the folder of the name `run_folder`, where it has one.

        Raises `WorkerLost`.
        """
        ...

    def retire(self) -> None:
        """Leave all further workers, and whatever both share, to another one."""

    async def close(self) -> None:
        """End everything it made, and wait until it is gone."""
