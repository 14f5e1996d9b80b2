"""Runs that are recorded, and run again from their records in another pool, whose zygote has other addresses."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sealab.sandbox.errors import LimitRefused
from sealab.sandbox.host.pool import Pool, PoolSettings
from sealab.sandbox.job import Isolation, Job, Start, Status
from sealab.sandbox.wire.frames import TRACE_BYTES_MAX

from ..conftest import no_calls, ready_pool
from ..recording import LIMITS, Journal, recorded, run_again, told

CLOCKS = """
import time, datetime, timeit, email.utils, logging, zoneinfo
print(time.time(), time.time_ns(), time.monotonic(), time.monotonic_ns(), time.perf_counter(), time.perf_counter_ns())
print(time.process_time(), time.process_time_ns(), time.thread_time(), time.thread_time_ns())
print(time.localtime(), time.gmtime(), time.ctime(), time.asctime(), time.strftime("%X"))
print(time.clock_gettime(time.CLOCK_REALTIME), time.clock_gettime_ns(time.CLOCK_PROCESS_CPUTIME_ID))
print(datetime.datetime.now(), datetime.datetime.now(zoneinfo.ZoneInfo("Asia/Tokyo")), datetime.datetime.utcnow())
print(datetime.datetime.today(), datetime.date.today(), email.utils.formatdate(), email.utils.make_msgid())
print(timeit.timeit("1 + 1", number=10), timeit.default_timer())
class Moment(datetime.datetime):
    pass
print(Moment.now(), Moment.today(), Moment.utcnow(), type(Moment.now()).__name__)
logging.basicConfig(format="%(asctime)s %(relativeCreated)d %(message)s")
logging.warning("logged")
time.sleep(0.05)
result = time.time()
"""
RANDOM = """
import os, random, secrets, tempfile, uuid
class Fixed(random.Random):
    def seed(self, *given):
        pass
result = [
    random.random(), random.sample(range(100), 9), random.Random().random(), random.SystemRandom().random(),
    Fixed().random(), secrets.token_hex(), secrets.randbelow(10**9), str(uuid.uuid4()), os.urandom(9).hex(),
    list({"one", "two", "three", "four", b"five", 6, 7.5, None, ("eight",)}),
]
random.seed()
print(random.random(), random.getstate()[1][:3])
"""
IDENTITIES = """
import asyncio, contextvars, functools, hashlib, pprint, reprlib, threading, weakref
class Node:
    pass
class Slotted:
    __slots__ = ("x",)
nodes = [Node() for _ in range(30)]
looped = [1]
looped.append(looped)
pprint.pprint(looped)
def f():
    yield
async def g():
    pass
awaited = g()
print(nodes[:2], id(nodes[3]), hash(nodes[4]), {node for node in nodes}, {Slotted() for _ in range(5)})
print([nodes.index(node) for node in set(nodes)], {f, g, awaited}, {nodes[0].__init__, nodes[1].__init__})
print(f, f(), awaited, g, lambda: 1, [].append, nodes[0].__str__, object(), memoryview(b"x"), id([]), iter([]))
print(weakref.ref(nodes[0]), functools.partial(f), hashlib.sha256(), contextvars.ContextVar("v"), asyncio.Lock())
print(threading.Lock(), (i for i in []), Node.__repr__, reprlib.repr(nodes[0]), f"{nodes[0]}")
del nodes[10:]
nodes += [Node() for _ in range(30)]
print({node for node in nodes}, [id(node) for node in nodes])
awaited.close()
result = nodes[0], str(nodes[0])
"""
TASKS = """
import asyncio, random, time
async def wait(i):
    await asyncio.sleep(0.01 + random.random() / 50)
    return i, time.perf_counter()
tasks = [asyncio.create_task(wait(i)) for i in range(20)]
done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
print([task.result() for task in done])
done, pending = await asyncio.wait(pending or tasks, timeout=0.002)
print([task.result() for task in done], [task.get_name() for task in pending])
print(await asyncio.gather(*pending))
for ended in asyncio.as_completed([wait(i) for i in range(9)]):
    print(await ended)
async with asyncio.TaskGroup() as group:
    made = [group.create_task(wait(i)) for i in range(5)]
print(made, asyncio.all_tasks())
try:
    await asyncio.wait_for(wait(1), 0.001)
except TimeoutError:
    print("late", asyncio.get_running_loop().time())
"""
CALLS = """
import asyncio, random, time
async def ask(i):
    told = []
    for k in range(4):
        try:
            told.append(await call_tool(f"s.t{random.randrange(9)}", {"i": i, "k": k, "at": time.time()}))
        except Exception as error:
            told.append(str(error))
        if random.random() < 0.3:
            await asyncio.sleep(random.random() / 100)
        if random.random() < 0.2:
            told.append(list_servers())
    return told
print(await asyncio.gather(*(ask(i) for i in range(10))))
done, pending = await asyncio.wait([asyncio.create_task(ask(i)) for i in range(5)], timeout=0.03)
print(len(done), len(pending), [task.result() for task in done])
for ended in asyncio.as_completed(pending):
    print(await ended)
last = asyncio.create_task(ask(99))
turns = 0
while not last.done():
    turns += 1
    await asyncio.sleep(0)
result = turns, last.result()
"""
THREADS = """
import concurrent.futures, queue, random, threading, time
found = queue.Queue()
def work(n):
    for i in range(4):
        time.sleep(random.random() / 200)
        found.put((n, i, time.perf_counter(), threading.current_thread().name))
        if i == 2:
            found.put(str(list_servers()))
with concurrent.futures.ThreadPoolExecutor(4) as executor:
    for future in concurrent.futures.as_completed([executor.submit(work, n) for n in range(6)]):
        print(future)
while not found.empty():
    print(found.get())
try:
    found.get(timeout=0.01)
except queue.Empty:
    print("empty", time.time())
"""
DATABASE = """
import sqlite3
connection = sqlite3.connect(":memory:")
connection.execute("create table t (a, at text default current_timestamp, day default (date('now')), r default (random()))")
connection.executemany("insert into t (a) values (?)", [(n,) for n in range(9)])
print(connection.execute("select * from t order by random()").fetchall())
print(connection.execute("select datetime(), julianday('now'), strftime('%f', 'now'), strftime('%s'), time('NOW', '+1 day')").fetchall())
print(connection.execute("select current_date, current_time, lower(hex(randomblob(16))), date('2024-01-31', '+1 month')").fetchall())
result = connection.execute("select julianday('now') = julianday('now'), date('nonsense'), date(null)").fetchone()
"""
LATE_ERROR = """
import time, warnings
print("first", time.time())
warnings.warn(f"seen at {time.time()}")
def fail():
    raise ValueError(f"{object()} at {time.time()}")
fail()
"""


@pytest.fixture(scope="module")
async def other() -> AsyncIterator[Pool]:
    async with ready_pool() as pool:
        yield pool


@pytest.mark.parametrize("code", [CLOCKS, RANDOM, IDENTITIES, TASKS, CALLS, THREADS, DATABASE, LATE_ERROR])
async def test_a_recorded_run_is_the_same_in_every_byte_when_it_is_run_again_in_another_pool(pool, other, code):
    first = await recorded(pool, code)
    again = await run_again(other, first)
    assert told(again.outcome) == told(first.outcome)
    assert first.outcome.status is (Status.ERROR if code is LATE_ERROR else Status.OK), first.outcome.error
    assert [asked for asked, _answer in again.calls] == [asked for asked, _answer in first.calls]
    assert again.pieces == []  # what it met is recorded already


async def test_two_runs_that_are_not_run_again_differ(pool):
    for code in (CLOCKS, RANDOM):
        assert told((await recorded(pool, code)).outcome) != told((await recorded(pool, code)).outcome)


async def test_a_run_with_the_start_of_another_has_its_random_bytes_and_its_first_time(pool):
    code = "import random, secrets, time\nresult = [random.random(), secrets.token_hex(), time.time() // 10]"
    start = Start(b"s" * 32, 1_000_000_003 * 10**9)
    first, second = [(await recorded(pool, Job(code, limits=LIMITS, start=start))).outcome.result for _ in range(2)]
    assert first == second
    assert first[2] == 100_000_000


async def test_what_was_waited_for_is_not_waited_for_again(pool):
    code = """
import asyncio, threading, time
time.sleep(3)
await asyncio.sleep(3)
thread = threading.Thread(target=time.sleep, args=(3,))
thread.start()
thread.join()
"""
    first = await recorded(pool, code)
    again = await run_again(pool, first)
    assert told(again.outcome) == told(first.outcome)
    assert first.outcome.duration_ms >= 9000
    assert again.outcome.duration_ms < first.outcome.duration_ms / 2


async def test_a_run_that_was_cut_off_goes_on_where_its_trace_ends_and_the_whole_can_be_run_again(pool):
    first = await recorded(pool, CALLS)
    for kept in (1, len(first.pieces) // 2, len(first.pieces) - 1):
        cut = replace(first, pieces=first.pieces[:kept])
        resumed = await run_again(pool, cut)
        assert resumed.outcome.status is Status.OK, resumed.outcome.error
        assert resumed.pieces  # what it met by itself
        whole = replace(resumed, pieces=[*cut.pieces, *resumed.pieces])
        assert told((await run_again(pool, whole)).outcome) == told(resumed.outcome)


async def test_the_wall_clock_of_a_run_that_goes_on_shows_what_it_is_and_no_time_out_ends_for_that(pool):
    code = """
import asyncio, time
began = time.time(), time.monotonic()
async with asyncio.timeout(600):
    list_servers()
    result = time.time() - began[0], time.monotonic() - began[1]
"""
    long_ago = Start(b"s" * 32, 1_000_000_000 * 10**9)
    first = await recorded(pool, Job(code, limits=LIMITS, start=long_ago))
    assert max(first.outcome.result) < 60
    resumed = await run_again(pool, replace(first, pieces=first.pieces[:1]))
    wall, monotonic = resumed.outcome.result
    assert wall > 3600
    assert monotonic < 60
    whole = replace(resumed, pieces=[*first.pieces[:1], *resumed.pieces])
    assert (await run_again(pool, whole)).outcome.result == [wall, monotonic]


async def test_the_programs_of_a_session_are_run_again_one_by_one(pool):
    programs = [
        "import random, time\nfirst = time.monotonic()\nclass A: pass\nkept = {A() for _ in range(9)}\nrandom.random()",
        "print(kept, random.random(), time.monotonic() - first, time.time())",
        """
import asyncio
async def ask():
    return await call_tool("s.t", {"at": time.time()})
print(await asyncio.gather(ask(), ask(), return_exceptions=True), {A(), *kept})
""",
    ]
    first = [await recorded(pool, Job(code, limits=LIMITS, session="one")) for code in programs]
    again = [await run_again(pool, each, session="two") for each in first]
    assert [told(each.outcome) for each in again] == [told(each.outcome) for each in first]


@pytest.mark.parametrize(
    ("recorded_code", "code", "why", "line"),
    [
        ("import time\n1", "import time\n\ntime.time()", "goes on where the recorded run had ended", 3),
        ("import time\ntime.time()\ntime.time()", "import time\ntime.time()", "ended before it had done all", None),
        ("import time\ntime.time()", "import time\ntime.process_time()", "read another clock", 2),
        (
            "import time\ntime.time()",
            "import time\ntry:\n    time.process_time()\nexcept BaseException:\n    print('caught')\nresult = 1",
            "read another clock",
            3,
        ),
        (
            "import asyncio\nawait asyncio.sleep(0.001)",
            "import asyncio\nawait asyncio.sleep(0.001)\nawait asyncio.sleep(0.001)",
            "goes on where the recorded run had ended",
            3,
        ),
    ],
)
async def test_a_run_that_does_not_do_what_is_recorded_ends_and_says_where(pool, recorded_code, code, why, line):
    first = await recorded(pool, recorded_code)
    again = await pool.run(replace(first.job, code=code, trace=first.trace), no_calls)
    assert again.diverged
    assert (again.status, again.error.type) == (Status.ERROR, "ReplayDiverged")
    assert re.search(why, again.error.message)
    assert again.error.line == line
    assert again.result is None


async def test_a_poll_for_an_answer_that_was_never_asked_for_ends_the_run(pool):
    first = await recorded(pool, "import asyncio\nawait asyncio.gather(*(call_tool('s.t', {}) for _ in range(3)))")
    code = "import asyncio\nawait asyncio.gather(call_tool('s.t', {}), return_exceptions=True)"
    journal = Journal()
    again = await pool.run(replace(first.job, code=code, trace=first.trace), journal.answer)
    assert again.diverged
    assert re.search(r"its call \d is not one that a task waits for|ended before it", again.error.message)


@pytest.mark.parametrize(
    ("trace", "why"),
    [
        (b"\x02\x01\x00\x00", "its format is 2"),
        (b"\x01", "a piece is cut off"),
        (b"\x01\x00\x05\x00", "a piece is cut off"),
        (b"\x01\x00\xff", "cut off or too large"),
        (b"\x01\x01\x00\x00\x01\x01\x00\x00", "something follows its end"),
        (b"\x01\x01\x01\x80\x00", "cut off or too large"),
        (b"\x01\x00\x00\x03\x00\xff\x7f", "does not do next|goes on|cut off|ended before"),
    ],
)
async def test_a_trace_that_cannot_be_read_ends_the_run_with_a_reason(pool, trace, why):
    outcome = await pool.run(Job("import time\nresult = time.time()", limits=LIMITS, trace=trace), no_calls)
    assert outcome.diverged
    assert re.search(why, outcome.error.message)


_PARTS = {
    "sleep": "await asyncio.sleep(random.random() / 300)",
    "turn": "await asyncio.sleep(0)",
    "ask": "told.append(str(await call_tool('s.t', {'n': n, 'at': time.time()})))",
    "ask at once": "told.append(str(list_servers()))",
    "both": "told.append(await asyncio.gather(each(n + 10), each(n + 11)))",
    "first": "told.append((await first(n)))",
    "thread": "told.append(await asyncio.to_thread(in_thread, n))",
    "clock": "told.append((time.perf_counter(), time.process_time()))",
    "random": "told.append((random.random(), secrets.token_hex(4), str(uuid.uuid4())))",
    "set": "told.append({Node() for _ in range(9)} | {n, str(n), None})",
    "hurry": "told.append(await hurried(n))",
}
_PROGRAM = """
import asyncio, random, secrets, time, uuid
class Node:
    pass
async def each(n):
    await asyncio.sleep(random.random() / 300)
    return n, time.time()
async def first(n):
    tasks = [asyncio.create_task(each(n + i)) for i in range(4)]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    return [task.result() for task in done], len(pending)
async def hurried(n):
    try:
        return await asyncio.wait_for(call_tool("s.t", {"n": n}), 0.01)
    except Exception as error:
        return type(error).__name__
def in_thread(n):
    time.sleep(random.random() / 300)
    return n, time.monotonic()
async def work(n):
    told = []
    try:
        PARTS
    except Exception as error:
        told.append(str(error))
    return told
print(await asyncio.gather(*(work(n) for n in range(4))))
result = time.time()
"""


@pytest.fixture(scope="module")
def in_two_pools() -> Iterator[Callable[[Callable[[Pool, Pool], Coroutine[None, None, None]]], None]]:
    """Runs a coroutine with the same two pools for all examples of a test: Hypothesis takes no coroutines."""
    with asyncio.Runner() as runner:
        pools = Pool(PoolSettings(spares=1)), Pool(PoolSettings(spares=1))
        for each in pools:
            runner.run(each.__aenter__())
        yield lambda use: runner.run(use(*pools))
        for each in pools:
            runner.run(each.aclose())


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(sorted(_PARTS)), min_size=1, max_size=8))
def test_whatever_a_program_is_made_of_it_does_the_same_again(in_two_pools, parts):
    code = _PROGRAM.replace("PARTS", "\n        ".join(_PARTS[part] for part in parts))

    async def use(pool, other):
        first = await recorded(pool, code)
        assert first.outcome.status is Status.OK, first.outcome.error
        assert told((await run_again(other, first)).outcome) == told(first.outcome)

    in_two_pools(use)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(cut=st.integers(0, 400), put=st.binary(max_size=9), at=st.integers(0, 400))
def test_no_change_of_a_trace_keeps_a_run_from_ending(in_two_pools, cut, put, at):
    async def use(pool, other):
        first = await recorded(pool, TASKS)
        trace = first.trace[:at] + put + first.trace[at + cut :]
        limits = replace(LIMITS, timeout_seconds=5.0)
        outcome = await other.run(replace(first.job, trace=trace, limits=limits), no_calls)
        assert outcome.status in {Status.OK, Status.ERROR}

    in_two_pools(use)


async def test_a_loop_that_waits_for_a_time_leaves_a_small_trace(pool):
    first = await recorded(
        pool, "import time\nend = time.time() + 3\nn = 0\nwhile time.time() < end:\n    n += 1\nresult = n"
    )
    assert first.outcome.result > 5000
    assert len(first.trace) < 64 * 1024
    assert (await run_again(pool, first)).outcome.result == first.outcome.result


async def test_a_run_without_calls_and_readings_has_a_trace_of_some_bytes(pool):
    assert len((await recorded(pool, "1 + 1")).trace) < 16


async def test_only_a_run_in_restricted_is_recorded_or_follows_a_trace():
    settings = PoolSettings(spares=0, isolation=Isolation.PROCESS)
    async with Pool(settings) as pool:
        for job, recorder in (
            (Job("1", isolation=Isolation.PROCESS), Journal()),
            (Job("1", isolation=Isolation.PROCESS, trace=b"\x01\x01\x00\x00"), None),
        ):
            with pytest.raises(LimitRefused, match="cannot be recorded or follow a trace"):
                await pool.run(job, no_calls, recorder)


async def test_a_trace_that_is_too_large_is_refused(pool):
    with pytest.raises(LimitRefused, match="at most"):
        await pool.run(Job("1", limits=LIMITS, trace=bytes(TRACE_BYTES_MAX + 1)), no_calls)
