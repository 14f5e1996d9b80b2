"""Background runs are tasks for clients of 2026-07-28 that declare the Tasks extension, and runs for all others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, Request, RequestParams, Result
from pydantic import ConfigDict

from sealab.server.app import App, running
from sealab.server.base.home import Home

from ...conftest import connected, http_server, in_this_process, settings_of, stdio
from ...runs.background.test_parked_runs import served

ENV = {"SEALAB_WORKERS_SPARE": "1"}
SLEEPS = "import asyncio\nprogress(0.25, 'a quarter')\nawait asyncio.sleep(600)"
SENDS = """
name = 'send'
try:
    result = await call_tool('notes.' + name, {'text': 'hello'})
except ToolError:
    result = 'refused'
"""
TASKS = "io.modelcontextprotocol/tasks"
INVALID_PARAMS, METHOD_NOT_FOUND, MISSING_CAPABILITY = -32602, -32601, -32021


class Told(Result):
    """Whatever a method answers."""

    model_config = ConfigDict(extra="allow")


class Task(Told):
    """A task in place of an answer."""

    result_type: Literal["task"]


class TaskRequest(Request[RequestParams, str]):
    """A request of the extension, with parameters as they stand."""

    params: Any


async def asked(client: Client, method: str, **params: Any) -> Mapping[str, Any]:
    """Send a request of the extension and return the answer as it came."""
    answer = await client.session.send_request(TaskRequest(method=method, params=params), Told)
    return answer.model_dump(by_alias=True)


class Tasks(ClientExtension):
    """A client's side of the extension: it polls each task, and keeps what it was told first."""

    identifier = TASKS

    def __init__(self, *, waits: bool = True) -> None:
        self.created: list[Mapping[str, Any]] = []
        self._waits = waits

    def claims(self) -> list[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=Task, resolve=self._resolve)]

    async def _resolve(self, task: Task, context: ClaimContext) -> CallToolResult:
        told = task.model_dump(by_alias=True)
        self.created.append(told)
        if not self._waits:
            return CallToolResult(content=[], is_error=True)
        request = TaskRequest(method="tasks/get", params={"taskId": told["taskId"]})
        while True:
            state = (await context.session.send_request(request, Told)).model_dump(by_alias=True)
            if state["status"] != "working":
                return CallToolResult.model_validate(state["result"])
            await asyncio.sleep(0.05)


@pytest.fixture(scope="module")
async def app(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[App]:
    home = tmp_path_factory.mktemp("home")
    async with running(settings_of(home, ENV), Home(home), serves=True) as app:
        yield app


async def test_a_client_that_knows_tasks_is_answered_with_one_and_gets_its_result_there(tmp_path: Path) -> None:
    tasks = Tasks()
    with http_server(tmp_path, **ENV) as url:
        async with Client(url, extensions=[tasks], read_timeout_seconds=200) as client:
            answer = await client.call_tool("execute_code", {"code": "print('x')\n6 * 7", "background": True})
    assert answer.structured_content is not None
    assert answer.structured_content["result"] == 42
    assert answer.structured_content["output"] == "x\n"
    (task,) = tasks.created
    assert task["taskId"] == answer.structured_content["run_id"]
    assert task["status"] == "working"
    assert {"createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs"} <= task.keys()
    assert "content" not in task


async def test_a_run_that_fails_is_a_completed_task_whose_answer_is_an_error_and_other_calls_are_none(app: App) -> None:
    tasks = Tasks()
    async with connected(app, extensions=[tasks]) as caller:
        answer = await caller.client.call_tool("execute_code", {"code": "1 + 1"})
        assert answer.structured_content is not None
        assert (answer.structured_content["result"], tasks.created) == (2, [])
        answer = await caller.client.call_tool("execute_code", {"code": "1 / 0", "background": True})
    assert answer.is_error
    assert answer.structured_content is not None
    assert answer.structured_content["error"]["type"] == "ZeroDivisionError"


async def test_a_task_tells_its_progress_and_is_cancelled(app: App) -> None:
    tasks = Tasks(waits=False)
    async with connected(app, extensions=[tasks]) as caller:
        await caller.client.call_tool("execute_code", {"code": SLEEPS, "background": True})
        task_id = tasks.created[0]["taskId"]
        while True:
            state = await asked(caller.client, "tasks/get", taskId=task_id)
            if state.get("statusMessage") == "25% a quarter":
                break
            await asyncio.sleep(0.05)
        assert (await asked(caller.client, "tasks/update", taskId=task_id, inputResponses={}))[
            "resultType"
        ] == "complete"
        assert (await asked(caller.client, "tasks/cancel", taskId=task_id)).keys() <= {"resultType", "_meta"}
        assert (await asked(caller.client, "tasks/get", taskId=task_id))["status"] == "cancelled"
        assert (await asked(caller.client, "tasks/cancel", taskId=task_id))["resultType"] == "complete"


async def test_a_task_that_there_is_not_is_an_invalid_parameter(app: App) -> None:
    async with connected(app, extensions=[Tasks()]) as caller:
        for method, more in (("tasks/get", {}), ("tasks/cancel", {}), ("tasks/update", {"inputResponses": {}})):
            with pytest.raises(MCPError) as refused:
                await asked(caller.client, method, taskId="0" * 26, **more)
            assert refused.value.error.code == INVALID_PARAMS


async def test_every_run_that_get_run_tells_of_is_a_task_whichever_process_ran_it(tmp_path: Path) -> None:
    async with in_this_process(tmp_path, ENV, extensions=[Tasks(waits=False)]) as caller:
        in_foreground = (await caller.run("1 + 1"))["run_id"]
        tasks = Tasks()
        async with Client(stdio(tmp_path, **ENV), extensions=[tasks], read_timeout_seconds=50) as other:
            answer = await other.call_tool("execute_code", {"code": "6 * 7", "background": True})
            assert not answer.is_error, answer
        for task_id, result in ((in_foreground, 2), (tasks.created[0]["taskId"], 42)):
            told = await asked(caller.client, "tasks/get", taskId=task_id)
            assert (told["status"], told["result"]["structuredContent"]["result"]) == ("completed", result)
            assert told["createdAt"] <= told["lastUpdatedAt"]
        with pytest.raises(MCPError):
            await asked(caller.client, "tasks/get", taskId=f"{in_foreground}x")


@pytest.mark.parametrize(
    ("mode", "code"),
    [("auto", MISSING_CAPABILITY), ("legacy", METHOD_NOT_FOUND)],
    ids=["not declared", "older protocol"],
)
async def test_a_client_without_the_extension_gets_a_run_and_no_tasks(app: App, mode: str, code: int) -> None:
    async with connected(app, mode=mode) as caller:
        answer = await caller.client.call_tool("execute_code", {"code": "1", "background": True})
        assert answer.structured_content is not None
        assert answer.structured_content["status"] == "queued"
        with pytest.raises(MCPError) as refused:
            await asked(caller.client, "tasks/get", taskId=answer.structured_content["run_id"])
    assert refused.value.error.code == code


@pytest.mark.parametrize("approves", [True, False])
async def test_a_task_that_needs_a_yes_asks_for_it_and_goes_on_with_the_answer(tmp_path: Path, approves: bool) -> None:
    sent = served(tmp_path)
    tasks = Tasks(waits=False)
    async with in_this_process(tmp_path, ENV, extensions=[tasks]) as caller:
        await caller.client.call_tool("execute_code", {"code": SENDS, "background": True})
        task_id = tasks.created[0]["taskId"]
        state = await reached(caller.client, task_id, "input_required")
        ((name, request),) = state["inputRequests"].items()
        assert request["method"] == "elicitation/create"
        assert "send" in request["params"]["message"]
        content = {"action": "accept", "content": {"approve": approves}}
        await asked(caller.client, "tasks/update", taskId=task_id, inputResponses={"another": content, name: content})
        state = await reached(caller.client, task_id, "completed")
    assert state["result"]["structuredContent"]["result"] == ("sent hello" if approves else "refused")
    assert sent.exists() is approves


async def reached(client: Client, task_id: str, status: str) -> Mapping[str, Any]:
    """Ask for a task until it has a status."""
    while True:
        state = await asked(client, "tasks/get", taskId=task_id)
        if state["status"] == status:
            return state
        await asyncio.sleep(0.05)
