"""The host functions of skills: what the code's `skills`, `save_skill`, `load_skill` and `list_skills` call."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, cast

from ...sandbox.errors import HostCallError
from ...sandbox.job import Json
from ...skills_db.errors import SkillNotFound
from ..journal.changes import SENT
from ..skills import use_cases as skills
from .broker import Arguments, Calls, Handler

if TYPE_CHECKING:
    from ...skills_db.skills import SkillStore, StoredSkill
    from ..skills.context import SkillContext

SOURCE_CHARS_MAX = 1_000_000
"""Characters of code that `save_skill` looks at; the store may take less."""

SOURCES_CHARS_MAX = 1_000_000
"""Characters of skills whose calls are judged before a program starts, and so may be shown to its user."""
_SOURCES_MAX = 50
_KEY = re.compile(r"(\w{1,200})(?:@([1-9][0-9]{0,8}))?")

_TEXT = (str,)
_TEXT_OR_NONE = (str, type(None))
_WHOLE_OR_NONE = (int, type(None))


def handlers(context: SkillContext) -> Mapping[str, Handler]:
    """Return what answers for skills, by name."""
    return {
        "use_skill": Handler(
            partial(_use_skill, context), {"name": _TEXT, "version": _WHOLE_OR_NONE}, frozenset({"name"})
        ),
        "skill_sources": Handler(partial(_skill_sources, context), {"names": (list,)}, frozenset({"names"})),
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
    skill = await context.service.ask(partial(_meant, calls, arguments))
    _take(calls, arguments, skill.version, skill.content_hash)
    calls.skills[skill.name] = skill.version
    entry = skill.draft.extra.get("entry", skill.name)
    return {
        "name": skill.name,
        "version": skill.version,
        "entry": str(entry),
        "signature": skill.draft.signature,
        "code": skill.draft.code,
        "hash": skill.content_hash,
    }


def _meant(calls: Calls, arguments: Arguments, store: SkillStore) -> StoredSkill:
    """Return the version that a run means: of a name that it asked for before, the same one. Raises `SkillNotFound`."""
    name, asked = cast("str", arguments["name"]), cast("int | None", arguments.get("version"))
    settled = calls.approvals.versions.get(name) if asked is None else None
    try:
        return store.load(name, settled or asked)
    except SkillNotFound:
        if settled is None:
            raise
        raise SkillNotFound(
            f"Version {settled} of the skill {name!r}, with which this run began, was deleted. Run the program again."
        ) from None


def _take(calls: Calls, arguments: Arguments, version: int, content_hash: str, *, again: bool = False) -> None:
    """Note that a run has the code of a version, which from then on its name means, if no version was asked for."""
    name = cast("str", arguments["name"])
    if arguments.get("version") is None:
        calls.approvals.versions.setdefault(name, version)
    calls.approvals.take(name, version, content_hash, again=again)


def take_again(calls: Calls, name: str, arguments: Arguments, answer: Json) -> None:
    """Note what the same run was given of skills by an earlier process, from the answer to one of its calls."""
    match name, answer:
        case ("use_skill", {"version": int(version), "hash": str(content_hash)}) | (
            "load_skill",
            {"version": int(version), "metadata": {"content_hash": str(content_hash)}},
        ):
            _take(calls, arguments, version, content_hash, again=True)
        case "skill_sources", dict(sources):
            for key, each in sources.items():
                match each, _asked(key):
                    case {"code": str(code), "version": int(version), "hash": str(content_hash)}, dict(asked):
                        keep_source(calls, key, code)
                        _take(calls, asked, version, content_hash, again=True)
        case "save_skill", {"name": str(skill), "version": int(version)} if not calls.dry_run:
            calls.approvals.versions[skill] = version


def _asked(key: Json) -> dict[str, Json] | None:
    """Return the name and the version that a program means by the key of a skill; None where it is none."""
    match = _KEY.fullmatch(key) if isinstance(key, str) else None
    return None if match is None else {"name": match[1], "version": None if match[2] is None else int(match[2])}


async def _skill_sources(context: SkillContext, calls: Calls, arguments: Arguments) -> Json:
    """Return `{code, entry, version, hash}` of skills by the keys under which a program names them, of those there are.

    They are kept for the question that the program may lead to, and these versions are those that run. Skills that
    would exceed `SOURCES_CHARS_MAX` together are left out.
    """
    names = cast("Sequence[Json]", arguments["names"])[:_SOURCES_MAX]
    wanted = {str(key): asked for key in names if (asked := _asked(key)) is not None}

    def stored(store: SkillStore) -> dict[str, StoredSkill]:
        found: dict[str, StoredSkill] = {}
        for key, asked in wanted.items():
            with suppress(SkillNotFound):
                found[key] = _meant(calls, asked, store)
        return found

    told: dict[str, Json] = {}
    for key, skill in (await context.service.ask(stored)).items():
        if keep_source(calls, key, skill.draft.code):
            _take(calls, wanted[key], skill.version, skill.content_hash)
            told[key] = {
                "code": skill.draft.code,
                "entry": str(skill.draft.extra.get("entry", skill.name)),
                "version": skill.version,
                "hash": skill.content_hash,
            }
    return told


def keep_source(calls: Calls, key: str, code: str) -> bool:
    """Keep the code of a skill for the question that a program may lead to; return whether there was room for it."""
    kept = calls.skill_sources
    if len(kept) >= _SOURCES_MAX or sum(map(len, kept.values())) + len(code) > SOURCES_CHARS_MAX:
        return False
    kept[key] = code
    return True


async def _load_skill(context: SkillContext, calls: Calls, arguments: Arguments) -> Json:
    skill = await context.service.ask(partial(_meant, calls, arguments))
    _take(calls, arguments, skill.version, skill.content_hash)
    return cast("Json", skills.loaded(skill))


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
    saved = await skills.save(context, request)
    if not calls.dry_run:
        calls.approvals.versions[saved["name"]] = saved["version"]
    return cast("Json", saved)
