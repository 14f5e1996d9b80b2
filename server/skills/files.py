"""Skills going out into Agent Skills folders and coming in from them. Nothing that comes in is run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import anyio.to_thread

from ...sandbox.job import Reading
from ...skills_db.errors import SkillRefused, SkillsDbError
from ..errors import ServerError, UsageError
from . import use_cases as skills
from .skill_arguments import judge_name
from .source_facts import facts_of

if TYPE_CHECKING:
    from ...skills_db.skills import StoredSkill
    from .use_cases import SkillContext

EXAMPLES = Path(__file__).resolve().parents[2] / "skills_db" / "examples"


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of one folder: the skill's name and version, or why it was refused.

    `left_out` are tags that a file cannot give, since they decide who may read and run the skill.
    """

    folder: str
    name: str | None
    version: int | None
    created: bool
    refused: str | None
    left_out: tuple[str, ...] = ()


async def import_from(context: SkillContext, source: Path, only: Sequence[str] = ()) -> list[Imported]:
    """Store the skills of a folder, file or archive as new versions, their tests unrun. Raises `SkillRefused`."""
    from ...skills_db.skill_folders import found

    folders = await anyio.to_thread.run_sync(found, source)
    return [await _imported(context, folder, files) for folder, files in folders.items() if not only or folder in only]


async def export_to(context: SkillContext, target: Path, names: Iterable[str] = ()) -> list[tuple[str, Path]]:
    """Write skills, all by default, as folders below `target`; return each with its folder. Raises `UsageError`."""
    known = list(await context.service.ask(lambda store: store.names()))
    wanted = list(names) or known
    if target.name in known and not set(wanted) <= set(known):
        raise UsageError(f"{target.name} is a skill, and the folder comes first. Use `sealab skills export DIR NAME`.")
    exported: list[tuple[str, Path]] = []
    for name in wanted:
        skill = await skills.stored(context, name)
        exported.append((name, await anyio.to_thread.run_sync(_write, target, skill)))
    return exported


def files_of(skill: StoredSkill) -> tuple[str, dict[str, bytes]]:
    """Return a stored skill's folder: its name, and its files by their paths in it."""
    from ...skills_db.skill_md import folder_name, portable, written

    return folder_name(skill.name), written(portable(skill.draft), skill.draft)


async def _imported(context: SkillContext, folder: str, files: Mapping[str, bytes] | SkillRefused) -> Imported:
    from ...skills_db.skill_md import read
    from ...skills_db.tenants.shelf import is_shared, publishing

    name: str | None = None
    left_out: tuple[str, ...] = ()
    try:
        if isinstance(files, SkillRefused):
            raise files
        skill = read(folder, files)
        name = skill.name
        judge_name(name)
        if await context.service.ask(lambda store: is_shared(store, name)):
            raise SkillRefused(
                f"The skill {name} is on the shelf of all tenants, which no file from outside changes. Delete it "
                "first, or give the file's skill another name."
            )
        left_out = publishing(skill.tags)
        facts = await facts_of(context.executor, skill.code, Reading(name, skill.tests), nested=False)
        draft = skills.draft_from(
            name,
            facts,
            description=skill.description,
            tests=skill.tests,
            tags=[tag for tag in skill.tags if tag not in left_out],
            recordings=skill.recordings,
            more=skill.extra,
        )
        saved = await context.service.ask(lambda store: store.save(draft))
    except (ServerError, SkillsDbError) as error:
        return Imported(folder, name, None, created=False, refused=str(error))
    return Imported(folder, name, saved.version, created=saved.created, refused=None, left_out=left_out)


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
