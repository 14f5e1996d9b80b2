"""`sealab servers`: lists, adds, removes, imports and tests the upstream MCP servers of `mcp.json`."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from ....tools_registry.catalog import Catalog
from ....tools_registry.clients.importing import ImportPlan, plan
from ....tools_registry.configuration import (
    ServerConfig,
    editing,
    read,
    read_document,
    read_server,
    servers_of,
    split_command,
)
from ....tools_registry.errors import ConfigurationRefused
from ....tools_registry.upstream.pins import Pins
from ...base.errors import Exit, UsageError
from ...base.home import Home
from ...base.terminal_escaping import one_line
from ...use_cases.upstream_tools.registry_state import opened_state
from . import servers_test
from .command import AuditedAs, Group
from .servers_sign_out import sign_out
from .terminal import Here, Output, counted, print_error

servers = Group()
_WIDTH = 24
_NAME = re.compile(r"[A-Za-z0-9_](?:[\w.-]*[\w])?", re.ASCII)
_NONE = "There are no servers in {file}. Add some with `sealab servers add` or `… import`."


@servers.command()
def list_(here: Here) -> Output:
    """List the servers, how they are reached, and what is known of their state; none is started."""
    file = here.home.servers_file
    configuration = read(file, os.environ)
    written = servers_of(read_document(file), file)
    standing = servers_test.standing_servers(here, configuration)
    listed = [
        {**_shown_server(server, written[server.name]), **standing[server.name]}
        for server in configuration.servers.values()
    ]
    listed += [{"name": name, "problem": problem, **standing[name]} for name, problem in configuration.problems.items()]

    def shown() -> None:
        for server in configuration.servers.values():
            how = standing[server.name]
            state = "" if how["state"] == "ready" else f" ({how['state']})"
            print(f"{server.name:<{_WIDTH}} {server.type:<7} {one_line(reached(written[server.name]))}{state}")
            if how["last_error"] and not server.disabled:
                print(f"{'':<{_WIDTH}} {one_line(str(how['last_error']))}")
            servers_test.print_left_out(how)
        for name, problem in configuration.problems.items():
            print(f"{one_line(name):<{_WIDTH}} cannot be used: {one_line(problem)}")
        if not listed:
            print_error(_NONE.format(file=file))

    return Output({"file": file, "count": len(listed), "servers": listed}, shown)


@servers.command(
    audit=AuditedAs(about="name"),
    usage="sealab servers add NAME [options] (--url URL | --openapi URL|FILE | -- COMMAND [ARGUMENT ...])",
)
def add(
    here: Here,
    name: str,
    *words: str,
    url: str | None = None,
    openapi: str | None = None,
    transport: Literal["stdio", "http", "sse"] | None = None,
    header: Sequence[str] = (),
    env: Sequence[str] = (),
    cwd: str | None = None,
    category: str | None = None,
    allow_self: bool = False,
    replace: bool = False,
) -> Output:
    """Add a server: NAME --url URL, NAME --openapi URL|FILE, or NAME -- COMMAND ARGUMENTS.

    name: what to call it
    url: the address of a server that is reached by HTTP
    openapi URL|FILE: an OpenAPI document, whose operations become tools; with --url, that is where its service is
    transport: how it is reached, where that is not clear
    header NAME:VALUE: a header for every request; may hold ${VAR}
    env NAME=VALUE: a variable for its process; may hold ${VAR}
    cwd DIR: the folder it starts in
    category: the category of its tools, instead of its name
    allow_self: add a server that is sealab itself, with another home
    replace: replace a server of that name
    """
    if not _NAME.fullmatch(name):
        fitting = re.sub(r"[^\w.-]", "-", name, flags=re.ASCII).strip("-.") or "server"
        raise UsageError(
            f"{name!r} cannot be the name of a server: names are of letters, digits, dots, dashes and underscores. "
            f"Call it {fitting}."
        )
    for option, given in (("--url", url), ("--openapi", openapi), ("--cwd", cwd)):
        if given == "":
            raise UsageError(f"{option} is empty. Give it a value, or leave it out.")
    if words:
        if url or openapi:
            raise UsageError(
                "A command and an address cannot both be given. Leave out --url and --openapi, or the command."
            )
        if header or transport not in {None, "stdio"}:
            raise UsageError(
                "--header and HTTP are for a server with a --url or --openapi. Leave them out, or use --env."
            )
        variables = dict(_pair(each, "=", "--env") for each in env)
        command = split_command(words[0]) if len(words) == 1 else [*words]
        if len(command) > len(words):
            print_error(f"sealab: the command was one text; it is kept as {shlex.join(command)}")
        given_entry: dict[str, object] = {"command": command[0], "args": command[1:], "env": variables, "cwd": cwd}
    else:
        if env or cwd:
            raise UsageError("--env and --cwd are for a server that a command starts. Leave them out, or use --header.")
        headers = dict(_pair(each, ":", "--header") for each in header)
        given_entry = {**_address(url, openapi, transport), "url": url, "headers": headers}
    given_entry |= {"allow_self": allow_self, "category": category}
    entry: dict[str, object] = {key: value for key, value in given_entry.items() if value}
    try:
        read_server(name, entry, os.environ)
    except ConfigurationRefused as refusal:
        if "environment variable" not in str(refusal):
            raise
        print_error(f"sealab: {refusal}")
    file = here.home.servers_file
    here.home.prepare()
    with editing(file) as document:
        document.setdefault("mcpServers", {})
        known = servers_of(document, file)
        if name in known and known[name] != entry:
            if not replace:
                raise UsageError(f"There is another server {name!r} in {file}. Use another name, or --replace.")
            _forget(here, name)
        known[name] = entry
    test = shlex.join(["sealab", "servers", "test", name])
    return Output({"name": name, "file": file, "server": entry}, f"Added {name} to {file}. Try it with `{test}`.")


@servers.command()
def _test(
    here: Here,
    name: str | None = None,
    *,
    accept: bool = False,
    ask_again: bool = False,
    who: str | None = None,
    tenant: str | None = None,
    no_sign_in: bool = False,
) -> Output:
    """Connect to servers, sign in, and show what they offer.

    name: the server; without one, all that are not disabled
    accept: pin what the server says now, end its quarantine, and accept the proposals for its tools
    ask_again: withdraw the approval of all calls that users gave for tools
    who PRINCIPAL: whose sign-in, of a server that is called with those of its callers: a principal's (default: the
        local user's)
    tenant: of which tenant's sign-ins (default: default)
    no_sign_in: do not wait for a user to sign in
    """
    if accept and name is None:
        raise UsageError("--accept is for one server at a time. Name the one that you looked at.")
    if name is None and not (who is None and tenant is None):
        raise UsageError("--who and --tenant are for one server at a time. Name it.")
    configuration = read(here.home.servers_file, os.environ)
    if name is not None:
        configuration.server(name)
    names = [name] if name is not None else [*configuration.enabled, *configuration.problems]
    examined = servers_test.examined_servers(
        here, configuration, names, who=who, tenant=tenant, accept=accept, ask_again=ask_again, sign_in=not no_sign_in
    )
    tested = asyncio.run(examined)
    if name is not None and accept and tested[0]["ok"]:
        servers_test.classify(here.home, name, tested[0])

    def shown() -> None:
        for each in tested:
            servers_test.print_tested(each)
        if not tested:
            print_error(_NONE.format(file=here.home.servers_file))

    is_good = all(each["ok"] for each in tested)
    return Output({"count": len(tested), "servers": tested}, shown, Exit.OK if is_good else Exit.FAILED)


servers.command()(sign_out)


@servers.command(audit=AuditedAs(about="name"))
def remove(here: Here, name: str) -> Output:
    """Remove a server, and what is known of its tools.

    name: the server
    """
    file = here.home.servers_file
    known = servers_of(read_document(file), file)
    if name not in known:
        raise UsageError(f"There is no server {name!r} in {file}. There are {', '.join(known) or 'none'}.")
    with editing(file) as document:
        servers_of(document, file).pop(name, None)
    _forget(here, name)
    return Output({"name": name, "removed": True}, f"Removed {name} from {file}.")


@servers.command(audit=AuditedAs())
def import_(
    here: Here, *, from_: Sequence[str] = (), project: Path = Path(), dry_run: bool = False, copy_secrets: bool = False
) -> Output:
    """Import the servers of other MCP clients on this machine.

    from_ CLIENT: only from this client
    project DIR: a project whose files are read too (default: here)
    dry_run: show what would be done, without doing it
    copy_secrets: copy secrets instead of putting ${VAR} in their place
    """
    project = project.absolute()
    if not project.is_dir():
        raise UsageError(f"There is no folder {project}. Give that of a project with --project.")
    only = [name.strip() for each in from_ for name in each.split(",") if name.strip()]
    file = here.home.servers_file

    def planned(present: Mapping[str, object]) -> ImportPlan:
        return plan(present, Path.home(), project, os.environ, only=only, copy_secrets=copy_secrets)

    found = planned(servers_of(read_document(file), file)) if dry_run else imported(here.home, planned)
    summary = {
        "file": file,
        "dry_run": dry_run,
        "added": list(found.added),
        "servers": [
            {
                "name": each.name,
                "client": each.client,
                "file": each.file,
                "scope": each.scope or None,
                "action": each.action.value,
                "server": each.shown,
                "secrets": [
                    {"where": secret.where, "variable": secret.variable, "copied": copy_secrets}
                    for secret in each.secrets
                ],
                "notes": list(each.notes),
            }
            for each in found.found
        ],
        "files": found.files,
        "problems": [{"file": path, "why": why} for path, why in found.problems],
    }
    shown = partial(_print_import, found, file, dry_run=dry_run, copy_secrets=copy_secrets)
    return Output(summary, shown, Exit.FAILED if found.problems else Exit.OK)


def imported(home: Home, planned: Callable[[Mapping[str, object]], ImportPlan]) -> ImportPlan:
    """Write the servers that a plan adds into `mcp.json`, and return the plan that was carried out."""
    file = home.servers_file
    found = planned(servers_of(read_document(file), file))
    if found.added:
        home.prepare()
        with editing(file) as document:
            document.setdefault("mcpServers", {})
            known = servers_of(document, file)
            found = planned(known)
            known.update(found.added)
    return found


def reached(entry: object) -> str:
    """Return how the server of an entry in `mcp.json` is reached: by an address or a command."""
    entry = entry if isinstance(entry, dict) else {}
    arguments = entry.get("args")
    command = [entry.get("command"), *(arguments if isinstance(arguments, list) else ())]
    return str(entry.get("openapi") or entry.get("url") or shlex.join(map(str, command)))


def _address(url: str | None, openapi: str | None, transport: str | None) -> dict[str, object]:
    """Return what says by which protocol a server is reached: its type, or its OpenAPI document."""
    if openapi is None:
        if url is None:
            raise UsageError(
                "A server is reached by a command, a URL or an OpenAPI document. Use `sealab servers add NAME -- "
                "COMMAND ARGS`, `sealab servers add NAME --url URL` or `sealab servers add NAME --openapi URL|FILE`."
            )
        return {"type": transport or ("sse" if url.rstrip("/").endswith("/sse") else "http")}
    if transport:
        raise UsageError("--transport is for MCP servers. Leave it out: an OpenAPI document is reached by HTTP.")
    if "://" in openapi or "${" in openapi:
        return {"openapi": openapi}
    path = Path(openapi).expanduser().absolute()
    if not path.is_file():
        what = f"{path} is not a file" if path.exists() else f"There is no file {path}"
        raise UsageError(f"{what}. Give the address or the file of an OpenAPI document.")
    return {"openapi": str(path)}


def _pair(text: str, mark: str, option: str) -> tuple[str, str]:
    name, found, value = text.partition(mark)
    if not found or not name.strip():
        raise UsageError(f"{option} {text!r} names no value. Give NAME{mark}VALUE.")
    return name.strip(), value.strip() if mark == ":" else value


def _shown_server(server: ServerConfig, written: object) -> dict[str, object]:
    """Return what may be shown of a server: as it is written, and of variables and headers the names alone."""
    entry = written if isinstance(written, dict) else {}
    described: dict[str, object] = {"name": server.name, "type": server.type.value}
    described |= {key: entry[key] for key in ("command", "args", "cwd", "url", "openapi") if key in entry}
    described |= {"env": sorted(server.env)} if server.command else {"headers": sorted(server.headers)}
    return described | {
        "category": server.category or server.name,
        "disabled": server.disabled,
        "approve": server.approve.value,
    }


def _print_import(found: ImportPlan, file: Path, *, dry_run: bool, copy_secrets: bool) -> None:
    blank = " " * _WIDTH
    for each in found.found:
        done, scope = _ACTIONS[each.action.value], f" ({one_line(each.scope)})" if each.scope else ""
        print(f"{one_line(each.name):<{_WIDTH}} {done:<22} {each.client}: {each.file}{scope}")
        if each.action.value == "add":
            print(blank, one_line(reached(each.shown)))
        for secret in each.secrets if each.action.value == "add" else ():
            if copy_secrets:
                print(f"{blank} its secret {secret.where} is copied into {file}")
            else:
                print(f"{blank} its secret {secret.where} is not copied: set {secret.variable} for sealab")
        for note in each.notes:
            print(blank, one_line(note))
    for path, why in found.problems:
        print_error(f"sealab: {path}: {why}")
    if not found.found:
        print("No servers of other clients were found on this machine.")
    else:
        print(f"{counted(len(found.added), 'server')} {'would be ' * dry_run}added to {file}.")


_ACTIONS = {
    "add": "added",
    "same": "already there",
    "clash": "kept as it was: another server has that name",
    "itself": "left out: it is sealab",
    "unusable": "left out",
}


def _forget(here: Here, server: str) -> None:
    """Drop what is known of a server's tools, and how they were described when they were pinned."""
    from ....tools_registry.describing.learned import LearnedTypes

    with opened_state(here.home, here.settings.database_url) as state:
        Catalog(here.home.tools, state.lists, {}).forget_server(server)
        if state.pins.read() is not None:
            Pins(state.pins).forget(server)
        if state.learned.read() is not None:
            LearnedTypes(state.learned).forget(server)
