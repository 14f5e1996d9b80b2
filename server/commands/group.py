"""A command that has commands of its own, such as `sealab servers add`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn, Protocol

from ..errors import Exit

if TYPE_CHECKING:
    from ..home import Home
    from ..settings import Settings

Begin = Callable[[argparse.Namespace], "tuple[Home, Settings]"]
"""Reads the home and the settings that a command line names."""

Options = Callable[[argparse.ArgumentParser], None]
"""Adds the options that all commands have."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are sentences, and which can take the words of another command line after `--`."""

    takes_words = False
    """Whether all that follows `--` goes into `words`, unread."""

    takes_options = False
    """Whether options that it does not know go into `words`, with their values."""

    def error(self, message: str) -> NoReturn:
        """End with one sentence on what was wrong and one on where to look."""
        self.exit(Exit.USAGE, f"sealab: {message[:1].upper()}{message[1:]}. See {self.prog} --help.\n")

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
        return chosen, unknown


Run = Callable[[argparse.Namespace, "Home"], int]
"""Runs one command and returns its exit code."""


class Make(Protocol):
    """Adds one command to the group and returns its parser, for the options of its own."""

    def __call__(self, name: str, run: Run, help_text: str, *, own_help: bool = False) -> Parser:
        """Add a command of that name; with `own_help` it answers `--help` itself."""
        ...


def add_commands(parser: argparse.ArgumentParser, begin: Begin, options: Options) -> Make:
    """Make a parser that of a group, and return what adds a command to it; every command has `--json`."""
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", required=True, help="what to do", parser_class=Parser
    )

    def make(name: str, run: Run, help_text: str, *, own_help: bool = False) -> Parser:
        command = commands.add_parser(
            name,
            help=help_text,
            description=f"{help_text[:1].upper()}{help_text[1:]}.",
            allow_abbrev=False,
            add_help=not own_help,
        )
        command.add_argument("--json", action="store_true", help="print it as JSON")
        command.set_defaults(command=lambda chosen: run(chosen, begin(chosen)[0]))
        options(command)
        return command

    return make
