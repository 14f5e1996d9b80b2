"""Every tool there is: from files below `tools/`, and from what upstream servers listed, now or in earlier sessions."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Protocol

from .collecting import no_collection
from .definitions import Definition, Problem, published, read_folder, tools_of
from .errors import CategoryUnknown, ToolAmbiguous, ToolUnknown
from .kept import KeptFile, KeptText
from .models import Tool
from .names import NEAR_SCORE_MIN, aliases, fold, identifier, inverted, nearest
from .upstream.lenient import LeftOut

_LOG = logging.getLogger(__name__)
_NEAREST = 5
_FAR_SHOWN = 3
_CANDIDATES = 8


KeptLists = Callable[[str], KeptText]
"""Gives where a list is kept, by its name."""


class ConfiguredServer(Protocol):
    """What the catalog needs to know of a server in `mcp.json`."""

    @property
    def category(self) -> str | None:
        """The category of its tools; None is the folder of their files, or else the server's name."""

    @property
    def disabled(self) -> bool:
        """Whether its tools are left out."""


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """One server of the catalog. Tools of one that is not configured are described but cannot be called."""

    name: str
    alias: str
    """Its name in code: `tools.<alias>`."""
    category: str
    tool_count: int
    configured: bool
    version: str | None
    """What it called its version when it last listed its tools; None where it never has."""


@dataclass(slots=True)
class _Contents:
    """What one revision of the catalog holds; made whole, then swapped in."""

    tools: tuple[Tool, ...] = ()
    by_full_name: Mapping[str, Tool] = field(default_factory=dict)
    server_aliases: Mapping[str, str] = field(default_factory=dict)
    tool_aliases: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """`{server: {tool: identifier}}`."""
    by_key: Mapping[str, tuple[Tool, ...]] | None = None
    """Tools by every name they answer to, folded; made when a name is first looked up that is not a full name."""


class Catalog:
    """All tools, by name, category and server; `revision` grows with every change, for those who keep an index.

    Any thread may change it, one at a time; readers see what was there before a change or after it.
    """

    def __init__(self, tools_dir: Path, lists: Path | KeptLists, servers: Mapping[str, ConfiguredServer]) -> None:
        self.revision = 0
        self.problems: tuple[Problem, ...] = ()
        self._tools_dir = tools_dir
        self._kept = (lambda name: KeptFile(lists / name)) if isinstance(lists, Path) else lists
        self._stamps: dict[str, object] = {}
        self._servers = servers
        self._definitions: tuple[Definition, ...] = ()
        self._file_problems: tuple[Problem, ...] = ()
        self._listed: dict[str, tuple[Tool, ...]] = {}
        self._versions: dict[str, str] = {}
        self._list_problems: dict[str, tuple[Problem, ...]] = {}
        self._left_out: dict[str, tuple[LeftOut, ...]] = {}
        self._contents = _Contents()
        self._changing = threading.Lock()

    @classmethod
    def load(cls, tools_dir: Path, lists: Path | KeptLists, servers: Mapping[str, ConfiguredServer]) -> Catalog:
        """Read the files below `tools_dir`, and the `lists` kept of the servers that are configured.

        Reads files: call it in a thread where an event loop runs. What cannot be read is in `problems`.
        """
        catalog = cls(tools_dir, lists, servers)
        catalog.reload()
        return catalog

    def reload(self, servers: Mapping[str, ConfiguredServer] | None = None) -> None:
        """Read everything again, with other servers if they are given."""
        with self._changing, no_collection():
            self._servers = self._servers if servers is None else servers
            self._read_files()
            self._listed, self._versions, self._list_problems, self._left_out = {}, {}, {}, {}
            for server in self._servers:
                self._read_cached(server)
            self._rebuild()

    def reload_files(self) -> None:
        """Read the files below `tools_dir` again; what servers listed stays."""
        with self._changing, no_collection():
            self._read_files()
            self._rebuild()

    def showing(self, tools: Sequence[Tool], servers: Collection[str]) -> Catalog:
        """Return a catalog of the same names in code that has only these tools of this one, and these servers.

        It is that of one revision and is never changed. What it says of a name, and how long it takes to, does not
        depend on what it leaves out.
        """
        shown = Catalog(
            self._tools_dir, self._kept, {name: each for name, each in self._servers.items() if name in servers}
        )
        whole = self._contents
        shown._listed = {name: each for name, each in self._listed.items() if name in servers}
        shown._versions = {name: each for name, each in self._versions.items() if name in servers}
        shown._contents = _Contents(
            tools=tuple(tools),
            by_full_name={tool.full_name: tool for tool in tools},
            server_aliases={name: alias for name, alias in whole.server_aliases.items() if name in servers},
            tool_aliases={name: each for name, each in whole.tool_aliases.items() if name in servers},
        )
        shown.revision = self.revision
        return shown

    def reload_lists(self) -> None:
        """Take the lists that others have kept since they were read here; one that cannot be read stays as it was."""
        with self._changing, no_collection():
            before = dict(self._stamps)
            for server in self._servers:
                try:
                    stamp = self._cached(server).stamp()
                except OSError as error:
                    _LOG.warning("What %s offers now is not known: %s.", server, error)
                    continue
                if stamp != before.get(server):
                    self._read_cached(server)
            if self._stamps != before:
                self._rebuild()

    def replace_server(
        self,
        server: str,
        listed: Sequence[Mapping[str, object]],
        version: str = "",
        left_out: Sequence[LeftOut] = (),
    ) -> None:
        """Take what a server answered to tools/list: its definitions as they came, and the version it says it has.

        `left_out` are those of them that cannot be read.

        It is written to the cache, whole or not at all, so that the next session has the tools before it starts the
        server. Where it cannot be written the tools are known in this session alone. Writes a file if anything changed.
        """
        tools, problems = tools_of(listed, server, version)
        refused = (LeftOut(each.tool or each.where, each.why) for each in problems)
        ours, omitted = tuple(tools), (*left_out, *refused)
        with self._changing:
            if (self._listed.get(server), self._versions.get(server), self.left_out(server)) == (
                ours,
                version,
                omitted,
            ):
                return
            self._take(server, ours, problems, version, omitted)
            self._rebuild()
        try:
            content = {"server": server, "version": version, "tools": [*map(published, ours)]}
            content |= {"left_out": [dataclasses.asdict(each) for each in omitted]} if omitted else {}
            with self._cached(server).editing() as draft:
                draft.data = json.dumps(content, ensure_ascii=False).encode()
        except OSError as error:
            _LOG.warning("The tools of %s are not kept for the next session: %s.", server, error)

    def forget_server(self, server: str) -> None:
        """Drop what a server listed, here and in the cache. Files below `tools/` stay."""
        with self._changing:
            self._cached(server).remove()
            if self._listed.pop(server, None) is not None:
                self._versions.pop(server, None)
                self._list_problems.pop(server, None)
                self._left_out.pop(server, None)
                self._rebuild()

    def tools(self, *, category: str | None = None, server: str | None = None) -> tuple[Tool, ...]:
        """Return the tools in the order of their full names; all, or those of one category or server."""
        return tuple(
            tool
            for tool in self._contents.tools
            if (category is None or tool.category == category) and (server is None or tool.server == server)
        )

    def __len__(self) -> int:
        return len(self._contents.tools)

    def __contains__(self, full_name: object) -> bool:
        return full_name in self._contents.by_full_name

    def get(self, name: str, category: str | None = None) -> Tool:
        """Return the tool of that name: `server.tool`, `tool`, either as Python writes it, or in another casing.

        A more exact reading wins over a looser one. Raises `ToolUnknown`, which names the nearest, `ToolAmbiguous`,
        which names the candidates, and `CategoryUnknown`. Unless `name in catalog`, it takes CPU time: call it in a
        thread.
        """
        self._check_category(category)
        found = self._contents.by_full_name.get(name)
        if found is not None and category in {None, found.category}:
            return found
        for candidates in self._readings(name):
            fitting = [tool for tool in candidates if category in {None, tool.category}]
            if len(fitting) == 1:
                return fitting[0]
            if fitting:
                names = [tool.full_name for tool in fitting]
                shown = ", ".join(names[:_CANDIDATES]) + (" and more" if len(names) > _CANDIDATES else "")
                raise ToolAmbiguous(f"{_short(name)} is the name of {len(names)} tools. Use one of {shown}.", names)
        raise self._unknown(name, category)

    def known(self, name: str) -> Tool | None:
        """Return the tool that `get` would, or None where it would raise: looking for nearest names takes longer."""
        found = self._contents.by_full_name.get(name)
        if found is not None:
            return found
        candidates = next((each for each in self._readings(name) if each), ())
        return candidates[0] if len(candidates) == 1 else None

    def spelled(self, name: str) -> Tool | None:
        """Return the tool of that full name, in whatever casing; it takes as long whether or not there is one."""
        contents = self._contents
        if contents.by_key is None:
            contents.by_key = _by_key(contents.tools)
        folded = contents.by_key.get(fold(name), ())
        return contents.by_full_name.get(name, folded[0] if len(folded) == 1 else None)

    def alias(self, tool: Tool) -> tuple[str, str]:
        """Return the two identifiers by which code finds a tool: `tools.<first>.<second>`."""
        return self.server_alias(tool.server), self._contents.tool_aliases[tool.server][tool.name]

    def server_alias(self, server: str) -> str:
        """Return the identifier by which code finds a server."""
        return self._contents.server_aliases.get(server) or identifier(server)

    def categories(self) -> dict[str, tuple[Tool, ...]]:
        """Return the tools of each category, in the order of the names."""
        grouped: dict[str, list[Tool]] = {}
        for tool in self._contents.tools:
            grouped.setdefault(tool.category, []).append(tool)
        return {category: tuple(grouped[category]) for category in sorted(grouped)}

    def servers(self) -> dict[str, ServerEntry]:
        """Return every server that is configured or has a tool here, in the order of the names."""
        counts: dict[str, int] = {}
        for tool in self._contents.tools:
            counts[tool.server] = counts.get(tool.server, 0) + 1
        return {
            name: ServerEntry(
                name=name,
                alias=alias,
                category=self._category(name, name),
                tool_count=counts.get(name, 0),
                configured=name in self._servers,
                version=self._versions.get(name),
            )
            for name, alias in sorted(self._contents.server_aliases.items())
        }

    def is_listed(self, server: str) -> bool:
        """Whether the server itself has said, in this session or an earlier one, which tools it has."""
        return server in self._listed

    def left_out(self, server: str) -> tuple[LeftOut, ...]:
        """Return the tools that a server listed and that cannot be offered, and why."""
        return self._left_out.get(server, ())

    def _read_files(self) -> None:
        definitions, problems = read_folder(self._tools_dir)
        self._definitions, self._file_problems = tuple(definitions), tuple(problems)

    def _rebuild(self) -> None:
        problems = [*self._file_problems]
        tools = self._merged(problems)
        for listed in self._list_problems.values():
            problems.extend(listed)
        by_full_name = {tool.full_name: tool for tool in sorted(tools, key=lambda tool: tool.full_name)}
        names: dict[str, list[str]] = {}
        for tool in by_full_name.values():
            names.setdefault(tool.server, []).append(tool.name)
        enabled = (name for name, server in self._servers.items() if not server.disabled)
        self._contents = _Contents(
            tools=tuple(by_full_name.values()),
            by_full_name=by_full_name,
            server_aliases=inverted(aliases({*names, *enabled})),
            tool_aliases={server: inverted(aliases(of_server)) for server, of_server in names.items()},
        )
        self.problems = tuple(problems)
        self.revision += 1

    def _merged(self, problems: list[Problem]) -> list[Tool]:
        """Put files and lists together. A list says what there is; a file about the same tool adds what it left out."""
        defined: dict[str, Tool] = {}
        for definition in self._definitions:
            tool = definition.tool
            if tool.full_name in defined:
                first = defined[tool.full_name].provenance.where
                problems.append(
                    Problem(tool.provenance.where, f"{tool.full_name} is already defined by {first}. Remove one.")
                )
            elif not self._is_disabled(tool.server):
                category = self._category(tool.server, definition.folder)
                defined[tool.full_name] = (
                    tool if tool.category == category else dataclasses.replace(tool, category=category)
                )
        for server, tools in self._listed.items():
            if self._is_disabled(server):
                continue
            twice: set[str] = set()
            others = tuple(f"{other}." for other in self._servers if other.startswith(f"{server}."))
            for tool in tools:
                if tool.full_name.startswith(others):
                    problems.append(Problem(server, f"its {tool.name} has the name of a tool of another server."))
                    continue
                if tool.full_name in twice:
                    problems.append(Problem(server, f"it lists {tool.name} twice; the first counts. Ask its makers."))
                    continue
                twice.add(tool.full_name)
                from_file = defined.get(tool.full_name)
                if from_file is None:
                    defined[tool.full_name] = dataclasses.replace(tool, category=self._category(server, server))
                else:
                    defined[tool.full_name] = dataclasses.replace(
                        tool,
                        category=from_file.category,
                        description=tool.description or from_file.description,
                        output_schema=from_file.output_schema if tool.output_schema is None else tool.output_schema,
                        use_cases=tool.use_cases or from_file.use_cases,
                    )
        return list(defined.values())

    def _category(self, server: str, otherwise: str) -> str:
        configured = self._servers.get(server)
        return (configured.category if configured is not None else None) or otherwise

    def _is_disabled(self, server: str) -> bool:
        configured = self._servers.get(server)
        return configured is not None and configured.disabled

    def _check_category(self, category: str | None) -> None:
        if category is None:
            return
        known = sorted({tool.category for tool in self._contents.tools})
        if category not in known:
            near = nearest(category, known, 1)
            hint = f"Did you mean {known[near[0]]}?" if near else f"There are {', '.join(known) or 'none'}."
            raise CategoryUnknown(f"There is no category {_short(category)}. {hint}")

    def _readings(self, name: str) -> Iterable[Sequence[Tool]]:
        """Give the tools that answer to a name, the most exact reading first."""
        contents = self._contents
        yield [tool for tool in contents.tools if tool.name == name]
        yield [tool for tool in contents.tools if ".".join(self.alias(tool)) == name]
        if contents.by_key is None:
            contents.by_key = _by_key(contents.tools)
        folded = fold(name)
        yield contents.by_key.get(folded, ())
        # `tools.git.git_log` and `mcp__git__git_log` are how code and other clients name a tool.
        for prefix in ("tools", "mcp"):
            yield contents.by_key.get(folded.removeprefix(prefix), ())

    def _unknown(self, name: str, category: str | None) -> ToolUnknown:
        tools = [tool for tool in self._contents.tools if category in {None, tool.category}]
        near = _nearest_tools(name, tools)
        where = "" if category is None else f" in the category {category}"
        elsewhere = None if category is None else self._contents.by_full_name.get(name)
        if elsewhere is None and category is not None:
            elsewhere = next(chain.from_iterable(self._readings(name)), None)
        if elsewhere is not None:
            hint = f"{elsewhere.full_name} is in the category {elsewhere.category}."
        elif near:
            hint = f"The nearest are {', '.join(near)}." if len(near) > 1 else f"Did you mean {near[0]}?"
        elif tools:
            names = ", ".join(_nearest_tools(name, tools, score_min=0.0)[:_FAR_SHOWN])
            hint = f'Find it with search_tools("what it should do"); the nearest names are {names}.'
        else:
            hint = "No tools are known yet: add a server with `sealab servers add` or `sealab servers import`."
        return ToolUnknown(f"There is no tool {_short(name)}{where}. {hint}", near)

    def _take(
        self,
        server: str,
        tools: tuple[Tool, ...],
        problems: list[Problem],
        version: str,
        left_out: tuple[LeftOut, ...],
    ) -> None:
        self._listed[server] = tools
        self._left_out[server] = left_out
        self._versions[server] = version
        self._list_problems[server] = tuple(problems)

    def _cached(self, server: str) -> KeptText:
        digest = hashlib.sha256(server.encode()).hexdigest()[:8]
        return self._kept(f"{identifier(server)[:60]}-{digest}.json")

    def _read_cached(self, server: str) -> None:
        kept = self._cached(server)
        try:
            self._stamps[server] = kept.stamp()
            data = kept.read()
            if data is None:
                return
            content = json.loads(data)
            if content["server"] != server:
                return
            tools, problems = tools_of(content["tools"], server, str(content["version"]))
            left_out = tuple(LeftOut(str(each["tool"]), str(each["reason"])) for each in content.get("left_out", ()))
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            # It is only a copy: the server is asked again, and the list kept anew.
            _LOG.warning(
                "What %s listed before is not known any more: %s cannot be read: %r.", server, kept.where, error
            )
            return
        self._take(server, tuple(tools), problems, str(content["version"]), left_out)


def _by_key(tools: Iterable[Tool]) -> dict[str, tuple[Tool, ...]]:
    """Give the tools for each folded name: that of the tool, and that of server and tool."""
    found: dict[str, list[Tool]] = {}
    for tool in tools:
        for key in {fold(tool.name), fold(tool.full_name)} - {""}:
            found.setdefault(key, []).append(tool)
    return {key: tuple(each) for key, each in found.items()}


def _nearest_tools(name: str, tools: Sequence[Tool], score_min: float = NEAR_SCORE_MIN) -> list[str]:
    """Return the full names nearest to a name, which may or may not have its server before it."""
    found = nearest(name, [tool.full_name if "." in name else tool.name for tool in tools], _NEAREST, score_min)
    if not found and "." in name:
        return _nearest_tools(name.rpartition(".")[2], tools, score_min)
    return [tools[index].full_name for index in found]


def _short(name: str) -> str:
    return repr(name if len(name) <= _NAME_SHOWN else f"{name[:_NAME_SHOWN]}…")


_NAME_SHOWN = 80
