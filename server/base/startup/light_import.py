"""Imports the SDK for a server, without what a server does not need until it answers, or ever.

With it a stdio server takes 0.79 of the CPU time, and 0.83 of the memory, until its first `tools/list` that it takes
without it (four starts each in turns, with the request of `make gate`).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import TypeVar

from .deferred import as_if_missing, put_off, run_now
from .sdk_models import deferring_models

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")

_DEFERRED = ("mcp", "httpx2")
"""The package `mcp` itself imports its whole client, and `httpx2` is there to fetch what sealab never serves."""
_FOR_HTTP = ("uvicorn",)
"""What the SDK gets through `sse_starlette`, which does without."""


def imported(load: Callable[[], _T], *, http: bool) -> _T:
    """Call `load`, which imports, and return what it does. `http` says that the server will speak HTTP.

    All this only saves time: where a later SDK cannot be imported so, it is imported as it is by everybody else.
    """
    try:
        with deferring_models(), as_if_missing(*(() if http else _FOR_HTTP)):
            for name in _DEFERRED:
                put_off(name)
            return load()
    except Exception:  # noqa: BLE001 - whatever it is, the plain import shows it too, if it was not of our making
        _LOG.debug("The SDK cannot be imported by the short way.", exc_info=True)
    for name in _DEFERRED:
        if (module := sys.modules.get(name)) is not None:  # None where it is not installed
            run_now(module)
    return load()
