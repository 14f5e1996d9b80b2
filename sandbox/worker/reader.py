"""A reader: a forked child that confines itself, and runs one of a few named functions on bytes that it is sent.

Everything hostile happens here: the bytes are a stranger's, and what parses them may be made to run anything. It has no
key, no file, no network and nothing of another caller, and can send back only bytes, which the host judges. Its zygote
imports the functions, so that a reader is one fork.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NoReturn, cast

from .. import confine
from ..confine import limits
from ..confine.limits import Bounds
from ..job import Json
from ..wire import reader_frames
from ..wire.zygote_config import ReaderCode

Read = Callable[[bytes], bytes]
"""Takes what the host sends and returns what the host gets. It may raise anything."""

_FAILED_CHARS = 200


def functions_of(code: ReaderCode) -> Mapping[str, Read]:
    """Import the module of a reader's code and have it make its functions: `readers(options)` by their names."""
    module = importlib.import_module(code.module)
    return cast("Callable[[Json], Mapping[str, Read]]", module.readers)(code.options)


def serve(functions: Mapping[str, Read], plan: confine.Plan, bounds: Bounds, channel_fd: int) -> NoReturn:
    """Answer one request after the other until the host closes the channel. Never returns."""
    status = 1
    try:
        confine.enter(plan, keep_fds=frozenset({channel_fd}))
        bounds.apply()
        while (asked := reader_frames.receive(channel_fd)) is not None:
            name, data = reader_frames.asked(asked)
            reader_frames.send(channel_fd, _answer(functions[name], data))
        status = 0
    finally:
        os._exit(status)


def _answer(function: Read, data: bytes) -> bytes:
    try:
        return reader_frames.answered(function(data))
    except MemoryError:
        limits.open_reserve()
        return reader_frames.failed("MemoryError", "")
    except Exception as error:  # noqa: BLE001 - the host is told that it failed
        said = ""
        with suppress(Exception):
            said = str(error)[:_FAILED_CHARS]
        return reader_frames.failed(type(error).__name__, said)
