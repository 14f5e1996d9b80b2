"""Set times while whoever fires them is killed at random moments: each time is fired once, by one of those that look.

Two processes at once have one schedule of each minute fire as fast as they can, for which their clocks stand still until
it has. Wrong is a time that was fired by no run or by two, a version that was not said yes to, and a database that is
damaged.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any

from sealab.server.app import App, running
from sealab.server.base.home import Home
from sealab.server.base.settings import Settings
from sealab.server.governance.caller import LOCAL
from sealab.server.use_cases.skills import use_cases as skills
from sealab.server.use_cases.skills.schedules import ScheduleRequest, Schedules
from sealab.skills_db.sql import sa
from sealab.skills_db.tables import BACKGROUND

from .places import Place

AT_ONCE = 2
LIFE_SECONDS = 0.3
"""How long a process fires at most, once all have begun to."""
OPENING_DEATHS = 0.1
OPENING_SECONDS = 1.0
MINUTE = 60
CODE = "def tick(number: int = 0) -> int:\n    'Tick.'\n    return number"


def _settings(place: Place) -> Settings:
    return Settings(workers_spare=0, database_url=place.url, vault_keyring=False, background_queue_max=1_000_000)


class _Clock:
    """Stands one second after the next time of the schedule, as it was when that was read."""

    moment = 0.0

    def __call__(self) -> float:
        return self.moment


async def _fire_for_ever(app: App, clock: _Clock, begun: int) -> None:
    schedules = replace(app.schedules, now=clock)
    for fired in count():
        if fired == 1:
            os.write(begun, b".")
        stored = await schedules.known("tick", LOCAL)
        assert stored is not None
        assert stored.next_time is not None, stored.reason
        clock.moment = stored.next_time + 1
        await schedules.fire()


def _life(place: Place, begun: int) -> int:
    """Fork a process that fires until it is killed, and writes a byte once it begins to; return its id."""
    pid = os.fork()
    if pid:
        return pid

    async def live() -> None:
        async with running(_settings(place), Home(place.home)) as app:
            await _fire_for_ever(app, _Clock(), begun)

    try:
        asyncio.run(live())
    finally:
        os._exit(1)


async def _begun(place: Place) -> list[Any]:
    """Make the schedule; return its first time."""
    async with running(_settings(place), Home(place.home)) as app:
        await skills.save(app.skills, skills.SaveRequest("tick", CODE))
        schedules: Schedules = app.schedules
        await schedules.add(ScheduleRequest("tick", "tick", "minute UTC", overlap="start"))
        await skills.save(app.skills, skills.SaveRequest("tick", f"{CODE} + 1"))
        stored = await schedules.known("tick", LOCAL)
        assert stored is not None
        assert stored.next_time is not None
        return [stored.next_time]


async def _faults(place: Place, first: float) -> list[Any]:
    async with running(_settings(place), Home(place.home)) as app:
        stored = await app.schedules.known("tick", LOCAL)
        assert stored is not None
        assert stored.next_time is not None
        times = round((stored.next_time - first) / MINUTE)
        with app.database().read() as connection:
            runs = Counter(connection.execute(sa.select(BACKGROUND.c.run_id)).scalars())
        wrong = [] if len(runs) == times else [f"{times} times were fired by {len(runs)} runs"]
        if times and stored.last_run not in runs:
            wrong.append(f"the last run {stored.last_run} is not there")
        store = app.journal.background()
        codes = {str((store.request(run_id) or {}).get("code")) for run_id in runs}
        if any(not each.endswith("\ncall_skill('tick', 1, arguments)") for each in codes):
            wrong.append(f"other versions ran than the one that was said yes to: {codes}")
        return [times, *wrong]


def _of_another(work: Coroutine[Any, Any, list[Any]]) -> list[Any]:
    """Return what work in a process of its own gives: this one is forked, so it must have no threads."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.write(writing, json.dumps(asyncio.run(work)).encode())
        finally:
            os._exit(0)
    work.close()
    os.close(writing)
    with open(reading, "rb") as pipe:
        told = pipe.read()
    os.waitpid(pid, 0)
    return list(json.loads(told))


def schedules_survive(place: Place, kills: int, dice: random.Random) -> tuple[str, list[str]]:
    """Kill so many processes while they fire; return figures, and what is wrong."""
    (first,) = _of_another(_begun(place))
    killed = deaths = 0
    while killed < kills:
        reading, writing = os.pipe()
        lives = [_life(place, writing) for _ in range(AT_ONCE)]
        os.close(writing)
        if dice.random() < OPENING_DEATHS:
            time.sleep(dice.uniform(0, OPENING_SECONDS))
        else:
            for _ in lives:
                os.read(reading, 1)  # nothing once all have died
            time.sleep(dice.uniform(0, LIFE_SECONDS))
        os.close(reading)
        if place.cluster is not None and dice.random() < 0.05:
            place.cluster.stop(signal.SIGKILL)
            deaths += 1
        for pid in lives:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            killed += 1
        if place.cluster is not None and place.cluster.process.poll() is not None:
            place.cluster.start()
    times, *wrong = _of_another(_faults(place, first))
    return f"{times} times fired, killed {killed} processes, and the database {deaths} times", wrong
