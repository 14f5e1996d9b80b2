"""What is to be tended of skills: unused, failing, slow, doubled, out of date, orphaned ones. Changes nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations, takewhile
from statistics import median
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NotRequired, cast

from typing_extensions import TypedDict

from ....sandbox.errors import HostCallError
from ....sandbox.job import Status
from ....tools_registry.errors import RegistryError, ServerUnknown, ToolUnknown
from ...base.errors import ServerError
from ...base.host_call import for_worker
from ...base.host_work import Kind, charged, in_thread
from ...base.identity import Right
from ...governance.caller import LOCAL, Caller
from ...privacy.gates.run_gate import Gate
from ..host_functions.broker import Calls
from ..journal.replies import given, shown
from .duplicates import LIKE, SAME, likeness, parameters_in, shape_of, words_of

if TYPE_CHECKING:
    from ....sandbox.job import Json
    from ....skills_db.runs import RunRecord
    from ....skills_db.skills import SkillStore, StoredSkill
    from .use_cases import SkillContext

UNUSED_DAYS = 30
FAILED_LEAST = 2
"""Runs that failed one after the other, up to the last, from which on a skill is failing."""
SLOW_MS = 10_000.0
SLOW_RUNS_LEAST = 3
SKILLS_MAX = 500
"""Skills that are looked at, by name."""
CALLS_MAX = 30
"""Recorded calls that are made again, of tools that only read."""
CALLS_SECONDS_MAX = 30.0
_RUNS_MAX = 10_000


Kinds = Literal["unused", "failing", "slow", "duplicate", "drifted", "orphan"]
Proposal = Literal["archive", "merge", "mend"]
_PROPOSALS: Mapping[Kinds, Proposal] = MappingProxyType(
    {
        "unused": "archive",
        "duplicate": "merge",
        "failing": "mend",
        "slow": "mend",
        "drifted": "mend",
        "orphan": "mend",
    }
)


class Finding(TypedDict):
    """One thing about one skill: what, why, since when (ISO 8601), and the command to follow."""

    name: str
    finding: Kinds
    why: str
    proposal: Proposal
    command: str
    since: NotRequired[str]


class Review(TypedDict):
    """All findings; `skills` is how many were looked at, `calls` how many recorded calls were made again."""

    count: int
    findings: list[Finding]
    skills: int
    calls: int
    truncated: NotRequired[dict[str, object]]


async def review(context: SkillContext, caller: Caller = LOCAL) -> Review:
    """Look at all own skills that are not archived. Recorded answers are compared where the caller may call the tool.

    Raises `SkillsDbError`.
    """
    looked_at, total = await context.service.ask(_held)
    runs = await context.service.recent_runs(_RUNS_MAX)
    of_skill: dict[str, list[RunRecord]] = defaultdict(list)
    for run in runs:
        of_skill[str(run.skill)].append(run)
    now = datetime.now(UTC)
    findings = [found for each in looked_at for found in _by_runs(each, of_skill[each.name], now)]
    findings += await in_thread(Kind.SEARCH, lambda: list(_doubled(looked_at)))
    there = set(await context.service.ask(lambda store: store.names()))
    missing = {name for each in looked_at for name in each.draft.skills} - there
    for each in looked_at:
        findings += await _orphans(context, caller, each, missing)
    drifted, calls = await _drifted(context, caller, looked_at)
    findings += drifted
    report = Review(count=len(findings), findings=findings, skills=len(looked_at), calls=calls)
    if len(looked_at) < total:
        read_with = f"list_skills(limit={total})"
        report["truncated"] = {"skills": {"shown": len(looked_at), "total": total, "read_with": read_with}}
    return report


def lines_of(found: Review) -> list[str]:
    """Format the findings as lines, each with its command."""
    lines = [f"{each['name']}: {each['why']} → {each['proposal']}: {each['command']}" for each in found["findings"]]
    return lines or [f"Nothing to tend among {found['skills']} skills."]


def _held(store: SkillStore) -> tuple[list[StoredSkill], int]:
    names = list(store.own_summaries())
    return [store.load(name) for name in names[:SKILLS_MAX]], len(names)


def _by_runs(skill: StoredSkill, runs: Sequence[RunRecord], now: datetime) -> Iterator[Finding]:
    """Judge by the records of its runs, newest first."""
    name = skill.name
    used = max(filter(None, (skill.last_run, skill.created_at)))
    if now - used > timedelta(days=UNUSED_DAYS):
        why = "was never run" if skill.last_run is None else f"was run {skill.runs} times, and not"
        why += f" in {(now - used).days} days" if skill.last_run else f", and is {(now - used).days} days old"
        yield _finding(name, "unused", why, f"archive {name}", used)
    failed = list(takewhile(lambda run: run.status not in {Status.OK, Status.CANCELLED}, runs))
    if len(failed) >= FAILED_LEAST:
        why = f"its last {len(failed)} runs ended with {failed[0].status}"
        yield _finding(name, "failing", why, f"test {name}", failed[-1].started_at)
    ms = [run.duration_ms for run in runs if run.status == Status.OK]
    if len(ms) >= SLOW_RUNS_LEAST and median(ms) >= SLOW_MS:
        why = f"takes {median(ms) / 1000:.0f} seconds (median of {len(ms)} runs)"
        yield _finding(name, "slow", why, f"show {name}")


def _doubled(skills: Sequence[StoredSkill]) -> Iterator[Finding]:
    taken = {each.name: parameters_in(each.draft.signature) for each in skills}
    shapes = {each.name: shape_of(each.draft) for each in skills}
    words = {each.name: words_of(each.draft) for each in skills}
    for one, other in combinations(skills, 2):
        alike = len(taken[one.name]) == len(taken[other.name])
        share = likeness(words[one.name], words[other.name]) if alike else 0.0
        same_names = taken[one.name] == taken[other.name]
        if share >= LIKE and (shapes[one.name] == shapes[other.name] or (same_names and share >= SAME)):
            less, more = sorted((one, other), key=lambda each: (each.runs, each.created_at))
            why = f"does what {more.name} does, which ran {more.runs} times to its {less.runs}"
            yield _finding(less.name, "duplicate", why, f"archive {less.name}")


async def _orphans(context: SkillContext, caller: Caller, skill: StoredSkill, missing: set[str]) -> Sequence[Finding]:
    gone = [f"the skill {each}" for each in skill.draft.skills if each in missing]
    for tool in skill.draft.tools if caller.identity.may(Right.TOOLS_READ) else ():
        try:
            await context.registry.find(tool, who=caller.identity)
        except (ToolUnknown, ServerUnknown):
            gone.append(f"the tool {tool}")
        except RegistryError:
            continue  # whether it is there its server does not say now
    if not gone:
        return []
    why = f"uses {', '.join(gone)}, which {'is' if len(gone) == 1 else 'are'} not there"
    return [_finding(skill.name, "orphan", why, f"show {skill.name}")]


async def _drifted(context: SkillContext, caller: Caller, skills: Sequence[StoredSkill]) -> tuple[list[Finding], int]:
    """Make recorded calls of tools that only read again, as a dry run does; return what answers otherwise now."""
    executor, findings, made = context.executor, [], 0
    if not caller.identity.may(Right.TOOLS_READ):
        return [], 0
    with charged(CALLS_SECONDS_MAX) as account:
        gate = Gate(executor.privacy, caller, account, executor.privacy.new_run_tokens(caller.scope))
        calls = Calls(
            executor.host_functions,
            budget=CALLS_MAX,
            caller=replace(gate.caller, ask=None),
            dry_run=True,
            run_tokens=gate.tokens,
            given=gate.given,
            audit=executor.audit,
        )
        answer = for_worker(gate.around(calls.answer))
        for skill in skills:
            for entry in cast("Sequence[Mapping[str, Json]]", skill.draft.recordings or ()):
                name, arguments = str(entry["tool"]), cast("Mapping[str, Json]", entry["arguments"])
                if made >= CALLS_MAX or "answer" not in entry or not await _only_reads(context, caller, name):
                    continue
                made += 1
                try:
                    now = await answer("call_tool", {"name": name, "arguments": arguments})
                except HostCallError as error:
                    why = f"{shown(name, arguments)} fails now: {error.message}"
                else:
                    differs = _differs(given(entry), now)
                    if differs is None:
                        continue
                    why = f"{shown(name, arguments)} answers otherwise than was recorded: {differs}"
                findings.append(_finding(skill.name, "drifted", why, f"test --record {skill.name}"))
                break
    return findings, made


async def _only_reads(context: SkillContext, caller: Caller, name: str) -> bool:
    try:
        tool = await context.registry.find(name, who=caller.identity)
        configuration = await context.registry.configuration()
        return configuration.server(tool.server).only_reads(tool)
    except (RegistryError, ServerError):
        return False


def _differs(before: Json, now: Json, where: str = "") -> str | None:
    """Return where an answer lacks what another one had, or has it of another type; None where it does not.

    Other values, more keys, and what was or is null are no difference.
    """
    at = where or "it"
    match before, now:
        case (None, _) | (_, None):
            return None
        case Mapping(), Mapping():
            gone = next((key for key in before if key not in now), None)
            if gone is not None:
                return f"{at} has no {gone!r:.80} any more"
            found = (_differs(value, now[key], f"{where}.{key}".lstrip(".")) for key, value in before.items())
            return next(filter(None, found), None)
        case list(), list():
            return _differs(before[0], now[0], f"{where}[0]") if before and now else None
        case (bool(), bool()) | (str(), str()):
            return None
        case (int() | float(), int() | float()) if bool not in {type(before), type(now)}:
            return None
    return f"{at} was {type(before).__name__} and is {type(now).__name__}"


def _finding(skill: str, kind: Kinds, why: str, command: str, since: datetime | None = None) -> Finding:
    finding = Finding(name=skill, finding=kind, why=why, proposal=_PROPOSALS[kind], command=f"sealab skills {command}")
    if since is not None:
        finding["since"] = since.isoformat(timespec="seconds")
    return finding
