"""What the server opens once is opened by one thread, and a server that does not answer is not waited for in turn."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from sealab.server.database import Opening
from sealab.skills_db.errors import DatabaseUnreachable

from ..waiting import wait_until


def test_those_who_wait_while_it_cannot_be_reached_are_told_and_do_not_try_too() -> None:
    tries: list[int] = []
    waiting = threading.Semaphore(0)
    let_go, answers = threading.Event(), threading.Event()

    def make() -> str:
        tries.append(1)
        assert let_go.wait(20)
        if not answers.is_set():
            raise DatabaseUnreachable("It does not answer. Try again.")
        return "opened"

    opening = Opening(make)

    def ask() -> str:
        waiting.release()
        return opening()

    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(ask) for _ in range(8)]
        for _ in asked:
            assert waiting.acquire(timeout=20)
        wait_until(lambda: tries)
        let_go.set()
        for each in asked:
            with pytest.raises(DatabaseUnreachable, match="does not answer"):
                each.result()
        before = len(tries)
        assert before < len(asked)
        let_go.clear()
        again = threads.submit(ask)
        wait_until(lambda: len(tries) > before)
        with pytest.raises(DatabaseUnreachable):  # at once: nobody lets the other try go
            opening()
        answers.set()
        let_go.set()
        assert again.result() == opening() == "opened"
