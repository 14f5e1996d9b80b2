"""How a container is spoken with over a socket that is passed in, without one: its far end may be anything."""

from __future__ import annotations

import os
import signal
import socket
import sys

import pytest

from sealab.sandbox.container import engine
from sealab.sandbox.container.container_workers import reported_exit
from sealab.sandbox.container.host_link import DirectHostLink
from sealab.sandbox.container.messages import CONTROL_FD
from sealab.sandbox.errors import WorkerLost
from sealab.sandbox.wire.zygote_config import PACKETS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sockets are passed into containers on Linux only")


def test_a_fork_server_that_takes_no_word_is_asked_for_no_worker() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, PACKETS)
    channel, other = socket.socketpair()
    with ours, theirs, channel, other:
        link = DirectHostLink(ours)
        for _packet in range(10_000):
            link.send(kill=True)
        with pytest.raises(WorkerLost, match="takes no word any more"):
            link.ask_for_worker(channel, other.fileno(), lambda: None, output_bytes=1)


async def test_a_trial_that_ends_without_an_answer_is_not_waited_for_though_a_child_could_still_give_one() -> None:
    left_behind = f"""
import os, socket, sys, time
control = socket.socket(fileno={CONTROL_FD})
_said, (answer,), _flags, _address = socket.recv_fds(control, 100, 1)
pid = os.fork()
if pid == 0:
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    time.sleep(30)
else:
    print(pid, file=sys.stderr)
"""
    status, answer, child = await engine._passed_output_of([sys.executable, "-c", left_behind], seconds=20, cwd="/")
    os.kill(int(child), signal.SIGKILL)  # which fails, had it been waited for
    assert (status, answer) == (0, "")


@pytest.mark.parametrize("use", [-1, float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("name", ["cpu_ms", "memory_peak_mb"])
def test_a_container_that_says_its_run_gave_time_back_is_not_believed(name: str, use: float) -> None:
    said = {"status": 0, "cpu_ms": 5, "memory_peak_mb": 1, "clean": True}
    assert reported_exit(said).cpu_ms == 5
    with pytest.raises(ValueError, match="no process"):
        reported_exit({**said, name: use})
