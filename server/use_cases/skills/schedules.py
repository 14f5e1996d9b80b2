"""Skills that run at set times: added by whoever has the right, and queued as background runs when their time comes.

A schedule pins the version of its skill and the hash of that: a newer version waits for a yes. What its owner may do is
judged anew each time. The server whose look comes first queues the run, in the transaction that moves the schedule on.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypeVar, cast, get_args
from zoneinfo import ZoneInfo

from typing_extensions import TypedDict

from ....sandbox.errors import Busy
from ....sandbox.job import Json, Status
from ....skills_db.errors import JournalErased, JournalNotFound, ScheduleMoved, SkillNotFound, SkillsDbError
from ...base.errors import KNOWN_ERRORS, HostWorkBusy, RequestRefused, RightMissing, ServerError
from ...base.host_work import Kind, in_thread
from ...base.identity import Right, identity_json
from ...governance.audit.trail import AuditKind
from ...governance.caller import LOCAL, Caller
from ...governance.scopes import is_brief, is_principal, kept_identity, principal_of
from ..journal.transcript import moment
from ..runs.request import new_run_id
from .set_times import SetTimes
from .use_cases import RunSkillRequest, request_to_run

if TYPE_CHECKING:
    from ....skills_db.journal.schedule_store import ScheduleStore, StoredSchedule
    from ....skills_db.skills import StoredSkill
    from ...governance.access.standing import Standing
    from ..runs.background.background import Background
    from .use_cases import SkillContext

SCHEDULES_MAX = 100
"""Of one tenant."""
SCHEDULES_OF_ONE_MAX = 25
"""Of one principal with a token."""
LATE_SECONDS = 300.0
"""How late a time may be fired; then it was missed."""
RETRY_SECONDS = 60.0
"""After how long a failed run is tried again; twice as long after each further failure."""
RETRIES_MAX = 5
PAUSE_AFTER = 3
"""How many runs that fail in a row pause a schedule."""
Overlap = Literal["skip", "wait", "start"]
Missed = Literal["run", "skip"]
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}", re.ASCII)
_NEEDED = (Right.RUN, Right.SKILLS_READ)
_NO_FAILURES = frozenset({Status.OK.value, Status.CANCELLED.value, "unknown"})
_T = TypeVar("_T")
_LOG = logging.getLogger(__name__)
Agree = Callable[["StoredSchedule | None", "StoredSkill"], Awaitable[None]]
"""Asks whether a schedule as it is now may be changed or made, to run that version of a skill; raises where not."""


@dataclass(frozen=True, slots=True)
class ScheduleRequest:
    """What is to run, and when. A `skill` or `every` that is empty stays as it was, of a schedule that there is.

    `overlap` says what becomes of a time whose last run has not ended, `missed` of one at which no server ran. `seen`
    is the skill and the newest version that a page showed; the request is refused where these are others by then.
    """

    name: str
    skill: str = ""
    every: str = ""
    arguments: Mapping[str, Json] | None = None
    version: int | None = None
    overlap: Overlap = "skip"
    missed: Missed = "run"
    retries: int = 0
    seen: tuple[str, int] | None = None
    caller: Caller = LOCAL


class LastRun(TypedDict):
    """The last run of a schedule: when it was queued, and how it ended; until then its status is `running`."""

    run_id: str
    at: str
    status: str


class ListedSchedule(TypedDict):
    """One schedule; `why_not` says why its last time was not fired, or why none is. Times in ISO 8601.

    `newest` is the newest version of its skill where that is not `version`.
    """

    name: str
    skill: str
    version: int
    every: str
    next: str | None
    state: str
    owner: str
    overlap: str
    missed: str
    retries: int
    arguments: NotRequired[Mapping[str, object]]
    last: NotRequired[LastRun]
    failures: NotRequired[int]
    why_not: NotRequired[str]
    waits: NotRequired[str]
    newest: NotRequired[int]


class ScheduleList(TypedDict):
    """The schedules that a caller reaches."""

    count: int
    schedules: list[ListedSchedule]


class RemovedSchedule(TypedDict):
    """A schedule that is no more."""

    name: str
    removed: bool


@dataclass(frozen=True, slots=True)
class _Definition:
    """What is stored of a schedule, sealed. `said` is when its owner last added it, in seconds since 1970."""

    skill: str
    version: int
    hash: str
    every: str
    arguments: Mapping[str, Json]
    overlap: Overlap
    missed: Missed
    retries: int
    scope: str
    identity: Mapping[str, Json]
    said: float

    @classmethod
    def of(cls, schedule: StoredSchedule) -> _Definition | None:
        return None if schedule.definition is None else cls(**cast("dict[str, Any]", schedule.definition))

    @property
    def caller(self) -> Caller:
        return Caller(self.scope, identity=kept_identity(self.identity, self.scope))


@dataclass(frozen=True, slots=True)
class Schedules:
    """The schedules of one home."""

    context: SkillContext
    background: Background
    standing: Standing
    now: Callable[[], float] = field(default=time.time)

    async def add(self, request: ScheduleRequest, agree: Agree | None = None) -> ListedSchedule:
        """Store a schedule, or change it and have it go on, with the newest version of its skill unless one is named.

        Raises `RequestRefused`, `RightMissing`, `SkillNotFound`, `ArgumentsRefused` and `ScheduleMoved`, and what
        `agree` raises; then nothing is changed.
        """
        caller, before = request.caller, await self.known(request.name, request.caller)
        old = None if before is None else _Definition.of(before)
        if not _NAME.fullmatch(request.name):
            raise RequestRefused("The name of a schedule has 1 to 64 ASCII letters, digits and _.-; give such a name.")
        if is_brief(caller.scope):
            raise RequestRefused(
                "Schedules are for callers who are the same ones tomorrow. Call over stdio or with a token, or have "
                "the user run sealab schedules add."
            )
        for right in _NEEDED:
            caller.identity.require(right)
        if old is None and not (request.skill and request.every):
            raise RequestRefused(f"There is no schedule {request.name}. Give skill and every to make it.")
        if not 0 <= request.retries <= RETRIES_MAX:
            raise RequestRefused(f"retries is {request.retries}, which is not allowed. Give 0 to {RETRIES_MAX}.")
        for name, value, known in (("overlap", request.overlap, Overlap), ("missed", request.missed, Missed)):
            if value not in get_args(known):
                raise RequestRefused(f"{name} cannot be {value!r:.80}. Give {' or '.join(get_args(known))}.")
        times, following = await _in_thread(_following, request.every or cast("_Definition", old).every, self.now())
        arguments = request.arguments
        if arguments is None:
            arguments = {} if old is None else old.arguments
        run = RunSkillRequest(
            request.skill or cast("_Definition", old).skill, arguments, request.version, caller=caller
        )
        _code, skill = await request_to_run(self.context, run)
        if request.seen is not None and request.seen != (skill.draft.name, skill.latest):
            raise RequestRefused(
                f"{request.name} would run version {skill.latest} of {skill.draft.name}, which the page did not show. "
                "Open the page again."
            )
        if agree is not None:
            await agree(before, skill)
            following = await _in_thread(times.after, self.now())
        scope = caller.scope if old is None or not _is_operator(caller) else old.scope
        identity = caller.identity if scope == caller.scope else cast("_Definition", old).caller.identity
        definition = _Definition(
            skill.draft.name,
            skill.version,
            skill.content_hash,
            times.every,
            arguments,
            request.overlap if request.every or old is None else old.overlap,
            request.missed if request.every or old is None else old.missed,
            request.retries if request.every or old is None else old.retries,
            scope,
            identity_json(identity),
            self.now(),
        )
        of_one = SCHEDULES_OF_ONE_MAX if is_principal(scope) else SCHEDULES_MAX
        full = await self._ask(
            lambda store: store.put(
                request.name,
                scope,
                asdict(definition),
                following,
                before=before,
                most=SCHEDULES_MAX,
                most_of_owner=of_one,
            )
        )
        if full:
            whose = " of one owner" if full < SCHEDULES_MAX else ""
            raise RequestRefused(f"There are {full} schedules{whose}, which is the most. Remove some first.")
        self._audit(caller, "schedule added")
        stored_one = await self._ask(lambda store: store.named(request.name))
        return await _in_thread(self._listed, cast("StoredSchedule", stored_one), {skill.draft.name: skill.latest})

    async def listed(self, caller: Caller) -> ScheduleList:
        """Return the schedules of a caller, of all where the caller may see those. Raises `SkillsDbError`."""
        found = await self._ask(lambda store: [each for each in store.all() if _reaches(store, each, caller)])
        names = {definition.skill for each in found if (definition := _Definition.of(each)) is not None}
        summaries = await self.context.service.ask(lambda store: store.summaries())
        latest = {name: summaries[name].version for name in names if name in summaries}
        schedules = await _in_thread(lambda: [self._listed(each, latest) for each in found])
        return ScheduleList(count=len(found), schedules=schedules)

    async def remove(
        self, name: str, caller: Caller, agree: Callable[[], Awaitable[None]] | None = None
    ) -> RemovedSchedule:
        """Remove a schedule of the caller; what of it runs goes on.

        Raises `RequestRefused` where there is none, `ScheduleMoved`, and what `agree` raises; then nothing is changed.
        """
        schedule = await self.reached(name, caller)
        if agree is not None:
            await agree()
        removed = await self._ask(lambda store: store.remove(schedule))
        self._audit(caller, "schedule removed")
        return RemovedSchedule(name=name, removed=removed)

    async def run(self, name: str, caller: Caller) -> str:
        """Queue a run of a schedule now, as at its time, and return its id. Raises as when its time has come."""
        schedule = await self.reached(name, caller)
        definition = _Definition.of(schedule)
        if definition is None:
            raise RequestRefused(f"What was stored of {name} was changed or is damaged. Remove it, and add it again.")
        run_id = await self._queued(schedule, definition)
        if run_id is None:
            raise RequestRefused(f"{name} was changed or fired at this moment. Run it again.")
        return run_id

    async def known(self, name: str, caller: Caller) -> StoredSchedule | None:
        """Return the schedule of a name. Raises `RequestRefused` where it is another's."""
        schedule, store = await self._ask(lambda store: (store.named(name), store))
        if schedule is not None and not _reaches(store, schedule, caller):
            raise RequestRefused(f"The schedule {name} is another's. Choose another name.")
        return schedule

    async def fire(self) -> None:
        """Queue what is due, and judge the runs that have ended. Raises what reading the database raises."""
        for schedule in await self._ask(lambda store: store.due(self.now())):
            try:
                judged = schedule if schedule.judged else await self._judged(schedule)
                if judged.next_time is not None and judged.next_time <= self.now():
                    await self._fired(judged)
            except KNOWN_ERRORS as error:
                _LOG.info("The schedule %s is looked at again in a moment: %s", schedule.name, error)
            except Exception:  # noqa: BLE001 - one schedule keeps no other from being fired
                _LOG.exception("The schedule %s could not be looked at.", schedule.name)

    async def _fired(self, schedule: StoredSchedule) -> None:
        """Queue the run of a schedule whose time has come, skip that time, or pause the schedule."""
        definition, due = _Definition.of(schedule), cast("float", schedule.next_time)
        if definition is None:
            await self._pause(schedule, "What was stored of it was changed or is damaged. Add it again.")
            return
        try:
            following = await _in_thread(lambda: _times_of(definition.every).after(self.now()))
        except RequestRefused as error:  # its zone may be gone
            await self._pause(schedule, str(error))
            return
        if self.now() - due > LATE_SECONDS and definition.missed == "skip":
            await self._skip(schedule, following, f"no server ran at {moment(due)}, so that time was skipped")
        elif not schedule.judged and definition.overlap != "start":
            if definition.overlap == "skip":
                why = f"the run {schedule.last_run} had not ended at {moment(due)}, so that time was skipped"
                await self._skip(schedule, following, why)
        else:
            try:
                await self._queued(schedule, definition, next_time=following, reason="")
            except (_Stopped, SkillNotFound) as stopped:
                await self._pause(schedule, str(stopped))
            except (Busy, HostWorkBusy, SkillsDbError):  # it is tried again at the next look
                raise
            except KNOWN_ERRORS as error:
                await self._failed(schedule, definition, f"it was refused: {error}", next_time=following)

    async def _queued(self, schedule: StoredSchedule, definition: _Definition, **values: object) -> str | None:
        """Queue a run; return its id, None where the schedule was changed since it was read. Raises `_Stopped`."""
        try:
            identity = await self.standing(definition.caller.identity, definition.scope, definition.said)
            for right in _NEEDED:
                identity.require(right)
        except RightMissing as error:
            raise _Stopped(str(error)) from error
        caller, run_id = replace(definition.caller, identity=identity), new_run_id()
        run = RunSkillRequest(definition.skill, definition.arguments, definition.version, caller=caller)
        request, skill = await request_to_run(self.context, run)
        if skill.content_hash != definition.hash:
            raise _Stopped(
                f"Version {definition.version} of {definition.skill} is not what it was. Add it again to say yes to it."
            )
        beside = await self._ask(lambda store: store.firing(schedule, run_id, **values))
        try:
            await self.background.submit(replace(request, run_id=run_id), beside)
        except ScheduleMoved:
            return None
        return run_id

    async def _judged(self, schedule: StoredSchedule) -> StoredSchedule:
        """Note how the last run of a schedule ended, if it has; return the schedule as it is then."""
        run_id, definition = cast("str", schedule.last_run), _Definition.of(schedule)
        try:
            state = await self.background.queued_state(run_id, None)
        except (JournalNotFound, JournalErased):
            status = "unknown"
        else:
            if state.execution is None:
                return schedule
            status = state.execution.report["status"]
        if status in _NO_FAILURES or definition is None:
            failures = 0 if status == Status.OK else schedule.failures
            await self._change(schedule, judged=1, outcome=status, failures=failures, attempt=0)
        else:
            why = f"the run {run_id} ended with the status {status}"
            await self._failed(schedule, definition, why, judged=1, outcome=status, next_time=schedule.next_time)
        return await self._ask(lambda store: store.named(schedule.name)) or replace(schedule, next_time=None)

    async def _failed(
        self, schedule: StoredSchedule, definition: _Definition, why: str, *, next_time: float | None, **values: object
    ) -> None:
        """Note a failure: the schedule is paused, the run is tried again soon, or at the next time."""
        failures, attempt = schedule.failures + 1, 0
        if failures >= PAUSE_AFTER:
            next_time, why = None, f"it is paused, since {failures} runs in a row failed: {why}"
        elif schedule.attempt < definition.retries and next_time is not None:
            next_time = min(next_time, self.now() + RETRY_SECONDS * 2**schedule.attempt)
            attempt = schedule.attempt + 1
        values |= {"failures": failures, "attempt": attempt, "next_time": next_time, "reason": why}
        if await self._change(schedule, **values):
            _LOG.warning("The schedule %s failed: %s.", schedule.name, why.rstrip("."))

    async def _skip(self, schedule: StoredSchedule, following: float, why: str) -> None:
        if await self._change(schedule, next_time=following, reason=why):
            _LOG.warning("The schedule %s was not run: %s.", schedule.name, why)

    async def _pause(self, schedule: StoredSchedule, why: str) -> None:
        if await self._change(schedule, next_time=None, reason=why):
            _LOG.warning("The schedule %s is paused: %s", schedule.name, why)

    async def reached(self, name: str, caller: Caller) -> StoredSchedule:
        """Return a schedule of the caller. Raises `RequestRefused` where there is none."""
        schedule, store = await self._ask(lambda store: (store.named(name), store))
        if schedule is None or not _reaches(store, schedule, caller):
            raise RequestRefused(f"You have no schedule {name}. `sealab schedules list` and list_schedules name yours.")
        return schedule

    def _listed(self, schedule: StoredSchedule, latest: Mapping[str, int]) -> ListedSchedule:
        definition = _Definition.of(schedule)
        zone = "UTC" if definition is None else _times_of(definition.every).zone
        shown = ListedSchedule(
            name=schedule.name,
            skill="" if definition is None else definition.skill,
            version=0 if definition is None else definition.version,
            every="" if definition is None else definition.every,
            next=None if schedule.next_time is None else _moment(schedule.next_time, zone),
            state="paused" if schedule.next_time is None else "active",
            owner="" if definition is None else principal_of(definition.scope),
            overlap="" if definition is None else definition.overlap,
            missed="" if definition is None else definition.missed,
            retries=0 if definition is None else definition.retries,
        )
        if definition is not None and definition.arguments:
            shown["arguments"] = definition.arguments
        if schedule.last_run is not None and schedule.fired is not None:
            status = schedule.outcome or "running"
            shown["last"] = LastRun(run_id=schedule.last_run, at=_moment(schedule.fired, zone), status=status)
        if schedule.failures:
            shown["failures"] = schedule.failures
        if schedule.reason:
            shown["why_not"] = schedule.reason
        if (
            definition is not None
            and (newest := latest.get(definition.skill, definition.version)) != definition.version
        ):
            shown["newest"] = newest
            if newest > definition.version:
                how = f"sealab schedules add {schedule.name} --skill-version {newest}"
                shown["waits"] = f"version {newest} of {definition.skill} waits for a yes: {how}"
        return shown

    def _audit(self, caller: Caller, what: str) -> None:
        self.context.executor.audit.acted(AuditKind.ADMINISTERED, caller.identity, details={"what": what})

    async def _change(self, schedule: StoredSchedule, **values: object) -> bool:
        return await self._ask(lambda store: store.change(schedule, **values))

    async def _ask(self, question: Callable[[ScheduleStore], _T]) -> _T:
        journal = self.background.journal
        return await in_thread(Kind.DATABASE, lambda: question(journal.background().schedules), charged=False)


class _Stopped(ServerError):
    """A schedule may not run any more until somebody has it go on; the message says why."""

    code = "schedule_stopped"


def _is_operator(caller: Caller) -> bool:
    return caller.scope == LOCAL.scope or (is_principal(caller.scope) and caller.identity.may(Right.ADMIN))


def _reaches(store: ScheduleStore, schedule: StoredSchedule, caller: Caller) -> bool:
    return _is_operator(caller) or store.is_of(schedule, caller.scope)


async def _in_thread(work: Callable[..., _T], *arguments: object) -> _T:
    """Do what computes times, of which some are thousands of days away."""
    return await in_thread(Kind.DATABASE, lambda: work(*arguments))


def _following(every: str, now: float) -> tuple[SetTimes, float]:
    times = SetTimes.of(every)
    return times, times.after(now)


@lru_cache(maxsize=SCHEDULES_MAX)
def _times_of(every: str) -> SetTimes:
    return SetTimes.of(every)


def _moment(seconds: float, zone: str) -> str:
    return datetime.fromtimestamp(seconds, ZoneInfo(zone)).isoformat(timespec="seconds")
