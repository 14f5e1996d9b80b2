"""What the queue of background runs costs, beside DBOS on SQLite doing the same: a run is queued, taken and finished.

    python tests/benchmarks/background_engines.py [PYTHON WITH dbos]

DBOS is measured by an interpreter that has it (`pip install dbos` in an environment of its own); it is no dependency.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from sealab.skills_db.engine import open_database
from sealab.skills_db.journal.background_store import BackgroundStore

RUNS = 200
LEASE_SECONDS = 600.0

DBOS = """
import statistics, sys, time
began = time.perf_counter()
from dbos import DBOS
imported = time.perf_counter() - began
DBOS(config={"name": "bench", "system_database_url": "sqlite:///" + sys.argv[1], "log_level": "WARNING"})

@DBOS.workflow()
def work(number):
    return number

DBOS.launch()
direct = []
for number in range(int(sys.argv[2])):
    began = time.perf_counter()
    work(number)
    direct.append((time.perf_counter() - began) * 1000)
DBOS.register_queue("queue", worker_concurrency=2)
queued = []
for number in range(20):
    began = time.perf_counter()
    DBOS.enqueue_workflow("queue", work, number).get_result()
    queued.append((time.perf_counter() - began) * 1000)
resident = int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6
print(f"import {imported:.2f} s, resident {resident:.0f} MB")
print(f"a workflow, called        {statistics.median(direct):9.1f} ms")
print(f"a workflow, queued to end {statistics.median(queued):9.1f} ms")
DBOS.destroy()
"""


def timed(work: Callable[[int], object]) -> float:
    """Return the median of so many calls in milliseconds."""
    times = []
    for number in range(RUNS):
        began = time.perf_counter()
        work(number)
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def rows_with_leases(home: Path) -> None:
    """Measure sealab's own queue."""
    request = {"code": "x = 1\n" * 50, "scope": "home"}
    with open_database(None, home) as database:
        store = BackgroundStore(database, bytes(32), process="one")

        def put(number: int) -> None:
            store.put(f"run{number}", "home", request, expires=time.time() + 1e6, most=RUNS)

        def taken_and_finished(_number: int) -> None:
            claimed = store.claim(LEASE_SECONDS, most=RUNS)
            assert claimed is not None
            store.finish(claimed.run_id, claimed.owner, {"report": {"result": 1}})

        print(f"a run, queued             {timed(put):9.1f} ms")
        print(f"a run, taken and finished {timed(taken_and_finished):9.1f} ms")
        store.put("cut", "home", request, expires=time.time() + 1e6, most=RUNS)
        store.claim(-1.0, most=RUNS)
        began = time.perf_counter()
        again = BackgroundStore(database, bytes(32), process="two").claim(LEASE_SECONDS, most=RUNS)
        assert again is not None
        assert again.was_cut
        print(f"a run whose lease is over {(time.perf_counter() - began) * 1000:9.1f} ms until another process has it")


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        print("rows with leases, in the database that is open anyway")
        rows_with_leases(Path(home))
        for python in sys.argv[1:]:
            print("DBOS on SQLite")
            subprocess.run([python, "-c", DBOS, str(Path(home) / "dbos.db"), str(RUNS)], check=True)


if __name__ == "__main__":
    main()
