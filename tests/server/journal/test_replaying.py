"""A replay gives each call its recorded answer, sends nothing that may have been sent, and stops where it differs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.sandbox.errors import HostCallError
from sealab.sandbox.host.pool import Pool, PoolSettings
from sealab.sandbox.job import Job, Json, Limits, Outcome, Status
from sealab.sandbox.levels import Level
from sealab.server.base.host_call import Answer, HostCall, for_worker
from sealab.server.use_cases.journal.replaying import DIVERGED, OUTCOME_UNKNOWN, RecordedCall, RunReplay, recorded_calls
from sealab.skills_db.journal.records import Record, RecordKind


def call(number: int, answer: Json = "ok", **arguments: Json) -> RecordedCall:
    return RecordedCall(number, "call_tool", {"name": "crm.find", "arguments": arguments}, {"answer": answer})


def intent(number: int, *, repeatable: bool = False) -> RecordedCall:
    return RecordedCall(number, "call_tool", {"name": "crm.send", "arguments": {}}, changes=True, repeatable=repeatable)


class Live:
    """A host that notes what reaches it."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Mapping[str, Json]]] = []

    async def answer(self, call: HostCall) -> Answer:
        self.calls.append((call.name, call.arguments))
        return Answer("live")


async def ask(replay: RunReplay, recorded: RecordedCall) -> Json:
    return await for_worker(replay.answer)(recorded.name, recorded.arguments)


async def test_recorded_calls_are_answered_and_what_follows_is_live() -> None:
    live = Live()
    replay = RunReplay([call(1, "a", q=1), call(2, {"b": [1]}, q=2)], live.answer)
    assert await ask(replay, call(1, q=1)) == "a"
    assert await ask(replay, call(2, q=2)) == {"b": [1]}
    assert live.calls == []
    assert await ask(replay, call(3, q=3)) == "live"
    assert (replay.answered, replay.sent) == (2, ['crm.find({"q": 3})'])


async def test_a_recorded_failure_fails_again_in_the_same_words() -> None:
    failed = RecordedCall(
        1, "read_file", {"filename": "a"}, {"error": {"type": "FileNotFoundError", "message": "no a"}}
    )
    with pytest.raises(HostCallError, match=r"^no a$") as error:
        await ask(RunReplay([failed]), failed)
    assert error.value.type == "FileNotFoundError"


async def test_a_write_that_may_be_repeated_is_sent_again() -> None:
    live = Live()
    assert await ask(RunReplay([intent(1, repeatable=True)], live.answer), intent(1)) == "live"
    assert len(live.calls) == 1


async def test_a_call_that_is_not_the_recorded_one_stops_the_run_for_good() -> None:
    live = Live()
    replay = RunReplay([call(1, q=1), call(2, q=2)], live.answer)
    for _ in range(2):
        with pytest.raises(HostCallError) as error:
            await ask(replay, call(1, q=9))
        assert error.value.type == DIVERGED
    assert str(replay.diverged) == ('call 1 was crm.find({"q": 1}) when it was recorded, and is crm.find({"q": 9}) now')
    with pytest.raises(HostCallError):
        await ask(replay, call(2, q=2))
    assert live.calls == []


async def test_a_replay_without_a_host_ends_with_its_record() -> None:
    replay = RunReplay([call(1)])
    assert await ask(replay, call(1)) == "ok"
    assert await for_worker(replay.answer)("progress", {"fraction": 0.5, "message": ""}) is None
    with pytest.raises(HostCallError):
        await ask(replay, call(2))
    assert str(replay.diverged) == "call 3 is crm.find({}), and the record has ended"


async def test_edited_code_is_live_from_its_first_new_call_on_and_stays_so() -> None:
    live = Live()
    replay = RunReplay([call(1, q=1), call(2, q=2), call(3, q=3)], live.answer, edited=True)
    assert await ask(replay, call(1, q=1)) == "ok"
    assert await ask(replay, call(2, q=9)) == "live"
    assert await ask(replay, call(3, q=3)) == "live"
    assert (replay.answered, len(live.calls), replay.diverged) == (1, 2, None)


def test_calls_are_read_from_records_whatever_the_order_of_their_answers() -> None:
    asked = {"name": "call_tool", "arguments": {"name": "a.b", "arguments": {}}, "at_ms": 1.0}
    records = [
        record(RecordKind.INTENT, {"n": 2, **asked, "repeatable": False, "leaves": True}),
        record(RecordKind.OUTCOME, {"n": 3, **asked, "ms": 1.0, "answer": None}),
        Record(RecordKind.TRACE, b"\x01\x02"),
        record(RecordKind.OUTCOME, {"n": 2, "ms": 2.0, "error": {"type": "ToolError", "message": "no"}}),
        record(RecordKind.INTENT, {"n": 4, **asked, "repeatable": True, "leaves": False}),
        record(RecordKind.END, {"status": "ok"}),
    ]
    second, third, fourth = recorded_calls(records)
    assert (second.number, second.changes, second.reply) == (2, True, {"error": {"type": "ToolError", "message": "no"}})
    assert (third.number, third.changes, third.reply) == (3, False, {"answer": None})
    assert (fourth.reply, fourth.repeatable) == (None, True)


@pytest.mark.parametrize("told", [{}, {"n": "1"}, {"n": 1}, {"n": 1, "name": 2, "arguments": {}}])
def test_records_that_are_no_calls_are_refused(told: Mapping[str, object]) -> None:
    with pytest.raises(ValueError, match=r"^a record "):
        recorded_calls([record(RecordKind.OUTCOME, told)])


def record(kind: RecordKind, told: Mapping[str, object]) -> Record:
    return Record(kind, json.dumps(told).encode())


NUMBERS = st.integers(-5, 5) | st.booleans() | st.none() | st.text(max_size=3)
JSON = st.recursive(NUMBERS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner))
ARGUMENTS = st.dictionaries(st.text(max_size=3), JSON, max_size=3)
REPLIES = st.builds(lambda answer: {"answer": answer}, JSON)
CALLS = st.lists(
    st.tuples(
        st.sampled_from(["read_file", "call_tool", "search_tools"]), ARGUMENTS, REPLIES | st.none(), st.booleans()
    ),
    max_size=8,
).map(
    lambda told: [
        RecordedCall(number, name, arguments, reply, changes=reply is None or changes)
        for number, (name, arguments, reply, changes) in enumerate(told, 1)
    ]
)


@given(CALLS, st.integers(0, 3))
def test_the_same_calls_get_the_same_answers_and_nothing_recorded_is_sent(calls: list[RecordedCall], more: int) -> None:
    async def run() -> None:
        live = Live()
        replay = RunReplay(calls, live.answer)
        for each in calls:
            if each.reply is None:
                with pytest.raises(HostCallError) as unknown:
                    await ask(replay, each)
                assert unknown.value.type == OUTCOME_UNKNOWN
            else:
                assert {"answer": await ask(replay, each)} == each.reply
        assert live.calls == []
        for _ in range(more):
            await for_worker(replay.answer)("list_files", {})
        assert len(live.calls) == more
        assert replay.diverged is None

    asyncio.run(run())


@given(CALLS.filter(bool), st.data())
def test_any_other_call_stops_the_run_and_is_not_sent(calls: list[RecordedCall], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(calls) - 1))
    other = data.draw(ARGUMENTS.filter(lambda given: not calls[at].fits(HostCall(calls[at].name, given))))

    async def run() -> None:
        live = Live()
        replay = RunReplay(calls, live.answer)
        for each in calls[:at]:
            if each.reply is not None:
                await ask(replay, each)
            else:
                with pytest.raises(HostCallError):
                    await ask(replay, each)
        with pytest.raises(HostCallError) as error:
            await for_worker(replay.answer)(calls[at].name, other)
        assert error.value.type == DIVERGED
        assert replay.diverged is not None
        assert replay.diverged.number == at + 1
        assert live.calls == []

    asyncio.run(run())


SEND = {"name": "crm.send", "arguments": {"text": "a"}}


@pytest.fixture(scope="module")
async def pool() -> AsyncIterator[Pool]:
    async with Pool(PoolSettings(required_level=Level.LIMITS, spares=1)) as opened:
        yield opened


async def replayed(pool: Pool, code: str, calls: Sequence[RecordedCall]) -> Outcome:
    """Run code whose tool calls nobody judges beforehand, as they are made by name."""
    return await pool.run(Job(code, limits=Limits(timeout_seconds=20)), for_worker(RunReplay(calls).answer))


@pytest.mark.parametrize("caught", ["OutcomeUnknown", "ToolError"])
async def test_code_can_catch_that_an_outcome_is_unknown(pool: Pool, caught: str) -> None:
    code = (
        f"call, name = call_tool, 'crm.' + 'send'\ntry:\n    await call(name, {{'text': 'a'}})\n"
        f"except {caught} as error:\n    result = [type(error).__name__, str(error)]"
    )
    outcome = await replayed(pool, code, [RecordedCall(1, "call_tool", SEND, changes=True)])
    assert outcome.status is Status.OK, outcome.error
    kind, said = outcome.result  # type: ignore[misc]
    assert kind == "OutcomeUnknown"
    assert said.startswith('Whether crm.send({"text": "a"}) was done is not known')


@pytest.mark.parametrize(
    "code",
    [
        "try:\n    read_file('b')\nexcept BaseException:\n    pass\n1",
        "call, name = call_tool, 'crm.' + 'find'\ntry:\n    await call(name, {})\nexcept BaseException:\n    pass\n1",
    ],
    ids=["at once", "in a task"],
)
async def test_code_cannot_go_on_after_a_call_that_is_not_the_recorded_one(pool: Pool, code: str) -> None:
    outcome = await replayed(pool, code, [RecordedCall(1, "read_file", {"filename": "a"}, {"answer": {}})])
    assert outcome.diverged
    assert outcome.result is None
    assert outcome.error is not None
    assert outcome.error.line is not None
    assert "call 1 was read_file(" in outcome.error.message
