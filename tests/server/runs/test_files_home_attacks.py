"""Hostile native code against the working directory of full Python, end to end: what it leaves is read back by the host.

Needs a file system that can be the upper layer of an overlay: on a throw-away machine that is `/dev/shm`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from sealab.server.use_cases.runs import files_home

from ..conftest import Caller, in_this_process

pytestmark = pytest.mark.adversarial

QUOTA_MB = 5
SCRATCH_MB = 64
RAW = "import ctypes, errno, os, threading\nlibc = ctypes.CDLL(None, use_errno=True)\n"
SECRET = "a secret of the host"


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
async def served(place: Path) -> AsyncIterator[Caller]:
    home = place / "home"
    home.mkdir(mode=0o700)
    (place / "secret").write_text(SECRET)
    env = {
        "SEALAB_ALLOWED_ISOLATION": "restricted,process",
        "SEALAB_REQUIRED_LEVEL": "kernel",
        "SEALAB_WORKERS_SPARE": "1",
        "SEALAB_WORKSPACE_QUOTA_MB": str(QUOTA_MB),
        "SEALAB_SCRATCH_MB": str(SCRATCH_MB),
    }
    async with in_this_process(home, env) as caller:
        where = await full(caller, "import os\nos.getcwd()")
        assert where["result"] == "/workspace", where
        yield caller
    assert os.listdir(home / "scratch" / "runs") == []


@pytest.fixture
async def caller(served: Caller, place: Path) -> AsyncIterator[Caller]:
    """Give the client of a server whose workspace holds one file, and look afterwards what an attack left."""
    workspace = served.home / "workspace"
    for path in workspace.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    (workspace / "table.csv").write_text("a,b\n1,2\n")
    yield served
    await still_works(served)
    assert (place / "secret").read_text() == SECRET


async def full(caller: Caller, code: str, **arguments: Any) -> dict[str, Any]:
    return await caller.run(code, isolation="process", **arguments)


async def still_works(caller: Caller) -> None:
    """Look that the server answers, that the workspace is within its quota, and that all in it is a plain file."""
    report = await full(
        caller, "open('alive', 'w').write('x')\nimport os\nos.remove('alive')\nopen('table.csv').read()"
    )
    assert report["result"] == "a,b\n1,2\n", report
    folder = caller.home / "workspace"
    entries = [path for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()]
    assert all(path.is_file() and not path.is_symlink() and path.lstat().st_nlink == 1 for path in entries)
    assert all(path.lstat().st_mode & 0o7777 == 0o600 for path in entries if path.name != "table.csv")
    assert sum(path.stat().st_size for path in entries) <= QUOTA_MB * 1_000_000
    assert not any(SECRET.encode() in path.read_bytes() for path in entries)


# umount2, mount, pivot_root, chroot, unshare, setns, open_tree, move_mount, fsopen, fsconfig, fspick, mount_setattr,
# name_to_handle_at, open_by_handle_at, mknod, setxattr, ptrace, io_uring_setup
NUMBERS = (166, 165, 155, 161, 272, 308, 428, 429, 430, 431, 433, 442, 303, 304, 133, 259, 188, 101, 425, 437)
MOUNTS = """
refused = {}
number = {NUMBER}
try:
    answer = libc.syscall(ctypes.c_long(number), b"/workspace", b"/.runs", 0, 0, 0)
    refused = [answer, ctypes.get_errno()]
finally:
    result = refused
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86-64")
async def test_no_system_call_reaches_the_mounts_marks_or_folders(caller: Caller) -> None:
    for number in NUMBERS:
        report = await full(caller, RAW + MOUNTS.replace("{NUMBER}", str(number)))
        assert report["status"] == "crashed" or report["result"][0] == -1, (number, report)


async def test_links_to_everything_bring_nothing_of_the_host_home(caller: Caller, place: Path) -> None:
    code = f"""
import os
targets = ["/", "/etc/passwd", "/proc/self/root", "/.runs", "../workspace.runs/.ledger", {str(place / "secret")!r},
           "../../secret", "/proc/1/root/etc/shadow", "/dev/zero", ".", "..", "loop"]
for n, target in enumerate(targets):
    os.symlink(target, f"link{{n}}")
    os.makedirs(f"folder{{n}}")
    os.symlink(target, f"folder{{n}}/inner")
os.symlink("loop", "loop")
os.rename("table.csv", "renamed.csv")
os.symlink({str(place / "secret")!r}, "table.csv")
os.link("renamed.csv", "second.csv")
os.remove("table.csv")
os.rename("renamed.csv", "table.csv")
"""
    report = await full(caller, code)
    assert report["success"], report
    assert set(report["files"]) == {"new"}, report["files"]
    assert [each["name"] for each in report["files"]["new"]] == ["second.csv"]


async def test_threads_that_go_on_swapping_and_writing_do_not_reach_what_is_read_back(
    caller: Caller, place: Path
) -> None:
    code = f"""
import os, threading
os.makedirs("a"); os.makedirs("b")
with open("a/f", "w") as f: f.write("a" * 100_000)
def swap():
    while True:
        for names in (("a", "c"), ("b", "a"), ("c", "b")):
            try: os.rename(*names)
            except OSError: pass
def link():
    while True:
        try:
            os.symlink({str(place / "secret")!r}, "a/g"); os.rename("a/g", "a/f")
        except OSError: pass
def write():
    while True:
        try:
            with open("a/f", "r+b") as f: f.write(os.urandom(1000)); f.truncate(50)
        except OSError: pass
for work in (swap, link, write) * 3:
    threading.Thread(target=work, daemon=True).start()
"""
    for session in (None, "s", "s", "s"):
        report = await full(caller, code, session=session, timeout_seconds=20)
        assert report["status"] in {"ok", "error", "timeout"}, report
    await caller.run("close_session('s')")


async def test_a_million_files_end_the_run_and_are_removed(caller: Caller) -> None:
    code = "import os\nfor n in range(1_000_000):\n    os.close(os.open(f'{n}', os.O_CREAT | os.O_WRONLY))"
    report = await full(caller, code, timeout_seconds=120)
    assert not report["success"]
    assert "new" not in report.get("files", {})


async def test_a_million_names_of_one_file_do_not_come_home(caller: Caller) -> None:
    code = """
import os
with open("one", "wb") as file: file.write(bytes(1_000_000))
for n in range(1_000_000):
    try:
        os.link("one", f"name{n}")
    except OSError:
        break
"""
    report = await full(caller, code, timeout_seconds=120)
    assert not report["success"], report
    assert "new" not in report.get("files", {})


@pytest.mark.parametrize(
    "fill",
    [
        "open('sparse', 'wb').truncate(60_000_000)",
        "[open(f'{n}', 'wb').truncate(60_000_000) for n in range(5000)]",
        "[open(f'{n}', 'wb').write(bytes(1_000_000)) for n in range(1000)]",
        "f = os.open('f', os.O_CREAT | os.O_RDWR); os.posix_fallocate(f, 0, 1 << 40)",
        "import mmap; f = os.open('f', os.O_CREAT | os.O_RDWR); os.truncate('f', 60_000_000); mmap.mmap(f, 60_000_000)[:] = b'x' * 60_000_000; 1 / 0",
    ],
)
async def test_however_the_disk_is_filled_the_quota_holds(caller: Caller, fill: str) -> None:
    report = await full(caller, f"import os\n{fill}", timeout_seconds=60)
    assert not report["success"], report
    assert "new" not in report.get("files", {})


async def test_runs_at_once_do_not_pass_the_quota_together(caller: Caller) -> None:
    code = "open(name, 'wb').write(bytes(900_000))"
    reports = await asyncio.gather(
        *(full(caller, code, context_vars={"name": str(n)}, timeout_seconds=100) for n in range(12))
    )
    assert sum(each["success"] for each in reports) == 5


async def test_names_of_every_kind_neither_confuse_the_host_nor_its_report(caller: Caller) -> None:
    code = r"""
import os
names = [b"Case", b"case", "\u00e9".encode(), "e\u0301".encode(), b"\xff\xfe", b"a\nb", b"a\x1b[2Jb", b".RUNS", b".runs",
         b".sealab-part-1", b".Sealab-Temp-1", b"-rf", b"*", b"~", b"CON", b"a" * 255, "\u202egpj".encode(), b"..."]
for name in names:
    try:
        os.makedirs(b"in/" + name, exist_ok=True)
        with open(b"in/" + name + b"/f", "wb") as file: file.write(b"x")
        with open(name, "wb") as file: file.write(b"y")
    except OSError:
        pass
"""
    report = await full(caller, code)
    assert report["success"], report
    names = {each["name"] for each in report["files"]["new"]}
    assert {"Case", "case"} <= names or len(names) == 20
    assert not any("\n" in name or "\x1b" in name or name.lower().startswith(".runs") for name in names)
    assert "Not kept" in report["truncated"]["files"]["note"]


async def test_deep_and_closed_folders_cost_the_host_nothing(caller: Caller) -> None:
    code = """
import os
for n in range(3000):
    os.mkdir("d" * 200); os.chmod("d" * 200, 0o700); os.chdir("d" * 200)
"""
    report = await full(caller, code, timeout_seconds=60)
    assert report["status"] in {"ok", "error"}, report


async def test_what_a_run_cannot_write_to_it_cannot_read_of_another_either(caller: Caller) -> None:
    wrote = asyncio.Event()

    async def seen(_done: float, _total: float | None, _message: str | None) -> None:
        wrote.set()

    writes = "open('mine', 'w').write('of the first')\nprogress(0.5, 'written')\nwhile True: pass"
    first = asyncio.create_task(
        caller.client.call_tool(
            "execute_code", {"code": writes, "isolation": "process", "timeout_seconds": 60}, progress_callback=seen
        )
    )
    await wrote.wait()
    code = (
        RAW
        + """
found = []
for path in ("mine", "/workspace/mine", "/.runs", "/proc", "/sys", "/dev/shm"):
    try:
        found.append([path, os.listdir(path) if os.path.isdir(path) else open(path).read()])
    except OSError:
        pass
found
"""
    )
    report = await full(caller, code)
    assert report["result"] == [], report
    assert not first.done()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_a_database_that_is_not_closed_and_a_pipe_of_bytes_come_home_whole_or_not_at_all(caller: Caller) -> None:
    code = """
import sqlite3
database = sqlite3.connect("d.sqlite")
database.execute("create table t (a)")
database.executemany("insert into t values (?)", [(n,) for n in range(10_000)])
database.commit()
import os
os._exit(0)
"""
    report = await full(caller, code)
    assert report["status"] == "crashed"
    assert "new" not in report.get("files", {})
    assert [each["name"].rpartition("/")[2] for each in report["files"]["kept"]] == ["d.sqlite"]


async def test_no_mark_of_the_overlay_can_be_set_read_or_forged(caller: Caller) -> None:
    code = """
import os
os.makedirs("folder")
told = set()
for name in ("user.overlay.opaque", "user.overlay.redirect", "user.overlay.metacopy", "user.overlay.whiteout",
             "trusted.overlay.opaque", "user.x"):
    for path in ("folder", "table.csv", "."):
        for ask in (lambda: os.setxattr(path, name, b"y"), lambda: os.getxattr(path, name), lambda: os.listxattr(path)):
            try:
                told.add(repr(ask()))
            except OSError as error:
                told.add(error.errno)
for make in (lambda: os.mknod("white", 0o020600, 0), lambda: os.mknod("null", 0o020666, os.makedev(1, 3)),
             lambda: os.mkfifo("fifo"), lambda: os.chmod("table.csv", 0o6755)):
    try:
        make()
        told.add("made")
    except OSError as error:
        told.add(-1)
sorted(told)
"""
    report = await full(caller, code)
    # 38: no such call. 95: `os.listxattr`, of which no call goes to the kernel.
    assert report["result"] == [-1, 38, 95], report


async def test_what_is_removed_and_kept_mapped_without_a_descriptor_is_given_back_with_the_run(
    caller: Caller, place: Path
) -> None:
    before = os.statvfs(place).f_bavail
    code = (
        RAW
        + """
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
held = 0
for n in range(200):
    handle = os.open("f", os.O_CREAT | os.O_RDWR)
    os.write(handle, bytes(1_000_000))
    held += libc.mmap(None, 4096, 1, 1, handle, 0) not in (None, ctypes.c_void_p(-1).value)
    os.close(handle)
    os.remove("f")
held
"""
    )
    report = await full(caller, code)
    assert report["result"] == 200 or not report["success"], report
    async with asyncio.timeout(60):
        while os.statvfs(place).f_bavail < before - 5_000:  # noqa: ASYNC110 - the folder is removed after the reply
            await asyncio.sleep(0.05)


async def test_names_too_long_or_no_text_or_in_the_way_of_what_is_kept_stay_with_a_failed_run(caller: Caller) -> None:
    code = r"""
import os
for name in (b"a" * 256, b"\xff", b"a\nb", b".runs", b"../up", b"code.py", b"output.txt", "\u202e".encode(), b"files"):
    try:
        with open(name, "wb") as file: file.write(b"x")
    except OSError:
        pass
deep = "/".join(["d" * 200] * 5)
os.makedirs(deep); open(deep + "/f", "w").write("x")
raise SystemExit(1)
"""
    report = await full(caller, code)
    assert not report["success"]
    run_id = report["run_id"]
    kept = {each["name"].removeprefix(f".runs/{run_id}/files/") for each in report["files"]["kept"]}
    assert {"code.py", "output.txt", "files"} <= kept
    assert not any("\n" in name or len(name) > 1024 for name in kept)
    assert (await caller.run(f"read_file('.runs/{run_id}/code.py')"))["result"] == code


async def test_runs_that_are_cancelled_at_every_moment_bring_nothing_home_and_hold_nothing(caller: Caller) -> None:
    code = """
import os, threading
def swap():
    while True:
        try:
            os.symlink("/etc/passwd", "x"); os.rename("x", "f")
            with open("f2", "w") as file: file.write("y" * 1000)
            os.rename("f2", "f"); os.remove("f")
        except OSError: pass
for _ in range(4): threading.Thread(target=swap, daemon=True).start()
while True: pass
"""
    for n in range(12):
        call = asyncio.create_task(full(caller, code, session=None if n % 2 else "s", timeout_seconds=20))
        await asyncio.sleep(0.03 * n)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert os.listdir(caller.home / "workspace") == ["table.csv"]


async def test_runs_whose_files_come_home_for_long_keep_nobody_from_the_workspace(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, land = threading.Semaphore(0), threading.Event(), files_home.land
    waiting: list[str] = []

    def slow(*given: Any, **named: Any) -> Any:
        waiting.append(threading.current_thread().name)
        begun.release()
        go_on.wait()
        return land(*given, **named)

    monkeypatch.setattr(files_home, "land", slow)
    code = "open(name, 'w').write('x')"
    runs = [
        asyncio.create_task(full(caller, code, context_vars={"name": f"{n}"}, timeout_seconds=100)) for n in range(6)
    ]
    try:
        for _ in range(2):
            await asyncio.to_thread(begun.acquire)
        told = await caller.told("read_workspace_file", filename="table.csv")
        assert told["content"] == "a,b\n1,2\n"
    finally:
        go_on.set()
        reports = await asyncio.gather(*runs)
    assert all(each["success"] for each in reports), reports
    # At most two at a time, in threads of their own: those that read and write files for others stay free.
    assert {name.rpartition("_")[0] for name in waiting} == {"sealab landing"}, waiting
