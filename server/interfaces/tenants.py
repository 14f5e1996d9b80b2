"""The tenants of a server: each is opened at its first use, kept while it is used, and closed when it is idle.

A security boundary: a tenant is a whole `App` of its own, with its own files, database, keys, sessions and connections,
so that nothing of one can be reached from another. What an app is opened for follows from the identity of a request.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from ...skills_db import DATABASE_FILE
from ...skills_db.tenants.tenant_store import Tenant, TenantStatus, TenantStore
from ..app import App, running_tenant
from ..base.database import database_of
from ..base.errors import KNOWN_ERRORS, TenantRefused, TenantsBusy
from ..base.home import Home
from ..base.host_work import Kind, in_thread
from ..base.identity import DEFAULT_TENANT
from ..base.settings import Settings
from ..governance.access.names import tenant_name
from ..use_cases.tenants.locks import TenantLock


def runs_wait(settings: Settings, home: Home, now: float) -> bool:
    """Return whether a background run of a tenant may begin or go on. Blocks. Raises `SkillsDbError`."""
    from ...skills_db.engine import place_of
    from ...skills_db.journal.waiting_runs import any_may_begin

    _, file = place_of(settings.database_url, home.root, tenant=home.tenant)
    if file is not None:
        return any_may_begin(home.root / DATABASE_FILE, now)
    from ...skills_db.journal.background_store import may_begin

    with closing(database_of(settings.database_url, home)) as database:
        return may_begin(database(), now)


IDLE_SECONDS = 900.0
"""How long a tenant stays open that nothing uses."""
LOOK_SECONDS = 1.0
"""How often it is looked which tenants may be served no more."""
SWEEP_SECONDS = 60.0
"""How often tenants that are not open are looked through for background runs that wait."""
CLOSING_SECONDS = 5.0
"""How long the requests of a tenant have to end that is to be served no more."""
_LOG = logging.getLogger(__name__)


class TenantServed(Protocol):
    """What is made of the app of a tenant, and used by requests."""

    @property
    def holds_connections(self) -> bool:
        """Whether clients hold something of it that they would lose."""
        ...


S = TypeVar("S", bound=TenantServed)
Serve = Callable[[App], AbstractAsyncContextManager[S]]


@dataclass(eq=False)
class _OpenTenant(Generic[S]):
    """One tenant that is open, or about to be."""

    tenant: str
    ready: asyncio.Future[tuple[App, S]]
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    users: set[asyncio.Task[object]] = field(default_factory=set)
    used: int = 0
    used_at: float = 0.0


class Tenants(Generic[S]):
    """Opens tenants beside the operator's app, which is that of the tenant `default`.

        async with Tenants(app, serve) as tenants, tenants.using("acme") as served: ...

    `serve` makes what requests use of an app, and ends it. At most `open_max` are open at once besides the operator's.
    """

    def __init__(self, operators: App, serve: Serve[S], *, open_max: int) -> None:
        self._operators = operators
        self._serve = serve
        self._open_max = open_max
        self._open: dict[str, _OpenTenant[S]] = {}
        self._closing: set[_OpenTenant[S]] = set()
        self._stack = AsyncExitStack()
        self._own: S | None = None
        self._made: TenantStore | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._own = await self._stack.enter_async_context(self._serve(self._operators))
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _where: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        every = [*self._open.values(), *self._closing]
        for each in every:
            self._begin_closing(each)
        await asyncio.gather(*(each.task for each in every if each.task is not None), return_exceptions=True)
        await self._stack.aclose()

    def watch(self) -> None:
        """Look, from now on, which tenants may be served no more, are idle, or have runs that wait to begin."""
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._keep_looking()), asyncio.create_task(self._keep_sweeping())]

    @property
    def own(self) -> S:
        """What requests use of the operator's app."""
        assert self._own is not None
        return self._own

    @property
    def open_ones(self) -> tuple[str, ...]:
        """The tenants that are open now, besides `default`."""
        return tuple(self._open)

    @property
    def open_apps(self) -> tuple[App, ...]:
        """The apps of the tenants that are open now, besides the operator's."""
        return tuple(app for app, _served in self._ready())

    @property
    def open_served(self) -> tuple[S, ...]:
        """What requests use of these."""
        return tuple(served for _app, served in self._ready())

    def _ready(self) -> Iterator[tuple[App, S]]:
        for entry in self._open.values():
            if entry.ready.done() and not entry.ready.cancelled() and entry.ready.exception() is None:
                yield entry.ready.result()

    async def app_of(self, tenant: str) -> App:
        """Return the app of a tenant, opened if it is not open. It may be closed once nothing uses it."""
        if tenant == DEFAULT_TENANT:
            return self._operators
        app, _ = await asyncio.shield(self._entry(tenant_name(tenant)).ready)
        return app

    @asynccontextmanager
    async def using(self, tenant: str) -> AsyncIterator[S]:
        """Give what requests use of a tenant, which is open for so long; it is opened if it is not.

        Raises `RequestRefused` for what cannot be a tenant, `TenantRefused` for one that is not served, `TenantsBusy`
        where too many are at work, and what opening it raises.
        """
        if tenant == DEFAULT_TENANT:
            yield self.own
            return
        entry = self._entry(tenant_name(tenant))
        task = asyncio.current_task()
        assert task is not None
        entry.used += 1
        try:
            _, served = await asyncio.shield(entry.ready)
            entry.users.add(task)
            yield served
        finally:
            entry.used -= 1
            entry.users.discard(task)
            entry.used_at = asyncio.get_running_loop().time()

    async def all(self) -> tuple[Tenant, ...]:
        """Return all tenants that there are. Raises `SkillsDbError`."""
        return await in_thread(Kind.DATABASE, lambda: self._store().all(), charged=False)

    def _entry(self, tenant: str) -> _OpenTenant[S]:
        entry = self._open.get(tenant)
        if entry is None:
            self.watch()
            self._make_room()
            loop = asyncio.get_running_loop()
            entry = self._open[tenant] = _OpenTenant(tenant, loop.create_future(), used_at=loop.time())
            entry.task = asyncio.create_task(self._live(entry))
        return entry

    def _make_room(self) -> None:
        """Close the idlest tenants until one more may be open. Raises `TenantsBusy` where all are at work.

        Those that clients hold connections to go after those with none: their clients have to begin anew.
        """
        while len(self._open) >= self._open_max:
            idle = [each for each in self._open.values() if not _is_at_work(each)]
            if not idle:
                raise TenantsBusy(
                    f"{self._open_max} tenants are at work here, as many as may be at once. Try again in a moment."
                )
            self._begin_closing(min(idle, key=lambda each: (_holds_connections(each), each.used_at)))

    def _begin_closing(self, entry: _OpenTenant[S]) -> None:
        """End a tenant; from now on it is opened anew where it is used."""
        if self._open.get(entry.tenant) is entry:
            del self._open[entry.tenant]
        self._closing.add(entry)
        entry.closing.set()

    async def _live(self, entry: _OpenTenant[S]) -> None:
        """Open a tenant, keep it until it is to be closed, and close it."""
        try:
            await self._ended(entry.tenant)
            await self._judge(entry.tenant)
            home = self._operators.home.of_tenant(entry.tenant)
            lock = await asyncio.to_thread(TenantLock(home).serve)
            try:
                await self._judge(entry.tenant)  # it may have been removed until the lock was taken
                async with running_tenant(self._operators, home) as app, self._serve(app) as served:
                    entry.ready.set_result((app, served))
                    await entry.closing.wait()
                    await _end_requests(entry)
            finally:
                lock.release()
        except BaseException as error:  # noqa: BLE001 - whoever waits for it gets it, whatever it is
            if not entry.ready.done():
                entry.ready.set_exception(error if isinstance(error, Exception) else TenantsBusy("It was ended."))
                entry.ready.exception()  # whoever waits for it gets it; perhaps nobody does
                if not isinstance(error, KNOWN_ERRORS):
                    _LOG.exception("The tenant %s could not be opened.", entry.tenant)
                return
            _LOG.exception("The tenant %s did not end as it should.", entry.tenant)
        finally:
            if self._open.get(entry.tenant) is entry:
                del self._open[entry.tenant]
            self._closing.discard(entry)

    async def _ended(self, tenant: str) -> None:
        """Wait until the tenant, where it was open before, has been closed: it is open once at a time."""
        while earlier := [each.task for each in self._closing if each.tenant == tenant and each.task is not None]:
            await asyncio.wait(earlier)

    async def _judge(self, tenant: str) -> None:
        found = await in_thread(Kind.DATABASE, lambda: self._store().ensure(tenant), charged=False)
        if found.status is not TenantStatus.ACTIVE:
            raise TenantRefused(f"The tenant is {found.status}, so nothing of it is served. Ask the operator.")

    def _unserved(self, open_ones: Collection[str]) -> frozenset[str]:
        """Return which of these are to be served no more, without opening the database for none. Blocks."""
        return self._store().unserved(open_ones) if open_ones else frozenset()

    def _store(self) -> TenantStore:
        if self._made is None:
            self._made = TenantStore(self._operators.database())
        return self._made

    async def _keep_looking(self) -> None:
        """Close tenants that may be served no more, and those that are idle; until it is cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            open_ones = tuple(self._open)
            try:
                unserved = await in_thread(Kind.DATABASE, partial(self._unserved, open_ones), charged=False)
            except Exception as error:  # noqa: BLE001 - it is looked again in a moment
                _LOG.warning("It cannot be looked which tenants may be served: %s", error)
                continue
            now = asyncio.get_running_loop().time()
            for entry in list(self._open.values()):
                is_idle = now - entry.used_at > IDLE_SECONDS and not _is_at_work(entry)
                if entry.tenant in unserved or (is_idle and not _holds_connections(entry)):
                    self._begin_closing(entry)

    async def _keep_sweeping(self) -> None:
        """Open tenants that have background runs which wait to begin; until it is cancelled."""
        while True:
            try:
                await self._sweep()
            except Exception as error:  # noqa: BLE001 - it is looked again in a moment
                _LOG.warning("Background runs of tenants cannot be looked for: %s", error)
            await asyncio.sleep(SWEEP_SECONDS)

    async def _sweep(self) -> None:
        settings, home = self._operators.settings, self._operators.home
        for each in await self.all():
            if each.id in self._open or each.id == DEFAULT_TENANT or each.status is not TenantStatus.ACTIVE:
                continue
            waits = await in_thread(
                Kind.DATABASE, partial(runs_wait, settings, home.of_tenant(each.id), time.time()), charged=False
            )
            if waits:
                with suppress(TenantRefused, TenantsBusy):
                    await self.app_of(each.id)


def _is_at_work(entry: _OpenTenant[S]) -> bool:
    """Return whether a tenant is in use, runs something in the background, or has sessions of code."""
    if entry.used or not entry.ready.done():
        return True
    if entry.ready.exception() is not None:
        return False
    app, _ = entry.ready.result()
    return app.background.work.is_at_work or any(
        pool.sessions or pool.running or pool.waiting for pool in app.pools.stats().values()
    )


def _holds_connections(entry: _OpenTenant[S]) -> bool:
    if not entry.ready.done() or entry.ready.exception() is not None:
        return False
    return entry.ready.result()[1].holds_connections


async def _end_requests(entry: _OpenTenant[S]) -> None:
    """Let the requests at work end, and cancel those that do not."""
    if entry.users:
        await asyncio.wait(entry.users, timeout=CLOSING_SECONDS)
    for task in list(entry.users):
        task.cancel()
    if entry.users:
        await asyncio.wait(entry.users, timeout=CLOSING_SECONDS)
