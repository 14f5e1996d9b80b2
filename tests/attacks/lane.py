"""Runs cases one after another against one server of its own, and sees what each did."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import adapters
import fail_closed
import oracles
import product
import protocol_steps
from cases import Case, Mode, filled
from oracles import Context, Held, Seen, Verdict
from planting import Ground, planted
from product import Gone, PeakWatch, Server, Silent

from sealab.sandbox.confine.system_calls import allow_list, numbers
from sealab.sandbox.dialect import facades
from sealab.sandbox.job import Isolation

REPLY_SLACK_SECONDS = 15.0
_PR_SET_CHILD_SUBREAPER = 36
_PAST_EVERY_FILTER = {335, 336}
"""uretprobe and uprobe on x86-64: newer kernels ask no filter about them, and refuse them but from a trampoline."""
_SETTLE_SECONDS = 2.0
_NOT_TRIED = {
    "proto.pii": "its steps name tools of another product; tests/server/privacy tries the same on ours",
    "proto.skills": "its steps name tools of another product; tests/server/skills/test_use_cases.py tries the same on ours",
    "P-HTTP-03": "HTTP listens on loopback only and has no authentication",
    "P-HTTP-04": "HTTP listens on loopback only and has no authentication",
    "P-HTTP-07": "HTTP listens on loopback only and has no authentication",
    "X-31": "approval of single calls needs an upstream server and a user: tests/server/upstream_tools/test_registry.py has both",
}
_NEEDS_TIME = ("result_equals", "then_equals", "disk_quota", "inode_quota", "depth_limit")
"""Oracles that judge what comes of a whole run, which therefore gets the time and memory that the contract promises."""
_USUAL_SECONDS, _USUAL_MB = 30.0, 500
_MOST_SECONDS = 120.0
_FILLS_THE_WORKSPACE = "res.disk"


@dataclass(frozen=True)
class Plan:
    """How a lane runs: limits for cases that name none, and who the server is."""

    timeout_seconds: float
    memory_mb: int
    as_user: bool


Run = tuple[Case, Mode]


def run(plan: Plan, runs: Sequence[Run]) -> list[Verdict]:
    """Run the cases in order; whatever happens to one, the next begins on a server that answers."""
    # Orphans of the server come to this process, so that none hides.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    lane = Lane(plan)
    try:
        lane.start()
        return [lane.judge(case, mode) for case, mode in runs]
    except (Gone, Silent) as error:
        return [Verdict(case, mode, Held.BROKE, f"the server does not start: {error}") for case, mode in runs]
    finally:
        lane.close()


class Lane:
    """One server, its ground, and the cases run on it."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._ground = Ground()
        self._server = Server(self._ground.base, self._ground.environment(), as_user=plan.as_user)
        if plan.as_user:
            product.open_the_way(Path(sys.executable), Path(sys.prefix), Path(sys.base_prefix), product.PROJECT)
            os.chown(self._ground.base, product.NOBODY, product.NOBODY)

    def start(self) -> None:
        self._server.start()

    def close(self) -> None:
        self._server.stop()
        self._ground.close()

    def judge(self, case: Case, mode: Mode) -> Verdict:
        """Run one case and judge it; a fault of the runner itself is told as one, and counts as broke."""
        reason = case.unmet_need() or self._not_offered(case, mode)
        if reason:
            return Verdict(case, mode, Held.NOT_APPLICABLE, reason)
        began = time.monotonic()
        try:
            verdict = oracles.judge(*self._seen(case, mode))
        except protocol_steps.NotReadable as error:
            verdict = Verdict(case, mode, Held.NOT_APPLICABLE, str(error))
        except Exception:
            verdict = Verdict(case, mode, Held.BROKE, f"the runner failed: {traceback.format_exc(limit=-3)}")
        self._server.forget()
        return replace(verdict, seconds=time.monotonic() - began)

    def _not_offered(self, case: Case, mode: Mode) -> str | None:
        for key in (case.id, case.category):
            if key in _NOT_TRIED:
                return _NOT_TRIED[key]
        raw = mode is Mode.RAW or case.layer == "rpc"
        if raw and case.oracle["type"] != "fail_closed" and "isolation" not in self._server.parameters:
            return "isolation=process is not offered"
        if case.oracle["type"] == "validate_only_no_marker":
            return "no tool takes code without running it: a dry run notes down calls of tools, and runs all else"
        return None

    def _seen(self, case: Case, mode: Mode) -> tuple[Seen, Context]:
        # What earlier cases left must not be in the way of what is planted, nor fill the workspace.
        if "plant" in case.setup or not self._server.alive or self._server.answers():
            self._server.start()
        places = self._ground.places(
            server_pid=self._server.pid, workspace=self._server.workspace, project=product.PROJECT
        )
        case = replace(case, code=filled(case.code, places), then=filled(case.then, places))
        oracle = filled(case.oracle, places)
        context = Context(
            case=case,
            mode=mode,
            oracle=oracle,
            tokens=(self._ground.token, self._ground.memory_token),
            allowed_calls=_allowed_calls(),
            offered_modules=frozenset(facades.exports()),
        )
        with planted(filled(case.setup, places), self._ground, self._server.workspace):
            seen = self._watched(case, mode, oracle)
        if case.category == _FILLS_THE_WORKSPACE or any("processes left" in failure for failure in seen.failures):
            self._server.start()
        return seen, context

    def _watched(self, case: Case, mode: Mode, oracle: Mapping[str, Any]) -> Seen:
        """Run the case between two looks at the machine."""
        server, ground = self._server, self._ground
        ground.marker_file.unlink(missing_ok=True)
        names, ipc = product.watched_names(ground.base, server.home), product.ipc_objects()
        descriptors, log = _settled_descriptors(server.pid), server.log_size()
        product.reset_peak(server.pid)
        memory = product.memory_mb(server.pid)
        with PeakWatch(server.pid) as peak:
            seen = self._run(case, mode, oracle)
        failures = list(seen.failures)
        if oracle["type"] not in ("steps", "fail_closed", "rpc"):
            dead = server.answers() if server.alive else "the server has ended"
            failures += [f"the server does not answer: {dead}"] if dead else []
        failures += [
            f"processes left: {left}" for left in [product.leftovers(server.pid, _own(server))] if left and server.alive
        ]
        grows = False
        if "marker_file_quiet_after_s" in oracle:
            time.sleep(oracle["marker_file_quiet_after_s"])
            grows = _grows(ground.marker_file)
        kept = (str(ground.marker_file), str(server.home / "workspace"))
        new = product.left(names, kept, ground.base, server.home)
        failures += [f"files left: {new[:5]}"] if new else []
        failures += [] if ground.canary_is_whole() else ["the canary file was changed"]
        return replace(
            seen,
            failures=tuple(failures),
            log=server.log_from(log) + seen.log,
            stray=tuple(server.stray),
            marker_file=ground.marker_file.exists(),
            marker_file_grows=grows,
            server_growth_mb=max(seen.server_growth_mb, product.memory_mb(server.pid, "VmHWM") - memory),
            worker_peak_mb=peak.peak_mb,
            descriptors_more=_settled_descriptors(server.pid, descriptors) - descriptors,
            workspace_bytes=_bytes_below(server.workspace),
            ipc_changed=tuple(set(product.ipc_objects()) ^ set(ipc)),
        )

    def _run(self, case: Case, mode: Mode, oracle: Mapping[str, Any]) -> Seen:
        if oracle["type"] == "fail_closed":
            return fail_closed.seen(oracle["variants"], self._ground, as_user=self._plan.as_user)
        if case.layer == "protocol":
            wrong = protocol_steps.run(case, self._server, self._ground, as_user=self._plan.as_user)
            return Seen(facts={"wrong": wrong})
        if case.layer == "rpc":
            return self._rpc(case)
        if oracle["type"] == "syscall_subset":
            return self._inventory(case, mode)
        seen = self._execute(case, case.code or "", mode)
        if case.category == "ws.session":
            for name in adapters.SESSION_NAMES:
                other = self._execute(case, "result = 1", mode, session=name)
                seen = oracles.with_failures(seen, *([f"session {name[:20]!r} was taken"] if other.report else ()))
        if case.category == "ws.exec":
            # Whoever starts the server in the workspace must not run what lies there.
            self._server.start(fresh_home=False, cwd=self._server.workspace)
            self._server.call("list_workspace_files", {}, 10)
        if oracle["type"] in ("inode_quota", "depth_limit", "disk_quota"):
            before = product.cpu_seconds(self._server.pid)
            self._server.call("list_workspace_files", {}, 60)
            seen = replace(seen, listing_seconds=product.cpu_seconds(self._server.pid) - before)
        if case.then is not None:
            seen = replace(seen, then=self._execute(case, case.then, mode))
        return seen

    def _limits(self, case: Case) -> tuple[float, int]:
        limits = case.limits
        if not limits and case.oracle["type"] in _NEEDS_TIME:
            return min(_USUAL_SECONDS * product.slowness(), _MOST_SECONDS), _USUAL_MB
        timeout = limits.get(
            "timeout_seconds", limits.get("wall_s", limits.get("timeout_s", self._plan.timeout_seconds))
        )
        return timeout, int(limits.get("memory_mb", self._plan.memory_mb))

    def _execute(self, case: Case, code: str, mode: Mode, **more: Any) -> Seen:
        timeout, memory = self._limits(case)
        code = adapters.workspace(code)
        if mode is Mode.RAW:
            more["isolation"] = "process"
            code = adapters.channel(code) if "CTL_FD" in code or "ctl_" in code else code
        elif "isolation" in self._server.parameters:
            more.setdefault("isolation", "restricted")  # `auto` would take what imports numpy past the language
        arguments = {"code": code, "timeout_seconds": timeout, "memory_mb": memory, **more}
        slow_before = product.slowness() if "wall_slack_s" in case.oracle else 1.0
        began = time.monotonic()
        try:
            number = self._server.ask("tools/call", {"name": "execute_code", "arguments": arguments})
            reply = self._server.wait(number, timeout + REPLY_SLACK_SECONDS)
        except (Gone, Silent) as error:
            return Seen(failures=(f"no reply: {error}",), seconds=time.monotonic() - began, timeout_seconds=timeout)
        seconds = time.monotonic() - began
        result = reply.get("result") or {}
        report = result.get("structuredContent")
        return Seen(
            report=report,
            tool_error=None if report else json.dumps(result.get("content") or reply.get("error")),
            line=self._server.line_of(number),
            seconds=seconds,
            timeout_seconds=timeout,
            memory_mb=memory,
            # What this very run set going must not excuse it.
            slowness=min(slow_before, product.slowness()) if seconds > timeout else 1.0,
        )

    def _inventory(self, case: Case, mode: Mode) -> Seen:
        """Try one system call for each run, since a deadly one ends its process."""
        reached: list[int] = []
        seen = Seen()
        for program in adapters.each_system_call(case.code or ""):
            seen = self._execute(case, program, mode)
            reached += seen.value if isinstance(seen.value, list) else []
            self._server.forget()
        return replace(seen, facts={"system_calls": reached})

    def _rpc(self, case: Case) -> Seen:
        timeout, memory = self._limits(case)
        home = self._ground.base / f"{product.HOMES}rpc"
        home.mkdir(exist_ok=True)
        order = {
            "code": adapters.channel(case.code or ""),
            "timeout_seconds": timeout,
            "memory_mb": memory,
            "home": str(home),
            "secret": self._ground.token,
        }
        ordinary = {"user": product.NOBODY, "group": product.NOBODY, "extra_groups": []} if self._plan.as_user else {}
        if self._plan.as_user:
            os.chown(home, product.NOBODY, product.NOBODY)
        try:
            host = subprocess.run(
                [sys.executable, str(Path(__file__).with_name("rpc_host.py"))],
                input=json.dumps(order),
                capture_output=True,
                check=False,
                text=True,
                timeout=timeout + 40,
                env=product.environment(self._ground.environment()),
                **ordinary,
            )
        except subprocess.TimeoutExpired:
            return Seen(failures=("the host hangs",))
        if host.returncode:
            return Seen(failures=(f"the host died ({host.returncode}): {host.stderr[-500:]}",))
        told = json.loads(host.stdout)
        failures = () if told["alive"] else (f"the host does not answer: {told['after']}",)
        shown = json.dumps({key: told[key] for key in ("report", "after")}).encode()
        return Seen(
            report=told["report"],
            line=shown,
            seconds=told["seconds"],
            timeout_seconds=timeout,
            memory_mb=memory,
            failures=failures,
            server_growth_mb=told["growth_mb"],
            facts={key: told[key] for key in ("effects", "ungranted", "concurrency")},
        )


def _own(server: Server) -> set[int]:
    return {server.pid}


def _allowed_calls() -> frozenset[int]:
    table = numbers.ARCHITECTURE.numbers
    allowed = {table[name] for name in allow_list.policy_for(Isolation.PROCESS).allowed if name in table}
    return frozenset(allowed | _PAST_EVERY_FILTER)


def _settled_descriptors(pid: int, wanted: int | None = None) -> int:
    """Count a process's descriptors, but those of its database, once they stop changing or are as many as wanted."""
    deadline = time.monotonic() + _SETTLE_SECONDS
    count, since = -1, time.monotonic()
    while time.monotonic() < deadline:
        now = sum("/sealab.db" not in file for file in _open_files(pid))
        if now == wanted:
            return now
        if now != count:
            count, since = now, time.monotonic()
        elif time.monotonic() - since > (0.05 if wanted is None else 0.3):
            return now
        time.sleep(0.01)
    return count


def _open_files(pid: int) -> Iterator[str]:
    """Name what the descriptors of a process stand for."""
    with contextlib.suppress(FileNotFoundError):
        for descriptor in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                yield os.readlink(f"/proc/{pid}/fd/{descriptor}")


def _grows(file: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):
        before = file.stat().st_size
        time.sleep(0.5)
        return file.stat().st_size != before
    return False


def _bytes_below(folder: Path) -> int:
    total = 0
    for path, _folders, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(path, name)).st_size
    return total
