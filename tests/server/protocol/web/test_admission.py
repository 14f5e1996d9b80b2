"""Bodies half sent hold little memory; large ones are decoded in turns; and neither keeps anybody else from sending."""

from __future__ import annotations

import asyncio
import json
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from starlette.types import Message, Receive, Scope, Send

from sealab.sandbox.job import Owner
from sealab.server.interfaces.protocol.web.admission import Admission, RequestTurns
from sealab.tools_registry.json_lines import LARGE_CHARS

from ....waiting import wait_until
from ...conftest import HttpServer, http_process
from .raw import HEADERS, MODERN, PING, asked, begun, call, opened, plugged, post, run

BODIES_MB = 16
SENT = 2_000_000


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[HttpServer]:
    with http_process(home, SEALAB_HTTP_BODIES_MB=str(BODIES_MB)) as server:
        yield server


def half_sent(server: HttpServer) -> socket.socket:
    """Send most of a body and stop."""
    head = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
    connection = plugged(server.url)
    connection.sendall(f"POST /mcp HTTP/1.1\r\nHost: localhost\r\n{head}Content-Length: 4000000\r\n\r\n".encode())
    connection.sendall(b" " * SENT)
    return connection


def large(size: int) -> dict[str, object]:
    return call("len(text)", context_vars={"text": "x" * size})


def test_half_sent_bodies_are_refused_beyond_the_bound_and_hold_no_more_memory_than_it(server: HttpServer) -> None:
    process = psutil.Process(server.process.pid)
    assert run(server.url, "1").status == 200
    before = process.memory_info().rss
    with ExitStack() as stack:
        connections = [stack.enter_context(half_sent(server)) for _ in range(50)]
        refused = []
        for connection in connections:
            connection.settimeout(1)
            try:
                refused.append(connection.recv(1000))
            except TimeoutError:
                continue
        assert len(refused) >= len(connections) - BODIES_MB * 1_000_000 // SENT
        assert all(each.startswith(b"HTTP/1.1 429 ") and b"retry-after: 1" in each.lower() for each in refused)
        assert process.memory_info().rss - before < 4 * BODIES_MB * 1_000_000

        assert run(server.url, "6 * 7").message["result"]["structuredContent"]["result"] == 42
        own = post(server.url, large(2_000_000), **MODERN)
        assert own.status == 429
        assert "less at a time" in own.message["error"]["message"]
        other = post(server.url, large(2_000_000), **MODERN, authorization="Bearer other")
        assert other.message["result"]["structuredContent"]["result"] == 2_000_000

    def all_is_given_back() -> bool:
        return post(server.url, large(3_500_000), **MODERN).status == 200

    wait_until(all_is_given_back)


def test_a_body_counts_until_its_request_is_answered(server: HttpServer, home: Path) -> None:
    running = []
    for name in ("first", "second"):
        code = f"write_file({name!r}, '')\nimport time\ntime.sleep(50)"
        running.append(begun(server.url, call(code, context_vars={"text": "x" * 3_500_000}), **MODERN))
        wait_until((home / "workspace" / name).exists)
    assert post(server.url, large(3_500_000), **MODERN).status == 429
    for connection in running:
        connection.close()
    wait_until(lambda: post(server.url, large(3_500_000), **MODERN).status == 200)


def test_a_body_above_the_largest_is_refused_by_what_it_declares_and_by_what_it_is(server: HttpServer) -> None:
    refused = post(server.url, large(5_000_000), **MODERN)
    assert refused.status == 413
    assert "Send large data in parts" in refused.message["error"]["message"]
    whole = json.dumps(large(5_000_000)).encode()
    with plugged(server.url) as plug:
        plug.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        plug.sendall(b"%x\r\n%s\r\n0\r\n\r\n" % (len(whole), whole))
        assert plug.recv(12) == b"HTTP/1.1 413"
    assert asked(server.url, "GET", "/readyz").status == 200


def test_a_body_that_would_cost_too_much_to_decode_is_refused_before_it_is_and_many_values_are_taken_up_to_the_bound(
    server: HttpServer,
) -> None:
    for many, why in (
        ([[]] * 200_000 + [1] * 50_000, "it holds more than 250000 values"),
        ({str(number): 1 for number in range(100_000)}, "its objects hold more than 100000 names"),
        (json.loads("[" * 100 + "]" * 100), "it is nested deeper than 100"),
    ):
        refused = post(server.url, call("len(many)", many=many), **MODERN)  # an argument that there is not
        assert (refused.status, why in refused.message["error"]["message"]) == (413, True), why
        assert "as one text or in parts" in refused.message["error"]["message"]
    values = {"numbers": list(range(150_000)), "names": {f"name {number}": "[{,:" for number in range(50_000)}}
    answer = post(server.url, call("sum(numbers) + len(names)", context_vars=values), **MODERN)
    assert answer.message["result"]["structuredContent"]["result"] == sum(range(150_000)) + 50_000


MANY = 12


class Rounds:
    """Counts the rounds of the event loop."""

    def __init__(self) -> None:
        self.count = 0
        self._tick()

    def _tick(self) -> None:
        self.count += 1
        asyncio.get_running_loop().call_soon(self._tick)


async def test_others_have_rounds_of_the_loop_between_two_and_each_caller_its_turn() -> None:
    large, rounds = RequestTurns(1, 8, 3), Rounds()
    began: list[tuple[str, int]] = []

    async def one(caller: str) -> None:
        await large.turn(Owner(caller=caller))
        began.append((caller, rounds.count))

    await asyncio.gather(*(one("many") for _ in range(MANY)), one("other"))
    assert [caller for caller, _ in began].index("other") <= 2
    times = [count for _, count in began]
    assert all(after - before >= 8 for before, after in pairwise(times))


async def test_few_begin_in_one_round_and_one_before_the_hundred_that_another_caller_sent_just_before() -> None:
    turns, rounds = RequestTurns(4, 16), Rounds()
    began: list[tuple[str, int]] = []

    async def one(caller: str) -> None:
        await turns.turn(Owner(caller=caller))
        began.append((caller, rounds.count))

    await asyncio.gather(*(one("many") for _ in range(100)), one("other"))
    assert [caller for caller, _ in began].index("other") < 10
    assert max(Counter(count for _, count in began).values()) < 10


async def test_one_that_is_cancelled_takes_nobodys_turn() -> None:
    large = RequestTurns(1, 8, 3)
    tasks = [asyncio.create_task(large.turn(Owner(caller="many"))) for _ in range(MANY)]
    await asyncio.sleep(0)
    for task in tasks[1:-1]:
        task.cancel()
    await asyncio.wait_for(tasks[-1], 30)
    served = asyncio.create_task(large.turn(Owner(caller="many")))
    await asyncio.sleep(0)
    large._next()  # and then it is cancelled, before it goes on
    served.cancel()
    await asyncio.gather(*tasks, served, return_exceptions=True)
    await asyncio.wait_for(large.turn(Owner(caller="other")), 30)


async def test_a_small_body_waits_for_no_large_one() -> None:
    began: list[int] = []

    async def app(_scope: Scope, receive: Receive, _send: Send) -> None:
        began.append(len((await receive())["body"]))
        first.set()

    async def posted(size: int) -> None:
        async def receive() -> Message:
            return {"type": "http.request", "body": json.dumps("x" * size).encode(), "more_body": False}

        async def send(_message: Message) -> None:
            raise AssertionError("nothing is refused")

        await bodies({"type": "http", "headers": [], "client": ("127.0.0.1", 1)}, receive, send)

    first = asyncio.Event()
    bodies = Admission(app, 100 * LARGE_CHARS)
    large = [asyncio.create_task(posted(LARGE_CHARS + 1)) for _ in range(5)]
    await first.wait()
    await posted(10)
    assert began.index(12) < 3
    await asyncio.gather(*large)
    assert len(began) == 6


@pytest.mark.parametrize("padding", [0, LARGE_CHARS], ids=["short", "long"])
def test_odd_bodies_are_read_as_lines_on_standard_input_are(server: HttpServer, padding: int) -> None:
    """Every request is answered: the SDK takes one whose id is not an id for a notification, and answers nothing."""
    code = "x = '\ud83d'\nhex(ord(x))" + " " * padding
    assert run(server.url, code).message["result"]["structuredContent"]["result"] == "0xfffd"
    session = {"mcp_session_id": opened(server.url)}
    legacy = {**call(code), "id": 5.0}
    answer = post(server.url, legacy, **session).message
    assert (answer["id"], answer["result"]["structuredContent"]["result"]) == (5, "0xfffd")
    for number in (True, None, 1.5, [7], {}):
        ping = {**PING, "id": number, "more": "x" * padding}
        for headers in (session, MODERN):
            refused = post(server.url, ping, **headers)
            assert (refused.status, refused.message["id"], refused.message["error"]["code"]) == (400, None, -32600)
            assert "neither an integer nor a text" in refused.message["error"]["message"]
    assert post(server.url, {**PING, "id": "", "params": {"_meta": {"id": None}}}, **session).message["result"] == {}
