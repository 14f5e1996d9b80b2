"""A command that has commands of its own, such as `sealab servers add`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn, Protocol, TypeVar

from ..errors import Exit

if TYPE_CHECKING:
    from ..home import Home
    from ..settings import Settings

Begin = Callable[[argparse.Namespace], "tuple[Home, Settings]"]
"""Reads the home and the settings that a command line names."""

Options = Callable[[argparse.ArgumentParser], None]
"""Adds the options that all commands have."""


EXIT_CODES = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused, 4 a limit of time or memory was reached."
_INVALID_CHOICE = re.compile(
    r"argument (?P<where>[^:]+): invalid choice: '(?P<given>.*)' \(choose from (?P<known>[^()]*)\)"
)
_INVALID_NUMBER = re.compile(r"argument (?P<where>[^:]+): invalid (?P<kind>int|float) value: (?P<given>.*)", re.DOTALL)
_REQUIRED = re.compile(r"^the following arguments are required: (.*)$")


def _nearest(given: str, known: Sequence[str]) -> str:
    """Return the question that names what was meant, or nothing."""
    from difflib import get_close_matches

    close = get_close_matches(given, known, n=1)
    return f" Did you mean {close[0]}?" if close else ""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are sentences, and which can take the words of another command line after `--`."""

    takes_words = False
    """Whether all that follows `--` goes into `words`, unread."""

    takes_options = False
    """Whether options that it does not know go into `words`, with their values."""

    def error(self, message: str) -> NoReturn:
        """End with one sentence on what was wrong, one on what to do, and the usage of this command."""
        choice, missing = _INVALID_CHOICE.fullmatch(message), _REQUIRED.fullmatch(message)
        if choice is not None:
            self._end(self._not_one_of(choice["where"], choice["given"], choice["known"]))
        if (number := _INVALID_NUMBER.fullmatch(message)) is not None:
            wanted = "a whole number" if number["kind"] == "int" else "a number"
            self._end(f"{number['where']} cannot be {number['given']}: it takes {wanted}.")
        self._end(f"The command line lacks {missing[1]}." if missing else f"{message[:1].upper()}{message[1:]}.")

    def _end(self, said: str) -> NoReturn:
        self.exit(Exit.USAGE, f"sealab: {said} See {self.prog} --help.\n{self.format_usage()}")

    def _not_one_of(self, where: str, given: str, known: str) -> str:
        names = [each.strip("' ") for each in known.split(",")]
        kind = f"a command of {self.prog}" if where == "COMMAND" else f"a value of {where}"
        return f'"{given}" is not {kind}.{_nearest(given, names)} It is one of {", ".join(names)}.'

    def _reject(self, words: Sequence[str]) -> NoReturn:
        """End with what was given that this command does not take."""
        options = [each.partition("=")[0] for each in words if each.startswith("-")]
        if options:
            known = [each for action in self._actions for each in action.option_strings]
            self._end(f"The command has no option {options[0]}.{_nearest(options[0], known)}")
        self._end(f"The command does not take {' '.join(words)}.")

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 - the overloads of the library are its own
        """Split the words off, if this parser takes some, and read the rest."""
        words: Sequence[str] = ()
        if self.takes_words and args is not None and "--" in args:
            end = list(args).index("--")
            args, words = args[:end], args[end + 1 :]
        chosen, unknown = super().parse_known_args(args, namespace)
        if self.takes_words:
            chosen.words = [*words]
        elif self.takes_options:
            chosen.words, unknown = unknown, []
        if unknown:
            self._reject(unknown)
        return chosen, unknown


Run = Callable[[argparse.Namespace, "Home"], int]
"""Runs one command and returns its exit code."""


_R = TypeVar("_R")
_R_contra = TypeVar("_R_contra", contravariant=True)


class Make(Protocol[_R_contra]):
    """Adds one command to the group and returns its parser, for the options of its own."""

    def __call__(self, name: str, run: _R_contra, help_text: str, *, own_help: bool = False) -> Parser:
        """Add a command of that name; with `own_help` it answers `--help` itself."""
        ...


def add_commands(parser: argparse.ArgumentParser, begin: Begin, options: Options) -> Make[Run]:
    """Make a parser that of a group, and return what adds a command to it; every command has `--json`."""
    return commands_of(parser, options, lambda run, chosen: run(chosen, begin(chosen)[0]))


def commands_of(
    parser: argparse.ArgumentParser, options: Options, start: Callable[[_R, argparse.Namespace], int]
) -> Make[_R]:
    """Do the same for commands that need more than a home: `start` runs one with it, and returns its exit code."""
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", required=True, help="what to do", parser_class=Parser
    )

    def make(name: str, run: _R, help_text: str, *, own_help: bool = False) -> Parser:
        command = commands.add_parser(
            name,
            help=help_text,
            description=f"{help_text[:1].upper()}{help_text[1:]}.",
            epilog=EXIT_CODES,
            allow_abbrev=False,
            add_help=not own_help,
        )
        command.add_argument("--json", action="store_true", help="print it as JSON")
        command.set_defaults(command=lambda chosen: start(run, chosen))
        options(command)
        return command

    return make
