"""The driver of `make chaos` finds a server that is wrong, and nothing in one that is well; nothing is hurt here."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server.conftest import SEALAB

from . import drive, load
from .client import MODERN, Answer, Client
from .faults import FAULTS
from .served import another_uptime, uptime_can_differ

PLANTED = [sys.executable, "-P", str(Path(__file__).with_name("planted.py"))]
LOADS = (load.many, load.skill, load.file, load.privacy)


def finds_in(command: list[str]) -> str:
    record = drive.Record()
    with drive.place_of("sqlite", command) as place:
        drive.Round(place, "8", record, "test").run(3, FAULTS[:1], LOADS)
    assert sum(record.calls["trivial"].values()) >= 5
    assert record.reread
    return "\n".join(record.finds)


@pytest.mark.timeout(300)
def test_a_server_that_is_well_has_no_find() -> None:
    assert not finds_in(SEALAB)


@pytest.mark.timeout(300)
def test_wrong_results_lost_skills_lost_turns_and_lost_descriptors_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drive, "QUIET_SECONDS", 2.0)
    finds = finds_in(PLANTED)
    for what in ("a wrong answer", "lost: load_skill", "turns:", "descriptors"):
        assert what in finds


@pytest.mark.timeout(300)
def test_the_wall_clock_of_a_server_can_be_set() -> None:
    with drive.place_of("sqlite") as place:
        place.served.start()
        client = Client(lambda: place.served.url, MODERN, "dora")
        ids = []
        for seconds in (0, 86_400, 0):
            place.served.set_clock(seconds)
            ids.append(client.run("1").content["run_id"])
        place.served.end(signal.SIGTERM)
    assert ids[0] < ids[2] < ids[1]  # they sort by the time


def test_a_process_can_have_another_uptime() -> None:
    if not uptime_can_differ():
        pytest.skip("no time namespace can be made on this machine")
    with another_uptime(2_000_000_000) as launcher:
        said = subprocess.check_output([*launcher, sys.executable, "-c", "import time; print(time.monotonic())"])
    assert 2_000_000_000 <= float(said) < 2_000_000_100


@pytest.mark.parametrize(
    "answer",
    [
        Answer("silent", "no answer"),
        Answer("http 500", "Internal Server Error"),
        Answer("tool error", "save_skill failed by a fault of sealab itself. Its log says more."),
        Answer("rpc error", "Traceback (most recent call last): …"),
        Answer("tool error", "KeyError: 7"),
    ],
    ids=lambda answer: answer.status,
)
def test_what_is_no_honest_answer_is_found(answer: Answer) -> None:
    assert answer.dishonest()


def test_a_sentence_is_an_honest_answer() -> None:
    assert not Answer("tool error", "There is no skill 'a'. list_skills names those that there are.").dishonest()
    assert not Answer("busy", "Too many runs wait. Try again in 5 seconds.").dishonest()
