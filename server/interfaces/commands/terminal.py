"""What commands are given, print on a terminal, and read for it."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from ....sandbox.job import Status
from ...base.errors import EXIT_OF_STATUS, Exit, UsageError

if TYPE_CHECKING:
    from ....skills_db.audit.chain import Detail
    from ...base.home import Home
    from ...base.settings import Settings
    from ...use_cases.runs.report import Report

IsolationChoice = Literal["auto", "restricted", "process", "container"]
"""What a request may ask for."""
_SPAN = re.compile(r"(\d{1,6})([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_COMMAND_OF = {"list_skills": "sealab skills list", "search_tools": "sealab tools search WORDS"}
_MCP_TOOL = re.compile(r"`?\b(list_skills|search_tools)\b(?:\([^()]*\))?`?")
_ISOLATION = re.compile(r'isolation="(\w+)"')
_TERMINAL_WORDS = {
    " with memory_mb": " with --memory",
    "force=true": "--force",
    "a longer timeout_seconds": "a longer --timeout",
    "value in context_vars": "value after `--`, which sys.argv has",
    "values in context_vars": "values after `--`, which sys.argv has",
    "this client cannot ask one": "a command cannot ask one",
    "With dry_run=true such calls are only noted down; or ask the user what to do instead.": (
        'To allow it without a yes, name the tool in "reads" of its server in mcp.json, or set "approve" there.'
    ),
}


class Here:
    """What a command works with: the home and the settings that its command line names, and whether JSON is wanted."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        self.chosen = chosen
        self.json: bool = getattr(chosen, "json", False)
        self.audit_details: dict[str, Detail] = {}
        """What the command's line in the audit log says besides: ids, counts and hashes, no secret and no file."""
        self.found_in: str | None = None
        """The tenant that has what the command is about, where it looked for that in all of them."""

    @property
    def home(self) -> Home:
        """The home, or that of the tenant that is named."""
        return self._read[0]

    @property
    def settings(self) -> Settings:
        """The settings."""
        return self._read[1]

    @property
    def names_tenant(self) -> bool:
        """Whether the home is that of a tenant that the command line names."""
        return getattr(self.chosen, "tenants_home", None) is not None

    def settings_file(self, home: Home) -> Path:
        """Return the file of settings."""
        return home.settings_file if self.chosen.config is None else Path(self.chosen.config)

    def settings_now(self, file: Path) -> Settings:
        """Read the settings. Raises `SettingsError`."""
        from ...base.settings import read_settings

        chosen = self.chosen
        return read_settings(
            file=file,
            file_required=chosen.config is not None,
            environment=os.environ,
            command_line={"surface": getattr(chosen, "surface", None), "log_level": chosen.log_level},
        )

    @cached_property
    def _read(self) -> tuple[Home, Settings]:
        from ...base.home import find_home
        from ...base.settings import without_prefix
        from ...base.startup.process_setup import set_up_log
        from ...privacy.gates.log_gate import WithoutInputs

        chosen = self.chosen
        home = find_home(chosen.home, os.environ)
        settings = self.settings_now(self.settings_file(home))
        set_up_log(settings.log_level.value, WithoutInputs())
        for name in without_prefix(os.environ):
            print_error(f"sealab: {name} in the environment is not read. Set SEALAB_{name}, or remove it.")
        if (tenant := getattr(chosen, "tenants_home", None)) is not None:
            from ...use_cases.tenants.commanding import home_of_tenant

            home = home_of_tenant(settings, home, tenant)
        return home, settings


class Output(NamedTuple):
    """What a command prints: `data` with `--json`, else `lines`, or what `lines` prints itself; and its exit code."""

    data: object
    lines: str | Iterable[str] | Callable[[], None] = ()
    code: int = Exit.OK

    def printed(self, *, as_json: bool) -> int:
        """Print it and return the exit code."""
        if as_json:
            print(json.dumps(self.data, ensure_ascii=False, default=str))
        elif callable(self.lines):
            self.lines()
        else:
            for line in (self.lines,) if isinstance(self.lines, str) else self.lines:
                print(line)
        return self.code


def report_output(report: Report, data: object = None, *, note: str = "") -> Output:
    """Return the output of a command that ran code, which with `--json` is `data`, by default the report."""

    def shown() -> None:
        _print_run(report)
        print_error(note and f"sealab: {note}")

    return Output(data or report, shown, EXIT_OF_STATUS[Status(report["status"])])


def _print_run(report: Report) -> None:
    """Print what the code wrote and its result; its own errors, how it failed, and what was cut, go to stderr."""
    from ...use_cases.runs.tables.table_reports import (
        table_line,
    )  # imports `typing_extensions`, which few commands need

    if report["output"]:
        print(report["output"], end="" if report["output"].endswith("\n") else "\n")
    for shown in report.get("displayed", []):
        print(json.dumps(shown, ensure_ascii=False, indent=2))
    if report["result"] is not None:
        print(json.dumps(report["result"], ensure_ascii=False, indent=2))
    sys.stdout.flush()
    for table in report.get("tables", []):
        print_error(f"sealab: {table_line(table)}")
    print_error(report.get("stderr", "").rstrip("\n"))
    error = report["error"]
    if error is not None:
        where = "" if error["line"] is None else f" in line {error['line']}"
        last = f"{error['type']}: {error['message']}"  # which is said below, in the words of a terminal
        print_error((error["traceback"] or "").rstrip("\n").removesuffix(last))
        print_error(f"sealab: {report['status']}{where}: {error['type']}: {terminal_message(error['message'])}")
        print_error(terminal_message(error["hint"] or ""))
    for image in report.get("images", []):
        if "shows" in image:
            print_error(f"sealab: figure: {image['shows']}")
    if "images" in report:
        count = len(report["images"])
        print_error(
            f"sealab: {count} figure{'s' * (count > 1)} not shown here. Save with savefig(path), then keep(path)."
        )
    for what, note in report.get("truncated", {}).items():
        print_error(f"sealab: {what}: {json.dumps(note, ensure_ascii=False)}")


def read_bytes(file: str) -> bytes:
    """Return what is in a file, or of stdin for `-`. Raises `UsageError`."""
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}. Name a file, or - for stdin.") from None


def read_source(file: str) -> str:
    """Return the text of a file, or of stdin for `-`. Raises `UsageError`."""
    try:
        return read_bytes(file).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8 text (byte {error.start}). Save it as UTF-8.") from None


def terminal_message(message: str) -> str:
    """Return an error with commands and options in the place of the tools of MCP and their arguments."""
    message = _ISOLATION.sub(r"--isolation \1", message)
    for words, own in _TERMINAL_WORDS.items():
        message = message.replace(words, own)
    return _MCP_TOOL.sub(lambda named: f"`{_COMMAND_OF[named[1]]}`", message)


def print_error(text: str) -> None:
    """Print a line on stderr, unless it is empty."""
    if text:
        print(text.rstrip("\n"), file=sys.stderr, flush=True)


def moment(seconds: float) -> str:
    """Return a time in seconds since 1970 as it is shown: ISO 8601 to the second, in the zone in which it is read."""
    return datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="seconds").replace("+00:00", "Z")


def span_of(text: str) -> timedelta | None:
    """Return how long `30m`, `12h`, `7d` or `8w` is, or None for any other text."""
    found = _SPAN.fullmatch(text)
    return None if found is None else timedelta(**{_UNITS[found[2]]: int(found[1])})


def moment_of(text: str, option: str) -> float:
    """Return a moment that an option names, in seconds since 1970; without an offset it is of the machine's zone.

    Raises `UsageError`.
    """
    try:
        span = span_of(text)
        return (datetime.fromisoformat(text) if span is None else datetime.now(UTC) - span).timestamp()
    except (ValueError, OverflowError):
        raise UsageError(f"{option} cannot be {text}. Give 30m, 12h, 7d, or a time such as 2026-11-25T14:00.") from None


def counted(count: object, thing: str) -> str:
    """Return how many there are of a thing, such as `1 tool` or `3 tools`."""
    return f"{count} {thing}{'s' * (count != 1)}"


def nearest(given: str, known: Iterable[str]) -> str:
    """Return the question that names what was meant, or nothing."""
    close = get_close_matches(given, [*known], n=1)
    return f" Did you mean {close[0]}?" if close else ""
