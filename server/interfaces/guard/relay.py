"""The relay between one client and one server: each message is looked through on its way, and none waits for another.

Where the order of two messages means something, it is kept: notifications about a request come before its answer,
and the cancellation of a request after the request. Only what is looked through at once is waited for.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Coroutine
from contextlib import suppress
from enum import Enum

import anyio

from ....sandbox.job import Json
from ....tools_registry.json_lines import LARGE_CHARS, Edges, TooLong
from ....tools_registry.upstream.message_faults import MESSAGE_BYTES_MAX
from ...base.errors import ServerError
from ...base.lru import Lru
from ...base.standard_streams import InputLines, OutputLines
from .guarded_server import GuardedServer, Incoming
from .message_filter import Asked, MessageFilter, Unshown, in_place_of, method_text
from .messages import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    Message,
    UnrelayableLine,
    error_answer,
    id_of,
    method_of,
    params_of,
    read_message,
    written,
)

MESSAGES_MAX = 256
BYTES_MAX = 2 * MESSAGE_BYTES_MAX
"""What may be in work at once in one direction; then no more is read until some of it has been sent on."""
_ASKED_MAX = 10_000
_LAST_SECONDS = 5.0
"""How long answers that came before the server's end may take to be looked through."""
_CANCELLED = "notifications/cancelled"
_ENDLESS = frozenset({"subscriptions/listen"})
"""Requests that end only when their client or the server does; nothing waits for them."""
_MAY_HOLD_A_TOKEN = re.compile(rb"(?:\[|%5[Bb]|\\u005[Bb])[A-Z][A-Z0-9_]{0,31}_[0-9a-z]{10}")
_GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError)
_LOG = logging.getLogger(__name__)


class Side(Enum):
    """Who ended the connection."""

    CLIENT = "client"
    SERVER = "server"
    SIGNAL = "signal"


class RelayLimits:
    """How much may be in work at once."""

    def __init__(self) -> None:
        self.messages = self._bytes = 0
        self._given = asyncio.Event()

    async def take(self, size: int) -> None:
        """Wait until there is room for a message of so many bytes, and take it."""
        while self.messages >= MESSAGES_MAX or (self.messages and self._bytes + size > BYTES_MAX):
            self._given.clear()
            await self._given.wait()
        self.messages += 1
        self._bytes += size

    def give(self, size: int) -> None:
        """Give it back."""
        self.messages -= 1
        self._bytes -= size
        self._given.set()


class Relay:
    """Relays the messages of one connection."""

    def __init__(self, messages: MessageFilter) -> None:
        self._messages = messages
        self._asked: Lru[int | str, Asked] = Lru(_ASKED_MAX)
        self._awaited: set[int | str] = set()
        self._asked_client: Lru[int | str, Asked] = Lru(_ASKED_MAX)
        self._on_their_way: dict[int | str, asyncio.Future[None]] = {}
        self._ordered: asyncio.Future[None] | None = None
        """Done when the last notification has been sent that is waited for."""
        self._from_client, self._from_server = RelayLimits(), RelayLimits()
        self._works: set[asyncio.Task[None]] = set()
        self._given: InputLines
        self._answers: OutputLines
        self._server: GuardedServer

    def idle(self) -> bool:
        """Return whether nothing is in work, and no answer is waited for."""
        return not (self._awaited or self._works)

    async def run(
        self, given: InputLines, answers: OutputLines, server: GuardedServer, stop: asyncio.Future[None]
    ) -> Side:
        """Relay until one side ends or `stop` is done, and return which it was."""
        self._given, self._answers, self._server = given, answers, server
        client, upstream = (asyncio.create_task(each) for each in (self._take_from_client(), self._take_from_server()))
        try:
            await asyncio.wait({client, upstream, stop}, return_when=asyncio.FIRST_COMPLETED)
            for each in (client, upstream):
                if each.done():
                    each.result()
            side = Side.CLIENT if client.done() else Side.SERVER if upstream.done() else Side.SIGNAL
            if side is Side.SERVER and self._works:
                await asyncio.wait(self._works, timeout=_LAST_SECONDS)
            return side
        finally:
            for task in (client, upstream, *self._works):
                task.cancel()
            await asyncio.gather(client, upstream, *self._works, return_exceptions=True)

    async def close(self, why: str) -> None:
        """Answer what is still waited for by an error that says why."""
        for number in list(self._awaited):
            await self._tell_client(error_answer(number, CONNECTION_CLOSED, why))
        self._awaited.clear()

    async def _take_from_client(self) -> None:
        async for line in self._given:
            if isinstance(line, TooLong):
                what = f"The message is {line.size} bytes large, and at most {MESSAGE_BYTES_MAX} are taken. Send less."
                await self._tell_client(error_answer(line.edges.asks, INVALID_REQUEST, what))
            elif line.strip():
                await self._from_client.take(len(line))
                await self._take_line(line)

    async def _take_line(self, line: bytes) -> None:
        """Begin with a line of the client: what takes long goes on beside the next ones."""
        if len(line) > LARGE_CHARS:
            on_its_way = self._begin(Edges.of(line).asks)
            await self._do(self._large_to_server(line, on_its_way), self._from_client, line, at_once=False)
            return
        message = await self._read_of_client(line)
        if message is None:
            self._from_client.give(len(line))
            return
        is_slow = _MAY_HOLD_A_TOKEN.search(line) is not None or self._waits(message)
        on_its_way = self._begin(id_of(message)) if is_slow and method_of(message) is not None else None
        await self._do(self._to_server(message, on_its_way), self._from_client, line, at_once=not is_slow)

    def _waits(self, message: Message) -> bool:
        cancelled = params_of(message).get("requestId")
        return method_of(message) == _CANCELLED and isinstance(cancelled, int | str) and cancelled in self._on_their_way

    async def _read_of_client(self, line: bytes) -> Message | None:
        try:
            return await read_message(line)
        except UnrelayableLine as error:
            what = f"The message cannot be relayed: {error}. Send one JSON object of MCP on each line."
            await self._tell_client(error_answer(Edges.of(line).asks, PARSE_ERROR, what))
            return None

    async def _do(
        self, work: Coroutine[None, None, None], room: RelayLimits, line: bytes | None, *, at_once: bool
    ) -> None:
        async def done() -> None:
            try:
                await work
            finally:
                room.give(len(line or b""))

        if at_once:
            await done()
            return
        task = asyncio.create_task(done())
        self._works.add(task)
        task.add_done_callback(self._works.discard)

    async def _large_to_server(self, line: bytes, on_its_way: asyncio.Future[None] | None) -> None:
        message = await self._read_of_client(line)
        if message is not None:
            await self._to_server(message, on_its_way)
        elif on_its_way is not None:
            on_its_way.set_result(None)

    def _begin(self, number: int | str | None) -> asyncio.Future[None] | None:
        """Note that a request is on its way, until the future that is returned is done."""
        if number is None:
            return None
        future = asyncio.get_running_loop().create_future()
        self._on_their_way[number] = future

        def forget(_done: asyncio.Future[None]) -> None:
            if self._on_their_way.get(number) is future:
                del self._on_their_way[number]

        future.add_done_callback(forget)
        return future

    async def _to_server(self, message: Message, on_its_way: asyncio.Future[None] | None) -> None:
        method, number = method_of(message), id_of(message)
        asked = Asked()
        if method is None:
            asked = asked if number is None else self._asked_client.pop(number, asked)
        elif number is not None:
            self._asked[number] = Asked.by(message)
            if method not in _ENDLESS:
                self._awaited.add(number)
        if method == _CANCELLED:
            await self._let_pass(params_of(message).get("requestId"))
        try:
            message = await self._messages.for_server(message, asked)
            await self._server.send(message)
        except (ServerError, ValueError) as failed:
            await self._not_sent(message, failed if isinstance(failed, ServerError) else None)
        finally:
            if on_its_way is not None:
                on_its_way.set_result(None)

    async def _let_pass(self, cancelled: Json) -> None:
        """Wait until a request that is to be cancelled has been sent on; no answer to it is waited for."""
        if isinstance(cancelled, int | str):
            before = self._on_their_way.get(cancelled)
            if before is not None:
                await asyncio.wait({before})
            self._awaited.discard(cancelled)

    async def _not_sent(self, message: Message, failed: ServerError | None) -> None:
        why = str(failed or "The message cannot be carried by HTTP. Send a valid message of MCP.")
        number = id_of(message)
        if method_of(message) is None and number is not None:
            with suppress(ValueError):
                await self._server.send(error_answer(number, INTERNAL_ERROR, why))
        elif number is not None:
            await self._tell_client(error_answer(number, INTERNAL_ERROR, why))
        else:
            _LOG.warning("A message of the client was not sent on (%s): %s", method_text(message), why)

    async def _take_from_server(self) -> None:
        async for incoming in self._server.incoming():
            await self._from_server.take(incoming.size)
            line = incoming.line if isinstance(incoming.line, bytes) else None
            if incoming.is_large:
                await self._do(self._to_client(incoming, self._ordered), self._from_server, line, at_once=False)
                continue
            message = await self._readable(incoming)
            unshown = None if message is None else await self._unshown(message, is_large=False)
            if unshown is None:
                self._from_server.give(incoming.size)
                continue
            before, sent = self._ordered, None
            if "id" not in unshown.message and unshown.is_small:
                sent = self._ordered = asyncio.get_running_loop().create_future()
            work = self._shown_to_client(unshown, before, sent)
            at_once = not unshown.parts and (before is None or before.done())
            await self._do(work, self._from_server, line, at_once=at_once)

    async def _to_client(self, incoming: Incoming, before: asyncio.Future[None] | None) -> None:
        """Do for a large message what is done for others at once."""
        message = await self._readable(incoming)
        unshown = None if message is None else await self._unshown(message, is_large=True)
        if unshown is not None:
            await self._shown_to_client(unshown, before, None)

    async def _readable(self, incoming: Incoming) -> Message | None:
        """Return a message of the server; where it cannot be read, answer what waits for it and return None."""
        if incoming.message is not None:
            return incoming.message
        line = incoming.line
        assert line is not None
        edges = line.edges if isinstance(line, TooLong) else Edges.of(line)
        try:
            if isinstance(line, bytes):
                return await read_message(line)
            why = f"it is {line.size} bytes large, and at most {MESSAGE_BYTES_MAX} are taken"
        except UnrelayableLine as error:
            why = str(error)
        if (number := edges.answers) is not None and number in self._asked:
            text = f"The server's answer is withheld, since it cannot be looked through: {why}. Ask for less at once."
            await self._tell_client(error_answer(number, INTERNAL_ERROR, text))
        elif (number := edges.asks) is not None:
            await self._server.send(error_answer(number, INVALID_REQUEST, f"The message cannot be relayed: {why}."))
        else:
            _LOG.warning("A line of the server was left out, since it cannot be looked through: %s.", why)
        return None

    async def _unshown(self, message: Message, *, is_large: bool) -> Unshown | None:
        number = id_of(message)
        asked = Asked()
        if method_of(message) is None and number is not None:
            asked = self._asked.pop(number, asked)
        try:
            return await self._messages.unshown(message, asked, is_large=is_large)
        except ServerError as failed:
            await self._withhold(message, failed)
            return None

    async def _shown_to_client(
        self, unshown: Unshown, before: asyncio.Future[None] | None, sent: asyncio.Future[None] | None
    ) -> None:
        try:
            try:
                shown: Message | None = await self._messages.shown(unshown)
            except ServerError as failed:
                shown = await self._withhold(unshown.message, failed, tells=False)
            if before is not None and not before.done():
                await asyncio.wait({before})
            if shown is not None:
                number = id_of(shown)
                if method_of(shown) is not None and number is not None:
                    self._asked_client[number] = Asked(method_of(shown))
                await self._tell_client(shown)
        finally:
            if sent is not None:
                sent.set_result(None)

    async def _withhold(self, message: Message, failed: ServerError, *, tells: bool = True) -> Message | None:
        """Return what replaces a message that cannot be shown, or None: a request gets an error, sent to the server."""
        _LOG.warning("A message of the server was withheld (%s): %s", method_text(message), failed)
        number = id_of(message)
        if method_of(message) is not None and number is not None:
            await self._server.send(error_answer(number, INTERNAL_ERROR, str(failed)))
            return None
        shown = in_place_of(message, failed)
        if shown is not None and tells:
            await self._tell_client(shown)
        return shown

    async def _tell_client(self, message: Message) -> None:
        """Send the client a message; an answer is no longer waited for then."""
        if method_of(message) is None and (number := id_of(message)) is not None:
            self._asked.pop(number, None)
            self._awaited.discard(number)
        try:
            line = await written(message)
        except (ServerError, ValueError) as failed:
            _LOG.warning("A message could not be written (%s): %s", method_text(message), type(failed).__name__)
            if method_of(message) is not None or "id" not in message:
                return
            what = "The answer is withheld, since it cannot be written. Ask for less at once."
            line = await written(error_answer(id_of(message), INTERNAL_ERROR, what))
        with suppress(*_GONE):
            await self._answers.send(line)
