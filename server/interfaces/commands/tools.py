"""`sealab tools`: finds and shows upstream tools, writes typed stubs of them, and learns what they return."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from ....sandbox.job import Json
from ....tools_registry.describing.casing import as_published
from ....tools_registry.describing.examples import example_arguments
from ....tools_registry.describing.schemas import parameters_of
from ....tools_registry.describing.signatures import takes_text
from ....tools_registry.describing.stub_source import Style
from ....tools_registry.describing.stubs import write_stubs
from ....tools_registry.upstream.results import says_shape
from ...base.errors import KNOWN_ERRORS, Exit, RequestRefused, UsageError
from ...base.identity import LOCAL_IDENTITY
from ...base.storage.opening import definitions_of
from ...use_cases.upstream_tools import discovery
from ...use_cases.upstream_tools.registry import Registry
from ...use_cases.upstream_tools.registry_state import opened_state
from ...use_cases.upstream_tools.tool_arguments import checked
from ...use_cases.upstream_tools.wiring import config_of
from .command import Group
from .terminal import Here, Output, counted, print_error

if TYPE_CHECKING:
    from ....tools_registry.models import Tool

Level = Literal["name", "summary", "signature", "full"]
EXAMPLES = Path(__file__).resolve().parents[3] / "tools_registry" / "examples"
_OTHER_WORDS = "Say in other words what the tool should do, or see `sealab tools categories`."


@asynccontextmanager
async def _registry(here: Here) -> AsyncIterator[Registry]:
    """Give all tools, and end every connection."""
    definitions = definitions_of(here.settings, here.home)
    if definitions is not None:
        await asyncio.to_thread(definitions.bring_if_answered)
    with opened_state(here.home, here.settings.database_url) as state:
        registry = Registry(here.home, discovers=here.settings.discover, state=state)
        try:
            yield registry
        finally:
            await registry.close()


tools = Group(opens=_registry)


@tools.command()
async def search(
    _here: Here,
    registry: Registry,
    query: Sequence[str],
    *,
    category: str | None = None,
    detail_level: Level = "summary",
    limit: int = 10,
) -> Output:
    """Find tools by what they should do.

    query: what the tool should do, or its name
    category: only tools of this category
    detail_level: how much to show of each
    limit: how many to show (default: 10)
    """
    words = " ".join(query)
    try:
        answer = await discovery.search(
            registry, LOCAL_IDENTITY, words, category=category, detail_level=detail_level, limit=limit
        )
    except RequestRefused as error:
        raise UsageError(str(error)) from None
    found = cast("list[Mapping[str, Json]]", answer["tools"])

    def shown() -> None:
        for tool in found:
            print(f"{tool['server']}.{tool['name']}" if tool["server"] else tool["name"])
            _print_indented(tool.get("signature"), tool.get("description"), _listed(tool.get("arguments")))
        if "weak" in answer:
            print_error(f"Perhaps none of these fits. {_OTHER_WORDS}")
        if not found:
            print_error(f"Nothing was found. {_OTHER_WORDS}")
        _print_unreachable(answer.get("unreachable"))

    return Output(answer, shown)


@tools.command()
async def show(
    _here: Here, registry: Registry, name: str, *, category: str | None = None, detail_level: Level = "full"
) -> Output:
    """Show all that is known of a tool.

    name: the tool: server.tool, or tool
    category: the category it is in
    detail_level: how much to show
    """
    definition = await discovery.definition(
        registry, LOCAL_IDENTITY, name, category=category, detail_level=detail_level
    )

    def shown() -> None:
        print(f"{definition['server']}.{definition['name']}  ({definition['category']})")
        named = _listed(definition.get("arguments"))
        _print_indented(definition.get("signature"), definition.get("description"), named, definition.get("example"))
        for schema in ("input_schema", "output_schema", "annotations"):
            if definition.get(schema):
                print(f"{schema}: {json.dumps(definition[schema], ensure_ascii=False, indent=2)}")

    return Output(definition, shown)


@tools.command()
async def categories(_here: Here, registry: Registry) -> Output:
    """List the categories and how many tools they have."""
    answer = await discovery.categories(registry, LOCAL_IDENTITY)

    def shown() -> None:
        for name, category in cast("Mapping[str, Mapping[str, Json]]", answer["categories"]).items():
            print(f"{name:<24}{category['tool_count']:>6}  {category['description']}")
        servers = counted(len(cast("list[Json]", answer["servers"])), "server")
        print(f"{counted(answer['total_tools'], 'tool')} of {servers}")
        _print_unreachable(answer.get("unreachable"))

    return Output(answer, shown)


@tools.command()
async def generate(
    _here: Here,
    registry: Registry,
    folder: Path,
    *,
    server: Sequence[str] = (),
    style: Literal["typeddict", "pydantic"] = "typeddict",
) -> Output:
    """Write typed Python stubs: one module per tool.

    folder DIR: where to write them; files of others are left alone
    server: only the tools of this server
    style: what the models are
    """
    await registry.list_unlisted()
    catalog, learned = await registry.catalog(), await registry.learned.types()
    for each in server:
        if each not in catalog.servers():
            raise UsageError(f"There is no server {each!r}. There are {', '.join(catalog.servers()) or 'none'}.")
    asks = await registry.asks(LOCAL_IDENTITY)
    written = await asyncio.to_thread(
        lambda: write_stubs(catalog, folder, learned, only=server, asks=asks, style=Style(style))
    )
    for path in written.kept:
        print_error(
            f"sealab: {path} was not made here, or was changed since, and is kept. Move it away to have it written."
        )
    _print_unreachable(await registry.unreachable())
    summary = {
        "folder": folder,
        "servers": written.servers,
        "tools": written.tools,
        "written": written.written,
        "unchanged": len(written.unchanged),
        "removed": written.removed,
        "kept": written.kept,
    }
    line = (
        f"{counted(written.tools, 'tool')} of {counted(written.servers, 'server')} in {folder}: "
        f"{counted(len(written.written), 'file')} written, {len(written.unchanged)} unchanged, "
        f"{len(written.removed)} removed."
    )
    return Output(summary, line, Exit.FAILED if written.kept else Exit.OK)


@tools.command(opens=None)
def examples(here: Here) -> Output:
    """Copy example definitions of tools into the home, as a start for your own."""
    here.home.prepare()
    folder = here.home.tools
    copied = []
    for source in sorted(EXAMPLES.glob("*/*.json")):
        target = folder / source.parent.name / source.name
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            copied.append(f"{source.parent.name}/{source.name}")
    line = (
        f"{counted(len(copied), 'definition')} copied to {folder}. Name the server that has a tool with "
        '"server", or remove the file.'
    )
    return Output({"folder": folder, "copied": copied}, line)


@tools.command(
    takes_options=True,
    usage="sealab tools learn (NAME [--PARAMETER VALUE ...] | --from FILE | --propose FILE) [options]",
)
async def learn(
    _here: Here,
    registry: Registry,
    name: str | None = None,
    *words: str,
    from_: Path | None = None,
    propose: Path | None = None,
    arguments: str = "{}",
    force: bool = False,
) -> Output:
    """Call a read-only tool, and learn what it returns from the answer.

    name: the tool: server.tool, or tool
    from_ FILE: call all tools of a JSON file: {server__tool: arguments}
    propose FILE: write such a file of all read-only tools, and call none
    arguments JSON: its arguments as one JSON object
    force: call it although it is not marked as read-only
    """
    if sum(each is not None for each in (name, from_, propose)) != 1:
        raise UsageError("Name one tool, or give --from FILE or --propose FILE.")
    if propose is not None:
        return await _proposed(registry, propose)
    if from_ is not None:
        return await _learned_all(registry, from_, force=force)
    tool = await _learned_one(registry, str(name), _object(arguments), _options(words), force=force)
    learned = (await registry.learned.types()).get(tool.full_name)
    signature = (await registry.describer()).signature(tool)
    is_published = says_shape(tool.output_schema)
    if is_published:
        print_error("Its server publishes what it returns, so there was nothing to learn.")
    summary = {"name": tool.name, "server": tool.server, "signature": signature, "learned": not is_published}
    return Output({**summary, "answers": 0 if learned is None else learned.count}, signature)


async def _learned_one(
    registry: Registry, name: str, arguments: Mapping[str, Json], options: Mapping[str, str], *, force: bool
) -> Tool:
    """Call a tool, so that the registry learns from its answer, and return it. Raises `RequestRefused`."""
    tool = await discovery.found(registry, LOCAL_IDENTITY, name)
    server = config_of(tool, await registry.configuration())
    if not server.only_reads(tool) and not force:
        raise RequestRefused(
            f"{tool.full_name} is not marked as read-only, so calling it may change something. "
            "Use --force if you want that."
        )
    await registry.call(tool, checked(tool, {**arguments, **_values(tool, options)}), on_progress=None, keep=None)
    return tool


async def _learned_all(registry: Registry, file: Path, *, force: bool) -> Output:
    """Call the tools of a file, each with its arguments; one that fails leaves the others alone."""
    results: list[dict[str, Json]] = []
    for name, arguments in _object(await asyncio.to_thread(_text_of, file), str(file)).items():
        entry: dict[str, Json] = {"tool": name, "ok": True}
        try:
            given = arguments if isinstance(arguments, dict) else {}
            tool = await _learned_one(registry, name, given, {}, force=force)
            entry["signature"] = (await registry.describer()).signature(tool)
        except KNOWN_ERRORS as error:
            entry |= {"ok": False, "problem": str(error)}
        results.append(entry)

    def shown() -> None:
        for each in results:
            print(each["signature"]) if each["ok"] else print_error(f"sealab: {each['tool']}: {each['problem']}")

    return Output({"tools": results}, shown, Exit.OK if all(each["ok"] for each in results) else Exit.FAILED)


async def _proposed(registry: Registry, file: Path) -> Output:
    """Write the read-only tools with arguments that their schemas allow, for a person to correct."""
    await registry.list_unlisted()
    configuration = await registry.configuration()
    proposed = {
        f"{tool.server}__{tool.name}": example_arguments(tool)
        for tool in (await registry.catalog()).tools()
        if tool.server in configuration.enabled and config_of(tool, configuration).only_reads(tool)
    }
    await asyncio.to_thread(_write_new, file, json.dumps(proposed, ensure_ascii=False, indent=2) + "\n")
    line = f"{counted(len(proposed), 'tool')} in {file}. Correct their arguments, then use --from."
    return Output({"file": file, "tools": [*proposed]}, line)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}. Name a file of JSON in UTF-8.") from None


def _write_new(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"{path} cannot be made: {error.strerror}. Name a new file.") from None


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
    texts = {each.name for each in parameters_of(tool) if takes_text(each.shape)}
    values: dict[str, Json] = {}
    for name, text in as_published(tool, given).items():
        values[name] = text
        if name not in texts:
            with suppress(ValueError, RecursionError):
                values[name] = json.loads(text)
    return values


def _print_indented(*lines: Json) -> None:
    for line in lines:
        if line:
            print("\n".join(f"    {part}" for part in str(line).splitlines()))


def _listed(names: Json) -> str:
    return f"({', '.join(map(str, names))})" if isinstance(names, list) and names else ""


def _print_unreachable(unreachable: object) -> None:
    for server, reason in unreachable.items() if isinstance(unreachable, Mapping) else ():
        print_error(f"sealab: The tools of {server} are not known: {reason}")
