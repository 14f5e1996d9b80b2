"""Real servers for the tests of this folder, in a process of their own or in that of the tests.

What depends on a process or a transport has `http_process`, `stdio` or `caller`. Everything else has `http_server`,
which is a thread of the tests' process, or `in_this_process`: these cost a tenth.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import pytest
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult

from sealab.sandbox.host import pool
from sealab.sandbox.host.readers import Readers
from sealab.server.app import App, running
from sealab.server.base.home import Home
from sealab.server.base.settings import Auth, Settings, read_settings
from sealab.server.base.stats.watchdog import REPORT_VARIABLE
from sealab.server.interfaces.protocol.address import Address, Exposure
from sealab.server.interfaces.protocol.serving import mcp_server
from sealab.server.privacy.detectors import Detectors
from sealab.server.serve import serving

from ..skills_db.conftest import Place, cluster, postgres_place
from ..zygotes import Launch, lent_zygotes

__all__ = ["cluster", "lent_zygotes", "postgres_place"]

T = TypeVar("T")
SEALAB = [sys.executable, "-P", "-m", "sealab.server"]
HELD_MS_MAX = int(os.environ.get("SEALABTEST_HELD_MS", "400"))
"""Four times what a server logs: what it measures is its own doing, but a busy machine makes that longer too."""
HELD = Path(tempfile.mkstemp(prefix="sealab-held-")[1])
"""Where the servers of these tests write what held their event loops for longer."""
atexit.register(HELD.unlink, missing_ok=True)
LEAST = {"SEALAB_REQUIRED_LEVEL": "limits", REPORT_VARIABLE: f"{HELD_MS_MAX}:{HELD}"}
"""What these tests are about holds on every machine, whatever its kernel can confine."""


def environment(**more: str) -> dict[str, str]:
    """The environment of a server: that of the tests without sealab's own variables, and `more`."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith("SEALAB_")}
    return plain | LEAST | more


def stdio(home: Path, *arguments: str, **env: str) -> StdioServerParameters:
    """How a client starts a server with that home."""
    return StdioServerParameters(
        command=SEALAB[0], args=[*SEALAB[1:], "serve", "--home", str(home), *arguments], env=LEAST | env
    )


@dataclass(frozen=True)
class HttpServer:
    """A server over HTTP: its URL, its process, and the lines that it wrote before it said where it listens."""

    url: str
    process: subprocess.Popen[str]
    said: tuple[str, ...] = ()


@contextmanager
def http_process(
    home: Path, *arguments: str, descriptors: int | None = None, launched_by: Sequence[str] = (), **env: str
) -> Iterator[HttpServer]:
    """Run a server over HTTP on a free port, which may have so many descriptors; at its end it waits for no call.

    `launched_by` is a command that runs the server as its arguments.
    """
    limited = [] if descriptors is None else ["prlimit", f"--nofile={descriptors}:{descriptors}"]
    command = [*launched_by, *limited, *SEALAB, "serve", "--http", "127.0.0.1:0", "--home", str(home), *arguments]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, env=environment(**{"SEALAB_DRAIN_SECONDS": "0", **env}), text=True
    ) as process:
        try:
            *said, address = _said_by(process)
            yield HttpServer(address.split()[-1], process, tuple(said))
        finally:
            process.terminate()
            try:
                process.wait(60)
            finally:
                process.kill()


def settings_of(home: Path, env: Mapping[str, str]) -> Settings:
    """Return the settings of a server with that home and these variables."""
    given = {key: value for key, value in {**LEAST, **env}.items() if key.startswith("SEALAB_")}
    return read_settings(file=home / "sealab.toml", file_required=False, environment=given, command_line={})


@dataclass(frozen=True)
class _Listening(Address):
    """An address of this machine that tells the port that was taken."""

    ip: str = "127.0.0.1"
    port: int = 0
    taken: list[int] = field(default_factory=list)

    def listen(self) -> socket.socket:
        listener = super().listen()
        self.taken.append(listener.getsockname()[1])
        return listener


class _Loop(asyncio.SelectorEventLoop):
    """The event loop of a server in a thread, which no signal reaches: `signalled` is done in its place."""

    def __init__(self, serves: Callable[[], object]) -> None:
        super().__init__()
        self.signalled: Callable[[], object] = lambda: None
        self._serves = serves

    def add_signal_handler(self, sig: int, callback: Callable[..., object], *_args: Any) -> None:
        self.signalled = callback
        if sig == signal.SIGTERM:  # the last that a server asks for before it serves
            self._serves()

    def remove_signal_handler(self, _sig: int) -> bool:
        return True


@contextmanager
def http_server(home: Path, *, port: int = 0, **env: str) -> Iterator[str]:
    """Run a server over HTTP in a thread of this process and give its URL; at its end it waits for no call.

    It is what `sealab serve` runs but for its process and its signals. No test learns here what holds its event loop.
    """
    settings, address = settings_of(home, {"SEALAB_DRAIN_SECONDS": "0", **env}), _Listening(port=port)
    exposure = Exposure.parse(authenticates=settings.auth is not Auth.OFF, public_url=settings.public_url)
    serves: Future[None] = Future()
    loop = _Loop(lambda: serves.set_result(None))

    def serve() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(serving(settings, Home(home), address, exposure))
        except BaseException as error:
            ended.append(error)
            if not serves.done():
                serves.set_exception(error)

    ended: list[BaseException] = []
    thread = threading.Thread(target=serve, name="sealab serves", daemon=True)
    thread.start()
    try:
        serves.result()
        yield f"http://127.0.0.1:{address.taken[0]}/mcp"
    finally:
        if thread.is_alive():
            loop.call_soon_threadsafe(loop.signalled)
        thread.join()
    assert not ended, ended


def _said_by(process: subprocess.Popen[str]) -> list[str]:
    """Return what a server says up to the line with its address."""
    assert process.stderr is not None
    said: list[str] = []
    for line in process.stderr:
        said.append(line)
        if "http://" in line:
            return said
    raise AssertionError(f"the server did not say where it listens, but: {''.join(said)}")


def in_full(report: dict[str, Any]) -> dict[str, Any]:
    """Give the report of a run with what is left out of it where it is at its default."""
    error = report.get("error")
    error = error and {"line": None, "hint": None, "traceback": None, **error}
    return {"output": "", "isolation": "restricted", **report, "error": error}


@dataclass(frozen=True)
class Caller:
    """A connected client: `run` calls execute_code and returns the report in full, `call` any tool."""

    client: Client
    home: Path

    async def call(self, tool: str, **arguments: Any) -> CallToolResult:
        answer = await self.client.call_tool(tool, arguments)
        if tool in {"execute_code", "run_skill"} and answer.structured_content is not None:
            answer.structured_content = in_full(answer.structured_content)
        return answer

    async def told(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the structured content of an answer, which has one."""
        answer = await self.call(tool, **arguments)
        assert answer.structured_content is not None, answer.content
        return answer.structured_content

    async def refusal(self, tool: str, **arguments: Any) -> str:
        """Return what a tool says that refuses."""
        answer = await self.call(tool, **arguments)
        assert answer.is_error, answer
        return str(answer.content[0].text)  # type: ignore[union-attr]  # a text

    async def run(self, code: str, **arguments: Any) -> dict[str, Any]:
        return await self.told("execute_code", code=code, **arguments)


@asynccontextmanager
async def in_a_task(manager: AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
    """Hold a context open in a task of its own.

    Fixtures share one task, in which cancel scopes must end in the reverse order of their beginnings; those of sessions
    and modules do not.
    """
    made: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    ends = asyncio.Event()

    async def hold() -> None:
        try:
            async with manager as value:
                made.set_result(value)
                await ends.wait()
        except BaseException as error:
            if made.done():
                raise
            made.set_exception(error)

    holding = asyncio.create_task(hold())
    try:
        yield await made
    finally:
        ends.set()
        await holding


@asynccontextmanager
async def connected(app: App, **options: Any) -> AsyncIterator[Caller]:
    """Give a client of an app in this process, which has an MCP server of its own."""
    async with Client(mcp_server(app), read_timeout_seconds=200, **options) as client:
        yield Caller(client, app.home.root)


@asynccontextmanager
async def in_this_process(
    home: Path, env: Mapping[str, str] = MappingProxyType({}), **options: Any
) -> AsyncIterator[Caller]:
    """Give a client of a server in this process: real but for the transport, for what does not depend on that."""

    @asynccontextmanager
    async def made() -> AsyncIterator[Caller]:
        async with running(settings_of(home, env), Home(home), serves=True) as app, connected(app, **options) as caller:
            yield caller

    async with in_a_task(made()) as caller:
        yield caller


def in_process_server(
    env: Mapping[str, str] = MappingProxyType({}), prepare: Callable[[Path], object] = lambda _home: None
) -> Any:
    """Make a fixture of a module: a client of a server in this process, whose home is prepared before it starts."""

    @pytest.fixture(scope="module")
    async def caller(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Caller]:
        home = tmp_path_factory.mktemp("home")
        prepare(home)
        async with in_this_process(home, env) as caller:
            yield caller

    return caller


def sharing(place: Place) -> dict[str, str]:
    """The settings of a server that shares a database, and the key of what lies there, with others."""
    return {"SEALAB_DATABASE_URL": place.server_url, "SEALAB_WORKERS_SPARE": "1", "SEALAB_VAULT_KEY": "ab" * 32}


@asynccontextmanager
async def two_servers(
    place: Place, home: Path, upstreams: Mapping[str, Any], **env: str
) -> AsyncIterator[list[Caller]]:
    """Give clients of two servers in this process: each has a home of its own, and both the same database."""
    async with AsyncExitStack() as stack:
        callers = []
        for name in ("first", "second"):
            (home / name).mkdir()
            (home / name / "mcp.json").write_text(json.dumps({"mcpServers": upstreams}))
            callers.append(await stack.enter_async_context(in_this_process(home / name, sharing(place) | env)))
        yield callers


def server_over_http(**env: str) -> Any:
    """Make a fixture of a module: the URL of a server over HTTP in this process."""

    @pytest.fixture(scope="module")
    def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
        with http_server(tmp_path_factory.mktemp("home"), **env) as url:
            yield url

    return url


@pytest.fixture(scope="session")
def served(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[str], tuple[str | StdioServerParameters, Path]]]:
    """Give what a client connects to, by transport; the one HTTP server lives as long as the tests."""
    home = tmp_path_factory.mktemp("http-home")
    with http_process(home) as server:

        def target(transport: str) -> tuple[str | StdioServerParameters, Path]:
            if transport == "http":
                return server.url, home
            own = tmp_path_factory.mktemp("stdio-home")
            return stdio(own), own

        yield target


@pytest.fixture(scope="session", params=["stdio-modern", "stdio-legacy", "http-modern", "http-legacy"])
async def caller(request: pytest.FixtureRequest, served: Callable[..., Any]) -> AsyncIterator[Caller]:
    """A client of each kind, connected once, for what every transport must do in both eras."""
    transport, _, era = request.param.partition("-")
    target, home = served(transport)
    mode = "legacy" if era == "legacy" else "auto"
    async with in_a_task(Client(target, mode=mode, read_timeout_seconds=200)) as client:
        yield Caller(client, home)


@pytest.fixture(scope="session")
async def in_process_caller(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Caller]:
    """One client of a server in this process, for what depends neither on a transport nor on settings."""
    async with in_this_process(tmp_path_factory.mktemp("home")) as caller:
        yield caller


@pytest.fixture(scope="session", autouse=True)
def shared_readers() -> Iterator[None]:
    """Share readers among servers of this process with the same options: their zygote costs as much as a server."""
    made: dict[str, Readers] = {}
    making = threading.Lock()
    running_alone = Detectors._running

    def running(detectors: Detectors) -> Readers:
        key = json.dumps([detectors._options(), str(detectors._settings.required_level)], sort_keys=True)
        with making:
            if key not in made:
                made[key] = running_alone(detectors)
            return made[key]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Detectors, "_running", running)
        patched.setattr(Detectors, "close", lambda _detectors: None)
        yield
    for readers in made.values():
        readers.close()


@pytest.fixture(scope="session", autouse=True)
def shared_zygotes(lent_zygotes: Launch) -> Iterator[None]:
    """Reuse the zygotes of ended servers in this process, which take two thirds of a server to start."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pool, "ZygoteLauncher", lent_zygotes)
        yield


@pytest.fixture(autouse=True)
def no_loop_is_held() -> Iterator[None]:
    """Fail a test while which a server held its event loop by its own doing for longer than `HELD_MS_MAX`."""
    before = HELD.stat().st_size
    yield
    held = HELD.read_bytes()[before:].decode()
    assert not held, held
