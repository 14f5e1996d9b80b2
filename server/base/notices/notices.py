"""Notifies the parts of this server of what other servers on the same PostgreSQL database changed.

One connection hears for all tenants. What is sent while it is lost is not heard; so, once it is there again, all parts
look anew at what they share, and nothing is missed. Parts do not rest on notices alone: they look now and then anyway.
Where the database is a file there is nothing to hear, and nothing here costs anything.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from ..host_work import Kind, in_thread

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ....skills_db.shared_state.notices import Notice

FIRST_WAIT_SECONDS = 0.2
"""How long is waited after the connection was lost, before it is made anew; then twice as long each time."""
WAIT_SECONDS_MAX = 15.0
_LOG = logging.getLogger(__name__)


class Changed(StrEnum):
    """What others changed. `ANYTHING`: notices may have been missed, so everything is looked at anew."""

    DOCUMENTS = "documents"
    SKILLS = "skills"
    ANYTHING = "anything"


@dataclass(frozen=True, slots=True, eq=False)
class _Hearer:
    """One part that hears of the changes of a tenant, or of the operator where that is None."""

    tenant: str | None
    hear: Callable[[Changed], None]


_Hearers = set[_Hearer]


class Notices:
    """The notices of one database. Belongs to one event loop; `url` is None where there is nothing to hear."""

    def __init__(self, url: str | None) -> None:
        self._url = url
        self._hearers: _Hearers = set()
        self._wait = FIRST_WAIT_SECONDS
        self.is_listening = False
        """Whether notices are heard now."""
        self.gaps = 0
        """How often the connection was lost, or could not be made."""

    @property
    def is_shared(self) -> bool:
        """Whether there is a database whose notices can be heard."""
        return self._url is not None

    @contextmanager
    def heard(self, tenant: str | None, hear: Callable[[Changed], None]) -> Iterator[None]:
        """Notify a part of the changes of a tenant, or of the operator for None, as long as the context lasts."""
        hearer = _Hearer(tenant, hear)
        self._hearers.add(hearer)
        try:
            yield
        finally:
            self._hearers.discard(hearer)

    async def listen(self) -> None:
        """Hear, and connect anew where the connection is lost, until it is cancelled."""
        if self._url is None:
            return
        self._wait = FIRST_WAIT_SECONDS
        while True:
            try:
                await self._hear_until_lost(self._url)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is tried again
                if self.is_listening or not self.gaps:
                    _LOG.warning("Changes of other servers are noticed later, since the database is lost: %s", error)
            self.is_listening = False
            self.gaps += 1
            await asyncio.sleep(self._wait * random.uniform(0.5, 1.0))  # noqa: S311 - not all servers come at once
            self._wait = min(2 * self._wait, WAIT_SECONDS_MAX)

    async def _hear_until_lost(self, url: str) -> None:
        options = await in_thread(Kind.DATABASE, partial(_options, url), charged=False)
        from ....skills_db.shared_state.notices import listening

        async with listening(options) as found:
            self.is_listening = True
            self._wait = FIRST_WAIT_SECONDS
            self._tell(self._hearers, Changed.ANYTHING)
            async for notice in found.notices():
                if notice.kind in set(Changed):
                    self._tell(self._who_hears(notice, found.schema), Changed(notice.kind))

    def _tell(self, hearers: _Hearers, changed: Changed) -> None:
        for hearer in list(hearers):
            try:
                hearer.hear(changed)
            except Exception:  # noqa: BLE001 - one part does not keep the others from hearing
                _LOG.exception("A notice could not be taken.")

    def _who_hears(self, notice: Notice, operators: str) -> _Hearers:
        from ....skills_db.tenants.schemas import schema_of

        return {
            each
            for each in self._hearers
            if notice.schema == (operators if each.tenant is None else schema_of(each.tenant))
        }


def _options(url: str) -> Mapping[str, Any]:
    from ....skills_db.shared_state.notices import connect_options

    return connect_options(url)
