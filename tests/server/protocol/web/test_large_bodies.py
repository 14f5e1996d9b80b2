"""Large messages are decoded one after another, each caller's in turns, and others have the loop in between."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise

from starlette.types import Message, Receive, Scope, Send

from sealab.server.fair_line import Owner
from sealab.server.protocol.web.bodies import Bodies
from sealab.server.protocol.web.large_bodies import LargeBodies
from sealab.tools_registry.json_lines import LARGE_CHARS

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
    large, rounds = LargeBodies(), Rounds()
    began: list[tuple[str, int]] = []

    async def one(caller: str) -> None:
        await large.turn(Owner(caller=caller))
        began.append((caller, rounds.count))

    await asyncio.gather(*(one("many") for _ in range(MANY)), one("other"))
    assert [caller for caller, _ in began].index("other") <= 2
    times = [count for _, count in began]
    assert all(after - before >= 8 for before, after in pairwise(times))


async def test_one_that_is_cancelled_takes_nobodys_turn() -> None:
    large = LargeBodies()
    tasks = [asyncio.create_task(large.turn(Owner(caller="many"))) for _ in range(MANY)]
    await asyncio.sleep(0)
    for task in tasks[1:-1]:
        task.cancel()
    await asyncio.wait_for(tasks[-1], 30)
    served = asyncio.create_task(large.turn(Owner(caller="many")))
    await asyncio.sleep(0)
    large._turns.serve_next()  # and then it is cancelled, before it goes on
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
    bodies = Bodies(app, 100 * LARGE_CHARS)
    large = [asyncio.create_task(posted(LARGE_CHARS + 1)) for _ in range(5)]
    await first.wait()
    await posted(10)
    assert began.index(12) < 3
    await asyncio.gather(*large)
    assert len(began) == 6
