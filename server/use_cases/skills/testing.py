"""Runs the tests of a skill, in the sandbox and beside its code: asserts, test functions, examples of docstrings.

The candidate need not be stored: while its tests run, its name means it. With recordings, calls of upstream tools are
answered from these, and a call that is not among them fails the tests whatever they do with the error. What tests
change in the workspace is gone when they end. The files that they need, which the skill brings below `TEST_FILES`, are
written there before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from ....sandbox.errors import HostCallError
from ....sandbox.job import Isolation, Job, Json, Limits, Outcome, Status, Waits
from ...base.errors import SkillUnfit
from ...base.host_call import for_worker
from ...base.host_work import charged
from ...governance.caller import LOCAL, Caller
from ...governance.rights import ISOLATIONS, require
from ...privacy.gates.run_gate import Gate
from ..host_functions.broker import Calls, Handler
from ..runs.admission import permit_run
from ..runs.placement.escalation import escalated
from .recordings import AnswerRecorder, Replay

if TYPE_CHECKING:
    from ....skills_db.content import SkillDraft
    from ..runs.executor import Executor

TEST_FILES = "tests/files/"
"""Where in a skill's folder the files are that its tests find in the workspace."""
NOT_SAVED = " Nothing was saved."
"""What follows on the cause in a message of `SkillUnfit`."""
_NOT_FROM_TESTS = frozenset({"save_skill", "delete_skill"})
_OUTPUT_SHOWN_MAX = 600
_CANDIDATE = 1_000_000_000
"""The version that a skill has while its tests run."""
_EXAMPLES_TEXT = "examples_of_the_skill"
_EXAMPLES = """
import doctest as _doctest
if hasattr(_doctest, "DocTestFinder"):
    try:
        for _found in {found}:
            _doctest.DebugRunner().run(_found)
    except _doctest.DocTestFailure as _failure:
        raise AssertionError(
            "the example failed: " + _failure.example.source.strip()
            + ", expected " + repr(_failure.example.want) + ", got " + repr(_failure.got)
        ) from None
    except _doctest.UnexpectedException as _failure:
        raise AssertionError(
            "the example failed: " + _failure.example.source.strip() + ", it raised " + repr(_failure.exc_info[1])
        ) from None
else:
    _doctest.testmod(raise_on_error=True)
"""
_GIVEN = "files_of_the_tests"
_WRITTEN_FIRST = f"[write_file(*each) for each in {_GIVEN}]\n"
_FOUND_IN_DOCSTRING = "_doctest.DocTestFinder(exclude_empty=True).find({name}, '{name}', False, globs=dict(globals()))"
_FOUND_IN_TESTS = "[_doctest.DocTestParser().get_doctest({text}, dict(globals()), 'tests', None, 0)]"


@dataclass(frozen=True, slots=True)
class TestPlan:
    """A skill with what its tests are: `functions` to call, `(name, is_async)`, and whether there are examples."""

    __test__ = False  # no test class, whatever pytest thinks of its name

    draft: SkillDraft
    entry: str
    functions: tuple[tuple[str, bool], ...] = ()
    tests_are_examples: bool = False
    docstring_has_examples: bool = False
    called: str = ""
    """What the tests are called in messages, where the skill's name would not say whose they are."""

    @property
    def shown(self) -> str:
        """What messages call it."""
        return self.called or self.draft.name

    @property
    def given(self) -> Sequence[Json]:
        """The files that are written first: of each the name, the content and its encoding."""
        texts, others = (cast("Mapping[str, str]", self.draft.extra.get(part, {})) for part in ("files", "assets"))
        return [
            [path.removeprefix(TEST_FILES), content, encoding]
            for files, encoding in ((texts, "utf-8"), (others, "base64"))
            for path, content in files.items()
            if path.startswith(TEST_FILES)
        ]

    @property
    def tests_something(self) -> bool:
        """Whether anything is claimed at all."""
        return bool(self.draft.tests.strip()) or self.docstring_has_examples


def plan_of(draft: SkillDraft) -> TestPlan:
    """Return how the tests of a draft are run."""
    extra = draft.extra
    functions = extra.get("test_functions", ())
    return TestPlan(
        draft=draft,
        entry=str(extra.get("entry", draft.name)),
        functions=tuple((str(name), bool(is_async)) for name, is_async in functions),  # type: ignore[union-attr,misc]  # as `draft_from` wrote it
        tests_are_examples=bool(extra.get("tests_are_examples")),
        docstring_has_examples=bool(extra.get("docstring_has_examples")),
    )


def cause_of(error: SkillUnfit) -> str:
    """Return what was wrong, without what it means for a save."""
    said = str(error)
    return said.rpartition(NOT_SAVED)[0] or said


async def run_tests(
    executor: Executor,
    plan: TestPlan,
    *,
    caller: Caller = LOCAL,
    within: Calls | None = None,
    recorder: AnswerRecorder | None = None,
    replay: Replay | None = None,
    beside: TestPlan | None = None,
) -> Outcome:
    """Run the tests of a skill; without any, only its definitions. Raises `SkillUnfit`, with the line that failed.

    `beside` is a skill that its own uses, and that is not stored as it is here. `within` are the calls of the running
    code that asks for it: the tests spend its budget, and only note down the writes of tools where it does. Without,
    they are on the caller's share of CPU time, who was admitted before.
    """
    job = _job(executor, plan, caller, within)
    require(caller.identity, ISOLATIONS, job.isolation.value)
    permit_run(executor.policy, caller.identity, job.isolation, job.limits)
    unstored = {each.draft.name: each for each in (plan, beside) if each is not None}
    handlers = _handlers(executor, unstored, recorder, replay)
    run_tokens = executor.privacy.new_run_tokens(caller.scope) if within is None else within.run_tokens
    calls = Calls(
        handlers,
        budget=executor.settings.tool_calls_max,
        caller=caller,
        tests_of=plan.draft.name,
        within=within,
        run_tokens=run_tokens,
        audit=executor.audit,
        source=job.code,
        waits=job.waits,
    )
    if within is not None:
        calls.dry_run, calls.log, calls.approvals = within.dry_run, within.log, within.approvals
    with charged(job.limits.timeout_seconds) as account:
        gate = Gate(executor.privacy, caller, account, run_tokens)
        calls.given = gate.given
        if within is None:
            calls.caller = gate.caller
        answer = for_worker(gate.around(calls.answer))
        try:
            async with nullcontext() if within else executor.shares.run(caller.scope, account, was_queued=True):
                outcome = await executor.pools.run(job, answer)
                outcome = await escalated(executor, job, answer, outcome, caller=replace(caller, ask=None))
        finally:
            await calls.ended()
        await gate.learned()
    _check_passed(plan, outcome, replay)
    return outcome


def _check_passed(plan: TestPlan, outcome: Outcome, replay: Replay | None) -> None:
    if replay is not None and replay.missed is not None:
        raise SkillUnfit(
            f"The tests of {plan.shown} call {replay.missed}, which was not recorded. "
            f"Record it with `sealab skills test --record {plan.draft.name}`."
        )
    if outcome.status is not Status.OK:
        raise SkillUnfit(_why(plan, outcome))


def _job(executor: Executor, plan: TestPlan, caller: Caller, within: Calls | None) -> Job:
    program, variables = _program(plan)
    settings = executor.settings
    return Job(
        program,
        variables,
        Limits(timeout_seconds=settings.timeout_seconds, memory_mb=settings.memory_mb, pids_max=settings.pids_max),
        isolation=_isolation(executor, plan),
        within=plan.draft.name,
        nested=within is not None,
        caller=caller.scope,
        waits=Waits(None if within is None else within.waits),
    )


def _isolation(executor: Executor, plan: TestPlan) -> Isolation:
    pools = executor.pools
    return next(iter(pools.offered[1:]), pools.default) if plan.draft.extra.get("wider") else pools.default


def _program(plan: TestPlan) -> tuple[str, dict[str, Json]]:
    program, variables = _tests_of(plan)
    return (_WRITTEN_FIRST + program, {**variables, _GIVEN: plan.given}) if plan.given else (program, variables)


def _tests_of(plan: TestPlan) -> tuple[str, dict[str, Json]]:
    tests = plan.draft.tests
    if plan.tests_are_examples:
        found = _FOUND_IN_TESTS.format(text=_EXAMPLES_TEXT)
        given = f"__test__ = {{'tests': {_EXAMPLES_TEXT}}}\n" if tests.strip() else ""
        return given + _EXAMPLES.format(found=found), {_EXAMPLES_TEXT: tests}
    calls = "".join(f"{'await ' if is_async else ''}{name}()\n" for name, is_async in plan.functions)
    examples = (
        _EXAMPLES.format(found=_FOUND_IN_DOCSTRING.format(name=plan.draft.name)) if plan.docstring_has_examples else ""
    )
    return f"{tests}\n{calls}{examples}\nNone\n", {}


def _handlers(
    executor: Executor, unstored: Mapping[str, TestPlan], recorder: AnswerRecorder | None, replay: Replay | None
) -> Mapping[str, Handler]:
    handlers: dict[str, Handler] = {
        name: replace(handler, answer=_refuse) if name in _NOT_FROM_TESTS else handler
        for name, handler in executor.host_functions.items()
    }
    handlers["use_skill"] = _candidate_first(unstored, executor.host_functions["use_skill"])
    handlers["skill_sources"] = _candidate_among(unstored, executor.host_functions["skill_sources"])
    if recorder is not None and "call_tool" in handlers:
        handlers["call_tool"] = recorder.around(handlers["call_tool"])
    if replay is not None and "call_tool" in handlers:
        handlers["call_tool"] = replay.instead_of(handlers["call_tool"])
        handlers["judge_calls"] = replace(handlers["judge_calls"], answer=_allow)
    return handlers


def _candidate_first(unstored: Mapping[str, TestPlan], stored: Handler) -> Handler:
    async def use_skill(calls: Calls, *, name: str, version: int | None = None) -> Json:
        plan = unstored.get(name)
        if plan is None or version is not None:
            return cast("Json", await stored.answer(calls, name=name, version=version))
        calls.approvals.take(plan.draft.name, _CANDIDATE, plan.draft.content_hash())
        return {
            "name": plan.draft.name,
            "version": _CANDIDATE,
            "entry": plan.entry,
            "signature": plan.draft.signature,
            "code": plan.draft.code,
            "hash": plan.draft.content_hash(),
        }

    return replace(stored, answer=use_skill)


def _candidate_among(unstored: Mapping[str, TestPlan], stored: Handler) -> Handler:
    async def skill_sources(calls: Calls, *, names: list[Json]) -> Json:
        sources: dict[str, Json] = await stored.answer(calls, names=[key for key in names if key not in unstored])
        for name, plan in unstored.items():
            if name not in names:
                continue
            calls.skill_sources[name] = plan.draft.code
            calls.approvals.take(name, _CANDIDATE, plan.draft.content_hash())
            sources[name] = {"code": plan.draft.code, "entry": plan.entry}
        return sources

    return replace(stored, answer=skill_sources)


async def _allow(_calls: Calls, **_arguments: Json) -> Json:
    return None  # recordings are answers: no tool is called


async def _refuse(_calls: Calls, **_arguments: Json) -> Json:
    raise HostCallError("Skills cannot be saved while the tests of a skill run. Save them from other code.")


def _why(plan: TestPlan, outcome: Outcome) -> str:
    name, error = plan.shown, outcome.error
    what = "The tests" if plan.tests_something else "The code"
    if outcome.status is Status.CRASHED and error is not None:
        # The process may have been ended from outside, so nothing is said of the code.
        return f"{what} of {name} did not run to the end: {error.message.rstrip('.')}.{NOT_SAVED} Save it again."
    advice = f"{NOT_SAVED} Correct the code or the tests."
    if error is None:
        return f"The tests of {name} did not end: {outcome.status}.{advice}"
    lines = plan.draft.tests.splitlines()
    said = f"{error.type}: {error.message}" if error.message else error.type
    where = ""
    line = 0 if error.line is None or plan.tests_are_examples else error.line - bool(plan.given)
    if 0 < line <= len(lines):
        where = f" in line {line}, {lines[line - 1].strip()[:200]!r}"
    within = line_of_skill(plan.draft.name, error.traceback)
    if within is not None:
        where += f" (line {within} of the skill)"
    hint = "" if error.hint is None or error.type == "AssertionError" else f" {error.hint}"
    if within is None and error.type == "TypeError" and f"{plan.entry}()" in error.message:
        hint = f" Its signature is {plan.draft.signature}."
    wrote = "\n".join(filter(None, (outcome.output.strip(), outcome.stderr.strip())))
    shown = f" Its output ended: {wrote[-_OUTPUT_SHOWN_MAX:]!r}." if wrote else ""
    return f"{what} of {name} failed{where}: {said.rstrip('.')}.{hint}{shown}{advice}"


def line_of_skill(name: str, traceback: str | None) -> int | None:
    """Return the innermost line of a skill's own code that a traceback names."""
    found = re.findall(rf'^  File "<skill {re.escape(name)}(?: v\d+)?>", line (\d+)', traceback or "", re.MULTILINE)
    return int(found[-1]) if found else None
