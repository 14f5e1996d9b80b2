"""Sessions: a worker that is kept, and what becomes of it."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
from collections.abc import AsyncIterator

import pytest

from sealab.sandbox.errors import SessionRefused
from sealab.sandbox.host.pool import Pool, PoolSettings
from sealab.sandbox.host.repl_sessions import of_one_caller
from sealab.sandbox.job import Job, Status, Waits

from ...processes import children
from ...waiting import until
from ..conftest import no_calls, run

# They look at the processes that they started.
pytestmark = pytest.mark.usefixtures("own_children")

ENDLESS = "while True:\n    pass"
_numbers = itertools.count()


@pytest.fixture
async def a(pool: Pool) -> AsyncIterator[str]:
    """The name of a session of the test's own."""
    yield f"a{next(_numbers)}"
    for told in pool.sessions_of(""):
        await pool.end_session(told.name)


async def test_variables_functions_and_imports_survive(pool, a):
    await run(pool, "import math\nx = 20\ndef double(n):\n    return 2 * n", session=a)
    assert (await run(pool, "double(x) + math.floor(2.5)", session=a)).result == 42


async def test_sessions_and_single_runs_never_see_each_other(pool, a):
    await run(pool, "x = 1", session=a)
    assert (await run(pool, "x", session=f"not {a}")).status is Status.ERROR
    assert (await run(pool, "x")).status is Status.ERROR
    assert (await run(pool, "x", session=a)).result == 1


async def test_a_failed_call_leaves_what_it_had_done_and_the_session_lives_on(pool, a):
    failed = await run(pool, "x = 1\n1 / 0", session=a)
    assert failed.status is Status.ERROR
    assert failed.session_ended is None
    assert (await run(pool, "x", session=a)).result == 1


async def test_a_refused_call_changes_nothing(pool, a):
    await run(pool, "x = 1", session=a)
    refused = await run(pool, "x = 2\nimport subprocess", session=a)
    assert refused.status is Status.REFUSED
    assert (await run(pool, "x", session=a)).result == 1


async def test_a_call_out_of_memory_leaves_the_session_alive(pool, a):
    await run(pool, "x = 1", session=a)
    assert (await run(pool, "y = bytearray(10**9)", session=a)).status is Status.MEMORY
    assert (await run(pool, "x", session=a)).result == 1


async def test_output_of_earlier_calls_does_not_come_back(pool, a):
    await run(pool, "print('first call')", session=a)
    assert (await run(pool, "print('2')", session=a)).output == "2\n"


async def test_output_that_one_call_left_redirected_is_the_reports_again_in_the_next(pool, a):
    code = "import contextlib, io\nkept = contextlib.redirect_stdout(io.StringIO())\nkept.__enter__()\nprint('away')"
    assert (await run(pool, code, session=a)).output == ""
    assert (await run(pool, "print('here')", session=a)).output == "here\n"


async def test_each_call_is_metered_by_itself(pool, a):
    busy = await run(pool, "sum(i * i for i in range(1_000_000))", session=a)
    idle = await run(pool, "1", session=a)
    assert idle.cpu_ms < busy.cpu_ms


async def test_a_call_may_ask_for_more_memory_than_the_one_before(pool, a):
    code = "len(bytearray(150 * 1024 * 1024))"
    assert (await run(pool, code, session=a, memory_mb=50)).status is Status.MEMORY
    assert (await run(pool, code, session=a, memory_mb=300)).status is Status.OK


async def test_a_time_out_ends_the_session_and_the_next_report_says_so(pool, a):
    await run(pool, "x = 1", session=a)
    ended = await run(pool, ENDLESS, session=a, timeout_seconds=0.3)
    assert ended.status is Status.TIMEOUT
    assert "out of time" in ended.session_ended
    told = await run(pool, "x", session=a)
    assert told.status is Status.ERROR
    assert "out of time" in told.session_ended
    assert (await run(pool, "1", session=a)).session_ended is None


async def test_a_crash_ends_the_session_and_the_next_report_says_so(pool, a):
    await run(pool, "x = 1", session=a)
    task = asyncio.create_task(run(pool, ENDLESS, session=a))
    await asyncio.sleep(0.2)
    os.kill(pool._sessions._alive[a].worker.pid, signal.SIGKILL)
    ended = await task
    assert ended.status is Status.CRASHED
    assert "crashed" in ended.session_ended
    assert "crashed" in (await run(pool, "1", session=a)).session_ended


async def test_a_session_whose_process_died_between_two_calls_says_so(pool, a):
    await run(pool, "x = 1", session=a)
    os.kill(pool._sessions._alive[a].worker.pid, signal.SIGKILL)
    told = await run(pool, "1 + 1", session=a)
    assert told.result == 2
    assert "between two calls" in told.session_ended


async def test_a_cancelled_call_ends_the_session_and_the_next_report_says_so(pool, a):
    await run(pool, "x = 1", session=a)
    task = asyncio.create_task(run(pool, ENDLESS, session=a))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "cancelled" in (await run(pool, "1", session=a)).session_ended


@pytest.mark.parametrize("computes", [False, True])
async def test_a_session_that_is_ended_ends_the_call_that_is_at_work_in_it(pool, a, computes):
    begun, never = asyncio.Event(), asyncio.Event()

    async def answer(name, _arguments):
        if name == "list_files":
            begun.set()
            if not computes:
                await never.wait()
        return {"files": []}

    await run(pool, "x = 1", session=a)
    at_work = asyncio.create_task(run(pool, f"list_files()\n{ENDLESS}", answer, session=a))
    await begun.wait()
    assert await pool.end_session(a)
    async with asyncio.timeout(20):
        ended = await at_work
    assert ended.status is Status.CRASHED
    assert f"The session '{a}' has ended" in ended.session_ended
    assert (await run(pool, "1 + 1", session=a)).result == 2


async def test_two_calls_at_once_take_turns(pool, a):
    async def slow(name, arguments):
        await asyncio.sleep(0.1)
        return {"files": []}

    await run(pool, "seen = []", session=a)
    code = "seen.append(1)\nlist_files()\nseen.append(2)"
    await asyncio.gather(*(run(pool, code, slow, session=a) for _ in range(3)))
    assert (await run(pool, "seen", session=a)).result == [1, 2, 1, 2, 1, 2]


async def test_a_call_whose_turn_does_not_come_is_refused(pool, a):
    task = asyncio.create_task(run(pool, ENDLESS, session=a, timeout_seconds=2))
    await asyncio.sleep(0.2)
    with pytest.raises(SessionRefused, match="busy"):
        await run(pool, "1", session=a, timeout_seconds=0.2)
    assert (await task).status is Status.TIMEOUT


async def test_an_idle_session_ends_and_the_next_report_says_so():
    async with Pool(PoolSettings(spares=1, session_idle_seconds=0.2)) as pool:
        await run(pool, "x = 1", session="a")
        pid = pool._sessions._alive["a"].worker.pid
        await until(lambda: pool.stats().sessions == 0 and pid not in children())
        assert "idle" in (await run(pool, "1", session="a")).session_ended


async def test_a_session_too_many_takes_the_place_of_the_idlest_whose_owner_is_told():
    async with Pool(PoolSettings(spares=1, sessions_max=4)) as pool:
        for name in ("a", "b", "c"):
            await run(pool, f"x = {name!r}", session=name)
        await run(pool, "x", session="a")
        assert (await run(pool, "1 + 1", session="d")).result == 2
        assert (await run(pool, "x", session="a")).result == "a"
        told = await run(pool, "x", session="b")
        assert told.status is Status.ERROR
        assert "'b' had ended before this call: a new session needed its place, and it was idle" in told.session_ended
        assert "Its variables are gone" in told.session_ended
        assert len([each for each in ("a", "c", "d") if await pool.end_session(each)]) == 2


async def test_a_busy_session_never_ends_for_another():
    async with Pool(PoolSettings(spares=1, sessions_max=1)) as pool:
        busy = asyncio.create_task(run(pool, "import asyncio\nawait asyncio.sleep(0.5)\n7", session="a"))
        await asyncio.sleep(0.1)
        with pytest.raises(
            SessionRefused, match="as many as one caller may have of 1, and none that could end is idle"
        ):
            await run(pool, "1", session="b")
        assert (await busy).result == 7
        assert (await run(pool, "1 + 1", session="b")).result == 2
        assert await pool.end_session("b")
        assert not await pool.end_session("a")


@pytest.mark.parametrize(("sessions_max", "most"), [(1, 1), (2, 1), (3, 2), (4, 3), (8, 6), (100, 75)])
def test_most_sessions_can_be_one_callers_and_the_last_places_never(sessions_max, most):
    assert of_one_caller(sessions_max) == most


async def test_one_caller_never_takes_the_last_sessions_from_another():
    async def call(pool, caller, session):
        return (await pool.run(Job("1 + 1", caller=caller, session=session), no_calls)).result

    async with Pool(PoolSettings(spares=1, sessions_max=3)) as pool:
        assert [await call(pool, "a", name) for name in ("a1", "a2", "a1")] == [2, 2, 2]
        assert await call(pool, "a", "a3") == 2
        assert not await pool.end_session("a2")  # its own idlest made room for the third
        assert await call(pool, "b", "b1") == 2
        assert await call(pool, "a", "a4") == 2
        assert await call(pool, "b", "b1") == 2
        assert await call(pool, "b", "b2") == 2  # where all places are taken, who has the most gives one
        assert await call(pool, "c", "c1") == 2
        assert [await pool.end_session(name) for name in ("a1", "a3", "a4", "b1", "b2", "c1")].count(True) == 3
        assert not await pool.end_session("c1")


async def test_an_error_in_a_function_of_an_earlier_call_shows_the_line_of_that_call(pool, a):
    await run(pool, "def broken():\n    return 1 / 0", session=a)
    failed = await run(pool, "x = 1\nbroken()", session=a)
    assert failed.error.line == 2
    assert "return 1 / 0" in failed.error.traceback


async def test_calls_left_open_by_one_call_do_not_answer_the_next(pool, a):
    async def slow(name, arguments):
        await asyncio.sleep(0.2)
        return {"files": [name]}

    code = "import asyncio\nasync def f():\n    return 1\nawait f()"
    assert (await run(pool, code, slow, session=a)).result == 1
    assert (await run(pool, "list_files()", slow, session=a)).result == ["list_files"]


ASKS = "import asyncio\nasync def ask(n):\n    return await call_tool('up.slow', {'n': n})\n"


WAITS = Waits()


async def waits_for_ever(name, arguments):
    if name == "judge_calls":
        return
    with WAITS.for_server():
        await asyncio.sleep(60)


async def test_a_time_out_while_the_code_only_waits_for_others_keeps_the_variables(pool, a):
    await run(pool, f"x = 1\n{ASKS}", session=a)
    ended = await run(
        pool, "x = 2\nprint('asked')\nx = await ask(3)", waits_for_ever, session=a, waits=WAITS, timeout_seconds=0.4
    )
    assert (ended.status, ended.session_ended, ended.output) == (Status.TIMEOUT, None, "asked\n")
    assert ended.error.line == 3
    assert "variables of its session are kept" in ended.error.hint
    assert (await run(pool, "x", session=a)).result == 2


@pytest.mark.parametrize(
    "code",
    [
        "try:\n    await ask(1)\nexcept Exception as error:\n    y = str(error)",
        "y = await asyncio.gather(*(ask(n) for n in range(20)), return_exceptions=True)",
        "y = []\nfor n in range(5):\n    try:\n        await ask(n)\n    except TimeoutError as error:\n        y.append(n)",
    ],
)
async def test_code_that_catches_the_time_out_has_timed_out_all_the_same_and_keeps_its_variables(pool, a, code):
    await run(pool, f"x = 1\n{ASKS}", session=a)
    ended = await run(pool, code, waits_for_ever, session=a, waits=WAITS, timeout_seconds=0.4)
    assert (ended.status, ended.result, ended.session_ended) == (Status.TIMEOUT, None, None)
    assert (await run(pool, "bool(y)", session=a)).result is True


@pytest.mark.parametrize(
    "code",
    [
        "try:\n    await ask(1)\nexcept TimeoutError:\n    pass\nwhile True:\n    pass",
        "while True:\n    try:\n        await ask(1)\n    except TimeoutError:\n        pass",
        "task = asyncio.create_task(ask(1))\nawait asyncio.sleep(0.1)\nwhile True:\n    pass",
    ],
)
async def test_code_that_goes_on_after_its_time_is_killed(pool, a, code):
    await run(pool, f"x = 1\n{ASKS}", session=a)
    ended = await run(pool, code, waits_for_ever, session=a, waits=WAITS, timeout_seconds=0.4)
    assert ended.status is Status.TIMEOUT
    assert "out of time" in ended.session_ended


async def test_a_name_that_a_lost_session_had_is_told_as_lost(pool, a):
    await run(pool, "recs = [1]", session=a)
    await run(pool, ENDLESS, session=a, timeout_seconds=0.3)
    lost = await run(pool, "len(recs)", session=a)
    assert lost.error.type == "NameError"
    assert f"'{a}' lost its variables: its code ran out of time" in lost.error.hint
    assert "Did you mean" not in lost.error.hint
    assert f"'not {a}'" not in (await run(pool, "len(recs)", session=f"not {a}")).error.message
    assert "lost" not in ((await run(pool, "len(recs)", session=f"not {a}")).error.hint or "")


async def test_a_full_house_names_the_sessions_of_the_caller_and_no_others():
    async def hold(pool, caller, name):
        code = "import asyncio\nawait asyncio.sleep(1)"
        return await pool.run(Job(code, caller=caller, session=name), no_calls)

    async with Pool(PoolSettings(spares=1, sessions_max=3)) as pool:
        held = [asyncio.create_task(hold(pool, *each)) for each in (("a", "mine"), ("b", "theirs"), ("b", "more"))]
        await until(lambda: pool.stats().sessions == 3)
        with pytest.raises(SessionRefused, match="Yours: 'mine'") as refused:
            await pool.run(Job("1", caller="a", session="new"), no_calls)
        assert "theirs" not in str(refused.value)
        await asyncio.gather(*held)


async def test_sessions_are_listed_by_who_began_them_and_closed_once_idle(pool, a):
    await run(pool, "x = 1", session=a)
    await run(pool, "x", session=a)
    (told,) = pool.sessions_of("")
    assert (told.name, told.calls) == (a, 2)
    assert told.idle_seconds >= 0
    assert pool.sessions_of("somebody else") == []
    busy = asyncio.create_task(run(pool, "import asyncio\nawait asyncio.sleep(0.4)\nx", session=a))
    await until(lambda: pool.sessions_of("")[0].idle_seconds is None)
    assert pool.close_session(a)
    assert (await busy).result == 1
    assert pool.sessions_of("") == []
    assert not pool.close_session(a)
    assert "ended on request" in (await run(pool, "1", session=a)).session_ended
