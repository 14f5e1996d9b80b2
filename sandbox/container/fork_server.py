"""The fork server that is a container's first process: prepares full Python once, then forks a worker for each run.

It does in a container what the zygote does beside the server, and forks the same workers; the host asks for them over
a link (see `link`). When that ends, so does this process, and with it, as it is the first, everything in the container.

One worker runs at a time. After it, everything is cleaned and looked at; if anything is left, or nothing kept the
worker from hiding something, the host is asked to replace the container.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import stat
import sys
from dataclasses import replace
from typing import NoReturn, cast

from .. import confine
from ..confine import limits
from ..confine.limits import AddressSpace
from ..errors import SandboxError
from ..guest.runtime import Dialect
from ..job import Isolation, Json
from ..wire import output
from ..wire.zygote_config import ZygoteConfig
from ..worker import runner
from ..worker.immortal import immortalize
from ..worker.runner import dialect_of
from . import limit_checks, messages
from .cleaning import ContainerState
from .link import DirectLink, Link, Request, StreamLink


def main() -> NoReturn:
    """Run as the first process of a container until its standard input ends."""
    limits.prefer_for_oom_kill()
    dialect = dialect_of(Isolation.CONTAINER)
    dialect.prepare((("", "matplotlib.pyplot"),))  # it may begin this process anew, so nothing has been read yet
    link: Link = DirectLink(socket.socket(fileno=messages.CONTROL_FD)) if _was_passed_in() else StreamLink()
    try:
        _ForkServer(link, dialect).work()
    except (SandboxError, OSError) as error:
        link.send(failed=str(error))
        link.flush()
        raise SystemExit(1) from None


def _was_passed_in() -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(messages.CONTROL_FD).st_mode)
    except OSError:
        return False


class _ForkServer:
    def __init__(self, link: Link, dialect: Dialect) -> None:
        self._link = link
        self._room = ContainerState()
        self._worker: tuple[int, int] | None = None
        given = link.first()
        self._config = ZygoteConfig.from_json(cast("str", given["config"]))
        probe = confine.probe()
        held = limit_checks.inner_limits()
        runner.warm(dialect)
        address_space = AddressSpace()
        readable = os.access("/workspace", os.R_OK | os.X_OK)
        plan = confine.prepare(
            probe,
            isolation=Isolation.CONTAINER,
            required=self._config.required,
            workspace="/workspace" if readable else None,
            cpus=self._config.cpus,
        )
        confine.prove(plan)
        plan = replace(plan, layers=(*plan.layers, *cast("list[str]", given["layers"])))
        self._plan = plan
        if not plan.namespaced:
            os.chdir("/tmp")  # noqa: S108 - the container's own
        self._can_be_clean = plan.filter is not None
        prepared = runner.Worker(dialect)
        standing = self._config.standing
        output_bytes = prepared.output.mapped_bytes(output.buffer_bytes(standing.output_bytes))
        bounds = limits.bequeath(standing, address_space.bytes(), output_bytes, native=True)
        self._prepared = runner.Prepared(dialect, plan, bounds, prepared)
        immortalize()
        self._room.clean()
        gc.collect()
        gc.freeze()
        link.send(hello=_hello(held, plan, readable=readable))

    def work(self) -> NoReturn:
        while True:
            poll = select.poll()
            self._link.watch(poll)
            if self._worker is not None:
                poll.register(self._worker[1], select.POLLIN)
            worker = self._worker
            ready = dict(poll.poll())
            for request in self._link.requests(ready):
                self._handle_request(request)
            if worker is not None and worker[1] in ready:
                self._reap(*worker)

    def _handle_request(self, request: Request) -> None:
        if "fork" in request.words:
            self._fork(request.descriptors)
        elif self._worker is not None and request.words.get("kill") in (True, self._worker[0]):
            os.kill(self._worker[0], signal.SIGKILL)

    def _fork(self, descriptors: tuple[int, ...]) -> None:
        assert self._worker is None
        channel_fd, output_fd = descriptors
        try:
            pid = confine.fork(self._plan)
            if pid == 0:
                runner.serve(self._prepared, channel_fd, output_fd)
        except OSError as error:
            self._link.finish()
            self._link.send(refused=str(error))
            return
        finally:
            os.close(channel_fd)
            os.close(output_fd)
        self._worker = pid, os.pidfd_open(pid)
        self._link.send(forked=pid)

    def _reap(self, pid: int, pidfd: int) -> None:
        """Clean up after a worker that ended, and report how it ended."""
        self._link.finish()
        _pid, status, usage = os.wait4(pid, 0)
        os.close(pidfd)
        self._worker = None
        clean = self._room.clean() and self._can_be_clean
        self._link.send(
            exit={
                "status": os.waitstatus_to_exitcode(status),
                "cpu_ms": (usage.ru_utime + usage.ru_stime) * 1000,
                "memory_peak_mb": usage.ru_maxrss / 1024,
                "clean": clean,
            }
        )


def _hello(held: dict[str, bool], plan: confine.Plan, *, readable: bool) -> Json:
    return {
        "limits": dict(held),
        "workspace": readable,
        "python": ".".join(map(str, sys.version_info[:3])),
        "notes": list(plan.notes),
    }
