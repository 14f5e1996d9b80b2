"""One server over time: connected when first used, kept warm, ended when idle, connected anew after it died.

A call is at most once: only where the server cannot have seen it, or refused it unseen, it is sent a second time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from mcp import Client, MCPError
from mcp.shared.dispatcher import ProgressFnT
from mcp.types import REQUEST_TIMEOUT

from ..configuration import ServerConfig
from ..definitions import NAME_CHARS_MAX
from ..errors import ConnectFailed, RegistryError, ToolUnknown
from ..names import nearest
from . import upstream_faults
from .lenient import RawTool
from .link import LinkOptions, UpstreamLink
from .reading import whole
from .stderr_tail import StderrTail

OnProgress = Callable[[float, float | None, str | None], Awaitable[None]]
"""Takes the progress of a call so far, the total if known, and the server's message if it gave one."""

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_CLOSE_SECONDS = 8.0
_NEAR_SCORE_MIN = 50.0
_WRITE_GRACE_SECONDS = 5.0


class Connection:
    """One server; all tasks of one event loop may use it at the same time."""

    def __init__(self, config: ServerConfig, options: LinkOptions) -> None:
        self.config = config
        self.stderr = StderrTail()
        self.starts = 0
        self.since: float | None = None
        """When it began to connect, stood or failed, in seconds since 1970."""
        self._failure: RegistryError | None = None
        self._is_known = False
        self._options = options
        self._link: UpstreamLink | None = None
        self._links: set[UpstreamLink] = set()

    @property
    def failure(self) -> RegistryError | None:
        """Why it could not be connected last, None where it could; the log has a line on each change."""
        return self._failure

    @failure.setter
    def failure(self, failure: RegistryError | None) -> None:
        before, self._failure = self._failure, failure
        if (failure is None) != (before is None) or not self._is_known:
            self._is_known = True
            self._options.on_state()
        if failure is not None and before is None:
            # Of what a server wrote itself, the log has nothing: that stands in `for_operator` alone.
            _LOG.warning("The upstream server %s fails: %s", self.config.name, failure)
        elif failure is None and before is not None:
            _LOG.warning("The upstream server %s works again.", self.config.name)

    @property
    def link(self) -> UpstreamLink | None:
        """The link that a call would use, if there is one."""
        return None if self._link is None or self._link.closing else self._link

    @asynccontextmanager
    async def linked(self) -> AsyncIterator[UpstreamLink]:
        """Give a link that is ready, for one call or for a look at it. Raises `ConnectFailed` and its kin."""
        link = self.link
        if link is None:
            link = self._link = UpstreamLink(self.config, self.stderr, self._options)
            self._links.add(link)
            link.task.add_done_callback(lambda _: self._links.discard(link))
            self.starts += 1
            self.since = time.time()
        link.begin()
        try:
            is_new = not link.ready.done()
            await asyncio.shield(link.ready)
            if is_new:
                self.failure, self.since = None, time.time()
            yield link
        except ConnectFailed as error:
            self.failure, self.since = error, time.time()
            raise
        finally:
            link.end()

    async def listed(self) -> UpstreamLink:
        """Connect if need be, and return the link with its tools up to date. Raises as `linked`, and for listing."""
        async with self.linked() as link:
            await self._fresh(link)
            return link

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, object],
        *,
        timeout_seconds: float,
        on_progress: OnProgress | None,
    ) -> tuple[RawTool, Mapping[str, Any]]:
        """Call a tool; return its definition and its result as the server sent it. Raises a `RegistryError`."""
        for last in (False, True):
            async with self.linked() as link:
                await self._fresh(link)
                if link.refusal is not None:
                    link.retire()
                    raise link.refusal
                definition = next((each for each in link.tools if each["name"] == tool), None)
                if definition is None:
                    raise await asyncio.to_thread(self._unknown, tool, link.tools)
                callback = None if on_progress is None else _progress_callback(on_progress)
                send = partial(
                    link.client.call_tool,
                    tool,
                    dict(arguments),
                    read_timeout_seconds=timeout_seconds,
                    progress_callback=callback,
                )
                result = await self._sent(link, f"The tool {tool!r}", send, timeout_seconds, last=last)
                if result is not None:
                    return definition, whole(result)
        raise AssertionError("the second attempt returns or raises")

    async def ask(self, what: str, send: Callable[[Client], Awaitable[T]]) -> T:
        """Send a request other than a call through the SDK's client, and return the answer; `what` names it for people.

        Raises a `RegistryError`.
        """
        for last in (False, True):
            async with self.linked() as link:
                await self._fresh(link)
                if link.refusal is not None:
                    link.retire()
                    raise link.refusal
                seconds = self.config.call_timeout_seconds
                answer = await self._sent(link, what, partial(send, link.client), seconds, last=last)
                if answer is not None:
                    return answer
        raise AssertionError("the second attempt returns or raises")

    def renew(self) -> None:
        """Let the next call connect anew, and those under way finish."""
        if self._link is not None:
            self._link.retire()

    async def close(self) -> None:
        """End whatever runs."""
        await asyncio.gather(*(link.close(_CLOSE_SECONDS) for link in tuple(self._links)))

    async def _fresh(self, link: UpstreamLink) -> None:
        try:
            await link.relist_if_stale()
        except Exception as error:
            raise upstream_faults.of_call(self.config, "The list of tools", error) from error

    async def _sent(
        self,
        link: UpstreamLink,
        what: str,
        send: Callable[[], Awaitable[T]],
        timeout_seconds: float,
        *,
        last: bool,
    ) -> T | None:
        """Send a request; None where it provably was not taken and may be sent on another link."""
        began = time.monotonic()
        try:
            # The SDK's clock begins when the call is written; a server that reads nothing would stop it from beginning.
            with link.waiting(timeout_seconds + _WRITE_GRACE_SECONDS) as scope:
                return await send()
        except MCPError as error:
            if error.error.code == REQUEST_TIMEOUT and time.monotonic() - began >= timeout_seconds * 0.99:
                raise upstream_faults.of_call_timeout(self.config, what, timeout_seconds) from None
            if upstream_faults.never_sent(error) or upstream_faults.session_expired(error):
                link.retire()
                if not last:
                    return None
            raise upstream_faults.of_call(self.config, what, error) from error
        except Exception as error:
            raise upstream_faults.of_call(self.config, what, error) from error
        if link.garbled(scope):
            raise upstream_faults.of_garbled(self.config, what)
        raise upstream_faults.of_call_timeout(self.config, what, timeout_seconds)

    def _unknown(self, tool: str, tools: tuple[RawTool, ...]) -> ToolUnknown:
        known = [name for each in tools if len(name := str(each["name"])) <= NAME_CHARS_MAX]
        near = [known[at] for at in nearest(tool, known, 3, _NEAR_SCORE_MIN)]
        offered = f"Use {' or '.join(near)}." if near else "See what there is with search_tools."
        return ToolUnknown(f"The server {self.config.name!r} has no tool {tool!r}. {offered}", near)


def _progress_callback(on_progress: OnProgress) -> ProgressFnT:
    async def tell(progress: float, total: float | None, message: str | None) -> None:
        await on_progress(progress, total, message)

    return tell
