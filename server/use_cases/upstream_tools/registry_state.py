"""Where is kept what is known of upstream servers: files in the home, or the database that several servers share.

Pins and quarantines are the operator's; lists of tools, learned types and what was called after searches are each
tenant's own. In a shared database a text counts for `TRUSTED_SECONDS` after it was looked whether it has changed, and
no longer once a notice said so. While the database cannot be reached, what was known goes on to count for
`OUTAGE_SECONDS`: nobody can quarantine a server meanwhile. After that nothing does, since it may be reached by others.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....skills_db.errors import DatabaseUnavailable, SkillsDbError
from ....tools_registry.errors import RegistryError, StateUnavailable
from ....tools_registry.kept import Draft, KeptFile, KeptText
from ...base.database import HomeDatabase, database_of
from ...base.errors import HostWorkBusy
from ...base.home import Home
from ...base.host_work import Kind, in_thread

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ....skills_db.shared_state.documents import DocumentStore

TRUSTED_SECONDS = 1.0
"""How long what was read of a shared database counts without a look whether it has changed."""
OUTAGE_SECONDS = 30.0
"""How long it counts while the database cannot be looked at: as long as one takes to start again."""
_LOG = logging.getLogger(__name__)
_CACHED_BYTES_MAX = 262_144
_PINS = "pins.json"
_LEARNED = "learned.json"
_USAGE = "usage.json"
_FAILING = "failing.json"


@dataclass(frozen=True, slots=True)
class RegistryState:
    """Where each is kept. `failing` are the servers that a process could not connect last.

    `shared` are the databases where others change them too; none where they are files.
    """

    pins: KeptText
    learned: KeptText
    usage: KeptText
    failing: KeptText
    lists: Callable[[str], KeptText]
    shared: tuple[SharedTexts, ...] = ()


def failing_servers(state: RegistryState) -> dict[str, dict[str, object]]:
    """Return the servers that could not be connected last, each with `{since, last_error}`; seconds since 1970. Blocks.

    What cannot be read counts as nothing.
    """
    try:
        return dict(json.loads(state.failing.read() or b"{}"))
    except (OSError, ValueError) as error:
        _LOG.warning("Which upstream servers fail cannot be read: %s", error)
        return {}


def note_failing(state: RegistryState, server: str, failure: RegistryError | None) -> None:
    """Keep since when a server cannot be connected, and why; or no more that it cannot. Blocks."""
    try:
        before = failing_servers(state)
        if failure is None and server not in before:
            return
        with state.failing.editing() as draft:
            failing = dict(json.loads(draft.data or b"{}"))
            if failure is None:
                failing.pop(server, None)
            else:
                failing[server] = {"since": time.time(), **failing.get(server, {}), "last_error": str(failure)}
            draft.data = json.dumps(failing).encode()
    except (OSError, ValueError) as error:
        _LOG.warning("That the upstream server %s fails, or works again, could not be kept: %s", server, error)


def in_files(home: Home) -> RegistryState:
    """Return the state of a home that no other machine shares."""
    lists = home.registry / "lists"
    return RegistryState(
        KeptFile(home.operators_registry / _PINS),
        KeptFile(home.registry / _LEARNED),
        KeptFile(home.registry / _USAGE),
        KeptFile(home.operators_registry / _FAILING),
        lambda name: KeptFile(lists / name),
    )


def state_of(home: Home, database: HomeDatabase, operators: HomeDatabase) -> RegistryState:
    """Return the state of a home: in its `database` and the operator's where a server has these, else in files.

    What the files of the home hold counts until the database has something of that name.
    """
    files = in_files(home)
    if not database.is_server:
        return files
    own = SharedTexts(database)
    of_operator = own if operators is database else SharedTexts(operators)
    return RegistryState(
        SharedText(of_operator, _PINS, files.pins),
        SharedText(own, _LEARNED, files.learned),
        SharedText(own, _USAGE, files.usage),
        SharedText(of_operator, _FAILING, files.failing),
        lambda name: SharedText(own, f"lists/{name}", files.lists(name)),
        (own,) if of_operator is own else (own, of_operator),
    )


@contextmanager
def opened_state(home: Home, database_url: str | None) -> Iterator[RegistryState]:
    """Give the state of a home to a command, and close the databases that it opened."""
    database = database_of(database_url, home)
    operators = database if home.operators is None else database_of(database_url, Home(home.operators))
    try:
        yield state_of(home, database, operators)
    finally:
        database.close()
        operators.close()


class SharedTexts:
    """The texts of one database, as they were at the last look. Any thread may use it; all but `expire` blocks."""

    def __init__(self, database: HomeDatabase) -> None:
        self._database = database
        self._store: DocumentStore | None = None
        self._looking = threading.Lock()
        self._looked: float | None = None
        self._known: float | None = None
        """When the database last said what it has; None after a notice that this has changed."""
        self._revision = -1
        self._versions: Mapping[str, int] = {}
        self._contents: dict[str, tuple[int, bytes]] = {}

    @property
    def where(self) -> str:
        """What messages call the place."""
        return "What servers share of upstream servers"

    def expire(self) -> None:
        """Mark it to be checked for changes at its next use; returns at once."""
        self._looked = self._known = None

    def looked(self) -> int:
        """Return the revision, after a look at the database where the last is too old. Raises `StateUnavailable`."""
        with self._looking, _translated():
            self._look()
            return self._revision

    def version(self, name: str) -> int:
        """Return the version of a text, 0 where there is none. Raises `StateUnavailable`."""
        with self._looking, _translated():
            self._look()
            return self._versions.get(name, 0)

    def read(self, name: str) -> bytes | None:
        """Return a text, None where there is none. Raises `StateUnavailable`."""
        with self._looking, _translated():
            self._look()
            version = self._versions.get(name)
            if version is None:
                return None
            known = self._contents.get(name)
            if known is None or known[0] != version:
                found = self._opened().read([name]).get(name)
                if found is None:
                    return None
                known = found
                if len(known[1]) <= _CACHED_BYTES_MAX:
                    self._contents[name] = known
            return known[1]

    @contextmanager
    def editing(self, name: str) -> Iterator[Draft]:
        """Give a text to be changed, as it is in the database now. Raises `StateUnavailable`."""
        with _translated(), self._opened().editing(name) as stored:
            draft = Draft(stored.data)
            yield draft
            stored.data = draft.data
        self.expire()

    def remove(self, name: str) -> None:
        """Drop a text. Raises `StateUnavailable`."""
        with _translated():
            self._opened().remove(name)
        self.expire()

    def _look(self) -> None:
        if self._looked is not None and time.monotonic() - self._looked < TRUSTED_SECONDS:
            return
        began = time.monotonic()
        store = self._opened()
        try:
            if self._revision < 0 or store.revision() != self._revision:
                self._revision, self._versions = store.versions()
                self._contents = {
                    name: known for name, known in self._contents.items() if self._versions.get(name) == known[0]
                }
        except DatabaseUnavailable as error:
            if self._known is None or began - self._known >= OUTAGE_SECONDS:
                raise
            _LOG.warning("What is known of upstream servers counts for %g seconds at most: %s", OUTAGE_SECONDS, error)
            self._looked = time.monotonic()
            return
        self._looked = self._known = began

    def _opened(self) -> DocumentStore:
        if self._store is None:
            from ....skills_db.shared_state.documents import DocumentStore

            self._store = DocumentStore(self._database())
        return self._store


class SharedText:
    """One text of a shared database, which begins with what is kept `before` it."""

    def __init__(self, texts: SharedTexts, name: str, before: KeptText) -> None:
        self._texts = texts
        self._name = name
        self._before = before

    @property
    def where(self) -> str:
        """What messages call the place."""
        return f"{self._texts.where} ({self._name})"

    def read(self, bytes_max: int = -1) -> bytes | None:
        """Return it. Raises `StateUnavailable`."""
        data = self._texts.read(self._name)
        if data is None:
            return self._before.read(bytes_max)
        return data if bytes_max < 0 else data[:bytes_max]

    def stamp(self) -> int:
        """Return its version. Raises `StateUnavailable`."""
        return self._texts.version(self._name)

    @contextmanager
    def editing(self) -> Iterator[Draft]:
        """Give it to be changed, by one server at a time. Raises `StateUnavailable`."""
        with self._texts.editing(self._name) as draft:
            if draft.data is None:
                draft.data = self._before.read()
            yield draft

    def remove(self) -> None:
        """Drop it. Raises `StateUnavailable`."""
        self._texts.remove(self._name)
        self._before.remove()


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except SkillsDbError as error:
        raise StateUnavailable(str(error)) from error


WAIT_SECONDS = 2.0
"""How long a caller waits for a look; what was known before counts where the database has not answered by then."""


class SharedLook:
    """What changed in some databases since the last look. Belongs to one event loop; costs nothing without any."""

    def __init__(self, texts: Sequence[SharedTexts]) -> None:
        self._texts = tuple(texts)
        self._seen: tuple[int, ...] | None = None
        self._at: float | None = None
        self._look: asyncio.Task[tuple[int, ...]] | None = None

    @property
    def is_shared(self) -> bool:
        """Whether there is anything that others may change."""
        return bool(self._texts)

    def expire(self) -> None:
        """Let the next caller check, however recent the last check was."""
        self._at = None
        for texts in self._texts:
            texts.expire()

    async def has_changed(self) -> bool:
        """Return whether something has changed since this last returned so; the first look finds nothing changed."""
        loop = asyncio.get_running_loop()
        if not self._texts or (self._at is not None and loop.time() - self._at < TRUSTED_SECONDS):
            return False
        if self._look is not None and not self._look.done():
            return False  # the database is slow, and somebody has waited for it
        began = loop.time()
        self._look = asyncio.create_task(in_thread(Kind.DATABASE, self._revisions, charged=False))
        await asyncio.wait({self._look}, timeout=WAIT_SECONDS)
        if not self._look.done():
            self._look.add_done_callback(_taken)
            return False
        self._at = began
        try:
            revisions = self._look.result()
        except (StateUnavailable, HostWorkBusy) as error:
            _LOG.warning("Whether other servers changed what is known of upstream servers is not known: %s", error)
            return False
        before, self._seen = self._seen, revisions
        return before is not None and before != revisions

    def _revisions(self) -> tuple[int, ...]:
        return tuple(texts.looked() for texts in self._texts)


def _taken(look: asyncio.Task[tuple[int, ...]]) -> None:
    """Take the failure of a look that nobody waits for, so that asyncio does not report it."""
    if not look.cancelled():
        look.exception()
