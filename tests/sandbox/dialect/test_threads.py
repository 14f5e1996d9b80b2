"""Threads, queues, executors and processes of code, which take turns on green threads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sealab.sandbox.dialect import event_loop, green_threads
from sealab.sandbox.guest.host_channel import HostGone

from ..guest_code import run
from ..sealed import gives_what_python_gives

pytestmark = pytest.mark.usefixtures("modules_are_run_anew")


@pytest.fixture(autouse=True)
def no_task_is_left() -> Iterator[None]:
    yield
    event_loop.take_cancelled()


@pytest.mark.parametrize(
    ("wait", "wake"),
    [
        ("lock.acquire()", "lock.release()"),
        ("event.wait()", "event.set()"),
        ("condition.acquire(); condition.wait()", "condition.acquire(); condition.notify(); condition.release()"),
        ("semaphore.acquire()", "semaphore.release()"),
        ("barrier.wait()", "barrier.wait()"),
        ("items.get()", "items.put(1)"),
        ("simple.get()", "simple.put(1)"),
        ("future.result()", "future.set_result(1)"),
    ],
)
def test_a_thread_waits_until_another_wakes_it(wait: str, wake: str) -> None:
    source = f"""
    import threading, queue
    from concurrent.futures import Future
    lock = threading.Lock()
    lock.acquire()
    event, condition, semaphore = threading.Event(), threading.Condition(), threading.Semaphore(0)
    barrier, items, simple, future = threading.Barrier(2), queue.Queue(), queue.SimpleQueue(), Future()
    seen = []
    def waits():
        seen.append("waits")
        {wait}
        seen.append("goes on")
    thread = threading.Thread(target=waits)
    thread.start()
    seen.append("wakes")
    {wake}
    thread.join()
    seen
    """
    assert run(source).value == ["waits", "wakes", "goes on"]


@pytest.mark.parametrize(
    "source",
    [
        "import threading\nthreading.Event().wait()",
        "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()",
        "import queue\nqueue.Queue().get()",
        "import threading\nthread = threading.Thread(target=threading.Event().wait)\nthread.start()\nthread.join()",
        """
        import threading, time
        first, second = threading.Lock(), threading.Lock()
        def take(one, other):
            with one:
                time.sleep(0.01)
                with other:
                    pass
        threads = [threading.Thread(target=take, args=pair) for pair in ((first, second), (second, first))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        """,
        "import asyncio, threading\nawait asyncio.to_thread(threading.Event().wait)",
    ],
)
def test_threads_that_all_wait_are_an_error_at_once(source: str) -> None:
    with pytest.raises(RuntimeError, match="waits for something that no") as raised:
        run(source)

    assert type(raised.value).__name__ == "RuntimeError"


def test_a_deadlock_can_be_caught_and_the_program_goes_on() -> None:
    source = """
    import threading
    try:
        threading.Event().wait()
    except RuntimeError:
        thread = threading.Thread(target=print, args=("on",))
        thread.start()
        thread.join()
    """
    assert run(source).output == "on\n"


def test_what_a_thread_raises_is_written_and_a_hook_of_the_codes_own_gets_it() -> None:
    source = """
    import sys, threading
    def fail():
        raise ValueError("bad")
    first = threading.Thread(target=fail, name="worker")
    first.start(); first.join()
    ends = threading.Thread(target=sys.exit, args=(3,))
    ends.start(); ends.join()
    threading.excepthook = lambda args: print("hook", args.exc_type.__name__, args.exc_value, args.thread.name)
    second = threading.Thread(target=fail, name="other")
    second.start(); second.join()
    """
    ran = run(source)

    assert ran.stderr.startswith("Exception in thread worker:\nTraceback (most recent call last):")
    assert ran.stderr.endswith("ValueError: bad\n")
    assert ran.output == "hook ValueError bad other\n"


def test_the_program_ends_after_its_threads_but_for_daemons() -> None:
    source = """
    import threading, time
    from concurrent.futures import ThreadPoolExecutor
    seen = []
    def later():
        time.sleep(0.02)
        seen.append("later")
    def forever():
        while True:
            time.sleep(0.001)
    threading.Thread(target=later).start()
    threading.Thread(target=forever, daemon=True).start()
    threading.Thread(target=threading.Event().wait).start()
    pool = ThreadPoolExecutor()
    pool.submit(seen.append, "pool")
    seen
    """
    assert run(source).value == ["pool", "later"]


def test_a_pool_whose_workers_wait_for_its_own_work_is_an_error_at_once() -> None:
    source = """
    from concurrent.futures import ThreadPoolExecutor
    pool = ThreadPoolExecutor(1)
    pool.submit(lambda: pool.submit(int).result()).result()
    """
    with pytest.raises(RuntimeError, match="every thread waits"):
        run(source)


def test_processes_are_threads() -> None:
    source = """
    import multiprocessing
    from multiprocessing import Pool, Process, Queue
    def square(n):
        return n * n
    def put(queue, n):
        queue.put(square(n))
    def fail():
        raise ValueError("no")
    if __name__ == "__main__":
        with Pool(4) as pool:
            seen = [pool.map(square, range(4)), pool.starmap(pow, [(2, 3)]), pool.apply_async(square, (5,)).get(timeout=1)]
        queue = Queue()
        processes = [Process(target=put, args=(queue, n)) for n in range(3)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        bad = Process(target=fail)
        bad.start(); bad.join()
        seen += [[queue.get() for _ in processes], [process.exitcode for process in (*processes, bad)]]
        total = multiprocessing.Value("i", 0)
        with total.get_lock():
            total.value += 2
        seen += [total.value, multiprocessing.cpu_count() > 0]
    seen
    """
    assert run(source).value == [[0, 1, 4, 9], [8], 25, [0, 1, 4], [0, 0, 0, 1], 2, True]


def test_a_task_that_is_made_where_no_loop_runs_runs_before_the_program_ends() -> None:
    source = """
    import asyncio
    seen = []
    async def work(n):
        await asyncio.sleep(0.001)
        seen.append(n)
    task = asyncio.create_task(work(1))
    asyncio.ensure_future(work(2), loop=asyncio.get_event_loop())
    seen.append(0)
    seen
    """
    assert run(source).value == [0, 1, 2]


def test_what_such_a_task_raises_is_the_programs_error() -> None:
    with pytest.raises(ZeroDivisionError):
        run("import asyncio\nasync def work():\n    1 / 0\ntask = asyncio.create_task(work())")


def test_a_hostile_thread_reaches_no_more_than_the_program() -> None:
    source = """
    import threading, _thread, _green_threads
    seen = []
    class Hostile(threading.Thread):
        def __getattribute__(self, name):
            seen.append(name)
            return super().__getattribute__(name)
        @property
        def daemon(self):
            raise KeyboardInterrupt
    try:
        Hostile().start()
    except BaseException as error:
        seen.append(type(error).__name__)
    for wrong in (None, "x", 5.5, -1, 10**30, object(), [1]):
        for function in (_green_threads.wake, _green_threads.park, _green_threads.start):
            try:
                function(wrong) if function is not _green_threads.park or wrong is None or wrong == "x" else None
            except (TypeError, RuntimeError, OverflowError):
                pass
    [name for name in dir(_green_threads)]
    """
    assert run(source).value == ["current", "main", "park", "start", "wake"]


def test_the_end_of_the_host_ends_the_program_from_any_thread() -> None:
    def gone() -> None:
        raise HostGone

    green_threads.start(gone)

    with pytest.raises(HostGone):
        green_threads.park()


def test_no_other_thread_runs_while_the_garbage_collector_calls_a_finalizer() -> None:
    source = """
    import gc, threading, time
    told, lock = [], threading.Lock()
    class Waits:
        def __del__(self):
            told.append("in")
            time.sleep(0)
            time.sleep(0.001)
            try:
                lock.acquire()
            except RuntimeError as error:
                told.append(str(error)[:35])
            told.append("out")
    def other():
        with lock:
            for _ in range(5):
                told.append("other")
                time.sleep(0)
    thread = threading.Thread(target=other)
    thread.start()
    time.sleep(0)
    waits = Waits()
    waits.own = waits
    del waits
    gc.collect()
    thread.join()
    [told[told.index("in") : told.index("out")], told.count("other")]
    """
    within, others = run(source).value  # type: ignore[misc]  # two
    assert within == ["in", "a finalizer that the garbage collec"]
    assert others == 5


AS_IN_PYTHON = {
    "workers of a queue get what is put in order": """
    import queue, threading
    jobs, done = queue.Queue(maxsize=2), []
    def worker():
        while (job := jobs.get()) is not None:
            done.append(job)
            jobs.task_done()
        jobs.task_done()
    threads = [threading.Thread(target=worker) for _ in range(3)]
    for thread in threads:
        thread.start()
    for job in [*range(20), None, None, None]:
        jobs.put(job)
    jobs.join()
    [done, jobs.empty(), [thread.is_alive() for thread in threads]]
    """,
    "a lock excludes others and time outs end waits": """
    import threading, queue
    lock, event, condition, inner = threading.Lock(), threading.Event(), threading.Condition(), threading.RLock()
    results = [lock.acquire(), lock.acquire(timeout=0.01), lock.acquire(blocking=False), event.wait(0.01)]
    with condition:
        results.append(condition.wait(0.01))
        results.append(condition.wait_for(lambda: True, 1))
    with inner, inner:
        results.append(True)
    for take in (lambda: queue.Queue().get(timeout=0.01), lambda: queue.Queue().get_nowait()):
        try:
            take()
        except queue.Empty:
            results.append("empty")
    results
    """,
    "threads have names numbers and variables of their own": """
    import threading
    own = threading.local()
    own.x = 1
    class Counted(threading.local):
        def __init__(self, n):
            self.n = n
    counted = Counted(5)
    seen = []
    def look():
        seen.append((hasattr(own, "x"), counted.n, threading.current_thread().name, threading.get_ident() != main))
        counted.n = own.x = 7
    main = threading.get_ident()
    thread = threading.Thread(target=look, name="looks")
    thread.start(); thread.join()
    seen.append((own.x, counted.n, threading.current_thread() is threading.main_thread(), threading.active_count()))
    seen
    """,
    "subclasses timers and misuse behave as in python": """
    import threading
    class Sum(threading.Thread):
        def __init__(self, numbers):
            super().__init__(daemon=True)
            self.numbers = numbers
        def run(self):
            self.total = sum(self.numbers)
    thread = Sum([1, 2])
    thread.start(); thread.join(timeout=1)
    seen = [thread.total, thread.daemon, thread.is_alive()]
    timer = threading.Timer(0.001, seen.append, ["timer"])
    timer.start(); timer.join()
    never = threading.Timer(60, seen.append, ["never"])
    never.start(); never.cancel(); never.join()
    class Bad(threading.Thread):
        def __init__(self):
            pass
    for wrong in (thread.start, threading.current_thread().join, threading.Lock().release, Bad().start, Sum(1).join):
        try:
            wrong()
        except RuntimeError as error:
            seen.append(str(error))
    seen
    """,
    "executors give results in order errors and time outs": """
    import time
    from concurrent.futures import ThreadPoolExecutor, ProcessPoolExecutor, as_completed, wait
    seen = []
    with ThreadPoolExecutor(max_workers=2, thread_name_prefix="w") as pool:
        seen.append(list(pool.map(lambda n: n * n, range(5))))
        futures = {pool.submit(time.sleep, seconds): seconds for seconds in (0.03, 0.001)}
        seen.append([futures[future] for future in as_completed(futures)])
        slow = pool.submit(time.sleep, 0.02)
        try:
            slow.result(timeout=0.001)
        except TimeoutError:
            seen.append("late")
        bad = pool.submit(int, "x")
        seen.append(type(bad.exception()).__name__)
        try:
            bad.result()
        except ValueError as error:
            seen.append(str(error))
        done, open_ones = wait([pool.submit(int, "1")])
        seen.append((len(done), len(open_ones)))
        seen.append(pool.submit(lambda: pool.submit(lambda: "inner").result()).result())
        busy = [pool.submit(time.sleep, 0.01) for _ in range(2)]
        waiting = pool.submit(int, "7")
        seen.append((waiting.cancel(), waiting.cancelled()))
    try:
        pool.submit(int)
    except RuntimeError as error:
        seen.append(str(error))
    with ProcessPoolExecutor(2) as pool:
        seen.append(list(pool.map(abs, [-1, 2], chunksize=2)))
    seen
    """,
    "the loop goes on while threads wait": """
    import asyncio, time
    from concurrent.futures import ThreadPoolExecutor
    seen = []
    def block(name, seconds):
        time.sleep(seconds)
        seen.append(name)
        return name
    async def tick():
        for number in range(2):
            seen.append(number)
            await asyncio.sleep(0)
    async def main():
        task = asyncio.create_task(tick())
        names = await asyncio.gather(asyncio.to_thread(block, "slow", 0.3), asyncio.to_thread(block, "fast", 0.02))
        await task
        with ThreadPoolExecutor(1) as pool:
            names.append(await asyncio.get_running_loop().run_in_executor(pool, block, "pool", 0.001))
        names.append(await asyncio.to_thread(lambda: asyncio.run(asyncio.sleep(0.001, "inner loop"))))
        try:
            await asyncio.to_thread(int, "x")
        except ValueError as error:
            names.append(type(error).__name__)
        try:
            await asyncio.wait_for(asyncio.to_thread(block, "abandoned", 0.02), 0.001)
        except TimeoutError:
            names.append("late")
        return names
    [asyncio.run(main()), seen]
    """,
    "what is in the midst of it is kept for each thread": """
    import asyncio, contextvars, decimal, threading, time
    variable = contextvars.ContextVar("variable", default="none")
    seen = []
    decimal.getcontext().prec = 28
    def other():
        seen.append(variable.get())
        variable.set("other")
        decimal.getcontext().prec = 3
        time.sleep(0.01)
        seen.append((variable.get(), decimal.getcontext().prec))
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            seen.append("no loop")
    async def main():
        variable.set("main")
        try:
            raise ValueError("handled")
        except ValueError:
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            try:
                raise
            except ValueError as error:
                seen.append(str(error))
        seen.append((variable.get(), decimal.getcontext().prec, asyncio.get_running_loop().is_running()))
    asyncio.run(main())
    seen
    """,
    "a thousand threads wait at once": """
    import threading
    event, count = threading.Event(), []
    threads = [threading.Thread(target=lambda: (event.wait(), count.append(1))) for _ in range(1_000)]
    for thread in threads:
        thread.start()
    event.set()
    for thread in threads:
        thread.join()
    len(count)
    """,
    "recursion ends in a thread as it does in the program": """
    import sys, threading
    seen = []
    def deep(n):
        return deep(n + 1)
    def dig():
        try:
            deep(0)
        except RecursionError:
            seen.append("deep")
    for _ in range(2):
        thread = threading.Thread(target=dig)
        thread.start(); thread.join()
    [seen, sys.getrecursionlimit()]
    """,
    "a thread may end while what it waits for is collected": """
    import gc, threading, time
    seen = []
    class Slow:
        def __del__(self):
            time.sleep(0.001)
            seen.append("collected")
    def work():
        Slow()
        gc.collect()
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen
    """,
    "a generator is not entered by two threads": """
    import threading, time
    def numbers():
        time.sleep(0.01)
        yield 1
    shared, seen = numbers(), []
    def take():
        try:
            seen.append(next(shared))
        except ValueError as error:
            seen.append(str(error))
    threads = [threading.Thread(target=take) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen
    """,
}


@pytest.mark.parametrize("program", AS_IN_PYTHON.values(), ids=AS_IN_PYTHON)
def test_a_program_gives_what_python_gives(program: str) -> None:
    gives_what_python_gives(program)
