"""Answers what running code asks of the host.

This is a security boundary: the name and the arguments of every call come from a hostile child. Which execution asks
is known from the channel the call came by, never from the call itself; each execution has its own `Calls`, with its
own budget, and ends with it. An answer is JSON; a failure is a `HostCallError`, which the code can catch.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from types import MappingProxyType

import anyio.to_thread

from ..sandbox.errors import HostCallError
from ..sandbox.run import Json
from ..workspace.errors import WorkspaceError
from ..workspace.store import Workspace

Arguments = Mapping[str, Json]

KEPT_BYTES_MAX = 64 * 1024 * 1024
"""What the server holds of one run's files while their parts arrive: as much as a worker's scratch directory."""


@dataclass(slots=True)
class Calls:
    """The host calls of one execution: what they may use, and what they did.

    `answer` is handed to the pool as the one way up from the child.
    """

    workspace: Workspace
    budget: int
    made: int = 0
    written: dict[str, int] = field(default_factory=dict)
    parts: dict[str, bytearray] = field(default_factory=dict)

    async def answer(self, name: str, arguments: Arguments) -> Json:
        """Answer one call, or raise `HostCallError` with what was wrong and what to do."""
        self.made += 1
        if self.made > self.budget:
            raise HostCallError(
                f"This run made more than {self.budget} calls to the host, which is its budget. "
                "Do more of the work inside the code, or split it into several runs.",
                type="RuntimeError",
            )
        handler = HANDLERS.get(name)
        if handler is None:
            raise HostCallError(
                f"There is no host function {name!r} in this version. Use {', '.join(sorted(HANDLERS))}.",
                type="NotImplementedError",
            )
        handler.check(name, arguments)
        try:
            return await handler.answer(self, arguments)
        except WorkspaceError as error:
            raise HostCallError(str(error), type=_EXCEPTION_OF_CODE.get(error.code, "OSError")) from error


@dataclass(frozen=True, slots=True)
class Handler:
    """What answers one host function, and which arguments it takes; those without a default are in `required`."""

    answer: Callable[[Calls, Arguments], Awaitable[Json]]
    takes: Mapping[str, tuple[type, ...]]
    required: frozenset[str]

    def check(self, name: str, arguments: Arguments) -> None:
        """Raise `HostCallError` where the arguments are not those the function takes."""
        for missing in sorted(self.required - arguments.keys()):
            raise HostCallError(f"{name}() needs {missing}. Give it.", type="TypeError")
        for given, value in arguments.items():
            if given not in self.takes:
                raise HostCallError(f"{name}() takes no {given!r}. It takes {', '.join(self.takes)}.", type="TypeError")
            if not isinstance(value, self.takes[given]) or isinstance(value, bool):
                wanted = " or ".join(_NAME_OF_TYPE[kind] for kind in self.takes[given])
                raise HostCallError(
                    f"{name}() got {type(value).__name__} for {given}. Give {wanted}.",
                    type="TypeError",
                )


async def _read_file(calls: Calls, arguments: Arguments) -> Json:
    read = partial(calls.workspace.read, **arguments)  # type: ignore[arg-type]  # Handler.check has judged them
    return asdict(await anyio.to_thread.run_sync(read))


async def _write_file(calls: Calls, arguments: Arguments) -> Json:
    write = partial(calls.workspace.write, **arguments)  # type: ignore[arg-type]  # Handler.check has judged them
    written = await anyio.to_thread.run_sync(write)
    calls.written[written.filename] = written.size
    return asdict(written)


async def _list_files(calls: Calls, arguments: Arguments) -> Json:
    list_files = partial(calls.workspace.list, **arguments)  # type: ignore[arg-type]  # Handler.check has judged them
    return asdict(await anyio.to_thread.run_sync(list_files))


async def _delete_file(calls: Calls, arguments: Arguments) -> Json:
    delete = partial(calls.workspace.delete, **arguments)  # type: ignore[arg-type]  # Handler.check has judged them
    deleted = await anyio.to_thread.run_sync(delete)
    calls.written.pop(deleted.filename, None)
    return asdict(deleted)


async def _keep(calls: Calls, arguments: Arguments) -> Json:
    """Take one part of a file; with the last one the file is written whole."""
    filename, content, last = (arguments[key] for key in ("filename", "content", "last"))
    assert isinstance(filename, str)
    assert isinstance(content, str)
    try:
        more = base64.b64decode(content, validate=True)
    except ValueError:
        raise HostCallError(
            "The content is not base64. Use keep(path), which sends it so.", type="ValueError"
        ) from None
    so_far = calls.parts.setdefault(filename, bytearray())
    if sum(map(len, calls.parts.values())) + len(more) > KEPT_BYTES_MAX:
        calls.parts.clear()
        raise HostCallError(
            f"The file is larger than {KEPT_BYTES_MAX} bytes, the most that keep() brings home. Keep it in pieces.",
            type="ValueError",
        )
    so_far += more
    if not last:
        return None
    data = bytes(calls.parts.pop(filename))
    written = await anyio.to_thread.run_sync(partial(calls.workspace.write, filename, data))
    calls.written[written.filename] = written.size
    return asdict(written)


_TEXT = (str,)
_WHOLE = (int,)
_WHOLE_OR_NONE = (int, type(None))
_NAME_OF_TYPE = {str: "a str", int: "an int", type(None): "None"}

HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        "read_file": Handler(
            _read_file,
            {"filename": _TEXT, "offset": _WHOLE, "limit": _WHOLE_OR_NONE, "encoding": _TEXT},
            frozenset({"filename"}),
        ),
        "write_file": Handler(
            _write_file,
            {"filename": _TEXT, "content": _TEXT, "encoding": _TEXT},
            frozenset({"filename", "content"}),
        ),
        "keep": Handler(
            _keep, {"filename": _TEXT, "content": _TEXT, "last": _WHOLE}, frozenset({"filename", "content", "last"})
        ),
        "list_files": Handler(_list_files, {"subpath": _TEXT}, frozenset()),
        "delete_file": Handler(_delete_file, {"filename": _TEXT}, frozenset({"filename"})),
    }
)

_EXCEPTION_OF_CODE: Mapping[str, str] = MappingProxyType(
    {
        "name": "ValueError",
        "reserved": "PermissionError",
        "not_found": "FileNotFoundError",
        "not_a_file": "PermissionError",
        "content": "ValueError",
    }
)
"""The exception class that the code sees for each error code of the workspace; else `OSError`."""
