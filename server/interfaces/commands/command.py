"""One way to make a command: a function, whose parameters are the command line's and whose docstring is the help.

The docstring's first paragraph says what the command does; after it a line `name METAVAR: help` describes a parameter.
A positional parameter is an argument, one that is keyword-only an option, and `*words` is what follows `--`, unread.
Types are `str`, `int`, `float`, `bool`, `Path`, a `Literal` or `StrEnum` of choices, `X | None`, and `Sequence[X]` of
what may be repeated. A trailing underscore of a name is left out, as in `--from`.

What all commands share is here: the home and the settings, JSON or lines, and the line in the audit log.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, TypeVar, Union, get_args, get_origin

from ...base.errors import KNOWN_ERRORS, Exit, RequestRefused, exit_of
from .terminal import Here, Output, nearest, print_error

if TYPE_CHECKING:
    from ....skills_db.audit.chain import Detail
    from ...base.identity import Identity

EXIT_CODES = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused, 4 a limit of time or memory was reached."
LOG_LEVELS = "DEBUG, INFO, WARNING, ERROR, CRITICAL"
_INVALID_CHOICE = re.compile(
    r"argument (?P<where>[^:]+): invalid choice: '(?P<given>.*)' \(choose from (?P<known>[^()]*)\)"
)
_INVALID_NUMBER = re.compile(r"argument (?P<where>[^:]+): invalid (?P<kind>int|float) value: (?P<given>.*)", re.DOTALL)
_REQUIRED = re.compile(r"^the following arguments are required: (.*)$")
_PARAMETER = re.compile(r"(?P<name>\w+)(?: (?P<metavar>\S+))?: (?P<help>.*)")
_LETTERS = {"output": "-o"}
"""The options that have a letter too."""


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
        return f'"{given}" is not {kind}.{nearest(given, names)} It is one of {", ".join(names)}.'

    def _reject(self, words: Sequence[str]) -> NoReturn:
        """End with what was given that this command does not take."""
        options = [each.partition("=")[0] for each in words if each.startswith("-")]
        if options:
            known = [each for action in self._actions for each in action.option_strings]
            self._end(f"The command has no option {options[0]}.{nearest(options[0], known)}")
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


class AuditedAs(NamedTuple):
    """Says that a command leaves a line in the audit log, of which kind, and which parameters name its subject.

    A line has the command, the name or id it was about, and how it ended; never a file's name nor a value. None is left
    with `--dry-run`, where `only_with` was not given, nor where the command refused what it was given.
    """

    kind: str = "administered"
    about: str | None = None
    run: str | None = None
    only_with: str | None = None


Opens = Callable[[Here], AbstractContextManager[Any] | AbstractAsyncContextManager[Any]]
_Function = TypeVar("_Function", bound=Callable[..., Any])
"""A command's function gives an `Output` or an exit code, or is a coroutine function that does."""


class Command(NamedTuple):
    """A function as a command. Its first parameter is `Here`; the second, with `opens`, what that opens meanwhile."""

    function: Callable[..., Any]
    audit: AuditedAs | None = None
    opens: Opens | None = None
    usage: str | None = None
    epilog: str = EXIT_CODES
    has_json: bool = True
    needs_home: bool = True
    of_tenant: bool = False
    of_all_tenants: bool = False
    """Whether it looks at every tenant, unless one is named."""
    own_help: bool = False
    """Whether it answers `--help` itself."""
    takes_options: bool = False
    """Whether `*words` are options that are not its own, instead of what follows `--`."""

    @property
    def about(self) -> str:
        """What it does, as one sentence."""
        return self._described()[0]

    def complete(self, parser: Parser) -> None:
        """Give a parser the arguments of this command."""
        parser.set_defaults(command=self)
        parser.epilog, parser.usage = self.epilog, self.usage
        parser.takes_options = self.takes_options
        described = self._described()[1]
        for each in self._parameters():
            if each.kind is each.VAR_POSITIONAL:
                parser.takes_words = not self.takes_options
                continue
            metavar, help_text = described[each.name]
            kind = eval(each.annotation, self.function.__globals__)  # noqa: S307 - the text of an annotation here
            _add(parser, each, kind, metavar, help_text.replace("%", "%%"))
        if self.has_json:
            parser.add_argument("--json", action="store_true", help="print it as JSON")
        parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
        if self.needs_home:
            parser.add_argument("--home", metavar="DIR", help="the folder below which sealab keeps everything")
            parser.add_argument("--config", metavar="FILE", help="the file of settings, instead of <home>/sealab.toml")
            parser.add_argument("--log-level", metavar="LEVEL", help=f"what goes to stderr: {LOG_LEVELS}")
        if self.of_tenant or self.of_all_tenants:
            help_text = (
                "look at this tenant alone, not at all" if self.of_all_tenants else "work on what this tenant has"
            )
            parser.add_argument("--tenant", dest="tenants_home", metavar="TENANT", help=help_text)

    def start(self, chosen: argparse.Namespace, words: str) -> int:
        """Run the command that `words` name, print what it gives and return its exit code.

        Where lines in the audit log are required, one is written before it begins too: without that it is refused,
        with `AuditUnwritten`.
        """
        here = Here(chosen)
        if self.needs_home:
            here.settings  # noqa: B018 - what cannot be used is said before anything is done
        if not self._leaves_a_line(here):
            return self._run(here)
        is_required = here.settings.audit.value == "required"
        if is_required:
            self._leave_line(here, words, "begins")
        outcome = "failed"
        try:
            code = self._run(here)
            outcome = Exit(code).name.lower()
        except KNOWN_ERRORS as error:
            outcome = exit_of(error).name.lower()
            raise
        finally:
            try:
                if is_required or outcome != "usage":
                    self._leave_line(here, words, outcome)
            except KNOWN_ERRORS as error:
                print_error(f"sealab: The audit log has no line of this. {error}")
        return code

    def _leaves_a_line(self, here: Here) -> bool:
        if self.audit is None or getattr(here.chosen, "dry_run", False) or here.settings.audit.value == "off":
            return False
        return self.audit.only_with is None or bool(getattr(here.chosen, self.audit.only_with))

    def _run(self, here: Here) -> int:
        given: list[Any] = []
        options: dict[str, Any] = {}
        for each in self._parameters():
            value = getattr(here.chosen, each.name)
            if each.kind is each.KEYWORD_ONLY:
                options[each.name] = value
            elif each.kind is each.VAR_POSITIONAL:
                given += value
            else:
                given.append(value)
        ended: Output | int
        if inspect.iscoroutinefunction(self.function):
            import asyncio

            ended = asyncio.run(self._awaited(here, given, options))
        elif self.opens is None:
            ended = self.function(here, *given, **options)
        else:
            with self.opens(here) as opened:  # type: ignore[union-attr]  # of a plain function it is a plain one
                ended = self.function(here, opened, *given, **options)
        return ended.printed(as_json=here.json) if isinstance(ended, Output) else ended

    async def _awaited(self, here: Here, given: Sequence[Any], options: Mapping[str, Any]) -> Output | int:
        ended: Output | int
        if self.opens is None:
            ended = await self.function(here, *given, **options)
        else:
            async with self.opens(here) as opened:  # type: ignore[union-attr]  # see above
                ended = await self.function(here, opened, *given, **options)
        return ended

    def _leave_line(self, here: Here, words: str, outcome: str) -> None:
        """Write the line of this command. Raises `AuditUnwritten`."""
        from ...governance.audit.audit_log import AuditLog
        from ...governance.audit.trail import AuditKind, AuditTrail
        from .opened import opened_log

        assert self.audit is not None
        about, run = self.audit.about, self.audit.run
        details: dict[str, Detail] = {"command": words}
        if about is not None:
            details["name"] = str(getattr(here.chosen, about))
        with opened_log(here.home, here.settings) as store:
            log = AuditLog(store)
            AuditTrail(log).acted(
                AuditKind(self.audit.kind),
                _user(here),
                run="" if run is None else str(getattr(here.chosen, run)),
                outcome=outcome,
                details=details | here.audit_details,
            )
            try:
                log.flush()
            finally:
                log.close()

    def _parameters(self) -> list[inspect.Parameter]:
        return [*inspect.signature(self.function).parameters.values()][1 if self.opens is None else 2 :]

    def _described(self) -> tuple[str, Mapping[str, tuple[str | None, str]]]:
        about, _, listed = inspect.cleandoc(self.function.__doc__ or "").partition("\n\n")
        found = [_PARAMETER.fullmatch(" ".join(each.split())) for each in re.split(r"\n(?! )", listed)]
        return " ".join(about.split()), {each["name"]: (each["metavar"], each["help"]) for each in found if each}


class Group:
    """A command that has commands of its own, such as `sealab servers add`.

    They share what is said here; see the fields of `Command`.
    """

    def __init__(self, **shared: Any) -> None:
        self._shared = shared
        self.commands: dict[str, Command] = {}

    def command(self, **how: Any) -> Callable[[_Function], _Function]:
        """Make a function a command of this group; see the fields of `Command`."""

        def make(function: _Function) -> _Function:
            name = function.__name__.strip("_").replace("_", "-")
            self.commands[name] = Command(function, **self._shared | how)
            return function

        return make

    def complete(self, parser: Parser) -> None:
        """Give a parser the commands of this group."""
        made = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, help="what to do")
        for name, command in self.commands.items():
            about = command.about
            help_text = f"{about[:1].lower()}{about[1:]}".removesuffix(".")
            add_help = not command.own_help
            command.complete(
                made.add_parser(name, help=help_text, description=about, allow_abbrev=False, add_help=add_help)
            )


def _add(parser: Parser, parameter: inspect.Parameter, kind: Any, metavar: str | None, help_text: str) -> None:
    """Give a parser one argument or option of that type."""
    is_option = parameter.kind is parameter.KEYWORD_ONLY
    has_default = parameter.default is not parameter.empty
    how: dict[str, Any] = {"help": help_text, "default": parameter.default if has_default else None}
    if get_origin(kind) in {UnionType, Union}:
        kind = next(each for each in get_args(kind) if each is not NoneType)
    repeated = get_origin(kind) is Sequence
    if repeated:
        [kind] = get_args(kind)
        how |= {"action": "append", "default": []} if is_option else {"nargs": "*" if has_default else "+"}
    elif has_default and not is_option:
        how["nargs"] = "?"
    if get_origin(kind) is Literal:
        how["choices"] = get_args(kind)
    elif issubclass(kind, StrEnum):
        how["choices"] = [each.value for each in kind]
    elif kind is bool:
        how["action"] = "store_true"
    elif kind is not str:
        how["type"] = _path if kind is Path else kind
    name = parameter.name.strip("_")
    if kind is not bool and (metavar or "choices" not in how):
        how["metavar"] = metavar or name.upper()
    if is_option:
        how["dest"] = parameter.name
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, *([_LETTERS[name]] if name in _LETTERS else []), **how)
    else:
        parser.add_argument(parameter.name, **how)


def _path(text: str) -> Path:
    return Path(text).expanduser().absolute()


def _user(here: Here) -> Identity:
    """Return the user of this machine, in the tenant that the command is about."""
    from ...base.identity import DEFAULT_TENANT, LOCAL_IDENTITY
    from ...governance.access.names import tenant_name

    named = getattr(here.chosen, "tenant", None)
    try:
        tenant = tenant_name(named) if isinstance(named, str) else here.found_in or here.home.tenant
    except RequestRefused:  # which the command says too; what was given may be anything
        tenant = DEFAULT_TENANT
    return replace(LOCAL_IDENTITY, tenant=tenant)
