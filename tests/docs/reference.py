"""Writes docs/reference from the program itself: its tools, the helpers in code, its settings and its commands.

`make reference` (`python -m tests.docs.reference`) writes the pages; `test_reference` compares them.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import inspect
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from typing import Any

from sealab.sandbox.guest_api import data_helpers, hosted, keeping
from sealab.server.base import settings
from sealab.server.base.settings import Settings
from sealab.server.cli import make_parser
from sealab.server.interfaces.commands.command import EXIT_CODES

from ..server.conftest import in_this_process

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
NOTE = "Written by `make reference` from the program; a test compares the two.\n"
SHARED_OPTIONS = {"--home", "--config", "--log-level", "--debug", "--json", "--help"}
SHARED_MEANINGS = {"work on what this tenant has", "look at this tenant alone, not at all"}
BY_MACHINE = {"required_level": "`landlock` on Linux, else `limits`"}
"""Defaults that are not the same everywhere."""
OF_OPERATOR = {"isolation": "`auto`, `restricted`, and of `process` and `container` what is allowed and there"}
"""Arguments whose values are not the same everywhere."""
NAMESPACES = {
    "tools": "`await tools.<server>.<tool>(**arguments)` calls an upstream tool: its structured content, else its text as "
    "parsed JSON, else its text.",
    "mcp_servers": '`mcp_servers["<server>"]`, `mcp_<server>` and `from mcp import runtime` are the names that the bridge '
    "`mcp-server-code-execution-mode` had.",
    "skills": "`skills.<name>(…)` and `from skills import <name>` call a saved skill, `skills.<name>.v2(…)` a version of it.",
    "ToolError": "What a failed call of a tool raises, with the server's own message.",
    "OutcomeUnknown": "The `ToolError` of a call that may change something and of which it is not known whether it was "
    "done: it was sent and no answer came, or its run was cut. It was not sent again.",
}
"""What is no function."""
GROUPS = {
    "Files of the workspace": ("read_file", "write_file", "list_files", "delete_file", "keep"),
    "Upstream tools": (
        "tools", "call_tool", "call_mcp_tool", "ToolError", "OutcomeUnknown", "search_tools", "get_tool_definition",
        "list_servers", "read_resource", "list_resources", "list_prompts", "mcp_servers",
    ),
    "Skills": (
        "skills", "save_skill", "load_skill", "list_skills", "call_skill", "skill_text", "skill_folder", "skill_script",
    ),
    "Personal data": ("sanitize_pii", "restore_pii"),
    "Runs and sessions": ("display", "progress", "list_sessions", "close_session"),
    "Small data helpers": ("summarize_list", "filter_by_field", "aggregate_stats", "format_output"),
}  # fmt: skip


def pages() -> Mapping[str, Callable[[], str]]:
    """Return the pages by name, each with what makes its text."""
    return {
        "tools.md": lambda: asyncio.run(_tools()),
        "helpers.md": _helpers,
        "settings.md": _settings,
        "commands.md": _commands,
    }


def _settings() -> str:
    declared = {each.name: each for each in fields(Settings)}
    about = _attribute_docstrings(Path(settings.__file__), "Settings")
    rows = [
        (f"`{name.upper()}`", BY_MACHINE.get(name) or _shown(getattr(Settings(), name)), about[name])
        for name in declared
    ]
    return f"""\
# Settings

{NOTE}
The command line wins over the environment (`SEALAB_<NAME>`), which wins over `<home>/sealab.toml`, where the names are
the same. The home is `--home`, else `$SEALAB_HOME`, else the platform's user data folder; nothing is written outside it.
An unknown name or a value that cannot be used stops the start with an error that names it. In `sealab.toml` lists and
tables are TOML's own; in the environment a list is parted by commas, and a table is a JSON object.

What is bounded, and what a caller sees beyond it, stands in [limits](../limits.md).

{_table(("name", "default", "meaning"), rows)}"""


def _attribute_docstrings(file: Path, of_class: str) -> dict[str, str]:
    """Return the strings that stand below the fields of a class, each on one line."""
    (found,) = (
        node for node in ast.parse(file.read_text()).body if isinstance(node, ast.ClassDef) and node.name == of_class
    )
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in zip(found.body, found.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def _shown(default: object) -> str:
    if default is None or default in ((), {}):
        return ""
    if isinstance(default, StrEnum):
        return f"`{default.value}`"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, tuple):
        return f"`{','.join(default)}`"
    return f"{default:g}" if isinstance(default, float) else f"{default}"


def _commands() -> str:
    parser = make_parser()
    exit_codes = EXIT_CODES.removeprefix("Exit codes: ")
    return f"""\
# Commands

{NOTE}
`sealab` without a command is `sealab serve`. Every command takes `--help` and `--debug` (show the traceback of an
error); those that use the home take `--home DIR`, `--config FILE` and `--log-level LEVEL` too, before or after the
command; those that print data take `--json`. With `--tenant` a command works on what that tenant has; one that looks at
all tenants looks at that one alone. Data goes to standard output, everything else to standard error. Exit codes: {exit_codes}

{"".join(_command(each) for each in _leaves(parser))}"""


def _leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield the commands that have none of their own, in the order in which help names them."""
    groups = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    for group in groups:
        for each in group.choices.values():
            yield from _leaves(each)
    if not groups:
        yield parser


def _command(parser: argparse.ArgumentParser) -> str:
    actions = [each for each in parser._actions if not SHARED_OPTIONS & set(each.option_strings)]
    words = [_word(each) for each in actions if not each.option_strings]
    options = ["[options]"] if any(each.option_strings for each in actions) else []
    usage = " ".join((parser.usage or " ".join([parser.prog, *options, *words])).split())
    shown = f"```text\n{usage}\n```\n\n" if words or parser.usage else ""
    listed = "".join(
        f"- `{_named(each)}`\n" if each.help in SHARED_MEANINGS else f"- `{_named(each)}`: {_meaning(each)}\n"
        for each in actions
    )
    own_codes = "" if parser.epilog in (None, EXIT_CODES) else f"{parser.epilog}\n\n"
    return f"""\
## {parser.prog}

{parser.description}

{shown}{listed and listed + chr(10)}{own_codes}"""


def _word(action: argparse.Action) -> str:
    """Return how an argument without a name stands in the usage."""
    many = " …" if action.nargs in {"*", "+"} else ""
    return f"[{_value(action)}{many}]" if action.nargs in {"*", "?"} else f"{_value(action)}{many}"


def _value(action: argparse.Action) -> str:
    return str(action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper()))


def _named(action: argparse.Action) -> str:
    """Return how an argument stands in a list."""
    if not action.option_strings:
        return _value(action)
    takes = action.nargs != 0 and not action.choices
    return f"{', '.join(action.option_strings)}{f' {_value(action)}' if takes else ''}"


def _meaning(action: argparse.Action) -> str:
    one_of = f" ({', '.join(f'`{each}`' for each in action.choices)})" if action.choices else ""
    return f"{action.help or ''}{one_of}"


async def _tools() -> str:
    with tempfile.TemporaryDirectory() as home:
        async with in_this_process(Path(home), {"SEALAB_ALLOWED_ISOLATION": "restricted"}) as caller:
            tools = (await caller.client.list_tools()).tools
            prompts = (await caller.client.list_prompts()).prompts
    listed = [(f"`{each.name}`", each.description or "") for each in prompts]
    return f"""\
# Tools

{NOTE}
What a client sees with `SURFACE=full`, word for word. `SURFACE=code` shows `execute_code` alone, `bridge`
`run_python(code, servers, timeout)` alone. `null` for an optional argument is its default; an argument that is not
listed is refused. The keys of a report are explained in [the sandbox](../sandbox.md#reading-a-report).

{"".join(_tool(each) for each in tools)}## Prompts and resources

{_table(("prompt", "does"), listed)}
The resource `resource://sealab/capabilities` says in a few lines what code can use, which [helpers](helpers.md) says in
full. Stored skills are resources too, `skill://<name>/SKILL.md`.
"""


def _tool(tool: Any) -> str:
    properties = tool.input_schema.get("properties", {})
    required = tool.input_schema.get("required", ())
    rows = [
        (
            f"`{name}`",
            OF_OPERATOR.get(name) or _kind(schema),
            "required" if name in required else f"`{_plain(schema['default'])}`" if "default" in schema else "",
            schema.get("description", ""),
        )
        for name, schema in properties.items()
    ]
    taken = _table(("argument", "type", "default", "meaning"), rows) if rows else "It takes no arguments.\n"
    keys = ", ".join(f"`{name}`" for name in (tool.output_schema or {}).get("properties", {}))
    description = " ".join(tool.description.split())
    return f"""\
## {tool.name}

{description}

{taken}
Returns {keys}.

"""


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{_plain(each)}`" for each in schema["enum"])
    kind = schema.get("type", "any")
    return ", ".join(each for each in ([kind] if isinstance(kind, str) else kind) if each != "null")


def _plain(value: object) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value).replace("'", '"')


def _helpers() -> str:
    helpers: dict[str, object] = {**hosted.helpers(), **data_helpers.helpers(), "keep": keeping.keep}
    unknown = helpers.keys() ^ {name for names in GROUPS.values() for name in names}
    if unknown:
        raise LookupError(f"{sorted(unknown)} stand in the program or in GROUPS alone. Name each helper in a group.")
    sections = "".join(
        f"## {title}\n\n{''.join(_helper(name, helpers[name]) for name in names)}" for title, names in GROUPS.items()
    )
    return f"""\
# Helpers in code

{NOTE}
What code finds without defining or importing it, beside `json`, `re`, `math`, `datetime`, `statistics`, `collections`,
`itertools`, `functools`, `random`, `string`, `decimal`, `fractions` and `asyncio`. What can be imported stands in
[the standard library](../standard-library.md). `keep` is there in full Python alone.

{sections.rstrip()}
"""


def _helper(name: str, helper: object) -> str:
    if name in NAMESPACES:
        return f"### {name}\n\n{NAMESPACES[name]}\n\n"
    assert callable(helper)
    signature = re.sub(r"(?<=[:>] )'([^']*)'", r"\1", str(inspect.signature(helper)))
    returns = signature.removesuffix(" -> object")
    prefix = "await " if inspect.iscoroutinefunction(helper) else ""
    return f"### {name}\n\n```text\n{prefix}{name}{returns}\n```\n\n{inspect.getdoc(helper)}\n\n"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *(tuple(cell.replace("|", "\\|") for cell in row) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    """Write the pages."""
    FOLDER.mkdir(exist_ok=True)
    for name, made in pages().items():
        (FOLDER / name).write_text(made().rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
