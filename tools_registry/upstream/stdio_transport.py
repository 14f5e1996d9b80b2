"""The stdio transport: one process, a line for each message.

The SDK's own copies what it holds of a line with every piece that arrives, so a line costs the square of its length,
and it takes lines of any length; this one is linear and bounded.
Source: https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio and …/basic/lifecycle#shutdown
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, TextIO

import anyio
from anyio.abc import AsyncResource, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage

from ..configuration import ServerConfig, network_variables
from ..json_lines import Lines, ReadJson
from .message_faults import MESSAGE_BYTES_MAX
from .reading import Incoming, messages

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

_EXIT_SECONDS = 2.0
"""How long a process has to end by itself once its input has ended, and again once it got a signal to end."""
_LOOK_SECONDS = 0.01
_FLUSH_SECONDS = 0.5
_GONE = (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)
_log = logging.getLogger(__name__)


@asynccontextmanager
async def stdio_streams(
    config: ServerConfig, *, stderr: TextIO, read_large: ReadJson
) -> AsyncIterator[TransportStreams]:
    """Start the process and give the two ends a session works with. Raises `OSError` where it cannot be started."""
    process = await start_process(config, stderr)
    incoming, read = anyio.create_memory_object_stream[Incoming](0)
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    sent = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_receive, process, incoming, read_large)
        tasks.start_soon(_send_all, process, outgoing, incoming, sent)
        try:
            yield read, write
        finally:
            with anyio.CancelScope(shield=True):
                read.close()  # what the process still writes is read and dropped, so that it does not wait for a reader
                write.close()
                try:
                    with anyio.move_on_after(_FLUSH_SECONDS):
                        await sent.wait()
                finally:
                    await end_process(process)
            tasks.cancel_scope.cancel()


async def start_process(config: ServerConfig, stderr: TextIO) -> Process:
    """Start a server's process. Raises `OSError` where it cannot be started.

    It gets the SDK's short list of harmless environment variables, those of proxies and certificates, and those
    configured, nothing else. It leads a process group of its own, which ends with it.
    """
    return await anyio.open_process(
        [config.command, *config.args],
        env=get_default_environment() | network_variables(os.environ) | dict(config.env),
        stderr=stderr,
        cwd=config.cwd,
        start_new_session=True,
    )


async def _receive(process: Process, incoming: MemoryObjectSendStream[Incoming], read_large: ReadJson) -> None:
    assert process.stdout is not None
    lines = Lines(MESSAGE_BYTES_MAX)
    with suppress(anyio.EndOfStream, *_GONE):
        async with incoming:
            with suppress(anyio.BrokenResourceError):
                while True:
                    for line in lines.feed(await process.stdout.receive()):
                        for item in await messages(line, read_large):
                            await incoming.send(item)
        with anyio.CancelScope(shield=True):  # until the pipe is closed
            while True:
                await process.stdout.receive()


async def _send_all(
    process: Process,
    outgoing: MemoryObjectReceiveStream[SessionMessage],
    incoming: MemoryObjectSendStream[Incoming],
    sent: anyio.Event,
) -> None:
    assert process.stdin is not None
    try:
        async with outgoing:
            async for each in outgoing:
                line = each.message.model_dump_json(by_alias=True, exclude_unset=True) + "\n"
                await process.stdin.send(line.encode("utf-8", "replace"))
    except _GONE:
        await incoming.aclose()  # the process may still run, but no request reaches it: the session ends
    finally:
        sent.set()


async def end_process(process: Process) -> None:
    """End the process, first by ending its input, then by signals to its group; at once where this is cancelled.

    A shielded scope holds off what anyio cancels, and not what asyncio does, such as `asyncio.run` at its end.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        await _close(process.stdin)
        if not await _ended(process):
            await terminate_posix_process_tree(process, _EXIT_SECONDS)
            if not await _ended(process):
                _log.warning("The process %d of an upstream server cannot be ended.", process.pid)
        await _close(process.stdout)
    finally:
        _let_go(process)
    await anyio.lowlevel.checkpoint()


def _let_go(process: Process) -> None:
    """Kill what is left of the group, and close the pipes: a process left behind may hold their other ends."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    transport: asyncio.SubprocessTransport = process._process._transport  # type: ignore[attr-defined]
    with suppress(PermissionError):  # up to Python 3.12 it signals what has ended
        transport.close()


async def _ended(process: Process) -> bool:
    """Wait for the end of the process itself; `wait` would also wait for whatever else holds its pipes."""
    with anyio.move_on_after(_EXIT_SECONDS):
        while process.returncode is None:  # noqa: ASYNC110 - it has no event
            await anyio.sleep(_LOOK_SECONDS)
    return process.returncode is not None


async def _close(stream: AsyncResource) -> None:
    with suppress(*_GONE):
        await stream.aclose()
