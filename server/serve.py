"""`sealab serve` and `sealab run`: run code for MCP clients, on the standard streams or over HTTP, or from a file."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .base.errors import Exit, UsageError
from .base.home import Home
from .base.host_work import ended_within
from .base.settings import Auth, Settings, Surface
from .base.startup.process_setup import raise_descriptor_limit
from .base.startup.watched_settings import WatchedSettings
from .base.stats.watchdog import WatchedLoop, watching
from .base.telemetry import tracing
from .interfaces.commands.command import Command
from .interfaces.commands.opened import running_with
from .interfaces.commands.terminal import Here, IsolationChoice, Output, print_error, read_source, report_output
from .interfaces.protocol.address import Address, Exposure

if TYPE_CHECKING:
    from .app import App

_PIPE_CHARS_MAX = 1 << 40
"""Characters of a run's output for another program: more than a run can give, so that nothing is cut."""
TELEMETRY_SECONDS = 2.0
"""How long the end of the process waits for a collector."""
_WARM_AFTER_SECONDS = 0.5
"""What loads for seconds begins when a client has had its list of tools."""


def _serve(
    here: Here,
    *,
    http: str | None = None,
    tls_cert: str | None = None,
    tls_key: str | None = None,
    behind_proxy: str | None = None,
    surface: Surface | None = None,  # noqa: ARG001 - it is read with the settings
) -> int:
    """Serve MCP on stdin and stdout, or over HTTP.

    http HOST:PORT: serve streamable HTTP at /mcp on this address
    tls_cert FILE: the certificate of an HTTPS server, with its chain, as PEM
    tls_key FILE: its key, as PEM
    behind_proxy CIDR: the addresses or networks of the proxy, parted by commas, whose forwarded headers count
    surface: show all tools, execute_code alone, or run_python alone
    """
    settings = here.settings
    raise_descriptor_limit()
    exposure = Exposure.parse(
        authenticates=settings.auth is not Auth.OFF,
        certificate=tls_cert,
        key=tls_key,
        proxies=behind_proxy,
        public_url=settings.public_url,
    )
    address = None if http is None else Address.parse(http, exposure)
    if address is None and (exposure.has_tls or exposure.proxies):
        raise UsageError("--tls-cert, --tls-key and --behind-proxy are for HTTP. Give --http HOST:PORT too.")
    if address is None and sys.stdin.isatty():
        print_error(
            "sealab waits for an MCP client on stdin and stdout. `sealab demo` shows what it does; Ctrl-C ends it."
        )
    with asyncio.Runner(loop_factory=WatchedLoop) as runner:
        file = here.settings_file(here.home)
        watched = WatchedSettings(file, partial(here.settings_now, file), settings)
        runner.run(serving(settings, here.home, address, exposure, watched))
    return Exit.OK


serve = Command(_serve, has_json=False)


async def _run(
    here: Here,
    file: str,
    *words: str,
    timeout: float | None = None,
    memory: int | None = None,
    isolation: IsolationChoice = "auto",
) -> Output:
    """Run one file as execute_code would.

    file: the Python file to run, or - for stdin
    timeout S: seconds the run may take
    memory MB: megabytes the run may use
    isolation: the isolation of the code, one of those that the operator allows
    """
    from .use_cases.runs.execute import execute
    from .use_cases.runs.request import CodeRequest

    request = CodeRequest(
        code=read_source(file),
        timeout_seconds=timeout,
        memory_mb=memory,
        isolation=isolation,
        arguments=(Path(file).name, *words) if words else (),
    )
    settings = here.settings if sys.stdout.isatty() else replace(here.settings, output_max_chars=_PIPE_CHARS_MAX)
    async with running_with(settings, here.home) as app:
        return report_output((await execute(app.executor, request)).report)


run = Command(_run, usage="sealab run [options] FILE [-- ARGUMENT ...]")


async def serving(
    settings: Settings, home: Home, address: Address | None, exposure: Exposure, watched: WatchedSettings | None = None
) -> None:
    """Serve until the client ends, or over HTTP until a signal comes; what changes in `watched` is taken up."""
    tracing.start(os.environ)
    try:
        await _served(settings, home, address, exposure, watched)
    finally:
        if (stopped := tracing.stop()) is not None:
            await ended_within(TELEMETRY_SECONDS, stopped.close)


async def _served(
    settings: Settings, home: Home, address: Address | None, exposure: Exposure, watched: WatchedSettings | None
) -> None:
    from .app import running

    async with running(settings, home, serves=True, listens=address is not None) as app:
        # The zygote starts while this process imports the SDK, which takes most of the start.
        await asyncio.sleep(0)
        starting = asyncio.create_task(app.pools.ready())
        await asyncio.sleep(0)
        from .base.startup.light_import import imported

        serves = imported(
            _import_stdio if address is None else partial(_import_http, address, exposure), http=address is not None
        )
        await starting
        if home.holds_something_to_find or settings.database_url is not None or settings.discover:
            app.registry.warm()
        if app.privacy.filters:
            asyncio.get_running_loop().call_later(_WARM_AFTER_SECONDS, app.privacy.warm)
        await app.audit.server_started("stdio" if address is None else "http")
        beside = [asyncio.create_task(_warm_full_python(app))]
        if watched is not None:
            beside.append(asyncio.create_task(watched.watch(app.executor.shares.limits.take)))
        with watching(app.loop_stats):
            await serves(app)
        for task in beside:
            task.cancel()
        app.audit.server_stopped()


async def _warm_full_python(app: App) -> None:
    """Prepare workers of full Python before code comes, where it comes without being asked for."""
    if app.executor.offer.full_python.is_default:
        from .use_cases.runs.placement.routing import can_start

        await asyncio.sleep(_WARM_AFTER_SECONDS)
        await can_start(app.executor)


def _import_stdio() -> Callable[[App], Awaitable[None]]:
    from .interfaces.protocol.serving import serve_stdio

    return serve_stdio


def _import_http(address: Address, exposure: Exposure) -> Callable[[App], Awaitable[None]]:
    from .interfaces.protocol.web.http_serving import serve_http

    return partial(serve_http, address=address, exposure=exposure)
