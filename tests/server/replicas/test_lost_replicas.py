"""What is lost with a server, and what is not: sessions go on elsewhere, and a call fails once or not at all."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ...waiting import wait_until
from ..protocol.web.raw import MODERN, Answer, call, post
from ..upstream_tools.test_registry import configure
from .conftest import Sealab
from .test_sessions_on_replicas import report

HOLDS = """
import sys, time
from pathlib import Path
from mcp.server import MCPServer

server = MCPServer("held")

@server.tool()
def write(text: str) -> str:
    with Path(sys.argv[1]).open("a") as file:
        file.write(text)
    while text == "held" and not Path(sys.argv[2]).exists():
        time.sleep(0.1)
    return "written"

server.run()
"""


def said(url: str, code: str, session: str = "s", **more: Any) -> Answer:
    return post(url, call(code, session=session, **more), **MODERN)


def run(url: str, code: str, session: str = "s", **more: Any) -> dict[str, Any]:
    return report(said(url, code, session, **more))


def text_of(answer: Answer) -> str:
    return str(answer.message["result"]["content"][0]["text"])


@pytest.mark.timeout(240)
def test_the_session_of_a_killed_server_is_rebuilt_by_one_other_once_its_lease_has_run_out(
    sealab: Callable[..., Sealab],
) -> None:
    running = sealab(3)
    assert run(running.urls[0], "n = 41\ndef more():\n    return n + 1")["success"]
    owner = running.owner()
    assert owner.url == running.urls[0]
    running.execute("UPDATE sealab_replica SET leased_until = leased_until + 1000 WHERE address = %s", owner.address)
    owner.kill()
    others = running.others(owner)
    refused = said(others[0].url, "more()", timeout_seconds=1)
    assert refused.message["result"]["isError"]
    assert "cannot be reached now, so nothing of this call ran" in text_of(refused)
    running.end_lease(owner)
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(run, others[number % 2].url, "n += 1\nmore()") for number in range(8)]
        reports = [each.result() for each in asked]
    assert sorted(each["result"] for each in reports) == list(range(43, 51))
    assert [each["session"]["rebuilt"] for each in reports if "session" in each] == [True]
    assert running.owner() in others


@dataclass
class HeldCall:
    """A tool that says when it was called, and answers once it may."""

    folder: Path

    @property
    def written(self) -> str:
        file = self.folder / "written.txt"
        return file.read_text() if file.exists() else ""

    def go(self) -> None:
        (self.folder / "go").touch()

    def prepare(self, home: Path) -> None:
        (home / "held.py").write_text(HOLDS)
        arguments = [str(home / "held.py"), str(self.folder / "written.txt"), str(self.folder / "go")]
        configure(home, held={"command": sys.executable, "args": arguments, "approve": "never"})


@pytest.mark.timeout(240)
def test_a_call_at_work_on_a_server_that_is_killed_fails_once_and_is_not_made_again(
    sealab: Callable[..., Sealab], tmp_path: Path
) -> None:
    held = HeldCall(tmp_path)
    running = sealab(2, held.prepare)
    assert run(running.urls[0], "n = 1")["success"]
    owner, other = running.replicas
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(said, other.url, "n = 2\nawait call_tool('held.write', {'text': 'held'})")
        wait_until(lambda: held.written == "held")
        owner.kill()
        answer = asked.result()
    assert answer.message["result"]["isError"]
    assert "went away before it answered" in text_of(answer)
    assert "may stand" in text_of(answer)
    running.end_lease(owner)
    assert run(other.url, "n")["result"] == 1
    assert held.written == "held"


@pytest.mark.timeout(240)
def test_a_server_that_was_cut_off_ends_what_another_took_over_and_never_answers_with_it(
    sealab: Callable[..., Sealab], tmp_path: Path
) -> None:
    held = HeldCall(tmp_path)
    running = sealab(2, held.prepare)
    assert run(running.urls[0], "n = 1")["success"]
    owner, other = running.replicas
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(said, owner.url, "n = 100\nawait call_tool('held.write', {'text': 'held'})\nn")
        wait_until(lambda: held.written == "held")
        os.kill(owner.process.pid, signal.SIGSTOP)
        try:
            assert run(other.url, "n += 1\nn", timeout_seconds=50)["result"] == 2
            held.go()
        finally:
            os.kill(owner.process.pid, signal.SIGCONT)
        stale = asked.result()
    assert stale.message["result"]["isError"], stale.message
    assert "has moved to another server" in text_of(stale)
    # Both now agree on who has it.
    assert run(owner.url, "n += 1\nn", timeout_seconds=50)["result"] == 3
    assert run(other.url, "n")["result"] == 3


@pytest.mark.timeout(240)
def test_a_server_that_stops_hands_its_sessions_on_and_no_call_fails(sealab: Callable[..., Sealab]) -> None:
    running = sealab(2, SEALAB_DRAIN_SECONDS="20")
    owner, other = running.replicas
    assert run(owner.url, "n = 1")["success"]
    owner.process.terminate()
    for expected in range(2, 12):
        assert run(other.url, "n += 1\nn", timeout_seconds=50)["result"] == expected
    owner.process.wait(20)
    assert [row[0] for row in running.execute("SELECT address FROM sealab_replica")] == [other.address]


@pytest.mark.timeout(240)
def test_a_session_that_cannot_be_rebuilt_says_that_it_was_lost(sealab: Callable[..., Sealab]) -> None:
    running = sealab(2, SEALAB_JOURNAL="off")
    owner, other = running.replicas
    assert run(owner.url, "n = 1")["success"]
    owner.kill()
    running.end_lease(owner)
    after = run(other.url, "'n' in globals()", timeout_seconds=50)
    assert after["result"] is False
    assert "had ended before this call" in after["session_ended"]
