"""The host functions of skills: what the code's `skills`, `save_skill`, `load_skill` and `list_skills` call."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, cast

from ...sandbox.errors import HostCallError
from ...sandbox.job import Json
from ..journal.changes import SENT
from ..skills import use_cases as skills
from .broker import Arguments, Calls, Handler

if TYPE_CHECKING:
    from ..skills.context import SkillContext

SOURCE_CHARS_MAX = 1_000_000
"""Characters of code that `save_skill` looks at; the store may take less."""

_TEXT = (str,)
_TEXT_OR_NONE = (str, type(None))
_WHOLE_OR_NONE = (int, type(None))


def handlers(context: SkillContext) -> Mapping[str, Handler]:
    """Return what answers for skills, by name."""
    return {
        "use_skill": Handler(
            partial(_use_skill, context), {"name": _TEXT, "version": _WHOLE_OR_NONE}, frozenset({"name"})
        ),
        "load_skill": Handler(
            partial(_load_skill, context), {"name": _TEXT, "version": _WHOLE_OR_NONE}, frozenset({"name"})
        ),
        "list_skills": Handler(
            partial(_list_skills, context), {"query": _TEXT_OR_NONE, "tag": _TEXT_OR_NONE, "limit": (int,)}, frozenset()
        ),
        "skill_names": Handler(partial(_skill_names, context), {}, frozenset()),
        "save_skill": Handler(
            partial(_save_skill, context),
            {
                **dict.fromkeys(("name", "code", "description", "tests"), _TEXT),
                "tags": (list,),
                "from_run": _TEXT_OR_NONE,
                "record": (bool,),
            },
            frozenset({"name"}),
            dict.fromkeys(("code", "description", "tests"), SOURCE_CHARS_MAX),
            changes=lambda _arguments: SENT,
        ),
    }


async def _use_skill(context: SkillContext, calls: Calls, arguments: Arguments) -> Json:
    name, version = cast("str", arguments["name"]), cast("int | None", arguments.get("version"))
    skill = await skills.stored(context, name, version)
    calls.skills[skill.name] = skill.version
    entry = skill.draft.extra.get("entry", skill.name)
    return {"name": skill.name, "version": skill.version, "entry": str(entry), "code": skill.draft.code}


async def _load_skill(context: SkillContext, _calls: Calls, arguments: Arguments) -> Json:
    name, version = cast("str", arguments["name"]), cast("int | None", arguments.get("version"))
    return cast("Json", await skills.load(context, name, version))


async def _list_skills(context: SkillContext, _calls: Calls, arguments: Arguments) -> Json:
    query, tag = cast("str | None", arguments.get("query")), cast("str | None", arguments.get("tag"))
    return cast("Json", await skills.listed(context, query, tag, cast("int", arguments.get("limit", 50))))


async def _skill_names(context: SkillContext, _calls: Calls, _arguments: Arguments) -> Json:
    return await context.service.ask(lambda store: store.names())


async def _save_skill(context: SkillContext, calls: Calls, arguments: Arguments) -> Json:
    tags = cast("list[Json]", arguments.get("tags", []))
    wrong = [type(each).__name__ for each in tags if not isinstance(each, str)][:1]
    if wrong:
        raise HostCallError(f"save_skill() got {wrong[0]} among tags. Give texts.", type="TypeError")
    request = skills.SaveRequest(
        name=cast("str", arguments["name"]),
        code=cast("str", arguments.get("code", "")),
        description=cast("str", arguments.get("description", "")),
        tests=cast("str", arguments.get("tests", "")),
        tags=cast("list[str]", tags),
        from_run=cast("str | None", arguments.get("from_run")),
        record=bool(arguments.get("record", False)),
        caller=calls.caller,
        within=calls,
    )
    return cast("Json", await skills.save(context, request))
