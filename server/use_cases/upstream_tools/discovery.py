"""What code and model learn of upstream tools: searching, looking one up, listing categories and servers.

The MCP tools and the helpers inside the code give the same answers, since both ask here.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ....sandbox.job import Json
from ....tools_registry.errors import CategoryUnknown, ServerUnknown, ToolUnknown
from ....tools_registry.names import fold, identifier, nearest, test_of
from ...base.errors import RequestRefused
from ...base.host_work import Kind, checked, in_thread
from ...base.identity import Identity
from ...governance.scopes import is_brief
from .approval import Decision, decide
from .extras import Extra, helpers_for_query
from .large_json import chars_of
from .registry import Registry
from .wiring import config_of

if TYPE_CHECKING:
    from ....tools_registry.catalog import Catalog
    from ....tools_registry.describing.details import Describer, DetailLevel
    from ....tools_registry.models import Tool
    from ....tools_registry.search.ranking import SearchHit

LIMIT_MAX = 100
"""The most tools that one search gives."""
LISTED_MAX = 1000
"""The most tools that a list of a category gives, which is a search without words."""
LIMIT_DEFAULT = 10
"""The tools that a search gives unless it says how many."""
QUERY_CHARS_MAX = 2000
"""The longest query, name of a tool and name of a category."""

NOTHING_FITS = "Perhaps no tool fits. Search in other words; list_tool_categories says what there is."
"""What is said of a search that found tools which have little to do with it."""

_NAME_SHOWN_CHARS = 100
HIDDEN = "What the policy does not let you call is not shown."
"""What is said beside every name that means no tool where there is a policy, whether or not it hides one."""

_NAMES_SHOWN = 8
_PROBLEMS_SHOWN = 50
_RETURN_CHARS_MAX = 300


async def search(
    registry: Registry,
    who: Identity,
    query: str,
    *,
    category: str | None = None,
    detail_level: str = "summary",
    limit: int | None = None,
    read_by: str | None = None,
    asked_by: str | None = None,
) -> dict[str, Json]:
    """Return `{query, category, detail_level, count, tools}`, best first; raises `RequestRefused`, `RegistryError`.

    Found are tools that `who` may call, and skills if `who` may read these.

    Without a limit these are `LIMIT_DEFAULT`, or a whole category where the query is blank. `read_by` is the scope of
    the caller whose model reads the answer; code that runs reads it without one. `asked_by` is the scope of the caller
    whose calls after this search are remembered for searches in like words, `read_by` by default. `weak` is there where
    no tool fits well; `in_code` where code has a function for it. `unreachable` says of servers whose tools cannot be
    found why that is so, and `servers` of those that fail, or leave out tools, how they stand (see `servers`); both are
    left out when there are none.
    """
    level = _level(detail_level)
    query, cut = searched_for(query)
    _check_chars("category", category or "")
    limit = _limit(limit, query, category)
    await registry.list_unlisted(who)
    with registry.one_look():
        hits = await _hits(registry, who, query, category=category, limit=limit, owner=asked_by or read_by)
        catalog = await registry.view(who)
        extras = {extra.document.key: extra for extra in registry.extras(who)}
        hits = [hit for hit in hits if hit.key in extras or hit.key in catalog]  # what there is may have changed since
        if not hits and category is not None:
            shown = {tool.category for tool in await registry.shown(who, catalog.tools())}
            known = {*shown, *(extra.document.category for extra in extras.values())}
            if category not in known and not await _servers_of(registry, who, category):
                near = offered(category, sorted(known), f"There are {', '.join(sorted(known)) or 'none'}.")
                raise RequestRefused(f"There is no category {category!r}. {near}")
        tools = await _described_hits(registry, who, catalog, extras, hits, level=level)
        answer: dict[str, Json] = {
            "query": query,
            "category": category,
            "detail_level": level.value,
            "count": len(tools),
            "tools": tools,
        }
        if cut:
            answer["truncated"] = cut
        answer |= await _remarks(registry, who, query, hits, category)
        of_category = 0
        if category is not None and not query.strip() and len(tools) == LISTED_MAX:
            of_category = len(await registry.shown(who, catalog.categories().get(category, ())))
        if of_category > len(tools) == LISTED_MAX:
            answer["weak"] = f"These are {LISTED_MAX} of {of_category} tools. Search the category for what they do."
        return await _sent(registry, answer, tools, read_by)


async def _hits(
    registry: Registry, who: Identity, query: str, *, category: str | None, limit: int, owner: str | None
) -> list[SearchHit]:
    """Search in a thread; with what `owner` called after searches in like words, where that is known.

    Where the policy hides some of what is found, more is searched for in their place.
    """
    index = await registry.index(who)
    usage = None if owner is None or not query.strip() else await registry.learned.usage()
    used = None if owner is None or usage is None else partial(usage.likeness, owner, query)
    asked = limit
    while True:
        search = partial(index.search, query, category=category, limit=asked)
        found = await in_thread(Kind.SEARCH, lambda: search(used=None if used is None else used()))  # noqa: B023
        hits = await _shown_hits(registry, who, found)
        if len(hits) >= limit or len(found) < asked or asked >= LISTED_MAX:
            break
        asked = min(LISTED_MAX, 4 * asked)
    if owner is not None and usage is not None:
        await in_thread(Kind.SEARCH, partial(usage.searched, owner, query, brief=is_brief(owner)))
    return hits[:limit]


async def _shown_hits(registry: Registry, who: Identity, hits: list[SearchHit]) -> list[SearchHit]:
    catalog = await registry.view(who)
    beside = {extra.document.key for extra in registry.extras(who)}
    return [hit for hit in hits if hit.key in beside or hit.key in catalog]  # an index may be older


async def _described_hits(
    registry: Registry,
    who: Identity,
    catalog: Catalog,
    extras: Mapping[str, Extra],
    hits: Sequence[SearchHit],
    *,
    level: DetailLevel,
) -> list[Json]:
    beside = {hit.key: await extras[hit.key].defined(level) for hit in hits if hit.key in extras}
    found = [catalog.get(hit.key) for hit in hits if hit.key not in extras]
    described = iter(await _described_tools(registry, who, found, level))
    return [{**(beside.get(hit.key) or next(described)), "score": round(hit.score, 4)} for hit in hits]


async def _remarks(
    registry: Registry, who: Identity, query: str, hits: Sequence[SearchHit], category: str | None
) -> dict[str, Json]:
    """Return what an answer says beside its tools, such as `weak` and `unreachable`, each where there is any."""
    remarks: dict[str, Json] = {}
    if hits and all(hit.weak for hit in hits):
        remarks["weak"] = NOTHING_FITS
    helpers = helpers_for_query(query)
    if helpers is not None:
        remarks["in_code"] = helpers
    unreachable = await registry.unreachable(who)
    if unreachable:
        remarks["unreachable"] = unreachable
    asked = await _servers_of(registry, who, category)
    listed: list[Json] = [
        {"name": name, **each}
        for name, each in (await registry.standing(who)).items()
        if each["state"] in {"failing", "quarantined"} or each["left_out"] or (name in asked and each["last_error"])
    ]
    if listed:
        remarks["servers"] = listed
    return remarks


async def _servers_of(registry: Registry, who: Identity, category: str | None) -> list[str]:
    """Return the servers of `mcp.json` that a caller is shown and whose tools are, or would be, in a category."""
    configuration = await registry.configuration()
    named = {name: each.category or name for name, each in configuration.servers.items()}
    named |= {name: name for name in configuration.problems}
    return [name for name, own in named.items() if own == category and await registry.shows_server(who, name)]


def _limit(asked: int | None, query: str, category: str | None) -> int:
    lists = category is not None and not query.strip()
    most = LISTED_MAX if lists else LIMIT_MAX
    limit = asked
    if limit is None:
        limit = most if lists else LIMIT_DEFAULT
    if not 1 <= limit <= most:
        raise RequestRefused(f"limit is {limit}, which is not allowed. Give a whole number from 1 to {most}.")
    return limit


async def definition(
    registry: Registry,
    who: Identity,
    tool_name: str,
    *,
    category: str | None = None,
    detail_level: str = "full",
    read_by: str | None = None,
) -> dict[str, Json]:
    """Return what is known of a tool or skill. Raises `RequestRefused`, and `RegistryError` that names the nearest.

    `read_by` is as in `search`.
    """
    level = _level(detail_level)
    _check_chars("tool's name", tool_name)
    _check_chars("category", category or "")
    extra = await registry.beside(tool_name, category, who)
    if extra is not None:
        described = await extra.defined(level)
        return await _sent(registry, described, [described], read_by)
    tool = await _found_or_near(registry, who, tool_name, category)
    [described] = await _described_tools(registry, who, [tool], level)
    return await _sent(registry, described, [described], read_by)


async def _found_or_near(registry: Registry, who: Identity, name: str, category: str | None) -> Tool:
    """Return the tool that a name means. Raises `RegistryError`, which names the nearest, be it a skill."""
    beside = [each.document for each in registry.extras(who) if category in {None, each.document.category}]
    try:
        return await found(registry, who, name, category)
    except (ToolUnknown, CategoryUnknown) as error:
        if not beside or (isinstance(error, ToolUnknown) and error.nearest):
            raise
        others = [each.name for each in beside]
        near = await in_thread(Kind.SEARCH, partial(nearest, name.rpartition(".")[2], others, 1))
        keys = [beside[at].key for at in near]
        if not keys and isinstance(error, ToolUnknown):
            raise
        hint = f"Did you mean {keys[0]}?" if keys else "search_tools finds what there is."
        raise ToolUnknown(f"There is no tool {name!r}. {hint}", nearest=keys) from None


async def found(registry: Registry, who: Identity, name: str, category: str | None = None) -> Tool:
    """Return the tool that a name means. Raises `RegistryError`, which names the nearest that `who` may call.

    One that the policy does not let `who` call is a tool that there is not. In place of what may be refused no other
    tool is named that may write.
    """
    try:
        return await _found(registry, who, name, category)
    except ToolUnknown as error:
        if not registry.policy.governs or error.left_out_of is not None:
            raise
        near = [each for each in error.nearest if await _runs_at_once(registry, who, each)]
        hint = f"The nearest that only read are {', '.join(near)}." if near else "search_tools finds what there is."
        raise ToolUnknown(f"There is no tool {name[:_NAME_SHOWN_CHARS]!r}. {hint} {HIDDEN}", near) from None


async def _runs_at_once(registry: Registry, who: Identity, name: str) -> bool:
    """Return whether a tool of that full name is called without a user's yes."""
    tool = (await registry.view(who)).spelled(name)
    if tool is None:
        return False
    ruled = registry.ruled(who, tool, config_of(tool, await registry.configuration()))
    return ruled.refusal is None and decide(tool, ruled.server) is Decision.RUN


async def _found(registry: Registry, who: Identity, name: str, category: str | None) -> Tool:
    try:
        return await registry.find(name, category, who)
    except CategoryUnknown:
        standing = await registry.standing(who)
        reasons = [standing[each]["last_error"] for each in await _servers_of(registry, who, category)]
        if not any(reasons):
            raise
        why = " ".join(str(each) for each in reasons if each)
        raise ToolUnknown(f"The tools of the category {category!r} are not known. {why}") from None
    except ToolUnknown as error:
        configuration = await registry.configuration()
        for each in {*configuration.servers, *configuration.problems} - configuration.enabled.keys():
            if name.startswith((f"{each}.", f"{identifier(each)}.")) and await registry.shows_server(who, each):
                configuration.server(each)  # which says why it cannot be used
        server, dot, _ = name.partition(".")
        names = (await registry.view(who)).servers() if dot else {}
        if not dot or any(server in {each.name, each.alias} for each in names.values()):
            raise
        having = await _having(registry, who, name)
        if error.nearest and not having:
            raise
        hint = f"Use {' or '.join(having)}." if having else offered(server, names)
        raise ToolUnknown(f"There is no server {server!r}. {hint}", nearest=having) from None


async def _having(registry: Registry, who: Identity, name: str) -> list[str]:
    """Return how code calls the tools of that name, on whatever server, that a caller is shown."""
    await registry.list_unlisted(who)
    catalog = await registry.view(who)
    tool = fold(name.rpartition(".")[2])

    def having() -> list[Tool]:
        return [each for each in checked(catalog.tools()) if fold(each.name) == tool]

    shown = (await registry.shown(who, await in_thread(Kind.SEARCH, having)))[:_NAMES_SHOWN]
    return [".".join(("tools", *catalog.alias(each))) for each in shown]


async def categories(registry: Registry, who: Identity, *, read_by: str | None = None) -> dict[str, Json]:
    """Return `{categories: {name: {description, tool_count}}, total_tools, servers}`. Raises `RegistryError`.

    `read_by` is as in `search`. `unreachable` says of servers whose tools are not known why that is so, and `problems`
    of files of definitions why they were left out; each is there only where there is something to say.
    """
    await registry.list_unlisted(who)
    catalog = await registry.view(who)
    grouped: dict[str, list[Tool]] = {}
    for tool in await registry.shown(who, catalog.tools()):
        grouped.setdefault(tool.category, []).append(tool)
    grouped = {name: grouped[name] for name in catalog.categories() if name in grouped}
    shown: dict[str, Json] = {
        name: {"description": _described(tools), "tool_count": len(tools)} for name, tools in grouped.items() if tools
    }
    for extra in registry.extras(who):
        known = shown.setdefault(
            extra.document.category, {"description": "Saved functions: call skills.<name>(…)", "tool_count": 0}
        )
        assert isinstance(known, dict)
        known["tool_count"] += 1
    answer: dict[str, Json] = {
        "categories": shown,
        "total_tools": sum(map(len, grouped.values())),
        "servers": [*catalog.servers()],
    }
    unreachable = await registry.unreachable(who)
    if unreachable:
        answer["unreachable"] = unreachable
    if catalog.problems:
        answer["problems"] = {problem.where: problem.why for problem in catalog.problems[:_PROBLEMS_SHOWN]}
    return await _sent(registry, answer, [], read_by)


async def servers(registry: Registry, who: Identity) -> list[Json]:
    """Return every server that is not disabled with what is known of it, without starting one. Raises `RegistryError`.

    One of `mcp.json` has `{state, since, last_error, left_out}`: see `UpstreamStatus.as_json`.
    """
    catalog, standing = await registry.view(who), await registry.standing(who)
    listed: list[Json] = []
    for entry in catalog.servers().values():
        row: dict[str, Json] = {
            "name": entry.name,
            "alias": entry.alias,
            "category": entry.category,
            "tool_count": entry.tool_count,
            "configured": entry.configured,
        }
        if entry.version:
            row["version"] = entry.version
        listed.append({**row, **standing.pop(entry.name, {})})
    for name in (await registry.configuration()).problems.keys() & standing:
        unused: dict[str, Json] = {"name": name, "alias": identifier(name), "category": name, "tool_count": 0}
        listed.append({**unused, "configured": True, **standing[name]})
    return listed


async def server(registry: Registry, who: Identity, name: str) -> dict[str, Json]:
    """Return what is known of one server: as `servers` says it, with `tools`. Raises `RegistryError`.

    `cwd` is always None, for code that was written for the seed bridge: folders are the operator's.

    Each tool is `{name, alias, description, input_schema}`; the alias is its name in code.
    """
    own = await server_name(registry, who, name)
    row = next(each for each in await servers(registry, who) if isinstance(each, dict) and each["name"] == own)
    return await _with_tools(registry, who, row, await _known_tools(registry, who, own))


async def servers_with_tools(registry: Registry, who: Identity) -> list[Json]:
    """Return every server as `server` does, with the tools that are known. Starts none."""
    catalog = await registry.view(who)
    listed: list[Json] = []
    for each in await servers(registry, who):
        assert isinstance(each, dict)
        known = catalog.tools(server=str(each["name"]))
        listed.append(await _with_tools(registry, who, each, await registry.shown(who, known)))
    return listed


async def _with_tools(
    registry: Registry, who: Identity, row: Mapping[str, Json], tools: Sequence[Tool]
) -> dict[str, Json]:
    full = await _described_tools(registry, who, tools, _level("full"))
    describer = await registry.describer(who)
    listed: list[Json] = [
        {
            "name": tool.name,
            "alias": describer.call(tool).rpartition(".")[2],
            "description": each["description"],
            "input_schema": each["input_schema"],
        }
        for tool, each in zip(tools, full, strict=True)
    ]
    return {**row, "cwd": None, "tools": listed, "tool_count": len(listed)}


async def tools_of(
    registry: Registry, who: Identity, name: str | None, *, tool: str | None = None, detail_level: str = "summary"
) -> list[Json]:
    """Return what is known of a server's tools, or of one of them, asking the server if it has never said.

    Without a name these are the tools of all servers.
    """
    level = _level(detail_level)
    if name is None:
        await registry.list_unlisted(who)
        shown = await registry.shown(who, (await registry.view(who)).tools())
        return [*await _described_tools(registry, who, shown, level)]
    own = await server_name(registry, who, name)
    if tool is not None:
        return [await definition(registry, who, f"{own}.{tool}", detail_level=detail_level)]
    return [*await _described_tools(registry, who, await _known_tools(registry, who, own), level)]


async def named_servers(registry: Registry, who: Identity, uses: Mapping[str, Json]) -> list[Json]:
    """Return which names are servers that a caller is shown, given the members that code calls: `{name: [member, …]}`.

    A server that has said what it has is meant where it has one of the members. Starts no server.
    """
    catalog = await registry.view(who)
    known = {each.alias: each.name for each in catalog.servers().values()}
    found: list[Json] = []
    for name, members in uses.items():
        own = known.get(name)
        if own is None or not isinstance(members, list):
            continue
        tools = {fold(tool.name) for tool in catalog.tools(server=own)}
        if not tools or any(isinstance(member, str) and fold(member) in tools for member in members):
            found.append(name)
    return found


async def names(registry: Registry, who: Identity, name: str | None) -> list[Json]:
    """Return the names by which code finds the servers, or the tools of one. Raises `RegistryError`."""
    catalog = await registry.view(who)
    if name is None:
        return [entry.alias for entry in catalog.servers().values()]
    known = await _known_tools(registry, who, await server_name(registry, who, name))
    return [catalog.alias(each)[1] for each in known]


async def summary(registry: Registry, who: Identity) -> str:
    """Describe in a few lines which servers there are and how code reaches their tools."""
    lines = ["await tools.<server>.<tool>(**arguments) calls an upstream tool; search_tools(query) finds one."]
    for each in await servers(registry, who):
        assert isinstance(each, dict)
        count = each["tool_count"] or "no known"
        lines.append(f"{each['alias']}: {count} tools ({each.get('state', 'not configured')})")
    return "\n".join(lines)


def offered(name: str, known: Collection[str], others: str | None = None) -> str:
    """Return which name may have been meant; else `others`, by default which servers there are."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if near:
        return f"Did you mean {near[0]}?"
    if others is not None:
        return others
    shown = ", ".join(list(known)[:_NAMES_SHOWN])
    return f"There are {shown}." if shown else "The user adds one with `sealab servers add` or `sealab servers import`."


async def unseen_return_type(registry: Registry, tool: Tool, scope: str) -> str | None:
    """Return a tool's return type where it is known and this caller has not seen it, and note that it now has."""
    if registry.shown_return_types.has(scope, tool.full_name):
        return None
    describer = await registry.describer()
    known = await in_thread(Kind.SEARCH, partial(describer.returns, tool, _RETURN_CHARS_MAX))
    if not known:
        return None
    registry.shown_return_types.note(scope, tool.full_name)
    return known


async def server_name(registry: Registry, who: Identity, name: str) -> str:
    """Return the server that a name or alias means, of those that a caller is shown. Raises `ServerUnknown`."""
    entries = (await registry.view(who)).servers()
    own = next((each.name for each in entries.values() if name in {each.name, each.alias}), None)
    if own is None:
        raise ServerUnknown(f"There is no server {name!r}. {offered(name, entries)}")
    return own


async def _known_tools(registry: Registry, who: Identity, own: str) -> list[Tool]:
    catalog, configuration = await registry.catalog(), await registry.configuration()
    if own in configuration.enabled and not catalog.is_listed(own) and not catalog.tools(server=own):
        await registry.refresh(own)
    return await registry.shown(who, (await registry.view(who)).tools(server=own))


def _level(detail_level: str) -> DetailLevel:
    from ....tools_registry.describing.details import DetailLevel

    try:
        return DetailLevel(detail_level)
    except ValueError:
        levels = ", ".join(DetailLevel)
        raise RequestRefused(f"detail_level is {detail_level!r}, which there is not. Give one of {levels}.") from None


def searched_for(query: str) -> tuple[str, dict[str, Json]]:
    """Return as much of a query as is searched for, and what `truncated` says where that is not all of it."""
    if len(query) <= QUERY_CHARS_MAX:
        return query, {}
    note = f"the query has {len(query)} characters, and its first {QUERY_CHARS_MAX} were searched for"
    return query[:QUERY_CHARS_MAX], {"query": {"note": note}}


def _check_chars(what: str, text: str) -> None:
    if len(text) > QUERY_CHARS_MAX:
        raise RequestRefused(f"The {what} has {len(text)} characters. Give at most {QUERY_CHARS_MAX}.")


async def _described_tools(
    registry: Registry, who: Identity, tools: Sequence[Tool], level: DetailLevel
) -> list[dict[str, Json]]:
    """Describe each tool. A definition may have megabytes, so they are read in a thread."""
    describer, quarantined = await registry.describer(who), await registry.quarantined()
    described = await in_thread(Kind.SEARCH, lambda: [_described_as(describer, tool, level) for tool in checked(tools)])
    for tool, each in zip(tools, described, strict=True):
        found = await registry.flags(tool)
        if found:
            each["flags"] = list(found)
        if tool.server in quarantined:
            each["quarantined"] = f"It cannot be called until the user accepts it with {test_of(tool.server)}."
    return described


def _described_as(describer: Describer, tool: Tool, level: DetailLevel) -> dict[str, Json]:
    described: dict[str, Json] = dict(describer.describe(tool, level))
    call = describer.call(tool)
    if "signature" not in described and call != f"tools.{tool.server}.{tool.name}":
        described["call"] = call
    return described


def _described(tools: Iterable[Tool]) -> str:
    listed = list(tools)
    servers = ", ".join(sorted({tool.server for tool in listed}))
    shown = ", ".join(tool.name for tool in listed[:_NAMES_SHOWN])
    return f"Tools of {servers}: {shown}{'…' if len(listed) > _NAMES_SHOWN else ''}"


async def _sent(
    registry: Registry, answer: dict[str, Json], tools: Iterable[Json], read_by: str | None
) -> dict[str, Json]:
    """Note what a model sees: how much, and the return types of which tools. What code reads is not counted."""
    if read_by is not None:
        from ....tools_registry.describing.signatures import tells_returns

        registry.count_sent(await chars_of(answer))
        for each in tools:
            returns = str(each.get("returns", each.get("signature", ""))) if isinstance(each, dict) else ""
            if isinstance(each, dict) and returns and tells_returns(returns):
                registry.shown_return_types.note(read_by, f"{each['server']}.{each['name']}")
    return answer
