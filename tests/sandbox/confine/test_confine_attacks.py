"""What only an attacker calls, called for real: run it where it may go wrong (make adversarial WRAPPER=…)."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from sealab.sandbox.confine.system_calls import allow_list

from .test_confine import confined, told

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the kernel layers exist on Linux only"),
    pytest.mark.adversarial,
]


@pytest.fixture(params=["restricted", "process"])
def isolation(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["as_root", "as_user"])
def user(request):
    return request.param


def test_every_deadly_call_ends_the_worker(isolation, user):
    its_policy = allow_list.RESTRICTED if isolation == "restricted" else allow_list.PROCESS
    names = sorted(its_policy.deadly)
    code = f"""
        name = {names!r}[turn]
        if name in numbers.ARCHITECTURE.numbers:
            tell(name)
            syscall(numbers.number(name), -1, -1, -1, -1, -1, -1)
            tell("survived " + name)
    """
    answer = confined(code, isolation=isolation, user=user, workers=len(names))
    assert set(answer["told"]) <= set(names)
    killed = {-signal.SIGSYS, 128 + signal.SIGSYS}
    assert {s for s, name in zip(answer["statuses"], names, strict=True) if name in answer["told"]} <= killed


def test_every_other_call_is_refused_before_the_kernel_looks_at_it(isolation, user):
    """The inventory: with senseless arguments, only allowed calls give another error than that of the filter.

    335 and 336 are uretprobe and uprobe of x86-64, which the kernel takes from probed code alone: it lets them pass
    every filter and answers others with SIGILL.
    """
    its_policy = allow_list.RESTRICTED if isolation == "restricted" else allow_list.PROCESS
    code = f"""
        import errno
        allowed = {sorted(its_policy.allowed)!r}
        skipped = {{335, 336}} | {{numbers.ARCHITECTURE.numbers.get(name) for name in (*allowed, *{sorted(its_policy.deadly)!r})}}
        reached = [n for n in range(470) if n not in skipped
                   and syscall(n, -1, -1, -1, -1, -1, -1) not in (-errno.ENOSYS, -errno.EPERM)]
        tell(reached)
    """
    assert told(code, isolation=isolation, user=user) == [[]]


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="x32 is a table of x86-64")
def test_the_x32_table_ends_the_worker(isolation, user):
    answer = confined("syscall(0x40000000 | 39)\ntell('survived')", isolation=isolation, user=user)
    assert answer["told"] == []
    assert answer["status"] in {-signal.SIGSYS, 128 + signal.SIGSYS}


def test_a_worker_that_stopped_itself_is_ended_from_outside(user):
    code = """
        tell("stopping")
        signal.setitimer(signal.ITIMER_REAL, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        tell("went on")
    """
    answer = confined(code, isolation="process", user=user, kill_after=0.5)
    assert answer["told"] == ["stopping"]
    assert answer["status"] == -signal.SIGKILL


def test_no_way_out_of_the_root_is_left(user):
    code = """
        os.makedirs("cr")
        tell(attempt(lambda: open("/../../../../etc/passwd")))
        here = os.open("/", os.O_PATH)
        tell(attempt(lambda: os.open("../../../etc/passwd", os.O_RDONLY, dir_fd=here)))
        os.symlink("/proc/1/root/etc/passwd", "link")
        tell(attempt(lambda: open("link")))
        os.chroot("cr")
        tell("survived")
    """
    answer = confined(code, isolation="process", user=user)
    assert answer["told"] == ["FileNotFoundError"] * 3
    assert answer["status"] == 128 + signal.SIGSYS
