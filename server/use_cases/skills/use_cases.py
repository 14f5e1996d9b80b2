"""The use cases of skills: saving one when its tests pass, loading, listing, running, testing, deleting."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NotRequired, cast

from typing_extensions import TypedDict

from ....sandbox.job import Json, Outcome, SourceReading, Status
from ....skills_db.content import LISTED_MAX_CHARS, SkillDraft, SkillKind
from ....skills_db.errors import SkillNotFound, SkillRefused, SkillsDbError
from ....skills_db.skill_md import MANIFEST, ORIGIN, files_in
from ....tools_registry.errors import RegistryError
from ....workspace.archive import RunArchive
from ....workspace.errors import WorkspaceError
from ....workspace.names import Name
from ...base.errors import HostWorkBusy, RequestRefused, SkillUnfit
from ...base.host_work import Kind, account, in_thread
from ...base.identity import Identity, Right
from ...base.settings import Switch
from ...governance.audit.trail import AuditKind
from ...governance.caller import LOCAL, Caller, OnProgress
from ...governance.provenance.sightings import Conversation, literals_of
from ..host_functions.broker import Calls
from ..host_functions.sourced_calls import FROM_TEXTS
from ..runs.execute import execute
from ..runs.executor import LAST
from ..runs.isolations import AUTO
from ..runs.report import ErrorReport
from ..runs.request import CodeRequest, Execution
from ..upstream_tools.discovery import searched_for
from .duplicates import alike, same_as
from .new_versions import Judged, change_of, judged, kept_description, kept_files, kept_tags
from .recordings import AnswerRecorder, Replay
from .search import about_of, call_of
from .skill_arguments import judge_arguments, judge_name
from .source_facts import SkillFacts, facts_of
from .testing import NOT_SAVED, cause_of, line_of_skill, plan_of, run_tests

if TYPE_CHECKING:
    from ....skills_db.skills import SkillStore, StoredSkill
    from ....workspace.store import Workspace
    from ..runs.executor import Executor
    from ..upstream_tools.registry import Registry
    from .search import SkillIndex
    from .service import SkillService

USED_SHOWN_MAX = 5
"""How many of the most-used skills the greeting of a new conversation names."""
CALL_CHARS_MAX = 100
"""Characters of the call of each."""
RUN_SKILL_BYTES_MAX = 4_000_000
"""What one run may save of skills, each version counted as the store does."""


@dataclass(frozen=True, slots=True)
class SkillContext:
    """The stored skills and their index, what runs them, and what they are checked against."""

    executor: Executor
    service: SkillService
    index: SkillIndex
    registry: Registry
    workspace: Workspace


@dataclass(frozen=True, slots=True)
class SaveRequest:
    """One `save_skill`. With `from_run`, `code` may name the variables to take as parameters, separated by commas.

    What it leaves empty of `description`, `tests`, `tags` and `files` the last version of the skill had. `files` are
    those that the tests find in the workspace. With `force` it is saved though tests of before fail.
    `within` are the calls of the running code that asks, if one does: the tests must not wait for it to end, and may do
    no more than it may.
    """

    name: str
    code: str = ""
    description: str = ""
    tests: str = ""
    tags: Sequence[str] = ()
    from_run: str | None = None
    record: bool = False
    force: bool = False
    files: Mapping[str, bytes] = field(default_factory=dict)
    caller: Caller = LOCAL
    within: Calls | None = None


class Constants(TypedDict):
    """The constants of a script: which became parameters, and why others did not."""

    parameters: list[str]
    fixed: dict[str, str]


class SavedSkill(TypedDict):
    """A skill after saving; `changed` says in one line what differs from the version before."""

    name: str
    version: int
    signature: str
    description: str
    warnings: list[str]
    changed: NotRequired[str]
    constants: NotRequired[Constants]
    truncated: NotRequired[dict[str, object]]


class LoadedSkill(TypedDict):
    """One version of a skill; `parameters` is the JSON Schema of its arguments."""

    name: str
    version: int
    code: str
    description: str
    signature: str
    parameters: dict[str, object]
    metadata: dict[str, object]
    truncated: NotRequired[dict[str, object]]


class ListedSkill(TypedDict):
    """One skill of a list; `last_run` in ISO 8601."""

    name: str
    version: int
    description: str
    signature: str
    tags: list[str]
    runs: int
    last_run: str | None


class SkillList(TypedDict):
    """The skills that were asked for; `count` is how many there are, even where fewer are shown."""

    count: int
    skills: list[ListedSkill]
    truncated: NotRequired[dict[str, object]]


class DeletedSkill(TypedDict):
    """A skill after deleting; `deleted_versions` is how many versions it had."""

    name: str
    deleted_versions: int


@dataclass(frozen=True, slots=True)
class RunSkillRequest:
    """One `run_skill`; `None` stands for the newest version and the operator's defaults."""

    name: str
    arguments: Mapping[str, Json]
    version: int | None = None
    timeout_seconds: float | None = None
    memory_mb: int | None = None
    isolation: str = AUTO
    caller: Caller = LOCAL
    run_id: str | None = None


async def save(context: SkillContext, request: SaveRequest) -> SavedSkill:
    """Store code as the next version of a skill, when it can be one and its tests pass, and those of before.

    Raises `SkillNameRefused` and `SkillUnfit`, `Busy` where the caller has used up its share, and then nothing is
    stored; else what the store raises.
    """
    judge_name(request.name)
    if request.within is None:
        await context.executor.shares.admit(request.caller.scope)  # its tests are a run
    if request.from_run == LAST:
        request = replace(request, from_run=await _last_run(context, request))
    code, variables = await _code_of(context, request)
    last = await context.service.ask(lambda store: store.newest(request.name))
    tests = request.tests or ("" if last is None else last.draft.tests)
    reading = SourceReading(request.name, tests, variables)
    facts = await facts_of(context.executor, code, reading, nested=request.within is not None, caller=request.caller)
    draft = draft_from(
        request.name,
        facts,
        description=kept_description(request.description, facts, last),
        tests=tests,
        tags=kept_tags(request.tags, last),
        recordings=None if last is None else last.draft.recordings,
        more=kept_files({_file_named(name): data for name, data in request.files.items()}, last),
    )
    if context.executor.settings.provenance is Switch.ON:
        draft = await _with_sources(draft, context.executor.conversations.of(request.caller.scope))
    _refuse_too_much(draft)
    noted = await name_noted(context, request.caller, draft.name)
    await _judge_publishing(context, request.caller, draft.name, draft.tags)
    warnings = [
        *await _warnings_of_run(context, request),
        *await _warnings(context, request.caller.identity, draft, facts),
    ]
    recorder = AnswerRecorder() if request.record else None
    found = await _tested(context, request, draft, last, recorder)
    warnings += found.failed if last is not None else await _near(context, request, draft)
    warnings += [f"Not tested with it: {each}." for each in found.untested]
    if recorder is not None:
        recordings = await context.executor.privacy.kept_value(request.caller.scope, recorder.recordings())
        draft = replace(draft, recordings=recordings)
    version = await _stored_as(context, draft, request.within)
    if request.within is None or not request.within.dry_run:
        context.executor.audit.skill_changed(request.caller, AuditKind.SKILL_SAVED, noted, version=version)
        if context.service.publishes and _is_tagged_as_shared(draft.tags):
            context.executor.audit.skill_changed(request.caller, AuditKind.SKILL_PUBLISHED, noted, version=version)
        await context.executor.audit.kept()
    saved = SavedSkill(
        name=draft.name,
        version=version,
        signature=draft.signature,
        description=draft.description,
        warnings=warnings,
    )
    await context.index.refresh()
    if request.from_run is not None and context.executor.hints is not None:
        context.executor.hints.saved(request.caller.scope, code, draft.name)
    if last is not None and (changed := change_of(draft, last, found)):
        saved["changed"] = changed
    if facts.constants:
        chosen = [name for name, why_not in facts.constants.items() if not why_not]
        saved["constants"] = Constants(
            parameters=chosen, fixed={name: why for name, why in facts.constants.items() if why}
        )
    return saved


def saved_lines(saved: SavedSkill) -> list[str]:
    """Format as lines what a version changes, and which constants became parameters."""
    lines = [saved["changed"]] if "changed" in saved else []
    if "constants" in saved:
        lines.append(f"constants that are parameters: {', '.join(saved['constants']['parameters']) or 'none'}")
        lines += [f"no parameter: {name} ({why})" for name, why in saved["constants"]["fixed"].items()]
    return lines


async def _near(context: SkillContext, request: SaveRequest, draft: SkillDraft) -> list[str]:
    """Return which skill does the same as a new one. Raises `SkillUnfit` where both are described, unless forced."""
    if not request.caller.identity.may(Right.SKILLS_READ):
        return []
    found = await context.service.ask(lambda store: alike(store, draft))
    same = await same_as(context.executor, draft, found, caller=request.caller, within=request.within)
    if same is None:
        return []
    note = f"The skill {same.name} does this already (version {same.version}): {call_of(same.draft.signature)}."
    if request.force or not (draft.description and same.draft.description):
        return [note]
    raise SkillUnfit(
        f"{note} {about_of(same.draft.description)}{NOT_SAVED} Call it, save this as its next version, or save it "
        "beside it with force=true."
    )


async def _tested(
    context: SkillContext,
    request: SaveRequest,
    draft: SkillDraft,
    last: StoredSkill | None,
    recorder: AnswerRecorder | None,
) -> Judged:
    """Run its tests, and on new code those of before. Raises `SkillUnfit` with all that fail, unless forced.

    Tests that it was given itself must pass in any case.
    """
    keeps = last is not None and not request.tests and bool(draft.tests.strip())
    replay = Replay(draft.recordings) if keeps and recorder is None and draft.recordings else None
    run = partial(run_tests, context.executor, caller=request.caller, within=request.within)
    found = Judged()
    try:
        await run(plan_of(draft), recorder=recorder, replay=replay)
    except SkillUnfit as error:
        if not keeps:
            raise
        await run(plan_of(replace(draft, tests="", extra={**draft.extra, "test_functions": ()})))
        found.failed.append(cause_of(error))
    if last is not None and draft.code != last.draft.code:
        users = await context.service.ask(lambda store: store.users_of(draft.name))
        before = await judged(context.executor, draft, last, users, caller=request.caller, within=request.within)
        found = replace(before, failed=[*found.failed, *before.failed])
        if keeps and not found.failed:
            found.passed.insert(0, f"version {last.version}")
    if found.failed and not request.force:
        raise SkillUnfit(
            f"{' '.join(found.failed)}{NOT_SAVED} Correct the code, give tests of what it does now where these are its "
            "own, or save it all the same with force=true."
        )
    return found


def _file_named(filename: str) -> str:
    name = Name.parse(filename)
    if name.reserved:
        raise SkillUnfit(f"The tests cannot be given a file {filename!r:.80}: sealab keeps runs there. Name another.")
    return str(name)


async def _with_sources(draft: SkillDraft, conversation: Conversation) -> SkillDraft:
    """Return a draft that says which of its literals stand only in texts that were read, and in which."""
    await conversation.read_up()
    texts = conversation.in_texts(literals_of(draft.code))
    return replace(draft, extra={**draft.extra, FROM_TEXTS: cast("Json", texts)}) if texts else draft


async def _stored_as(context: SkillContext, draft: SkillDraft, within: Calls | None) -> int:
    if within is None or not within.dry_run:
        return (await context.service.ask(lambda store: store.save(draft))).version
    within.log.note_dry("save_skill", {"name": draft.name})
    try:
        return (await stored(context, draft.name)).latest + 1
    except SkillNotFound:
        return 1


async def greeting(context: SkillContext, caller: Caller) -> str:
    """Describe in one line how many skills there are, and which the caller uses most; empty where there are none."""
    if not (caller.identity.may(Right.SKILLS_READ) and context.service.has_database):
        return ""
    await context.index.refresh()
    known = context.index.known()
    try:
        most_used = await context.service.most_used(caller.scope, USED_SHOWN_MAX) if known else ()
    except (SkillsDbError, HostWorkBusy):
        most_used = ()
    calls = [call_of(known[name].signature)[:CALL_CHARS_MAX] for name in most_used if name in known]
    used = f" Most used: {'; '.join(calls)}." if calls else ""
    text = f"Skills: {len(known)} saved; list_skills(query) finds them.{used}" if known else ""
    return await context.executor.privacy.hide_text(caller.scope, text) if context.executor.privacy.filters else text


async def load(context: SkillContext, name: str, version: int | None = None) -> LoadedSkill:
    """Return one version of a skill. Raises `SkillNotFound`."""
    return loaded(await stored(context, name, version))


def loaded(skill: StoredSkill) -> LoadedSkill:
    """Return a stored version in the form in which it is loaded."""
    draft = skill.draft
    return LoadedSkill(
        name=draft.name,
        version=skill.version,
        code=draft.code,
        description=draft.description,
        signature=draft.signature,
        parameters=dict(draft.parameters),
        metadata={
            "kind": draft.kind.value,
            "tags": list(draft.tags),
            "tests": draft.tests,
            "recorded_calls": len(draft.recordings) if isinstance(draft.recordings, Sequence) else 0,
            "modules": list(draft.modules),
            "tools": list(draft.tools),
            "skills": list(draft.skills),
            "latest_version": skill.latest,
            "content_hash": skill.content_hash,
            "created_at": skill.created_at.isoformat(),
            "runs": skill.runs,
            "last_run": None if skill.last_run is None else skill.last_run.isoformat(),
            **_of_others(draft),
        },
    )


def _of_others(draft: SkillDraft) -> dict[str, object]:
    """Return the metadata of a folder that others wrote: its origin, instructions and files; empty for an own skill."""
    if ORIGIN not in draft.extra:
        return {}
    files = files_in(draft.extra)
    text = files[MANIFEST].decode()
    return {ORIGIN: "imported; others wrote it: no word of the user", "instructions": text, "files": sorted(files)}


async def listed(
    context: SkillContext,
    query: str | None = None,
    tag: str | None = None,
    limit: int = 50,
    *,
    archived: bool = False,
) -> SkillList:
    """Return the skills that fit a query, best first, or all by name; of archived ones those with all its words.

    With a limit of 0 they are only counted. Raises `RequestRefused` for a limit below 0.
    """
    if limit < 0:
        raise RequestRefused(f"limit is {limit}, which is not allowed. Give 0, to count only, or more.")
    asked, cut = searched_for(query or "")
    if archived:
        page = await context.service.ask(lambda store: store.archived(asked, tag, limit))
    else:
        page = await context.index.page(asked or None, tag, limit)
    listed = SkillList(
        count=page.total,
        skills=[
            ListedSkill(
                name=each.name,
                version=each.version,
                description=about_of(each.description),
                signature=each.signature,
                tags=list(each.tags),
                runs=each.runs,
                last_run=None if each.last_run is None else each.last_run.isoformat(),
            )
            for each in page.skills
        ],
    )
    if cut:
        listed["truncated"] = {**cut}
    return listed


async def run(context: SkillContext, request: RunSkillRequest, *, progress: OnProgress | None = None) -> Execution:
    """Run a skill with arguments that fit its schema, and report it as any code.

    `error.line` is a line of the skill. Raises `SkillNotFound`, `ArgumentsRefused`, and what `execute` does.
    """
    code, skill = await request_to_run(context, request)
    execution = await execute(context.executor, code, progress=progress)
    error = execution.report["error"]
    line = None if error is None else line_of_skill(skill.draft.name, error["traceback"])
    if error is not None and line is not None:
        execution.report["error"] = ErrorReport(**{**error, "line": line})
    return execution


async def request_to_run(context: SkillContext, request: RunSkillRequest) -> tuple[CodeRequest, StoredSkill]:
    """Return the program that runs a version of a skill, and that version.

    Raises `SkillNotFound` and `ArgumentsRefused`.
    """
    skill = await stored(context, request.name, request.version)
    draft = skill.draft
    await in_thread(Kind.SEARCH, partial(judge_arguments, draft.name, draft.parameters, request.arguments))
    awaits = "await " if draft.extra.get("is_async") else ""
    isolation = request.isolation
    if isolation == AUTO and draft.extra.get("wider") and len(context.executor.pools.offered) > 1:
        isolation = context.executor.pools.offered[1].value
    code = CodeRequest(
        code=f"{awaits}call_skill({draft.name!r}, {skill.version}, arguments)",
        context_vars={"arguments": dict(request.arguments)},
        timeout_seconds=request.timeout_seconds,
        memory_mb=request.memory_mb,
        isolation=isolation,
        caller=request.caller,
        run_id=request.run_id,
    )
    return code, skill


async def delete(context: SkillContext, name: str, *, caller: Caller = LOCAL) -> DeletedSkill:
    """Delete a skill with all its versions, until it is restored or purged.

    Raises `SkillNotFound`, `RightMissing` for one on the shared shelf that the caller may not change, and
    `PrivacyFailed`.
    """
    await _judge_publishing(context, caller, name)
    noted = await name_noted(context, caller, name)
    versions = await context.service.ask(lambda store: store.delete(name))
    context.executor.audit.skill_changed(caller, AuditKind.SKILL_DELETED, noted)
    await context.executor.audit.kept()
    return DeletedSkill(name=name, deleted_versions=len(versions))


async def archive(context: SkillContext, name: str, *, archived: bool = True, caller: Caller = LOCAL) -> None:
    """Take a skill out of lists and searches, or put it back. Raises as `delete`."""
    skill = await stored(context, name)
    await _judge_publishing(context, caller, name, skill.draft.tags)
    await context.service.ask(lambda store: store.archive(name, archived=archived))


async def name_noted(context: SkillContext, caller: Caller, name: str) -> str:
    """Return the name of a skill as the audit log has it: what a model chose may be personal. Raises `PrivacyFailed`.

    Its lines are never changed, so under `PRIVACY=auto` a token stands there, which means nothing once it is forgotten.
    """
    privacy = context.executor.privacy
    return await privacy.hide_text(caller.scope, name) if privacy.filters else name


async def _judge_publishing(context: SkillContext, caller: Caller, name: str, tags: Sequence[str] = ()) -> None:
    """Raise `RightMissing` where a caller without the right would change what all tenants read."""
    if not context.service.publishes or caller.identity.may(Right.ADMIN):
        return
    from ....skills_db.tenants.shelf import is_shared

    if _is_tagged_as_shared(tags) or await context.service.ask(lambda store: is_shared(store, name)):
        caller.identity.require(Right.ADMIN)


def _is_tagged_as_shared(tags: Sequence[str]) -> bool:
    from ....skills_db.tenants.shelf import publishing

    return bool(publishing(tags))


async def examine(context: SkillContext, name: str, *, record: bool = False, caller: Caller = LOCAL) -> Outcome:
    """Run the tests of a stored skill: with `record` against upstream, keeping the answers, else offline from these.

    Raises `SkillUnfit` with what failed.
    """
    skill = await stored(context, name)
    plan = plan_of(skill.draft)
    if not record:
        return await run_tests(context.executor, plan, caller=caller, replay=Replay(skill.draft.recordings))
    recorder = AnswerRecorder()
    outcome = await run_tests(context.executor, plan, caller=caller, recorder=recorder)
    recordings = await context.executor.privacy.kept_value(caller.scope, recorder.recordings())
    draft = replace(skill.draft, recordings=recordings)
    await context.service.ask(lambda store: store.save(draft))
    return outcome


async def stored(context: SkillContext, name: str, version: int | None = None) -> StoredSkill:
    """Return a stored version of a skill. Raises `SkillNotFound`, which names the nearest."""
    return await context.service.ask(lambda store: store.load(name, version))


def draft_from(
    name: str,
    facts: SkillFacts,
    *,
    description: str,
    tests: str,
    tags: Sequence[str],
    recordings: Json = None,
    more: Mapping[str, Json] = MappingProxyType({}),
) -> SkillDraft:
    """Make the draft of a skill out of what its code says and what was said about it.

    Of a long docstring the description is the beginning; the code has all of it.
    """
    described, documented = description.strip(), facts.description[:LISTED_MAX_CHARS]
    return SkillDraft(
        name=name,
        code=facts.code,
        kind=SkillKind.SCRIPT if facts.is_script else SkillKind.FUNCTION,
        signature=facts.signature,
        parameters=facts.parameters,
        description=described or documented,
        tags=tuple(dict.fromkeys(tag.strip() for tag in tags if tag.strip())),
        tests=tests,
        modules=facts.modules,
        tools=facts.tools,
        skills=tuple(used for used in facts.skills if used != name),
        recordings=recordings,
        extra={
            **more,
            **({"docstring": documented} if described and described != documented else {}),
            "entry": facts.entry,
            "is_async": facts.is_async,
            "wider": facts.wider,
            "test_functions": [list(each) for each in facts.test_functions],
            "tests_are_examples": facts.test_is_examples,
            "docstring_has_examples": facts.examples,
        },
    )


def _refuse_too_much(draft: SkillDraft) -> None:
    """Raise `SkillRefused` where the run that asks, if one does, has saved as much as one may."""
    payer = account()
    if payer is None:
        return
    payer.skill_bytes += draft.size
    if payer.skill_bytes > RUN_SKILL_BYTES_MAX:
        raise SkillRefused(
            f"This run saved more than {RUN_SKILL_BYTES_MAX} bytes of skills, the most that one may. Keep data in "
            "files, and save skills one by one."
        )


async def _code_of(context: SkillContext, request: SaveRequest) -> tuple[str, tuple[str, ...] | None]:
    if request.from_run is None:
        return request.code, None
    chosen = tuple(name.strip() for name in request.code.replace("\n", ",").split(",") if name.strip())
    for name in chosen:
        if not name.isidentifier():
            raise SkillUnfit(
                "With from_run, code names the variables that become parameters, separated by commas, and "
                f"{name!r:.80} is not a valid name. Give either from_run or the code itself."
            )
    path = RunArchive.path_of(request.from_run, "code.py")
    try:
        kept = await in_thread(Kind.FILES, partial(context.workspace.read, path, owner=request.caller.scope))
    except WorkspaceError:
        raise SkillUnfit(
            f"No run {request.from_run!r:.80} is kept. Give the run_id of a newer report, {LAST!r}, or the code itself."
        ) from None
    return str(kept.content), chosen or None


async def _last_run(context: SkillContext, request: SaveRequest) -> str:
    """Return the caller's last run, on whichever server. Raises `SkillUnfit` where there is none."""
    executor, scope = context.executor, request.caller.scope
    run_id = executor.last_runs.of(scope)
    if executor.places is not None and (other := await executor.places.last_run(scope)) is not None:
        own = executor.last_runs.aged(scope)
        run_id = other[0] if own is None or other[1] < own[1] else own[0]
    if run_id is None:
        raise SkillUnfit("No code was run yet, so there is no last run. Give the code itself.")
    return run_id


async def _warnings_of_run(context: SkillContext, request: SaveRequest) -> list[str]:
    if request.from_run is None:
        return []
    ended = await context.service.how_ended(request.from_run)
    if ended is None or ended == Status.OK.value:
        return []
    return [f"The run {request.from_run} ended with the status {ended}, so the skill may fail as it did."]


async def _warnings(context: SkillContext, who: Identity, draft: SkillDraft, facts: SkillFacts) -> list[str]:
    """Return what the author may want to mend. Raises `SkillUnfit` where skills would use one another in a circle."""
    warnings: list[str] = []
    if not draft.description:
        warnings.append("It has no description: give one, or a docstring, so that search finds it.")
    if not plan_of(draft).tests_something:
        warnings.append("It has no test: give asserts as tests, or examples in the docstring.")
    if facts.wider:
        warnings.append(
            "The restricted dialect refuses its code or a skill that it uses, so it runs with full Python only."
        )
    if facts.undefined:
        names = ", ".join(facts.undefined)
        warnings.append(f"It uses {names}, which nothing defines: a call that comes there fails with a NameError.")
    if draft.skills:
        warnings += await context.service.ask(lambda store: _missing_skills(store, draft))
    if draft.tools:
        known = await asyncio.gather(*(_knows(context, who, tool) for tool in draft.tools))
        missing = [tool for tool, is_known in zip(draft.tools, known, strict=True) if not is_known]
        warnings += [f"It uses the tool {tool}, which is not configured." for tool in missing]
    return warnings


async def _knows(context: SkillContext, who: Identity, tool: str) -> bool:
    try:
        await context.registry.find(tool, who=who)
    except RegistryError:
        return False
    return True


def _missing_skills(store: SkillStore, draft: SkillDraft) -> list[str]:
    missing: list[str] = []
    waiting: list[tuple[str, tuple[str, ...]]] = [(used, (draft.name, used)) for used in draft.skills]
    seen: set[str] = set()
    while waiting:
        name, path = waiting.pop()
        if name == draft.name:
            raise SkillUnfit(
                f"The skills {' → '.join(path)} would use one another in a circle. Let one of them do without the next."
            )
        if name in seen:
            continue
        seen.add(name)
        try:
            used = store.load(name).draft.skills
        except SkillNotFound:
            missing.append(f"It uses the skill {name}, which is not there: save that too.")
            continue
        waiting += [(further, (*path, further)) for further in used]
    return missing
