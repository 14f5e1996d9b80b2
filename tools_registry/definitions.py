"""Reads definitions of tools: files below `tools/`, and what servers answer to `tools/list`.

    tools/<category>/<name>.json|yaml|yml    one definition: name description input_schema …
    tools/<category>.json|yaml|yml           a whole result of tools/list, {"tools": […]}, of a server of that name

Keys may be MCP's own (`inputSchema`) or in snake_case (`input_schema`); the schema may also stand under `parameters`. A
file that cannot be read is a `Problem`, and the rest load.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from math import inf
from pathlib import Path

from .errors import DefinitionRefused
from .models import NO_ARGUMENTS, DefinitionSource, Json, Provenance, Schema, Tool
from .short_values import holds_more
from .yaml_values import read_yaml

FETCHED = ".stored"
"""The folder, in that of the definitions, of those that an object store has; whoever changes it sets its time anew."""
FILE_BYTES_MAX = 64 * 1024 * 1024
NAME_CHARS_MAX = 256
TEXT_CHARS_MAX = 500_000
"""The longest text of a definition, and the longest name of something in it."""
DEFINITION_CHARS_MAX = 2_000_000
"""All texts of one definition together."""
SUFFIXES = (".json", ".yaml", ".yml")
_KEYS = frozenset(
    "name title description server category annotations use_cases useCases icons execution meta _meta "  # noqa: SIM905 - a table of words
    "output_schema outputSchema input_schema inputSchema parameters".split()
)
"""Keys that a definition without parameters may have."""
_KEYS_SHOWN_CHARS = 100
_HINTS = {
    "read_only_hint": "readOnlyHint",
    "destructive_hint": "destructiveHint",
    "idempotent_hint": "idempotentHint",
    "open_world_hint": "openWorldHint",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """A definition that did not load: the file below the folder read, or the server, and why."""

    where: str
    why: str
    tool: str = ""
    """The name of the tool, of one that a server listed."""

    def __str__(self) -> str:
        return f"{self.where}: {self.why}"


@dataclass(frozen=True, slots=True)
class Definition:
    """What one definition says, before it is known which category its server has."""

    tool: Tool
    folder: str
    """The folder, or the name of the whole list: its category, unless `mcp.json` says another."""


def read_folder(folder: Path) -> tuple[list[Definition], list[Problem]]:
    """Read every definition below a folder, in the order of the names; a folder that is not there has none.

    Those that were `FETCHED` from elsewhere follow.
    """
    definitions: list[Definition] = []
    problems: list[Problem] = []
    for category, file_name, path in chain(
        _files(os.fspath(folder), problems), _files(os.fspath(folder / FETCHED), problems)
    ):
        where = file_name if category is None else f"{category}/{file_name}"
        stem = os.path.splitext(file_name)[0]
        try:
            content = _content(path)
            provenance = Provenance(DefinitionSource.FILE, where)
            if isinstance(content, Mapping) and isinstance(content.get("tools"), list) and "name" not in content:
                server = content.get("server")
                of_list = _listed(
                    content["tools"], server if isinstance(server, str) and server else stem, provenance, problems
                )
                definitions.extend(Definition(tool, category or stem) for tool in of_list)
            elif category is not None:
                definitions.append(Definition(tool_of(content, category, provenance), category))
            else:
                problems.append(
                    Problem(where, 'it holds no {"tools": […]}. Put a single definition into a folder below.')
                )
        except DefinitionRefused as refusal:
            problems.append(Problem(where, str(refusal)))
    return definitions, problems


def last_change(folder: Path, *, depth: int = 2) -> int:
    """Return when a file was last added, removed or written below a folder, in nanoseconds; 0 where there is none.

    With `depth=1` a definition that was written over in its category goes unnoticed, and with `depth=0` all that does
    not change which entries the folder itself has; looking is much faster.
    """
    newest = 0
    for each in (os.fspath(folder), *(_below(os.fspath(folder), depth) if depth else ())):
        with suppress(OSError):  # it may be gone by now
            newest = max(newest, os.stat(each).st_mtime_ns)
    return newest


def _below(folder: str, depth: int) -> Iterator[str]:
    with suppress(OSError), os.scandir(folder) as entries:
        for each in entries:
            yield each.path
            if depth > 1 and each.is_dir():
                yield from _below(each.path, depth - 1)


def tools_of(listed: object, server: str, version: str) -> tuple[list[Tool], list[Problem]]:
    """Read the `tools` of a server's answer to tools/list; what cannot be read is left out and said."""
    problems: list[Problem] = []
    if not isinstance(listed, list | tuple):
        return [], [Problem(server, "its list of tools is not a list. Ask its makers.")]
    # The server is the one that was asked, whatever the answer says.
    ours = [{**each, "server": server} if isinstance(each, Mapping) else each for each in listed]
    return list(_listed(ours, server, Provenance(DefinitionSource.UPSTREAM, version), problems)), problems


def tool_of(content: object, server: str, provenance: Provenance) -> Tool:
    """Make a tool of one definition. Raises `DefinitionRefused`, which says what is wrong with it."""
    if not isinstance(content, Mapping):
        raise DefinitionRefused("it is not an object. Give one with name, description and input_schema.")
    if holds_more(dict(content), inf, text_chars_max=TEXT_CHARS_MAX, chars_max=DEFINITION_CHARS_MAX):
        raise DefinitionRefused(
            f"it has a text above {TEXT_CHARS_MAX} characters, or more than {DEFINITION_CHARS_MAX} in all. "
            "Shorten its texts."
        )
    name = content.get("name")
    if not isinstance(name, str) or not name.strip():
        raise DefinitionRefused("it has no name. Give it a name, which is a text.")
    if len(name) > NAME_CHARS_MAX or not name.isprintable():
        raise DefinitionRefused(f"its name {name[:40]!r} is too long or cannot be printed. Give it another name.")
    named = content.get("server", server)
    if not isinstance(named, str) or not named.strip() or not named.isprintable():
        raise DefinitionRefused(f"the server of {name} is {str(named)[:40]!r}. Give the name of a server.")
    description = _either(content, "description")
    if not isinstance(description, str | None):
        raise DefinitionRefused(f"the description of {name} is not a string. Give a string.")
    title = content.get("title")
    input_schema = _schema(content, "input_schema", "inputSchema", name, "parameters")
    unknown = sorted(map(str, content.keys() - _KEYS)) if provenance.source is DefinitionSource.FILE else []
    if input_schema is None and unknown:
        raise DefinitionRefused(
            f"{name} has no input_schema, but {', '.join(unknown)[:_KEYS_SHOWN_CHARS]}, which means nothing here. "
            "Give its parameters as input_schema, a JSON Schema."
        )
    return Tool(
        name=name,
        server=named,
        category=named,
        description=(description or "").strip(),
        input_schema=NO_ARGUMENTS if input_schema is None else input_schema,
        output_schema=_schema(content, "output_schema", "outputSchema", name),
        annotations=_annotations(content.get("annotations"), name),
        use_cases=_texts(_either(content, "use_cases", "useCases"), name),
        title=title if isinstance(title, str) else "",
        provenance=provenance,
    )


def published(tool: Tool) -> dict[str, Json]:
    """Return a tool as tools/list would: the inverse of `tool_of`."""
    known: dict[str, Json] = {
        "name": tool.name,
        "title": tool.title or None,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "annotations": dict(tool.annotations) or None,
        "use_cases": list(tool.use_cases) or None,
    }
    return {
        key: dict(value) if isinstance(value, Mapping) else value for key, value in known.items() if value is not None
    }


def _files(folder: str, problems: list[Problem]) -> Iterator[tuple[str | None, str, str]]:
    """Give (category, file name, path) of each file of definitions; the category is None in the folder itself."""
    for entry in _entries(folder, "tools", problems):
        if entry.is_dir():
            for below in _entries(entry.path, entry.name, problems):
                if below.name.lower().endswith(SUFFIXES) and not below.is_dir():
                    yield entry.name, below.name, below.path
        elif entry.name.lower().endswith(SUFFIXES):
            yield None, entry.name, entry.path


def _entries(folder: str, shown: str, problems: list[Problem]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted((each for each in entries if not each.name.startswith(".")), key=lambda each: each.name)
    except FileNotFoundError:
        return []
    except OSError as error:
        problems.append(Problem(shown, f"it cannot be read: {error.strerror}. Correct its permissions."))
        return []


def _content(path: str) -> object:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe without a writer does not block
        try:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode) or found.st_size > FILE_BYTES_MAX:
                raise DefinitionRefused(f"it is not a regular file below {FILE_BYTES_MAX // 1024**2} MB. Replace it.")
            data = os.read(file, found.st_size + 1)
        finally:
            os.close(file)
    except OSError as error:
        raise DefinitionRefused(f"it cannot be read: {error.strerror}. Correct or remove it.") from None
    try:
        return json.loads(data.decode("utf-8-sig")) if path.lower().endswith(".json") else read_yaml(data)
    except UnicodeDecodeError:
        raise DefinitionRefused("it is not UTF-8. Save it as UTF-8.") from None
    except RecursionError:
        raise DefinitionRefused("it is nested too deeply. Make it flatter.") from None
    except json.JSONDecodeError as error:
        raise DefinitionRefused(
            f"it is not valid JSON: {error.msg} in line {error.lineno}, column {error.colno}. Correct that."
        ) from None
    except ValueError:
        raise DefinitionRefused("it holds a number that cannot be read. Make it a shorter one, or a string.") from None


def _listed(listed: Sequence[object], server: str, provenance: Provenance, problems: list[Problem]) -> Iterator[Tool]:
    where = provenance.where if provenance.source is DefinitionSource.FILE else server
    for number, content in enumerate(listed, 1):
        try:
            yield tool_of(content, server, provenance)
        except DefinitionRefused as refusal:
            name = str(content.get("name", ""))[:NAME_CHARS_MAX] if isinstance(content, Mapping) else ""
            problems.append(Problem(f"{where}, tool {number}", str(refusal), name))


def _either(content: Mapping[str, object], *keys: str) -> object:
    for key in keys:
        found = content.get(key)
        if found is not None:
            return found
    return None


def _schema(content: Mapping[str, object], snake: str, camel: str, name: str, former: str = "") -> Schema | None:
    found = _either(content, snake, camel, former)
    if found is None or isinstance(found, bool | Mapping):
        return found
    raise DefinitionRefused(f"the {snake} of {name} is not a JSON Schema. Give an object.")


def _annotations(found: object, name: str) -> Mapping[str, Json]:
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise DefinitionRefused(f"the annotations of {name} are not an object. Give one, or leave them out.")
    return {_HINTS.get(str(key), str(key)): value for key, value in found.items()}


def _texts(found: object, name: str) -> tuple[str, ...]:
    if found is None:
        return ()
    texts = [found] if isinstance(found, str) else found
    if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
        raise DefinitionRefused(f"the use_cases of {name} are not a list of strings. Give one, or leave them out.")
    return tuple(texts)
