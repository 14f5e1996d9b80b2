"""The command line. Data goes to stdout, everything else to stderr; errors are sentences, never a traceback."""
# ruff: noqa: T201 - printing is what a command line does

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..sandbox.run import Status
from .commands import container as container_command
from .commands import pii as pii_command
from .commands import servers as servers_command
from .commands import skills as skills_command
from .commands import tools as tools_command
from .commands.group import Parser
from .errors import EXIT_OF_STATUS, KNOWN_ERRORS, Exit, UsageError, exit_of
from .home import Home, find_home
from .isolations import AUTO, CHOICES
from .settings import LogLevel, Settings, Surface, read_settings

if TYPE_CHECKING:
    from .address import Address
    from .app import App
    from .execution import CodeRequest
    from .report import Report

_WARM_AFTER_SECONDS = 0.5
"""What loads for seconds begins when a client has had its list of tools."""
_TRACE_HINT = "Run it again with --debug to see where."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. `sealab` alone, or with options only, serves."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = make_parser()
    if not given or (given[0].startswith("-") and given[0] not in {"-h", "--help", "--version"}):
        given.insert(0, "serve")
    chosen = parser.parse_args(given)
    try:
        return int(chosen.command(chosen))
    except KeyboardInterrupt:
        return 128 + 2
    except Exception as error:
        cause = _cause(error)
        if isinstance(cause, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that the last flush of stdout has nowhere to fail
            return Exit.FAILED
        if chosen.debug:
            raise
        if isinstance(cause, KNOWN_ERRORS):
            _say(f"sealab: {cause}")
            return exit_of(cause)
        _say(f"sealab: This is a fault of sealab itself: {type(cause).__name__}: {cause}. {_TRACE_HINT}")
        return Exit.FAILED


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of every command."""
    from importlib.metadata import version  # noqa: PLC0415 - main alone needs it

    parser = Parser(
        prog="sealab",
        description="An MCP server through which an AI agent runs Python instead of calling tools one by one.",
        epilog="Without a command, sealab serves MCP on stdin and stdout.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"sealab {version('sealab')}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    serve = _command(commands, "serve", _serve, "serve MCP on stdin and stdout, or over HTTP")
    serve.add_argument("--http", metavar="HOST:PORT", help="serve streamable HTTP at /mcp on this loopback address")
    serve.add_argument(
        "--surface", choices=[surface.value for surface in Surface], help="show all tools, or execute_code alone"
    )

    run = _command(commands, "run", _run, "run one file as execute_code would")
    run.add_argument("file", metavar="FILE", help="the Python file to run, or - for stdin")
    run.add_argument("--json", action="store_true", help="print the whole report as JSON")
    run.add_argument("--timeout", metavar="S", type=float, help="seconds the run may take")
    run.add_argument("--memory", metavar="MB", type=int, help="megabytes the run may use")
    run.add_argument(
        "--isolation", choices=CHOICES, default=AUTO, help="what keeps the code apart: the operator allows which"
    )

    demo = _command(commands, "demo", _demo, "show the main job end to end, in a throw-away home", own_home=True)
    demo.add_argument("--json", action="store_true", help="print what was shown as JSON")

    doctor = _command(commands, "doctor", _doctor, "say which isolation layers hold on this machine")
    doctor.add_argument("--json", action="store_true", help="print the findings as JSON")

    helped = "build the image for isolation=container, or say how containers stand"
    container = commands.add_parser(
        "container", help=helped, description=f"{helped[:1].upper()}{helped[1:]}.", allow_abbrev=False
    )
    container_command.add_to(container, _home_and_settings, _add_common)
    servers = _group(commands, "servers", "list, add, remove and import the upstream MCP servers")
    servers_command.add_to(servers, _home_and_settings, _add_common)
    pii = _group(commands, "pii", "hide personal data in files, restore and forget it")
    pii_command.add_to(pii, _home_and_settings, _add_common)
    tools = _group(commands, "tools", "search and show upstream tools, write typed stubs of them")
    tools_command.add_to(tools, _home_and_settings, _add_common)
    kept = _group(commands, "skills", "keep, run and test skills, and carry them in and out")
    skills_command.add_to(kept, _home_and_settings, _add_common)
    return parser


def _group(commands: argparse._SubParsersAction[Parser], name: str, help_text: str) -> Parser:
    return commands.add_parser(
        name, help=help_text, description=f"{help_text[:1].upper()}{help_text[1:]}.", allow_abbrev=False
    )


def _command(
    commands: argparse._SubParsersAction[Parser],
    name: str,
    command: Callable[[argparse.Namespace], int],
    help_text: str,
    *,
    own_home: bool = False,
) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name, help=help_text, description=f"{help_text[:1].upper()}{help_text[1:]}.", allow_abbrev=False
    )
    parser.set_defaults(command=command)
    if own_home:
        _add_debug(parser)
    else:
        _add_common(parser)
    return parser


def _add_debug(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")


def _add_common(parser: argparse.ArgumentParser) -> None:
    _add_debug(parser)
    parser.add_argument("--home", metavar="DIR", help="the folder below which sealab keeps everything")
    parser.add_argument("--config", metavar="FILE", help="the file of settings, instead of <home>/sealab.toml")
    parser.add_argument("--log-level", metavar="LEVEL", help=f"what goes to stderr: {', '.join(LogLevel)}")


def _home_and_settings(chosen: argparse.Namespace) -> tuple[Home, Settings]:
    home = find_home(chosen.home, os.environ)
    settings = read_settings(
        file=home.settings_file if chosen.config is None else Path(chosen.config),
        file_required=chosen.config is not None,
        environment=os.environ,
        command_line={"surface": getattr(chosen, "surface", None), "log_level": chosen.log_level},
    )
    logging.basicConfig(
        level=settings.log_level.value, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
    return home, settings


def _serve(chosen: argparse.Namespace) -> int:
    from .address import Address  # noqa: PLC0415 - each command imports what it needs, so that it starts fast

    home, settings = _home_and_settings(chosen)
    address = None if chosen.http is None else Address.parse(chosen.http)
    if address is None and sys.stdin.isatty():
        _say("sealab waits for an MCP client on stdin and stdout. `sealab demo` shows what it does; Ctrl-C ends it.")
    asyncio.run(_serving(settings, home, address))
    return Exit.OK


async def _serving(settings: Settings, home: Home, address: Address | None) -> None:
    from .app import running  # noqa: PLC0415 - as above

    async with running(settings, home, serves=True) as app:
        # The zygote starts while this process imports the SDK, which takes most of the start.
        await asyncio.sleep(0)
        starting = asyncio.create_task(app.pools.ready())
        await asyncio.sleep(0)
        from .light_import import imported  # noqa: PLC0415 - as above

        serve_stdio, serve_http = imported(_import_serving, http=address is not None)
        await starting
        if home.holds_something_to_find or settings.database_url is not None:
            app.registry.warm()
        if app.privacy.filters:
            asyncio.get_running_loop().call_later(_WARM_AFTER_SECONDS, app.privacy.warm)
        await (serve_stdio(app) if address is None else serve_http(app, address))


def _import_serving() -> tuple[Callable[[App], Awaitable[None]], Callable[[App, Address], Awaitable[None]]]:
    from .serving import serve_http, serve_stdio  # noqa: PLC0415 - as above

    return serve_stdio, serve_http


def _run(chosen: argparse.Namespace) -> int:
    home, settings = _home_and_settings(chosen)
    code = read_source(chosen.file)
    from .execution import CodeRequest  # noqa: PLC0415 - as above

    request = CodeRequest(
        code=code, timeout_seconds=chosen.timeout, memory_mb=chosen.memory, isolation=chosen.isolation
    )
    report = asyncio.run(_running_once(settings, home, request))
    if chosen.json:
        print(json.dumps(report, ensure_ascii=False))
    else:
        print_run(report)
    return EXIT_OF_STATUS[Status(report["status"])]


async def _running_once(settings: Settings, home: Home, request: CodeRequest) -> Report:
    from .app import running  # noqa: PLC0415 - as above
    from .execution import execute  # noqa: PLC0415 - as above

    async with running(replace(settings, workers_spare=0), home) as app:
        return (await execute(app, request)).report


def print_run(report: Report) -> None:
    """Print what the code wrote and its result; how it failed, and what was cut, goes to stderr."""
    if report["output"]:
        print(report["output"], end="" if report["output"].endswith("\n") else "\n")
    if report["result"] is not None:
        print(json.dumps(report["result"], ensure_ascii=False, indent=2))
    sys.stdout.flush()
    error = report["error"]
    if error is not None:
        where = "" if error["line"] is None else f" in line {error['line']}"
        _say(error["traceback"] or "")
        _say(f"sealab: {report['status']}{where}: {error['type']}: {error['message']}")
        _say(error["hint"] or "")
    if "images" in report:
        count = len(report["images"])
        _say(f"sealab: {count} figure{'s' * (count > 1)} not shown here. Save with savefig(path), then keep(path).")
    for what, note in report.get("truncated", {}).items():
        _say(f"sealab: {what}: {json.dumps(note, ensure_ascii=False)}")


def read_source(file: str) -> str:
    """Return the text of a file, or of stdin for `-`. Raises `UsageError`."""
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise UsageError(
            f"{file} cannot be read: {error.strerror}. Name a file of Python code, or - for stdin."
        ) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8 text (byte {error.start}). Save it as UTF-8.") from None


def _demo(chosen: argparse.Namespace) -> int:
    from .demo import show  # noqa: PLC0415 - as above

    return Exit.OK if asyncio.run(show(as_json=chosen.json)) else Exit.FAILED


def _doctor(chosen: argparse.Namespace) -> int:
    home, settings = _home_and_settings(chosen)
    from .doctor import as_lines, examined  # noqa: PLC0415 - as above

    findings = examined(settings, home)
    print(json.dumps(findings) if chosen.json else "\n".join(as_lines(findings)))
    return Exit.OK if findings["ok"] else Exit.FAILED


def _cause(error: BaseException) -> BaseException:
    """Return what went wrong, out of the groups that task groups wrap around it."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _say(text: str) -> None:
    if text:
        print(text.rstrip("\n"), file=sys.stderr, flush=True)
