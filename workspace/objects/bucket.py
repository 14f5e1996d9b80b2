"""SECURITY BOUNDARY: the only place where a name becomes an object of the store. Nothing else here asks the store.

A name was judged by its letters before (`names`). The prefix is part of the client, so no name leads out of it.

**Time.** Everything blocks and is bounded: a request waits `CONNECT_SECONDS` to be connected and `REQUEST_SECONDS`,
plus a second for each megabyte it moves, to be answered. It is repeated within that time where the connection broke.
After that every request fails at once for `PAUSE_SECONDS`, so that a store that is gone holds up few threads.

**Conditions** are those of RFC 9110, 13.1: `If-None-Match: *` for an object that must not be there, `If-Match` with the
etag for one that must not have changed.
"""

from __future__ import annotations

import contextlib
import logging
import mmap
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ..errors import ChangedMeanwhile, NameRefused, Unanswered, Unavailable
from ..names import PART_PREFIX, shown
from .s3_listing import S3Listing, listing_of
from .store_url import StoreUrl

if TYPE_CHECKING:
    from obstore import ObjectMeta, PutMode
    from obstore.store import ObjectStore

CONNECT_SECONDS = 3.0
REQUEST_SECONDS = 10.0
BYTES_A_SECOND = 1_000_000
PAUSE_SECONDS = 1.0
PAGE = 1000
PART_BYTES = 8 * 1024 * 1024
PARTS_AT_ONCE = 4
SINGLE_BYTES_MAX = 5 * 1024**3
"""The most that one request may write (Amazon S3 User Guide, "Uploading objects").

The client's uploads in parts carry no condition (obstore's documentation of `put`): whatever can goes by one request.
"""
COPIED_HERE_BYTES_MAX = 8 * 1024 * 1024
"""A copy that the store makes carries no condition on what it replaces. What is not larger than this
is read and written, which carries one."""

_CODE = re.compile(r"<Code>([A-Za-z]{1,60})</Code>")
_T = TypeVar("_T")
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Object:
    """An object: its key below the prefix, bytes, etag, and last change in nanoseconds since 1970."""

    key: str
    size: int
    etag: str
    modified_ns: int


@dataclass(frozen=True, slots=True)
class Level:
    """What lies directly below a prefix: objects, and the names of prefixes that lead further."""

    objects: tuple[Object, ...]
    folders: tuple[str, ...]


Condition: TypeAlias = str | None
"""What has to hold for a write: an etag that the object still has, `ABSENT` that there is none, or None nothing."""
ABSENT = "absent"


Guard: TypeAlias = Callable[[str, int], contextlib.AbstractContextManager[bool]]
"""Holds a key against every other server, at most so many seconds; gives whether it was had."""
PROBE_PREFIX = f"{PART_PREFIX}probe-"


@contextlib.contextmanager
def _unguarded(_key: str, _seconds: int) -> Iterator[bool]:
    yield True


class Bucket:
    """The objects below one prefix of one bucket. Safe to use from any thread.

    `environment` holds the credentials of the cloud in its standard variables. Raises `Unavailable` where the client
    is not installed or the store cannot be reached, here and in every method.
    """

    def __init__(self, url: StoreUrl, environment: Mapping[str, str] = os.environ, *, below: str = "") -> None:
        self.url = url if not below else url.below(below)
        self._environment = environment
        self._clients: dict[int, ObjectStore] = {}
        self._making = threading.Lock()
        self._raw: S3Listing | None = listing_of(self.url, environment)
        self._paused_until = self._answered_at = 0.0
        self._keeps_conditions: bool | None = None
        self.guard: Guard = _unguarded
        self.trouble: str | None = None
        """What the last request to which the store did not answer as it should failed with, until one succeeds."""
        self._client(0)

    def below(self, prefix: str) -> Bucket:
        """Return the objects below a prefix of this one."""
        return Bucket(self.url, self._environment, below=prefix)

    def head(self, key: str) -> Object | None:
        """Look at an object; None where there is none."""
        obs = _obstore()
        try:
            return _object(self._asked(lambda: obs.head(self._client(0), key)))
        except FileNotFoundError:
            return None

    def pieces(self, found: Object) -> Iterator[bytes]:
        """Give the content of an object piece by piece, as it was when it was found.

        Raises `ChangedMeanwhile` where it is another by now, or gone.
        """
        obs = _obstore()
        options = {"if_match": found.etag} if found.etag else None
        try:
            answer = self._asked(lambda: obs.get(self._client(found.size), found.key, options=options))
            if _object(answer.meta).etag != found.etag or answer.meta["size"] != found.size:
                raise ChangedMeanwhile(_changed(found.key))
            stream = iter(answer.stream(min_chunk_size=1024 * 1024))
            while (piece := self._asked(lambda: next(stream, None))) is not None:
                yield bytes(piece)
        except (FileNotFoundError, _exceptions().PreconditionError):
            raise ChangedMeanwhile(_changed(found.key)) from None

    def put(self, key: str, content: bytes | mmap.mmap, condition: Condition, *, shrinks: bool = False) -> str:
        """Write an object and return its etag. Raises `ChangedMeanwhile` where the condition does not hold.

        Where the store does not keep conditions, servers take turns at a name by `guard`, and look before they write.
        So they do elsewhere for what `shrinks`: the room that it gives back, a deletion must not give back too.
        """
        if condition is None or (self.keeps_conditions() and not shrinks):
            return self._put(key, content, condition)
        with self._held(key, len(content)):
            if self.keeps_conditions():
                return self._put(key, content, condition)
            self._judge(key, condition)
            return self._put(key, content, None)

    def _put(self, key: str, content: bytes | mmap.mmap, condition: Condition) -> str:
        obs = _obstore()
        mode = self._mode(key, condition)
        client = self._client(len(content))
        return self._written(key, lambda: obs.put(client, key, content, mode=mode, use_multipart=False))

    def _mode(self, key: str, condition: Condition) -> PutMode:
        if condition is None:
            return "overwrite"
        if condition == ABSENT:
            return "create"
        if self.url.scheme != "gs":
            return {"e_tag": condition}
        # Google's condition for a write is on the generation (its XML API, `x-goog-if-generation-match`), not the etag.
        try:
            found = self._asked(lambda: _obstore().head(self._client(0), key))
        except FileNotFoundError:
            raise ChangedMeanwhile(_changed(key)) from None
        if _etag(found["e_tag"]) != condition or found["version"] is None:
            raise ChangedMeanwhile(_changed(key))
        return {"e_tag": condition, "version": found["version"]}

    def keeps_conditions(self) -> bool:
        """Return whether the store refuses a write whose condition does not hold: it is tried once."""
        if self._keeps_conditions is None:
            probe = PROBE_PREFIX + secrets.token_hex(8)
            self._put(probe, b"", ABSENT)
            try:
                self._put(probe, b"", ABSENT)
                self._keeps_conditions = False
            except ChangedMeanwhile:
                self._keeps_conditions = True
            finally:
                with contextlib.suppress(Unavailable):
                    self.delete(probe)
        return self._keeps_conditions

    def put_file(
        self, key: str, handle: int, size: int, condition: Condition, *, whole: bool = False, shrinks: bool = False
    ) -> str:
        """Write a file, which nobody changes meanwhile, without holding it in memory; return the etag.

        Raises as `put`, and `Unavailable` for one above `SINGLE_BYTES_MAX`, unless it replaces the `whole` of whatever
        is there. Then it goes in parts, and the condition is looked at before the first.
        """
        if size > SINGLE_BYTES_MAX:
            if whole:
                return self._put_in_parts(key, handle, size, condition)
            raise Unavailable(
                f"{shown(key)} has {size} bytes, and an object store changes at most {SINGLE_BYTES_MAX} at once. "
                "Write it in several files."
            )
        if size == 0:
            return self.put(key, b"", condition, shrinks=shrinks)
        with mmap.mmap(handle, size, access=mmap.ACCESS_READ) as content:
            return self.put(key, content, condition, shrinks=shrinks)

    def _put_in_parts(self, key: str, handle: int, size: int, condition: Condition) -> str:
        obs = _obstore()
        client = self._client(size)
        with self._held(key, size), open(os.dup(handle), "rb") as file:
            self._judge(key, condition)
            file.seek(0)
            return self._written(
                key,
                lambda: obs.put(
                    client, key, file, use_multipart=True, chunk_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE
                ),
            )

    @contextlib.contextmanager
    def _held(self, key: str, size: int) -> Iterator[None]:
        """Hold a key against other servers that do so, for as long as a write of this size may take."""
        with self.guard(key, int(REQUEST_SECONDS + size / BYTES_A_SECOND) * 3) as is_held:
            if not is_held:
                raise Unavailable(f"{shown(key)} is being written by another server. Try again.")
            yield

    def _judge(self, key: str, condition: Condition) -> None:
        """Raise `ChangedMeanwhile` where a condition does not hold now."""
        found = self.head(key)
        if condition is not None and (ABSENT if found is None else found.etag) != condition:
            raise ChangedMeanwhile(_changed(key))

    def delete(self, key: str) -> None:
        """Delete an object; one that is gone already is no error."""
        obs = _obstore()
        with contextlib.suppress(FileNotFoundError):
            self._asked(lambda: obs.delete(self._client(0), key))

    def delete_all(self, keys: list[str]) -> None:
        """Delete many objects, up to `PAGE` of them in a request."""
        obs = _obstore()
        for start in range(0, len(keys), PAGE):
            some = keys[start : start + PAGE]
            with contextlib.suppress(FileNotFoundError):
                self._asked(partial(obs.delete, self._client(0), some))

    def take_out(self, key: str, etag: str | None = None) -> Object | None:
        """Delete an object and return it as it was last; None where there is none, or no more.

        Stores have no condition for this, and do not say whether there was one. So servers take turns, and of several
        that delete an object one alone gets it: it counts what became free. Raises `ChangedMeanwhile` where it has not
        this etag.
        """
        with self._held(key, 0):
            found = self.head(key)
            if found is not None and etag is not None and found.etag != etag:
                raise ChangedMeanwhile(_changed(key))
            if found is not None:
                self.delete(key)
            return found

    def copy(self, found: Object, key: str, condition: Condition = None) -> None:
        """Copy an object, in place of what has the key, if the condition holds.

        One of up to `COPIED_HERE_BYTES_MAX` is written with the condition, a larger one right after it was looked at.
        Raises `ChangedMeanwhile` where it does not hold, and for an object that is gone or another by now.
        """
        obs = _obstore()
        if condition is not None and found.size <= COPIED_HERE_BYTES_MAX:
            self.put(key, b"".join(self.pieces(found)), condition, shrinks=condition != ABSENT)
            return
        with self._held(key, found.size):
            if condition is not None:
                self._judge(key, condition)
            try:
                self._asked(lambda: obs.copy(self._client(found.size), found.key, key))
            except FileNotFoundError:
                raise ChangedMeanwhile(_changed(found.key)) from None

    def walk(self, prefix: str = "") -> Iterator[Object]:
        """Give every object below a prefix that is a folder's, in pages, sorted by key.

        Keys that no name can have (`a//b`, `../c`) are left out where the store can list them at all; see `S3Listing`.
        """
        obs = _obstore()
        start = f"{prefix}/" if prefix else ""
        last = b""
        try:
            stream = iter(obs.list(self._client(PAGE * 1000), prefix or None, chunk_size=PAGE))
            while (page := self._asked(lambda: next(stream, None))) is not None:
                for each in page:
                    if each["path"].startswith(start):
                        last = each["path"].encode()
                        yield _object(each)
        except _IllegalKey as illegal:
            raw = self._listing(illegal)
        else:
            return
        # From its beginning: what the client was about to give of the page with that key is not known.
        for listed in self._asked(lambda: list(raw.walk(start))):
            if listed[0].encode() > last:
                yield Object(*listed)

    def level(self, prefix: str = "") -> Level:
        """List what lies directly below a prefix that is a folder's, in pages."""
        obs = _obstore()
        start = f"{prefix}/" if prefix else ""
        try:
            found = self._asked(lambda: obs.list_with_delimiter(self._client(PAGE * 1000), prefix or None))
            return Level(
                tuple(_object(each) for each in found["objects"] if each["path"].startswith(start)),
                tuple(each[len(start) :] for each in found["common_prefixes"]),
            )
        except _IllegalKey as illegal:
            raw = self._listing(illegal)
        objects, folders = self._asked(lambda: raw.level(start))
        return Level(tuple(Object(*each) for each in objects), tuple(each[len(start) :] for each in folders))

    def some_below(self, prefix: str, count: int) -> list[Object]:
        """Return the first few objects below a prefix that is a folder's."""
        return list(islice(self.walk(prefix), count))

    def check(self, *, answered_within: float = 0.0) -> None:
        """Ask the store for one page, unless it answered within so many seconds. Raises `Unavailable`."""
        if self.trouble is not None or time.monotonic() - self._answered_at >= answered_within:
            self.some_below("", 1)

    def _listing(self, illegal: _IllegalKey) -> S3Listing:
        if self._raw is None:
            raise Unavailable(
                f"The object store holds an object whose name no file can have: {illegal}. "
                "Rename or remove it with the store's own tools."
            )
        return self._raw

    def _written(self, key: str, write: Callable[[], Mapping[str, str | None]]) -> str:
        obs = _exceptions()
        try:
            return _etag(self._asked(write)["e_tag"])
        except FileNotFoundError:
            raise Unavailable(f"{self.url} has no such bucket. Make it, or correct WORKSPACE_URL.") from None
        except (obs.AlreadyExistsError, obs.PreconditionError):
            raise ChangedMeanwhile(_changed(key)) from None

    def _asked(self, ask: Callable[[], _T]) -> _T:
        """Ask the store, and turn what the client raises into an error of this folder, but for what callers expect."""
        obs = _exceptions()
        if time.monotonic() < self._paused_until:
            raise Unavailable(self._silent())
        begun = time.monotonic()
        try:
            answer = ask()
        except (FileNotFoundError, obs.AlreadyExistsError):
            raise
        except obs.PreconditionError:
            raise
        except obs.InvalidPathError as error:
            raise _IllegalKey(str(error).split("\n", 1)[0]) from None
        except (obs.PermissionDeniedError, obs.UnauthenticatedError) as error:
            _LOG.warning("%s refuses: %s", self.url, error)
            self.trouble = (
                f"{self.url} refuses the credentials of this server. Give it those that may list, read, write and "
                "delete there, in the standard variables of the cloud."
            )
            raise Unavailable(self.trouble) from None
        except ValueError as error:
            raise NameRefused(f"The object store has no such name: {error}. Choose another name.") from None
        except (obs.BaseError, OSError) as error:
            text = str(error)
            _LOG.warning("%s failed: %s", self.url, text)
            if "NoSuchBucket" in text:
                self.trouble = f"{self.url} has no such bucket. Make it, or correct WORKSPACE_URL."
                raise Unavailable(self.trouble) from None
            if "PreconditionFailed" in text or "ConditionalRequestConflict" in text:
                raise ChangedMeanwhile("The object was changed by another at the same moment. Try again.") from None
            if "status code: 4" in text:
                reason = _CODE.search(text)
                raise Unavailable(
                    f"The object store at {self.url} refused this ({reason[1] if reason else 'no reason given'}). "
                    "Use another name, or ask the operator."
                ) from None
            if self._answered_at < begun:  # else the store is back, and this was asked before
                self._paused_until = time.monotonic() + PAUSE_SECONDS
                self.trouble = self._silent()
            kind = Unavailable if "connect" in text.lower() else Unanswered
            raise kind(self._silent()) from None
        self._answered_at = time.monotonic()
        self._paused_until = 0.0
        self.trouble = None
        return answer

    def _silent(self) -> str:
        return (
            f"The object store at {self.url} does not answer as it should. Try again later, and ask the operator to "
            "run `sealab doctor` where this goes on."
        )

    def _client(self, size: int) -> ObjectStore:
        """Return a client whose requests may take as long as so many bytes need, to the next power of two."""
        steps = max(0, (size // BYTES_A_SECOND).bit_length())
        with self._making:
            if steps not in self._clients:
                self._clients[steps] = self._made(REQUEST_SECONDS + (1 << steps if steps else 0))
            return self._clients[steps]

    def _made(self, seconds: float) -> ObjectStore:
        _obstore()
        from obstore import store

        from_url: Any = store.from_url  # its overloads are one for each cloud

        try:
            made: ObjectStore = from_url(
                str(self.url),
                config=self.url.config(self._environment),
                client_options={
                    "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
                    "timeout": timedelta(seconds=seconds),
                    "allow_http": self.url.allows_http(self._environment),
                },
                retry_config={
                    "max_retries": 3,
                    "retry_timeout": timedelta(seconds=seconds),
                    "backoff": {
                        "init_backoff": timedelta(seconds=0.1),
                        "max_backoff": timedelta(seconds=1),
                        "base": 2,
                    },
                },
            )
            return made  # noqa: TRY300 - what the call above raises is turned below
        except (_exceptions().BaseError, ValueError, OSError) as error:
            _LOG.warning("%s cannot be used: %s", self.url, error)
            raise Unavailable(
                f"No client can be made for {self.url}. Give the credentials and the address of the store in the "
                "standard variables of the cloud, and set WORKSPACE_URL to such as s3://bucket/prefix."
            ) from None


class _IllegalKey(Exception):
    """The client met a key that it takes for no path, and gave up the whole page."""


def _object(found: ObjectMeta) -> Object:
    modified_ns = int(found["last_modified"].timestamp() * 1000) * 1_000_000
    return Object(found["path"], found["size"], _etag(found["e_tag"]), modified_ns)


def _etag(told: str | None) -> str:
    """Return an etag as RFC 9110, 8.8.3 has it: Azure lists them without their quotes, and answers with them."""
    if not told or told.endswith('"'):
        return told or ""
    return f'"{told}"'


def _changed(key: str) -> str:
    return (
        f"{shown(key)} was changed by another program or server meanwhile. Nothing was overwritten; read it again and "
        "repeat the change."
    )


def _obstore() -> Any:  # the module: only callers that use the store load it
    try:
        import obstore
    except ImportError:
        raise Unavailable(
            "WORKSPACE_URL names an object store, but its client is not installed. Install sealab[store]."
        ) from None
    return obstore


def _exceptions() -> Any:
    import obstore.exceptions

    return obstore.exceptions
