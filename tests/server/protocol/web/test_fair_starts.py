"""Requests begin a few at a time, those of each caller in turns."""

from __future__ import annotations

import asyncio
import gc

from starlette.types import Receive, Scope, Send

from sealab.server.app import _prepare_process
from sealab.server.protocol.web.fair_starts import FairStarts

MANY = 100


class Noted:
    """An app that notes who began, and how many at most began in one round of the event loop."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.most_at_once = 0
        self._at_once = 0

    async def __call__(self, scope: Scope, _receive: Receive, _send: Send) -> None:
        self.began.append(dict(scope["headers"]).get(b"authorization", b"").decode())
        if not self._at_once:
            asyncio.get_running_loop().call_soon(self._next_round)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)

    def _next_round(self) -> None:
        self._at_once = 0


def asked(app: FairStarts, caller: str) -> asyncio.Task[None]:
    async def nothing(*_message: object) -> None:
        pass

    scope = {"type": "http", "headers": [(b"authorization", caller.encode())], "client": ("127.0.0.1", 1)}
    return asyncio.create_task(app(scope, nothing, nothing))  # type: ignore[arg-type]  # nobody receives or sends


async def test_few_requests_begin_in_one_round_and_one_before_the_hundred_that_another_caller_sent_just_before() -> (
    None
):
    noted = Noted()
    app = FairStarts(noted)
    await asyncio.gather(*(asked(app, "many") for _ in range(MANY)), asked(app, "one"))
    assert len(noted.began) == MANY + 1
    assert noted.began.index("one") < 10
    assert noted.most_at_once < 10


async def test_a_request_that_is_cancelled_while_it_waits_takes_nobodys_turn() -> None:
    noted = Noted()
    app = FairStarts(noted)
    tasks = [asked(app, "many") for _ in range(MANY)]
    await asyncio.sleep(0)
    for task in tasks[10:]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert len(noted.began) == 10
    await asked(app, "later")
    assert noted.began[-1] == "later"


async def test_requests_that_wait_are_not_looked_through_for_garbage_again_and_again() -> None:
    full = 0

    def count(phase: str, info: dict[str, int]) -> None:
        nonlocal full
        full += phase == "stop" and info["generation"] == 2

    _prepare_process()
    waiting: list[object] = []
    gc.collect()
    gc.callbacks.append(count)
    try:
        while len(waiting) < 150_000:  # Python's own thresholds look at all of them four times and more
            waiting.append([])
    finally:
        gc.callbacks.remove(count)
    assert full == 0
