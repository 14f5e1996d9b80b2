"""Journals are written together, those that must be on disk are waited for, and a failure is told and never hidden."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sealab.sandbox.errors import HostCallError
from sealab.sandbox.job import Json, Outcome, Status
from sealab.server.base.errors import VaultKeyError
from sealab.server.base.host_call import MADE_HERE, REPEATABLE_HERE, SENT, AnnouncedChange, Answer, HostCall, for_worker
from sealab.server.use_cases.journal.recording import OUTPUT_KEPT_CHARS, RunJournal, outcome_record
from sealab.server.use_cases.journal.replaying import RecordedCall, recorded_calls
from sealab.server.use_cases.journal.replies import error_reply
from sealab.server.use_cases.journal.writer import JournalWriter, WrittenRun
from sealab.skills_db.engine import Database, open_database
from sealab.skills_db.errors import CommitUnknown, DatabaseUnavailable, DatabaseUnreachable
from sealab.skills_db.journal.journal_store import JournalStore
from sealab.skills_db.journal.records import Record, RecordKind, RunBegin, RunChange
from tests.waiting import until

KEY = bytes(range(32))


class Commits(JournalStore):
    """A real store that notes its commits, and fails when it is told to."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, KEY, quota_bytes=100_000_000)
        self.commits: list[tuple[int, bool]] = []
        self.fails: Exception | None = None
        self.unheard: list[bool] = []
        """Of the next commits that are not heard of, whether each comes about."""
        self.most: int | None = None
        """How many more commits come about before it fails."""

    def write(self, changes: Sequence[RunChange], scopes: Mapping[str, str], *, durable: bool) -> None:
        if self.fails is not None and self.most in (None, 0):
            raise self.fails
        if not self.unheard or self.unheard[0]:
            super().write(changes, scopes, durable=durable)
            self.commits.append((len(changes), durable))
            self.most = None if self.most is None else self.most - 1
        if self.unheard:
            self.unheard.pop(0)
            raise CommitUnknown("The connection was lost.")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Commits]:
    with open_database(None, tmp_path) as database:
        yield Commits(database)


@contextmanager
def written(store: Commits) -> Iterator[JournalWriter]:
    writer = JournalWriter(lambda: store, "here")
    yield writer
    writer.close()


@pytest.fixture
def writer(store: Commits) -> Iterator[JournalWriter]:
    with written(store) as opened:
        yield opened


def begun(run_id: str, *_told: object) -> RunBegin:
    now = time.time()
    return RunBegin(run_id, "home", "restricted", now, now + 60, 30.0, 500, b"{}", leased_by="here")


def journal(writer: JournalWriter, run_id: str = "run", *, is_patient: bool = False) -> RunJournal:
    run = WrittenRun(run_id, "home")
    return RunJournal(writer, run, partial(begun, run_id), lambda _program: None, is_patient=is_patient)


def changing(change: AnnouncedChange | None, made: list[str] | None = None, answer: Json = "done"):  # type: ignore[no-untyped-def]
    """A host whose calls change that."""

    async def answered(call: HostCall) -> Answer:
        if change is not None:
            await call.before(change)
        if made is not None:
            made.append(call.name)
        return Answer(answer)

    return answered


def calls_of(store: JournalStore, run_id: str = "run") -> tuple[RecordedCall, ...]:
    return recorded_calls(store.journal(run_id).records)


async def test_a_call_that_leaves_is_durable_before_it_is_made(store: Commits, writer: JournalWriter) -> None:
    seen: list[tuple[RecordedCall, ...]] = []

    async def send(call: HostCall) -> Answer:
        await call.before(SENT)
        seen.append(calls_of(store))
        return Answer("sent")

    run = journal(writer)
    assert await for_worker(run.around(send))("call_tool", {"name": "crm.send"}) == "sent"
    ((call,),) = seen
    assert (call.number, call.arguments, call.changes, call.reply) == (1, {"name": "crm.send"}, True, None)
    assert store.commits == [(1, True)]
    await writer.stored(durable=False)
    assert calls_of(store)[0].reply == {"answer": "sent"}


@pytest.mark.parametrize("answer", [math.nan, [-math.inf], {"a": {1, 2}}])
async def test_an_answer_that_is_not_json_is_an_error_to_the_code_and_to_the_journal(
    store: Commits, writer: JournalWriter, answer: Any
) -> None:
    run = journal(writer)
    with pytest.raises(HostCallError, match="is not JSON") as raised:
        await for_worker(run.around(changing(None, answer=answer)))("look", {})
    assert await for_worker(run.around(changing(SENT)))("call_tool", {}) == "done"
    assert await run.stored() is None
    assert calls_of(store)[0].reply == error_reply(raised.value)


async def test_calls_that_wait_at_once_share_a_commit(store: Commits, writer: JournalWriter) -> None:
    runs = [journal(writer, f"run{number}") for number in range(30)]
    await asyncio.gather(*(for_worker(run.around(changing(SENT)))("call_tool", {}) for run in runs))
    assert len(store.commits) <= 3
    assert len(store.runs(limit=100)) == 30


async def test_what_was_written_is_not_kept_until_there_is_more(writer: JournalWriter) -> None:
    class Kept:
        def __call__(self) -> Record | None:
            return None

    async def written() -> weakref.ref[object]:
        record = Kept()
        writer.add(WrittenRun("r" * 32, "home"), record=record)
        await writer.stored(durable=False)
        return weakref.ref(record)

    kept = await written()
    await until(lambda: kept() is None)


async def test_what_changes_nothing_waits_for_no_commit(store: Commits, writer: JournalWriter) -> None:
    run = journal(writer)
    answer = for_worker(run.around(changing(None)))
    for number in range(100):
        await answer("read_file", {"n": number})
    assert store.commits == []
    await run.ended(Outcome(Status.OK, 7), [("crm.find", True), ("crm.find", False)])
    await writer.stored(durable=False)
    assert [call.arguments["n"] for call in calls_of(store)] == list(range(100))
    found = store.journal("run")
    assert (found.run.status, found.run.tools) == ("ok", {"crm.find": {"done": 1, "failed": 1}})
    assert found.records[-1].kind is RecordKind.END
    assert found.records[-1].value["result"] == 7


async def test_of_a_long_output_a_journal_keeps_the_beginning_and_a_hash_of_all(
    store: Commits, writer: JournalWriter
) -> None:
    text = "é\ud800" * OUTPUT_KEPT_CHARS
    await journal(writer).ended(Outcome(Status.OK, output=text), [])
    await writer.stored(durable=False)
    end = store.journal("run").records[-1].value
    assert str(end["output"]) == f"{text[:OUTPUT_KEPT_CHARS]}\n1,000,000 more characters are not in the journal."
    assert end["output_sha256"] == hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    assert end["stderr"] == ""
    assert outcome_record(Outcome(Status.OK, output=text[:-1] + "!"))["output_sha256"] != end["output_sha256"]


async def test_a_change_that_can_be_repeated_waits_only_after_something_to_build_on(
    store: Commits, writer: JournalWriter
) -> None:
    run = journal(writer)
    for _ in range(20):
        await for_worker(run.around(changing(REPEATABLE_HERE)))("write_file", {})
    assert store.commits == []
    await for_worker(run.around(changing(None)))("read_file", {})
    await for_worker(run.around(changing(REPEATABLE_HERE)))("write_file", {})
    assert store.commits == [(1, False)]
    run.recorded(b"a clock was read")
    await for_worker(run.around(changing(REPEATABLE_HERE)))("write_file", {})
    await for_worker(run.around(changing(REPEATABLE_HERE)))("write_file", {})
    assert len(store.commits) == 2
    await for_worker(run.around(changing(MADE_HERE)))("delete_file", {})
    assert len(store.commits) == 3
    assert not any(durable for _, durable in store.commits)


async def test_what_cannot_be_written_down_is_not_sent_and_changes_here_are_made_and_noted(
    store: Commits, writer: JournalWriter
) -> None:
    store.fails = DatabaseUnavailable("The database file cannot grow: the disk is full. Free some space.")
    made: list[str] = []
    run = journal(writer)
    with pytest.raises(HostCallError, match=r"^The call was not sent, since .* cannot grow: the disk is full\."):
        await for_worker(run.around(changing(SENT, made)))("call_tool", {})
    assert made == []
    await for_worker(run.around(changing(MADE_HERE, made)))("delete_file", {})
    assert made == ["delete_file"]
    store.fails = None
    with pytest.raises(HostCallError, match="was not sent"):  # its journal has a gap
        await for_worker(run.around(changing(SENT, made)))("call_tool", {})
    assert "the disk is full" in str(await run.ended(Outcome(Status.OK), []))
    after = journal(writer, "after")
    assert await for_worker(after.around(changing(SENT)))("call_tool", {}) == "done"


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (VaultKeyError("The key is gone. Put it back."), r"cannot be written: The key is gone\. Put it back\.$"),
        (OSError("/secret/path"), r"cannot be written: The server's log says why\.$"),
    ],
)
async def test_where_journals_cannot_be_opened_nothing_is_sent_and_code_is_told_no_more_than_it_may_know(
    failure: Exception, said: str
) -> None:
    def opens() -> JournalStore:
        raise failure

    writer, made = JournalWriter(opens, "here"), []  # type: ignore[var-annotated]
    try:
        with pytest.raises(HostCallError, match=said):
            await for_worker(journal(writer).around(changing(SENT, made)))("call_tool", {})
    finally:
        writer.close()
    assert made == []


async def test_what_waits_for_a_database_that_cannot_be_reached_is_written_later(
    store: Commits, writer: JournalWriter
) -> None:
    store.fails = DatabaseUnreachable("It cannot be reached.")
    run = journal(writer)
    await for_worker(run.around(changing(None)))("read_file", {"n": 1})
    with pytest.raises(HostCallError, match="was not sent"):
        await for_worker(run.around(changing(SENT)))("call_tool", {})
    await for_worker(run.around(changing(None)))("read_file", {"n": 2})
    await run.ended(Outcome(Status.OK), [])
    store.fails = None
    await until(lambda: bool(store.commits))
    first, failed, last = calls_of(store)
    assert (first.arguments, last.arguments) == ({"n": 1}, {"n": 2})
    assert failed.reply is not None
    assert "was not sent" in json.dumps(failed.reply)
    assert store.journal("run").run.incomplete is None


async def test_what_waits_for_room_on_the_disk_is_written_once_there_is_some(
    store: Commits, writer: JournalWriter
) -> None:
    store.fails = DatabaseUnavailable("The database file cannot grow: the disk is full. Free some space.")
    run = journal(writer)
    await for_worker(run.around(changing(None)))("read_file", {"n": 1})
    with pytest.raises(HostCallError, match="the disk is full"):
        await for_worker(run.around(changing(SENT)))("call_tool", {})
    store.fails = None
    assert await for_worker(run.around(changing(SENT)))("call_tool", {}) == "done"
    assert await run.ended(Outcome(Status.OK), []) is None
    await writer.stored(durable=False)
    assert [call.arguments for call in calls_of(store)] == [{"n": 1}, {}, {}]
    assert store.journal("run").run.incomplete is None


@pytest.mark.parametrize("came_about", [[True], [False], [True, False], [False, True], [False, False]])
async def test_a_commit_that_was_not_heard_of_leaves_no_gap_and_is_not_repeated(
    store: Commits, writer: JournalWriter, came_about: list[bool]
) -> None:
    made: list[str] = []
    run = journal(writer, is_patient=True)
    for number in range(2):
        await for_worker(run.around(changing(SENT, made)))("call_tool", {"n": number})
    store.unheard = [*came_about]
    for number in range(2, 4):
        await for_worker(run.around(changing(SENT, made)))("call_tool", {"n": number})
    store.unheard = [came_about[-1]]
    assert await run.ended(Outcome(Status.OK), []) is None
    with suppress(CommitUnknown):
        await writer.stored(durable=True)
    await writer.stored(durable=True)
    assert [(call.arguments["n"], call.reply) for call in calls_of(store)] == [
        (n, {"answer": "done"}) for n in range(4)
    ]
    assert made == ["call_tool"] * 4
    assert store.journal("run").run.status == "ok"


async def test_a_first_commit_that_was_not_heard_of_begins_a_run_once(store: Commits, writer: JournalWriter) -> None:
    for came_about in (True, False):
        run_id = f"run {came_about}"
        store.unheard = [came_about]
        run = journal(writer, run_id, is_patient=True)
        assert await for_worker(run.around(changing(SENT)))("call_tool", {}) == "done"
        await run.ended(Outcome(Status.OK), [])
        await writer.stored(durable=True)
        assert [call.reply for call in calls_of(store, run_id)] == [{"answer": "done"}]


@pytest.mark.parametrize(
    "failure", [DatabaseUnreachable("It cannot be reached."), DatabaseUnavailable("The disk is full.")]
)
async def test_the_call_of_a_patient_run_waits_for_the_database_and_is_then_made(
    store: Commits, writer: JournalWriter, failure: Exception
) -> None:
    store.fails = failure
    made: list[str] = []
    waiting = asyncio.create_task(
        for_worker(journal(writer, is_patient=True).around(changing(SENT, made)))("call_tool", {"name": "crm.send"})
    )
    with pytest.raises(HostCallError, match="was not sent"):  # the one of another run is told at once
        await for_worker(journal(writer, "other").around(changing(SENT)))("call_tool", {})
    assert not waiting.done()
    assert made == []
    store.fails = None
    assert await waiting == "done"
    assert [call.arguments for call in calls_of(store)] == [{"name": "crm.send"}]


async def test_a_call_that_is_given_up_before_it_could_be_written_down_is_not_told_as_one_that_may_be_made(
    store: Commits, writer: JournalWriter
) -> None:
    run = journal(writer, is_patient=True)
    await for_worker(run.around(changing(None)))("read_file", {})
    store.fails = DatabaseUnavailable("The disk is full.")
    waiting = asyncio.create_task(for_worker(run.around(changing(SENT)))("call_tool", {}))
    with pytest.raises(HostCallError, match="was not sent"):
        await for_worker(journal(writer, "other").around(changing(SENT)))("call_tool", {})
    waiting.cancel()
    with suppress(asyncio.CancelledError):
        await waiting
    store.fails = None
    await writer.stored(durable=False)
    assert [call.name for call in calls_of(store)] == ["read_file"]


async def test_what_was_written_by_itself_is_not_written_again_when_the_database_goes_away_meanwhile(
    store: Commits, writer: JournalWriter
) -> None:
    first = journal(writer, "taken")
    await first.ended(Outcome(Status.OK), [])
    await writer.stored(durable=False)
    again, other, last = journal(writer, "taken"), journal(writer, "other"), journal(writer, "last")
    await for_worker(other.around(changing(None)))("read_file", {})
    for each in (again, last):  # one cannot be written, so each is written by itself
        await each.ended(Outcome(Status.OK), [])
    store.fails, store.most = DatabaseUnreachable("It cannot be reached."), 1
    real = store.write

    def write(changes: Sequence[RunChange], scopes: Mapping[str, str], *, durable: bool) -> None:
        if len(changes) > 1 and store.most:
            raise RuntimeError("one of them is wrong")
        real(changes, scopes, durable=durable)

    store.write = write  # type: ignore[method-assign]
    with suppress(Exception):
        await writer.stored(durable=False)
    assert [run.run_id for run in store.runs()] == ["other", "taken"]
    store.fails = None
    await until(lambda: {run.run_id for run in store.runs(status="ok")} == {"taken", "last"})
    assert await for_worker(other.around(changing(SENT)))("call_tool", {}) == "done"
    assert [call.name for call in calls_of(store, "other")] == ["read_file", "call_tool"]


async def test_what_one_run_brings_costs_the_others_nothing(store: Commits, writer: JournalWriter) -> None:
    taken = journal(writer, "taken")
    await taken.ended(Outcome(Status.OK), [])
    await writer.stored(durable=False)
    again, other = journal(writer, "taken"), journal(writer, "other")
    await again.ended(Outcome(Status.OK), [])  # a run of this name has begun
    await other.ended(Outcome(Status.OK), [])
    await writer.stored(durable=False)
    assert await again.stored() == "The server's log says why."
    assert store.journal("other").run.status == "ok"


@pytest.mark.parametrize("others", [0, 1])
async def test_of_a_run_that_was_erased_nothing_more_is_written_and_nothing_is_sent(
    store: Commits, writer: JournalWriter, others: int
) -> None:
    run, made = journal(writer), []  # type: ignore[var-annotated]
    assert await for_worker(run.around(changing(SENT, answer="Ada")))("call_tool", {}) == "Ada"
    await writer.stored(durable=False)
    assert store.forget(lambda text: text == "Ada") == ["run"]
    more = [journal(writer, f"other{number}") for number in range(others)]
    sending = [for_worker(each.around(changing(SENT)))("call_tool", {}) for each in more]
    answers = await asyncio.gather(
        for_worker(run.around(changing(SENT, made, "Ada")))("call_tool", {}), *sending, return_exceptions=True
    )
    assert isinstance(answers[0], HostCallError)
    assert "What was kept of the run run was erased by `sealab pii forget`" in answers[0].message
    assert (made, answers[1:]) == ([], ["done"] * others)
    await run.ended(Outcome(Status.OK, "Ada"), [])
    await writer.stored(durable=False)
    assert [(each.run_id, each.status) for each in store.runs() if each.run_id == "run"] == [("run", "erased")]
    assert store.forget(lambda text: text == "Ada") == []


async def test_a_failed_call_is_recorded_with_its_type(store: Commits, writer: JournalWriter) -> None:
    async def fails(_call: HostCall) -> Answer:
        raise HostCallError("no", type="ToolError")

    run = journal(writer)
    with pytest.raises(HostCallError):
        await for_worker(run.around(fails))("call_tool", {})
    await writer.stored(durable=False)
    assert calls_of(store)[0].reply == {"error": {"type": "ToolError", "message": "no"}}


async def test_an_orderly_end_writes_what_waits(store: Commits) -> None:
    with written(store) as writer:
        await journal(writer).ended(Outcome(Status.OK), [])
        assert store.commits == []
    assert store.journal("run").run.status == "ok"


async def test_much_is_written_without_a_wait(store: Commits, writer: JournalWriter) -> None:
    run = WrittenRun("run", "home")
    writer.add(run, begin=partial(begun, "run"))
    record = Record(RecordKind.TRACE, b"x" * 1_000_000)
    for _ in range(5):
        writer.add(run, record=lambda: record, count=1_000_000)
    await until(lambda: bool(store.commits))
    assert store.journal("run").trace[:1] == b"x"
