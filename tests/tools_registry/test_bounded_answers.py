"""What servers send is bounded before the SDK validates it, and read in threads where it is much in all."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

import httpx2
import pytest
from mcp import Client as Client_
from mcp.shared.message import SessionMessage
from mcp.types import (
    CallToolResult,
    JSONRPCError,
    JSONRPCRequest,
    JSONRPCResponse,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    ResourcesCapability,
    ServerCapabilities,
    jsonrpc_message_adapter,
)

from sealab.tools_registry.errors import AnswerRefused, CallTimedOut
from sealab.tools_registry.json_lines import read_in_thread
from sealab.tools_registry.models import Json
from sealab.tools_registry.threads import in_default_thread
from sealab.tools_registry.upstream import pages, results
from sealab.tools_registry.upstream.mcp_http_client import McpHttpClient
from sealab.tools_registry.upstream.message_faults import MESSAGE_BYTES_MAX, fault_in
from sealab.tools_registry.upstream.pages import LISTED_CHARS_MAX, PAGES_MAX, PageCounter
from sealab.tools_registry.upstream.reading import VALUES_MAX, Answers, Incoming, UnreadableMessage, whole
from sealab.tools_registry.upstream.resources import list_resources, read_contents
from sealab.tools_registry.upstream.results import value_of
from sealab.tools_registry.upstream.upstreams import Upstreams

from .upstream_servers import configured, wire

T = TypeVar("T")


def line(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def over_wire(text: bytes, method: str = "") -> Incoming:
    """Return what becomes of a message of a server that was asked for something under the number 7."""
    answers = Answers(read_in_thread)
    if method:
        answers.asked(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=7, method=method)))
    return answers.taken(SessionMessage(jsonrpc_message_adapter.validate_json(text)))


@pytest.mark.parametrize(
    ("method", "result"),
    [
        (
            "tools/list",
            {"tools": [{"name": "t", "inputSchema": {"properties": {f"p{n}": {} for n in range(110_000)}}}]},
        ),
        ("resources/list", {"resources": [{"uri": f"x://{n}", "name": "n"} for n in range(30_000)]}),
        ("tools/call", {"content": [{"type": "text", "text": "x", "annotations": {"audience": ["user"] * 60_000}}]}),
        ("tools/call", {"content": [], "structuredContent": {"rows": [{"n": n} for n in range(100_000)]}}),
        ("tools/call", {"content": [], "structuredContent": {"sealab.kept": ""}}),
    ],
    ids=["tools", "resources", "annotations", "structured content", "forged"],
)
def test_of_what_is_asked_for_the_sdk_sees_nothing_and_the_caller_all(method: str, result: dict[str, Any]) -> None:
    item = over_wire(line(id=7, result=result), method)
    assert isinstance(item, SessionMessage)
    assert isinstance(item.message, JSONRPCResponse)
    assert len(json.dumps(item.message.result)) < 150
    models = {"tools/list": ListToolsResult, "resources/list": ListResourcesResult, "tools/call": CallToolResult}
    assert whole(models[method].model_validate(item.message.result, by_name=False)) == result


def test_a_result_with_more_values_than_the_sdk_is_given_is_refused() -> None:
    for text in (
        line(id=7, result={"_meta": {str(n): n for n in range(60_000)}}),
        line(id=7, result={"a": [0] * 60_000}),
    ):
        refused = over_wire(text)
        assert isinstance(refused, SessionMessage)
        assert isinstance(refused.message, JSONRPCError)
        assert "are taken" in str(refused.message.error)


@pytest.mark.parametrize("asks", [{}, {"id": 3}])
def test_a_request_or_notification_with_too_many_values_is_not_handed_on(asks: dict[str, int]) -> None:
    text = line(method="notifications/message", params={"data": [0] * (VALUES_MAX + 1)}, **asks)
    assert isinstance(over_wire(text), UnreadableMessage)


class Threads:
    """Does work in a thread, and counts its checkpoints; `limit` of them and the run is over."""

    def __init__(self, limit: int = 10**9) -> None:
        self.works = 0
        self.checkpoints = 0
        self.limit = limit

    async def __call__(self, work: Callable[[Callable[[], None]], T], /) -> T:
        self.works += 1
        return await asyncio.to_thread(work, self._checkpoint)

    def _checkpoint(self) -> None:
        assert threading.current_thread() is not threading.main_thread()
        self.checkpoints += 1
        if self.checkpoints >= self.limit:
            raise InterruptedError


def answered(*content: dict[str, Any]) -> dict[str, Any]:
    return {"content": list(content)}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


@pytest.mark.parametrize("said", ["[" + "'a'," * 900 + "'a']", "[" + "{}," * 1000 + "1]"], ids=["literals", "JSON"])
async def test_many_texts_are_parsed_in_a_thread_which_ends_with_the_run(
    said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers: set[threading.Thread] = set()
    parse = results.parsed

    def spied(given: str) -> Json:
        readers.add(threading.current_thread())
        return parse(given)

    monkeypatch.setattr(results, "parsed", spied)
    threads = Threads()
    value = (await value_of("t", answered(*[text(said)] * 300), None, None, in_thread=threads)).value
    assert isinstance(value, list)
    assert len(value) == 300
    assert {type(each) for each in value} == {list}
    assert threading.main_thread() not in readers
    assert threads.checkpoints >= 300
    with pytest.raises(InterruptedError):
        await value_of("t", answered(*[text(said)] * 300), None, None, in_thread=Threads(400))


async def test_little_is_parsed_at_once() -> None:
    threads = Threads()
    value = (await value_of("t", answered(text("[1]"), text("(2, 3)")), None, None, in_thread=threads)).value
    assert value == [[1], [2, 3]]
    assert not threads.works


async def test_a_large_image_is_decoded_in_steps_and_many_let_others_run() -> None:
    kept: dict[str, bytes] = {}
    turns = 0

    async def keep(content: bytes, mime_type: str, name: str) -> str:
        kept[name] = content
        return f"{mime_type}:{name}"

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    content = bytes(range(256)) * 10_000
    image = {"type": "image", "data": base64.b64encode(content).decode(), "mimeType": "image/png"}
    threads = Threads()
    value = (await value_of("t", answered(image), None, keep, in_thread=threads)).value
    assert value == {"type": "image", "mime_type": "image/png", "size": len(content), "handle": "image/png:t-1.png"}
    assert kept["t-1.png"] == content
    assert threads.checkpoints > 10
    other = asyncio.create_task(others())
    small = {**image, "data": "aGVsbG8="}
    await value_of("t", answered(*[small] * 500), None, keep, in_thread=threads)
    other.cancel()
    assert turns > 400
    for broken in (f"aGVsbG8={'A' * 600_000}", "A" * 600_001, "é"):
        value = (await value_of("t", answered({**image, "data": broken}), None, keep, in_thread=threads)).value
        assert value == {"type": "image", "mime_type": "image/png", "data": broken}


async def test_contents_of_a_resource_are_read_as_an_answer_is() -> None:
    contents = [{"uri": "x://a", "mimeType": "application/json", "text": "[" + "1," * 20_000 + "1]"}]
    threads = Threads()
    assert await read_contents("x://a", {"contents": contents}, None, read_in_thread, threads) == [1] * 20_001
    assert threads.works == 2


def page(*, described: str = "") -> dict[str, Any]:
    return {"tools": [{"name": "t", "description": described, "inputSchema": {"type": "object"}}]}


def no_checkpoint() -> None:
    """Go on."""


def test_of_cursors_hashes_are_kept_and_their_number_and_length_are_bounded() -> None:
    taken = PageCounter("The list")
    for number in range(PAGES_MAX):
        assert taken.take(page(), f"{number}" + "c" * 10_000, no_checkpoint)
    assert all(isinstance(each, bytes) and len(each) == 32 for each in taken._seen)
    with pytest.raises(AnswerRefused, match="never ends"):
        taken.take(page(), "new", no_checkpoint)
    first = PageCounter("The list")
    with pytest.raises(AnswerRefused, match="never ends"):
        first.take(page(), "c" * 100_000, no_checkpoint)


def test_a_cursor_that_was_there_before_ends_the_list() -> None:
    taken = PageCounter("The list")
    assert taken.take(page(), "0", no_checkpoint) == "0"
    assert taken.take(page(), "0", no_checkpoint) is None


def test_all_pages_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "LISTED_CHARS_MAX", LISTED_CHARS_MAX // 32)
    taken = PageCounter("The list")
    for number in range(9):
        taken.take(page(described="d" * 100_000), str(number), no_checkpoint)
    with pytest.raises(AnswerRefused, match=r"more than 1,000,000 characters"):
        taken.take(page(described="d" * 100_000), "last", no_checkpoint)
    empty = PageCounter("The list")
    with pytest.raises(AnswerRefused, match="characters"):
        empty.take({"tools": [{"name": "", "inputSchema": {"a": [0] * 200_000}}]}, None, no_checkpoint)


async def test_listed_resources_are_made_json_in_a_thread() -> None:
    class Client:
        server_capabilities = ServerCapabilities(resources=ResourcesCapability())

        async def list_resources(self, *, cursor: str | None) -> ListResourcesResult:
            entry = {"uri": f"x://{cursor}", "name": "n"}
            return ListResourcesResult.model_validate({"resources": [entry], "nextCursor": None if cursor else "2"})

        async def list_resource_templates(self, *, cursor: str | None) -> ListResourceTemplatesResult:
            assert cursor is None
            return ListResourceTemplatesResult(resource_templates=[])

    threads = Threads()
    listed = await list_resources(cast("Client_", Client()), threads)
    assert [each["uri"] for each in listed if isinstance(each, dict)] == ["x://None", "x://2"]
    assert threads.checkpoints >= 2


async def test_a_server_whose_tools_changed_has_as_long_to_list_them_as_to_connect(tmp_path: Path) -> None:
    async with Upstreams(configured(tmp_path, {"wire": wire(tmp_path / "starts")})) as running:
        await running.list_tools("wire")
        link = next(running._connections.of("wire")).link
        assert link is not None
        link.config = replace(link.config, connect_timeout_seconds=0.05)
        link.stale = True
        link._list = asyncio.Event().wait  # type: ignore[method-assign,assignment]  # pages without end
        with pytest.raises(CallTimedOut, match=r"list of tools .* gave no answer within 0\.05 seconds"):
            await running.call("wire", "echo", {"n": 1})


PACKED = gzip.compress(b"data: " + b"x" * 100_000 + b"\n\n")


async def sent(method: str, headers: dict[str, str], body: bytes) -> tuple[httpx2.Request, httpx2.Response]:
    asked: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        return httpx2.Response(200, headers=headers, stream=httpx2.ByteStream(body))

    async with McpHttpClient(transport=httpx2.MockTransport(answer)) as client:
        client.answers = Answers(read_in_thread)
        request = client.build_request(method, "http://x/mcp", content=b'{"id":1}' if method == "POST" else None)
        response = await client.send(request, stream=True)
        await response.aread()
        return asked[0], response


@pytest.mark.parametrize("method", ["POST", "GET"])
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "GZIP", "br", "identity, gzip"])
async def test_a_packed_event_stream_is_refused_unread(method: str, encoding: str) -> None:
    headers = {"content-type": "text/event-stream", "content-encoding": encoding}
    asked, response = await sent(method, headers, PACKED)
    assert asked.headers["accept-encoding"] == "identity"
    assert response.status_code == 502
    assert len(response.content) < 1000
    if method == "POST":
        fault = fault_in(response.json()["error"]["data"])
        assert fault is not None
        assert "packed" in fault.detail


async def test_a_plain_event_stream_is_read_as_ever() -> None:
    for headers in ({}, {"content-encoding": "identity"}):
        events = b'data: {"jsonrpc":"2.0","method":"x"}\n\n'
        _, response = await sent("POST", {"content-type": "text/event-stream", **headers}, events)
        assert response.content == events


async def test_a_large_text_that_is_no_answer_is_not_given_to_the_sdk() -> None:
    body = b"[" + b"{}," * 100_000 + b"{}]"
    _, response = await sent("POST", {"content-type": "application/json"}, body)
    assert response.status_code == 502
    assert len(response.content) < 1000 < MESSAGE_BYTES_MAX


async def test_the_default_thread_is_not_that_of_the_loop() -> None:
    assert await in_default_thread(lambda _checkpoint: threading.get_ident()) != threading.get_ident()
