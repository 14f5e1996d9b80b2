"""The command line. Data goes to stdout, everything else to stderr; errors are sentences, never a traceback."""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Literal

from .base.errors import KNOWN_ERRORS, Exit, exit_of
from .base.terminal_escaping import show_visibly
from .interfaces.commands.command import EXIT_CODES, Command, Group, Parser
from .interfaces.commands.terminal import Here, print_error, terminal_message

_VALUED_OPTIONS = frozenset({"--home", "--config", "--log-level", "--tenant"})
"""The options of every command that take a value."""
_OF_ALL = (
    "Every command takes --home DIR, the folder below which sealab keeps everything, --config FILE, --log-level LEVEL "
    "and --debug, before its name or after it."
)
_TRACE_HINT = "Run it again with --debug to see where."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. `sealab` alone, or with options only, serves."""
    given = _command_first(sys.argv[1:] if arguments is None else arguments)
    if sys.platform != "linux":
        from .interfaces.commands.handover import Machine, hand_over

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
        return _ended(chosen.command.start(chosen, " ".join(given[: 1 if given[0] in _ALONE else 2])))
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
            message = getattr(cause, "for_operator", str(cause))  # who types commands is the operator
            print_error(f"sealab: {terminal_message(message)}")
            return exit_of(cause)
        print_error(f"sealab: This is a fault of sealab itself: {type(cause).__name__}: {cause}. {_TRACE_HINT}")
        return Exit.FAILED


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
        case ["-h" | "--help" | "-v" | "-V" | "--version", *_]:
            return [*rest]
        case [first, *_] if first.startswith("-"):
            return ["serve", *options, *rest]
    named = 2 if rest[0] in _COMMANDS and rest[0] not in _ALONE else 1  # a command of a group is two words
    if len(rest) < named or (named == 2 and rest[1].startswith("-")):  # noqa: PLR2004 - see above
        return rest  # which asks for help, or lacks a command
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
    parser.add_argument(
        "-v", "-V", "--version", action=_Version, nargs=0, help="show program's version number and exit"
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, about in _COMMANDS.items():
        command = commands.add_parser(
            name, help=about, description=f"{about[:1].upper()}{about[1:]}.", epilog=EXIT_CODES, allow_abbrev=False
        )
        if only in (None, name):
            _command(name).complete(command)
    return parser


def _command(name: str) -> Command | Group:
    """Return what a word of `_COMMANDS` does; it stands in a module under that name."""
    if name == "completion":
        return Command(_completion, has_json=False, needs_home=False)
    module = import_module(_MODULES.get(name, f".interfaces.commands.{name}"), __package__)
    found: Command | Group = getattr(module, name)
    return found


class _Version(argparse.Action):
    """Prints the version, which takes a while to find out."""

    def __call__(self, parser: argparse.ArgumentParser, *_given: object) -> None:
        from importlib.metadata import version

        print(f"sealab {version('sealab')}")
        parser.exit()


def _completion(_here: Here, shell: Literal["bash", "zsh", "fish"]) -> int:
    """Print the completion script of a shell.

    shell SHELL: one of bash, zsh, fish
    """
    import shtab

    print(shtab.complete(make_parser(), shell=shell))
    return Exit.OK


_COMMANDS: Mapping[str, str] = {
    "serve": "serve MCP on stdin and stdout, or over HTTP",
    "run": "run one file as execute_code would",
    "init": "set up sealab: find clients, import their servers, add sealab to them, test it",
    "uninstall": "take sealab out of the clients, give them their servers back, and say what else is left",
    "demo": "run the main use case end to end, in a temporary home",
    "doctor": "check which isolation layers work on this machine",
    "status": "show on one screen what runs, waits and fails, and what is used",
    "top": "show the screen of status, renewed every few seconds",
    "stats": "say what runs used, in CPU seconds and tokens, by day, tenant or person",
    "console": "show runs, approvals, tools, skills and settings in a browser",
    "container": "build the image for isolation=container, or show the state of containers",
    "servers": "list, add, remove and import the upstream MCP servers",
    "pii": "replace personal data in files by tokens, restore or delete it",
    "guard": "put the privacy filter before any MCP server",
    "tools": "search and show upstream tools, write typed stubs for them",
    "policy": "check, explain and test the rules of a policy",
    "data": "make the environment in which code has numpy, pandas and the like, or show it",
    "packages": "add packages to that environment, or check which ones restricted code can import",
    "runs": "list and show the runs that were journaled, and run them again",
    "approvals": "answer what background runs wait for",
    "tokens": "create, list and revoke the access tokens of callers over HTTP",
    "tenants": "list, show, export and delete the tenants that share this server",
    "limits": "list and set what one tenant or one person may use, while servers run",
    "vault": "replace the key of the vault, while servers run",
    "audit": "list what happened, and check that no line of it was changed",
    "skills": "store, run and test skills, import and export them",
    "schedules": "run skills at set times",
    "completion": "print the completion script of a shell",
}
"""The commands and what each does, in the order of the help."""
_MODULES = {
    "serve": ".serve",
    "uninstall": ".interfaces.commands.init",
    "run": ".serve",
    "top": ".interfaces.commands.status",
}
_ALONE = frozenset(
    "serve run init uninstall demo doctor stats status top console guard audit completion".split()  # noqa: SIM905 - a table of words
)
"""Those that have no commands of their own."""


def _cause(error: BaseException) -> BaseException:
    """Return what went wrong, out of the groups that task groups wrap around it."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
