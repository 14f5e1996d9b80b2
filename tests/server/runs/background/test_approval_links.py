"""Clients that only open links are given the page of a parked question in place of a form, in both eras."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitationCapability, ElicitResult, UrlElicitationCapability

from ...conftest import http_server, in_this_process
from ...protocol.extensions.test_tasks_extension import Tasks, asked, reached
from .test_background import begun, ended, until
from .test_background_restarts import over_http
from .test_parked_runs import CODE, ENV, asks, parked, served

LINKS = ElicitationCapability(url=UrlElicitationCapability())
Declare = Callable[[ElicitationCapability], None]


@pytest.fixture
def declare(monkeypatch: pytest.MonkeyPatch) -> Declare:
    """Give what has clients declare one kind of questions: the SDK's own declares both."""
    build = ClientSession._build_capabilities

    def chosen(capability: ElicitationCapability) -> None:
        def built(session: ClientSession, version: str) -> Any:
            return build(session, version).model_copy(update={"elicitation": capability})

        monkeypatch.setattr(ClientSession, "_build_capabilities", built)

    return chosen


class User:
    """A user who does with links what the test says, and keeps what they were asked."""

    def __init__(self, action: str = "accept", form: str | None = None) -> None:
        self.asked: list[Any] = []
        self._action: Any = action
        self._form = form

    async def __call__(self, _context: object, question: Any) -> ElicitResult:
        self.asked.append(question)
        if self._form is not None and question.mode == "url":
            origin = question.url.partition("/approvals/")[0]
            async with httpx2.AsyncClient(timeout=50) as client:
                sent = await client.post(question.url, data={"answer": self._form}, headers={"Origin": origin})
            assert sent.status_code == 200
        return ElicitResult(action=self._action, content={"approve": True} if question.mode == "form" else None)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The URL of a server over HTTP, and the file of what its runs sent."""
    home = tmp_path_factory.mktemp("home")
    sent = served(home)
    sent.touch()
    with http_server(home, **ENV) as url:
        yield url, sent


@pytest.mark.parametrize(("mode", "form"), [("auto", "approve"), ("legacy", "deny")])
async def test_get_run_has_the_user_open_a_link_and_tells_what_became_of_the_run(
    server: tuple[str, Path], declare: Declare, mode: str, form: str
) -> None:
    url, sent = server
    declare(LINKS)
    user = User(form=form)
    async with over_http(url, mode, elicitation_callback=user) as caller:
        report = await ended(caller, await begun(caller, CODE))
    assert report["status"] == "ok", report
    assert (f"told {report['result'][0]}\n" in sent.read_text()) is (form == "approve")
    (question,) = user.asked
    assert question.mode == "url"
    assert question.url.startswith(url.removesuffix("mcp") + "approvals/")
    assert "notes.send" in question.message


@pytest.mark.parametrize(("mode", "action"), [("auto", "accept"), ("legacy", "decline"), ("auto", "cancel")])
async def test_to_open_a_link_or_not_is_no_answer(
    server: tuple[str, Path], declare: Declare, mode: str, action: str
) -> None:
    declare(LINKS)
    user = User(action)
    async with over_http(server[0], mode, elicitation_callback=user) as caller:
        run_id, _ = await parked(caller)
        assert user.asked
        answer = await caller.call("get_run", run_id=run_id)
        assert answer.structured_content is not None
        assert asks(answer.structured_content)
        assert user.asked[-1].url not in answer.model_dump_json()  # it would answer the question, for a model too
        assert user.asked[-1].url.rpartition("/")[2] not in answer.model_dump_json()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_with_forms_is_given_a_form_though_it_opens_links_too(
    server: tuple[str, Path], mode: str
) -> None:
    user = User()
    async with over_http(server[0], mode, elicitation_callback=user) as caller:
        report = await until(caller, await begun(caller, CODE), lambda state: state["status"] == "ok")
    assert f"told {report['result'][0]}\n" in server[1].read_text()
    assert [each.mode for each in user.asked] == ["form"]


async def test_a_task_that_waits_names_the_link_and_goes_on_with_the_answer_of_its_page(
    server: tuple[str, Path], declare: Declare
) -> None:
    url, sent = server
    before = sent.read_text()
    declare(LINKS)
    tasks = Tasks(waits=False)
    async with (
        httpx2.AsyncClient(timeout=50) as http,
        Client(
            streamable_http_client(url, http_client=http), extensions=[tasks], elicitation_callback=User()
        ) as client,
    ):
        await client.call_tool("execute_code", {"code": CODE, "background": True})
        task_id = tasks.created[0]["taskId"]
        state = await reached(client, task_id, "input_required")
        ((name, request),) = state["inputRequests"].items()
        assert request["params"]["mode"] == "url"
        opened = {name: {"action": "accept", "content": {"approve": True}}}
        await asked(client, "tasks/update", taskId=task_id, inputResponses=opened)
        assert (await asked(client, "tasks/get", taskId=task_id))["status"] == "input_required"
        assert sent.read_text() == before
        page = await http.post(request["params"]["url"], data={"answer": "approve"})
        assert page.status_code == 200
        state = await reached(client, task_id, "completed")
    assert sent.read_text() == f"{before}told {state['result']['structuredContent']['result'][0]}\n"


async def test_without_http_there_is_no_link(tmp_path: Path, declare: Declare) -> None:
    served(tmp_path)
    declare(LINKS)
    user = User()
    async with in_this_process(tmp_path, ENV, elicitation_callback=user) as caller:
        await parked(caller)
    assert user.asked == []
