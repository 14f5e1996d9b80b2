"""What one tenant sends over HTTP keeps no other from beginning, from sending, and from opening sessions."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from sealab.server.base.identity import ALL_RIGHTS, IDENTITY, Identity
from sealab.server.interfaces.protocol.web.admission import ROUNDS, Admission
from sealab.server.interfaces.protocol.web.mcp_sessions import CALLERS_WORTH, McpSessions

from ....waiting import until
from .asgi import Answered, asked_of

MB = 1_000_000


async def sent(app: ASGIApp, tenant: str, principal: str, body: bytes = b"{}") -> Answered:
    """Send a request as authentication passes it on."""
    return await asked_of(app, parts=(body,), **{IDENTITY: Identity(tenant, principal, ALL_RIGHTS)})


async def done(send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def test_a_request_begins_before_the_hundred_that_the_principals_of_another_tenant_sent_just_before() -> None:
    began: list[str] = []

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        began.append(scope[IDENTITY].tenant)
        await done(send)

    starts = Admission(app, 24 * MB)
    await asyncio.gather(*(sent(starts, "many", f"p{number}") for number in range(100)), sent(starts, "one", "p"))
    assert len(began) == 101
    assert began.index("one") < 10


async def test_a_request_of_many_rounds_ends_however_many_another_tenant_goes_on_sending() -> None:
    at_work, most, begun_meanwhile = 0, 0, 0
    others = asyncio.Event()

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        nonlocal at_work, most, begun_meanwhile
        begun_meanwhile += scope[IDENTITY].tenant == "many"
        at_work += 1
        most = max(most, at_work)
        for _ in range(ROUNDS - 2):  # work of so many rounds
            await asyncio.sleep(0)
        at_work -= 1
        await done(send)

    starts = Admission(app, 24 * MB)

    async def again_and_again(number: int) -> None:
        while not others.is_set():
            await sent(starts, "many", f"p{number}")

    many = [asyncio.create_task(again_and_again(number)) for number in range(100)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    begun_meanwhile = 0
    for _ in range(10):
        await sent(starts, "one", "p")
    others.set()
    assert begun_meanwhile <= 10 * 2 * 4  # a few for each, not a few for each of its rounds
    assert most <= 2 * 4
    await asyncio.gather(*many)


async def test_the_bodies_of_a_tenant_leave_room_for_those_of_another_and_are_refused_with_its_name() -> None:
    held: list[str] = []
    end = asyncio.Event()

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        held.append(scope[IDENTITY].tenant)
        await end.wait()
        await done(send)

    body = b'"' + b"x" * (2 * MB - 2) + b'"'
    bodies = Admission(app, 24 * MB)
    greedy = [asyncio.create_task(sent(bodies, "greedy", f"p{number}", body)) for number in range(10)]
    await until(lambda: len(held) + sum(each.done() for each in greedy) == len(greedy))
    refused = [each.result() for each in greedy if each.done()]
    assert 0 < len(refused) < len(greedy)
    assert {each.status for each in refused} == {429}
    assert all(b"of this tenant hold as many bytes" in each.body for each in refused)
    assert all(each.headers["retry-after"] == "1" for each in refused)
    modest = [asyncio.create_task(sent(bodies, "modest", each, body)) for each in "pq"]
    await until(lambda: held.count("modest") == 2)
    end.set()
    await asyncio.gather(*greedy, *modest)
    assert {each.result().status for each in modest} == {200}
    assert (bodies._free, bodies._held) == (24 * MB, {})


class Sdk:
    """What opens and ends sessions as the SDK does."""

    names = itertools.count()

    def __init__(self) -> None:
        self.ended = 0

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        headers: list[Any] = []
        if scope["method"] == "DELETE":
            self.ended += 1
        else:
            headers = [(b"mcp-session-id", b"session-%d" % next(self.names))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


@pytest.mark.parametrize("principals", [1, 5])
async def test_the_sessions_of_all_tenants_are_bounded_together_and_one_of_the_tenant_with_most_ends(
    principals: int,
) -> None:
    every: set[McpSessions] = set()
    maximum = 4
    sdks = {tenant: Sdk() for tenant in ("flood", "modest")}
    apps = {tenant: McpSessions(sdk, maximum, path="/mcp", all_sessions=every) for tenant, sdk in sdks.items()}
    for number in range(100):
        assert (await sent(apps["flood"], "flood", f"p{number % principals}")).status == 200
        assert sum(each.count for each in every) <= maximum * CALLERS_WORTH
    for _ in range(3):
        assert (await sent(apps["modest"], "modest", "p")).status == 200
    assert (apps["modest"].count, sdks["modest"].ended) == (3, 0)
    assert sum(each.count for each in every) <= maximum * CALLERS_WORTH
    for app in apps.values():
        app.leave()
    assert not every
