"""`sealab init` sets sealab up in a minute, and `sealab uninstall` takes it out of the clients again.

It finds the MCP clients of this machine, imports their servers, proposes which of their tools only read, gives the
clients an entry that starts sealab, tries the isolation layers and runs one program. It shows each change, asks, and
keeps a copy of what it changes, from which `--undo` restores.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TypedDict, cast
from urllib.parse import unquote, urlsplit

from ....tools_registry.clients.importing import ImportAction, ImportPlan, plan
from ....tools_registry.clients.own_entry import NAME, ClientFile, client_files, plan_entry, plan_removal, write
from ....tools_registry.clients.own_entry import undo as undo_changes
from ....tools_registry.clients.places import clients
from ....tools_registry.configuration import network_variables, read, read_document, servers_of
from ....tools_registry.errors import ConfigurationRefused
from ...base.errors import Exit, UsageError
from ...base.home import Home
from ...base.terminal_escaping import one_line
from .command import AuditedAs, Command
from .servers import imported, reached
from .servers_test import classify, examined_servers, proposed_effects
from .terminal import Here, Output, counted, nearest

PROGRAM = """\
import statistics
statistics.median(len(word) for word in "agents run Python instead of calling tools".split())"""
PROGRAM_ANSWER = "6"
_UV_ENVIRONMENTS = ("archive-v0", "builds-v0", "environments-v2")
"""Folders of uv's cache, in which nothing stays."""


class WrittenEntry(TypedDict):
    """One client: its file, and whether it has an entry for sealab now; `problem` says why not."""

    client: str
    file: str
    state: str
    backup: str | None
    problem: str | None


class Done(TypedDict):
    """What was found and done. `imported` are names of servers, `proposed` their tools by effect.

    `moved` are names of servers by the file that they were taken out of.
    """

    ok: bool
    dry_run: bool
    home: str
    imported: list[str]
    proposed: dict[str, dict[str, list[str]]]
    clients: list[WrittenEntry]
    moved: dict[str, list[str]]
    level: str | None
    program: str | None
    problems: list[str]


@dataclass(frozen=True, slots=True)
class _Answers:
    """How questions are answered: by `--yes`, by no for all in a dry run, or by the user."""

    yes: bool
    dry_run: bool

    def agreed(self, question: str, *, usual: bool = True) -> bool:
        """Ask a question whose answer is yes or no; return is the usual answer."""
        if self.dry_run:
            return False
        if self.yes:
            return usual
        while True:
            try:
                said = input(f"{question} [{'Y/n' if usual else 'y/N'}] ").strip().lower()
            except EOFError:
                raise UsageError("The input ended before all was answered. What was answered is done.") from None
            if said in {"", "y", "yes", "n", "no"}:
                return usual if not said else said.startswith("y")
            print("Say y or n.")


class Undone(TypedDict):
    """The files that are as they were, and why others are not."""

    restored: list[str]
    problems: dict[str, str]


def _init(
    here: Here,
    *,
    yes: bool = False,
    dry_run: bool = False,
    client: Sequence[str] = (),
    move: bool = False,
    undo: bool = False,
) -> Output:
    """Set up sealab: find clients, import their servers, add sealab to them, test it.

    yes: ask no questions: use the defaults, and accept no proposals
    dry_run: show what would be done, without doing it
    client NAME: add sealab to this client alone; may be repeated (default: all that are found)
    move: take the servers that sealab reaches out of the clients, so that none loads their tools, secrets and all
    undo: put the files of the clients back as they were, byte for byte
    """
    if undo:
        return _undone(here)
    if not (yes or dry_run) and (here.json or not sys.stdin.isatty()):
        raise UsageError("sealab init asks questions at a terminal. Give --yes to answer all, or --dry-run to look.")
    with redirect_stdout(sys.stderr if here.json else sys.stdout):
        done = _set_up(here, client, _Answers(yes, dry_run), move=move)
    return Output(done, code=Exit.OK if done["ok"] else Exit.FAILED)


init = Command(_init, audit=AuditedAs())


def _undone(here: Here) -> Output:
    done = Undone(restored=[], problems={})
    for path, why in undo_changes(here.home.backups):
        if why is None:
            done["restored"].append(str(path))
        else:
            done["problems"][str(path)] = why
    said = [f"{path} is as it was." for path in done["restored"]]
    said += [f"{path} stays as it is: {why}" for path, why in done["problems"].items()]
    text = "\n".join(said or ["There is nothing to undo."])
    return Output(done, text, code=Exit.FAILED if done["problems"] else Exit.OK)


class Uninstalled(Undone):
    """What `sealab uninstall` did; `left` says what stays, and how to remove it."""

    left: dict[str, str]


def _uninstall(here: Here) -> Output:
    """Take sealab out of the clients, give them their servers back, and say what else is left.

    What sealab keeps (skills, files, the vault, journals) stays.
    """
    undone = cast("Undone", _undone(here).data)
    done = Uninstalled(**undone, left={})
    for file in client_files(Path.home(), os.environ):
        try:
            change = plan_removal(file, [NAME], Path.home())
            if change is not None:
                write(change, here.home.backups)
                done["restored"].append(str(file.path))
                if (why := done["problems"].pop(str(file.path), None)) is not None:
                    done["left"][f"what {file.path} was before"] = why
        except ConfigurationRefused as refusal:
            done["problems"][str(file.path)] = str(refusal)
    if here.home.root.exists():
        done["left"][str(here.home.root)] = f"rm -r {shlex.quote(str(here.home.root))}"
    done["left"]["the program"] = _how_to_remove()
    said = [f"{path} has no sealab any more." for path in done["restored"]]
    said += [f"{path} stays as it is: {why}" for path, why in done["problems"].items()]
    said += [f"Left is {what}: {how}" for what, how in done["left"].items()]
    return Output(done, "\n".join(said), code=Exit.FAILED if done["problems"] else Exit.OK)


uninstall = Command(_uninstall, audit=AuditedAs())


def _how_to_remove() -> str:
    prefix = Path(sys.prefix)
    if "uv" in prefix.parts and "tools" in prefix.parts:
        return "uv tool uninstall sealab"
    if "pipx" in prefix.parts:
        return "pipx uninstall sealab"
    if any(part in _UV_ENVIRONMENTS for part in prefix.parts):
        return "uv cache clean sealab"
    return f"{shlex.quote(sys.executable)} -m pip uninstall sealab"


def _set_up(here: Here, only: Sequence[str], answers: _Answers, *, move: bool) -> Done:
    home = here.home
    files = _found_clients(only)
    done = Done(
        ok=True,
        dry_run=answers.dry_run,
        home=str(home.root),
        imported=[],
        proposed={},
        clients=[],
        moved={},
        level=None,
        program=None,
        problems=[],
    )
    _heading("1. The MCP clients on this machine")
    for file in files:
        print(f"  {file.client:<16}{file.path}")
    if not files:
        print("  None was found. `sealab help` says how to start sealab by hand.")
    _heading("2. Their servers")
    done["imported"] = _imported(home, answers, done["problems"], copy_secrets=move)
    _heading("3. What their tools do")
    done["proposed"] = _propose(here, done["imported"], answers)
    _heading("4. sealab in the clients")
    command = own_command(here.chosen.home, here.chosen.config)
    done["clients"] = [_give_entry(file, command, home, answers) for file in files]
    if move:
        done["moved"] = _move(here, files, answers, done["problems"])
    _heading("5. What keeps code apart here, and one program")
    if answers.dry_run:
        print("  Not tried in a dry run: `sealab doctor` does.")
    else:
        done["level"], done["program"] = _tried(home)
    ran = answers.dry_run or done["program"] == PROGRAM_ANSWER
    done["ok"] = ran and not any(each["state"] == "refused" for each in done["clients"])
    _heading(_conclusion(done))
    return done


def _heading(text: str) -> None:
    print(f"\n{text}", flush=True)


def _conclusion(done: Done) -> str:
    if done["dry_run"]:
        return "Nothing was changed. `sealab init` does what is shown here."
    if not done["ok"]:
        return "Not all steps could be done; the lines above say what is left to do."
    if any(each["state"] == "written" for each in done["clients"]):
        return "Done. Start your client again, and ask it to run some Python with sealab."
    return "Done."


def _found_clients(only: Sequence[str]) -> list[ClientFile]:
    files = client_files(Path.home(), os.environ)
    names = [file.client for file in files]
    for name in only:
        if name not in names:
            raise UsageError(
                f"The client {name!r} is not on this machine.{nearest(name, names)} Here are "
                f"{', '.join(names) or 'none'}; sealab knows {', '.join(clients())}."
            )
    return [file for file in files if not only or file.client in only]


def _imported(home: Home, answers: _Answers, problems: list[str], *, copy_secrets: bool) -> list[str]:
    """Import the servers of all clients into `mcp.json`; return the names of those that are new."""

    def planned(present: Mapping[str, object]) -> ImportPlan:
        return plan(present, Path.home(), Path.cwd(), os.environ, copy_secrets=copy_secrets)

    found = planned(servers_of(read_document(home.servers_file), home.servers_file))
    for each in found.found:
        if each.action.value == "add":
            print(f"  {one_line(each.name):<24}of {each.client}: {one_line(reached(each.shown))}")
            for secret in each.secrets:
                goes = (
                    f"is copied to {home.servers_file}"
                    if copy_secrets
                    else f"stays there: set {secret.variable} for sealab"
                )
                print(f"  {'':<24}its secret {one_line(secret.where)} {goes}")
    for path, why in found.problems:
        problems.append(f"{path}: {why}")
        print(f"  {path}: {why}")
    if not found.added:
        print("  None that sealab does not have.")
        return []
    if not answers.agreed(f"Import {counted(len(found.added), 'server')} into {home.servers_file}?"):
        return []
    added = imported(home, planned).added
    kept = "" if copy_secrets else " The clients keep them too; `sealab init --move` takes them out."
    print(f"  Imported {counted(len(added), 'server')}.{kept}")
    return list(added)


def _propose(here: Here, names: Sequence[str], answers: _Answers) -> dict[str, dict[str, list[str]]]:
    """Start the new servers, and propose of each tool whose server does not say so whether it only reads."""
    if not names:
        print("  There are no new servers to look at.")
        return {}
    configuration = read(here.home.servers_file, os.environ)
    usable = [name for name in names if name in configuration.enabled]
    for name in names:
        if name in configuration.problems:
            print(f"  {one_line(configuration.problems[name])}")
    if not usable or not answers.agreed(f"Start {counted(len(usable), 'server')} to see what they offer?"):
        return {}
    print(f"  Starting {', '.join(map(one_line, usable))} …", flush=True)
    result: dict[str, dict[str, list[str]]] = {}
    for tested in asyncio.run(examined_servers(here, configuration, usable)):
        name = str(tested["name"])
        if not tested["ok"]:
            print(f"  {one_line(name)}: {one_line(str(tested['error']))}")
            continue
        print(f"  {one_line(name)}: {counted(cast('int', tested['tool_count']), 'tool')}")
        effects = proposed_effects(tested)
        if not effects:
            continue
        result[name] = {
            effect: [tool for tool, each in effects.items() if each == effect] for effect in ("read", "write")
        }
        for effect, tools in result[name].items():
            if tools:
                print(f"    its server does not say so; proposed as {effect}: {one_line(', '.join(tools))}")
        if answers.agreed(f"Take that for {one_line(name)}? What reads runs without a question.", usual=False):
            classify(here.home, name, tested)
        else:
            print(f"    `sealab servers test {shlex.quote(name)} --accept` takes that; until then all of these ask.")
    return result


def _give_entry(file: ClientFile, command: Sequence[str], home: Home, answers: _Answers) -> WrittenEntry:
    """Show what would be written into a client's file, ask, and write it."""
    entry = WrittenEntry(client=file.client, file=str(file.path), state="kept", backup=None, problem=None)
    try:
        change = plan_entry(file, command, Path.home(), network_variables(os.environ))
        if change is None:
            print(f"  {file.client}: starts sealab already.")
            return {**entry, "state": "there"}
        print(f"  {file.client}: {file.path} gets")
        for line in textwrap.dedent(change.added.strip("\r\n")).splitlines():
            print(f"    {line}")
        if not answers.agreed(f"Write it for {file.client}?"):
            return entry
        home.prepare()
        backup = write(change, home.backups)
    except ConfigurationRefused as refusal:
        print(f"  {file.client}: {file.path} stays as it is: {refusal}")
        print(f"    Its entry would be: {shlex.join(command)}")
        return {**entry, "state": "refused", "problem": str(refusal)}
    print(f"  Written.{'' if backup is None else f' What it was is kept in {backup}.'}")
    return {**entry, "state": "written", "backup": None if backup is None else str(backup)}


def _move(here: Here, files: Sequence[ClientFile], answers: _Answers, problems: list[str]) -> dict[str, list[str]]:
    """Take out of the clients what sealab has as they have it, and reaches; return it by file."""
    home = here.home
    present = servers_of(read_document(home.servers_file), home.servers_file)
    found = plan(present, Path.home(), Path.cwd(), os.environ, copy_secrets=True).found
    same = [each for each in found if each.action is ImportAction.SAME and not each.scope]
    configuration = read(home.servers_file, os.environ)
    names = list(dict.fromkeys(each.name for each in same if each.name in configuration.enabled))
    tested = [] if answers.dry_run or not names else asyncio.run(examined_servers(here, configuration, names))
    works = {str(each["name"]) for each in tested if each["ok"]}
    for each in tested:
        if not each["ok"]:
            print(f"  {one_line(str(each['name']))} stays in its clients: {one_line(str(each['error']))}")
    moved: dict[str, list[str]] = {}
    for file in files:
        here_too = sorted({each.name for each in same if each.file == file.path} & (works or set(names)))
        if not here_too or not answers.agreed(f"Take {', '.join(map(one_line, here_too))} out of {file.path}?"):
            continue
        try:
            change = plan_removal(file, here_too, Path.home())
            if change is not None:
                write(change, home.backups)
                moved[str(file.path)] = here_too
        except ConfigurationRefused as refusal:
            problems.append(f"{file.path}: {refusal}")
            print(f"  {file.client}: {file.path} stays as it is: {refusal}")
    if moved:
        print("  Moved. `sealab init --undo` puts them back.")
    return moved


def own_command(home: str | None, config: str | None = None) -> list[str]:
    """Return the command that starts this sealab, as a client can use it that has no PATH of the user's."""
    beside = Path(sys.executable).parent / "sealab"
    uvx = shutil.which("uvx")
    if uvx is not None and any(part in _UV_ENVIRONMENTS for part in Path(sys.prefix).parts):
        source = _source()
        command = [uvx, *(["--from", source] if source else []), "sealab"]
    elif os.access(beside, os.X_OK):
        command = [str(beside)]
    else:
        command = [sys.executable, "-P", "-m", "sealab.server"]
    chosen = home or os.environ.get("SEALAB_HOME")
    for option, path in (("--home", chosen), ("--config", config)):
        command += [option, str(Path(path).expanduser().absolute())] if path else []
    return command


def _source() -> str | None:
    """Return what `uvx --from` installed sealab from, if that was no registry: a folder, a repository or a file.

    PEP 610 says how an installer writes it down.
    """
    try:
        written = json.loads(distribution("sealab").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        return None
    url = cast("str", written.get("url", ""))
    if "vcs_info" in written:
        return f"{written['vcs_info']['vcs']}+{url}"
    return unquote(urlsplit(url).path) if url.startswith("file://") else url or None


def _tried(home: Home) -> tuple[str | None, str | None]:
    """Return the level that the doctor finds, and what a program answers; print both."""
    print("  sealab doctor …", flush=True)
    doctor = _sealab("doctor", "--json", "--home", str(home.root))
    level: str | None = None
    try:
        findings = json.loads(doctor.stdout)
        level = findings["level"]
        print(f"  Level {level}, where {findings['required_level']} is required. {findings['problem'] or ''}".rstrip())
    except (ValueError, KeyError):
        print(f"  {doctor.stderr.strip()}")
    print("  sealab run - …", flush=True)
    ended = _sealab("run", "-", "--home", str(home.root), given=PROGRAM)
    answer = ended.stdout.strip()
    print("\n".join(f"    >>> {line}" for line in PROGRAM.splitlines()))
    print(f"    {answer}" if ended.returncode == 0 else f"  {ended.stderr.strip()}")
    return level, answer if ended.returncode == 0 else None


def _sealab(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command of this sealab in a process of its own: the doctor wants one without threads."""
    command = [sys.executable, "-P", "-m", "sealab.server", *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, check=False)
