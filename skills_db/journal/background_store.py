"""Keeps the queue of background runs: what is to be run, who runs it and until when, and its report.

This is a security boundary: programs, progress and reports stand in the database as ciphertext alone (`sealing`).

A process that runs one holds a lease (`leases`), which it renews. A run whose lease is over was cut, and the next
process that asks for work is given it.

A promoted standby may lack that a run was taken (`histories`). So no run is taken there for as long as a lease lasts,
and within that time whoever has one takes it again by renewing its lease or by storing its report.

Everything here blocks: call it from a thread.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from ..errors import JournalDamaged, JournalErased, JournalNotFound
from ..leases import NOBODYS, Lease, taken
from ..shared_state.histories import Histories
from ..sql import Row, insert, sa
from ..tables import BACKGROUND, JOURNAL, SENT_CALL
from ..vault_keys import SealBroken
from .approval_links import ApprovalLink, judged, signed
from .records import ENDED, QUEUED, RUNNING, WAITING
from .schedule_store import ScheduleStore, any_due
from .sealing import JournalKeys

if TYPE_CHECKING:
    from ..engine import Database
    from ..sql import Connection

KEPT, CANCELS, LOST = "kept", "cancels", "lost"
"""What a renewal answers: the lease is kept, the run is to be cancelled, or it is not this process's any more."""
_REQUEST, _PROGRESS, _REPORT, _QUESTION, _ANSWER = "request", "progress", "report", "question", "answer"
_ANSWERS = "answers"
StoredObject = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Claimed:
    """A run that this process may run now.

    `was_cut` says that another process had begun it, `cancels` that its caller wants none of it. `request` is None
    where what was stored was changed or is damaged.
    """

    run_id: str
    owner: str
    request: StoredObject | None
    was_cut: bool
    cancels: bool


@dataclass(frozen=True, slots=True)
class SentBefore:
    """A call with an idempotency key: what tells what it asked for, and its run.

    `silent_seconds` is for how long its process has not been heard of; None once its run has begun.
    """

    asked: str
    run_id: str
    silent_seconds: float | None


@dataclass(frozen=True, slots=True)
class StoredReply:
    """The answer to a question of a run: what was chosen, None for a no, and when, in seconds since 1970."""

    number: int
    choice: str | None
    at: float


@dataclass(frozen=True, slots=True)
class BackgroundState:
    """How far a background run is: `report` is there once it has ended, `progress` where it reported any.

    Times are in seconds since 1970.
    """

    run_id: str
    owner: str
    status: str
    queued: float
    changed: float
    expires: float
    progress: StoredObject | None = None
    report: StoredObject | None = None
    questions: int = 0
    question: StoredObject | None = None
    """What it waits for, where that is a user's answer; `questions` is the number of it."""
    answers: tuple[StoredReply, ...] = ()
    """The answers that it was given, to each of its questions one."""
    has_journal: bool = True
    """Whether anything is written of it in a journal; like `has_ended_journal` known in a list alone."""
    has_ended_journal: bool = True


def may_begin(database: Database, now: float) -> bool:
    """Return whether a background run in a database waits for a process, at that time in seconds since 1970.

    So does one whose set time has come.
    """
    with database.read() as connection:
        queued = connection.execute(sa.select(1).where(*_may_begin(now)).limit(1)).first() is not None
        return queued or any_due(connection, now)


class BackgroundStore:
    """The background runs of one database under one master key; `process` names who leases."""

    def __init__(self, database: Database, key: bytes, *, process: str) -> None:
        self._database = database
        self._keys = JournalKeys(key)
        self._process = process
        self._histories = Histories(database)
        self._begins: dict[str, int] = {}
        """The runs that this process took, each with how often it was begun by then."""
        self._settle_seconds = 0.0
        self.schedules = ScheduleStore(database, self._keys)

    def put(
        self,
        run_id: str,
        scope: str,
        request: StoredObject,
        *,
        expires: float,
        most: int,
        beside: Callable[[Connection], None] = lambda _connection: None,
    ) -> bool:
        """Queue a run; False where `most` of its owner wait already. Once it returns, the run survives a crash.

        `beside` is done in the same transaction; where it raises, nothing is queued.
        """
        row = self._row(run_id, scope, request, expires)
        queued = sa.select(sa.func.count()).where(_RUN.owner == row["owner"], _RUN.status == QUEUED)
        with self._database.transaction() as connection:
            if connection.execute(queued).scalar_one() >= most:
                return False
            beside(connection)
            connection.execute(BACKGROUND.insert(), row)
        return True

    def put_parked(
        self, run_id: str, scope: str, request: StoredObject, question: StoredObject, *, expires: float
    ) -> None:
        """Let a run that began elsewhere wait for an answer."""
        row = self._row(run_id, scope, request, expires) | {"status": WAITING, "begins": 1, "questions": 1}
        row["sealed_question"] = self._sealed(row["owner"], run_id, _QUESTION, question)
        with self._database.transaction() as connection:
            connection.execute(BACKGROUND.insert(), row)

    def _row(self, run_id: str, scope: str, request: StoredObject, expires: float) -> dict[str, Any]:
        owner, now = self._keys.owner(scope), self._database.now()
        return {
            **NOBODYS,
            "run_id": run_id,
            "owner": owner,
            "status": QUEUED,
            "queued": now,
            "changed": now,
            "expires": expires,
            "begins": 0,
            "cancels": 0,
            "questions": 0,
            "sealed_request": self._sealed(owner, run_id, _REQUEST, request),
        }

    def has_work(self) -> bool:
        """Return whether a run waits for a process."""
        return may_begin(self._database, self._database.now())

    def first_sent(self, scope: str, mark: str, asked: str, run_id: str, life_seconds: float) -> SentBefore:
        """Note a call with an idempotency key, known by its mark, and the run that it has; return the first such call.

        Where that is the one which is noted here, it has this `run_id`.
        """
        now, owner = self._database.now(), self._keys.owner(scope)
        row = {"asked": asked, "run_id": run_id, "sent": now, "expires": now + life_seconds}
        first = sa.select(SENT_CALL).where(SENT_CALL.c.owner == owner, SENT_CALL.c.mark == mark)
        with self._database.transaction() as connection:
            note = insert(SENT_CALL).values(owner=owner, mark=mark, **row)
            connection.execute(
                note.on_conflict_do_update(index_elements=["owner", "mark"], set_=row, where=SENT_CALL.c.expires < now)
            )
            found = connection.execute(first).one()
        return SentBefore(found.asked, found.run_id, None if found.sent >= found.expires else now - found.sent)

    def keep_sent(self, scope: str, mark: str, run_id: str, *, ran: bool = False) -> bool:
        """Renew the mark that the process of a call with an idempotency key is there; return whether the call is known.

        Once its run `ran`, or has a journal, it is never taken for one of which nothing ran.
        """
        has_journal = sa.select(JOURNAL.c.run_id).where(JOURNAL.c.run_id == run_id).exists()
        began = sa.or_(has_journal, SENT_CALL.c.sent >= SENT_CALL.c.expires, sa.literal(ran))
        sent = sa.case((began, SENT_CALL.c.expires), else_=self._database.now())
        with self._database.transaction(durable=ran) as connection:
            kept = connection.execute(sa.update(SENT_CALL).where(*self._sent(scope, mark, run_id)).values(sent=sent))
        return kept.rowcount > 0

    def forget_sent(self, scope: str, mark: str, run_id: str, *, silent_seconds: float = 0.0) -> None:
        """Make a call with an idempotency key new once more, of whose run nothing ran.

        With `silent_seconds` only where its process was not heard of for so long.
        """
        forgotten = sa.delete(SENT_CALL).where(*self._sent(scope, mark, run_id))
        if silent_seconds:
            forgotten = forgotten.where(SENT_CALL.c.sent < self._database.now() - silent_seconds)
        with self._database.transaction() as connection:
            connection.execute(forgotten)

    def _sent(self, scope: str, mark: str, run_id: str) -> tuple[sa.ColumnElement[bool], ...]:
        return SENT_CALL.c.owner == self._keys.owner(scope), SENT_CALL.c.mark == mark, SENT_CALL.c.run_id == run_id

    def now(self) -> float:
        """Return the time by the clock of the database, in seconds since 1970."""
        return self._database.now()

    def claim(self, lease_seconds: float, *, most: int) -> Claimed | None:
        """Take the next run: of those whose owners have the fewest under way, the one that waits longest.

        An owner with `most` under way gets no further one.
        """
        now = self._database.now()
        self._histories.are_known()
        self._settle_seconds = lease_seconds
        of_owners = (
            sa.select(_RUN.owner, sa.func.count().label("runs"))
            .where(_RUN.status == RUNNING, ~_LEASE.is_free(now))
            .group_by(_RUN.owner)
            .subquery()
        )
        busy = sa.func.coalesce(of_owners.c.runs, 0)
        run = BACKGROUND.alias()
        next_one = (
            sa.select(run.c.id)
            .select_from(run.outerjoin(of_owners, of_owners.c.owner == run.c.owner))
            .where(run.c.status.in_(_UNENDED), Lease(run).is_free(now), busy < most)
            .order_by(busy, run.c.id)
            .limit(1)
        )
        values = taken(self._process, now + lease_seconds) | {"status": RUNNING, "changed": now}
        claim = (
            sa.update(BACKGROUND)
            .where(_RUN.id == next_one.scalar_subquery(), *_may_begin(now))
            .values(values | {"begins": _RUN.begins + 1})
            .returning(_RUN.run_id, _RUN.owner, _RUN.begins, _RUN.cancels, _RUN.sealed_request)
        )
        with self._database.transaction() as connection:
            if not self._histories.settled(connection, lease_seconds):
                return None
            row = connection.execute(claim).one_or_none()
        if row is None:
            return None
        self._begins[row.run_id] = row.begins
        try:
            request: StoredObject | None = self._opened(row.owner, row.run_id, _REQUEST, row.sealed_request)
        except JournalDamaged:
            request = None
        return Claimed(row.run_id, row.owner, request, row.begins > 1, bool(row.cancels))

    def renew(self, run_id: str, owner: str, progress: StoredObject | None, lease_seconds: float) -> str:
        """Keep the lease of a run and store how far it is; return `KEPT`, `CANCELS` or `LOST`."""
        now = self._database.now()
        values: dict[str, object] = {"leased_until": now + lease_seconds, "changed": now}
        if progress is not None:
            values["sealed_progress"] = self._sealed(owner, run_id, _PROGRESS, progress)
        renewal = self._of_ours(run_id).values(values).returning(_RUN.cancels)
        with self._database.transaction(durable=False) as connection:
            cancels = connection.execute(renewal).scalar_one_or_none()
            if cancels is None and self._took_again(connection, run_id):
                cancels = connection.execute(renewal).scalar_one_or_none()
        if cancels is None:
            self._begins.pop(run_id, None)
            return LOST
        return CANCELS if cancels else KEPT

    def release(self, run_id: str, *, began: bool) -> None:
        """Give a run back to whoever asks next; without `began` nothing of it ran."""
        self._begins.pop(run_id, None)
        values = {"status": RUNNING if began else QUEUED, "begins": int(began), "leased_until": 0}
        with self._database.transaction() as connection:
            connection.execute(self._of_ours(run_id).values(values))

    def finish(self, run_id: str, owner: str, report: StoredObject) -> bool:
        """Store the report of a run of ours, the first one alone; its program is removed."""
        ending = self._of_ours(run_id).values(self._ended(owner, run_id, report))
        with self._database.transaction() as connection:
            is_stored = connection.execute(ending).rowcount > 0
            if not is_stored and self._took_again(connection, run_id):
                is_stored = connection.execute(ending).rowcount > 0
        self._begins.pop(run_id, None)
        return is_stored

    def park(self, run_id: str, owner: str, question: StoredObject) -> bool:
        """Let a run of this server wait for an answer, unowned until then; False where another server has it."""
        values = {
            "status": WAITING,
            "changed": self._database.now(),
            "leased_until": 0,
            "questions": _RUN.questions + 1,
            "sealed_question": self._sealed(owner, run_id, _QUESTION, question),
            "sealed_answer": None,
        }
        with self._database.transaction() as connection:
            return connection.execute(self._of_ours(run_id).where(_RUN.cancels == 0).values(values)).rowcount > 0

    def answer(self, run_id: str, number: int, answer: StoredObject, *, scope: str | None = None) -> bool:
        """Answer a question of a run that waits, so that it goes on; False where another answer came before.

        Which one did, `state` says. Raises as `state`.
        """
        before = self.state(run_id, scope=scope)
        if before.question is None or before.questions != number:
            return False
        owner, now = before.owner, self._database.now()
        # While a run waits with this question nothing is added to its answers but the answer to it.
        answers = (*before.answers, StoredReply(number, cast("str | None", answer["choice"]), now))
        values = {
            "status": QUEUED,
            "changed": now,
            "sealed_question": None,
            "sealed_answer": self._sealed(owner, run_id, _ANSWER, {"number": number, **answer}),
            "sealed_answers": self._sealed(owner, run_id, _ANSWERS, {"answers": [asdict(each) for each in answers]}),
        }
        asks = (_RUN.run_id == run_id, _RUN.status == WAITING, _RUN.questions == number, _RUN.expires > now)
        with self._database.transaction() as connection:
            return connection.execute(sa.update(BACKGROUND).where(*asks).values(values)).rowcount > 0

    def link(self, run_id: str, number: int, expires: float) -> str:
        """Return the token of a link that answers a question of a run, until the run expires."""
        return signed(self._keys, ApprovalLink(run_id, number, int(expires)))

    def linked(self, token: str) -> ApprovalLink | None:
        """Return what the token of a link stands for, None where it is none of this database's."""
        return judged(self._keys, token)

    def take_answer(self, run_id: str, owner: str) -> StoredObject | None:
        """Return the answer to the last question of a run of ours, once; it holds for nothing that is asked later."""
        answer = sa.select(_RUN.sealed_answer).where(*self._is_ours(run_id))
        with self._database.transaction() as connection:
            sealed = connection.execute(answer).scalar()
            if sealed is None:
                return None
            connection.execute(self._of_ours(run_id).values(sealed_answer=None))
        return self._opened(owner, run_id, _ANSWER, sealed)

    def waiting(self, *, most: int, answered: bool = False) -> list[BackgroundState]:
        """Return the runs that wait for an answer, or were given one, with their questions, the oldest first."""
        which = _RUN.sealed_answers.is_not(None) if answered else _RUN.status == WAITING
        wanted = sa.select(_RUN.run_id).where(which, _RUN.expires > self._database.now())
        with self._database.read() as connection:
            run_ids = connection.execute(wanted.order_by(_RUN.id).limit(most)).scalars().all()
        return [self.state(each) for each in run_ids]

    def cancel(self, run_id: str, report: StoredObject, *, scope: str | None = None) -> None:
        """End a run that waits, with this report; ask for the end of one that is under way.

        Raises as `state`.
        """
        ended = self._ended(self.state(run_id, scope=scope).owner, run_id, report)
        of_run = sa.update(BACKGROUND).where(_RUN.run_id == run_id)
        with self._database.transaction() as connection:
            connection.execute(of_run.where(_RUN.status.in_((QUEUED, WAITING))).values(ended))
            connection.execute(of_run.where(_RUN.status == RUNNING).values(cancels=1))

    def state(self, run_id: str, *, scope: str | None = None) -> BackgroundState:
        """Return how far a run is.

        Raises `JournalNotFound` where there is none of this id, or not of the scope, and `JournalErased`.
        """
        wanted = sa.select(BACKGROUND).where(_RUN.run_id == run_id, _RUN.expires > self._database.now())
        if scope is not None:
            wanted = wanted.where(_RUN.owner == self._keys.owner(scope))
        with self._database.read() as connection:
            row = connection.execute(wanted).one_or_none()
        if row is None:
            raise JournalNotFound(
                f"There is no background run {run_id}. Give the run_id that execute_code(background=true) returned; "
                "reports are kept as long as journals."
            )
        if row.status == ENDED and row.sealed_report is None:
            raise JournalErased(run_id)

        def opened_part(part: str) -> StoredObject | None:
            sealed = getattr(row, f"sealed_{part}")
            return None if sealed is None else self._opened(row.owner, run_id, part, sealed)

        answers = opened_part(_ANSWERS) or {"answers": []}
        return replace(
            _in_clear(row),
            progress=opened_part(_PROGRESS),
            report=opened_part(_REPORT),
            questions=row.questions,
            question=opened_part(_QUESTION),
            answers=tuple(StoredReply(**each) for each in cast("list[dict[str, Any]]", answers["answers"])),
        )

    def request(self, run_id: str) -> StoredObject | None:
        """Return what a run is to run; None once it has ended, or where there is none."""
        wanted = sa.select(_RUN.owner, _RUN.sealed_request).where(_RUN.run_id == run_id)
        with self._database.read() as connection:
            row = connection.execute(wanted).one_or_none()
        if row is None or row.sealed_request is None:
            return None
        return self._opened(row.owner, run_id, _REQUEST, row.sealed_request)

    def listed(self, *, most: int) -> list[BackgroundState]:
        """Return the newest runs, without their progress and reports."""
        journaled = JOURNAL.c.run_id.label("journaled"), JOURNAL.c.ended.label("journal_ended")
        in_clear = (_RUN[name] for name in ("run_id", "owner", "status", "queued", "changed", "expires"))
        wanted = sa.select(*in_clear, *journaled).select_from(
            BACKGROUND.outerjoin(JOURNAL, JOURNAL.c.run_id == _RUN.run_id)
        )
        wanted = wanted.where(_RUN.expires > self._database.now()).order_by(_RUN.id.desc()).limit(most)
        with self._database.read() as connection:
            rows = connection.execute(wanted).all()
        return [
            replace(
                _in_clear(row),
                has_journal=row.journaled is not None,
                has_ended_journal=row.journal_ended is not None,
            )
            for row in rows
        ]

    def drop_expired(self) -> None:
        """Remove the reports that have outlived their time, and have the history of the database known."""
        self._histories.note()
        expired = (_RUN.expires <= self._database.now(), _RUN.status.in_((ENDED, WAITING)))
        with self._database.transaction() as connection:
            connection.execute(sa.delete(BACKGROUND).where(*expired))
            connection.execute(sa.delete(SENT_CALL).where(SENT_CALL.c.expires <= self._database.now()))

    def _is_ours(self, run_id: str) -> tuple[sa.ColumnElement[bool], ...]:
        return _RUN.run_id == run_id, _RUN.status == RUNNING, _LEASE.is_of(self._process)

    def _of_ours(self, run_id: str) -> sa.Update:
        return sa.update(BACKGROUND).where(*self._is_ours(run_id))

    def _ended(self, owner: str, run_id: str, report: StoredObject) -> dict[str, object]:
        return {
            "status": ENDED,
            "changed": self._database.now(),
            "sealed_report": self._sealed(owner, run_id, _REPORT, report),
            "sealed_request": None,
            "sealed_progress": None,
            "sealed_question": None,
        }

    def _took_again(self, connection: Connection, run_id: str) -> bool:
        """Take a run again that this process has, where the database has lost that and nobody could take it since."""
        begins = self._begins.get(run_id)
        if begins is None or self._histories.settled(connection, self._settle_seconds):
            return False
        lost = (_RUN.run_id == run_id, _RUN.status.in_(_UNENDED), _RUN.begins < begins)
        values = {"status": RUNNING, "begins": begins, "leased_by": self._process}
        return connection.execute(sa.update(BACKGROUND).where(*lost).values(values)).rowcount > 0

    def _sealed(self, owner: str, run_id: str, part: str, content: StoredObject) -> bytes:
        return self._keys.sealed(owner, run_id, f"background {part}", 0, json.dumps(content).encode("ascii"))

    def _opened(self, owner: str, run_id: str, part: str, sealed: bytes) -> StoredObject:
        return opened(self._keys, owner, run_id, part, sealed)


def _in_clear(row: Row) -> BackgroundState:
    return BackgroundState(row.run_id, row.owner, row.status, row.queued, row.changed, row.expires)


def opened(keys: JournalKeys, owner: str, run_id: str, part: str, sealed: bytes) -> StoredObject:
    """Return what is sealed as a part of a background run. Raises `JournalDamaged`."""
    try:
        data = keys.opened(owner, run_id, f"background {part}", 0, sealed)
    except SealBroken:
        raise JournalDamaged(
            f"The {part} of the background run {run_id} was changed or is damaged. Restore a backup of the database, "
            "or go on without it."
        ) from None
    return cast("StoredObject", json.loads(data))


def _may_begin(now: float) -> tuple[sa.ColumnElement[bool], ...]:
    """Return the condition that a run waits for a process."""
    return _RUN.status.in_(_UNENDED), _LEASE.is_free(now)


_RUN = BACKGROUND.c
_LEASE = Lease(BACKGROUND)
_UNENDED = (QUEUED, RUNNING)
