from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import re
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter

from sealab.tools_registry.errors import AnswerRefused, RegistryError
from sealab.tools_registry.json_lines import EDGE_BYTES, LARGE_CHARS, Edges, Lines, TooLong, read_in_thread
from sealab.tools_registry.models import Json
from sealab.tools_registry.upstream import link, results
from sealab.tools_registry.upstream.message_faults import MESSAGE_BYTES_MAX
from sealab.tools_registry.upstream.reading import Answers
from sealab.tools_registry.upstream.upstreams import Upstreams

from .upstream_servers import configured, listening, wire

TOO_MUCH = MESSAGE_BYTES_MAX + 1


@given(lines=st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")), max_size=8), cut=st.data())
def test_lines_are_the_same_however_the_bytes_were_cut(lines: list[bytes], cut: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cutter, got, at = Lines(20), [], 0
    while at < len(stream):
        size = cut.draw(st.integers(1, 30))
        got += cutter.feed(stream[at : at + size])
        at += size
    assert [each.size if isinstance(each, TooLong) else each for each in got] == [
        line if len(line) <= 20 else len(line) for line in lines
    ]
    assert cutter.rest() is None


def test_what_is_held_of_a_line_that_is_too_long_is_bounded() -> None:
    lines = Lines(100_000)
    for _ in range(1000):
        assert not list(lines.feed(b"x" * 4096))
        assert lines.pending <= 100_000 + 4096
    (line,) = lines.feed(b'"}\n')
    assert isinstance(line, TooLong)
    assert line.size == 1000 * 4096 + 2
    assert len(line.edges.head) == EDGE_BYTES == len(line.edges.tail)


def test_the_time_for_a_line_is_in_proportion_to_its_length() -> None:
    def seconds(pieces: int) -> float:
        lines, piece = Lines(1 << 30), b"x" * 4096
        began = time.thread_time()
        for _ in range(pieces):
            list(lines.feed(piece))
        assert len(next(iter(lines.feed(b"\n")))) == pieces * 4096  # type: ignore[arg-type]  # it is whole
        return time.thread_time() - began

    seconds(500)
    assert min(seconds(16_000) for _ in range(3)) < 30 * max(seconds(2000), 0.001)


NUMBERS = st.integers(-(10**17), 10**17) | st.text(
    st.characters(codec="utf-8", exclude_characters='"\\', min_codepoint=32), max_size=60
)
TEXTS = st.text(st.characters(codec="utf-8"))


@given(
    number=NUMBERS,
    more=st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), TEXTS | st.integers(), max_size=4),
    order=st.permutations(["jsonrpc", "id", "result"]),
)
def test_the_edges_of_a_message_never_name_another_call(
    number: int | str, more: dict[str, object], order: list[str]
) -> None:
    members = {"jsonrpc": "2.0", "id": number, "result": {**more, "id": 7, "text": ',"id":8}'}}
    line = json.dumps({key: members[key] for key in order}, ensure_ascii=False).encode()
    edges = Edges.of(line)
    assert edges.answers == number
    assert edges.asks is None


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b'{"method":"x"}',
        b'{"id":1}',
        b'"id":1}',
        b'{"a":"x","id":1}',
        b"[1]",
        b'{"result":{"x":[{"y":1,"id":1}]}}',
    ],
)
def test_a_message_that_does_not_show_its_number_has_none(line: bytes) -> None:
    assert Edges.of(line).answers is None
    assert Edges.of(line).asks is None


def test_a_request_is_told_from_an_answer() -> None:
    first, last = b'{"jsonrpc":"2.0","id":"a","method":"x"}', b'{"method":"x","params":{},"jsonrpc":"2.0","id":3}'
    assert (Edges.of(first).asks, Edges.of(first).answers) == ("a", None)
    assert (Edges.of(last).asks, Edges.of(last).answers) == (3, None)


@pytest.fixture
async def wired(tmp_path):
    async with Upstreams(configured(tmp_path, {"wire": wire(tmp_path / "starts")})) as running:
        await running.list_tools("wire")
        yield running


async def test_the_loop_works_in_proportion_to_the_length_of_an_answer(wired) -> None:
    async def seconds(megabytes: int) -> float:
        began = time.thread_time()
        value = (await wired.call("wire", "flood", {"bytes": megabytes * 1_000_000})).value
        assert len(value) == megabytes * 1_000_000
        return time.thread_time() - began

    await seconds(1)
    assert await seconds(48) < 30 * await seconds(4)  # 12 times as much; the square is 144 times


@pytest.mark.parametrize("number", ["first", "last"])
async def test_an_answer_above_the_bound_fails_its_own_call_and_no_other(wired, number) -> None:
    other = asyncio.create_task(wired.call("wire", "nap", {"seconds": 5}))
    await asyncio.sleep(0)
    with pytest.raises(AnswerRefused, match=r"'flood'.*answered too much: 67\d+ bytes, and at most .* ask it for less"):
        await wired.call("wire", "flood", {"bytes": TOO_MUCH, "number": number})
    assert not other.done()
    assert (await other).value == "slept"
    assert (await wired.call("wire", "echo", {"n": 1})).value == {"n": 1}
    assert wired.status("wire").starts == 1


async def test_an_answer_above_the_bound_that_hides_its_number_ends_the_one_call_under_way(wired) -> None:
    with pytest.raises(AnswerRefused, match="not MCP"):
        await wired.call("wire", "flood", {"bytes": TOO_MUCH, "number": "hidden"})
    assert (await wired.call("wire", "echo", {"n": 1})).value == {"n": 1}


async def test_a_large_structured_answer_is_checked_against_its_schema(wired, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "CHECK_SECONDS", 60.0)  # however busy the machine is
    value = (await wired.call("wire", "rows", {"count": 20_000})).value
    assert value == {"rows": [{"n": n} for n in range(20_000)]}
    wrong = await wired.call("wire", "rows", {"count": 20_000, "wrong": True})
    assert re.search(r"at rows\[\d+\]\.n: 'none' is not of type 'integer'", wrong.broken)


@pytest.mark.parametrize(("kind", "era"), [("http", "auto"), ("http", "legacy"), ("sse", "auto")])
async def test_an_answer_above_the_bound_over_http_fails_its_own_call(tmp_path, kind, era) -> None:
    with listening(kind, tmp_path) as (url, _):
        async with Upstreams(configured(tmp_path, {"full": {"url": url}}), era=era) as running:
            with pytest.raises(AnswerRefused, match=r"'big'.*answered too much: .* 67108864 "):
                await running.call("full", "big", {"megabytes": 70})
            assert (await running.call("full", "add", {"a": 2, "b": 3})).value == 5
            assert running.status("full").starts == 1


@pytest.mark.parametrize(("kind", "era"), [("http", "auto"), ("http", "legacy"), ("sse", "auto")])
async def test_a_large_answer_over_http_is_read_by_what_reads_large_ones(tmp_path, kind, era) -> None:
    sizes: list[int] = []

    async def read_large(text: str) -> Json:
        sizes.append(len(text))
        return await read_in_thread(text)

    with listening(kind, tmp_path) as (url, _):
        async with Upstreams(configured(tmp_path, {"full": {"url": url}}), era=era, read_large=read_large) as running:
            assert (await running.call("full", "big", {"megabytes": 2})).value == "é" * 1_000_000
    assert len(sizes) == 1
    assert sizes[0] > 1_000_000


class Busy(Exception):
    """There is no thread for it now."""


async def test_an_answer_that_nothing_is_free_to_read_fails_alone(tmp_path) -> None:
    async def read_large(text: str) -> Json:
        raise Busy("The server reads other answers.")

    async with Upstreams(configured(tmp_path, {"wire": wire(tmp_path / "starts")}), read_large=read_large) as running:
        with pytest.raises(AnswerRefused, match=r"'rows'.*The server reads other answers"):
            await running.call("wire", "rows", {"count": 20_000})
        assert (await running.call("wire", "rows", {"count": 1})).value == {"rows": [{"n": 0}]}
        assert running.status("wire").starts == 1


def answer(number: int, size: int) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": {"text": "x" * size}})


SIZES = st.sampled_from([0, 10, LARGE_CHARS - 100, LARGE_CHARS + 1, 3 * LARGE_CHARS])
FIELDS = st.sampled_from(["event: message", ": a comment", "id: 7", "retry: 10", "data:", "dat"])


@given(
    events=st.lists(st.tuples(st.lists(FIELDS, max_size=2), SIZES), min_size=1, max_size=4),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    small=st.lists(st.integers(1, 60), max_size=40),
    cut=st.lists(st.integers(30_000, 200_000), min_size=1, max_size=5),
)
@settings(max_examples=25)
async def test_events_are_the_same_whatever_stands_in_for_large_ones(events, end, small, cut) -> None:
    text = "".join(
        "".join(field + end for field in [*fields, f"data: {answer(number, size)}"]) + end
        for number, (fields, size) in enumerate(events)
    ).encode()
    large = Answers(read_in_thread)

    async def pieces() -> AsyncIterator[bytes]:
        at = 0
        for size in itertools.chain(small, itertools.cycle(cut)):
            if at >= len(text):
                return
            yield text[at : at + size]
            at += size

    async def decoded(stream: AsyncIterator[bytes]) -> list[tuple[str, str, str]]:
        response = httpx2.Response(
            200,
            headers={"content-type": "text/event-stream"},
            content=stream,
            request=httpx2.Request("GET", "http://x"),
        )
        return [(each.event, each.id, each.data) async for each in httpx2.EventSource(response, None)]

    def whole(data: str) -> str:
        data = data.strip()
        item = large.taken(SessionMessage(jsonrpc_message_adapter.validate_json(data, by_name=False)))
        assert isinstance(item, SessionMessage)
        return item.message.model_dump_json(by_alias=True)

    expected = await decoded(pieces())
    got = await decoded(large.of_events(pieces()))
    assert [each[:2] for each in got] == [each[:2] for each in expected]
    assert [whole(data) for _, _, data in got] == [whole(data) for _, _, data in expected]


async def test_an_answer_of_more_blocks_or_a_list_of_more_tools_than_is_taken_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(results, "BLOCKS_MAX", 3)
    assert (await results.value_of("t", {"content": ["x"] * 3}, None, None)).value == ["x"] * 3
    with pytest.raises(AnswerRefused, match="4 blocks of content, and at most 3"):
        await results.value_of("t", {"content": ["x"] * 4}, None, None)
    monkeypatch.setattr(link, "TOOLS_LISTED_MAX", 2)
    async with Upstreams(configured(tmp_path, {"wire": wire(tmp_path / "starts")})) as running:
        with pytest.raises(RegistryError, match="more than 2 tools"):
            await running.list_tools("wire")


async def test_what_nobody_took_is_not_kept_for_ever() -> None:
    large = Answers(read_in_thread)
    smalls = [(await large.stand_ins(answer(number, LARGE_CHARS).encode()))[0] for number in range(30)]
    items = [large.taken(SessionMessage(jsonrpc_message_adapter.validate_json(small))) for small in smalls]
    kinds = [type(item.message) for item in items if isinstance(item, SessionMessage)]
    assert kinds == [JSONRPCError] * 14 + [JSONRPCResponse] * 16


@contextmanager
def answering_in_json(*, packed: bool) -> Iterator[str]:
    """An MCP server of protocol 2025-11-25 over HTTP that answers in one JSON text, packed or not."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if "id" not in asked:
                self.send_response(202)
                self.send_header("content-length", "0")
                self.end_headers()
                return
            tools = [{"name": "big", "inputSchema": {"type": "object"}}]
            result = {
                "initialize": {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "j", "version": "1"},
                },
                "tools/list": {"tools": tools},
                "tools/call": {
                    "content": [
                        {"type": "text", "text": "x" * asked.get("params", {}).get("arguments", {}).get("bytes", 0)}
                    ]
                },
            }.get(asked["method"])
            answer = (
                {"result": result} if result is not None else {"error": {"code": -32601, "message": "no such method"}}
            )
            body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}).encode()
            body = gzip.compress(body, 1) if packed else body
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            if packed:
                self.send_header("content-encoding", "gzip")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_given: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("packed", [False, True])
async def test_a_json_answer_above_the_bound_fails_its_own_call_however_small_it_was_packed(tmp_path, packed) -> None:
    with answering_in_json(packed=packed) as url:
        async with Upstreams(configured(tmp_path, {"j": {"url": url}})) as running:
            assert len((await running.call("j", "big", {"bytes": 5_000_000})).value) == 5_000_000
            with pytest.raises(AnswerRefused, match=r"'big'.*answered too much: more than the"):
                await running.call("j", "big", {"bytes": TOO_MUCH})
            assert (await running.call("j", "big", {"bytes": 2})).value == "xx"
