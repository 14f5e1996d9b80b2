"""Skills that run at set times: when, once each, for whom, and what becomes of what does not go as it should."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from sealab.server.app import App, running
from sealab.server.base.errors import KNOWN_ERRORS, RequestRefused
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
from sealab.server.use_cases.skills.set_times import SetTimes
from sealab.server.use_cases.skills.use_cases import SaveRequest
from sealab.skills_db.errors import ScheduleMoved
from sealab.skills_db.journal.schedule_store import StoredSchedule
from sealab.skills_db.skills import StoredSkill
from sealab.skills_db.tokens import TokenStore

from ...waiting import until
from ..conftest import in_a_task, settings_of

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


@dataclass
class Bench:
    """An app whose schedules fire only when a test has them do so, at the time of the test."""

    app: App
    schedules: Schedules
    clock: Clock

    async def queued(self) -> int:
        return len(await asyncio.to_thread(lambda: self.app.journal.background().listed(most=1000)))


@asynccontextmanager
async def opened(home: Path, *, serves: bool = True) -> AsyncIterator[App]:
    env = {"SEALAB_WORKERS_SPARE": "0", "SEALAB_AUTH": "tokens"}
    async with running(settings_of(home, env), Home(home), serves=serves) as app:
        app.background.work.fire = None
        for code, name in ((WRITES, "note"), (FAILS, "fails")):
            await save(app, code, name)
        yield app


@pytest.fixture(scope="module")
async def serving(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[App]:
    async with in_a_task(opened(tmp_path_factory.mktemp("home"))) as app:
        yield app


@pytest.fixture(scope="module")
async def idling(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[App]:
    """One that takes no run, so that none ends."""
    async with in_a_task(opened(tmp_path_factory.mktemp("idle"), serves=False)) as app:
        yield app


@asynccontextmanager
async def emptied(app: App) -> AsyncIterator[Bench]:
    clock = Clock()
    schedules = replace(app.schedules, now=clock)
    yield Bench(app, schedules, clock)
    for each in (await schedules.listed(LOCAL))["schedules"]:
        await schedules.remove(each["name"], LOCAL)


@pytest.fixture
async def bench(serving: App) -> AsyncIterator[Bench]:
    async with emptied(serving) as bench:
        yield bench


@pytest.fixture
async def idle(idling: App) -> AsyncIterator[Bench]:
    async with emptied(idling) as bench:
        yield bench


async def save(app: App, code: str, name: str) -> None:
    await skills.save(app.skills, SaveRequest(name, code, force=True))


async def the_one(schedules: Schedules) -> ListedSchedule:
    (found,) = (await schedules.listed(LOCAL))["schedules"]
    return found


async def following(schedules: Schedules, name: str = "daily") -> float:
    stored = await schedules.known(name, LOCAL)
    assert stored is not None
    assert stored.next_time is not None
    return stored.next_time


async def fired(bench: Bench, name: str = "daily") -> str:
    """Let the next time of a schedule come, wait for its run to end, and return how it ended."""
    schedules = bench.schedules
    bench.clock.to(await following(schedules, name))
    await schedules.fire()
    stored = await schedules.known(name, LOCAL)
    assert stored is not None
    assert stored.last_run is not None
    state = await bench.app.background.state(stored.last_run, None, wait_seconds=60)
    assert state.execution is not None
    await schedules.fire()
    return state.execution.report["status"]


def notes(bench: Bench) -> str:
    return (bench.app.home.root / "workspace" / "notes").read_text()


async def test_a_skill_runs_at_its_times_and_the_list_says_last_and_next(bench: Bench) -> None:
    schedules = bench.schedules
    added = await schedules.add(ScheduleRequest("daily", "note", "every day 07:00 Europe/Berlin", {"word": "at 7 "}))
    assert (added["next"], added["version"], added["state"]) == ("2027-01-16T07:00:00+01:00", 1, "active")
    await schedules.fire()
    assert "last" not in await the_one(schedules)
    assert await fired(bench) == "ok"
    told = await the_one(schedules)
    assert told["last"]["status"] == "ok"
    assert told["next"] == "2027-01-17T07:00:00+01:00"
    await bench.app.journal.stored()
    header = await asyncio.to_thread(lambda: bench.app.journal.store().journal(told["last"]["run_id"]).header)
    assert str(header["code"]).startswith("# The schedule daily runs the skill note, version 1\n")
    assert "at 7 " in notes(bench)


async def test_each_time_fires_once_on_several_servers(bench: Bench) -> None:
    async with running(bench.app.settings, bench.app.home) as other:
        others = replace(other.schedules, now=bench.clock)
        await bench.schedules.add(ScheduleRequest("daily", "note", MORNING, {"word": "once "}))
        for _ in range(2):
            bench.clock.to(await following(bench.schedules))
            await asyncio.gather(*(each.fire() for each in (bench.schedules, others) * 2))
            await until(lambda: _ended(bench.schedules))
        assert notes(bench).count("once ") == 2


async def _ended(schedules: Schedules) -> bool:
    await schedules.fire()
    return (await the_one(schedules))["last"]["status"] == "ok"


async def test_a_new_version_waits_for_a_yes_and_what_is_deleted_stops(bench: Bench) -> None:
    app, schedules = bench.app, bench.schedules
    mark = WRITES.replace("def note", "def mark").replace("word", "sign").replace("Note a", "Set a")
    await save(app, mark, "mark")
    await schedules.add(ScheduleRequest("daily", "mark", MORNING, {"sign": "old "}))
    await save(app, mark.replace("write(sign)", "write('new ')"), "mark")
    assert "version 2 of mark waits for a yes" in (await the_one(schedules))["waits"]
    assert await fired(bench) == "ok"
    assert (await schedules.add(ScheduleRequest("daily")))["version"] == 2
    assert "waits" not in await the_one(schedules)
    assert await fired(bench) == "ok"
    assert notes(bench).endswith("old new ")
    await skills.delete(app.skills, "mark")
    bench.clock.to(await following(schedules))
    await schedules.fire()
    told = await the_one(schedules)
    assert told["state"] == "paused"
    assert "was deleted" in told["why_not"]


async def test_a_yes_is_for_the_version_that_was_asked_about_or_shown(idle: Bench) -> None:
    app, schedules = idle.app, idle.schedules
    mark = WRITES.replace("def note", "def seen").replace("Note a", "See a")
    await save(app, mark, "seen")

    async def saves_another(_before: StoredSchedule | None, asked_about: StoredSkill) -> None:
        assert asked_about.version == 1
        await save(app, mark.replace("return word", "return word * 2"), "seen")
        idle.clock.to(idle.clock() + 86_400)

    added = await schedules.add(ScheduleRequest("daily", "seen", MORNING), saves_another)
    assert added["version"] == 1
    waits = "version 2 of seen waits for a yes: sealab schedules add daily --skill-version 2"
    assert (await the_one(schedules))["waits"] == waits
    assert await following(schedules) > idle.clock()
    for stale in (("seen", 1), ("note", 2)):
        with pytest.raises(RequestRefused, match="would run version 2 of seen, which the page did not show"):
            await schedules.add(ScheduleRequest("daily", seen=stale))
    assert (await the_one(schedules))["newest"] == 2
    assert (await schedules.add(ScheduleRequest("daily", seen=("seen", 2))))["version"] == 2


@pytest.mark.parametrize(("overlap", "runs"), [("skip", 1), ("wait", 1), ("start", 2)])
async def test_a_time_at_which_the_last_run_has_not_ended(idle: Bench, overlap: Any, runs: int) -> None:
    schedules, before = idle.schedules, await idle.queued()
    await schedules.add(ScheduleRequest("daily", "note", MORNING, overlap=overlap))
    first = await following(schedules)
    for _ in range(2):
        idle.clock.to(await following(schedules))
        await schedules.fire()
    assert await idle.queued() - before == runs
    told = await the_one(schedules)
    assert ("so that time was skipped" in told.get("why_not", "")) == (overlap == "skip")
    assert await following(schedules) == first + 86_400 * (1 if overlap == "wait" else 2)


@pytest.mark.parametrize(("missed", "runs"), [("run", 1), ("skip", 0)])
async def test_a_time_at_which_no_server_ran(idle: Bench, missed: Any, runs: int) -> None:
    schedules, before = idle.schedules, await idle.queued()
    await schedules.add(ScheduleRequest("daily", "note", MORNING, missed=missed))
    idle.clock.to(await following(schedules), late=3 * 86_400 + LATE_SECONDS)
    await schedules.fire()
    await schedules.fire()
    assert await idle.queued() - before == runs
    assert ("no server ran at" in (await the_one(schedules)).get("why_not", "")) == (missed == "skip")


async def test_a_failure_is_tried_again_as_said_and_three_in_a_row_pause_it(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    schedules = bench.schedules
    await schedules.add(ScheduleRequest("daily", "fails", MORNING, retries=1))
    assert await fired(bench) == "error"
    assert await following(schedules) == bench.clock() + RETRY_SECONDS
    assert await fired(bench) == "error"
    assert (await following(schedules)) % 86_400 == 7 * 3600
    assert (await the_one(schedules))["failures"] == 2
    assert await fired(bench) == "error"
    told = await the_one(schedules)
    assert (told["state"], told["next"]) == ("paused", None)
    assert "it is paused, since 3 runs in a row failed" in told["why_not"]
    assert len([record for record in caplog.records if "The schedule daily failed" in record.message]) == 3
    assert (await schedules.add(ScheduleRequest("daily")))["state"] == "active"
    assert "failures" not in await the_one(schedules)


def _token(app: App, scopes: str) -> Caller:
    stored = TokenStore(app.database()).put(
        scopes.ljust(64, "0"), name="a", tenant="default", principal="ada", scopes=scopes.split(), now=0, expires=None
    )
    rights = frozenset(Right(each) for each in scopes.split())
    return Caller(of_principal("ada"), identity=Identity("default", "ada", rights, stored.id))


async def test_rights_are_judged_anew_and_a_revoked_token_stops_it(bench: Bench) -> None:
    app, schedules = bench.app, bench.schedules
    ada = await asyncio.to_thread(_token, app, "run skills:read skills:write files")
    await schedules.add(ScheduleRequest("daily", "note", MORNING, caller=ada))
    assert (await schedules.listed(ada))["count"] == 1
    assert await fired(bench) == "ok"
    eve = Caller(of_principal("eve"), identity=Identity("default", "eve", ada.identity.rights))
    assert (await schedules.listed(eve))["count"] == 0
    for act in (schedules.remove("daily", eve), schedules.add(ScheduleRequest("daily", "note", MORNING, caller=eve))):
        with pytest.raises(RequestRefused):
            await act
    assert await asyncio.to_thread(TokenStore(app.database()).revoke, ada.identity.credential, 1.0)
    bench.clock.to(await following(schedules))
    await schedules.fire()
    told = await the_one(schedules)
    assert told["state"] == "paused"
    assert f"The token {ada.identity.credential} of ada was revoked" in told["why_not"]
    assert told["last"]["status"] == "ok"


async def test_what_came_between_a_look_and_a_change_is_not_overwritten(idle: Bench) -> None:
    schedules, rights = idle.schedules, frozenset({Right.RUN, Right.SKILLS_READ})
    ada, eve = (Caller(of_principal(each), identity=Identity("default", each, rights)) for each in ("ada", "eve"))

    async def of_ada(*_asked: object) -> None:
        await schedules.add(ScheduleRequest("daily", "note", MORNING, {"word": "ada"}, caller=ada))

    async def changed(*_asked: object) -> None:
        await schedules.add(ScheduleRequest("daily", "note", MORNING, {"word": "changed"}, caller=ada))

    with pytest.raises(ScheduleMoved):
        await schedules.add(ScheduleRequest("daily", "note", MORNING, caller=eve), of_ada)
    for act in (
        schedules.add(ScheduleRequest("daily", "note", MORNING, {"word": "again"}, caller=ada), changed),
        schedules.remove("daily", ada, of_ada),
    ):
        with pytest.raises(ScheduleMoved):
            await act
    told = await the_one(schedules)
    assert (told["owner"], told["arguments"]) == ("ada", {"word": "ada"})


async def test_one_principal_cannot_use_all_the_schedules_of_a_tenant(
    idle: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealab.server.use_cases.skills.schedules.SCHEDULES_OF_ONE_MAX", 1)
    rights = frozenset({Right.RUN, Right.SKILLS_READ})
    ada, eve = (Caller(of_principal(each), identity=Identity("default", each, rights)) for each in ("ada", "eve"))
    await idle.schedules.add(ScheduleRequest("one", "note", MORNING, caller=ada))
    await idle.schedules.add(ScheduleRequest("one", every="hourly UTC", caller=ada))
    with pytest.raises(RequestRefused, match="There are 1 schedules of one owner, which is the most"):
        await idle.schedules.add(ScheduleRequest("two", "note", MORNING, caller=ada))
    await idle.schedules.add(ScheduleRequest("two", "note", MORNING, caller=eve))


async def test_what_is_stored_of_a_schedule_tells_nothing_and_goes_with_its_person(idle: Bench) -> None:
    await idle.schedules.add(ScheduleRequest("daily", "note", MORNING, {"word": "secret-word"}))
    root = idle.app.home.root
    files = await asyncio.to_thread(lambda: b"".join(each.read_bytes() for each in root.glob("sealab.db*")))
    assert b"secret-word" not in files
    await asyncio.to_thread(idle.app.journal.store().forget, lambda text: "secret-word" in text)
    assert (await idle.schedules.listed(LOCAL))["count"] == 0


async def test_what_cannot_be_a_schedule_is_refused_with_what_to_give(idle: Bench) -> None:
    good = ScheduleRequest("daily", "note", MORNING)
    for wrong, said in (
        (replace(good, every="sometimes"), "is no set time"),
        (replace(good, every="daily 07:00 Mars/Olympus"), "no time zone 'Mars/Olympus'"),
        (replace(good, every=f"daily {', '.join(f'{n}:00' for n in range(40))} UTC"), "longer than 200 characters"),
        (replace(good, every=f"daily {'7:00,' * 25} UTC"), "has 25 times. Give at most 24"),
        (replace(good, every="0 0 */31 * 1#5 UTC"), "it never comes"),
        (replace(good, name="a b"), "1 to 64 ASCII letters"),
        (replace(good, skill="nothing"), "There is no skill 'nothing'"),
        (replace(good, arguments={"other": 1}), "other"),
        (replace(good, skill=""), "There is no schedule daily. Give skill and every"),
        (replace(good, retries=9), "Give 0 to 5"),
        (replace(good, overlap="perhaps"), "Give skip or wait or start"),  # type: ignore[arg-type]  # wrong
        (replace(good, caller=Caller("http session 1")), "callers who are the same ones tomorrow"),
    ):
        with pytest.raises(KNOWN_ERRORS, match=said):
            await idle.schedules.add(wrong)
    assert (await idle.schedules.listed(LOCAL))["count"] == 0


@pytest.mark.parametrize(
    ("text", "following"),
    [
        ("weekdays 07:00 Europe/Berlin", "2027-01-18T07:00:00+01:00"),
        ("every 15 minutes UTC", "2027-01-15T08:15:00+00:00"),
        ("monday, thursday at 9:30 and 18:00 UTC", "2027-01-18T09:30:00+00:00"),
        ("monthly 1 06:00 Asia/Tokyo", "2027-02-01T06:00:00+09:00"),
        ("0 7 * * 1-5 America/New_York", "2027-01-15T07:00:00-05:00"),
    ],
)
def test_set_times_are_read_as_people_write_them(text: str, following: str) -> None:
    times = SetTimes.of(text)
    told = datetime.fromtimestamp(times.after(1_800_000_000), ZoneInfo(times.zone))
    assert told.isoformat() == following
    assert SetTimes.of(times.every) == times


def test_a_time_that_a_change_of_clocks_skips_or_doubles_comes_once() -> None:
    times = SetTimes.of("daily 02:30 Europe/Berlin")
    spring, autumn = (
        datetime(2026, *day, 12, tzinfo=ZoneInfo("Europe/Berlin")).timestamp() for day in ((3, 28), (10, 24))
    )
    for begin in (spring, autumn):
        first = times.after(begin)
        assert times.after(first) - first > 20 * 3600
