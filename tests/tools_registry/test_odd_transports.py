"""Servers answer over HTTP, and end, in ways that no specification has: what is meant is taken, and nothing runs twice."""

from __future__ import annotations

import json
import queue
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from sealab.tools_registry.errors import AnswerRefused, CallRefused, ConnectFailed
from sealab.tools_registry.json_lines import read_in_thread
from sealab.tools_registry.upstream import link
from sealab.tools_registry.upstream.lenient import initialized
from sealab.tools_registry.upstream.reading import Answers
from sealab.tools_registry.upstream.upstreams import Upstreams

from .test_lenient import odd_server
from .upstream_servers import configured

JSON, EVENTS = "application/json", "text/event-stream"
NOTE = '{"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}}'
HANDSHAKE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "h", "version": "1"},
}
Answer = tuple[int, str, str]
"""Status, content type and body."""


class Handler(BaseHTTPRequestHandler):
    """A server of protocol 2025-06-18; `odd` gives another answer than the right one, or none."""

    odd: ClassVar[Callable[[Handler, dict[str, Any], str], Answer | None]]
    calls: ClassVar[list[str]]
    handshake: ClassVar[dict[str, Any]]
    stream: ClassVar[queue.Queue[str]]

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method = asked["method"]
        results = {
            "initialize": self.handshake,
            "tools/list": {"tools": [{"name": "say", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "said"}]},
        }
        error = {"code": -32601, "message": "Method not found"}
        answer = {"result": results[method]} if method in results else {"error": error}
        text = json.dumps({"jsonrpc": "2.0", "id": asked.get("id"), **answer})
        odd = type(self).odd(self, asked, text)
        if odd is None:
            odd = (200, JSON, text) if "id" in asked else (202, "", "")
        status, content_type, body = odd
        if method == "tools/call" and status == 200:
            self.calls.append(self.headers.get("mcp-session-id", ""))
        self.send_response(status)
        if status in {301, 302, 307, 308} and body:
            self.send_header("location", body)
            body = ""
        if content_type:
            self.send_header("content-type", content_type)
        if method == "initialize":
            self.calls.clear()
            self.send_header("mcp-session-id", uuid.uuid4().hex)
        self.send_header("content-length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def do_GET(self) -> None:
        """Open the stream of the older transport, at `/sse`."""
        if self.path != "/sse":
            self.send_error(405)
            return
        self.send_response(200)
        self.send_header("content-type", EVENTS)
        self.end_headers()
        self.wfile.write(b"event: endpoint\ndata: https://127.0.0.1/messages\n\n")
        while text := self.stream.get():
            self.wfile.write(f"event: message\ndata: {text}\n\n".encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class names it
        """Keep still."""


@contextmanager
def odd_http(
    odd: Callable[..., Answer | None], handshake: dict[str, Any] = HANDSHAKE
) -> Iterator[tuple[str, list[str]]]:
    """Run a server; give its address, and the sessions of the calls that it took since the last handshake."""
    of_one = {"odd": odd, "calls": [], "handshake": handshake, "stream": queue.Queue()}
    handler = type("Odd", (Handler,), of_one)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", handler.calls  # type: ignore[attr-defined]  # of the type made
        finally:
            handler.stream.put("")  # type: ignore[attr-defined]
            server.shutdown()


def event(text: str, name: str = "message") -> str:
    return f"event: {name}\ndata: {text}\n\n"


def with_number(text: str, number: object) -> str:
    return json.dumps({**json.loads(text), "id": number})


@pytest.mark.parametrize(
    ("content_type", "written"),
    [
        ("", str),  # helidon-io/helidon-mcp#97
        ("text/plain", str),  # junjiem/dify-plugin-agent-mcp_sse#79
        (JSON, event),
        (JSON, lambda text: with_number(text, "server-error")),  # f/mcptools#69
        (JSON, lambda text: with_number(text, None)),
        (JSON, lambda text: f"[{NOTE}, {text}]"),  # modelcontextprotocol#228
        (EVENTS, lambda text: event(f"[{NOTE}, {text}]")),
        (EVENTS, lambda text: event(text, "error")),  # python-sdk#1514
        (EVENTS, lambda text: event(text, "response").replace("\n", "\r\n")),
        (EVENTS, lambda text: 'data: {"type": "heartbeat"}\n\ndata: ping\n\n' + event(text)),  # dav-mcp#31
        (EVENTS, lambda text: event(text).rstrip()),
        (EVENTS, lambda text: event("\ndata: ".join(json.dumps(json.loads(text), indent=1).split("\n")))),
    ],
    ids=[
        "no type", "text", "events", "another number", "no number", "batch", "batch in an event", "error event",
        "response event", "heartbeat", "no end", "lines",
    ],
)  # fmt: skip
async def test_an_answer_over_http_is_taken_as_it_is_meant(
    tmp_path: Path, content_type: str, written: Callable[[str], str]
) -> None:
    def odd(_: Handler, asked: dict[str, Any], text: str) -> Answer | None:
        return (200, content_type, written(text)) if "id" in asked else None

    with odd_http(odd) as (url, calls):
        async with Upstreams(configured(tmp_path, {"h": {"url": url}})) as running:
            assert (await running.call("h", "say", {})).value == "said"
            assert len(calls) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_within_the_origin_takes_the_message_along(tmp_path: Path, status: int) -> None:
    def odd(handler: Handler, _: dict[str, Any], text: str) -> Answer | None:
        return (status, "", "/mcp/") if handler.path == "/mcp" else None

    with odd_http(odd) as (url, calls):
        async with Upstreams(configured(tmp_path, {"h": {"url": f"{url}/mcp"}})) as running:
            assert (await running.call("h", "say", {})).value == "said"
            assert len(calls) == 1


async def test_a_redirect_to_nowhere_and_an_accepted_call_are_not_waited_for(tmp_path: Path) -> None:
    with odd_http(lambda *_: (307, "", "")) as (url, _):
        async with Upstreams(configured(tmp_path, {"h": {"url": url}})) as running:
            with pytest.raises(ConnectFailed, match="HTTP status 307"):
                await running.call("h", "say", {})
    with odd_http(lambda _, asked, __: (202, "", "") if asked["method"] == "tools/call" else None) as (url, _):
        async with Upstreams(configured(tmp_path, {"h": {"url": url}})) as running:
            with pytest.raises(AnswerRefused, match=r"nothing, with HTTP status 202.*The outcome is unknown"):
                await running.call("h", "say", {})


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (
            400,
            '{"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "Bad Request: No valid session ID"}}',
        ),
        (401, "Unauthorized: Session not found"),  # kenforthewin/atomic#193
        (410, "gone"),
        (422, "Expected initialize request"),
    ],
)
async def test_a_session_that_a_server_forgot_is_begun_again_whatever_it_says_then(
    tmp_path: Path, status: int, body: str
) -> None:
    forgotten: list[str] = []

    def odd(handler: Handler, asked: dict[str, Any], _: str) -> Answer | None:
        if asked["method"] != "tools/call" or forgotten:
            return None
        forgotten.append(handler.headers["mcp-session-id"])
        return status, JSON, body

    with odd_http(odd) as (url, calls):
        async with Upstreams(configured(tmp_path, {"h": {"url": url}})) as running:
            assert (await running.call("h", "say", {})).value == "said"
            assert len(calls) == 1
            assert forgotten[0] not in calls
            assert running.status("h").starts == 2


async def test_a_refusal_for_a_forgotten_session_with_status_200_is_not_called_again_and_the_next_call_works(
    tmp_path: Path,
) -> None:
    failures = [event('{"error": "Session not found"}')]  # actionhero/keryx#503

    def odd(_: Handler, asked: dict[str, Any], __: str) -> Answer | None:
        return (200, EVENTS, failures.pop()) if asked["method"] == "tools/call" and failures else None

    with odd_http(odd) as (url, _):
        async with Upstreams(configured(tmp_path, {"h": {"url": url}})) as running:
            with pytest.raises(CallRefused, match="Session not found"):
                await running.call("h", "say", {})
            assert (await running.call("h", "say", {})).value == "said"
            assert running.status("h").starts == 2


@pytest.mark.parametrize("is_direct", [False, True])
async def test_over_the_older_transport_a_post_may_be_answered_with_a_word_or_with_the_answer(
    tmp_path: Path, *, is_direct: bool
) -> None:
    def odd(handler: Handler, asked: dict[str, Any], text: str) -> Answer | None:
        assert handler.path == "/messages"
        if not is_direct and "id" in asked:
            handler.stream.put(text)
        return (200, JSON, text) if is_direct else (200, "text/plain", "Accepted")

    with odd_http(odd) as (url, calls):
        async with Upstreams(configured(tmp_path, {"h": {"url": f"{url}/sse", "type": "sse"}})) as running:
            assert (await running.call("h", "say", {})).value == "said"
            assert len(calls) == 1


@pytest.mark.parametrize(
    ("given", "version", "name"),
    [
        ({}, "2025-03-26", ""),
        ({"protocolVersion": "2024-10-07", "capabilities": None, "serverInfo": "h"}, "2024-11-05", "h"),
        ({"protocolVersion": "%params/protocolVersion%", "serverInfo": {"name": "h"}}, "2025-03-26", "h"),
        ({"protocolVersion": "2031-01-01", "serverInfo": {"name": "h", "version": 1.2, "icons": 3}}, "2025-11-25", "h"),
        ({**HANDSHAKE, "instructions": ["a"], "capabilities": {"tools": True, "logging": False}}, "2025-06-18", "h"),
    ],
)
async def test_a_handshake_that_lacks_what_it_should_have_is_one(
    tmp_path: Path, given: dict[str, Any], version: str, name: str
) -> None:
    made = initialized(given)
    assert made["protocolVersion"] == version
    assert set(made["capabilities"]) <= {"tools"}  # type: ignore[arg-type]  # it is an object
    with odd_http(lambda *_: None, given) as (url, _):
        async with Upstreams(configured(tmp_path, {"other": {"url": url}})) as running:
            assert (await running.call("other", "say", {})).value == "said"
            assert (await running.server_info("other")).name == (name or "other")


async def test_a_process_that_ends_at_the_question_for_its_versions_is_asked_once(tmp_path: Path) -> None:
    # MayDay-wpf/snow-app#19 and github/copilot-cli#4809: servers of the Rust SDK.
    entry = {**odd_server(server_discover="EXIT", tools_call={"result": {"content": "said"}}), "idle_seconds": 0.2}
    async with Upstreams(configured(tmp_path, {"o": entry})) as running:
        assert (await running.call("o", "odd", {})).value == "said"
        assert running.status("o").starts == 1
        (connection,) = running._connections.of("o")
        assert connection._options.era == "legacy"


@pytest.mark.parametrize("last", ["another page", "the same page", "an error"])
async def test_an_empty_cursor_leads_to_a_page_if_there_is_one(tmp_path: Path, last: str) -> None:
    # PrefectHQ/fastmcp#5025, and modelcontextprotocol/java-sdk#628 for the end.
    handshake = {**HANDSHAKE, "capabilities": {"tools": {}, "resources": {}}}

    def odd(_: Handler, asked: dict[str, Any], __: str) -> Answer | None:
        if not asked["method"].endswith("/list"):
            return None
        if asked["method"] == "resources/templates/list":
            return 200, JSON, json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"resourceTemplates": []}})
        is_second = asked.get("params", {}).get("cursor") == ""
        name = "second" if is_second and last == "another page" else "first"
        listed = {
            "tools": [{"name": name}, None],
            "resources": [{"uri": f"x://{name}"}],
            "nextCursor": "" if name == "first" else None,
        }
        error = {"code": -32602, "message": "Invalid cursor"}
        said = {"error": error} if is_second and last == "an error" else {"result": listed}
        return 200, JSON, json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said})

    names = ["first", "second"] if last == "another page" else ["first"]
    with odd_http(odd, handshake) as (url, _):
        async with Upstreams(configured(tmp_path, {"h": {"url": url}})) as running:
            found = await running.list_tools("h")
            assert [each["name"] for each in found.tools] == names
            assert len(found.left_out) == 1
            assert await running.list_resources("h") == [{"uri": f"x://{each}"} for each in names]


async def test_a_server_that_prints_what_it_does_before_it_is_ready_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "_GARBAGE_SECONDS", 0.01)
    entry = odd_server(tools_call={"result": {"content": "said"}})
    # modelcontextprotocol/servers#3173: npx prints what it installs.
    entry["args"][1] = f"import time; print('npm http fetch', flush=True); time.sleep(0.3)\n{entry['args'][1]}"
    async with Upstreams(configured(tmp_path, {"o": entry})) as running:
        assert (await running.call("o", "odd", {})).value == "said"


async def test_a_server_that_came_too_late_is_tried_again_by_the_next_call(tmp_path: Path) -> None:
    entry = odd_server(tools_call={"result": {"content": "said"}})
    been = str(tmp_path / "been")
    late = f"import os, time\nfirst = not os.path.exists({been!r}); open({been!r}, 'w')\nif first: time.sleep(60)\n"
    entry["args"][1] = late + entry["args"][1]
    async with Upstreams(configured(tmp_path, {"o": {**entry, "connect_timeout_seconds": 0.5}})) as running:
        with pytest.raises(ConnectFailed, match=r"not ready within 0\.5 seconds"):
            await running.call("o", "odd", {})
        (tmp_path / "been").touch()
        (connection,) = running._connections.of("o")
        connection.config = replace(connection.config, connect_timeout_seconds=30)
        assert running.status("o").as_json(None)["state"] == "failing"
        assert (await running.call("o", "odd", {})).value == "said"
        assert running.status("o").as_json(None)["state"] == "ready"


async def test_an_event_of_many_lines_is_given_on_as_it_was_sent() -> None:
    text = b"event: x\n" + b"data: {\n" * 3_000 + b"\n" + b'data: {"a": 1}\n\n'

    async def stream() -> AsyncIterator[bytes]:
        for at in range(0, len(text), 999):
            yield text[at : at + 999]

    given = b"".join([piece async for piece in Answers(read_in_thread).of_events(stream())])
    assert given == text.replace(b'{"a": 1}', b"")
