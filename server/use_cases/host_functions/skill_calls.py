"""The host functions of skills: what the code's `skills`, `save_skill`, `load_skill` and `list_skills` call."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from ....sandbox.errors import HostCallError
from ....sandbox.job import Json
from ....skills_db.errors import SkillNotFound
from ....skills_db.skill_md import ORIGIN, files_in
from ...base.host_call import SENT
from ..skills import use_cases as skills
from .broker import Arguments, Calls, host_function

if TYPE_CHECKING:
    from ....skills_db.skills import SkillStore, StoredSkill
    from ..skills.use_cases import SkillContext

SOURCE_CHARS_MAX = 1_000_000
"""Characters of code that `save_skill` looks at; the store may take less."""

SOURCES_CHARS_MAX = 1_000_000
"""Characters of skills whose calls are judged before a program starts, and so may be shown to its user."""
_SOURCES_MAX = 50
_KEY = re.compile(r"(\w{1,200})(?:@([1-9][0-9]{0,8}))?")


@dataclass(frozen=True, slots=True)
class SkillCalls:
    """Answers for skills."""

    context: SkillContext

    @host_function()
    async def use_skill(self, calls: Calls, *, name: str, version: int | None = None) -> Json:
        """Return the code of a skill, which the run then has."""
        skill = await self.context.service.ask(partial(_meant, calls, name, version))
        _take(calls, name, version, skill.version, skill.content_hash)
        calls.skills[skill.name] = skill.version
        _note_sources(calls, skill)
        folder = ORIGIN in skill.draft.extra
        return {"name": skill.name, "signature": skill.draft.signature, "folder": folder, **_code_of(skill)}

    @host_function()
    async def skill_sources(self, calls: Calls, *, names: list[Json]) -> Json:
        """Return `{code, entry, version, hash}` of skills by the keys under which a program names them.

        They are kept for the question that the program may lead to, and these versions are those that run. Skills that
        there are not are left out, and those that would exceed `SOURCES_CHARS_MAX` together.
        """
        wanted = {str(key): asked for key in names[:_SOURCES_MAX] if (asked := _asked(key)) is not None}

        def stored(store: SkillStore) -> dict[str, StoredSkill]:
            found: dict[str, StoredSkill] = {}
            for key, asked in wanted.items():
                with suppress(SkillNotFound):
                    found[key] = _meant(calls, *asked, store)
            return found

        sources: dict[str, Json] = {}
        for key, skill in (await self.context.service.ask(stored)).items():
            if keep_source(calls, key, skill.draft.code):
                _take(calls, *wanted[key], skill.version, skill.content_hash)
                _note_sources(calls, skill)
                sources[key] = _code_of(skill)
        return sources

    @host_function()
    async def skill_files(self, calls: Calls, *, name: str, version: int, path: str | None = None) -> Json:
        """Return the files of a skill's folder in base64 by their paths, or the one of a path."""
        skill = await self.context.service.ask(partial(_meant, calls, name, version))
        files = files_in(skill.draft.extra)
        if path is not None and path not in files:
            raise HostCallError(
                f"The skill {name} has no file {path!r:.100}. It has {', '.join(sorted(files))[:1000]}.",
                type="LookupError",
            )
        wanted = files if path is None else {path: files[path]}
        return {each: b64encode(data).decode() for each, data in wanted.items()}

    @host_function()
    async def load_skill(self, calls: Calls, *, name: str, version: int | None = None) -> Json:
        """Return a skill as the tool of that name does."""
        skill = await self.context.service.ask(partial(_meant, calls, name, version))
        _take(calls, name, version, skill.version, skill.content_hash)
        _note_sources(calls, skill)
        return cast("Json", skills.loaded(skill))

    @host_function(longest={"query": SOURCE_CHARS_MAX})
    async def list_skills(
        self,
        _calls: Calls,
        *,
        query: str | None = None,
        tag: str | None = None,
        limit: int = 50,
        archived: bool = False,
    ) -> Json:
        """Return skills as the tool of that name does."""
        return cast("Json", await skills.listed(self.context, query, tag, limit, archived=archived))

    @host_function()
    async def skill_names(self, _calls: Calls) -> Json:
        """Return the names of all skills."""
        return await self.context.service.ask(lambda store: store.names())

    @host_function(changes=SENT, longest=dict.fromkeys(("code", "description", "tests"), SOURCE_CHARS_MAX))
    async def save_skill(
        self,
        calls: Calls,
        *,
        name: str,
        code: str = "",
        description: str = "",
        tests: str = "",
        tags: list[Json] = [],  # noqa: B006 - never changed
        from_run: str | None = None,
        record: bool = False,
        force: bool = False,
        files: Mapping[str, Json] = MappingProxyType({}),
    ) -> Json:
        """Save a skill as the tool of that name does."""
        wrong = [type(each).__name__ for each in tags if not isinstance(each, str)][:1]
        if wrong:
            raise HostCallError(f"save_skill() got {wrong[0]} among tags. Give texts.", type="TypeError")
        if not all(isinstance(each, str) for each in files.values()):
            raise HostCallError("save_skill() takes files as texts by their names. Give texts.", type="TypeError")
        topics = cast("list[str]", tags)
        request = skills.SaveRequest(
            name, code, description, tests, topics, from_run, record, force, caller=calls.caller, within=calls
        )
        request = replace(request, files={each: str(content).encode() for each, content in files.items()})
        saved = await skills.save(self.context, request)
        if not calls.dry_run:
            calls.approvals.versions[saved["name"]] = saved["version"]
        return cast("Json", saved)


def _code_of(skill: StoredSkill) -> dict[str, Json]:
    draft = skill.draft
    return {
        "code": draft.code,
        "entry": str(draft.extra.get("entry", skill.name)),
        "version": skill.version,
        "hash": skill.content_hash,
    }


def _note_sources(calls: Calls, skill: StoredSkill) -> None:
    sources = calls.outermost.sources
    if sources is not None:
        sources.note_skill(skill.name, skill.draft.extra)


def _meant(calls: Calls, name: str, asked: int | None, store: SkillStore) -> StoredSkill:
    """Return the version that a run means: of a name that it asked for before, the same one. Raises `SkillNotFound`."""
    settled = calls.approvals.versions.get(name) if asked is None else None
    try:
        return store.load(name, settled or asked)
    except SkillNotFound:
        if settled is None:
            raise
        raise SkillNotFound(
            f"Version {settled} of the skill {name!r}, with which this run began, was deleted. Run the program again."
        ) from None


def _take(calls: Calls, name: str, asked: int | None, version: int, content_hash: str, *, again: bool = False) -> None:
    """Note that a run has the code of a version, which from then on its name means, if no version was asked for."""
    if asked is None:
        calls.approvals.versions.setdefault(name, version)
    calls.approvals.take(name, version, content_hash, again=again)


def take_again(calls: Calls, name: str, arguments: Arguments, answer: Json) -> None:
    """Note what the same run was given of skills by an earlier process, from the answer to one of its calls."""
    match name, answer:
        case ("use_skill", {"version": int(version), "hash": str(content_hash)}) | (
            "load_skill",
            {"version": int(version), "metadata": {"content_hash": str(content_hash)}},
        ):
            asked = cast("int | None", arguments.get("version"))
            _take(calls, str(arguments["name"]), asked, version, content_hash, again=True)
        case "skill_sources", dict(sources):
            for key, each in sources.items():
                match each, _asked(key):
                    case {"code": str(code), "version": int(version), "hash": str(content_hash)}, (str(skill), asked):
                        keep_source(calls, key, code)
                        _take(calls, skill, asked, version, content_hash, again=True)
        case "save_skill", {"name": str(skill), "version": int(version)} if not calls.dry_run:
            calls.approvals.versions[skill] = version


def _asked(key: Json) -> tuple[str, int | None] | None:
    """Return the name and the version that a program means by the key of a skill; None where it is none."""
    match = _KEY.fullmatch(key) if isinstance(key, str) else None
    return None if match is None else (match[1], None if match[2] is None else int(match[2]))


def keep_source(calls: Calls, key: str, code: str) -> bool:
    """Keep the code of a skill for the question that a program may lead to; return whether there was room for it."""
    kept = calls.skill_sources
    if len(kept) >= _SOURCES_MAX or sum(map(len, kept.values())) + len(code) > SOURCES_CHARS_MAX:
        return False
    kept[key] = code
    return True
