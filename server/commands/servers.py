"""`sealab servers`: lists, adds, removes, imports and tests the upstream MCP servers of `mcp.json`."""
# ruff: noqa: T201 - printing is what a command line does

from __future__ import annotations

import argparse
import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import Exit, UsageError
from ..home import Home
from ..terminal_escaping import one_line
from . import servers_test
from .group import Begin, Options, add_commands
from .sign_ins import signing_out
from .terminal import print_error

if TYPE_CHECKING:
    from ...tools_registry.clients.importing import FoundServer, ImportPlan
    from ...tools_registry.configuration import ServerConfig
    from ..settings import Settings

_WIDTH = 24


def add_to(parser: argparse.ArgumentParser, begin: Begin, options: Options) -> None:
    """Give the parser of `sealab servers` its commands; `options` adds those that all commands have."""
    make = add_commands(parser, begin, options)
    make("list", _list, "list the servers and how they are reached")
    add = make(
        "add", _without_settings, "add a server: NAME --url URL, NAME --openapi URL|FILE, or NAME -- COMMAND ARGUMENTS"
    )
    add.set_defaults(command=lambda chosen: _add(chosen, *begin(chosen)))
    add.takes_words = True
    add.usage = "sealab servers add NAME [options] (--url URL | --openapi URL|FILE | -- COMMAND [ARGUMENT ...])"
    add.add_argument("name", metavar="NAME", help="what to call it")
    add.add_argument("--url", help="the address of a server that is reached by HTTP")
    add.add_argument(
        "--openapi",
        metavar="URL|FILE",
        help="an OpenAPI document, whose operations become tools; with --url, that is where its service is",
    )
    add.add_argument("--transport", choices=["stdio", "http", "sse"], help="how it is reached, where that is not clear")
    add.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="NAME:VALUE",
        help="a header for every request; may hold ${VAR}",
    )
    add.add_argument(
        "--env", action="append", default=[], metavar="NAME=VALUE", help="a variable for its process; may hold ${VAR}"
    )
    add.add_argument("--cwd", metavar="DIR", help="the folder it starts in")
    add.add_argument("--category", help="the category of its tools, instead of its name")
    add.add_argument("--allow-self", action="store_true", help="add a server that is sealab itself, with another home")
    add.add_argument("--replace", action="store_true", help="replace a server of that name")
    test = make("test", _without_settings, "connect to servers, sign in, and show what they offer")
    servers_test.add_options(test)
    test.set_defaults(command=lambda chosen: servers_test.run(chosen, *begin(chosen)))
    sign_out = make("sign-out", _without_settings, "forget a sign-in to a server, and have its issuer revoke it")
    signing_out.add_options(sign_out)
    sign_out.set_defaults(command=lambda chosen: signing_out.run(chosen, *begin(chosen)))
    remove = make("remove", _without_settings, "remove a server, and what is known of its tools")
    remove.set_defaults(command=lambda chosen: _remove(chosen, *begin(chosen)))
    remove.add_argument("name", metavar="NAME", help="the server")
    fetch = make("import", _import, "import the servers of other MCP clients on this machine")
    fetch.add_argument(
        "--from", dest="clients", metavar="CLIENT", action="append", default=[], help="only from this client"
    )
    fetch.add_argument(
        "--project", metavar="DIR", default=".", help="a project whose files are read too (default: here)"
    )
    fetch.add_argument("--dry-run", action="store_true", help="show what would be done, without doing it")
    fetch.add_argument(
        "--copy-secrets", action="store_true", help="copy secrets instead of putting ${VAR} in their place"
    )


def _without_settings(_chosen: argparse.Namespace, _home: Home) -> int:
    raise AssertionError("the command has its own, which takes the settings too")


def _list(chosen: argparse.Namespace, home: Home) -> int:
    from ...tools_registry.configuration import read, read_document, servers_of

    configuration = read(home.servers_file, os.environ)
    written = servers_of(read_document(home.servers_file), home.servers_file)
    listed = [_shown_server(server, written[server.name]) for server in configuration.servers.values()]
    listed += [{"name": name, "problem": problem} for name, problem in configuration.problems.items()]
    if chosen.json:
        print(json.dumps({"file": str(home.servers_file), "count": len(listed), "servers": listed}, ensure_ascii=False))
        return Exit.OK
    for server in configuration.servers.values():
        state = " (disabled)" if server.disabled else ""
        print(f"{server.name:<{_WIDTH}} {server.type:<7} {one_line(_reached(written[server.name]))}{state}")
    for name, problem in configuration.problems.items():
        print(f"{one_line(name):<{_WIDTH}} cannot be used: {one_line(problem)}")
    if not listed:
        print_error(f"There are no servers in {home.servers_file}. Add some with `sealab servers add` or `… import`.")
    return Exit.OK


def _add(chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    from ...tools_registry.configuration import editing, read_server, servers_of
    from ...tools_registry.errors import ConfigurationRefused

    if not chosen.name.strip() or not chosen.name.isprintable():
        raise UsageError(f"{chosen.name!r} cannot be the name of a server. Give a name of printable characters.")
    entry = _entry(chosen)
    try:
        read_server(chosen.name, entry, os.environ)
    except ConfigurationRefused as refusal:
        if "environment variable" not in str(refusal):
            raise
        print_error(f"sealab: {refusal}")
    home.prepare()
    with editing(home.servers_file) as document:
        document.setdefault("mcpServers", {})
        servers = servers_of(document, home.servers_file)
        if chosen.name in servers and servers[chosen.name] != entry and not chosen.replace:
            raise UsageError(
                f"There is another server {chosen.name!r} in {home.servers_file}. Use another name, or --replace."
            )
        if chosen.name in servers and servers[chosen.name] != entry:
            _forget(home, settings, chosen.name)
        servers[chosen.name] = entry
    if chosen.json:
        print(json.dumps({"name": chosen.name, "file": str(home.servers_file), "server": entry}, ensure_ascii=False))
    else:
        test = shlex.join(["sealab", "servers", "test", chosen.name])
        print(f"Added {chosen.name} to {home.servers_file}. Try it with `{test}`.")
    return Exit.OK


def _remove(chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    from ...tools_registry.configuration import editing, read_document, servers_of

    known = servers_of(read_document(home.servers_file), home.servers_file)
    if chosen.name not in known:
        raise UsageError(
            f"There is no server {chosen.name!r} in {home.servers_file}. There are {', '.join(known) or 'none'}."
        )
    with editing(home.servers_file) as document:
        servers_of(document, home.servers_file).pop(chosen.name, None)
    _forget(home, settings, chosen.name)
    if chosen.json:
        print(json.dumps({"name": chosen.name, "removed": True}, ensure_ascii=False))
    else:
        print(f"Removed {chosen.name} from {home.servers_file}.")
    return Exit.OK


def _import(chosen: argparse.Namespace, home: Home) -> int:
    from ...tools_registry.clients.importing import plan
    from ...tools_registry.configuration import editing, read_document, servers_of

    project = Path(chosen.project).expanduser().absolute()
    if not project.is_dir():
        raise UsageError(f"There is no folder {project}. Give that of a project with --project.")

    only = [name.strip() for each in chosen.clients for name in each.split(",") if name.strip()]

    def planned(present: dict[str, object]) -> ImportPlan:
        return plan(present, Path.home(), project, os.environ, only=only, copy_secrets=chosen.copy_secrets)

    result = planned(servers_of(read_document(home.servers_file), home.servers_file))
    if result.added and not chosen.dry_run:
        home.prepare()
        with editing(home.servers_file) as document:
            document.setdefault("mcpServers", {})
            servers = servers_of(document, home.servers_file)
            result = planned(servers)
            servers.update(result.added)
    if chosen.json:
        print(json.dumps(_import_report(result, home, chosen), ensure_ascii=False))
    else:
        _print_import(result, home, chosen)
    return Exit.FAILED if result.problems else Exit.OK


def _entry(chosen: argparse.Namespace) -> dict[str, object]:
    """Return the entry that the command line describes. Raises `UsageError` where it describes none."""
    for option, given in (("--url", chosen.url), ("--openapi", chosen.openapi), ("--cwd", chosen.cwd)):
        if given == "":
            raise UsageError(f"{option} is empty. Give it a value, or leave it out.")
    if chosen.words and (chosen.url or chosen.openapi):
        raise UsageError(
            "A command and an address cannot both be given. Leave out --url and --openapi, or the command."
        )
    if not (chosen.words or chosen.url or chosen.openapi):
        raise UsageError(
            "A server is reached by a command, a URL or an OpenAPI document. Use `sealab servers add NAME -- COMMAND "
            "ARGS`, `sealab servers add NAME --url URL` or `sealab servers add NAME --openapi URL|FILE`."
        )
    entry: dict[str, object] = {}
    if chosen.url or chosen.openapi:
        if chosen.env or chosen.cwd:
            raise UsageError("--env and --cwd are for a server that a command starts. Leave them out, or use --header.")
        if chosen.openapi:
            entry["openapi"] = _document(chosen)
        else:
            entry["type"] = chosen.transport or ("sse" if chosen.url.rstrip("/").endswith("/sse") else "http")
        entry |= {"url": chosen.url} if chosen.url else {}
        if chosen.header:
            entry["headers"] = dict(_pair(each, ":", "--header") for each in chosen.header)
    else:
        if chosen.header or chosen.transport not in {None, "stdio"}:
            raise UsageError(
                "--header and HTTP are for a server with a --url or --openapi. Leave them out, or use --env."
            )
        entry["command"], *arguments = chosen.words
        entry |= {"args": arguments} if arguments else {}
        if chosen.env:
            entry["env"] = dict(_pair(each, "=", "--env") for each in chosen.env)
        entry |= {"cwd": chosen.cwd} if chosen.cwd else {}
    entry |= {"allow_self": True} if chosen.allow_self else {}
    return entry | ({"category": chosen.category} if chosen.category else {})


def _document(chosen: argparse.Namespace) -> str:
    """Return where the OpenAPI document is: its address, or its absolute path. Raises `UsageError`."""
    if chosen.transport:
        raise UsageError("--transport is for MCP servers. Leave it out: an OpenAPI document is reached by HTTP.")
    where = str(chosen.openapi)
    if "://" in where or "${" in where:
        return where
    path = Path(where).expanduser().absolute()
    if not path.is_file():
        what = f"{path} is not a file" if path.exists() else f"There is no file {path}"
        raise UsageError(f"{what}. Give the address or the file of an OpenAPI document.")
    return str(path)


def _pair(text: str, mark: str, option: str) -> tuple[str, str]:
    name, found, value = text.partition(mark)
    if not found or not name.strip():
        raise UsageError(f"{option} {text!r} names no value. Give NAME{mark}VALUE.")
    return name.strip(), value.strip() if mark == ":" else value


def _shown_server(server: ServerConfig, written: object) -> dict[str, object]:
    """Return what may be shown of a server: as it is written, and of variables and headers the names alone."""
    entry = written if isinstance(written, dict) else {}
    told: dict[str, object] = {"name": server.name, "type": server.type.value}
    told |= {key: entry[key] for key in ("command", "args", "cwd", "url", "openapi") if key in entry}
    told |= {"env": sorted(server.env)} if server.command else {"headers": sorted(server.headers)}
    return told | {
        "category": server.category or server.name,
        "disabled": server.disabled,
        "approve": server.approve.value,
    }


def _reached(written: object) -> str:
    entry = written if isinstance(written, dict) else {}
    for key in ("openapi", "url"):
        if key in entry:
            return str(entry[key])
    return shlex.join(map(str, [entry["command"], *entry.get("args", [])]))


def _import_report(plan: ImportPlan, home: Home, chosen: argparse.Namespace) -> dict[str, object]:
    return {
        "file": str(home.servers_file),
        "dry_run": chosen.dry_run,
        "added": list(plan.added),
        "servers": [
            {
                "name": each.name,
                "client": each.client,
                "file": str(each.file),
                "scope": each.scope or None,
                "action": each.action.value,
                "server": each.shown,
                "secrets": [
                    {"where": secret.where, "variable": secret.variable, "copied": chosen.copy_secrets}
                    for secret in each.secrets
                ],
                "notes": list(each.notes),
            }
            for each in plan.found
        ],
        "files": [str(path) for path in plan.files],
        "problems": [{"file": str(path), "why": why} for path, why in plan.problems],
    }


def _print_import(plan: ImportPlan, home: Home, chosen: argparse.Namespace) -> None:
    for each in plan.found:
        name = one_line(each.name)
        print(f"{name:<{_WIDTH}} {_ACTIONS[each.action.value]:<22} {each.client}: {each.file}{one_line(_scope(each))}")
        if each.action.value == "add":
            print(f"{'':<{_WIDTH}} {one_line(_reached(each.shown))}")
        for secret in each.secrets if each.action.value == "add" else ():
            if chosen.copy_secrets:
                print(f"{'':<{_WIDTH}} its secret {secret.where} is copied into {home.servers_file}")
            else:
                print(f"{'':<{_WIDTH}} its secret {secret.where} is not copied: set {secret.variable} for sealab")
        for note in each.notes:
            print(f"{'':<{_WIDTH}} {one_line(note)}")
    for path, why in plan.problems:
        print_error(f"sealab: {path}: {why}")
    count = len(plan.added)
    servers = f"{count} server{'s' * (count != 1)}"
    if not plan.found:
        print("No servers of other clients were found on this machine.")
    elif chosen.dry_run:
        print(f"{servers} would be added to {home.servers_file}.")
    else:
        print(f"{servers} added to {home.servers_file}.")


_ACTIONS = {
    "add": "added",
    "same": "already there",
    "clash": "kept as it was: another server has that name",
    "itself": "left out: it is sealab",
    "unusable": "left out",
}


def _scope(found: FoundServer) -> str:
    return f" ({found.scope})" if found.scope else ""


def _forget(home: Home, settings: Settings, server: str) -> None:
    """Drop what is known of a server's tools, and how they were described when they were pinned."""
    from ...tools_registry.catalog import Catalog
    from ...tools_registry.describing.learned import LearnedTypes
    from ...tools_registry.upstream.pins import Pins
    from ..upstream_tools.registry_state import opened_state

    with opened_state(home, settings.database_url) as state:
        Catalog(home.tools, state.lists, {}).forget_server(server)
        if state.pins.read() is not None:
            Pins(state.pins).forget(server)
        if state.learned.read() is not None:
            LearnedTypes(state.learned).forget(server)
