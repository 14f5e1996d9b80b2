"""One life of a connection to one server: a task of its own enters and leaves the SDK's client; any task may call.

The SDK's client must be left by the task that entered it, and a transport that breaks cancels that task; so nobody
else's task may be it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal
from weakref import WeakSet

import anyio
from mcp import Client, MCPError
from mcp.client.subscriptions import SubscriptionLost
from mcp.types import CONNECTION_CLOSED, METHOD_NOT_FOUND, CallToolResult, Implementation, ToolListChangedNotification
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from ..configuration import ServerConfig, Transport
from ..errors import AnswerRefused, RegistryError
from ..json_lines import ReadJson, read_in_thread
from ..threads import Checkpoint, InThread, in_default_thread
from ..untraced import untrace_sdk
from . import lenient, upstream_faults
from .lenient import LEFT_OUT, LeftOut, RawTool
from .pages import PageCounter
from .reading import dropped, whole
from .stderr_tail import StderrTail
from .transports import InputWatch, opened

if TYPE_CHECKING:
    import httpx2
    from mcp.client.session import ElicitationFnT, IncomingMessage

Era = Literal["auto", "legacy"]
"""How the protocol version is found: the newest that both support, or the handshake of up to 2025-11-25."""

_GARBAGE_SECONDS = 3.0
_ANSWER_SECONDS = 1.0
_GARBAGE_MOST_AT_FIRST = 1_000
_GARBAGE_MOST = 100_000
_EXCERPT_CHARS = 160
_LOG = logging.getLogger(__name__)
TOOLS_LISTED_MAX = 20_000
"""Tools of a server, on all pages together."""


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """How links are made.

    `auth` gives, in a thread, what signs the requests of a link; `elicit` answers what a server asks of the user;
    `on_listed` sees every list of tools, in a thread, and may return why none of them can be called; `on_change` is
    called when a server says that its tools changed; `on_state` when connecting fails, or works for the first time or
    again; `read_large` reads large messages, and `in_thread` does what else
    takes long.
    """

    era: Era = "auto"
    auth: Callable[[], httpx2.Auth | None] = field(default=lambda: None)
    elicit: ElicitationFnT | None = None
    on_listed: Callable[[tuple[RawTool, ...]], RegistryError | None] = field(default=lambda _tools: None)
    on_change: Callable[[], None] = field(default=lambda: None)
    on_state: Callable[[], None] = field(default=lambda: None)
    read_large: ReadJson = read_in_thread
    in_thread: InThread = in_default_thread


class UpstreamLink:
    """A connection that is being made, stands, or ended. `closing` says that no new call may begin on it."""

    def __init__(self, config: ServerConfig, stderr: StderrTail, options: LinkOptions) -> None:
        self.config = config
        self.tools: tuple[RawTool, ...] = ()
        self.left_out: tuple[LeftOut, ...] = ()
        self.refusal: RegistryError | None = None
        self.closing = False
        self.users = 0
        self.stale = False
        self._client: Client | None = None
        self._stderr = stderr
        self._written = stderr.written
        self._garbage = ""
        self._garbage_count = 0
        self._options = options
        self._scope = anyio.CancelScope()
        self._stop = anyio.Event()
        self._relisting = anyio.Lock()
        self._waiting: set[anyio.CancelScope] = set()
        self._garbled: WeakSet[anyio.CancelScope] = WeakSet()
        loop = asyncio.get_running_loop()
        self._last_used = loop.time()
        self._patience = loop.call_later(config.connect_timeout_seconds, self._give_up)
        self.ready: asyncio.Future[None] = loop.create_future()
        self.ready.add_done_callback(lambda ready: ready.cancelled() or ready.exception())
        # In a context of its own: it outlives the call that made it, and what that call may do is not its own matter.
        self.task = loop.create_task(self._own(), name=f"upstream {config.name}", context=Context())

    @property
    def client(self) -> Client:
        """The SDK's client, once the link is ready."""
        assert self._client is not None
        return self._client

    @property
    def is_legacy(self) -> bool:
        """Whether its protocol begins with a handshake, once it is ready."""
        return self.client.protocol_version not in MODERN_PROTOCOL_VERSIONS

    @contextmanager
    def waiting(self, seconds: float) -> Iterator[anyio.CancelScope]:
        """Wait inside for an answer, at most so long; the scope ends too where what came instead is not an answer."""
        with anyio.CancelScope(deadline=anyio.current_time() + seconds) as scope:
            self._waiting.add(scope)
            try:
                yield scope
            finally:
                self._waiting.discard(scope)

    def garbled(self, scope: anyio.CancelScope) -> bool:
        """Return whether a wait ended since its answer could not be read."""
        return scope in self._garbled

    def begin(self) -> None:
        """Count a call, which keeps the link from being idle."""
        self.users += 1

    def end(self) -> None:
        """Count a call as done; a link that takes no more ends with its last call."""
        self.users -= 1
        self._last_used = asyncio.get_running_loop().time()
        if self.closing and not self.users:
            self._stop.set()

    def retire(self) -> None:
        """Take no more calls, and end when those under way are done."""
        self.closing = True
        if not self.users:
            self._stop.set()

    async def close(self, grace_seconds: float) -> None:
        """End now: calls under way fail, a process gets a signal to end and is killed if it does not."""
        self.closing = True
        self._stop.set()
        if not self.ready.done():
            self._scope.cancel()
        if not (await asyncio.wait({self.task}, timeout=grace_seconds))[0]:
            self._scope.cancel()
            await asyncio.wait({self.task}, timeout=grace_seconds)

    async def relist_if_stale(self) -> None:
        """Ask for the tools again where the server said that they changed. Raises as `_list`, and `CallTimedOut`."""
        async with self._relisting:
            if not self.stale:
                return
            self.stale = False
            seconds = self.config.connect_timeout_seconds
            with anyio.move_on_after(seconds) as scope:
                await self._list()
            if scope.cancelled_caught:
                raise upstream_faults.of_call_timeout(self.config, "The list of tools", seconds)

    async def _own(self) -> None:
        failure: BaseException | None = None
        try:
            with self._scope:
                try:
                    await self._live(self._options.era)
                except Exception as error:
                    if not self._ended_at_discovery(error):
                        raise
                    await self._live("legacy")
        except BaseException as error:
            failure = error
            if isinstance(error, asyncio.CancelledError):
                raise
        finally:
            self._patience.cancel()
            self.closing = True
            if not self.ready.done():
                self.ready.set_exception(self._connect_failure(failure))

    def _ended_at_discovery(self, error: Exception) -> bool:
        """Return whether a process may have ended since it was asked for its versions, as some do then."""
        cause = upstream_faults.leaf(error)
        ended = isinstance(cause, MCPError) and cause.error.code == CONNECTION_CLOSED and self._client is None
        return ended and self.config.type is Transport.STDIO and self._options.era == "auto" and not self.ready.done()

    async def _live(self, era: Era) -> None:
        """Connect, list the tools, and hold the connection until it is idle, stopped, or over."""
        async with AsyncExitStack() as stack:
            errors = stack.enter_context(self._stderr.pipe())
            transport = opened(
                self.config,
                stderr=errors,
                auth=await asyncio.to_thread(self._options.auth),
                read_large=self._options.read_large,
                in_thread=self._options.in_thread,
                watch=InputWatch(self._on_garbage, self._on_end),
            )
            self._client = await stack.enter_async_context(
                Client(
                    transport,
                    mode=era,
                    cache=None,
                    # Calls have bounds of their own; of what goes before them the bound of connecting counts.
                    read_timeout_seconds=max(self.config.call_timeout_seconds, self.config.connect_timeout_seconds),
                    client_info=Implementation(name="sealab", version=version("sealab")),
                    message_handler=self._on_message,
                    elicitation_callback=self._options.elicit,
                )
            )
            # Answers are checked outside the event loop, see `output_schema`.
            self._client.session.validate_tool_result = _unchecked  # type: ignore[method-assign]  # in this session alone
            await self._list()
            self._patience.cancel()
            self.ready.set_result(None)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._listen)
                await self._until_over()
                tasks.cancel_scope.cancel()

    async def _until_over(self) -> None:
        idle = self.config.idle_seconds
        while not self._stop.is_set():
            left = idle if self.users else self._last_used + idle - asyncio.get_running_loop().time()
            if left <= 0:
                self.closing = True
                return
            with anyio.move_on_after(left):
                await self._stop.wait()

    async def _list(self) -> None:
        """Ask for all pages of the list of tools. Raises what the SDK raises, and `AnswerRefused`."""
        tools: dict[str, RawTool] = {}
        left_out: dict[LeftOut, None] = {}
        cursor: str | None = None
        pages = PageCounter(f"The list of tools of the server {self.config.name!r}")
        while True:
            try:
                page = await self.client.list_tools(cursor=cursor)
            except MCPError as error:
                has_none = error.error.code == METHOD_NOT_FOUND and self.client.server_capabilities.tools is None
                if cursor == "" or (has_none and not pages.has_more):
                    break
                raise
            given = whole(page)
            cursor = await self._options.in_thread(partial(pages.take, given, page.next_cursor))
            read = await self._options.in_thread(partial(_read, self.config.name, given.get("tools"), dropped(page)))
            if self.config.type is Transport.OPENAPI:
                left_out |= {LeftOut(**each): None for each in given["_meta"][LEFT_OUT]}
            for each in read:
                if isinstance(each, LeftOut):
                    left_out[each] = None
                else:
                    tools.setdefault(str(each["name"]), each)
            if cursor is None:
                break
            if len(tools) > TOOLS_LISTED_MAX:
                raise _too_many(self.config.name)
        for each in left_out:
            if each not in self.left_out:
                _LOG.warning("The server %s: the tool %s is left out: %s.", self.config.name, each.tool, each.reason)
        self.tools, self.left_out = tuple(tools.values()), tuple(left_out)
        self.refusal = await asyncio.to_thread(self._options.on_listed, self.tools)

    async def _listen(self) -> None:
        """Subscribe to changes of the tools where the protocol requires it; older servers notify without that."""
        offered = self.client.server_capabilities.tools
        if self.is_legacy or not (offered and offered.list_changed):
            return
        with suppress(MCPError, SubscriptionLost, TimeoutError, ValidationError):
            async with self.client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    self._on_change()

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._on_change()

    def _on_change(self) -> None:
        if self.ready.done() and not self.stale:
            self.stale = True
            self._options.on_change()

    def _on_garbage(self, error: Exception) -> None:
        """Remember what came; stray prints, such as those of an installer, shorten no patience.

        After a line that was meant as a message a server that is not ready has a moment left to say something better;
        later, it ends the one call it can have been for.
        """
        self._garbage_count += 1
        if self._garbage_count > (_GARBAGE_MOST if self.ready.done() else _GARBAGE_MOST_AT_FIRST):
            self._give_up()
            return
        excerpt = _excerpt(error)
        is_meant = '"jsonrpc"' in excerpt
        if self.ready.done() and is_meant and len(self._waiting) == 1:
            asyncio.get_running_loop().call_later(_ANSWER_SECONDS, self._garble, next(iter(self._waiting)))
        if not self.ready.done():
            self._garbage = self._garbage or excerpt
        if not self.ready.done() and is_meant:
            soon = asyncio.get_running_loop().time() + _GARBAGE_SECONDS
            if soon < self._patience.when():
                self._patience.cancel()
                self._patience = asyncio.get_running_loop().call_at(soon, self._give_up)

    def _garble(self, scope: anyio.CancelScope) -> None:
        if scope in self._waiting:
            self._garbled.add(scope)
            scope.cancel()

    def _give_up(self) -> None:
        """Fail those that wait for it, before the process is ended, which takes long."""
        self.closing = True
        if not self.ready.done():
            self.ready.set_exception(self._connect_failure(None))
        self._scope.cancel()

    def _on_end(self) -> None:
        if self._client is not None:
            self.closing = True
            self._stop.set()

    def _connect_failure(self, failure: BaseException | None) -> RegistryError:
        said = self._said_before_ready()
        if failure is not None:
            return upstream_faults.of_connect(self.config, failure, said)
        if self._garbage:
            return upstream_faults.of_garbage(self.config, self._garbage)
        return upstream_faults.of_connect_timeout(self.config, said)

    def _said_before_ready(self) -> str:
        """Return what the server wrote to people, to stand in a sentence to its operator; or an empty text."""
        if line := self._stderr.last_line_since(self._written):
            return f" (its stderr ends: “{line[:_EXCERPT_CHARS]}”)"
        return f" (it wrote “{self._garbage}”, which is not MCP)" if self._garbage else ""


def _read(server: str, listed: object, without: Container[str], checkpoint: Checkpoint) -> list[RawTool | LeftOut]:
    """Read a page of tools `without` those that the SDK dropped."""
    read: list[RawTool | LeftOut] = []
    if isinstance(listed, list) and len(listed) > TOOLS_LISTED_MAX:
        raise _too_many(server)
    for each in listed if isinstance(listed, list) else [] if listed is None else [listed]:
        one = lenient.tool(each)
        if not isinstance(one, LeftOut) and one["name"] in without:
            one = LeftOut(str(one["name"]), "its x-mcp-header is not as MCP demands")
        read.append(one)
        checkpoint()
    return read


def _too_many(server: str) -> AnswerRefused:
    return AnswerRefused(f"The server {server!r} lists more than {TOOLS_LISTED_MAX:,} tools. Tell the server's author.")


async def _unchecked(name: str, result: CallToolResult) -> None:
    """Stand in for the SDK's check of an answer."""


def _excerpt(error: Exception) -> str:
    """Return the beginning of what could not be read."""
    found = error.errors(include_url=False)[0].get("input") if isinstance(error, ValidationError) else error
    return str(found)[:_EXCERPT_CHARS]


def quiet_sdk() -> None:
    """Keep the SDK's client from tracing, and from logging what callers get as errors; not where DEBUG asks for it."""
    untrace_sdk()
    if not logging.getLogger().isEnabledFor(logging.DEBUG):
        logging.getLogger("mcp.client").setLevel(logging.CRITICAL)
