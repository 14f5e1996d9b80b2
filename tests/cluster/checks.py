"""What three replicas must do as one, each as a function that returns what it saw, or raises with what went wrong."""

from __future__ import annotations

import asyncio
import json
import secrets
import subprocess
import time
from collections.abc import Callable
from typing import Any

import httpx2
from mcp import Client as SdkClient
from mcp.client.streamable_http import streamable_http_client

from tests.chaos.client import LEGACY, MODERN, Answer
from tests.server.conftest import SEALAB, environment

from .harness import Running

ERAS = (LEGACY, MODERN)
ROUNDS = 100
SEEN_SECONDS = 10.0
"""How soon a change has to be seen by all."""
RESUMED_SECONDS = 90.0
Check = Callable[[Running], str]


class Wrong(AssertionError):
    """What a check found."""


def must(answer: Answer, what: str) -> dict[str, Any]:
    """Return the content of an answer that has to be right. Raises `Wrong`."""
    if not answer.ok:
        raise Wrong(f"{what}: {answer.status}: {answer.text[:300]}")
    return answer.content


def same(found: object, wanted: object, what: str) -> None:
    """Raise `Wrong` where something is not what it has to be."""
    if found != wanted:
        raise Wrong(f"{what}: {str(found)[:200]} instead of {str(wanted)[:200]}")


def waited_for(condition: Callable[[], bool], what: str, seconds: float = SEEN_SECONDS) -> float:
    """Wait until a condition holds, and return how long that took. Raises `Wrong`."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            raise Wrong(f"{what}: not within {seconds:g} s")
        time.sleep(0.05)
    return time.monotonic() - began


def everything(running: Running) -> str:
    """Each tool of the contract in both eras, where each call goes to the next replica."""
    calls = 0
    for era in ERAS:
        client, mark = running.client(era, running.token()), secrets.token_hex(4)
        skill = f'def add_{mark}(a: int, b: int = 1) -> int:\n    """Add."""\n    return a + b\n'
        steps: list[tuple[str, dict[str, Any], Callable[[dict[str, Any]], object], object]] = [
            ("execute_code", {"code": "6 * 7"}, lambda c: c["result"], 42),
            ("execute_code", {"code": "await tools.steady.echo(text='x')"}, lambda c: c["result"], "x"),
            ("search_tools", {"query": "echo text"}, lambda c: c["count"] > 0, True),
            ("get_tool_definition", {"tool_name": "steady.echo"}, lambda c: c["name"], "echo"),
            ("list_tool_categories", {}, lambda c: c["total_tools"] > 0, True),
            ("save_skill", {"name": f"add_{mark}", "code": skill}, lambda c: c["version"], 1),
            ("load_skill", {"name": f"add_{mark}"}, lambda c: c["code"], skill),
            ("list_skills", {"query": f"add_{mark}"}, lambda c: c["count"] > 0, True),
            ("run_skill", {"name": f"add_{mark}", "arguments": {"a": 2}}, lambda c: c["result"], 3),
            ("execute_code", {"code": f"skills.add_{mark}(3, 4)"}, lambda c: c["result"], 7),
            ("delete_skill", {"name": f"add_{mark}"}, lambda c: c["deleted_versions"], 1),
            ("write_workspace_file", {"filename": f"{mark}.txt", "content": "ä\n"}, lambda c: c["size"], 3),
            ("read_workspace_file", {"filename": f"{mark}.txt"}, lambda c: c["content"], "ä\n"),
            ("list_workspace_files", {}, lambda c, mark=mark: f"{mark}.txt" in [f["name"] for f in c["files"]], True),
            ("delete_workspace_file", {"filename": f"{mark}.txt"}, lambda c: c["deleted"], True),
            ("get_execution_stats", {}, bool, True),
        ]
        for tool, arguments, got, wanted in steps:
            content = must(client.call(tool, arguments), f"{tool} in {era}")
            same(got(content), wanted, f"{tool} in {era}")
            calls += 1
        hidden = must(client.call("sanitize_pii", {"text": f"{mark}@mail.example"}), "sanitize_pii")
        back = must(client.call("restore_pii", {"text": hidden["sanitized_text"]}), "restore_pii")
        same(back["restored_text"], f"{mark}@mail.example", "restore_pii on another replica")
        started = client.run("6 * 7", background=True)
        run_id = started.content["run_id"]
        waited_for(lambda client=client, run_id=run_id: client.call("get_run", {"run_id": run_id}).ok, "get_run", 60)
        calls += 4
    return f"{calls} calls in two eras"


async def _with_sdk(running: Running, mode: Any, token: str) -> None:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http,
        SdkClient(streamable_http_client(running.balancer.url, http_client=http), mode=mode) as client,
    ):
        tools = {tool.name for tool in (await client.list_tools()).tools}
        same({"execute_code", "get_run", "save_skill", "search_tools"} <= tools, True, "list_tools")
        for number in range(9):
            answer = await client.call_tool("execute_code", {"code": f"{number} + 1"})
            assert answer.structured_content is not None
            same(answer.structured_content["result"], number + 1, f"call {number} in mode {mode}")


def with_the_sdk(running: Running) -> str:
    """The Python SDK's client in both modes: its session and its streams meet another replica at each request."""
    for mode in ("legacy", "auto"):
        try:
            asyncio.run(asyncio.wait_for(_with_sdk(running, mode, running.token()), 120))
        except (ExceptionGroup, TimeoutError) as errors:
            raise Wrong(f"mode {mode}: {_first(errors)!r}") from errors
    return "2 modes, 9 calls each"


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def a_session(running: Running) -> str:
    """A session used round robin: each call finds what the one before left, on whichever replica that was."""
    said = []
    for era in ERAS:
        client, took = running.client(era, running.token()), []
        must(client.run("n = 0", session="main"), f"first call in {era}")
        for number in range(1, ROUNDS + 1):
            began = time.monotonic()
            answer = must(client.run("n += 1\nn", session="main"), f"call {number} in {era}")
            took.append(time.monotonic() - began)
            same(answer["result"], number, f"call {number} in {era}")
        took.sort()
        said.append(f"{era}: p50 {took[len(took) // 2] * 1000:.0f} ms, p99 {took[-2] * 1000:.0f} ms")
    return f"{ROUNDS} calls each, " + "; ".join(said)


def a_session_without_owner(running: Running) -> str:
    """A session whose replica is killed is rebuilt on another by its next call; nothing acknowledged is lost."""
    token = running.token()
    began = running.client(MODERN, token, running.names[0])
    must(began.run("kept = ['one']", session="main"), "begin")
    must(began.run("kept.append('two')", session="main"), "go on")
    running.replicas[running.names[0]].kill()
    try:
        client = running.client(MODERN, token, running.names[1])
        start = time.monotonic()
        answers: list[Answer] = []

        def back() -> bool:
            answers.append(client.run("kept", session="main"))
            return answers[-1].ok

        waited_for(back, "the session on another replica", 60)
        same(answers[-1].content["result"], ["one", "two"], "what the session kept")
        rebuilt = answers[-1].content.get("session", {}).get("rebuilt")
        refused = [f"{each.status}: {each.text[:100]}" for each in answers[:-1]]
        took = time.monotonic() - start
    finally:
        running.start(running.names[0])
    return f"back after {took:.1f} s, rebuilt {rebuilt}, {len(refused)} refusals {refused[:1]}"


def approvals(running: Running) -> str:
    """A question asked by one replica is answered to another, which has the run go on."""
    for era in ERAS:
        client = running.client(era, running.token())
        for number in range(6):
            action = "accept" if number % 2 == 0 else "decline"
            answer = client.run(f"await tools.steady.destroy(text='{number}')", lambda action=action: action)
            if action == "accept":
                same(must(answer, f"approved in {era}")["result"], f"destroyed {number}", "result")
            else:
                same(answer.status, "refused", f"declined in {era} ({answer.text[:200]})")
    return "6 questions in each era"


def parked(running: Running) -> str:
    """A background run that waits for a yes is approved from another home, and ends; its report is read on all."""
    token = running.token()
    here, *others = running.names
    code = "await tools.steady.destroy(text='parked')"
    started = running.client(MODERN, token, here).run(code, background=True)
    run_id = started.content["run_id"]

    def report(at: str) -> Answer:
        # A client without forms: it waits, and asks nobody.
        return running.client(MODERN, token, at).call("get_run", {"run_id": run_id}, lambda: "vanish")

    waited_for(lambda: bool(_command(running, "approvals", "list", "--json")), "the question", 60)
    waiting = _command(running, "approvals", "list", "--json")
    asked = waiting["approvals"] if isinstance(waiting, dict) else waiting
    waited_for(lambda: bool(asked), "the question in the list", 1)
    _command(running, "approvals", "approve", asked[0]["id"], "--json")
    for at in (here, *others):
        waited_for(lambda at=at: report(at).ok, f"the report via {at}", 60)
        same(report(at).content["result"], "destroyed parked", f"the report via {at}")
    return f"answered by the operator, read via {len(running.names)} replicas"


def _command(running: Running, *arguments: str) -> Any:
    """Run a command of the operator's on a home that no replica has."""
    first = next(iter(running.replicas.values()))
    told = subprocess.run(
        [*SEALAB, *arguments, "--home", str(running.operator)],
        env=environment(**first.settings),
        capture_output=True,
        text=True,
        check=False,
    )
    if told.returncode:
        raise Wrong(f"sealab {' '.join(arguments[:2])}: {told.stderr[-300:]}")
    return json.loads(told.stdout)


RESUMED = """
import asyncio
first = await tools.where.variable(name="REPLICA")
progress(0.1, first)
for number in range(40):
    await asyncio.sleep(0.25)
[first, await tools.where.variable(name="REPLICA")]
"""


def a_background_run(running: Running) -> str:
    """A background run whose replica is killed is resumed by another, from its journal."""
    token = running.token()
    client = running.client(MODERN, token)
    started = client.run(RESUMED, background=True)
    run_id = started.content["run_id"]

    seen: list[str] = []

    def owned() -> bool:
        told = client.call("get_run", {"run_id": run_id}).content.get("progress") or {}
        seen.append(str(told.get("message") or ""))
        return seen[-1] in running.names

    waited_for(owned, "which replica runs it", 60)
    dead = seen[-1]
    other = next(name for name in running.names if name != dead)
    running.replicas[dead].kill()
    began = time.monotonic()
    try:
        client = running.client(MODERN, token, other)
        answers: list[Answer] = []

        def ended() -> bool:
            answers.append(client.call("get_run", {"run_id": run_id, "wait_seconds": 5}))
            return answers[-1].status not in {"queued", "running", "waiting", "cut"}

        waited_for(ended, "its end", RESUMED_SECONDS)
        took = time.monotonic() - began
        first, last = must(answers[-1], "its report")["result"]
        # What only read may be asked again, where the kill came before the journal had its answer.
        same(first in {dead, last}, True, f"where it began: {first}")
        same(last != dead, True, "that it ended elsewhere")
    finally:
        running.start(dead)
    return f"begun on {dead}, ended on {last} ({'from' if first == dead else 'before'} its journal), {took:.1f} s after the kill (10 s of it are the run's)"


CHECKS: dict[str, Check] = {
    "each tool of the contract": everything,
    "the SDK's client": with_the_sdk,
    "a session round robin": a_session,
    "approvals": approvals,
    "a parked run": parked,
    "a background run of a killed replica": a_background_run,
    "a session of a killed replica": a_session_without_owner,
}
