"""The command line. Data goes to stdout, everything else to stderr; errors are sentences, never a traceback."""
# ruff: noqa: T201 - printing is what a command line does

from __future__ import annotations

import argparse
import errno
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from .commands.group import EXIT_CODES, Parser
from .commands.terminal import print_error, print_run, read_source, terminal_message
from .errors import EXIT_OF_STATUS, KNOWN_ERRORS, Exit, exit_of
from .terminal_escaping import show_visibly

if TYPE_CHECKING:
    from .app import App
    from .home import Home
    from .protocol.address import Address, Exposure
    from .runs.report import Report
    from .runs.request import CodeRequest
    from .settings import Settings

_LEAVE_LINES = frozenset({"approvals", "container", "init", "pii", "runs", "servers", "skills", "tenants", "tokens"})
"""The commands, or groups of commands, of which some leave a line in the audit log."""
SHELLS = ("bash", "zsh", "fish")
_WARM_AFTER_SECONDS = 0.5
"""What loads for seconds begins when a client has had its list of tools."""
_VALUED_OPTIONS = frozenset({"--home", "--config", "--log-level", "--tenant"})
"""The options of every command that take a value."""
_PIPE_CHARS_MAX = 1 << 40
"""Characters of a run's output for another program: more than a run can give, so that nothing is cut."""
_OF_TENANTS = frozenset({"runs", "approvals", "skills", "pii"})
"""The groups of commands that work on what one tenant has."""
_DOCTOR_EXIT_CODES = (
    "Exit codes: 0 the required level is reached and all works, 1 it is not reached, 2 wrong usage, 3 it is reached, "
    "but something else does not work."
)
_OF_ALL = (
    "Every command takes --home DIR, the folder below which sealab keeps everything, --config FILE, --log-level LEVEL "
    "and --debug, before its name or after it."
)
_TRACE_HINT = "Run it again with --debug to see where."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. `sealab` alone, or with options only, serves."""
    given = _command_first(sys.argv[1:] if arguments is None else arguments)
    if sys.platform != "linux":
        from .commands.handover import Machine, hand_over

        if (ended := hand_over(given, Machine(sys.platform, os.environ))) is not None:
            return ended
    if not _open_streams():
        return Exit.USAGE
    chosen = argparse.Namespace(debug=False)
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as it was while all this was imported
            signal.signal(signal.SIGINT, signal.default_int_handler)
        show_visibly(stdout=given[0] not in {"guard", "serve"})
        chosen = make_parser(given[0]).parse_args(given)
        return _ended(_run_command(given, chosen))
    except KeyboardInterrupt:
        return 128 + 2
    except Exception as error:
        cause = _cause(error)
        if isinstance(cause, BrokenPipeError):
            _drop_stdout()
            return Exit.FAILED
        if chosen.debug:
            raise
        if isinstance(cause, OSError) and cause.errno in {errno.ENOSPC, errno.EDQUOT}:
            _drop_stdout()
            print_error(f"sealab: What was to be written has no room: {cause.strerror}. Make room, or write elsewhere.")
            return Exit.FAILED
        if isinstance(cause, KNOWN_ERRORS):
            told = getattr(cause, "for_operator", str(cause))  # who types commands is the operator
            print_error(f"sealab: {terminal_message(told)}")
            return exit_of(cause)
        print_error(f"sealab: This is a fault of sealab itself: {type(cause).__name__}: {cause}. {_TRACE_HINT}")
        return Exit.FAILED


def _run_command(given: Sequence[str], chosen: argparse.Namespace) -> int:
    """Run a command; one that changes who may do what, or takes data out, leaves a line in the audit log."""
    if sys.platform != "win32" and given[0] in _LEAVE_LINES:  # Windows itself has no database to leave it in
        from .commands.audit.acts import AUDITED, run_audited

        words = next((words for words in (" ".join(given[:2]), given[0]) if words in AUDITED), None)
        if words is not None:
            return run_audited(words, chosen, _home_and_settings)
    return int(chosen.command(chosen))


def _open_streams() -> bool:
    """Put `/dev/null` in the place of a closed stdin or stderr; return whether there is an output."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - open until the end
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open until the end
    if sys.stdout is None:
        print_error("sealab: Standard output is closed. Send it to a file, to a program or to /dev/null.")
        return False
    return True


def _ended(code: int) -> int:
    """Return the exit code once all is written: here a failure can still be said."""
    if not sys.stdout.closed:
        sys.stdout.flush()
    return code


def _drop_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that the last flush of stdout has nowhere to fail


def _command_first(given: Sequence[str]) -> list[str]:
    """Return a command line with its command in front: options that every command has may stand before it.

    `help servers` is `servers --help`, and options without a command are those of `serve`.
    """
    options, rest = _leading_options(given)
    match rest:
        case []:
            return ["serve", *options]
        case ["help", *command]:
            return [*command, "--help"]
        case ["-h" | "--help" | "-V" | "--version", *_]:
            return [*rest]
        case [first, *_] if first.startswith("-"):
            return ["serve", *options, *rest]
    # A command of a group is two words.
    in_group = _COMMANDS.get(rest[0], ("", None))[1] in {_complete_group, _complete_container}
    if in_group and (len(rest) == 1 or rest[1].startswith("-")):
        return rest  # which asks for help, or lacks a command
    named = 2 if in_group else 1
    return [*rest[:named], *options, *rest[named:]]


def _leading_options(given: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the options of every command off the start of a command line."""
    at = 0
    while at < len(given):
        name, equals, _ = given[at].partition("=")
        if name in _VALUED_OPTIONS:
            at += 1 if equals else 2
        elif given[at] == "--debug":
            at += 1
        else:
            break
    return [*given[:at]], [*given[at:]]


def make_parser(only: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of every command; with `only`, the others have neither options nor commands of their own."""
    parser = Parser(
        prog="sealab",
        description="An MCP server through which an AI agent runs Python instead of calling tools one by one.",
        epilog=f"Without a command, sealab serves MCP on stdin and stdout. {_OF_ALL} {EXIT_CODES}",
        allow_abbrev=False,
    )
    parser.add_argument("-V", "--version", action=_Version, nargs=0, help="show program's version number and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (help_text, complete) in _COMMANDS.items():
        command = commands.add_parser(
            name,
            help=help_text,
            description=f"{help_text[:1].upper()}{help_text[1:]}.",
            epilog=EXIT_CODES,
            allow_abbrev=False,
        )
        if only in (None, name):
            complete(command)
    return parser


class _Version(argparse.Action):
    """Prints the version, which takes a while to find out."""

    def __call__(self, parser: argparse.ArgumentParser, *_given: object) -> None:
        from importlib.metadata import version

        print(f"sealab {version('sealab')}")
        parser.exit()


def _complete_serve(serve: argparse.ArgumentParser) -> None:
    from .settings import Surface

    _add_common(serve, _serve)
    serve.add_argument("--http", metavar="HOST:PORT", help="serve streamable HTTP at /mcp on this address")
    serve.add_argument("--tls-cert", metavar="FILE", help="the certificate of an HTTPS server, with its chain, as PEM")
    serve.add_argument("--tls-key", metavar="FILE", help="its key, as PEM")
    serve.add_argument(
        "--behind-proxy",
        metavar="CIDR",
        help="the addresses or networks of the proxy, parted by commas, whose forwarded headers count",
    )
    serve.add_argument(
        "--surface",
        choices=[surface.value for surface in Surface],
        help="show all tools, execute_code alone, or run_python alone",
    )


def _complete_run(run: Parser) -> None:
    from .runs.isolations import AUTO, CHOICES

    _add_common(run, _run)
    run.add_argument("file", metavar="FILE", help="the Python file to run, or - for stdin")
    run.takes_words = True
    run.usage = "sealab run [options] FILE [-- ARGUMENT ...]"
    run.add_argument("--json", action="store_true", help="print the whole report as JSON")
    run.add_argument("--timeout", metavar="S", type=float, help="seconds the run may take")
    run.add_argument("--memory", metavar="MB", type=int, help="megabytes the run may use")
    run.add_argument(
        "--isolation",
        choices=CHOICES,
        default=AUTO,
        help="the isolation of the code, one of those that the operator allows",
    )


def _complete_demo(demo: argparse.ArgumentParser) -> None:
    demo.set_defaults(command=_demo)
    _add_debug(demo)
    demo.add_argument("--json", action="store_true", help="print what was shown as JSON")


def _complete_doctor(doctor: argparse.ArgumentParser) -> None:
    doctor.epilog = _DOCTOR_EXIT_CODES
    _add_common(doctor, _doctor)
    doctor.add_argument("--json", action="store_true", help="print the findings as JSON")


def _complete_init(init: argparse.ArgumentParser) -> None:
    from .commands.init import add_options

    _add_common(init, _init)
    add_options(init)


def _complete_guard(guard: Parser) -> None:
    from .commands.guard import add_options

    _add_common(guard, _guard)
    add_options(guard)


def _complete_container(group: argparse.ArgumentParser) -> None:
    from .commands.seccomp_profile import add_to

    commands = group.add_subparsers(title="commands", metavar="COMMAND", required=True, help="what to do")
    add_to(commands)
    try:
        from .commands import container
    except ImportError:  # a system without Linux's modules, which has no engine to try either
        return
    container.add_to(commands, _home_and_settings, _add_common)


def _complete_audit(audit: argparse.ArgumentParser) -> None:
    from .commands.audit import add_to

    add_to(audit, _home_and_settings, _add_common)


def _complete_group(group: argparse.ArgumentParser) -> None:
    name = group.prog.split()[-1]
    module = import_module(f".commands.{name}", __package__)
    module.add_to(group, _home_and_settings, _add_common_of_tenant if name in _OF_TENANTS else _add_common)


def _add_debug(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")


def _add_common(parser: argparse.ArgumentParser, command: Callable[[argparse.Namespace], int] | None = None) -> None:
    from .settings import LogLevel

    if command is not None:
        parser.set_defaults(command=command)
    _add_debug(parser)
    parser.add_argument("--home", metavar="DIR", help="the folder below which sealab keeps everything")
    parser.add_argument("--config", metavar="FILE", help="the file of settings, instead of <home>/sealab.toml")
    parser.add_argument("--log-level", metavar="LEVEL", help=f"what goes to stderr: {', '.join(LogLevel)}")


def _add_common_of_tenant(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command, and the one of those that work on what a tenant has."""
    _add_common(parser)
    parser.add_argument("--tenant", dest="tenants_home", metavar="TENANT", help="work on what this tenant has")


def _home_and_settings(chosen: argparse.Namespace) -> tuple[Home, Settings]:
    from .home import find_home
    from .privacy.gates.log_gate import WithoutInputs
    from .settings import read_settings
    from .startup.process_setup import set_up_log

    home = find_home(chosen.home, os.environ)
    settings = read_settings(
        file=home.settings_file if chosen.config is None else Path(chosen.config),
        file_required=chosen.config is not None,
        environment=os.environ,
        command_line={"surface": getattr(chosen, "surface", None), "log_level": chosen.log_level},
    )
    set_up_log(settings.log_level.value, WithoutInputs())
    if (tenant := getattr(chosen, "tenants_home", None)) is not None:
        from .tenants.commanding import home_of_tenant

        home = home_of_tenant(settings, home, tenant)
    return home, settings


def _serve(chosen: argparse.Namespace) -> int:
    import asyncio

    from .errors import UsageError
    from .protocol.address import Address, Exposure
    from .settings import Auth
    from .startup.process_setup import raise_descriptor_limit
    from .stats.watchdog import WatchedLoop

    home, settings = _home_and_settings(chosen)
    raise_descriptor_limit()
    exposure = Exposure.parse(
        authenticates=settings.auth is not Auth.OFF,
        certificate=chosen.tls_cert,
        key=chosen.tls_key,
        proxies=chosen.behind_proxy,
        public_url=settings.public_url,
    )
    address = None if chosen.http is None else Address.parse(chosen.http, exposure)
    if address is None and (exposure.has_tls or exposure.proxies):
        raise UsageError("--tls-cert, --tls-key and --behind-proxy are for HTTP. Give --http HOST:PORT too.")
    if address is None and sys.stdin.isatty():
        print_error(
            "sealab waits for an MCP client on stdin and stdout. `sealab demo` shows what it does; Ctrl-C ends it."
        )
    with asyncio.Runner(loop_factory=WatchedLoop) as runner:
        runner.run(_serving(settings, home, address, exposure))
    return Exit.OK


async def _serving(settings: Settings, home: Home, address: Address | None, exposure: Exposure) -> None:
    import asyncio

    from .app import running
    from .stats.watchdog import watching

    async with running(settings, home, serves=True, listens=address is not None) as app:
        # The zygote starts while this process imports the SDK, which takes most of the start.
        await asyncio.sleep(0)
        starting = asyncio.create_task(app.pools.ready())
        await asyncio.sleep(0)
        from .startup.light_import import imported

        serve = imported(
            _import_stdio if address is None else partial(_import_http, address, exposure), http=address is not None
        )
        await starting
        if home.holds_something_to_find or settings.database_url is not None or settings.discover:
            app.registry.warm()
        if app.privacy.filters:
            asyncio.get_running_loop().call_later(_WARM_AFTER_SECONDS, app.privacy.warm)
        await app.audit.server_started("stdio" if address is None else "http")
        warming = asyncio.create_task(_warm_full_python(app))
        with watching(app.loop_stats):
            await serve(app)
        warming.cancel()
        app.audit.server_stopped()


async def _warm_full_python(app: App) -> None:
    """Have workers of full Python ready before code comes, where it comes without being asked for."""
    import asyncio

    if app.executor.offer.full_python.is_default:
        from .runs.placement.routing import can_start

        await asyncio.sleep(_WARM_AFTER_SECONDS)
        await can_start(app.executor)


def _import_stdio() -> Callable[[App], Awaitable[None]]:
    from .protocol.serving import serve_stdio

    return serve_stdio


def _import_http(address: Address, exposure: Exposure) -> Callable[[App], Awaitable[None]]:
    from .protocol.web.http_serving import serve_http

    return partial(serve_http, address=address, exposure=exposure)


def _run(chosen: argparse.Namespace) -> int:
    home, settings = _home_and_settings(chosen)
    code = read_source(chosen.file)
    import asyncio

    from ..sandbox.job import Status
    from .runs.request import CodeRequest

    request = CodeRequest(
        code=code,
        timeout_seconds=chosen.timeout,
        memory_mb=chosen.memory,
        isolation=chosen.isolation,
        arguments=(Path(chosen.file).name, *chosen.words) if chosen.words else (),
    )
    if not sys.stdout.isatty():
        settings = replace(settings, output_max_chars=_PIPE_CHARS_MAX)
    report = asyncio.run(_running_once(settings, home, request))
    if chosen.json:
        print(json.dumps(report, ensure_ascii=False))
    else:
        print_run(report)
    return EXIT_OF_STATUS[Status(report["status"])]


async def _running_once(settings: Settings, home: Home, request: CodeRequest) -> Report:
    from .app import running
    from .runs.execute import execute

    async with running(replace(settings, workers_spare=0), home) as app:
        return (await execute(app.executor, request)).report


def _complete_completion(completion: argparse.ArgumentParser) -> None:
    completion.set_defaults(command=_completion)
    _add_debug(completion)
    completion.add_argument("shell", metavar="SHELL", choices=SHELLS, help=f"one of {', '.join(SHELLS)}")


def _completion(chosen: argparse.Namespace) -> int:
    import shtab

    print(shtab.complete(make_parser(), shell=chosen.shell))
    return Exit.OK


def _demo(chosen: argparse.Namespace) -> int:
    import asyncio

    from .commands.demo import show

    return Exit.OK if asyncio.run(show(as_json=chosen.json)) else Exit.FAILED


def _doctor(chosen: argparse.Namespace) -> int:
    home, settings = _home_and_settings(chosen)
    from .commands.doctor import as_lines, examined, exit_of

    findings = examined(settings, home)
    print(json.dumps(findings) if chosen.json else "\n".join(as_lines(findings)))
    return exit_of(findings)


def _init(chosen: argparse.Namespace) -> int:
    from .commands.init import run

    return run(chosen, _home_and_settings(chosen)[0])


def _guard(chosen: argparse.Namespace) -> int:
    from .commands.guard import run

    return run(chosen, *_home_and_settings(chosen))


_COMMANDS: Mapping[str, tuple[str, Callable[[Parser], None]]] = {
    "serve": ("serve MCP on stdin and stdout, or over HTTP", _complete_serve),
    "run": ("run one file as execute_code would", _complete_run),
    "init": ("set up sealab: find clients, import their servers, add sealab to them, test it", _complete_init),
    "demo": ("run the main use case end to end, in a temporary home", _complete_demo),
    "doctor": ("check which isolation layers work on this machine", _complete_doctor),
    "container": ("build the image for isolation=container, or show the state of containers", _complete_container),
    "servers": ("list, add, remove and import the upstream MCP servers", _complete_group),
    "pii": ("replace personal data in files by tokens, restore or delete it", _complete_group),
    "guard": ("put the privacy filter before any MCP server", _complete_guard),
    "tools": ("search and show upstream tools, write typed stubs for them", _complete_group),
    "policy": ("check, explain and test the rules of a policy", _complete_group),
    "data": ("make the environment in which code has numpy, pandas and the like, or show it", _complete_group),
    "packages": ("add packages to that environment, or check which ones restricted code can import", _complete_group),
    "runs": ("list and show the runs that were journaled, and run them again", _complete_group),
    "approvals": ("answer what background runs wait for", _complete_group),
    "tokens": ("give out, list and revoke the tokens with which others call over HTTP", _complete_group),
    "tenants": ("list, show, export and delete the tenants that share this server", _complete_group),
    "audit": ("list what happened, and check that no line of it was changed", _complete_audit),
    "skills": ("store, run and test skills, import and export them", _complete_group),
    "completion": ("print the completion script of a shell", _complete_completion),
}
"""The commands, in the order of the help: what each does, and the function that adds its arguments."""


def _cause(error: BaseException) -> BaseException:
    """Return what went wrong, out of the groups that task groups wrap around it."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
