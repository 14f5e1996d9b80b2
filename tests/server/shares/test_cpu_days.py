"""CPU seconds of a day: kept over a restart, added up by several processes, and ended by the day."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from sealab.sandbox.errors import Busy
from sealab.server.base.database import HomeDatabase
from sealab.server.base.host_work import Account
from sealab.server.base.settings import Settings
from sealab.server.governance.shares.cpu_days import CpuDays
from sealab.server.governance.shares.shares import Shares

from ...clocks import Clock

NOON = 1_800_014_400.0  # 2027-01-15, 12:00 UTC


async def days(home: Path, wall: Clock) -> tuple[CpuDays, HomeDatabase]:
    database = HomeDatabase(None, home)
    opened = CpuDays(database, wall)
    await opened.refreshed()
    return opened, database


async def test_what_was_used_outlives_the_process(tmp_path: Path) -> None:
    wall = Clock(NOON)
    first, database = await days(tmp_path, wall)
    first.add("T", "p", 1.5)
    first.add("T", "p", 2)
    first.add("T", "q", 4)
    first.add("U", "p", 8)
    assert (first.used_by("T", "p"), first.used_by_tenant("T")) == (3.5, 7.5)
    first.close()
    assert (first.used_by("T", "p"), first.used_by_tenant("T")) == (3.5, 7.5)
    database.close()
    second, database = await days(tmp_path, wall)
    assert (second.used_by("T", "p"), second.used_by_tenant("T"), second.used_by("U", "p")) == (3.5, 7.5, 8)
    second.close()
    database.close()


async def test_two_on_one_database_add_up_and_learn_of_each_other(tmp_path: Path) -> None:
    wall = Clock(NOON)
    (one, its_database), (other, others_database) = await days(tmp_path, wall), await days(tmp_path, wall)
    one.add("T", "p", 1)
    one._writer.flush()
    other.add("T", "p", 2)
    other._writer.flush()
    assert other.used_by("T", "p") == 3
    one.add("T", "p", 4)
    one._writer.flush()
    assert one.used_by("T", "p") == 7
    for each in (one, other):
        each.close()
    its_database.close()
    others_database.close()


ADD = """
import sys
from pathlib import Path
from sealab.server.base.database import HomeDatabase
from sealab.server.governance.shares.cpu_days import CpuDays
database = HomeDatabase(None, Path(sys.argv[1]))
days = CpuDays(database, lambda: {noon})
for _ in range(100):
    days.add("T", "p", 0.5)
    days._writer.flush()
days.close()
database.close()
"""


async def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    (await days(tmp_path, Clock(NOON)))[1].close()
    code = ADD.format(noon=NOON)
    arguments = [sys.executable, "-c", code, str(tmp_path)]
    processes = [await asyncio.create_subprocess_exec(*arguments) for _ in range(2)]
    assert [await each.wait() for each in processes] == [0, 0]
    found, database = await days(tmp_path, Clock(NOON))
    assert found.used_by("T", "p") == 100
    found.close()
    database.close()


async def test_a_spent_day_is_refused_with_its_owner_until_midnight(tmp_path: Path) -> None:
    wall = Clock(NOON)
    cpu_days, database = await days(tmp_path, wall)
    settings = Settings(caller_cpu_seconds_per_day=10, tenant_cpu_seconds_per_day=15)
    shares = Shares(settings, cpu_days, "T")
    for seconds in (6, 5):
        account = Account(100)
        account.charge(seconds)
        async with shares.run("a", account):
            pass
    with pytest.raises(
        Busy, match=r"This caller has used its 10 CPU seconds of 2027-01-15, UTC \(CALLER_CPU_SEC"
    ) as why:
        await shares.admit("a")
    assert why.value.retry_seconds == 12 * 3600
    account = Account(100)
    account.charge(4)
    async with shares.run("b", account):
        assert shares.report("b")["caller"]["runs"] == 1
    with pytest.raises(Busy, match=r"This tenant has used its 15 CPU seconds of .*\(TENANT_CPU_SECONDS_PER_DAY\)"):
        await shares.admit("c")
    await Shares(settings, cpu_days, "U").admit("a")
    wall.now += why.value.retry_seconds
    await shares.admit("a")
    cpu_days.close()
    database.close()


async def test_without_a_bound_on_cpu_no_database_is_opened(tmp_path: Path) -> None:
    database = HomeDatabase(None, tmp_path)
    shares = Shares(Settings(), CpuDays(database), "T")
    async with shares.run("a", Account(1)):
        pass
    shares.cpu_days.close()
    assert not os.listdir(tmp_path)
    assert shares.report("a")["caller"] == {"runs": 0, "runs_last_minute": 1, "cpu_seconds_today": None}


async def test_counting_imports_nothing_of_the_database_since_an_event_loop_counts() -> None:
    counting = (
        "import sys\n"
        "from sealab.server.governance.shares.cpu_days import CpuDays\n"
        "CpuDays(lambda: None).add('tenant', 'principal', 1.0)\n"
        "sys.stdout.write(str('sqlalchemy' in sys.modules))\n"
        "sys.stdout.flush()\n"
        "import os; os._exit(0)\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", counting, stdout=asyncio.subprocess.PIPE)
    assert (await process.communicate())[0] == b"False"
