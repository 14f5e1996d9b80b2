"""Full Python with the workspace as its current directory, through an overlay: real workers, and hostile code in them."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from sealab.sandbox.confine.overlay import SCRATCH, UPPER
from sealab.sandbox.errors import WorkerLost
from sealab.sandbox.host import run_folders, worker
from sealab.sandbox.host.pool import Pool, PoolSettings
from sealab.sandbox.job import Isolation, Job, Json, Limits, Outcome, Status, WrittenFolder

from ...waiting import until
from ..conftest import failure, no_calls

SCRATCH_BYTES = 50_000_000


@pytest.fixture(scope="module")
def workspace() -> Iterator[Path]:
    # On a throw-away machine only memory can be the upper layer of an overlay.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.environ.get("SEALAB_DISPOSABLE") else None) as place:
        folder = Path(place) / "workspace"
        folder.mkdir(mode=0o700)
        (folder / "table.csv").write_text("a,b\n1,2\n", encoding="utf-8")
        yield folder


@pytest.fixture(scope="module")
async def pool(workspace: Path) -> AsyncIterator[Pool]:
    settings = PoolSettings(
        spares=1,
        isolation=Isolation.PROCESS,
        workspace=str(workspace),
        run_folders=str(workspace.parent / "scratch"),
        run_folder_bytes=SCRATCH_BYTES,
        maximum=Limits(timeout_seconds=120.0, memory_mb=2000, file_size_mb=40),
    )
    async with Pool(settings) as pool:
        await pool.ready()
        outcome = await run(pool, "import os\nos.getcwd()")
        if outcome.result != "/workspace":
            pytest.skip("this machine has no overlays for users, or not on this file system")
        yield pool
    assert os.listdir(workspace.parent / "scratch" / "runs") == []


async def run(pool: Pool, code: str, *, session: str | None = None, takes_home=None, **limits: float) -> Outcome:
    allowed = Limits(**{"timeout_seconds": 30.0, "memory_mb": 300, **limits})  # type: ignore[arg-type]
    job = Job(code, isolation=Isolation.PROCESS, limits=allowed, session=session, takes_home=takes_home)
    return await pool.run(job, no_calls)


def files_below(path: str) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in Path(path).rglob("*") if each.is_file()}


def write(path: str) -> None:
    Path(path).write_bytes(bytes(100_000))


def size_of(path: str) -> int:
    return os.path.getsize(path)


class Home:
    """Looks at what is brought home while no process of the worker runs."""

    def __init__(self) -> None:
        self.found: list[dict[str, bytes]] = []
        self.ended: list[Status] = []

    async def __call__(self, outcome: Outcome, folder: WrittenFolder) -> Outcome:
        self.ended.append(outcome.status)
        self.found.append(files_below(folder.path))
        return outcome


async def test_what_code_writes_is_seen_by_it_and_by_the_host_and_not_in_the_workspace(
    pool: Pool, workspace: Path
) -> None:
    home = Home()
    code = "open('table.csv', 'a').write('3,4\\n')\nopen('new', 'w').write('n')\nopen('table.csv').read()"
    outcome = await run(pool, code, takes_home=home)
    assert outcome.result == "a,b\n1,2\n3,4\n", outcome
    assert home.found == [{"table.csv": b"a,b\n1,2\n3,4\n", "new": b"n"}]
    assert (workspace / "table.csv").read_text() == "a,b\n1,2\n"
    assert (await run(pool, "import os\nos.listdir('.')")).result == ["table.csv"]


async def test_a_run_that_writes_nothing_calls_nobody(pool: Pool) -> None:
    home = Home()
    assert (await run(pool, "open('table.csv').read()", takes_home=home)).status is Status.OK
    assert home.found == []


async def test_no_folder_of_the_host_or_of_another_run_can_be_seen_or_guessed(pool: Pool, workspace: Path) -> None:
    others = os.listdir(workspace.parent / "scratch" / "runs")
    code = f"""
import os
open("mark", "w").write("x")
found = []
for path in ["/.runs", "/.runs/.", "/proc/self/mountinfo", "/workspace/../.runs", {str(workspace.parent)!r},
             *(f"/.runs/{{name}}/upper" for name in {others!r}), *(f"/.runs/{{name}}" for name in {others!r})]:
    for look in (os.listdir, os.stat, open):
        try:
            found.append([path, str(look(path))[:100]])
        except OSError:
            pass
[each for each in found if not (each[1].startswith("os.stat_result") and each[0] in ("/.runs", "/.runs/.", "/workspace/../.runs"))]
"""
    assert (await run(pool, code)).result == []


async def test_nothing_that_it_writes_executes_or_is_set_user_id_or_a_device(pool: Pool) -> None:
    code = """
import ctypes, mmap, os
result = {}
with open("lib.so", "wb") as file:
    file.write(b"\\x7fELF" + bytes(60))
try:
    ctypes.CDLL("/workspace/lib.so")
    result["library"] = "loaded"
except OSError:
    result["library"] = "refused"
try:
    with open("lib.so", "r+b") as file:
        mmap.mmap(file.fileno(), 64, prot=mmap.PROT_READ | mmap.PROT_EXEC)
    result["code"] = "mapped"
except OSError:
    result["code"] = "refused"
for name, make in {
    "set-user-id": lambda: os.chmod("lib.so", 0o4755),
    "set-group-id": lambda: os.close(os.open("sgid", os.O_CREAT | os.O_WRONLY, 0o2755)),
    "device": lambda: os.mknod("dev", 0o020666, os.makedev(1, 5)),
    "pipe": lambda: os.mkfifo("fifo"),
    "attribute": lambda: os.setxattr("lib.so", "user.overlay.opaque", b"y"),
}.items():
    try:
        make()
        result[name] = "done"
    except OSError:
        result[name] = "refused"
result
"""
    outcome = await run(pool, code)
    assert outcome.status is Status.OK, outcome
    assert isinstance(outcome.result, dict)
    assert set(outcome.result.values()) == {"refused"}, outcome.result


async def test_a_session_goes_on_with_its_files_and_sees_what_others_changed(pool: Pool, workspace: Path) -> None:
    home = Home()
    seen = "import os\nout = [open('other').read() if os.path.exists('other') else None, open('mine').read()]\nout"
    begun = await run(pool, "open('mine', 'w').write('1')\n" + seen, session="s", takes_home=home)
    assert begun.result == [None, "1"], begun
    for text in ("first", "second"):
        (workspace / "part").write_text(text)
        (workspace / "part").rename(workspace / "other")
        assert (await run(pool, seen, session="s", takes_home=home)).result == [text, "1"]
    (workspace / "other").unlink()
    assert [each["mine"] for each in home.found] == [b"1"] * 3
    await pool.end_session("s")


def writes_and_goes_on(name: str) -> str:
    return f"open('part', 'w').write('b')\nimport os\nos.rename('part', {name!r})\nimport time\nwhile True: time.sleep(0.01)"


async def until_written(workspace: Path, name: str) -> None:
    async with asyncio.timeout(60):
        while not list((workspace.parent / "scratch" / "runs").glob(f"*/{UPPER}/{name}")):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("session", [None, "stopped"])
async def test_what_a_cancelled_run_wrote_is_taken_home_before_its_folder_goes(
    pool: Pool, workspace: Path, session: str | None
) -> None:
    home, name = Home(), f"of {session}"
    running = asyncio.create_task(run(pool, writes_and_goes_on(name), session=session, takes_home=home))
    await until_written(workspace, name)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert home.found == [{name: b"b"}]
    assert home.ended == [Status.CANCELLED]


async def test_what_a_run_wrote_is_taken_home_though_its_session_is_ended_meanwhile(
    pool: Pool, workspace: Path
) -> None:
    home = Home()
    running = asyncio.create_task(run(pool, writes_and_goes_on("of ended"), session="ended", takes_home=home))
    await until_written(workspace, "of ended")
    assert await pool.end_session("ended")
    assert (await running).status is Status.CRASHED
    assert home.found == [{"of ended": b"b"}]


async def test_what_a_run_wrote_is_taken_home_though_its_zygote_is_killed(pool: Pool, workspace: Path) -> None:
    home = Home()
    running = asyncio.create_task(run(pool, writes_and_goes_on("of zygote"), takes_home=home))
    await until_written(workspace, "of zygote")
    zygote = pool._zygotes.newest
    assert zygote is not None
    assert zygote.pid is not None
    os.kill(zygote.pid, signal.SIGKILL)
    outcome = await running
    assert outcome.status is Status.CRASHED
    assert home.found == [{"of zygote": b"b"}]
    await pool.ready()


async def test_a_run_that_is_cancelled_while_its_files_come_home_is_over_when_they_are(
    pool: Pool, workspace: Path
) -> None:
    begun, going_on, order = asyncio.Event(), asyncio.Event(), []

    async def home(outcome: Outcome, _folder: WrittenFolder) -> Outcome:
        begun.set()
        await going_on.wait()
        order.append("home")
        return outcome

    running = asyncio.create_task(run(pool, "open('f', 'w').close()", session="cut", takes_home=home))
    await begun.wait()
    running.cancel()
    asyncio.get_running_loop().call_later(0.1, going_on.set)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert order == ["home"]


async def test_while_files_come_home_no_thread_of_a_session_writes(pool: Pool) -> None:
    sizes: list[tuple[int, int]] = []

    async def home(outcome: Outcome, folder: WrittenFolder) -> Outcome:
        path = os.path.join(folder.path, "log")
        before = size_of(path)
        for _ in range(200):
            os.sched_yield()
            os.stat(folder.path)
        sizes.append((before, size_of(path)))
        return outcome

    code = """
import threading
def write():
    with open("log", "ab", buffering=0) as log:
        while True:
            log.write(b"x")
for _ in range(4):
    threading.Thread(target=write, daemon=True).start()
while not __import__("os").path.exists("log"): pass
"""
    await run(pool, code, session="threads", takes_home=home)
    grown = await run(
        pool,
        "import os, time\nsize = os.path.getsize('log')\nwhile os.path.getsize('log') == size: time.sleep(0.001)\nTrue",
        session="threads",
        takes_home=home,
    )
    assert grown.result is True, grown  # it goes on afterwards
    assert len(sizes) == 2
    assert all(before == after for before, after in sizes)
    await pool.end_session("threads")


async def test_threads_of_a_session_compute_during_its_calls_alone(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_folders, "_FIRST_LOOK_SECONDS", 0.01)  # a look lets none of them go on
    monkeypatch.setattr(run_folders, "_LOOK_SECONDS", 0.01)
    code = """
import threading, time
counted = 0
def count():
    global counted
    while True:
        counted += 1
threading.Thread(target=count, daemon=True).start()
open("begun", "w").close()
"""
    assert (await run(pool, code, session="computes", takes_home=Home())).status is Status.OK
    worker = pool._sessions._alive["computes"].worker
    assert worker is not None
    await until(worker._forked.has_stopped)
    before = worker.cpu_seconds()
    await asyncio.sleep(0.3)
    assert worker.cpu_seconds() == before
    goes_on = "seen = counted\nwhile counted == seen: time.sleep(0.001)\nTrue"
    assert (await run(pool, goes_on, session="computes")).result is True
    await pool.end_session("computes")


async def test_more_than_a_run_may_have_on_disk_ends_it(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_folders, "_FIRST_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(run_folders, "_LOOK_SECONDS", 0.01)
    code = """
for number in range(1000):
    with open(f"{'/tmp/' if number % 2 else ''}{number}", "wb") as file:
        file.write(bytes(10_000_000))
"""
    outcome = await run(pool, code)
    assert outcome.status is Status.ERROR, outcome
    assert "SCRATCH_MB" in failure(outcome).message


HOLDING = """
import ctypes, fcntl, mmap, os, tempfile, threading, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
held = []
def removed(name):
    file = os.open(name, os.O_RDWR | os.O_CREAT)
    os.write(file, bytes(10_000_000))
    os.remove(name)
    return file
"""
WAYS = {
    "without a name": "file = tempfile.TemporaryFile(); file.write(bytes(10_000_000)); held.append(file)",
    "open": "held.append(removed(f'{n}'))",
    "mapped": "file = removed(f'/tmp/{n}'); libc.mmap(None, 4096, 1, 1, file, 0); os.close(file)",
    "mapped at a low address": "file = removed(f'/tmp/{n}'); libc.mmap(0x100000 + 4096 * n, 4096, 1, 0x11, file, 0); os.close(file)",
    "by a thread alone": (
        "held.append(removed(f'{n}'))\nthreading.Thread(target=time.sleep, args=(20,)).start()\nlibc.syscall(60, 0)"
    ),
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_removed_file_counts_as_long_as_anything_keeps_it(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(run_folders, "_FIRST_LOOK_SECONDS", 0.5)  # by then it holds all of them
    outcome = await run(pool, f"{HOLDING}\nfor n in range(6):\n    {WAYS[way]}\ntime.sleep(20)")
    assert outcome.status is Status.ERROR, outcome
    assert "SCRATCH_MB" in failure(outcome).message


async def test_code_that_stops_itself_stays_stopped_whenever_its_files_are_looked_at(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_folders, "_FIRST_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(run_folders, "_LOOK_SECONDS", 0.01)
    outcome = await run(pool, "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", timeout_seconds=1.0)
    assert outcome.status is Status.TIMEOUT, outcome


async def test_a_removed_file_counts_no_longer_than_it_is_kept(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_folders, "_FIRST_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(run_folders, "_LOOK_SECONDS", 0.01)
    code = """
for n in range(12):
    os.close(removed("f"))
    file = removed("/tmp/f")
    memory = mmap.mmap(file, 0)
    os.close(file)
    memory.close()
held += [removed("/tmp/f"), removed("f")]
time.sleep(0.2)
import sqlite3
with sqlite3.connect("d.sqlite") as database:
    database.execute("create table t as select 1 as a")
database.execute("select a from t").fetchone()
"""
    assert (await run(pool, HOLDING + code)).result == [1]


async def test_more_record_locks_than_a_run_may_hold_end_it(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_folders, "_FIRST_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(run_folders, "_LOOK_SECONDS", 0.01)
    code = (
        "import fcntl, time\nfile = open('f', 'w')\nfor n in range(count): fcntl.lockf(file, fcntl.LOCK_EX, 1, 2 * n)\n"
    )
    few = await run(pool, f"count = {run_folders.LOCKS_MAX}\n{code}time.sleep(0.2)")
    assert few.status is Status.OK, few
    many = await run(pool, f"count = {run_folders.LOCKS_MAX + 1}\n{code}time.sleep(20)")
    assert failure(many).message == "The code was stopped, since it held more than 1000 locks on files."
    owned = "import fcntl, struct\nfcntl.fcntl(open('f', 'w'), 37, struct.pack('hhqqi', 1, 0, 0, 1, 0))"
    assert failure(await run(pool, owned)).type == "PermissionError"  # the kernel does not say whose those are


async def test_what_a_run_removes_and_keeps_mapped_ends_it_before_the_disk_is_full(
    pool: Pool, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_folders, "_FIRST_LOOK_SECONDS", 1000.0)  # by names alone it would never be seen
    code = """
import mmap, os
kept = []
for number in range(1000):
    with open("/tmp/f", "w+b") as file:
        file.write(bytes(30_000_000))
        file.flush()
        kept.append(mmap.mmap(file.fileno(), 4096))
    os.remove("/tmp/f")
"""
    ask = run_folders.RunFolder.free_bytes
    disk = os.statvfs(workspace)
    others = disk.f_bavail * disk.f_frsize - 600_000_000
    monkeypatch.setattr(run_folders.RunFolder, "free_bytes", lambda folder: ask(folder) - others)
    monkeypatch.setattr(run_folders, "_DISK_LOOK_SECONDS", (0.01, 0.01))
    watched = asyncio.create_task(run(pool, "import time\ntime.sleep(2)\n'not ended'"))
    outcome = await run(pool, code)
    assert outcome.status is Status.ERROR, outcome
    assert outcome.error is not None
    assert "the disk was nearly full" in outcome.error.message
    assert "SCRATCH_MB" in outcome.error.message
    assert (await watched).result == "not ended"


async def test_on_a_disk_that_is_nearly_full_a_run_has_half_of_what_is_left(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = 1_600_000

    def told(folder: run_folders.RunFolder) -> int:
        return free - sum(each.stat().st_size for each in (Path(folder.path) / UPPER).glob("f"))

    monkeypatch.setattr(run_folders.RunFolder, "free_bytes", told)
    monkeypatch.setattr(run_folders, "_DISK_LOOK_SECONDS", (0.01, 0.01))
    code = "import time\nopen('f', 'wb').write(bytes(size))\ntime.sleep(1)"
    little, much = await run(pool, f"size = 700_000\n{code}"), await run(pool, f"size = 900_000\n{code}")
    assert little.status is Status.OK, little
    assert "the disk was nearly full" in failure(much).message


@pytest.mark.adversarial
async def test_where_the_disk_has_no_room_for_more_files_a_run_that_makes_them_ends(
    pool: Pool, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_folders, "_FIRST_LOOK_SECONDS", 1000.0)  # its own number would be allowed
    monkeypatch.setattr(run_folders, "_DISK_LOOK_SECONDS", (0.01, 0.01))
    ask = run_folders.RunFolder.free_files
    others = os.statvfs(workspace).f_favail - 4_000
    monkeypatch.setattr(run_folders.RunFolder, "free_files", lambda folder: ask(folder) - others)
    watched = asyncio.create_task(run(pool, "import time\ntime.sleep(2)\n'not ended'"))
    outcome = await run(pool, "for n in range(50_000):\n    with open(f'/tmp/{n}', 'w'): pass")
    assert outcome.status is Status.ERROR, outcome
    told = re.search(r"no room for more than (\d+) files", failure(outcome).message)
    assert told is not None, outcome
    assert 1_500 < int(told[1]) <= 2_000  # half of those that were left
    assert (await watched).result == "not ended"


@pytest.mark.adversarial
async def test_what_earlier_runs_left_to_remove_keeps_no_run_from_being_looked_at(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_folders, "_FIRST_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(run_folders, "_LOOK_SECONDS", 0.01)
    held, remove = threading.Event(), run_folders._removed

    def removed(parent: int, name: str) -> bool:
        held.wait()
        return remove(parent, name)

    monkeypatch.setattr(run_folders, "_removed", removed)
    try:
        for _ in range(3):
            await run(pool, "open('f', 'w').close()")
        outcome = await run(
            pool, "import time\nfor n in range(6):\n    open(f'{n}', 'wb').write(bytes(10_000_000))\ntime.sleep(20)"
        )
    finally:
        held.set()
    assert "SCRATCH_MB" in failure(outcome).message


async def test_no_disk_is_taken_without_being_written_and_its_size_cannot_be_asked(pool: Pool) -> None:
    code = """
import os, shutil
told = []
with open("/tmp/claimed", "wb") as file:
    for ask in (
        lambda: os.posix_fallocate(file.fileno(), 0, 30_000_000), lambda: os.sendfile(1, file.fileno(), 0, 1),
        lambda: os.statvfs("/workspace"), lambda: os.fstatvfs(file.fileno()), lambda: shutil.disk_usage("/tmp"),
    ):
        try:
            told.append(str(ask()))
        except OSError as error:
            told.append(error.errno)
    told.append(os.stat(file.fileno()).st_blocks)
told
"""
    assert (await run(pool, code)).result == [38, 38, 38, 38, 38, 0]


async def test_one_file_cannot_be_larger_than_all_may_be(pool: Pool) -> None:
    code = """
try:
    with open("/tmp/large", "wb") as file:
        for _ in range(10):
            file.write(bytes(10_000_000))
except OSError as error:
    result = error.errno
"""
    assert (await run(pool, code)).result == 27


async def test_more_files_than_a_run_may_have_end_it(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_folders, "ENTRIES_MAX", 500)
    monkeypatch.setattr(run_folders, "_FIRST_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(run_folders, "_LOOK_SECONDS", 0.01)
    outcome = await run(pool, "import os\nfor n in range(1_000_000): os.close(os.open(str(n), os.O_CREAT))")
    assert "500 files" in failure(outcome).message


@pytest.mark.parametrize("closed", [0o700, 0])
async def test_folders_however_deep_and_closed_are_removed_with_their_run(
    pool: Pool, workspace: Path, closed: int
) -> None:
    code = f"""
import os
for n in range(300):
    os.mkdir("d")
    os.chdir("d")
    open("f", "w").close()
    os.chmod("../d", {closed | 0o700})
for n in range(40):
    os.chdir("..")
    os.chmod("d", {closed})
"""
    outcome = await run(pool, code)
    assert outcome.status is Status.OK or (outcome.error is not None and "deep" in outcome.error.message), outcome
    # That nothing of it is left, the end of the pool shows.


def test_whether_the_workspace_can_be_written_to_is_found_out_by_trying(tmp_path: Path, pool: Pool) -> None:
    code = f"from sealab.sandbox.confine import probe_overlay\nprint(probe_overlay({str(tmp_path / 'scratch')!r}))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "available=True" in told  # as the pool found too
    assert os.listdir(tmp_path / "scratch") == []
    code = "from sealab.sandbox.confine import probe_overlay\nprint(probe_overlay('/proc/1'))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "available=False" in told


async def test_where_there_is_no_overlay_the_workspace_is_read_only_as_before_and_the_log_says_why(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(run_folders.RunFolders, "trial", lambda _folders: SimpleNamespace(name="missing"))
    settings = PoolSettings(
        spares=1, isolation=Isolation.PROCESS, workspace=str(workspace), run_folders=str(tmp_path / "scratch")
    )
    async with Pool(settings) as pool:
        code = "import os\ntry:\n    open('/workspace/x', 'w')\nexcept OSError as error:\n    result = [os.getcwd(), error.errno]"
        outcome = await run(pool, code)
    assert outcome.result in (["/tmp", 13], ["/tmp", 30]), outcome
    assert "brings files home with keep()" in caplog.text


def test_an_abandoned_folder_is_removed_and_one_in_use_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = run_folders.RunFolders(str(tmp_path / "scratch"), 1000)
    folders.prepare()
    used, abandoned = folders.make(), folders.make()
    monkeypatch.setattr(run_folders, "_NEW_SECONDS", -1.0)
    (Path(abandoned.path) / UPPER / "f").write_text("f")
    os.close(abandoned.handle)
    folders._remove_abandoned()
    assert os.listdir(folders.path) == [used.name]


async def test_calls_at_once_that_write_to_the_workspace_are_all_answered(pool: Pool) -> None:
    async def saves(name: str, arguments: Mapping[str, Json]) -> Json:
        return cast("Mapping[str, Json]", arguments["arguments"])["save_to"] if name == "call_tool" else None

    code = "import asyncio\nawait asyncio.gather(*(call_tool('web.fetch', {'save_to': str(n)}) for n in range(20)))"
    job = Job(code, isolation=Isolation.PROCESS, limits=Limits(timeout_seconds=20.0, memory_mb=300))
    outcome = await pool.run(job, saves)
    assert outcome.result == [str(n) for n in range(20)], outcome


def test_what_cannot_be_looked_at_counts_as_changed(tmp_path: Path) -> None:
    folder = run_folders.RunFolders(str(tmp_path), SCRATCH_BYTES)
    folder.prepare()
    made = folder.make()
    assert not made.is_changed()
    os.rmdir(os.path.join(made.path, UPPER))
    assert made.is_changed()
    made.remove_soon()


async def test_removing_what_others_left_keeps_no_folder_from_being_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    folders = run_folders.RunFolders(str(tmp_path), 1000)
    folders.prepare()
    others, own = [folders.make() for _ in range(8)], folders.make()
    removed, slow = run_folders._removed, {each.name for each in others}
    monkeypatch.setattr(
        run_folders, "_removed", lambda parent, name: gate.wait() if name in slow else removed(parent, name)
    )
    for each in others:
        each.remove_soon()
    write(os.path.join(own.path, UPPER, "large"))
    found: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    watch = run_folders.FolderWatch(own, lambda: nullcontext(None), found.set_result)
    try:
        async with asyncio.timeout(20):
            assert "SCRATCH_MB" in await found
    finally:
        watch.stop()
        gate.set()
        await folders.aclose()


async def test_a_process_that_takes_long_to_stop_is_not_asked_at_every_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_LEAVING_SECONDS", 1.0)
    asked = []
    assert not await worker._until(lambda: bool(asked.append(1)))  # type: ignore[func-returns-value]  # it never stops
    assert len(asked) < 40
    assert await worker._until(lambda: True)


def test_a_folder_that_cannot_be_made_whole_is_not_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = run_folders.RunFolders(str(tmp_path), SCRATCH_BYTES)
    folders.prepare()
    mkdir = os.mkdir

    def on_a_full_disk(path: str, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        if path == SCRATCH:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        mkdir(path, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "mkdir", on_a_full_disk)
    with pytest.raises(WorkerLost, match="No space"):
        folders.make()
    assert os.listdir(folders.path) == []


async def test_a_folder_for_what_code_writes_that_could_not_be_made_is_tried_again_at_a_later_run(
    workspace: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.write_text("a file is in its place")
    settings = PoolSettings(spares=1, isolation=Isolation.PROCESS, workspace=str(workspace), run_folders=str(scratch))
    monkeypatch.setattr(run_folders, "PREPARE_AGAIN_SECONDS", (1000.0, 2000.0))
    async with Pool(settings) as pool:
        assert (await run(pool, "import os\nos.getcwd()")).result == "/tmp"
        assert "cannot be made or used" in str(pool.stats().read_only)
        scratch.unlink()
        assert (await run(pool, "import os\nos.getcwd()")).result == "/tmp"  # not due yet
        assert pool._run_folders is not None
        pool._run_folders._due = 0.0
        codes = ["open('again.txt', 'w').write('x')\nimport os\nos.getcwd()"] * 3
        outcomes = await asyncio.gather(*(run(pool, code) for code in codes))
        assert [outcome.result for outcome in outcomes] == ["/workspace"] * 3
        assert pool.stats().read_only is None
        assert pool.stats().zygotes == 2  # the three that came at once tried it once
    assert "tried again in 1000 s" in caplog.text
    assert "can write to the workspace again" in caplog.text


def test_each_attempt_that_fails_is_followed_by_a_longer_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scratch").write_text("")
    folders = run_folders.RunFolders(str(tmp_path / "scratch"), 1000)
    now = 0.0
    monkeypatch.setattr(run_folders.time, "monotonic", lambda: now)
    for seconds in (*run_folders.PREPARE_AGAIN_SECONDS, run_folders.PREPARE_AGAIN_SECONDS[-1]):
        assert not folders.prepare()
        now += seconds - 0.5
        assert not folders.is_due
        now += 0.5
        assert folders.is_due
    (tmp_path / "scratch").unlink()
    assert folders.prepare()
    assert (folders.problem, folders.is_due) == (None, False)


async def test_where_a_new_zygote_has_no_place_for_its_trial_the_earlier_one_goes_on(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = PoolSettings(
        spares=0,
        isolation=Isolation.PROCESS,
        workspace=str(workspace),
        run_folders=str(tmp_path / "scratch"),
        zygote_seconds=0.0,
    )
    async with Pool(settings) as pool:
        await run(pool, "1")
        if pool.stats().zygotes > 1:
            await run(pool, "1")

        def full(_folders: run_folders.RunFolders) -> run_folders.RunFolder:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(run_folders.RunFolders, "trial", full)
            for _ in range(3):
                assert (await run(pool, "6 * 7")).result == 42
                pool._zygotes.renew_if_due()
                if pool._zygotes._renewing is not None:
                    await pool._zygotes._renewing
        before = pool.stats().zygotes
        await run(pool, "1")
        pool._zygotes.renew_if_due()
        assert pool._zygotes._renewing is not None
        await pool._zygotes._renewing
        assert pool.stats().zygotes == before + 1


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("open('plots/a.txt', 'w')", "Path('plots').mkdir(parents=True, exist_ok=True)` makes it"),
        ("open('/workspace/plots/a.txt', 'w')", "Path('/workspace/plots').mkdir"),
        ("raise OSError(\"Cannot save file into a non-existent directory: 'out/deep'\")", "Path('out/deep').mkdir"),
        ("raise OSError(\"Cannot save file into a non-existent directory: '/home/me'\")", "write to a name in it"),
        ("open('/home/me/a.txt', 'w')", "The workspace is the current directory"),
        ("open('missing/a.txt')", "The workspace is the current directory"),
    ],
)
async def test_the_hint_at_a_folder_that_is_not_there_says_how_to_make_it(pool: Pool, code: str, hint: str) -> None:
    outcome = await run(pool, code)
    assert hint in str(failure(outcome).hint)
