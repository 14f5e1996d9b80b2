"""Full CPython in real containers of podman."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from sealab.sandbox.container import container_workers, engine, image
from sealab.sandbox.container.container_pool import ContainerPool, ContainerSettings
from sealab.sandbox.container.container_workers import check_limits
from sealab.sandbox.container.engine import Engine
from sealab.sandbox.container.image import CODE_INSIDE, ContainerImage
from sealab.sandbox.errors import ContainerMissing, HostCallError
from sealab.sandbox.host.pool import PoolSettings
from sealab.sandbox.job import Isolation, Job, Json, Limits, Outcome, Status

from ..containers import needs_podman, running

pytestmark = needs_podman


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home") / "container"
    image.build(folder)
    return folder


@pytest.fixture(scope="module")
def built(folder: Path) -> ContainerImage:
    built = image.current(folder)
    assert built is not None
    return built


@pytest.fixture(scope="module")
def workspace(folder: Path) -> Path:
    workspace = folder.parent / "workspace"
    workspace.mkdir(mode=0o700)
    file = workspace / "table.csv"
    file.write_text("a,b\n", encoding="utf-8")
    file.chmod(0o600)
    return workspace


def settings(
    folder: Path, built: ContainerImage, workspace: Path | None = None, *, spares: int = 1, **more
) -> ContainerSettings:
    shown = None if workspace is None else str(workspace)
    return ContainerSettings(pool=PoolSettings(spares=spares, workspace=shown), image=built, folder=folder, **more)


@pytest.fixture(scope="module")
async def pool(folder: Path, built: ContainerImage, workspace: Path) -> AsyncIterator[ContainerPool]:
    async with ContainerPool(settings(folder, built, workspace)) as pool:
        yield pool


@pytest.fixture(scope="module", params=["passed in", "streams"])
async def either(
    request: pytest.FixtureRequest,
    pool: ContainerPool,
    folder: Path,
    built: ContainerImage,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[ContainerPool]:
    """A pool for each way of speaking with a container: a socket that was passed in, and its standard streams."""
    if request.param == "passed in":
        yield pool
        return
    passes_nothing = _podman_without(tmp_path_factory.mktemp("bin"), "--preserve-fds")
    async with ContainerPool(settings(folder, built, wanted=passes_nothing)) as streams:
        yield streams


async def echo(name: str, arguments: Mapping[str, Json]) -> Json:
    if name == "read_file" and arguments["filename"] == "missing.txt":
        raise HostCallError("There is no missing.txt.", type="FileNotFoundError")
    if name == "list_files":
        return {"files": [{"name": "a.txt", "size": 1}]}
    return {"content": f"{name} {arguments['filename']}", "truncated": False}


async def run(pool: ContainerPool, code: str, *, session: str | None = None, **limits) -> Outcome:
    allowed = Limits(**{"timeout_seconds": 20.0, "memory_mb": 200, **limits})
    return await pool.run(Job(code, isolation=Isolation.CONTAINER, limits=allowed, session=session), echo)


async def value(pool: ContainerPool, code: str, **limits) -> Json:
    outcome = await run(pool, code, **limits)
    assert outcome.status is Status.OK, outcome
    return outcome.result


async def test_code_is_full_python_and_its_report_names_the_container_among_its_layers(pool: ContainerPool) -> None:
    outcome = await run(
        pool,
        """
import os, sys
try:
    raise ExceptionGroup("both", [ValueError(1)])
except* ValueError:
    print("caught")
(os.getuid(), sys.version_info[:2] == tuple(__import__("sys").version_info[:2]), sorted(os.environ))
""",
    )
    assert outcome.status is Status.OK, outcome
    assert outcome.output == "caught\n"
    assert outcome.result[0] == 65534
    assert not any("SEALAB" in name for name in outcome.result[2])
    assert outcome.isolation is Isolation.CONTAINER
    assert {"container", "process", "limits", "seccomp"} <= set(outcome.layers)
    assert "language" not in outcome.layers


async def test_helpers_are_answered_by_the_host_and_its_errors_can_be_caught(either: ContainerPool) -> None:
    code = """
try:
    read_file("missing.txt")
except FileNotFoundError as error:
    print(error)
[read_file("notes.txt"), list_files()]
"""
    outcome = await run(either, code)
    assert outcome.output == "There is no missing.txt.\n"
    assert outcome.result == ["read_file notes.txt", [{"name": "a.txt", "size": 1}]]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="before 3.12 no object is immortal")
async def test_what_the_fork_server_made_is_not_copied_by_counting_references_to_it(pool: ContainerPool) -> None:
    assert await value(pool, "import json, sys\nsys.getrefcount(json.loads) > 1 << 31")


async def test_there_is_no_network_and_only_the_scratch_directory_can_be_written(pool: ContainerPool) -> None:
    code = """
import os, socket
def attempt(action):
    try:
        action()
    except OSError:
        return "refused"
    return "done"
[
    attempt(lambda: socket.create_connection(("127.0.0.1", 9), timeout=1)),
    attempt(lambda: open("/etc/new", "w")),
    attempt(lambda: open("/workspace/new", "w")),
    attempt(lambda: open("/tmp/new", "w").write("x")),
    attempt(lambda: os.fork()),
]
"""
    assert await value(pool, code) == [*["refused"] * 3, "done", "refused"]


async def test_the_workspace_is_readable_though_it_is_closed_to_everyone_but_the_server(pool: ContainerPool) -> None:
    code = "import os\n[os.listdir('/workspace'), open('/workspace/table.csv').read()]"
    assert await value(pool, code) == [["table.csv"], "a,b\n"]


async def test_nothing_of_one_run_is_left_to_the_next_in_the_same_container(either: ContainerPool) -> None:
    await value(either, "import os, json\nopen('/tmp/left', 'w').write('x'); os.makedirs('/tmp/a/b/c'); json.left = 1")
    for _run in range(4):
        assert await value(either, "import os, json\n[os.listdir('/tmp'), hasattr(json, 'left')]") == [[], False]


async def test_a_time_out_keeps_what_was_printed_and_ends_the_worker_not_the_container(
    either: ContainerPool, folder: Path
) -> None:
    assert await value(either, "6 * 7") == 42
    before = {str(each["Id"]) for each in running(folder)}
    outcome = await run(either, "print('on the way')\nwhile True: pass", timeout_seconds=0.3)
    assert outcome.status is Status.TIMEOUT
    assert outcome.output == "on the way\n"
    assert await value(either, "6 * 7") == 42
    assert before <= {str(each["Id"]) for each in running(folder)}


def _was_said(control: socket.socket, words: bytes) -> bool:
    try:
        return words in control.recv(1000, socket.MSG_PEEK)
    except BlockingIOError:
        return False


async def test_the_clock_kills_while_the_loop_is_busy(pool: ContainerPool) -> None:
    said = asyncio.Event()

    async def begun(name: str, arguments: Mapping[str, Json]) -> Json:
        said.set()
        return {"files": []}

    code = "import time\nlist_files()\ntime.sleep(100)"  # the kernel itself ends what computes
    allowed = Limits(timeout_seconds=0.5, memory_mb=200)
    running = asyncio.create_task(pool.run(Job(code, isolation=Isolation.CONTAINER, limits=allowed), begun))
    await said.wait()
    await asyncio.sleep(0.1)
    controls = [each._link._control for each in pool._runner._zygotes.newest._all]
    deadline = time.monotonic() + 20
    while not any(_was_said(control, b'"exit"') for control in controls):  # nothing else happens in this loop meanwhile
        assert time.monotonic() < deadline
        time.sleep(0.05)  # noqa: ASYNC251 - the loop is to be busy
    assert (await running).status is Status.TIMEOUT


async def test_what_was_printed_before_a_kill_is_kept(either: ContainerPool) -> None:
    outcome = await run(either, "import os\nprint('x' * 300_000)\nos.kill(os.getpid(), 9)")
    assert outcome.status is Status.CRASHED
    assert len(outcome.output) == 300_001


async def test_memory_is_limited(either: ContainerPool) -> None:
    outcome = await run(either, "print('before')\nx = bytearray(10 ** 9)", memory_mb=100)
    assert outcome.status is Status.MEMORY
    assert outcome.output == "before\n"
    assert "100 MB" in outcome.error.message


async def test_threads_are_limited(folder: Path, built: ContainerImage) -> None:
    code = """
import threading
threads = []
done = threading.Event()
try:
    for _ in range(500):
        threads.append(threading.Thread(target=done.wait))
        threads[-1].start()
except RuntimeError:
    pass
done.set()
len(threads)
"""
    plain = settings(folder, built, spares=0)
    maximum = Limits(pids_max=20, memory_mb=1000)
    async with ContainerPool(replace(plain, pool=replace(plain.pool, maximum=maximum))) as own:
        assert 15 < await value(own, code, pids_max=20, memory_mb=1000) < 40


async def test_a_session_keeps_its_variables_and_its_output_apart_from_call_to_call(either: ContainerPool) -> None:
    first = await run(either, "x = 5\nprint('a long first text')", session="s")
    second = await run(either, "print('short'); x + 1", session="s")
    third = await run(either, "print('a third text, the longest of all')", session="s")
    assert (first.output, second.output) == ("a long first text\n", "short\n")
    assert third.output == "a third text, the longest of all\n"
    assert second.result == 6
    assert either.has_session("s")
    assert await either.end_session("s")
    assert not either.has_session("s")


async def test_runs_at_once_have_containers_of_their_own(pool: ContainerPool) -> None:
    code = "import os, time\nopen('/tmp/mine', 'w')\ntime.sleep(0.3)\nos.listdir('/tmp')"
    assert await asyncio.gather(*(value(pool, code) for _run in range(3))) == [["mine"]] * 3


async def test_cancelling_ends_the_run(either: ContainerPool) -> None:
    task = asyncio.create_task(run(either, "while True: pass"))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await value(either, "6 * 7") == 42


async def test_a_container_that_does_not_end_its_worker_is_ended_itself(folder: Path, built: ContainerImage) -> None:
    others = {str(each["Id"]) for each in running(folder)}
    async with ContainerPool(settings(folder, built, spares=0)) as own:
        begun = asyncio.Event()

        async def begin(_name: str, _arguments: Mapping[str, Json]) -> Json:
            begun.set()
            return {"files": []}

        # Long enough for a busy podman to tell which container it is.
        job = Job("list_files()\nwhile True: pass", isolation=Isolation.CONTAINER, limits=Limits(timeout_seconds=6.0))
        held = asyncio.create_task(own.run(job, begin))
        await begun.wait()
        (stopped,) = (each for each in running(folder) if each["Id"] not in others)
        os.kill(int(str(stopped["Pid"])), signal.SIGSTOP)
        assert (await held).status is Status.TIMEOUT
        assert await value(own, "6 * 7") == 42
        await _until(lambda: stopped["Id"] not in {each["Id"] for each in running(folder)})


async def test_a_container_that_makes_no_worker_is_ended_and_another_runs_the_code(
    folder: Path, built: ContainerImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = {str(each["Id"]) for each in running(folder)}
    async with ContainerPool(settings(folder, built, spares=0)) as own:
        assert await value(own, "6 * 7") == 42
        stopped = [each for each in running(folder) if each["Id"] not in others]
        assert stopped
        for each in stopped:
            os.kill(int(str(each["Pid"])), signal.SIGSTOP)
        monkeypatch.setattr(container_workers, "_FORK_SECONDS", 2.0)
        assert await value(own, "6 * 7") == 42
        gone = {each["Id"] for each in stopped}
        await _until(lambda: not gone & {each["Id"] for each in running(folder)})


async def test_idle_containers_are_ended_and_come_back_with_the_next_job(folder: Path, built: ContainerImage) -> None:
    before = {str(each["Id"]) for each in running(folder)}
    async with ContainerPool(settings(folder, built, idle_seconds=0.2)) as own:
        assert await value(own, "6 * 7") == 42
        await _until(lambda: {str(each["Id"]) for each in running(folder)} <= before)
        assert own.stats().workers == 0
        assert await value(own, "6 * 7") == 42


async def test_containers_end_when_the_server_is_killed(folder: Path, built: ContainerImage, tmp_path: Path) -> None:
    before = {str(each["Id"]) for each in running(folder)}
    script = tmp_path / "server.py"
    script.write_text(
        f"""
import asyncio
from pathlib import Path
from sealab.sandbox.container import image
from sealab.sandbox.container.container_pool import ContainerPool, ContainerSettings
from sealab.sandbox.host.pool import PoolSettings
from sealab.sandbox.job import Isolation, Job
async def no_calls(name, arguments): pass
async def main():
    folder = Path({str(folder)!r})
    settings = ContainerSettings(PoolSettings(spares=1), image.current(folder), folder)
    async with ContainerPool(settings) as pool:
        await pool.run(Job("1", isolation=Isolation.CONTAINER), no_calls)
        print("ready", flush=True)
        await pool.run(Job("while True: pass", isolation=Isolation.CONTAINER), no_calls)
asyncio.run(main())
""",
        encoding="utf-8",
    )
    server = await asyncio.create_subprocess_exec(sys.executable, script, stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        assert await server.stdout.readline() == b"ready\n"
        assert {str(each["Id"]) for each in running(folder)} - before
    finally:
        server.kill()
        await server.wait()
    await _until(lambda: {str(each["Id"]) for each in running(folder)} <= before)


async def test_the_engine_passes_a_socket_in_unless_it_was_seen_not_to(
    folder: Path, built: ContainerImage, tmp_path: Path
) -> None:
    code = image.code(folder)
    assert (await engine.find(None, built, code, folder / "engine")).direct
    careless = _podman_without(tmp_path, "--preserve-fds")
    assert not (await engine.find(careless, built, code, folder / "engine")).direct


async def test_limits_that_the_engine_ignores_are_found_out_and_those_inside_hold(
    folder: Path, built: ContainerImage, tmp_path: Path
) -> None:
    careless = _podman_without(tmp_path, "--memory", "--memory-swap", "--pids-limit")
    async with ContainerPool(settings(folder, built, wanted=careless)) as own:
        outcome = await run(own, "x = bytearray(10 ** 9)", memory_mb=100)
    assert outcome.status is Status.MEMORY
    assert "container" in outcome.layers
    assert "cgroup" not in outcome.layers


def _with_cpus(folder: Path, built: ContainerImage, cpus: float, **more: object) -> ContainerSettings:
    plain = settings(folder, built, spares=0, **more)
    return replace(plain, pool=replace(plain.pool, cpus=cpus))


async def test_a_share_of_the_processors_is_the_engines_to_hold_once_it_was_seen_to(
    folder: Path, built: ContainerImage
) -> None:
    code = """
import time
end, before = time.monotonic() + 1, time.process_time()
while time.monotonic() < end:
    pass
time.process_time() - before
"""
    async with ContainerPool(_with_cpus(folder, built, 0.1)) as own:
        outcome = await run(own, code)
    assert outcome.status is Status.OK, outcome
    assert "cpus" in outcome.layers
    assert outcome.result < 0.2


async def test_whole_processors_are_held_inside_where_the_engine_ignores_a_share(
    folder: Path, built: ContainerImage, tmp_path: Path
) -> None:
    careless = _podman_without(tmp_path, "--cpus")
    code = """
import os
try:
    os.sched_setaffinity(0, range(64))
except PermissionError:
    pass
len(os.sched_getaffinity(0))
"""
    async with ContainerPool(_with_cpus(folder, built, 1, wanted=careless)) as own:
        outcome = await run(own, code)
        assert (outcome.result, "cpus" in outcome.layers) == (1, True)
    async with ContainerPool(_with_cpus(folder, built, 0.5, wanted=careless)) as own:
        with pytest.raises(ContainerMissing, match=r"CPUS is 0\.5.*Make CPUS a whole number"):
            await run(own, "1")


@pytest.mark.parametrize("limit", ["memory", "processes"])
def test_a_limit_that_holds_nowhere_is_refused(limit: str) -> None:
    held = {"memory": True, "processes": True}
    check_limits(Engine("podman", "podman"), {"limits": held})
    check_limits(Engine("podman", "podman", memory_held=True, processes_held=True), {"limits": {}})
    with pytest.raises(ContainerMissing, match=f"limit of {limit} does not hold.*CONTAINER_RUNTIME"):
        check_limits(Engine("podman", "podman"), {"limits": {**held, limit: False}})


async def test_an_engine_that_is_not_there_or_does_not_work_is_refused_with_what_to_do(
    folder: Path, built: ContainerImage, tmp_path: Path
) -> None:
    code = image.code(folder)
    with pytest.raises(ContainerMissing, match=r"no container engine no-such-engine.*Install podman"):
        await engine.find("no-such-engine", built, code, folder / "engine")
    broken = tmp_path / "podman"
    broken.write_text("#!/bin/sh\necho the cellar is flooded >&2\nexit 125\n", encoding="utf-8")
    broken.chmod(0o755)
    with pytest.raises(ContainerMissing, match="the cellar is flooded"):
        await engine.find(str(broken), built, code, folder / "engine")
    async with ContainerPool(settings(folder, built, wanted=str(broken))) as own:
        with pytest.raises(ContainerMissing, match="the cellar is flooded"):
            await run(own, "6 * 7")


@pytest.mark.parametrize(
    ("leave", "clean"),
    [
        ("", True),
        ("os.makedirs('/tmp/a/b'); open('/tmp/a/b/c', 'w'); os.symlink('/etc', '/tmp/link')", True),
        ("os.fork() or (os.setsid(), os.fork(), __import__('time').sleep(60))", True),
        ("os.mkdir('/tmp/closed'); open('/tmp/closed/x', 'w'); os.chmod('/tmp/closed', 0)", False),
    ],
)
async def test_the_first_process_of_a_container_cleans_it_or_says_that_it_cannot(
    folder: Path, built: ContainerImage, leave: str, clean: bool
) -> None:
    script = f"""
import os, sys
sys.path.append({CODE_INSIDE!r})
from sealab.sandbox.container.cleaning import ContainerState
room = ContainerState()
pid = os.fork()
if not pid:
    {leave or "pass"}
    os._exit(0)
os.waitpid(pid, 0)
print(room.clean(), len([name for name in os.listdir("/proc") if name.isdecimal()]), os.listdir("/tmp"))
"""
    code = image.code(folder)
    found = await engine.find(None, built, code, folder / "engine")
    command = replace(found, direct=False).run(
        built,
        code,
        name=engine.new_name(),
        memory_mb=200,
        processes=50,
        command=[built.python, "-I", "-S", "-c", script],
    )
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, cwd=found.cwd())
    said, _ = await process.communicate()
    assert said.decode() == f"{clean} 1 {[] if clean else ['closed']}\n"


def test_only_the_first_process_of_a_container_may_clean() -> None:
    from sealab.sandbox.container.cleaning import ContainerState

    with pytest.raises(RuntimeError, match="would end other processes"):
        ContainerState()


def _podman_without(folder: Path, *limits: str) -> str:
    """Make a podman that ignores some limits without a word, as one without root does on many machines."""
    careless = folder / "podman"
    careless.write_text(
        f"""#!{sys.executable}
import os, sys
words, rest = sys.argv[1:], []
while words:
    word = words.pop(0)
    if word in {limits!r}:
        words.pop(0)
    else:
        rest.append(word)
os.execv({shutil.which("podman")!r}, ["podman", *rest])
""",
        encoding="utf-8",
    )
    careless.chmod(0o755)
    return str(careless)


async def _until(true: object) -> None:
    """Wait until something has become true, as it must soon."""
    assert callable(true)
    for _try in range(600):
        if true():
            return
        await asyncio.sleep(0.1)
    assert true()
