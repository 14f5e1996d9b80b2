"""Builds, once a client has its list of tools, what its first call will need."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from mcp.types import CallToolResult, methods
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from .strict_tool import StrictTool

_LOG = logging.getLogger(__name__)
_AFTER_SECONDS = 0.5
_CALL = "tools/call"


@contextmanager
def warming(tools: Sequence[StrictTool]) -> Iterator[None]:
    """Build, a moment after the block has begun, the models of calls, and of the tools that all clients show."""
    task = asyncio.create_task(_warm(tools))
    try:
        yield
    finally:
        task.cancel()


async def _warm(tools: Sequence[StrictTool]) -> None:
    await asyncio.sleep(_AFTER_SECONDS)
    for step in _steps(tools):
        try:
            step()
        except Exception:  # noqa: BLE001 - the first call builds what is missing
            _LOG.debug("Something that calls need cannot be built ahead.", exc_info=True)
        await asyncio.sleep(0)  # requests pass between the steps


def _steps(tools: Sequence[StrictTool]) -> Iterator[Callable[[], object]]:
    yield methods.MONOLITH_REQUESTS[_CALL].model_rebuild
    yield CallToolResult.model_rebuild
    for version in (LATEST_MODERN_VERSION, LATEST_HANDSHAKE_VERSION):
        yield methods.CLIENT_REQUESTS[_CALL, version].model_rebuild
        yield partial(methods.serialize_server_result, _CALL, version, {"content": [], "resultType": "complete"})
    for tool in tools:
        if tool.meta is not None:  # which says that it is always loaded
            yield tool.prepare
