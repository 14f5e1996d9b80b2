"""The child's end of the channel: who asked gets the answer, in whatever order answers come."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

from sealab.sandbox.dialect import event_loop
from sealab.sandbox.full_python.threaded_channel import ThreadedChannel
from sealab.sandbox.guest.host_channel import HostChannel, HostGone, ToolError
from sealab.sandbox.wire.frames import Frames, decode, encode


@pytest.fixture
def ends():
    host, child = socket.socketpair()
    with host, child:
        yield host, HostChannel(child.fileno())
        event_loop.set_channel(None)


def calls_from(host, count):
    """Read that many calls, as the host would."""
    reader, calls = Frames(), []
    while len(calls) < count:
        reader.feed(host.recv(1 << 16))
        while (body := reader.next()) is not None:
            calls.append(decode(body))
    return calls


def answer(host, number, **what):
    host.sendall(encode({"t": "answer", "id": number, **what}))


def in_host(work):
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_a_call_waits_for_its_own_answer(ends):
    host, channel = ends
    thread = in_host(lambda: (calls_from(host, 1), answer(host, 1, value={"a": [1]})))
    assert channel.call("f", {"x": 1}) == {"a": [1]}
    thread.join()


def test_calls_at_once_get_their_answers_in_any_order(ends):
    host, channel = ends

    def work():
        asked = calls_from(host, 3)
        for number in (3, 1, 2):
            answer(host, number, value=asked[number - 1]["args"]["n"] * 10)

    async def ask():
        return await asyncio.gather(*(channel.call_async("f", {"n": n}) for n in (1, 2, 3)))

    event_loop.set_channel(channel, channel.hand_out, channel.is_waited_for)
    thread = in_host(work)
    assert event_loop.run(ask()) == [10, 20, 30]
    thread.join()


def test_a_call_that_waits_keeps_the_answers_of_others(ends):
    host, channel = ends

    def work():
        calls_from(host, 2)
        answer(host, 1, value="early")
        answer(host, 2, value="mine")

    async def ask():
        other = asyncio.ensure_future(channel.call_async("slow", {}))
        await asyncio.sleep(0)
        mine = channel.call("quick", {})
        return mine, await other

    event_loop.set_channel(channel, channel.hand_out, channel.is_waited_for)
    thread = in_host(work)
    assert event_loop.run(ask()) == ("mine", "early")
    thread.join()


@pytest.mark.parametrize(
    ("told", "raised"),
    [
        ("FileNotFoundError", FileNotFoundError),
        ("ToolError", ToolError),
        ("ValueError", ValueError),
        ("os.system", RuntimeError),
    ],
)
def test_a_refusal_becomes_an_exception_of_a_known_kind(ends, told, raised):
    host, channel = ends
    answer(host, 1, error={"type": told, "message": "why"})
    with pytest.raises(raised, match="why"):
        channel.call("f", {})


def test_arguments_that_are_no_json_are_an_error_of_the_code_and_nothing_is_sent(ends):
    host, channel = ends
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(ValueError, match="f cannot be passed on"):
        channel.call("f", {"x": loop})
    with pytest.raises(ValueError, match="f cannot be passed on"):
        channel.call("f", {"x": float("nan")})
    with pytest.raises(TypeError):
        channel.call("f", {"x": {1, 2}})
    host.setblocking(False)
    with pytest.raises(BlockingIOError):
        host.recv(1)


def test_both_sides_may_send_much_at_once_without_waiting_for_ever(ends):
    host, channel = ends
    size = 4_000_000

    def work():
        answer(host, 7, value="x" * size)
        calls_from(host, 1)
        answer(host, 1, value="y")

    thread = in_host(work)
    assert channel.call("f", {"text": "z" * size}) == "y"
    thread.join()


def test_the_end_of_the_host_is_noticed(ends):
    host, channel = ends
    host.close()
    with pytest.raises(HostGone):
        channel.call("f", {})


def echo(host, count):
    """Answer that many calls with what they brought, the later of each handful the sooner."""
    reader, asked, done = Frames(), [], 0
    while done < count:
        reader.feed(host.recv(1 << 16))
        while (body := reader.next()) is not None:
            asked.append(decode(body))
        for number, call in reversed(list(enumerate(asked[done:], done + 1))):
            answer(host, number, value=call["args"])
        done = len(asked)


def test_threads_and_loops_that_send_much_and_wait_at_once_each_get_their_own_answer():
    host, child = socket.socketpair()
    with host, child:
        channel = ThreadedChannel(child.fileno())
        wrong = []

        def ask(who):
            for turn in range(30):
                said = {"who": who, "turn": turn, "filling": "x" * (300_000 if turn % 10 == 0 else 10)}
                if channel.call("f", said) != said:
                    wrong.append((who, turn))

        async def ask_beside(who):
            for turn in range(30):
                said = {"who": who, "turn": turn}
                if await channel.call_async("f", said) != said:
                    wrong.append((who, turn))

        async def ask_twice(who):
            await asyncio.gather(ask_beside(who), ask_beside(-who))

        answers = in_host(lambda: echo(host, 30 * (4 + 4)))
        threads = [in_host(lambda who=who: ask(who)) for who in range(4)]
        threads += [in_host(lambda who=who: asyncio.run(ask_twice(who))) for who in (10, 11)]
        for thread in (*threads, answers):
            thread.join(30)
            assert not thread.is_alive()
        assert wrong == []


def test_the_next_run_comes_though_a_thread_still_waits_for_an_answer():
    host, child = socket.socketpair()
    with host, child:
        channel = ThreadedChannel(child.fileno())
        refused = []

        def ask():
            with pytest.raises(RuntimeError, match="has ended") as error:
                channel.call("f", {})
            refused.append(error)

        waiting = in_host(ask)
        assert [call["name"] for call in calls_from(host, 1)] == ["f"]
        channel.report(encode({"t": "done"}))
        host.sendall(encode({"t": "run", "code": "1"}))
        assert channel.next_run()["code"] == "1"
        waiting.join(10)
        assert len(refused) == 1
        answer(host, 1, value="late")
        beside = in_host(lambda: answer(host, 2, value="mine"))
        assert channel.call("f", {}) == "mine"
        beside.join()
