"""Guards one server for one client on the standard streams: makes the parts, and ends them together."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import TextIO

import anyio

from ....tools_registry.configuration import ServerConfig, Transport
from ....tools_registry.errors import ConnectFailed
from ....tools_registry.upstream.message_faults import MESSAGE_BYTES_MAX
from ...base.database import database_of
from ...base.errors import Exit, UsageError
from ...base.home import Home
from ...base.host_work import ended_within, settled
from ...base.settings import PrivacyLevel, PrivacyMode, Settings
from ...base.standard_streams import GRACE_SECONDS, InputLines, OutputLines
from ...base.startup.signals import signals
from ...privacy.gates import log_gate
from ...privacy.of_home import privacy_of
from ...privacy.privacy import Privacy
from .guarded_server import GuardedServer, address_of, process_of
from .message_filter import MessageFilter
from .relay import Relay, Side
from .stderr_lines import filtered_stderr

_CLOSING_SECONDS = 2.0
_SWITCH_SECONDS = 0.001
"""How long a thread that looks through a text may hold the interpreter while the event loop waits for it."""
_NO_TYPE = "KNOWN_VALUES_ALONE"
_LOG = logging.getLogger(__name__)


async def guard(config: ServerConfig, home: Home, settings: Settings) -> Exit:
    """Relay between a client on the standard streams and a server, until one of them ends or a signal comes.

    Raises `UsageError` where the server cannot be started, and what opening the home and its vault raises.
    """
    settings = replace(settings, privacy=PrivacyLevel.AUTO)
    home.prepare()
    log_gate.install()
    sys.setswitchinterval(_SWITCH_SECONDS)
    async with AsyncExitStack() as ending:
        privacy, known_only = await ending.enter_async_context(_filters(settings, home))
        messages = MessageFilter(privacy, known_only, config)
        relay = Relay(messages)
        signalled = await ending.enter_async_context(signals())
        server = await ending.enter_async_context(_connected(config, privacy))
        given = InputLines(MESSAGE_BYTES_MAX, relay.idle)
        answers = OutputLines(given.end)
        side = await relay.run(given, answers, server, signalled.first)
        given.end()
        if side is Side.SIGNAL:
            answers.hurry()
        ended = f"The guarded server {await server.fate()}" if side is Side.SERVER else "The guard was stopped"
        with anyio.move_on_after(GRACE_SECONDS):  # it may not read them
            await relay.close(f"{ended} before the answer came. What was done by then may stand.")
        await answers.aclose()
    if side is Side.SERVER:
        _LOG.error("%s.", ended)
    return Exit.FAILED if side is Side.SERVER else Exit.OK


@asynccontextmanager
async def _connected(config: ServerConfig, privacy: Privacy) -> AsyncIterator[GuardedServer]:
    async with filtered_stderr(privacy) as stderr, AsyncExitStack() as stack:
        if config.type is not Transport.STDIO:
            yield await _reached(config, stderr, stack)
            return
        try:
            process = await stack.enter_async_context(process_of(config, stderr))
        except OSError as error:
            raise UsageError(
                f"{config.command} cannot be started: {error.strerror}. Give the command that starts the server, "
                "as in `sealab guard -- COMMAND ARGUMENT ...`."
            ) from None
        stderr.close()  # the process has it
        yield process


async def _reached(config: ServerConfig, stderr: TextIO, stack: AsyncExitStack) -> GuardedServer:
    try:
        return await stack.enter_async_context(address_of(config, stderr))
    except Exception as error:
        _LOG.debug("The address cannot be reached.", exc_info=error)
        raise ConnectFailed("The server cannot be reached. See that it runs, and that --url is its address.") from error


@asynccontextmanager
async def _filters(settings: Settings, home: Home) -> AsyncIterator[tuple[Privacy, Privacy]]:
    """Give the filter of data, and that of definitions, which looks for no type and so hides known values alone."""
    database = database_of(settings.database_url, home)
    nothing = replace(
        settings,
        privacy_mode=PrivacyMode.FAST,
        privacy_types=(_NO_TYPE,),
        privacy_patterns={_NO_TYPE: "(?!)"},
    )
    privacy, known_only = (privacy_of(each, home, database) for each in (settings, nothing))
    privacy.warm()
    purging = asyncio.create_task(privacy.keep_purged())
    try:
        yield privacy, known_only
    finally:
        purging.cancel()
        await settled(_CLOSING_SECONDS)
        for each in (privacy, known_only):
            if not await ended_within(_CLOSING_SECONDS, each.close):
                _LOG.warning("The lines of the privacy audit could not be written in time.")
        database.close()
