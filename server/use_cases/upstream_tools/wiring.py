"""One reading of `mcp.json`: configuration, catalog and connections, and what the operator permits of them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ....tools_registry.configuration import Configuration, ServerConfig, read
from ....tools_registry.errors import ServerUnknown, ToolUnknown
from ...base.home import Home
from ...base.host_work import checked
from .approval import why_refused
from .large_json import read_large, with_checkpoints
from .registry_state import note_failing

if TYPE_CHECKING:
    from ....tools_registry.catalog import Catalog
    from ....tools_registry.models import Tool
    from ....tools_registry.search.ranking import Searchable, SearchIndex
    from ....tools_registry.upstream.upstreams import OnListChanged, SignFor, Upstreams
    from .registry_state import RegistryState

INDEX_STEPS_MAX = 1_000_000
"""Steps of reading the schemas of one server for the index."""

FileStamp = tuple[int, int, int]
"""When a file changed last, its inode and its size."""

_LOG = logging.getLogger(__name__)


_SHARE = 0.1
"""How much of the time each kind of look may take: a home may have thousands of categories and definitions."""


class DefinitionsFolder:
    """The folder of definitions, looked at so seldom that looking takes no more than its share of the time.

    The deeper a look goes, the longer it takes and the more seldom it is.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found = [0, 0, 0]
        self._next = [0.0, 0.0, 0.0]

    def last_change(self) -> int:
        """Return when a file below it was last added, removed or written, in nanoseconds, as far as was looked."""
        from ....tools_registry.definitions import last_change

        for depth, due in enumerate(self._next):
            began = time.monotonic()
            if began >= due:
                self._found[depth] = last_change(self._path, depth=depth)
                ended = time.monotonic()
                self._next[depth] = ended + (ended - began) / _SHARE
        return max(self._found)


@dataclass(slots=True, eq=False)
class Wired:
    """What belongs to one reading of `mcp.json`."""

    configured: FileStamp
    """Which `mcp.json` that is."""
    defined: int
    """When a file below `tools/` did."""
    configuration: Configuration
    catalog: Catalog
    upstreams: Upstreams
    fresh: set[str] = field(default_factory=set)
    """Servers that were asked in this session what they have."""
    failed: dict[str, tuple[float, str]] = field(default_factory=dict)
    """Servers that could not be asked: when, and why."""
    calls: int = 0
    idle: asyncio.Event = field(default_factory=asyncio.Event)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the connections open while the context lasts, even when `mcp.json` changes meanwhile."""
        self.calls += 1
        self.idle.clear()
        try:
            yield
        finally:
            self.calls -= 1
            if not self.calls:
                self.idle.set()

    def named_servers(self, name: str) -> Iterator[str]:
        """Yield the configured servers whose name or alias stands before a dot in the name of a tool, longest first."""
        for server in sorted(self.configuration.enabled, key=len, reverse=True):
            if name.startswith((f"{server}.", f"{self.catalog.server_alias(server)}.")):
                yield server

    def named_server(self, name: str) -> str | None:
        """Return the first of `named_servers`."""
        return next(self.named_servers(name), None)

    def tool_named(self, server: str, name: str) -> str:
        """Return what stands behind the name or alias of the server in the name of a tool."""
        return name.removeprefix(server).removeprefix(self.catalog.server_alias(server)).removeprefix(".")

    def refuse_what_is_denied(self, server: str | None, name: str) -> None:
        """Return why a tool is not known where the operator's patterns leave it out, whether or not there is one."""
        if server is None:
            return
        config = self.configuration.enabled[server]
        tool = self.tool_named(server, name)
        if not config.permits(tool):
            raise ToolUnknown(why_refused(tool, config), left_out_of=server)

    async def wind_up(self) -> None:
        """End the connections once no call uses them."""
        if self.calls:
            await self.idle.wait()
        await self.upstreams.__aexit__(None, None, None)


def wire(
    home: Home,
    environment: Mapping[str, str],
    configured: FileStamp,
    defined: int,
    on_list_changed: OnListChanged,
    *,
    state: RegistryState,
    discovers: bool = False,
    sign_for: SignFor | None = None,
) -> Wired:
    """Read `mcp.json` and the definitions, and make the connections, which are not opened yet.

    `state` is where is kept what is known of servers.
    `sign_for` signs for the operator, and for callers of servers that are called with their sign-ins. With `discovers`
    the servers of other clients are there too.
    """
    from ....tools_registry.catalog import Catalog
    from ....tools_registry.upstream.upstreams import Upstreams

    configuration = read(home.servers_file, environment, _found_elsewhere(environment) if discovers else None)
    for name, problem in configuration.problems.items():
        _LOG.warning("The server %s cannot be used: %s", name, problem)
    catalog = Catalog.load(home.tools, state.lists, configuration.servers)
    log_problems(catalog)
    upstreams = Upstreams(
        configuration,
        state=home.operators_registry,
        pins=state.pins,
        on_list_changed=on_list_changed,
        on_state=partial(note_failing, state),
        sign_for=sign_for,
        read_large=read_large,
        in_thread=with_checkpoints,
    )
    return Wired(configured, defined, configuration, catalog, upstreams)


def _found_elsewhere(environment: Mapping[str, str]) -> Mapping[str, object]:
    from ....tools_registry.clients.importing import found_at_start

    found = found_at_start(environment)
    _LOG.info("Found in the files of other clients: %s", ", ".join(found) or "no servers")
    return found


def log_problems(catalog: Catalog) -> None:
    """Log which definitions were left out, and why."""
    for found in catalog.problems:
        _LOG.warning("A definition was left out: %s", found)


def index_of(catalog: Catalog, configuration: Configuration, more: Iterable[Searchable]) -> SearchIndex:
    """Index the tools that may be seen, and `more` beside them. Takes CPU time: call it in a thread.

    Of a server whose schemas take more than `INDEX_STEPS_MAX` steps the last tools are found without their parameters.
    """
    from ....tools_registry.describing.schemas import parameter_texts
    from ....tools_registry.search.indexing import MOST_PARAMETERS
    from ....tools_registry.search.ranking import Searchable, SearchIndex

    steps: Counter[str] = Counter()

    def parameters(tool: Tool) -> tuple[tuple[str, str], ...]:
        found, taken = parameter_texts(tool, MOST_PARAMETERS, max(0, INDEX_STEPS_MAX - steps[tool.server]))
        steps[tool.server] += taken
        return found

    documents = [
        Searchable(
            key=tool.full_name,
            name=tool.name,
            server=tool.server,
            category=tool.category,
            description=" ".join((tool.title, tool.description, *tool.use_cases)).strip(),
            parameters=parameters(tool),
        )
        for tool in checked(catalog.tools())
        if is_permitted(tool, configuration)
    ]
    return SearchIndex([*documents, *more])


def is_permitted(tool: Tool, configuration: Configuration) -> bool:
    """Return whether the operator lets a tool be seen; one whose server is not configured is seen, not called."""
    server = configuration.servers.get(tool.server)
    return server is None or server.permits(tool.name)


def config_of(tool: Tool, configuration: Configuration) -> ServerConfig:
    """Return what `mcp.json` says of a tool's server. Raises `ServerUnknown`, `ServerUnusable`."""
    try:
        return configuration.server(tool.server)
    except ServerUnknown:
        raise ServerUnknown(
            f"The tool {tool.full_name} is described below tools/, but mcp.json has no server {tool.server!r} to call. "
            f"Have the user add it with `sealab servers add`."
        ) from None
