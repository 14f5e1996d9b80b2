"""Skills that run at set times: when, once each, for whom, and what becomes of what does not go as it should."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sealab.server.app import App, running
from sealab.server.base.errors import RequestRefused
from sealab.server.base.home import Home
from sealab.server.base.identity import Identity, Right
from sealab.server.governance.caller import LOCAL, Caller
from sealab.server.governance.scopes import of_principal
from sealab.server.use_cases.skills import use_cases as skills
from sealab.server.use_cases.skills.schedules import (
    LATE_SECONDS,
    RETRY_SECONDS,
    ListedSchedule,
    ScheduleRequest,
    Schedules,
)
from sealab.server.use_cases.skills.use_cases import SaveRequest

from ...waiting import until
from ..conftest import settings_of

WRITES = "def note(word: str = 'x') -> str:\n    'Note a word.'\n    with open('notes', 'a') as file:\n        file.write(word)\n    return word"
FAILS = "def fails() -> None:\n    'Fail.'\n    raise ValueError('no')"
MORNING = "daily 07:00 UTC"


class Clock:
    """The time of the schedules of a test."""

    def __init__(self) -> None:
        self.moment = 1_800_000_000.0

    def __call__(self) -> float:
        return self.moment

    def to(self, told: float | None, late: float = 1.0) -> None:
        assert told is not None
        self.moment = told + late


@asynccontextmanager
async def opened(home: Path, clock: Clock, *, serves: bool = True, **env: str) -> AsyncIterator[tuple[App, Schedules]]:
    """Give an app whose schedules have that clock, and fire only when a test has them do so."""
    async with running(settings_of(home, {"SEALAB_WORKERS_SPARE": "0", **env}), Home(home), serves=serves) as app:
        app.background.work.fire = None
        yield app, replace(app.schedules, now=clock)


async def save(app: App, code: str, name: str) -> None:
    await skills.save(app.skills, SaveRequest(name, code))


async def the_one(schedules: Schedules) -> ListedSchedule:
    (found,) = (await schedules.listed(LOCAL))["schedules"]
    return found


async def following(schedules: Schedules, name: str = "daily") -> float:
    stored = await schedules.known(name, LOCAL)
    assert stored is not None
    assert stored.next_time is not None
    return stored.next_time


async def fired(app: App, schedules: Schedules, clock: Clock, name: str = "daily") -> str:
    """Have the next time of a schedule come, wait for its run to end, and return how it ended."""
    clock.to(await following(schedules, name))
    await schedules.fire()
    stored = await schedules.known(name, LOCAL)
    assert stored is not None
    assert stored.last_run is not None
    state = await app.background.state(stored.last_run, None, wait_seconds=60)
    assert state.execution is not None
    await schedules.fire()
    return state.execution.report["status"]


async def test_a_skill_runs_at_its_times_and_the_list_says_last_and_next(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, clock) as (app, schedules):
        await save(app, WRITES, "note")
        added = await schedules.add(ScheduleRequest("daily", "note", "every day 07:00 Europe/Berlin", {"word": "ok "}))
        assert (added["next"], added["version"], added["state"]) == ("2027-01-16T07:00:00+01:00", 1, "active")
        await schedules.fire()
        assert "last" not in await the_one(schedules)
        assert await fired(app, schedules, clock) == "ok"
        told = await the_one(schedules)
        assert told["last"]["status"] == "ok"
        assert told["next"] == "2027-01-17T07:00:00+01:00"
        assert (tmp_path / "workspace" / "notes").read_text() == "ok "


async def test_each_time_fires_once_on_several_servers(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, clock) as (app, schedules), opened(tmp_path, clock) as (_, others):
        await save(app, WRITES, "note")
        await schedules.add(ScheduleRequest("daily", "note", MORNING))
        for _ in range(3):
            clock.to(await following(schedules))
            await asyncio.gather(*(each.fire() for each in (schedules, others) * 4))
            await until(lambda: _ended(schedules))
        assert (tmp_path / "workspace" / "notes").read_text() == "xxx"


async def _ended(schedules: Schedules) -> bool:
    await schedules.fire()
    return (await the_one(schedules))["last"]["status"] == "ok"


async def test_a_new_version_waits_for_a_yes_and_a_changed_one_stops(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, clock) as (app, schedules):
        await save(app, WRITES, "note")
        await schedules.add(ScheduleRequest("daily", "note", MORNING))
        await save(app, WRITES.replace("write(word)", "write('new')"), "note")
        assert "version 2 of note waits for a yes" in (await the_one(schedules))["waits"]
        assert await fired(app, schedules, clock) == "ok"
        assert (await schedules.add(ScheduleRequest("daily")))["version"] == 2
        assert "waits" not in await the_one(schedules)
        assert await fired(app, schedules, clock) == "ok"
        assert (tmp_path / "workspace" / "notes").read_text() == "xnew"
        await skills.delete(app.skills, "note")
        clock.to(await following(schedules))
        await schedules.fire()
        told = await the_one(schedules)
        assert told["state"] == "paused"
        assert "was deleted" in told["why_not"]


@pytest.mark.parametrize(("overlap", "runs"), [("skip", 1), ("wait", 1), ("start", 2)])
async def test_a_time_at_which_the_last_run_has_not_ended(tmp_path: Path, overlap: Any, runs: int) -> None:
    clock = Clock()
    async with opened(tmp_path, clock, serves=False) as (app, schedules):  # which takes no run, so none ends
        await save(app, WRITES, "note")
        await schedules.add(ScheduleRequest("daily", "note", MORNING, overlap=overlap))
        first = await following(schedules)
        for _ in range(2):
            clock.to(await following(schedules))
            await schedules.fire()
        listed = app.journal.background().listed(most=10)
        assert len(listed) == runs
        told = await the_one(schedules)
        assert ("so that time was skipped" in told.get("why_not", "")) == (overlap == "skip")
        assert await following(schedules) == first + 86_400 * (1 if overlap == "wait" else 2)


@pytest.mark.parametrize(("missed", "runs"), [("run", 1), ("skip", 0)])
async def test_a_time_at_which_no_server_ran(tmp_path: Path, missed: Any, runs: int) -> None:
    clock = Clock()
    async with opened(tmp_path, clock, serves=False) as (app, schedules):
        await save(app, WRITES, "note")
        await schedules.add(ScheduleRequest("daily", "note", MORNING, missed=missed))
        clock.to(await following(schedules), late=3 * 86_400 + LATE_SECONDS)
        await schedules.fire()
        await schedules.fire()
        assert len(app.journal.background().listed(most=10)) == runs
        assert ("no server ran at" in (await the_one(schedules)).get("why_not", "")) == (missed == "skip")


async def test_a_failure_is_tried_again_as_said_and_three_in_a_row_pause_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    async with opened(tmp_path, clock) as (app, schedules):
        await save(app, FAILS, "fails")
        await schedules.add(ScheduleRequest("daily", "fails", MORNING, retries=1))
        assert await fired(app, schedules, clock) == "error"
        assert await following(schedules) == clock() + RETRY_SECONDS
        assert await fired(app, schedules, clock) == "error"
        assert (await following(schedules)) % 86_400 == 7 * 3600
        assert (await the_one(schedules))["failures"] == 2
        assert await fired(app, schedules, clock) == "error"
        told = await the_one(schedules)
        assert (told["state"], told["next"]) == ("paused", None)
        assert "it is paused, since 3 runs in a row failed" in told["why_not"]
        assert [record.message for record in caplog.records if "daily failed" in record.message][-1:] != []
        assert (await schedules.add(ScheduleRequest("daily")))["state"] == "active"
        assert "failures" not in await the_one(schedules)


def _token(app: App, scopes: str) -> Caller:
    from sealab.skills_db.tokens import TokenStore

    stored = TokenStore(app.database()).put(
        scopes.ljust(64, "0"), name="a", tenant="default", principal="ada", scopes=scopes.split(), now=0, expires=None
    )
    rights = frozenset(Right(each) for each in scopes.split())
    return Caller(of_principal("ada"), identity=Identity("default", "ada", rights, stored.id))


async def test_rights_are_judged_anew_and_a_revoked_token_stops_it(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, clock, SEALAB_AUTH="tokens") as (app, schedules):
        await save(app, WRITES, "note")
        ada = await asyncio.to_thread(_token, app, "run skills:read skills:write files")
        await schedules.add(ScheduleRequest("daily", "note", MORNING, caller=ada))
        assert (await schedules.listed(ada))["count"] == 1
        assert await fired(app, schedules, clock) == "ok"
        eve = Caller(of_principal("eve"), identity=Identity("default", "eve", ada.identity.rights))
        assert (await schedules.listed(eve))["count"] == 0
        for act in (
            schedules.remove("daily", eve),
            schedules.add(ScheduleRequest("daily", "note", MORNING, caller=eve)),
        ):
            with pytest.raises(RequestRefused):
                await act
        from sealab.skills_db.tokens import TokenStore

        assert await asyncio.to_thread(TokenStore(app.database()).revoke, ada.identity.credential, 1.0)
        clock.to(await following(schedules))
        await schedules.fire()
        told = await the_one(schedules)
        assert told["state"] == "paused"
        assert f"The token {ada.identity.credential} of ada was revoked" in told["why_not"]
        assert told["last"]["status"] == "ok"


async def test_what_is_stored_of_a_schedule_tells_nothing_and_goes_with_its_person(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, clock, serves=False) as (app, schedules):
        await save(app, WRITES, "note")
        await schedules.add(ScheduleRequest("daily", "note", MORNING, {"word": "secret-word"}))
        files = await asyncio.to_thread(lambda: b"".join(each.read_bytes() for each in tmp_path.glob("sealab.db*")))
        assert b"secret-word" not in files
        await asyncio.to_thread(app.journal.store().forget, lambda text: "secret-word" in text)
        assert (await schedules.listed(LOCAL))["count"] == 0


async def test_what_cannot_be_a_schedule_is_refused_with_what_to_give(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, clock, serves=False) as (app, schedules):
        await save(app, WRITES, "note")
        good = ScheduleRequest("daily", "note", MORNING)
        for wrong, said in (
            (replace(good, every="sometimes"), "is no set time"),
            (replace(good, every="daily 07:00 Mars/Olympus"), "no time zone 'Mars/Olympus'"),
            (replace(good, name="a b"), "1 to 64 ASCII letters"),
            (replace(good, skill="nothing"), "There is no skill 'nothing'"),
            (replace(good, arguments={"other": 1}), "other"),
            (replace(good, skill=""), "There is no schedule daily. Give skill and every"),
            (replace(good, retries=9), "Give 0 to 5"),
            (replace(good, overlap="perhaps"), "Give skip or wait or start"),  # type: ignore[arg-type]  # wrong
            (replace(good, caller=Caller("http session 1")), "callers who are the same ones tomorrow"),
        ):
            with pytest.raises(Exception, match=said):
                await schedules.add(wrong)
        assert (await schedules.listed(LOCAL))["count"] == 0
