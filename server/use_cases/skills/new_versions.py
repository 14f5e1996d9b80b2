"""A new version of a skill beside the last one: what it keeps of it, what it breaks, and what it changes."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from ....skills_db.content import LISTED_MAX_CHARS
from ....skills_db.skill_md import EXTRA_KEYS, ORIGIN
from ...base.errors import ServerError, SkillUnfit
from ...base.identity import Right
from .recordings import Replay
from .testing import TEST_FILES, TestPlan, cause_of, plan_of, run_tests

if TYPE_CHECKING:
    from ....sandbox.job import Json
    from ....skills_db.content import SkillDraft
    from ....skills_db.skills import StoredSkill
    from ...governance.caller import Caller
    from ..host_functions.broker import Calls
    from ..runs.executor import Executor
    from .source_facts import SkillFacts

TESTED_MAX = 20
"""Skills that call a new version whose tests are run."""


@dataclass(slots=True)
class Judged:
    """What tests of before said of a new version: each that `failed`, those that `passed`, and the `untested`."""

    failed: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    untested: list[str] = field(default_factory=list)


def kept_tags(tags: Sequence[str], last: StoredSkill | None) -> Sequence[str]:
    """Return the tags, or those of the last version where there are none; it is published by a new one's word alone."""
    if tags or last is None:
        return tags
    from ....skills_db.tenants.shelf import publishing

    return [tag for tag in last.draft.tags if not publishing([tag])]


def kept_description(description: str, facts: SkillFacts, last: StoredSkill | None) -> str:
    """Return the description, or that of the last version where the docstring says nothing new."""
    if description.strip() or last is None:
        return description
    documented = last.draft.extra.get("docstring", None if facts.description else "")
    return last.draft.description if facts.description[:LISTED_MAX_CHARS] in {"", documented} else ""


def kept_files(files: Mapping[str, bytes], last: StoredSkill | None) -> dict[str, Json]:
    """Return what goes along with the code: what the last version brought, and the files that tests are given."""
    held = {} if last is None or ORIGIN in last.draft.extra else last.draft.extra
    kept = {key: value for key, value in held.items() if key in EXTRA_KEYS}
    for name, data in files.items():
        path = TEST_FILES + name
        parts = {part: {**cast("Mapping[str, str]", kept.get(part, {}))} for part in ("files", "assets")}
        for each in parts.values():
            each.pop(path, None)
        try:
            parts["files"][path] = data.decode()
        except UnicodeDecodeError:
            parts["assets"][path] = b64encode(data).decode()
        kept |= {part: each for part, each in parts.items() if each}
    return kept


async def judged(
    executor: Executor,
    draft: SkillDraft,
    last: StoredSkill,
    users: Sequence[SkillDraft],
    *,
    caller: Caller,
    within: Calls | None,
) -> Judged:
    """Run the tests of the last version, where there are others now, and those of skills that use it, on new code.

    They are run offline: tools answer from recordings. `users` are the newest versions of the skills that use it.
    """
    found, plan = Judged(), plan_of(draft)
    plans: list[TestPlan] = []
    if last.draft.tests.strip() and last.draft.tests != draft.tests:
        tests = {key: last.draft.extra.get(key) for key in ("test_functions", "tests_are_examples")}
        extra = {**draft.extra, **tests, "docstring_has_examples": False}
        earlier = replace(draft, tests=last.draft.tests, recordings=last.draft.recordings, extra=extra)
        plans.append(replace(plan_of(earlier), called=f"version {last.version}"))
    if users and not caller.identity.may(Right.SKILLS_READ):
        found.untested.append("the skills that use it, for which the token has no scope skills:read")
        users = ()
    for user in users:
        if not plan_of(user).tests_something:
            found.untested.append(f"{user.name}, which has no tests")
        elif len(plans) < TESTED_MAX:
            plans.append(plan_of(user))
        else:
            found.untested.append(f"{user.name}, one of more than {TESTED_MAX}")
    for each in plans:
        replay = Replay(each.draft.recordings)
        try:
            await run_tests(executor, each, caller=caller, within=within, replay=replay, beside=plan)
        except SkillUnfit as error:
            if replay.missed is None:
                found.failed.append(cause_of(error))
            else:
                found.untested.append(f"{each.shown}, whose tests call {replay.missed}, which was not recorded")
        except ServerError as error:
            found.untested.append(f"{each.shown}: {error}")
        else:
            found.passed.append(each.shown)
    return found


def change_of(draft: SkillDraft, last: StoredSkill, tests: Judged) -> str:
    """Describe in one line what a version changes: parameters and result, what callers must do, and how it was tested.

    Empty where it holds what the last one did.
    """
    old, changes = last.draft, []
    if draft.signature != old.signature:
        changes.append(f"{old.signature} is now {draft.signature}")
        changes += [f"callers must give {name}" for name in sorted(_needed(draft) - _needed(old))]
        changes += [f"takes no {name} any more" for name in sorted(_taken(old) - _taken(draft))]
    elif draft.code != old.code:
        changes.append("the same signature, other code")
    changes += [
        f"other {part}" for part in ("description", "tags", "tests") if getattr(draft, part) != getattr(old, part)
    ]
    if draft.code != old.code:
        changes += [f"passes the tests of {', '.join(tests.passed)}"] if tests.passed else []
        changes += [f"{len(tests.failed)} tests of before fail"] if tests.failed else []
    return f"Since version {last.version}: {'; '.join(changes)}." if changes else ""


def _needed(draft: SkillDraft) -> set[str]:
    return set(cast("Sequence[str]", draft.parameters.get("required", ())))


def _taken(draft: SkillDraft) -> set[str]:
    return set(cast("Mapping[str, Json]", draft.parameters.get("properties", {})))
