"""What is decided once, in the zygote, about how each of its workers will be confined."""

from __future__ import annotations

from dataclasses import dataclass

from ..job import Isolation
from . import libc
from .system_calls.seccomp import SyscallFilter

SIGNALLED = 128
"""What the first process of a pid namespace adds to the number of the signal that ended its worker."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How to confine one worker: made once per zygote, used by every fork.

    `layers` are the names of the layers that each worker reports once they are active. Every step must succeed in the
    worker, or the worker ends. `own_init` puts a process between the zygote and the worker, the first of the pid
    namespace: signals, orphans and threads then behave in the worker as anywhere.
    `own_network` says that each worker has a network namespace of its own. Else it shares the zygote's, which is as
    empty: no interface is up, no process has a capability over it, and the filter allows no call that makes a socket
    with a name (`self_test` tries). To make and remove one takes the kernel as long as all other namespaces together.
    `has_run_folders` says that the root shows the folders of workers, and `overlays` that each worker that has one may
    write to the workspace; see `overlay`.
    `seen_by_owner` says that those are open to the programs of the user who runs the server, who is not root: they may
    be traced, by processes that can name them, and so by no worker.
    `ruleset_fd` is the Landlock domain, made ahead where it is the same for all workers, and so are `calls`
    (`confine_worker.calls`). `notes` say, in sentences, what works less well on this machine, though nothing is less
    safe.
    """

    isolation: Isolation
    layers: tuple[str, ...]
    filter: SyscallFilter | None = None
    landlock_abi: int = 0
    ruleset_fd: int | None = None
    calls: tuple[libc.Call, ...] = ()
    readable: tuple[str, ...] = ()
    changeable: tuple[str, ...] = ()
    namespaced: bool = False
    own_network: bool = True
    proc_fd: int = -1
    uid: int = 0
    gid: int = 0
    scratch_bytes: int = 0
    own_init: bool = False
    has_run_folders: bool = False
    overlays: bool = False
    seen_by_owner: bool = False
    notes: tuple[str, ...] = ()

    def status_of_worker(self, status: int) -> int:
        """Return how the worker ended, as `subprocess` does, by how the process ended that the zygote forked."""
        return SIGNALLED - status if self.own_init and status > SIGNALLED else status
