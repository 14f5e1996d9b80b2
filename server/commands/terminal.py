"""What commands print on a terminal, and read for it."""
# ruff: noqa: T201 - printing is what a command line does

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UsageError

if TYPE_CHECKING:
    from ..runs.report import Report

_COMMAND_OF = {"list_skills": "sealab skills list", "search_tools": "sealab tools search WORDS"}
_MCP_TOOL = re.compile(r"`?\b(list_skills|search_tools)\b(?:\([^()]*\))?`?")
_ISOLATION = re.compile(r'isolation="(\w+)"')
_TERMINAL_WORDS = {
    " with memory_mb": " with --memory",
    "a longer timeout_seconds": "a longer --timeout",
    "value in context_vars": "value after `--`, which sys.argv has",
    "values in context_vars": "values after `--`, which sys.argv has",
    "this client cannot ask one": "a command cannot ask one",
    "With dry_run=true such calls are only noted down; or ask the user what to do instead.": (
        'To allow it without a yes, name the tool in "reads" of its server in mcp.json, or set "approve" there.'
    ),
}


def print_run(report: Report) -> None:
    """Print what the code wrote and its result; its own errors, how it failed, and what was cut, go to stderr."""
    from ..runs.tables.table_reports import table_line  # imports `typing_extensions`, which few commands need

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
    """Return a time in seconds since 1970 as it is shown: ISO 8601 in UTC, to the second."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
