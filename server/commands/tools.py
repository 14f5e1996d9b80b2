"""`sealab tools`: finds and shows upstream tools, writes typed stubs of them, and learns what they return."""
# ruff: noqa: T201 - printing is what a command line does

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ...sandbox.job import Json
from ...tools_registry.upstream.results import says_shape
from ..errors import KNOWN_ERRORS, Exit, RequestRefused, UsageError
from ..home import Home
from ..identity import LOCAL_IDENTITY
from ..settings import Settings
from ..storage.opening import definitions_of
from ..upstream_tools.registry import Registry
from ..upstream_tools.registry_state import opened_state
from .group import Begin, Options, Parser, add_commands
from .terminal import print_error

if TYPE_CHECKING:
    from ...tools_registry.describing.stubs import WrittenStubs
    from ...tools_registry.models import Tool

_LEVELS = ("name", "summary", "signature", "full")
_STYLES = ("typeddict", "pydantic")
EXAMPLES = Path(__file__).resolve().parents[2] / "tools_registry" / "examples"


Work = Callable[[argparse.Namespace, Registry, Home], Awaitable[int]]


def add_to(parser: argparse.ArgumentParser, begin: Begin, options: Options) -> None:
    """Give the parser of `sealab tools` its commands; `options` adds those that all commands have."""
    add = add_commands(parser, begin, options)

    def make(name: str, work: Work, help_text: str) -> Parser:
        command = add(name, lambda _chosen, _home: Exit.OK, help_text)
        command.set_defaults(command=lambda chosen: asyncio.run(_working(work, chosen, *begin(chosen))))
        return command

    search = make("search", _search, "find tools by what they should do")
    search.add_argument("query", metavar="QUERY", nargs="+", help="what the tool should do, or its name")
    search.add_argument("--category", help="only tools of this category")
    search.add_argument("--detail-level", choices=_LEVELS, default="summary", help="how much to show of each")
    search.add_argument("--limit", type=int, default=10, help="how many to show (default: 10)")
    show = make("show", _show, "show all that is known of a tool")
    show.add_argument("name", metavar="NAME", help="the tool: server.tool, or tool")
    show.add_argument("--category", help="the category it is in")
    show.add_argument("--detail-level", choices=_LEVELS, default="full", help="how much to show")
    make("categories", _categories, "list the categories and how many tools they have")
    generate = make("generate", _generate, "write typed Python stubs: one module per tool")
    generate.add_argument("folder", metavar="DIR", help="where to write them; files of others are left alone")
    generate.add_argument("--server", action="append", default=[], help="only the tools of this server")
    generate.add_argument("--style", choices=_STYLES, default=_STYLES[0], help="what the models are")
    add("examples", _examples, "copy example definitions of tools into the home, as a start for your own")
    learn = make("learn", _learn, "call a read-only tool, and learn what it returns from the answer")
    learn.takes_options = True
    learn.usage = "sealab tools learn (NAME [--PARAMETER VALUE ...] | --from FILE | --propose FILE) [options]"
    learn.add_argument("name", metavar="NAME", nargs="?", help="the tool: server.tool, or tool")
    learn.add_argument(
        "--from", dest="file", metavar="FILE", help="call all tools of a JSON file: {server__tool: arguments}"
    )
    learn.add_argument("--propose", metavar="FILE", help="write such a file of all read-only tools, and call none")
    learn.add_argument("--arguments", metavar="JSON", default="{}", help="its arguments as one JSON object")
    learn.add_argument("--force", action="store_true", help="call it although it is not marked as read-only")


async def _search(chosen: argparse.Namespace, registry: Registry, _home: Home) -> int:
    from ..upstream_tools import discovery

    try:
        answer = await discovery.search(
            registry,
            LOCAL_IDENTITY,
            " ".join(chosen.query),
            category=chosen.category,
            detail_level=chosen.detail_level,
            limit=chosen.limit,
        )
    except RequestRefused as error:
        raise UsageError(str(error)) from None
    if chosen.json:
        print(json.dumps(answer, ensure_ascii=False))
        return Exit.OK
    tools = cast("list[Mapping[str, Json]]", answer["tools"])
    for tool in tools:
        print(f"{tool['server']}.{tool['name']}" if tool["server"] else tool["name"])
        _print_indented(tool.get("signature"), tool.get("description"), _listed(tool.get("arguments")))
    if "weak" in answer:
        print_error(
            "Perhaps none of these fits. Say in other words what the tool should do, or see `sealab tools categories`."
        )
    if not tools:
        print_error("Nothing was found. Say in other words what the tool should do, or see `sealab tools categories`.")
    _print_unreachable(answer)
    return Exit.OK


async def _show(chosen: argparse.Namespace, registry: Registry, _home: Home) -> int:
    from ..upstream_tools import discovery

    told = await discovery.definition(
        registry, LOCAL_IDENTITY, chosen.name, category=chosen.category, detail_level=chosen.detail_level
    )
    if chosen.json:
        print(json.dumps(told, ensure_ascii=False))
        return Exit.OK
    print(f"{told['server']}.{told['name']}  ({told['category']})")
    _print_indented(told.get("signature"), told.get("description"), _listed(told.get("arguments")), told.get("example"))
    for schema in ("input_schema", "output_schema", "annotations"):
        if told.get(schema):
            print(f"{schema}: {json.dumps(told[schema], ensure_ascii=False, indent=2)}")
    return Exit.OK


async def _categories(chosen: argparse.Namespace, registry: Registry, _home: Home) -> int:
    from ..upstream_tools import discovery

    answer = await discovery.categories(registry, LOCAL_IDENTITY)
    if chosen.json:
        print(json.dumps(answer, ensure_ascii=False))
        return Exit.OK
    for name, told in cast("Mapping[str, Mapping[str, Json]]", answer["categories"]).items():
        print(f"{name:<24}{told['tool_count']:>6}  {told['description']}")
    print(
        f"{_counted(answer['total_tools'], 'tool')} of {_counted(len(cast('list[Json]', answer['servers'])), 'server')}"
    )
    _print_unreachable(answer)
    return Exit.OK


async def _generate(chosen: argparse.Namespace, registry: Registry, _home: Home) -> int:
    from ...tools_registry.describing.stub_source import Style
    from ...tools_registry.describing.stubs import write_stubs

    await registry.list_unlisted()
    catalog, learned = await registry.catalog(), await registry.learned()
    for server in chosen.server:
        if server not in catalog.servers():
            raise UsageError(f"There is no server {server!r}. There are {', '.join(catalog.servers()) or 'none'}.")
    folder = _folder(chosen.folder)
    asks = await registry.asks(LOCAL_IDENTITY)
    write = partial(write_stubs, catalog, folder, learned, only=chosen.server, asks=asks, style=Style(chosen.style))
    written = await asyncio.to_thread(write)
    if chosen.json:
        _print_written(folder, written)
    else:
        print(
            f"{_counted(written.tools, 'tool')} of {_counted(written.servers, 'server')} in {folder}: "
            f"{_counted(len(written.written), 'file')} written, "
            f"{len(written.unchanged)} unchanged, {len(written.removed)} removed."
        )
    for path in written.kept:
        print_error(
            f"sealab: {path} was not made here, or was changed since, and is kept. Move it away to have it written."
        )
    unreachable = await registry.unreachable()
    _print_unreachable({"unreachable": unreachable})
    return Exit.FAILED if written.kept else Exit.OK


def _print_written(folder: Path, written: WrittenStubs) -> None:
    print(
        json.dumps(
            {
                "folder": str(folder),
                "servers": written.servers,
                "tools": written.tools,
                "written": [str(path) for path in written.written],
                "unchanged": len(written.unchanged),
                "removed": [str(path) for path in written.removed],
                "kept": [str(path) for path in written.kept],
            },
            ensure_ascii=False,
        )
    )


async def _learn(chosen: argparse.Namespace, registry: Registry, _home: Home) -> int:
    if sum(each is not None for each in (chosen.name, chosen.file, chosen.propose)) != 1:
        raise UsageError("Name one tool, or give --from FILE or --propose FILE.")
    if chosen.propose is not None:
        return await _propose(chosen, registry)
    if chosen.file is not None:
        return await _learn_all(chosen, registry)
    tool = await _learn_one(registry, chosen.name, _object(chosen.arguments), _options(chosen.words), chosen.force)
    learned = (await registry.learned()).get(tool.full_name)
    signature = (await registry.describer()).signature(tool)
    if chosen.json:
        told = {"name": tool.name, "server": tool.server, "signature": signature}
        count = 0 if learned is None else learned.count
        print(json.dumps({**told, "learned": not says_shape(tool.output_schema), "answers": count}, ensure_ascii=False))
        return Exit.OK
    print(signature)
    if says_shape(tool.output_schema):
        print_error("Its server publishes what it returns, so there was nothing to learn.")
    return Exit.OK


async def _learn_one(
    registry: Registry, name: str, arguments: Mapping[str, Json], options: Mapping[str, str], force: bool
) -> Tool:
    """Call a tool, so that the registry learns from its answer, and return it. Raises `RequestRefused`."""
    from ..upstream_tools import discovery
    from ..upstream_tools.tool_arguments import checked
    from ..upstream_tools.wiring import config_of

    tool = await discovery.found(registry, LOCAL_IDENTITY, name)
    server = config_of(tool, await registry.configuration())
    if not server.only_reads(tool) and not force:
        raise RequestRefused(
            f"{tool.full_name} is not marked as read-only, so calling it may change something. "
            "Use --force if you want that."
        )
    await registry.call(tool, checked(tool, {**arguments, **_values(tool, options)}), on_progress=None, keep=None)
    return tool


async def _learn_all(chosen: argparse.Namespace, registry: Registry) -> int:
    """Call the tools of a file, each with its arguments; one that fails leaves the others alone."""
    told: list[dict[str, Json]] = []
    for name, arguments in _object(await asyncio.to_thread(_text_of, chosen.file), chosen.file).items():
        entry: dict[str, Json] = {"tool": name, "ok": True}
        try:
            given = arguments if isinstance(arguments, dict) else {}
            tool = await _learn_one(registry, name, given, {}, chosen.force)
            entry["signature"] = (await registry.describer()).signature(tool)
        except KNOWN_ERRORS as error:
            entry |= {"ok": False, "problem": str(error)}
        told.append(entry)
    if chosen.json:
        print(json.dumps({"tools": told}, ensure_ascii=False))
    for entry in () if chosen.json else told:
        print(entry["signature"]) if entry["ok"] else print_error(f"sealab: {entry['tool']}: {entry['problem']}")
    return Exit.OK if all(entry["ok"] for entry in told) else Exit.FAILED


async def _propose(chosen: argparse.Namespace, registry: Registry) -> int:
    """Write the read-only tools with arguments that their schemas allow, for a person to correct."""
    from ...tools_registry.describing.examples import example_arguments
    from ..upstream_tools.wiring import config_of

    await registry.list_unlisted()
    configuration = await registry.configuration()
    tools = [
        tool
        for tool in (await registry.catalog()).tools()
        if tool.server in configuration.enabled and config_of(tool, configuration).only_reads(tool)
    ]
    proposed = {f"{tool.server}__{tool.name}": example_arguments(tool) for tool in tools}
    await asyncio.to_thread(_write_new, chosen.propose, json.dumps(proposed, ensure_ascii=False, indent=2) + "\n")
    if chosen.json:
        print(json.dumps({"file": chosen.propose, "tools": [*proposed]}, ensure_ascii=False))
    else:
        print(f"{_counted(len(proposed), 'tool')} in {chosen.propose}. Correct their arguments, then use --from.")
    return Exit.OK


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}. Name a file of JSON in UTF-8.") from None


def _write_new(path: str, text: str) -> None:
    try:
        with Path(path).open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"{path} cannot be made: {error.strerror}. Name a new file.") from None


def _folder(text: str) -> Path:
    return Path(text).expanduser().absolute()


def _object(text: str, what: str = "--arguments") -> dict[str, Json]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{what} is not valid JSON: {error}. Give one JSON object.") from None
    if not isinstance(found, dict):
        raise UsageError(f'{what} is not a JSON object. Give one, such as \'{{"query": "x"}}\'.')
    return found


def _options(words: Sequence[str]) -> dict[str, str]:
    """Read `--name value` and `--name=value`. Raises `UsageError`."""
    given: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--") or word == "--":
            raise UsageError(f"{word!r} belongs to no argument. Write --PARAMETER VALUE.")
        name, has_value, value = word[2:].partition("=")
        if not has_value:
            if not rest:
                raise UsageError(f"--{name} has no value. Write --{name} VALUE.")
            value = rest.pop(0)
        given[name] = value
    return given


def _values(tool: Tool, given: Mapping[str, str]) -> dict[str, Json]:
    """Read each value as what its parameter takes: a text as it stands, anything else as JSON where it is JSON."""
    from ...tools_registry.describing.casing import as_published
    from ...tools_registry.describing.schemas import parameters_of
    from ...tools_registry.describing.signatures import takes_text

    texts = {each.name for each in parameters_of(tool) if takes_text(each.shape)}
    values: dict[str, Json] = {}
    for name, text in as_published(tool, given).items():
        values[name] = text
        if name not in texts:
            with suppress(ValueError, RecursionError):
                values[name] = json.loads(text)
    return values


def _examples(chosen: argparse.Namespace, home: Home) -> int:
    """Copy the definitions that sealab brings along; a file that is there stays as it is."""
    home.prepare()
    copied = []
    for source in sorted(EXAMPLES.glob("*/*.json")):
        target = home.tools / source.parent.name / source.name
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            copied.append(f"{source.parent.name}/{source.name}")
    if chosen.json:
        print(json.dumps({"folder": str(home.tools), "copied": copied}, ensure_ascii=False))
    else:
        print(
            f"{_counted(len(copied), 'definition')} copied to {home.tools}. Name the server that has a tool with "
            '"server", or remove the file.'
        )
    return Exit.OK


async def _working(work: Work, chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    """Do the work with all tools at hand, and end every connection."""
    definitions = definitions_of(settings, home)
    if definitions is not None:
        await asyncio.to_thread(definitions.bring_if_answered)
    with opened_state(home, settings.database_url) as state:
        registry = Registry(home, discovers=settings.discover, state=state)
        try:
            return await work(chosen, registry, home)
        finally:
            await registry.close()


def _print_indented(*lines: Json) -> None:
    for line in lines:
        if line:
            print("\n".join(f"    {part}" for part in str(line).splitlines()))


def _listed(names: Json) -> str:
    return f"({', '.join(map(str, names))})" if isinstance(names, list) and names else ""


def _counted(count: Json, thing: str) -> str:
    return f"{count} {thing}{'s' * (count != 1)}"


def _print_unreachable(answer: Mapping[str, object]) -> None:
    unreachable = answer.get("unreachable")
    for server, reason in unreachable.items() if isinstance(unreachable, Mapping) else ():
        print_error(f"sealab: The tools of {server} are not known: {reason}")
