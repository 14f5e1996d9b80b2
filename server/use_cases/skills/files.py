"""Skills going out into Agent Skills folders and coming in from them. Nothing that comes in is run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, cast

import anyio.to_thread

from ....sandbox.job import Json, SourceReading
from ....skills_db.content import LISTED_MAX_CHARS
from ....skills_db.errors import SkillNotFound, SkillRefused, SkillsDbError
from ....skills_db.skill_md import ORIGIN, folder_name, portable, read, written
from ...base.errors import ServerError, SkillNameRefused, SkillUnfit, UsageError
from ...base.host_work import Kind, in_thread
from ...base.startup.package_names import distribution_of, installed_distributions, module_of
from . import use_cases as skills
from .skill_arguments import NAME_CHARS_MAX, judge_name
from .source_facts import SOURCE_CHARS_MAX, SkillFacts, facts_of

if TYPE_CHECKING:
    from ....skills_db.content import SkillDraft
    from ....skills_db.skill_md import PortableSkill
    from ....skills_db.skills import StoredSkill
    from .use_cases import SkillContext

_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_REQUIRED_MAX = 100
_THEIRS = "[imported, written by others]"
EXAMPLES = Path(__file__).resolve().parents[3] / "skills_db" / "examples"


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of one folder: the skill's name and version, or why it was refused.

    `left_out` are tags that a file cannot give, since they decide who may read and run the skill. `brought` counts what
    came along: `files`, `assets`, `tests`, `recordings`. Of a folder of others `scripts` are what can be called of it,
    `packages` what these need and full Python lacks, `modules` what they import of packages that are not known, and
    `wants_full_python` says why they cannot run yet.
    """

    folder: str
    name: str | None
    version: int | None
    created: bool
    refused: str | None
    left_out: tuple[str, ...] = ()
    brought: Mapping[str, int] = field(default_factory=dict)
    scripts: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    wants_full_python: str | None = None


async def import_from(
    context: SkillContext, source: Path, only: Sequence[str] = (), *, update: bool = False
) -> list[Imported]:
    """Store the skills of a folder, file or archive, their tests unrun; with `update` also as versions of those stored.

    Raises `SkillRefused`.
    """
    from ....skills_db.skill_folders import found

    folders = await anyio.to_thread.run_sync(found, source)
    return [
        await _imported(context, folder, files, update=update)
        for folder, files in folders.items()
        if not only or folder in only
    ]


async def export_to(context: SkillContext, target: Path, names: Iterable[str] = ()) -> list[tuple[str, Path]]:
    """Write skills, all by default, with those they use, as folders below `target`; return each with its folder.

    Raises `UsageError`.
    """
    known = list(await context.service.ask(lambda store: store.names()))
    wanted = list(names) or known
    if target.name in known and not set(wanted) <= set(known):
        raise UsageError(f"{target.name} is a skill, and the folder comes first. Use `sealab skills export DIR NAME`.")
    exported: list[tuple[str, Path]] = []
    for name in wanted:
        skill = await skills.stored(context, name)
        wanted += [used for used in skill.draft.skills if used in known and used not in wanted]
        exported.append((name, await anyio.to_thread.run_sync(_write, target, skill)))
    return exported


def files_of(skill: StoredSkill) -> tuple[str, dict[str, bytes]]:
    """Return a stored skill's folder: its name, and its files by their paths in it."""
    return folder_name(skill.name), written(portable(skill.draft), skill.draft)


async def _imported(
    context: SkillContext, folder: str, files: Mapping[str, bytes] | SkillRefused, *, update: bool
) -> Imported:
    from ....skills_db.tenants.shelf import is_shared, publishing

    name: str | None = None
    left_out: tuple[str, ...] = ()
    try:
        if isinstance(files, SkillRefused):
            raise files
        own_name = PurePosixPath(folder).name
        skill = await _callable(context, read(own_name, files), read(own_name, files, as_folder=True))
        name = skill.name if ORIGIN not in skill.extra else await _free_name(context, skill, update=update)
        judge_name(name)
        if await context.service.ask(lambda store: is_shared(store, name)):
            raise SkillRefused(
                f"The skill {name} is on the shelf of all tenants, which no file from outside changes. Delete it "
                "first, or give the file's skill another name."
            )
        left_out = publishing(skill.tags)
        facts = await _facts(context, name, skill)
        draft = skills.draft_from(
            name,
            facts,
            description=skill.description
            if ORIGIN not in skill.extra
            else f"{_THEIRS} {skill.description}"[:LISTED_MAX_CHARS],
            tests=skill.tests,
            tags=[tag for tag in skill.tags if tag not in left_out],
            recordings=skill.recordings,
            more={**skill.extra, **_scripts_of(facts)},
        )
        if ORIGIN not in skill.extra and not update:
            await _refuse_change(context, draft)
        saved = await context.service.ask(lambda store: store.save(draft))
    except (ServerError, SkillsDbError) as error:
        return Imported(folder, name, None, created=False, refused=str(error))
    packages, modules = await _needs(context, draft) if draft.extra.get("scripts") else ((), ())
    return Imported(
        folder,
        name,
        saved.version,
        created=saved.created,
        refused=None,
        left_out=left_out,
        brought=_brought(draft),
        scripts=tuple(map(str, cast("Sequence[str]", draft.extra.get("scripts", ())))),
        packages=packages,
        modules=modules,
        wants_full_python=context.executor.offer.full_python.why_not() if draft.extra.get("scripts") else None,
    )


async def _callable(context: SkillContext, skill: PortableSkill, folder: PortableSkill) -> PortableSkill:
    """Return a skill as a function where its code can be one, such as in the dialect, else as a folder of others."""
    if ORIGIN in skill.extra or ORIGIN not in folder.extra:
        return skill
    try:
        await _facts(context, skill.name, skill)
    except SkillUnfit:
        return folder
    return skill


async def _facts(context: SkillContext, name: str, skill: PortableSkill) -> SkillFacts:
    """Read the code of a skill, or make it of the folder of others, whose scripts run in full Python."""
    if ORIGIN not in skill.extra:
        return await facts_of(context.executor, skill.code, SourceReading(name, skill.tests), nested=False)
    texts = cast("Mapping[str, str]", skill.extra["files"])
    sources = {path: text for path, text in sorted(texts.items()) if path.endswith(".py")}
    while sum(map(len, sources.values())) > SOURCE_CHARS_MAX:
        del sources[max(sources, key=lambda path: len(sources[path]))]
    facts = await facts_of(context.executor, "pass", SourceReading(name, scripts=sources), nested=False)
    return replace(facts, wider="script" in cast("Mapping[str, Json]", facts.parameters["properties"]))


async def _free_name(context: SkillContext, skill: PortableSkill, *, update: bool) -> str:
    """Return the name, with a number where a skill that holds something else has it."""
    name = skill.name
    try:
        judge_name(name)
    except SkillNameRefused:
        name = f"skill_{name}"[: NAME_CHARS_MAX - 4]
    if update:
        return name
    for number in count(1):
        wanted = name if number == 1 else f"{name}_{number}"
        try:
            held = (await skills.stored(context, wanted)).draft.extra
        except SkillNotFound:
            break
        if all(held.get(part) == skill.extra.get(part) for part in ("origin", "files", "assets")):
            break
    return wanted


async def _refuse_change(context: SkillContext, draft: SkillDraft) -> None:
    try:
        held = await skills.stored(context, draft.name)
    except SkillNotFound:
        return
    if held.content_hash != draft.content_hash():
        raise SkillRefused(
            f"There is another skill {draft.name}. With --update this becomes its version {held.latest + 1}; or give "
            "the skill in the folder another name."
        )


async def _needs(context: SkillContext, draft: SkillDraft) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the packages that a skill needs and full Python lacks, and the modules whose packages are not known.

    Where the folder has a `requirements.txt`, that names the packages of modules that are not known.
    """
    await in_thread(Kind.FILES, installed_distributions, charged=False)
    full_python = context.executor.offer.full_python
    lacking = {each: distribution_of(each) for each in draft.modules if not full_python.has_one_of((each,))}
    required = [each for each in _required(draft) if not full_python.has_one_of((module_of(each),))]
    known = {each.lower().replace("_", "-"): each for each in (*filter(None, lacking.values()), *required)}
    unknown = () if required else tuple(module for module, package in lacking.items() if package is None)
    return tuple(known.values()), unknown


def _required(draft: SkillDraft) -> list[str]:
    """Return the packages that the folder's `requirements.txt` names, without versions, options and addresses."""
    texts = cast("Mapping[str, str]", draft.extra.get("files", {}))
    lines = (
        line.strip()
        for path, text in texts.items()
        if PurePosixPath(path).name == "requirements.txt"
        for line in text.splitlines()
    )
    found = (_REQUIREMENT.match(line) for line in lines if "://" not in line)
    return list(dict.fromkeys(match[0] for match in found if match))[:_REQUIRED_MAX]


def _scripts_of(facts: SkillFacts) -> dict[str, Json]:
    """Return the names of the scripts that a skill made of a folder has: the choices of its parameter `script`."""
    if not facts.wider or not isinstance(script := facts.parameters["properties"], Mapping):
        return {}
    return {"scripts": _choices(script.get("script"))}


def _choices(schema: Json) -> list[Json]:
    if not isinstance(schema, Mapping):
        return []
    found = schema.get("enum", [])
    parts = schema.get("anyOf", [])
    inner = [each for part in cast("Sequence[Json]", parts) for each in _choices(part)]
    return [each for each in (*cast("Sequence[Json]", found), *inner) if each is not None]


def _brought(draft: SkillDraft) -> dict[str, int]:
    files, assets = (cast("Mapping[str, str]", draft.extra.get(part, {})) for part in ("files", "assets"))
    recordings = draft.recordings if isinstance(draft.recordings, Sequence) else ()
    counts = {"files": len(files), "assets": len(assets), "tests": bool(draft.tests), "recordings": len(recordings)}
    return {part: int(number) for part, number in counts.items() if number}


def _write(target: Path, skill: StoredSkill) -> Path:
    name, files = files_of(skill)
    folder = target / name
    try:
        for path, data in files.items():
            parts = PurePosixPath(path).parts
            if not parts or path.startswith("/") or ".." in parts:
                raise UsageError(
                    f"The skill {skill.name} holds a file {path!r:.80}, which would lie outside of {target}."
                )
            place = folder
            for part in parts[:-1]:
                _make(place)
                place /= part
            _make(place)
            handle = os.open(
                place / parts[-1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644
            )
            with os.fdopen(handle, "wb") as file:
                file.write(data)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror}. Name a folder that can be.") from None
    return folder


def _make(folder: Path) -> None:
    if folder.is_symlink():
        raise UsageError(f"{folder} is a symbolic link. Name a folder without links in it.")
    folder.mkdir(parents=True, exist_ok=True)
