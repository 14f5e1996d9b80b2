"""A reader: a forked child that confines itself, and runs one of a few named functions on bytes that it is sent.

Everything hostile happens here: the bytes are a stranger's, and what parses them may be made to run anything. It has no
key, no file, no network and nothing of another caller, and can send back only bytes, which the host judges. Its zygote
imports the functions, so that a reader is one fork.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import BinaryIO, NoReturn, cast

from .. import confine
from ..confine import limits
from ..confine.limits import Bounds
from ..job import Json
from ..wire import reader_frames
from ..wire.zygote_config import ReaderCode

Read = Callable[[bytes], bytes]
"""Takes what the host sends and returns what the host gets. It may raise anything."""

ReadFile = Callable[[BinaryIO, bytes], Iterator[bytes]]
"""Gives what the host gets of a file, piece by piece."""

_FAILED_CHARS = 200


def functions_of(code: ReaderCode) -> Mapping[str, Read | ReadFile]:
    """Import the module of a reader's code and have it make its functions: `readers(options)` by their names."""
    from ..full_python.thread_pools import VARIABLES  # here, since the zygote of restricted workers imports this module

    os.environ.update(dict.fromkeys(VARIABLES, "1"))  # who has more threads can neither enter namespaces nor fork
    module = importlib.import_module(code.module)
    functions = cast("Callable[[Json], Mapping[str, Read | ReadFile]]", module.readers)(code.options)
    os.environ.clear()
    return functions


def serve(
    functions: Mapping[str, Read | ReadFile], plan: confine.Plan, bounds: Bounds, channel_fd: int, file_fd: int
) -> NoReturn:
    """Answer one request after the other until the host closes the channel. Never returns.

    `file_fd` is what functions read that take a file.
    """
    status = 1
    try:
        confine.enter(plan, keep_fds=frozenset({channel_fd, file_fd}))
        bounds.apply()
        while (asked := reader_frames.receive(channel_fd)) is not None:
            name, of_file, data = reader_frames.read_request(asked)
            for mark, body in _answers(functions[name], channel_fd, file_fd if of_file else None, data):
                reader_frames.send(channel_fd, mark, body)
        status = 0
    finally:
        os._exit(status)


def _answers(
    function: Read | ReadFile, channel_fd: int, file_fd: int | None, data: bytes
) -> Iterator[tuple[bytes, bytes]]:
    """Give what is to be sent; after a piece this waits until the host, which gives its caller turns, says `GO_ON`."""
    try:
        if file_fd is None:
            yield reader_frames.ANSWER, cast("Read", function)(data)
            return
        with open(file_fd, "rb", closefd=False) as file:
            file.seek(0)
            for piece in cast("ReadFile", function)(file, data):
                yield reader_frames.PIECE, piece
                if reader_frames.receive(channel_fd) is None:
                    return
        yield reader_frames.ANSWER, b""
    except MemoryError:
        limits.open_reserve()
        yield reader_frames.ERROR, b"MemoryError\n"
    except Exception as error:  # noqa: BLE001 - the failure is reported to the host
        said = ""
        with suppress(Exception):
            said = str(error)[:_FAILED_CHARS]
        yield reader_frames.ERROR, f"{type(error).__name__}\n{said}".encode("utf-8", "replace")
