"""Whether this server can work with the tables of the database that it shares with others, and what differs from them.

A server is not ready before the tables are there that it needs, which the first one of a version makes, nor once a
later version has changed them so that this one would misread them. A database that does not answer for a while says
nothing about its tables: what was known of them counts. Servers that share a database say of their setups in what they
differ.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from ....skills_db.errors import DatabaseNewer, DatabaseOlder, SkillsDbError
from ..errors import HostWorkBusy
from ..host_work import Kind, in_thread

if TYPE_CHECKING:
    from ....skills_db.shared_state.notices import SetupStore
    from ..database import HomeDatabase
    from ..settings import Settings

LOOK_SECONDS = 5.0
"""How often the tables are looked at: one statement."""
NOTE_SECONDS = 30.0
"""How often a server writes how it is set up, and reads how the others are: three statements."""
FIRST_SECONDS = 0.5
"""How often it is tried to open the database until that has worked once."""
NOT_LOOKED = "The database has not been opened yet, so it is not known whether its tables are there."
_LOG = logging.getLogger(__name__)


class Readiness:
    """For the server of an app. `database` is None where no other server shares it; `setup` may block."""

    def __init__(self, database: HomeDatabase | None, setup: Callable[[], Mapping[str, str]]) -> None:
        self._database = database
        self._setup = setup
        self._holder = secrets.token_hex(8)
        self._store: SetupStore | None = None
        self._noted_at: float | None = None
        self._is_open = False
        self.problem: str | None = None if database is None else NOT_LOOKED
        """Why this server cannot work with the database, for `/readyz`."""
        self.count = 1
        """How many servers there are on the database, this one too."""
        self.differing: Mapping[str, int] = {}
        """What is not the same on all servers, and how many kinds of it there are."""

    @property
    def warning(self) -> str | None:
        """What an operator should look at: what differs between the servers."""
        return None if not self.differing else _described(self.count, self.differing)

    async def watch(self) -> None:
        """Look at the tables now and then, until it is cancelled."""
        while True:
            await self._look()
            await asyncio.sleep(LOOK_SECONDS if self._is_open else FIRST_SECONDS)

    def leave(self) -> None:
        """Count no more among the servers on the database. Blocks."""
        if self._store is not None and self._noted_at is not None:
            try:
                self._store.leave(self._holder)
            except SkillsDbError as error:
                _LOG.debug("How this server was set up stays in the database for a while: %s", error)

    async def _look(self) -> None:
        problem: str | None = None
        try:
            await in_thread(Kind.DATABASE, self._looked, charged=False)
            self._is_open = True
        except (DatabaseNewer, DatabaseOlder) as error:
            problem = str(error)
        except (SkillsDbError, HostWorkBusy) as error:
            problem = self.problem if self._is_open else f"{NOT_LOOKED} {error}"
        except Exception:  # noqa: BLE001 - it is looked again in a moment
            _LOG.exception("The tables of the database could not be looked at.")
            problem = self.problem
        if problem is not None and problem != self.problem:
            _LOG.error("This server is not ready: %s", problem)
        self.problem = problem

    def _looked(self) -> None:
        if self._store is None:
            from ....skills_db.shared_state.notices import SetupStore

            assert self._database is not None
            self._store = SetupStore(self._database())
        self._store.check_tables()
        now = time.monotonic()
        if self._noted_at is None or now - self._noted_at >= NOTE_SECONDS:
            self._store.note(self._holder, self._setup())
            alive = self._store.alive()
            self.count, self.differing = max(1, len(alive)), differing(alive)
            self._noted_at = now


def differing(setups: Sequence[Mapping[str, str]]) -> dict[str, int]:
    """Return what is not the same in all setups, and how many kinds of it there are."""
    names = sorted({name for each in setups for name in each})
    kinds = {name: len({each.get(name) for each in setups}) for name in names}
    return {name: count for name, count in kinds.items() if count > 1}


def describe_servers(database: HomeDatabase) -> list[str]:
    """Return how many servers use a database now, and what differs between them; empty where there is none. Blocks."""
    from ....skills_db.shared_state.notices import SetupStore

    alive = SetupStore(database()).alive()
    return [_described(len(alive), differing(alive))] if alive else []


def _described(count: int, kinds: Mapping[str, int]) -> str:
    servers = f"{count} servers use it" if count > 1 else "one server uses it"
    if not kinds:
        return servers
    differences = " and ".join(f"{name} ({number} kinds)" for name, number in kinds.items())
    return f"{servers}, which differ in {differences}: give all the same"


_DIGEST_BYTES = 8
_OWN = frozenset({"log_level", "public_url", "replica_address", "workers_max", "workers_spare", "cpus"})
"""Settings that may differ between servers that are one."""


class ServerSetup:
    """The program, the settings and the files of one server."""

    def __init__(self, settings: Settings, servers_file: Path, policy: Path | None) -> None:
        self._key = hashlib.sha256((settings.vault_key or "").encode()).digest()
        self._files = {"mcp.json": servers_file, **({} if policy is None else {"the policy": policy})}
        shown = [
            f"{each.name}={getattr(settings, each.name)!r}"
            for each in fields(settings)
            if not each.metadata.get("secret") and each.name not in _OWN
        ]
        self._settings = self._digest("\n".join(sorted(shown)).encode())

    def now(self) -> Mapping[str, str]:
        """Return it by the name of each part; reads the files, so call it in a thread."""
        return {
            "the version": version("sealab"),
            "the settings": self._settings,
            **{name: self._digest(_content(path)) for name, path in self._files.items()},
        }

    def _digest(self, data: bytes) -> str:
        return hashlib.blake2b(data, key=self._key, digest_size=_DIGEST_BYTES).hexdigest()


def _content(path: Path) -> bytes:
    """Return what a file holds, or all `*.cedar` files of a folder; nothing where it cannot be read."""
    try:
        files = sorted(path.glob("*.cedar")) if path.is_dir() else [path]
        return b"\0".join(each.read_bytes() for each in files)
    except OSError:
        return b""
