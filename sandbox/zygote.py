"""The zygote: a process that imports everything once, holds no secret, and forks workers when told to.

`python -I -S` starts it with an empty environment and no descriptor but its control socket. It has one thread and
never reads a byte that a guest wrote: the host sends a request with two descriptors (the worker's end of its channel,
its output buffer), the zygote forks, answers with a pidfd (pidfd_open(2)), and later tells how the worker ended
(wait4(2)). At the end of its control socket it ends itself, and every worker with it.

Control messages are one JSON object each, in packets: down `{id, rehearse}`; up `{hello}`, `{id, pid, behind_init}`,
`{id, refused}` or `{id, status, cpu_ms, memory_peak_mb}` and, before it gives up, `{failed, code}`.
"""

from __future__ import annotations

import array
import gc
import json
import os
import select
import socket
import sys
from typing import NoReturn, cast

from . import confine, limits, worker
from .dialect import dialect_of
from .errors import SandboxError
from .guest import GUEST
from .huge_pages import HeapMap
from .immortal import immortalize
from .limits import AddressSpace
from .orders import PACKET_BYTES_MAX, Orders
from .run import Isolation

_ORPHAN_CHECK_MS = None if sys.platform == "linux" else 1000


def main(control_fd: int, orders: str) -> NoReturn:
    """Be a zygote until the control socket ends."""
    os.environ.clear()
    control = socket.socket(fileno=control_fd)
    given = Orders.from_json(orders)
    GUEST.wider = tuple(given.wider)
    try:
        _Zygote(control, given).work()
    except SandboxError as error:
        control.send(json.dumps({"failed": str(error), "code": error.code}).encode())
        raise SystemExit(1) from None


class _Zygote:
    def __init__(self, control: socket.socket, orders: Orders) -> None:
        self._control = control
        self._children: dict[int, tuple[int, int]] = {}
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        probe = confine.probe()
        dialect = dialect_of(orders.isolation)
        dialect.prepare()
        worker.warm(dialect)
        address_space = AddressSpace()
        heap = HeapMap()
        own = worker.starting_namespace(dialect)
        self._plan = confine.prepare(
            probe,
            isolation=orders.isolation,
            required=orders.required,
            workspace=orders.workspace,
            group_limits=orders.group_limits,
            cpus=orders.cpus,
        )
        limits.require_settable()
        dialect.seal()
        confine.prove(self._plan)
        if orders.isolation is Isolation.RESTRICTED:  # full Python may load extensions that count in their own way
            immortalize()
        self._prepared = worker.Prepared(dialect, self._plan, orders.standing, address_space.bytes(), own)
        # What exists now never becomes garbage; frozen, no collection after a fork touches (and so copies) it.
        gc.collect()
        gc.freeze()
        heap.collapse()
        self._tell(hello=os.getpid())

    def work(self) -> NoReturn:
        while True:
            for descriptor, _event in self._poll.poll(_ORPHAN_CHECK_MS):
                if descriptor == self._control.fileno():
                    self._obey()
                else:
                    self._bury(descriptor)

    def _obey(self) -> None:
        try:
            data, ancillary, _flags, _address = self._control.recvmsg(PACKET_BYTES_MAX, socket.CMSG_SPACE(8))
        except ConnectionError:
            data, ancillary = b"", []
        if not data:
            os._exit(0)
        request = json.loads(data)
        number = cast("int", request["id"])
        given = array.array("i")
        for _level, _type, descriptors in ancillary:
            given.frombytes(descriptors)
        channel_fd, output_fd = given
        try:
            pid = confine.fork(self._plan)
        except OSError as error:
            self._tell(id=number, refused=str(error))
        else:
            if pid == 0:
                worker.serve(self._prepared, channel_fd, output_fd, rehearse=request["rehearse"])
            self._announce(number, pid)
        finally:
            os.close(channel_fd)
            os.close(output_fd)

    def _announce(self, number: int, pid: int) -> None:
        pidfd = os.pidfd_open(pid)
        self._children[pidfd] = (pid, number)
        self._poll.register(pidfd, select.POLLIN)
        message = json.dumps({"id": number, "pid": pid, "behind_init": self._plan.own_init}).encode()
        socket.send_fds(self._control, [message], [pidfd])

    def _bury(self, pidfd: int) -> None:
        pid, number = self._children.pop(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        _pid, status, usage = os.wait4(pid, 0)
        self._tell(
            id=number,
            status=self._plan.status_of_worker(os.waitstatus_to_exitcode(status)),
            cpu_ms=(usage.ru_utime + usage.ru_stime) * 1000,
            memory_peak_mb=usage.ru_maxrss / 1024,
        )

    def _tell(self, **message: object) -> None:
        self._control.send(json.dumps(message).encode())
