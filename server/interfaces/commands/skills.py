"""`sealab skills`: stores, runs and tests skills, imports and exports them, and backs all of them up."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from ....skills_db import backup as archives
from ...base.errors import Exit, RequestRefused, SkillUnfit, UsageError
from ...governance.caller import LOCAL
from ...use_cases.skills import testing, use_cases
from ...use_cases.skills.files import EXAMPLES, export_to, import_from
from .command import AuditedAs, Group
from .opened import opened_app
from .skill_options import arguments_of
from .terminal import Here, IsolationChoice, Output, print_error, read_bytes, read_source, report_output

if TYPE_CHECKING:
    from ...app import App
    from ...use_cases.skills.files import Imported

skills = Group(of_tenant=True, opens=opened_app)


@skills.command()
async def list_(
    _here: Here,
    app: App,
    query: Sequence[str] = (),
    *,
    tag: str | None = None,
    limit: int = 50,
    archived: bool = False,
) -> Output:
    """List skills, or search them.

    query: what the skill should do
    tag: only skills with this tag
    limit: how many to show (default: 50)
    archived: only those that are archived
    """
    try:
        found = await use_cases.listed(app.skills, " ".join(query) or None, tag, limit, archived=archived)
    except RequestRefused as error:
        raise UsageError(str(error)) from None

    def shown() -> None:
        for each in found["skills"]:
            print(each["signature"] or each["name"])
            for line in each["description"].splitlines():
                print(f"    {line}")
        if not found["skills"]:
            print_error(
                "There are no such skills. `sealab skills save` and `sealab skills import --examples` make some."
            )
        elif found["count"] > len(found["skills"]):
            print_error(f"{found['count'] - len(found['skills'])} more. Raise --limit to see them.")

    return Output(found, shown)


@skills.command()
async def show(_here: Here, app: App, name: str, *, version: int | None = None) -> Output:
    """Show a skill's code and parameters.

    name: the skill
    version: the version (default: the newest)
    """
    loaded = await use_cases.load(app.skills, name, version)
    lines = [f"{loaded['signature']}  (version {loaded['version']})"]
    lines += [f"    {line}" for line in loaded["description"].splitlines()]
    for key in ("tags", "tools", "skills", "modules"):
        values = loaded["metadata"][key]
        if isinstance(values, list) and values:
            lines.append(f"{key}: {', '.join(map(str, values))}")
    return Output(loaded, [*lines, f"\n{loaded['code'].rstrip()}"])


@skills.command(audit=AuditedAs("skill.saved"))
async def save(
    here: Here,
    app: App,
    name: str,
    file: str | None = None,
    *,
    description: str = "",
    tests: str | None = None,
    tag: Sequence[str] = (),
    from_run: str | None = None,
    parameter: Sequence[str] = (),
    record: bool = False,
    force: bool = False,
    test_file: Sequence[str] = (),
) -> Output:
    """Save a Python file as a skill, when its tests pass.

    name: the skill's name
    file: the Python file, or - for stdin
    description: what it does (default: its docstring)
    tests FILE: a Python file of tests: asserts, or test functions
    tag: a tag; may be repeated
    from_run RUN_ID: save the code of a finished run instead of a file
    parameter VARIABLE: with --from-run: a variable to ask for
    record: keep the upstream answers that the tests meet
    force: save it though tests of the version before, or of skills that use it, fail
    test_file FILE: a file that the tests find in the workspace by this name; may be repeated
    """
    here.audit_details["name"] = await use_cases.name_noted(app.skills, LOCAL, name)
    if (file is None) == (from_run is None):
        raise UsageError("Give either a FILE of Python code or --from-run RUN_ID.")
    if parameter and from_run is None:
        raise UsageError("--parameter goes with --from-run only. In a file, write a function with parameters.")
    request = use_cases.SaveRequest(
        name=name,
        code=",".join(parameter) if file is None else read_source(file),
        description=description,
        tests="" if tests is None else read_source(tests),
        tags=tag,
        from_run=from_run,
        record=record,
        force=force,
        files={each: read_bytes(each) for each in test_file},
    )
    saved = await use_cases.save(app.skills, request)

    def shown() -> None:
        print(f"{saved['signature']}  (version {saved['version']})")
        for line in use_cases.saved_lines(saved):
            print(f"    {line}")
        for warning in saved["warnings"]:
            print_error(f"sealab: {warning}")

    return Output(saved, shown)


@skills.command(own_help=True, takes_options=True, usage="sealab skills run NAME [options] [--PARAMETER VALUE ...]")
async def run(
    _here: Here,
    app: App,
    name: str | None = None,
    *words: str,
    skill_version: int | None = None,
    timeout: float | None = None,
    memory: int | None = None,
    isolation: IsolationChoice = "auto",
) -> Output | int:
    """Run a skill; its parameters are options.

    name: the skill; NAME --help shows its parameters
    skill_version: the version (default: the newest)
    timeout S: seconds the run may take
    memory MB: megabytes the run may use
    isolation: what keeps the code apart
    """
    if name is None:
        if not {"-h", "--help"}.isdisjoint(words):
            print("usage: sealab skills run NAME [options] [--PARAMETER VALUE ...]")
            print("\nRun a skill; its parameters are options. `sealab skills run NAME --help` shows them.")
            print("Options: --json --timeout S --memory MB --isolation LEVEL --skill-version N --home DIR --debug")
            return Exit.OK
        raise UsageError("No skill is named. Write sealab skills run NAME; `sealab skills list` shows their names.")
    skill = await use_cases.stored(app.skills, name, skill_version)
    request = use_cases.RunSkillRequest(
        name=skill.name,
        arguments=arguments_of(skill.draft, words),
        version=skill.version,
        timeout_seconds=timeout,
        memory_mb=memory,
        isolation=isolation,
    )
    return report_output((await use_cases.run(app.skills, request)).report)


@skills.command()
async def _test(here: Here, app: App, names: Sequence[str] = (), *, record: bool = False) -> Output:
    """Run the tests of skills, offline.

    names NAME: the skills (default: all)
    record: call upstream tools, and keep what they answer
    """
    results: list[dict[str, object]] = []
    for name in names or list(await app.skills.service.ask(lambda store: store.names())):
        plan = testing.plan_of((await use_cases.stored(app.skills, name)).draft)
        entry: dict[str, object] = {"name": name, "ok": True, "tested": plan.tests_something, "problem": None}
        try:
            await use_cases.examine(app.skills, name, record=record)
        except SkillUnfit as error:
            entry |= {"ok": False, "problem": testing.cause_of(error)}
        results.append(entry)
        if not here.json:
            print(f"{'ok' if entry['ok'] else 'failed':<8}{name}{'' if plan.tests_something else '  (no tests)'}")
            if entry["problem"]:
                print_error(f"sealab: {entry['problem']}")
    failed = sum(not entry["ok"] for entry in results)
    data = {"tests": results, "passed": len(results) - failed, "failed": failed}
    return Output(data, code=Exit.FAILED if failed else Exit.OK)


@skills.command()
async def review(_here: Here, app: App) -> Output:
    """Show which skills to archive, merge or mend, and why; changes nothing."""
    from ...use_cases.skills.review import lines_of, review

    found = await review(app.skills)
    return Output(found, lines_of(found))


@skills.command(audit=AuditedAs())
async def archive(_here: Here, app: App, name: str) -> Output:
    """Take a skill out of lists and searches; it can still be called.

    name: the skill; `sealab skills restore NAME` brings it back
    """
    await app.skills.service.ask(lambda store: store.archive(name))
    return _facts({"name": name, "archived": True})


@skills.command(audit=AuditedAs("skill.deleted"))
async def delete(here: Here, app: App, name: str, *, restore: bool = False, purge: bool = False) -> Output:
    """Delete a skill, or bring it back.

    name: the skill
    restore: bring back what was deleted
    purge: remove what was deleted for good
    """
    if restore and purge:
        raise UsageError("--restore brings back what --purge removes for good. Give one of them.")
    here.audit_details["name"] = await use_cases.name_noted(app.skills, LOCAL, name)
    if restore:
        versions = await app.skills.service.ask(lambda store: store.restore(name))
        return _facts({"name": name, "restored_versions": len(versions)})
    if purge:
        purged = await app.skills.service.ask(lambda store: store.purge(name))
        return _facts({"name": name, "purged_versions": purged})
    return _facts(await use_cases.delete(app.skills, name))


@skills.command(audit=AuditedAs())
async def purge(_here: Here, app: App, *, days: float = 0.0) -> Output:
    """Remove deleted skills for good.

    days: only those deleted so many days ago (default: 0)
    """
    before = datetime.now(UTC) - timedelta(days=days)
    return _facts({"purged_versions": await app.skills.service.ask(lambda store: store.purge(deleted_before=before))})


@skills.command(audit=AuditedAs("exported"))
async def export(_here: Here, app: App, folder: Path, names: Sequence[str] = ()) -> Output:
    """Write skills as Agent Skills folders.

    folder DIR: where to write them, one folder each
    names NAME: the skills (default: all)
    """
    exported = await export_to(app.skills, folder, names)
    return Output({"folder": folder, "skills": dict(exported)}, [f"{name}  {path}" for name, path in exported])


@skills.command(audit=AuditedAs())
async def import_(
    _here: Here, app: App, sources: Sequence[Path] = (), *, examples: bool = False, update: bool = False
) -> Output:
    """Read skills from folders, files or archives; nothing of them runs.

    sources DIR|FILE|ZIP: a skill, or what holds skills, at any depth
    examples: the skills that sealab brings along
    update: store what differs from a skill of its name as that skill's next version
    """
    if bool(sources) == examples:
        raise UsageError("Name a folder, file or archive to import, or give --examples.")
    imported = [
        each for source in sources or [EXAMPLES] for each in await import_from(app.skills, source, update=update)
    ]
    for each in imported:
        if each.refused is not None:
            print_error(f"sealab: {each.folder}: {each.refused}")
        if each.left_out:
            print_error(
                f"sealab: {each.name}: its tag {each.left_out[0]!r} was left out: a file does not decide who may run a "
                f"skill. `sealab skills save {each.name} FILE --tag {each.left_out[0]}` does."
            )
    read = [each for each in imported if each.refused is None]
    return Output(
        {"skills": [asdict(each) for each in imported]},
        [*map(_import_line, read), *_still_needed(read)],
        Exit.OK if len(read) == len(imported) else Exit.FAILED,
    )


@skills.command(audit=AuditedAs("exported"))
async def backup(_here: Here, app: App, file: Path, *, overwrite: bool = False) -> Output:
    """Write all skills and run records into one archive.

    file: the archive to write
    overwrite: replace an existing file
    """
    return _facts(asdict(await asyncio.to_thread(lambda: archives.backup(app.database(), file, overwrite=overwrite))))


@skills.command(audit=AuditedAs())
async def restore(_here: Here, app: App, what: str, *, replace: bool = False) -> Output:
    """Bring back a skill that was archived or deleted, or the skills of a backup.

    what NAME|FILE: the skill, or the backup to read
    replace: let the backup win where the two contradict
    """
    if _is_name(what):
        return _facts({"name": what, "restored": await app.skills.service.ask(lambda store: store.bring_back(what))})
    return _facts(
        asdict(await asyncio.to_thread(lambda: archives.restore(app.database(), Path(what), replace=replace)))
    )


def _import_line(each: Imported) -> str:
    parts = [f"version {each.version}{'' if each.created else ', already there'}"]
    parts += [", ".join(f"{number} {part}" for part, number in each.brought.items())] if each.brought else []
    parts += [f"call {', '.join(f'skills.{each.name}.{script}' for script in each.scripts)}"] if each.scripts else []
    return f"{each.name}  ({'; '.join(parts)})"


def _still_needed(read: Sequence[Imported]) -> list[str]:
    packages = sorted({name for each in read for name in each.packages})
    why_not = next((each.wants_full_python for each in read if each.wants_full_python), None)
    lines = [f"Their scripts run in full Python. {why_not}"] if why_not else []
    lines += [f"Their scripts need packages: sealab packages add {' '.join(packages)}"] if packages else []
    unknown = sorted({name for each in read for name in each.modules})
    return [*lines, *([f"They import of packages that are not known: {', '.join(unknown)}"] if unknown else [])]


def _is_name(what: str) -> bool:
    return what.isidentifier() and not Path(what).exists()


def _facts(facts: Mapping[str, object]) -> Output:
    return Output(facts, "  ".join(f"{key.replace('_', ' ')}: {value}" for key, value in facts.items()))
