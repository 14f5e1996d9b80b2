"""`sealab skills`: keeps, runs and tests skills, and carries them in and out."""
# ruff: noqa: T201 - printing is what a command line does

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from ...sandbox.job import Status
from ..caller import LOCAL
from ..errors import EXIT_OF_STATUS, Exit, RequestRefused, SkillUnfit, UsageError
from ..home import Home
from ..runs.isolations import AUTO, CHOICES
from ..settings import Settings
from .audit.telling import tell
from .group import Begin, Options, Parser, add_commands
from .terminal import print_error, print_run, read_source

if TYPE_CHECKING:
    from ..app import App

Work = Callable[[argparse.Namespace, "App"], Awaitable[int]]


def add_to(parser: argparse.ArgumentParser, begin: Begin, options: Options) -> None:
    """Give the parser of `sealab skills` its commands; `options` adds those that all commands have."""
    add = add_commands(parser, begin, options)

    def make(name: str, work: Work, help_text: str, *, own_help: bool = False) -> Parser:
        command = add(name, lambda _chosen, _home: Exit.OK, help_text, own_help=own_help)
        command.set_defaults(command=lambda chosen: asyncio.run(_working(work, chosen, *begin(chosen))))
        return command

    found = make("list", _list, "list skills, or search them")
    found.add_argument("query", metavar="QUERY", nargs="*", help="what the skill should do")
    found.add_argument("--tag", help="only skills with this tag")
    found.add_argument("--limit", type=int, default=50, help="how many to show (default: 50)")
    show = make("show", _show, "show a skill's code and parameters")
    show.add_argument("name", metavar="NAME", help="the skill")
    show.add_argument("--version", type=int, dest="skill_version", help="the version (default: the newest)")
    save = make("save", _save, "save a Python file as a skill, when its tests pass")
    save.add_argument("name", metavar="NAME", help="the skill's name")
    save.add_argument("file", metavar="FILE", nargs="?", help="the Python file, or - for stdin")
    save.add_argument("--description", default="", help="what it does (default: its docstring)")
    save.add_argument("--tests", metavar="FILE", help="a Python file of tests: asserts, or test functions")
    save.add_argument("--tag", action="append", default=[], help="a tag; may be repeated")
    save.add_argument("--from-run", metavar="RUN_ID", help="save the code of a finished run instead of a file")
    save.add_argument(
        "--parameter", action="append", default=[], metavar="VARIABLE", help="with --from-run: a variable to ask for"
    )
    save.add_argument("--record", action="store_true", help="keep the upstream answers that the tests meet")
    run = make("run", _run, "run a skill; its parameters are options", own_help=True)
    run.takes_options = True
    run.usage = "sealab skills run NAME [options] [--PARAMETER VALUE ...]"
    run.add_argument("name", metavar="NAME", nargs="?", help="the skill; NAME --help shows its parameters")
    run.add_argument("--skill-version", type=int, help="the version (default: the newest)")
    run.add_argument("--timeout", metavar="S", type=float, help="seconds the run may take")
    run.add_argument("--memory", metavar="MB", type=int, help="megabytes the run may use")
    run.add_argument("--isolation", choices=CHOICES, default=AUTO, help="what keeps the code apart")
    test = make("test", _test, "run the tests of skills, offline")
    test.add_argument("names", metavar="NAME", nargs="*", help="the skills (default: all)")
    test.add_argument("--record", action="store_true", help="call upstream tools, and keep what they answer")
    _add_housekeeping(make)


def _add_housekeeping(make: Callable[[str, Work, str], Parser]) -> None:
    delete = make("delete", _delete, "delete a skill, or bring it back")
    delete.add_argument("name", metavar="NAME", help="the skill")
    which = delete.add_mutually_exclusive_group()
    which.add_argument("--restore", action="store_true", help="bring back what was deleted")
    which.add_argument("--purge", action="store_true", help="remove what was deleted for good")
    purge = make("purge", _purge, "remove deleted skills for good")
    purge.add_argument("--days", type=float, default=0.0, help="only those deleted so many days ago (default: 0)")
    export = make("export", _export, "write skills as Agent Skills folders")
    export.add_argument("folder", type=_path, metavar="DIR", help="where to write them, one folder each")
    export.add_argument("names", metavar="NAME", nargs="*", help="the skills (default: all)")
    bring = make("import", _import, "read skills from folders, files or archives; nothing of them runs")
    bring.add_argument("sources", type=_path, metavar="DIR|FILE|ZIP", nargs="*", help="a skill, or what holds skills")
    bring.add_argument("--examples", action="store_true", help="the skills that sealab brings along")
    backup = make("backup", _backup, "write all skills and run records into one archive")
    backup.add_argument("file", type=_path, metavar="FILE", help="the archive to write")
    backup.add_argument("--overwrite", action="store_true", help="replace an existing file")
    restore = make("restore", _restore, "restore the skills of an archive")
    restore.add_argument("file", type=_path, metavar="FILE", help="the archive to read")
    restore.add_argument("--replace", action="store_true", help="let the archive win where the two contradict")


async def _working(work: Work, chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    async with _app(settings, home) as app:
        return await work(chosen, app)


@asynccontextmanager
async def _app(settings: Settings, home: Home) -> AsyncIterator[App]:
    from ..app import running

    async with running(replace(settings, workers_spare=0), home) as app:
        yield app


async def _list(chosen: argparse.Namespace, app: App) -> int:
    from ..skills import use_cases as skills

    try:
        found = await skills.listed(app.skills, " ".join(chosen.query) or None, chosen.tag, chosen.limit)
    except RequestRefused as error:
        raise UsageError(str(error)) from None
    if chosen.json:
        print(json.dumps(found, ensure_ascii=False))
        return Exit.OK
    for each in found["skills"]:
        print(each["signature"] or each["name"])
        for line in each["description"].splitlines():
            print(f"    {line}")
    if not found["skills"]:
        print_error("There are no such skills. `sealab skills save` and `sealab skills import --examples` make some.")
    elif found["count"] > len(found["skills"]):
        print_error(f"{found['count'] - len(found['skills'])} more. Raise --limit to see them.")
    return Exit.OK


async def _show(chosen: argparse.Namespace, app: App) -> int:
    from ..skills import use_cases as skills

    loaded = await skills.load(app.skills, chosen.name, chosen.skill_version)
    if chosen.json:
        print(json.dumps(loaded, ensure_ascii=False))
        return Exit.OK
    metadata = loaded["metadata"]
    print(f"{loaded['signature']}  (version {loaded['version']})")
    if loaded["description"]:
        print("\n".join(f"    {line}" for line in loaded["description"].splitlines()))
    for key in ("tags", "tools", "skills", "modules"):
        values = metadata[key]
        if isinstance(values, list) and values:
            print(f"{key}: {', '.join(map(str, values))}")
    print(f"\n{loaded['code'].rstrip()}")
    return Exit.OK


async def _save(chosen: argparse.Namespace, app: App) -> int:
    from ..skills import use_cases as skills

    tell(chosen, name=await skills.name_noted(app.skills, LOCAL, chosen.name))
    if (chosen.file is None) == (chosen.from_run is None):
        raise UsageError("Give either a FILE of Python code or --from-run RUN_ID.")
    if chosen.parameter and chosen.from_run is None:
        raise UsageError("--parameter goes with --from-run only. In a file, write a function with parameters.")
    saved = await skills.save(
        app.skills,
        skills.SaveRequest(
            name=chosen.name,
            code=",".join(chosen.parameter) if chosen.from_run is not None else read_source(chosen.file),
            description=chosen.description,
            tests="" if chosen.tests is None else read_source(chosen.tests),
            tags=chosen.tag,
            from_run=chosen.from_run,
            record=chosen.record,
        ),
    )
    print(
        json.dumps(saved, ensure_ascii=False) if chosen.json else f"{saved['signature']}  (version {saved['version']})"
    )
    for warning in () if chosen.json else saved["warnings"]:
        print_error(f"sealab: {warning}")
    return Exit.OK


async def _run(chosen: argparse.Namespace, app: App) -> int:
    from ..skills import use_cases as skills
    from .skill_options import arguments_of, stdin_text

    if chosen.name is None:
        if not {"-h", "--help"}.isdisjoint(chosen.words):
            print("usage: sealab skills run NAME [options] [--PARAMETER VALUE ...]")
            print("\nRun a skill; its parameters are options. `sealab skills run NAME --help` shows them.")
            print("Options: --json --timeout S --memory MB --isolation LEVEL --skill-version N --home DIR --debug")
            return Exit.OK
        raise UsageError("No skill is named. Write sealab skills run NAME; `sealab skills list` shows their names.")
    skill = await skills.stored(app.skills, chosen.name, chosen.skill_version)
    arguments = arguments_of(skill.draft, chosen.words, stdin_text)
    execution = await skills.run(
        app.skills,
        skills.RunSkillRequest(
            name=skill.name,
            arguments=arguments,
            version=skill.version,
            timeout_seconds=chosen.timeout,
            memory_mb=chosen.memory,
            isolation=chosen.isolation,
        ),
    )
    if chosen.json:
        print(json.dumps(execution.report, ensure_ascii=False))
    else:
        print_run(execution.report)
    return EXIT_OF_STATUS[Status(execution.report["status"])]


async def _test(chosen: argparse.Namespace, app: App) -> int:
    from ..skills import use_cases as skills

    names = chosen.names or list(await app.skills.service.ask(lambda store: store.names()))
    told: list[dict[str, object]] = []
    for name in names:
        plan = skills.plan_of((await skills.stored(app.skills, name)).draft)
        entry: dict[str, object] = {"name": name, "ok": True, "tested": plan.tests_something, "problem": None}
        try:
            await skills.examine(app.skills, name, record=chosen.record)
        except SkillUnfit as error:
            said = str(error)  # which ends with what it means for a save
            entry |= {"ok": False, "problem": said.rpartition(" Nothing was saved.")[0] or said}
        told.append(entry)
        if not chosen.json:
            print(f"{'ok' if entry['ok'] else 'failed':<8}{name}{'' if plan.tests_something else '  (no tests)'}")
            if entry["problem"]:
                print_error(f"sealab: {entry['problem']}")
    failed = sum(not entry["ok"] for entry in told)
    if chosen.json:
        print(json.dumps({"tests": told, "passed": len(told) - failed, "failed": failed}, ensure_ascii=False))
    return Exit.FAILED if failed else Exit.OK


async def _delete(chosen: argparse.Namespace, app: App) -> int:
    from ..skills import use_cases as skills

    tell(chosen, name=await skills.name_noted(app.skills, LOCAL, chosen.name))
    if chosen.restore:
        versions = await app.skills.service.ask(lambda store: store.restore(chosen.name))
        told: dict[str, object] = {"name": chosen.name, "restored_versions": len(versions)}
    elif chosen.purge:
        purged = await app.skills.service.ask(lambda store: store.purge(chosen.name))
        told = {"name": chosen.name, "purged_versions": purged}
    else:
        told = dict(await skills.delete(app.skills, chosen.name))
    _print_saved(chosen, told)
    return Exit.OK


async def _purge(chosen: argparse.Namespace, app: App) -> int:
    before = datetime.now(UTC) - timedelta(days=chosen.days)
    purged = await app.skills.service.ask(lambda store: store.purge(deleted_before=before))
    _print_saved(chosen, {"purged_versions": purged})
    return Exit.OK


async def _export(chosen: argparse.Namespace, app: App) -> int:
    from ..skills.files import export_to

    folder: Path = chosen.folder
    exported = await export_to(app.skills, folder, chosen.names)
    if chosen.json:
        print(json.dumps({"folder": str(folder), "skills": {name: str(path) for name, path in exported}}))
    for name, path in () if chosen.json else exported:
        print(f"{name}  {path}")
    return Exit.OK


async def _import(chosen: argparse.Namespace, app: App) -> int:
    from ..skills.files import EXAMPLES, import_from

    if bool(chosen.sources) == chosen.examples:
        raise UsageError("Name a folder, file or archive to import, or give --examples.")
    sources = [EXAMPLES] if chosen.examples else chosen.sources
    imported = [each for source in sources for each in await import_from(app.skills, source)]
    if chosen.json:
        print(json.dumps({"skills": [asdict(each) for each in imported]}, ensure_ascii=False))
    for each in imported:
        if each.refused is not None:
            print_error(f"sealab: {each.folder}: {each.refused}")
        elif not chosen.json:
            print(f"{each.name}  (version {each.version}{'' if each.created else ', already there'})")
        if each.left_out:
            print_error(
                f"sealab: {each.name}: its tag {each.left_out[0]!r} was left out: a file does not decide who may run a "
                f"skill. `sealab skills save {each.name} FILE --tag {each.left_out[0]}` does."
            )
    return Exit.FAILED if any(each.refused is not None for each in imported) else Exit.OK


async def _backup(chosen: argparse.Namespace, app: App) -> int:
    from ...skills_db.backup import backup

    made = await asyncio.to_thread(lambda: backup(app.database(), chosen.file, overwrite=chosen.overwrite))
    _print_saved(chosen, {**asdict(made), "path": str(made.path)})
    return Exit.OK


async def _restore(chosen: argparse.Namespace, app: App) -> int:
    from ...skills_db.backup import restore

    restored = await asyncio.to_thread(lambda: restore(app.database(), chosen.file, replace=chosen.replace))
    _print_saved(chosen, asdict(restored))
    return Exit.OK


def _print_saved(chosen: argparse.Namespace, told: dict[str, object]) -> None:
    if chosen.json:
        print(json.dumps(told, ensure_ascii=False, default=str))
        return
    print("  ".join(f"{key.replace('_', ' ')}: {value}" for key, value in told.items()))


def _path(text: str) -> Path:
    return Path(text).expanduser().absolute()
