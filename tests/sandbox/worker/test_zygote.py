"""The zygote: it knows no secret, holds nothing of the server's, and takes its workers with it when it ends."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from sealab.sandbox.errors import LevelMissing
from sealab.sandbox.host import zygote_launcher
from sealab.sandbox.host.pool import Pool, PoolSettings
from sealab.sandbox.wire.zygote_packets import PacketKind, packed, read
from sealab.sandbox.worker.zygote import _Zygote

from ...processes import alive, children
from ...waiting import until
from ..conftest import spare

# They look at the processes that they started.
pytestmark = pytest.mark.usefixtures("own_children")

needs_sight = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root may look into a process that is not dumpable"
)


@needs_sight
async def test_it_has_no_environment_but_its_hash_seed_and_nothing_that_the_server_holds(monkeypatch):
    monkeypatch.setenv("SEALAB_TEST_SECRET", "canary-4711")
    with socket.socket() as listening, tempfile.TemporaryFile() as file:
        for mine in (listening, file):
            os.set_inheritable(mine.fileno(), True)
        async with Pool(PoolSettings(spares=1)) as pool:
            await pool.ready()
            mine = {os.readlink(f"/proc/self/fd/{handle.fileno()}") for handle in (listening, file)}
            for pid in (pool._zygotes.newest.pid, pool._idle[0].pid):
                assert environment_of(pid).startswith(b"PYTHONHASHSEED=")
                assert environment_of(pid).count(b"\0") == 1
                held = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
                assert not held & mine


def environment_of(pid):
    return Path(f"/proc/{pid}/environ").read_bytes()


@needs_sight
async def test_a_worker_holds_its_channel_and_nothing_else(pool):
    pid = (await spare(pool)).pid
    held = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    assert len(held) == 1
    assert held[0].startswith("socket:")


async def test_it_ends_with_its_control_socket_and_takes_its_workers_with_it(own_pool):
    workers = children() - {own_pool._zygotes.newest.pid}
    assert workers
    process = own_pool._zygotes.newest._process
    own_pool._zygotes.newest._control.shutdown(socket.SHUT_WR)
    await until(lambda: not any(alive(pid) for pid in workers))
    assert await asyncio.to_thread(process.wait) == 0


async def test_its_one_thread_forks(pool):
    assert psutil.Process(pool._zygotes.newest.pid).num_threads() == 1


async def test_it_reports_how_its_workers_ended(pool):
    worker = await spare(pool)
    os.kill(worker.pid, signal.SIGKILL)
    ended = await worker._forked.exit
    assert ended.status == -signal.SIGKILL
    assert ended.memory_peak_mb > 1


async def test_nothing_it_leaves_is_a_zombie(pool):
    taken = [await pool._take_worker() for _ in range(5)]
    for worker in taken:
        worker.end()
    await until(lambda: not any(Path(f"/proc/{worker.pid}").exists() for worker in taken))


async def test_layers_that_do_not_hold_are_refused_at_the_start(monkeypatch):
    boot = "from sealab.sandbox.confine import self_test;self_test.self_test=lambda plan:('file','socket');"
    monkeypatch.setattr(zygote_launcher, "_BOOT", zygote_launcher._BOOT.replace("from sealab", boot + "from sealab", 1))
    async with Pool(PoolSettings(spares=1)) as pool:
        with pytest.raises(LevelMissing, match="still could: file, socket"):
            await pool.ready()


def test_a_zygote_without_descriptors_refuses_the_worker_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left() -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        zygote = _Zygote.__new__(_Zygote)
        zygote._connection, zygote._plan = theirs, SimpleNamespace(overlays=True)  # type: ignore[assignment]
        socket.send_fds(ours, [packed(PacketKind.FORK, 7, text="folder")], [0, 1])
        monkeypatch.setattr("sealab.sandbox.worker.zygote.socket.socketpair", none_left)
        zygote._handle_request()
        answer = read(ours.recv(1000))
    assert (answer.kind, answer.number) == (PacketKind.REFUSED, 7)
    assert answer.text == f"[Errno {errno.EMFILE}] {os.strerror(errno.EMFILE)}"
