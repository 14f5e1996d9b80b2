"""Keeps the queue of background runs: what is to be run, who runs it and until when, and its report.

This is a security boundary: programs, progress and reports stand in the database as ciphertext alone (`sealing`).

A process that runs one holds a lease, which it renews. A run whose lease is over was cut, and the next process that
asks for work is given it. Each step is one statement with a condition, so that of two processes one succeeds; it is the
same on SQLite and on PostgreSQL (READ COMMITTED re-checks the condition once the other has committed).

A promoted standby may lack that a run was taken (`histories`). So no run is taken there for as long as a lease lasts,
and within that time whoever has one takes it again by renewing its lease or by storing its report.

Everything here blocks: call it from a thread.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from ..errors import JournalDamaged, JournalErased, JournalNotFound
from ..shared_state.histories import Histories
from ..sql import sa
from ..vault_keys import SealBroken
from .approval_links import ApprovalLink, judged, signed
from .records import ENDED, QUEUED, RUNNING
from .sealing import JournalKeys

if TYPE_CHECKING:
    from ..engine import Database
    from ..sql import Session

KEPT, CANCELS, LOST = "kept", "cancels", "lost"
"""What a renewal answers: the lease is kept, the run is to be cancelled, or it is not this process's any more."""
_REQUEST, _PROGRESS, _REPORT, _QUESTION, _ANSWER = "request", "progress", "report", "question", "answer"
_ANSWERS = "answers"
Told = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Claimed:
    """A run that this process may run now.

    `was_cut` says that another process had begun it, `cancels` that its caller wants none of it. `request` is None
    where what was stored was changed or is damaged.
    """

    run_id: str
    owner: str
    request: Told | None
    was_cut: bool
    cancels: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question of a run: what was chosen, None for a no, and when, in seconds since 1970."""

    number: int
    choice: str | None
    at: float


@dataclass(frozen=True, slots=True)
class BackgroundState:
    """How far a background run is: `report` is there once it has ended, `progress` where it told any.

    Times are in seconds since 1970.
    """

    run_id: str
    owner: str
    status: str
    queued: float
    changed: float
    expires: float
    progress: Told | None = None
    report: Told | None = None
    questions: int = 0
    question: Told | None = None
    """What it waits for, where that is a user's answer; `questions` is the number of it."""
    answers: tuple[Answer, ...] = ()
    """The answers that it was given, to each of its questions one."""
    has_journal: bool = True
    """Whether anything is written of it in a journal; like `has_ended_journal` known in a list alone."""
    has_ended_journal: bool = True


def may_begin(database: Database, now: float) -> bool:
    """Return whether a background run in a database waits for a process, at that time in seconds since 1970."""
    with database.read() as session:
        return session.execute(_HAS_WORK, {"now": now}).first() is not None


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

    def put(self, run_id: str, scope: str, request: Told, *, expires: float, most: int) -> bool:
        """Queue a run; False where `most` of its owner wait already. Once it returns, the run survives a crash."""
        owner = self._keys.owner(scope)
        row = {
            "run": run_id,
            "owner": owner,
            "now": self._database.now(),
            "expires": expires,
            "sealed": self._sealed(owner, run_id, _REQUEST, request),
        }
        with self._database.transaction() as session:
            waiting = session.execute(_WAITING, {"owner": owner}).scalar_one()
            if waiting >= most:
                return False
            session.execute(_PUT, row)
        return True

    def put_parked(self, run_id: str, scope: str, request: Told, question: Told, *, expires: float) -> None:
        """Have a run that began elsewhere wait for an answer."""
        owner = self._keys.owner(scope)
        row = {
            "run": run_id,
            "owner": owner,
            "now": self._database.now(),
            "expires": expires,
            "sealed": self._sealed(owner, run_id, _REQUEST, request),
            "question": self._sealed(owner, run_id, _QUESTION, question),
        }
        with self._database.transaction() as session:
            session.execute(_PUT_PARKED, row)

    def has_work(self) -> bool:
        """Return whether a run waits for a process."""
        return may_begin(self._database, self._database.now())

    def claim(self, lease_seconds: float, *, most: int) -> Claimed | None:
        """Take the next run: of those whose owners have the fewest under way, the one that waits longest.

        An owner with `most` under way gets no further one.
        """
        now = self._database.now()
        taken = {"now": now, "until": now + lease_seconds, "process": self._process, "most": most}
        self._histories.are_told()
        self._settle_seconds = lease_seconds
        with self._database.transaction() as session:
            if not self._histories.settled(session, lease_seconds):
                return None
            row = session.execute(_CLAIM, taken).mappings().one_or_none()
        if row is None:
            return None
        run_id, owner = cast("str", row["run_id"]), cast("str", row["owner"])
        self._begins[run_id] = cast("int", row["begins"])
        try:
            request: Told | None = self._opened(owner, run_id, _REQUEST, row["sealed_request"])
        except JournalDamaged:
            request = None
        return Claimed(run_id, owner, request, row["begins"] > 1, bool(row["cancels"]))

    def renew(self, run_id: str, owner: str, progress: Told | None, lease_seconds: float) -> str:
        """Keep the lease of a run and store how far it is; return `KEPT`, `CANCELS` or `LOST`."""
        now = self._database.now()
        sealed = None if progress is None else self._sealed(owner, run_id, _PROGRESS, progress)
        told = {"run": run_id, "process": self._process, "now": now, "until": now + lease_seconds, "progress": sealed}
        with self._database.transaction(durable=False) as session:
            cancels = session.execute(_RENEW, told).scalar_one_or_none()
            if cancels is None and self._took_again(session, run_id):
                cancels = session.execute(_RENEW, told).scalar_one_or_none()
        if cancels is None:
            self._begins.pop(run_id, None)
            return LOST
        return CANCELS if cancels else KEPT

    def release(self, run_id: str, *, began: bool) -> None:
        """Give a run back to whoever asks next; without `began` nothing of it ran."""
        self._begins.pop(run_id, None)
        told = {"run": run_id, "process": self._process, "status": RUNNING if began else QUEUED, "begins": int(began)}
        with self._database.transaction() as session:
            session.execute(_RELEASE, told)

    def finish(self, run_id: str, owner: str, report: Told) -> bool:
        """Store the report of a run of ours, the first one alone; its program is removed."""
        sealed = self._sealed(owner, run_id, _REPORT, report)
        told = {"run": run_id, "process": self._process, "now": self._database.now(), "sealed": sealed}
        with self._database.transaction() as session:
            is_stored = session.execute(_FINISH, told).scalar_one_or_none() is not None
            if not is_stored and self._took_again(session, run_id):
                is_stored = session.execute(_FINISH, told).scalar_one_or_none() is not None
        self._begins.pop(run_id, None)
        return is_stored

    def park(self, run_id: str, owner: str, question: Told) -> bool:
        """Have a run of ours wait for an answer, and be nobody's until then; False where it is not ours now."""
        sealed = self._sealed(owner, run_id, _QUESTION, question)
        told = {"run": run_id, "process": self._process, "now": self._database.now(), "sealed": sealed}
        with self._database.transaction() as session:
            return session.execute(_PARK, told).scalar_one_or_none() is not None

    def answer(self, run_id: str, number: int, answer: Told, *, scope: str | None = None) -> bool:
        """Answer a question of a run that waits, so that it goes on; False where another answer came before.

        Which one did, `state` says. Raises as `state`.
        """
        before = self.state(run_id, scope=scope)
        if before.question is None or before.questions != number:
            return False
        owner, now = before.owner, self._database.now()
        # While a run waits with this question nothing is added to its answers but the answer to it.
        answers = (*before.answers, Answer(number, cast("str | None", answer["choice"]), now))
        told = {
            "run": run_id,
            "number": number,
            "now": now,
            "sealed": self._sealed(owner, run_id, _ANSWER, {"number": number, **answer}),
            "answers": self._sealed(owner, run_id, _ANSWERS, {"answers": [asdict(each) for each in answers]}),
        }
        with self._database.transaction() as session:
            return session.execute(_ANSWER_QUESTION, told).scalar_one_or_none() is not None

    def link(self, run_id: str, number: int, expires: float) -> str:
        """Return the token of a link that answers a question of a run, until the run expires."""
        return signed(self._keys, ApprovalLink(run_id, number, int(expires)))

    def linked(self, token: str) -> ApprovalLink | None:
        """Return what the token of a link stands for, None where it is none of this database's."""
        return judged(self._keys, token)

    def take_answer(self, run_id: str, owner: str) -> Told | None:
        """Return the answer to the last question of a run of ours, once; it holds for nothing that is asked later."""
        told = {"run": run_id, "process": self._process}
        with self._database.transaction() as session:
            sealed = session.execute(_GET_ANSWER, told).scalar_one_or_none()
            if sealed is None:
                return None
            session.execute(_DROP_ANSWER, told)
        return self._opened(owner, run_id, _ANSWER, sealed)

    def waiting(self, *, most: int) -> list[BackgroundState]:
        """Return the runs that wait for an answer, with their questions, the oldest first."""
        with self._database.read() as session:
            rows = session.execute(_WAIT_FOR_ANSWERS, {"now": self._database.now(), "most": most}).scalars().all()
        return [self.state(cast("str", each)) for each in rows]

    def cancel(self, run_id: str, report: Told, *, scope: str | None = None) -> None:
        """End a run that waits, with this report; ask for the end of one that is under way.

        Raises as `state`.
        """
        owner = self.state(run_id, scope=scope).owner
        sealed = self._sealed(owner, run_id, _REPORT, report)
        with self._database.transaction() as session:
            session.execute(_CANCEL_QUEUED, {"run": run_id, "now": self._database.now(), "sealed": sealed})
            session.execute(_CANCEL_RUNNING, {"run": run_id})

    def state(self, run_id: str, *, scope: str | None = None) -> BackgroundState:
        """Return how far a run is.

        Raises `JournalNotFound` where there is none of this id, or not of the scope, and `JournalErased`.
        """
        owner = None if scope is None else self._keys.owner(scope)
        with self._database.read() as session:
            row = (
                session.execute(_STATE, {"run": run_id, "owner": owner, "now": self._database.now()})
                .mappings()
                .one_or_none()
            )
        if row is None:
            raise JournalNotFound(
                f"There is no background run {run_id}. Give the run_id that execute_code(background=true) returned; "
                "reports are kept as long as journals."
            )
        if row["status"] == ENDED and row["sealed_report"] is None:
            raise JournalErased(run_id)
        progress, report, question = row["sealed_progress"], row["sealed_report"], row["sealed_question"]
        answers = row["sealed_answers"]
        return replace(
            _in_clear(row),
            progress=None if progress is None else self._opened(row["owner"], run_id, _PROGRESS, progress),
            report=None if report is None else self._opened(row["owner"], run_id, _REPORT, report),
            questions=row["questions"],
            question=None if question is None else self._opened(row["owner"], run_id, _QUESTION, question),
            answers=() if answers is None else _answers(self._opened(row["owner"], run_id, _ANSWERS, answers)),
        )

    def listed(self, *, most: int) -> list[BackgroundState]:
        """Return the newest runs, without their progress and reports."""
        with self._database.read() as session:
            rows = session.execute(_LISTED, {"now": self._database.now(), "most": most}).mappings().all()
        return [
            replace(
                _in_clear(row),
                has_journal=row["journaled"] is not None,
                has_ended_journal=row["journal_ended"] is not None,
            )
            for row in rows
        ]

    def drop_expired(self) -> None:
        """Remove the reports that have outlived their time, and have the history of the database known."""
        self._histories.note()
        with self._database.transaction() as session:
            session.execute(_DROP_EXPIRED, {"now": self._database.now()})

    def _took_again(self, session: Session, run_id: str) -> bool:
        """Take a run again that this process has, where the database has lost that and nobody could take it since."""
        begins = self._begins.get(run_id)
        if begins is None or self._histories.settled(session, self._settle_seconds):
            return False
        told = {"run": run_id, "process": self._process, "begins": begins}
        return session.execute(_TAKE_AGAIN, told).first() is not None

    def _sealed(self, owner: str, run_id: str, part: str, told: Told) -> bytes:
        return self._keys.sealed(owner, run_id, f"background {part}", 0, json.dumps(told).encode("ascii"))

    def _opened(self, owner: str, run_id: str, part: str, sealed: object) -> Told:
        return opened(self._keys, owner, run_id, part, sealed)


def _in_clear(row: sa.RowMapping) -> BackgroundState:
    return BackgroundState(
        run_id=cast("str", row["run_id"]),
        owner=cast("str", row["owner"]),
        status=cast("str", row["status"]),
        queued=cast("float", row["queued"]),
        changed=cast("float", row["changed"]),
        expires=cast("float", row["expires"]),
    )


def _answers(told: Told) -> tuple[Answer, ...]:
    return tuple(Answer(**each) for each in cast("list[dict[str, Any]]", told["answers"]))


def opened(keys: JournalKeys, owner: str, run_id: str, part: str, sealed: object) -> Told:
    """Return what is sealed as a part of a background run. Raises `JournalDamaged`."""
    try:
        data = keys.opened(owner, run_id, f"background {part}", 0, bytes(cast("bytes", sealed)))
    except SealBroken:
        raise JournalDamaged(
            f"The {part} of the background run {run_id} was changed or is damaged. Restore a backup of the database, "
            "or go on without it."
        ) from None
    return cast("Told", json.loads(data))


_DROP_EXPIRED = sa.text("DELETE FROM sealab_background_run WHERE expires <= :now AND status IN ('ended', 'waiting')")
_WAITING = sa.text("SELECT count(*) FROM sealab_background_run WHERE owner = :owner AND status = 'queued'")
_PUT = sa.text(
    "INSERT INTO sealab_background_run (run_id, owner, status, queued, changed, expires, begins, cancels, leased_by, "
    "leased_until, questions, sealed_request) "
    "VALUES (:run, :owner, 'queued', :now, :now, :expires, 0, 0, '', 0, 0, :sealed)"
)
_PUT_PARKED = sa.text(
    "INSERT INTO sealab_background_run (run_id, owner, status, queued, changed, expires, begins, cancels, leased_by, "
    "leased_until, questions, sealed_request, sealed_question) "
    "VALUES (:run, :owner, 'waiting', :now, :now, :expires, 1, 0, '', 0, 1, :sealed, :question)"
)
_HAS_WORK = sa.text(
    "SELECT 1 FROM sealab_background_run WHERE status IN ('queued', 'running') AND leased_until < :now LIMIT 1"
)
_CLAIM = sa.text(
    "UPDATE sealab_background_run SET status = 'running', begins = begins + 1, changed = :now, leased_by = :process, "
    "leased_until = :until WHERE id = (SELECT run.id FROM sealab_background_run AS run LEFT JOIN (SELECT owner, "
    "count(*) AS runs FROM sealab_background_run WHERE status = 'running' AND leased_until >= :now GROUP BY owner) "
    "AS busy ON busy.owner = run.owner WHERE run.status IN ('queued', 'running') AND run.leased_until < :now "
    "AND coalesce(busy.runs, 0) < :most ORDER BY coalesce(busy.runs, 0), run.id LIMIT 1) "
    "AND status IN ('queued', 'running') AND leased_until < :now "
    "RETURNING run_id, owner, begins, cancels, sealed_request"
)
_RENEW = sa.text(
    "UPDATE sealab_background_run SET leased_until = :until, changed = :now, "
    "sealed_progress = coalesce(:progress, sealed_progress) "
    "WHERE run_id = :run AND status = 'running' AND leased_by = :process RETURNING cancels"
)
_TAKE_AGAIN = sa.text(
    "UPDATE sealab_background_run SET status = 'running', begins = :begins, leased_by = :process "
    "WHERE run_id = :run AND status IN ('queued', 'running') AND begins < :begins RETURNING run_id"
)
_RELEASE = sa.text(
    "UPDATE sealab_background_run SET status = :status, begins = :begins, leased_until = 0 "
    "WHERE run_id = :run AND status = 'running' AND leased_by = :process"
)
_FINISH = sa.text(
    "UPDATE sealab_background_run SET status = 'ended', changed = :now, sealed_report = :sealed, "
    "sealed_request = NULL, sealed_progress = NULL "
    "WHERE run_id = :run AND status = 'running' AND leased_by = :process RETURNING run_id"
)
_CANCEL_QUEUED = sa.text(
    "UPDATE sealab_background_run SET status = 'ended', changed = :now, sealed_report = :sealed, "
    "sealed_request = NULL, sealed_question = NULL WHERE run_id = :run AND status IN ('queued', 'waiting')"
)
_CANCEL_RUNNING = sa.text("UPDATE sealab_background_run SET cancels = 1 WHERE run_id = :run AND status = 'running'")
_STATE = sa.text(
    "SELECT run_id, owner, status, queued, changed, expires, sealed_progress, sealed_report, questions, "
    "sealed_question, sealed_answers FROM sealab_background_run "
    "WHERE run_id = :run AND owner = coalesce(:owner, owner) AND expires > :now"
)
_LISTED = sa.text(
    "SELECT run.run_id, run.owner, run.status, queued, changed, run.expires, journal.run_id AS journaled, "
    "journal.ended AS journal_ended FROM sealab_background_run AS run LEFT JOIN sealab_journal_run AS journal "
    "ON journal.run_id = run.run_id WHERE run.expires > :now ORDER BY run.id DESC LIMIT :most"
)
_PARK = sa.text(
    "UPDATE sealab_background_run SET status = 'waiting', changed = :now, leased_until = 0, questions = questions + 1, "
    "sealed_question = :sealed, sealed_answer = NULL "
    "WHERE run_id = :run AND status = 'running' AND leased_by = :process AND cancels = 0 RETURNING run_id"
)
_ANSWER_QUESTION = sa.text(
    "UPDATE sealab_background_run SET status = 'queued', changed = :now, sealed_question = NULL, "
    "sealed_answer = :sealed, sealed_answers = :answers "
    "WHERE run_id = :run AND status = 'waiting' AND questions = :number AND expires > :now RETURNING run_id"
)
_GET_ANSWER = sa.text(
    "SELECT sealed_answer FROM sealab_background_run "
    "WHERE run_id = :run AND status = 'running' AND leased_by = :process"
)
_DROP_ANSWER = sa.text(
    "UPDATE sealab_background_run SET sealed_answer = NULL "
    "WHERE run_id = :run AND status = 'running' AND leased_by = :process"
)
_WAIT_FOR_ANSWERS = sa.text(
    "SELECT run_id FROM sealab_background_run WHERE status = 'waiting' AND expires > :now ORDER BY id LIMIT :most"
)
