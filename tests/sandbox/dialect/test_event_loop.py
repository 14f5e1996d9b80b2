"""The loop on which coroutines of the code run."""

from __future__ import annotations

import asyncio
import gc
import os
import select

import pytest

from sealab.sandbox.dialect import event_loop
from sealab.sandbox.guest.guest import GUEST

from ..guest_code import run


@pytest.fixture(autouse=True)
def no_channel() -> object:
    yield
    event_loop.set_channel(None)


def polling(descriptor: int) -> select.poll:
    """Return what polls one descriptor for input."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return poll


def test_sleeping_tasks_overlap_and_values_come_back() -> None:
    begun: list[int] = []

    async def sleep(number: int) -> tuple[int, int]:
        begun.append(number)
        return await asyncio.sleep(0.05, number), len(begun)

    async def main() -> list[tuple[int, int]]:
        return list(await asyncio.gather(*(sleep(number) for number in range(50))))

    assert event_loop.run(main()) == [(number, 50) for number in range(50)]


def test_a_loop_within_a_loop_is_refused_in_pythons_own_words() -> None:
    source = """
    import asyncio
    async def inner(): ...
    await asyncio.sleep(0)
    asyncio.run(inner())
    """
    with pytest.raises(RuntimeError, match=r"asyncio.run\(\) cannot be called from a running event loop"):
        run(source)


def test_what_is_still_pending_at_the_end_is_cancelled() -> None:
    ended: list[str] = []

    async def forever() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def numbers():
        try:
            yield 1
        finally:
            ended.append("closed")

    async def main() -> int:
        asyncio.create_task(forever())  # noqa: RUF006 - left behind on purpose
        await asyncio.sleep(0)
        return await anext(numbers())

    assert event_loop.run(main()) == 1
    assert sorted(ended) == ["cancelled", "closed"]


def test_a_program_that_waits_for_itself_ends_with_an_explanation_at_its_own_line() -> None:
    async def stuck() -> None:
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="every task waits") as caught:
        event_loop.run(stuck())
    assert any(entry.name == "stuck" for entry in caught.traceback)


def test_the_channel_is_read_while_tasks_wait_and_its_answers_wake_them() -> None:
    here, there = os.pipe()
    waiting: list[asyncio.Future[bytes]] = []

    async def ask() -> bytes:
        waiting.append(asyncio.get_running_loop().create_future())
        return await waiting[0]

    async def main() -> tuple[bytes, int]:
        async def tick() -> int:
            await asyncio.sleep(0.01)
            os.write(there, b"answer")
            return 1

        answer, ticked = await asyncio.gather(ask(), tick())
        return answer, ticked

    event_loop.set_channel(
        polling(here), lambda: waiting[0].set_result(os.read(here, 100)), lambda: not waiting[0].done()
    )
    try:
        assert event_loop.run(main()) == (b"answer", 1)
    finally:
        os.close(here)
        os.close(there)


def test_what_the_channel_raises_ends_the_run() -> None:
    class Gone(BaseException):
        pass

    def lost() -> None:
        raise Gone

    here, there = os.pipe()

    async def main() -> None:
        os.write(there, b"x")
        await asyncio.sleep(60)

    event_loop.set_channel(polling(here), lost)
    try:
        with pytest.raises(Gone):
            event_loop.run(main())
    finally:
        os.close(here)
        os.close(there)


def test_a_task_that_fails_unseen_is_told_of_on_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(GUEST, "write_error", written.append)

    async def fails() -> None:
        raise ValueError("lost")

    async def main() -> None:
        asyncio.create_task(fails())  # noqa: RUF006 - left alone on purpose
        await asyncio.sleep(0.01)

    event_loop.run(main())
    gc.collect()
    assert "".join(written) == "Task exception was never retrieved: ValueError: lost\n"


def test_the_loop_has_no_way_out_and_takes_no_stores() -> None:
    loop = event_loop.new_loop()

    for name in ("subprocess_exec", "subprocess_shell", "create_connection", "create_server", "connect_read_pipe"):
        with pytest.raises(NotImplementedError):
            asyncio.AbstractEventLoop.__dict__[name](loop, None, None).send(None)
    for name in ("add_reader", "add_signal_handler", "set_default_executor"):
        with pytest.raises(NotImplementedError):
            getattr(loop, name)(0, print) if name != "set_default_executor" else loop.set_default_executor(None)  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="read-only"):
        loop.call_soon = None  # type: ignore[method-assign,assignment]


def test_leaving_from_a_task_leaves_the_run() -> None:
    async def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        event_loop.run(leave())


def test_many_cancelled_timers_do_not_pile_up() -> None:
    async def main() -> int:
        loop = asyncio.get_running_loop()
        for _ in range(5000):
            loop.call_later(3600, print).cancel()
            if _ % 50 == 0:
                await asyncio.sleep(0)
        return len(loop._timers)  # type: ignore[attr-defined]

    assert event_loop.run(main()) < 1000
