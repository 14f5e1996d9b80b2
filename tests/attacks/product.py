"""The real server under attack: started as a client starts it, spoken to line by line, and measured from outside."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import select
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from sealab.sandbox.worker.compiled_ahead import LEAST_PRIORITY

PROJECT = Path(__file__).resolve().parents[2]
NOBODY = 65534
START_SECONDS = 30.0
SPARES = 2
QUOTA_MB = 200
HOMES = "home-"
_PIPE_BYTES = 1 << 20
_WORK_SECONDS = 0.05
_SLOWNESS_MAX = 4.0
_MOMENT_SECONDS = 3.0
_numbers = itertools.count(1)
_FOLDERS_WATCHED = (
    "/", "/tmp", "/var/tmp", "/var/lib", "/dev/shm", "/run", "/etc", "/home", "/root", "/mnt", "/opt", "/usr/local",
)  # fmt: skip


class Gone(Exception):
    """The server ended, or does not take what it is sent."""


class Silent(Exception):
    """No answer came in time."""


def environment(secrets: Mapping[str, str]) -> dict[str, str]:
    """Give the server what it needs, small limits that an attack can reach, and secrets that it must keep."""
    own = {key: value for key, value in os.environ.items() if not key.startswith("SEALAB_")}
    return {
        **own,
        **secrets,
        "PYTHONDONTWRITEBYTECODE": "1",
        "SEALAB_ALLOWED_ISOLATION": "restricted,process",
        "SEALAB_WORKERS_SPARE": str(SPARES),
        "SEALAB_WORKSPACE_QUOTA_MB": str(QUOTA_MB),
        # The quota is to be what stops a flood of files, not the budget of calls.
        "SEALAB_TOOL_CALLS_MAX": "1000000",
        "SEALAB_DRAIN_SECONDS": "1",
    }


def command(home: Path, *arguments: str) -> list[str]:
    script = Path(sys.executable).with_name("sealab")
    start = [str(script)] if script.exists() else [sys.executable, "-P", "-m", "sealab.server"]
    return [*start, "serve", "--home", str(home), *arguments]


def open_the_way(*paths: Path) -> None:
    """Let an ordinary user pass through the folders that lead to the interpreter and to this project."""
    for path in paths:
        for folder in (*path.resolve().parents, path):
            if folder.is_dir():
                folder.chmod(folder.stat().st_mode | 0o555)


class Server:
    """A server over stdio in a home of its own. Every wait has an end; a dead server is seen as such."""

    def __init__(
        self, base: Path, secrets: Mapping[str, str], *, as_user: bool, more: Mapping[str, str] | None = None
    ) -> None:
        self._base = base
        self._environment = {**environment(secrets), **(more or {})}
        self._as_user = as_user
        self._process: subprocess.Popen[bytes] | None = None
        self.log_file = base / "server.log"
        self.home = base / "home"
        self.restarts = 0

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def workspace(self) -> Path:
        return self.home / "workspace"

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(
        self, *, fresh_home: bool = True, cwd: Path | None = None, prefix: Sequence[str] = (), handshake: bool = True
    ) -> None:
        """Start it (again) and shake hands. Raises `Gone` or `Silent` when it does not start."""
        self.stop()
        if fresh_home:
            shutil.rmtree(self.home, ignore_errors=True)
            self.home = self._base / f"{HOMES}{next(_numbers)}"
            self.home.mkdir(mode=0o700)
            if self._as_user:
                os.chown(self.home, NOBODY, NOBODY)
        self._answers: dict[object, dict[str, Any]] = {}
        self._lines: dict[object, bytes] = {}
        self._news = threading.Condition()
        self.stray: list[bytes] = []
        self.unnumbered: list[dict[str, Any]] = []
        self.numbered: list[dict[str, Any]] = []
        self._number = 1000
        self._closed = False
        ordinary = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if self._as_user else {}
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [*prefix, *command(self.home)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._environment,
                cwd=cwd or self._base,
                **ordinary,
            )
        os.set_blocking(self._process.stdin.fileno(), False)
        fcntl.fcntl(self._process.stdin.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._listener = threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True)
        self._listener.start()
        if not handshake:
            return
        self.initialize()
        tools = self.request("tools/list", {}, START_SECONDS)["result"]["tools"]
        self.parameters = next(tool for tool in tools if tool["name"] == "execute_code")["inputSchema"]["properties"]

    def initialize(self, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        ours = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "attacks", "version": "1"}}
        answer = self.request("initialize", params or ours, START_SECONDS)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def stop(self) -> None:
        """End the server and everything it started."""
        process = self._process
        if process is None:
            return
        below = [process.pid, *descendants(process.pid)]
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            for pid in below:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()
        self._listener.join()
        self._process = None

    def request(self, method: str, params: Mapping[str, Any] | None, seconds: float) -> dict[str, Any]:
        """Ask and wait for the answer of that number. Raises `Gone` or `Silent`."""
        return self.wait(self.ask(method, params), seconds)

    def ask(self, method: str, params: Mapping[str, Any] | None, number: object = None) -> object:
        """Ask without waiting, and return the number to wait for."""
        if number is None:
            self._number += 1
            number = self._number
        body = {"jsonrpc": "2.0", "id": number, "method": method}
        self.send(body if params is None else {**body, "params": params})
        return number

    def call(self, tool: str, arguments: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        return self.request("tools/call", {"name": tool, "arguments": arguments}, seconds)

    def send(self, body: object) -> None:
        self.send_bytes(json.dumps(body).encode() + b"\n")

    def send_bytes(self, data: bytes, seconds: float = 20.0) -> None:
        """Write to the server's stdin. Raises `Gone` when it does not read."""
        assert self._process is not None
        descriptor = self._process.stdin.fileno()
        rest, deadline = memoryview(data), time.monotonic() + seconds
        while rest:
            if not select.select([], [descriptor], [], max(0, deadline - time.monotonic()))[1]:
                raise Gone("the server does not read its stdin")
            try:
                rest = rest[os.write(descriptor, rest) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise Gone(f"the server's stdin is closed: {error}") from None

    def wait(self, number: object, seconds: float) -> dict[str, Any]:
        with self._news:
            come = self._news.wait_for(lambda: number in self._answers or self._closed, seconds)
            if number in self._answers:
                return self._answers[number]
        if come:
            raise Gone(f"the server closed its stdout; its log ends with {self.log_from(0)[-300:]!r}")
        raise Silent(f"no answer in {seconds:g} s")

    def line_of(self, number: object) -> bytes:
        """Give the line as it came."""
        return self._lines.get(number, b"")

    def forget(self) -> None:
        """Drop the answers that were taken, so that memory does not grow."""
        self._answers.clear()
        self._lines.clear()
        self.stray.clear()
        self.unnumbered.clear()
        self.numbered.clear()

    def answers(self, seconds: float = 2.0) -> str | None:
        """Return what is wrong when the server does not answer a ping and run a trivial program; None when it does."""
        try:
            self.request("ping", None, seconds)
            reply = self.call("execute_code", {"code": "result = 20 + 22"}, seconds + 8)
        except (Gone, Silent) as error:
            return str(error)
        report = reply.get("result", {}).get("structuredContent") or {}
        return None if report.get("result") == 42 else f"a trivial run gave {json.dumps(reply)[:300]}"

    def log_from(self, start: int) -> str:
        with self.log_file.open("rb") as file:
            file.seek(start)
            return file.read().decode("utf-8", "backslashreplace")

    def log_size(self) -> int:
        return self.log_file.stat().st_size

    def _listen(self, stream: Any) -> None:
        for line in stream:
            try:
                message = json.loads(line)
                number = message.get("id")
            except (ValueError, AttributeError):
                self.stray.append(line)
                continue
            with self._news:
                if "method" in message:
                    continue
                if message.get("jsonrpc") != "2.0" or ("result" not in message and "error" not in message):
                    self.stray.append(line)
                elif number is None:
                    self.unnumbered.append(message)
                else:
                    self.numbered.append(message)
                    self._answers[number] = message
                    self._lines[number] = line
                self._news.notify_all()
        with self._news:
            self._closed = True
            self._news.notify_all()


def children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as file:
                found += [int(child) for child in file.read().split()]
    return found


def descendants(pid: int) -> list[int]:
    found = children(pid)
    for child in found:
        found += children(child)
    return found


def workers(zygote: int) -> list[int]:
    """Return its children without the one that compiles modules ahead, which runs no code of anyone.

    That one is told by its priority, which no system call that code may make changes. On a busy machine it lives long.
    """
    found = children(zygote)
    compiling = [pid for pid in found if _compiles_ahead(pid)][:1]
    return [pid for pid in found if pid not in compiling]


def _compiles_ahead(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        return os.getpriority(os.PRIO_PROCESS, pid) == LEAST_PRIORITY
    return False


def workers_and_below(server_pid: int) -> list[int]:
    """Return the workers of all zygotes of a server, and what these have started."""
    found = [pid for zygote in children(server_pid) for pid in workers(zygote)]
    return found + [below for pid in found for below in descendants(pid)]


def memory_mb(pid: int, key: str = "VmRSS") -> float:
    """Read a size from proc(5), status; 0 where the process is gone."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith(key + ":"):
                return int(line.split()[1]) / 1024
    return 0.0


def cpu_seconds(pid: int) -> float:
    """Read how much processor time a process has used (proc(5), stat); 0 where it is gone."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def reset_peak(pid: int) -> None:
    """Let VmHWM begin again from now (proc(5), clear_refs)."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/clear_refs", "w") as file:
        file.write("5")


def slowness() -> float:
    """Measure how much longer than on an idle machine things take now: time that passes for each second of work.

    It has a bound, so that what an attack sets going can earn itself only so much patience.
    """
    began, before = time.monotonic(), time.process_time()
    while time.process_time() - before < _WORK_SECONDS:
        pass
    return min(max(1.0, (time.monotonic() - began) / _WORK_SECONDS), _SLOWNESS_MAX)


def leftovers(server_pid: int, own: set[int], *, seconds: float = 3.0) -> list[str]:
    """Name the processes that no zygote needs as a spare, and orphans; wait a while for those that are ending.

    `own` are this process's own children: any other came here as an orphan, since this process adopts them.
    """
    deadline, patient = time.monotonic() + seconds, False
    while True:
        extra = [pid for pid in children(os.getpid()) if pid not in own and not _reap(pid)]
        for zygote in children(server_pid):
            its_workers = workers(zygote)
            extra += its_workers[SPARES:]
            extra += [pid for worker in its_workers for pid in descendants(worker)[1:]]
        if extra and not patient and time.monotonic() > deadline:
            patient, deadline = True, deadline + seconds * (slowness() - 1)
        if not extra or time.monotonic() > deadline:
            return [_described(pid) for pid in extra]
        time.sleep(0.02)


def _reap(pid: int) -> bool:
    """Bury an adopted child that has ended."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _described(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            command = file.read().replace(b"\0", b" ").decode(errors="replace")[:30]
        with open(f"/proc/{pid}/stat") as file:
            state, parent = file.read().rpartition(")")[2].split()[:2]
    except OSError:
        return f"{pid} (gone)"
    return f"{pid} of {parent} in state {state}: {command}"


class PeakWatch:
    """Samples the memory of all workers while a case runs; `peak_mb` is what the largest held above an idle one."""

    def __init__(self, server_pid: int) -> None:
        self._server_pid = server_pid
        self._stop = threading.Event()
        self._peaks: dict[int, float] = {}
        self._base = max((memory_mb(pid) for pid in workers_and_below(server_pid)), default=0.0)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def peak_mb(self) -> float:
        return max(0.0, max(self._peaks.values(), default=0.0) - self._base)

    def _watch(self) -> None:
        while not self._stop.wait(0.01):
            for pid in workers_and_below(self._server_pid):
                self._peaks[pid] = max(self._peaks.get(pid, 0.0), memory_mb(pid, "VmHWM"))


def watched_names(ground: Path, home: Path) -> set[str]:
    """List what there is where an attack could leave something: well-known folders, ours, and the interpreter's."""
    folders = {
        *_FOLDERS_WATCHED,
        sysconfig.get_path("stdlib"),
        str(ground),
        str(ground / "treasure"),
        str(ground / "marks"),
        str(home),
    }
    names: set[str] = set()
    for folder in folders:
        with contextlib.suppress(OSError):
            names |= {os.path.join(folder, name) for name in os.listdir(folder)}
    return {name for name in names if not name.startswith(str(ground / HOMES))}


def left(before: set[str], kept: tuple[str, ...], ground: Path, home: Path) -> list[str]:
    """List what is there that was not before, but `kept`, and stays: a start makes files for a moment."""
    deadline, patient = time.monotonic() + _MOMENT_SECONDS, False
    while True:
        new = watched_names(ground, home) - before
        new = {name for name in new if not name.startswith(kept) and made_here(name, ground)}
        if new and not patient and time.monotonic() > deadline:
            patient, deadline = True, deadline + _MOMENT_SECONDS * (slowness() - 1)
        if not new or time.monotonic() > deadline:
            return sorted(new)
        time.sleep(0.05)


def made_here(path: str, ground: Path) -> bool:
    """Return whether a file was made on this machine, not in the layer below it, where other work may go on.

    An overlay shows the device of the layer that a file is in; a folder tells by the files in it and by its owner.
    """
    try:
        status = os.lstat(path)
        if not stat.S_ISDIR(status.st_mode):
            return status.st_dev == os.lstat(ground / "treasure" / "secret.txt").st_dev
        return status.st_uid == NOBODY or any(
            made_here(os.path.join(folder, name), ground) for folder, _, files in os.walk(path) for name in files
        )
    except OSError:
        return False


def ipc_objects() -> list[str]:
    """Read the System V objects that exist (proc(5), sysvipc)."""
    found = []
    for kind in ("shm", "sem", "msg"):
        with contextlib.suppress(OSError), open(f"/proc/sysvipc/{kind}") as file:
            found += [f"{kind} {line.split()[1]}" for line in file.readlines()[1:]]
    return found
