"""SECURITY BOUNDARY: the only place where a name becomes an object of the store. Nothing else here asks the store.

A name was judged by its letters before (`names`). The prefix is part of the client, so no name leads out of it.

**Time.** Everything blocks and is bounded: a request waits `CONNECT_SECONDS` to be connected and `REQUEST_SECONDS`,
plus a second for each megabyte it moves, to be answered. It is repeated within that time where the connection broke.
After that every request fails at once for `PAUSE_SECONDS`, so that a store that is gone holds up few threads.

**Conditions.** Nothing is written with one: sealab writes each key once, and no two writers choose the same.
"""

from __future__ import annotations

import contextlib
import logging
import mmap
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import ChangedMeanwhile, NameRefused, Unavailable
from ..names import shown
from .store_url import StoreUrl

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore

CONNECT_SECONDS = 3.0
REQUEST_SECONDS = 10.0
BYTES_A_SECOND = 1_000_000
PAUSE_SECONDS = 1.0
PAGE = 1000
PART_BYTES = 16 * 1024 * 1024
PARTS_AT_ONCE = 4
SINGLE_BYTES_MAX = 5 * 1024**3
"""The most that one request may write (Amazon S3 User Guide, "Uploading objects"); what is larger goes in parts."""

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


class Bucket:
    """The objects below one prefix of one bucket. Safe to use from any thread.

    The client finds the credentials of the cloud in its standard variables. Raises `Unavailable` where it is not
    installed or the store cannot be reached, here and in every method.
    """

    def __init__(self, url: StoreUrl) -> None:
        self.url = url
        self._clients: dict[int, ObjectStore] = {}
        self._making = threading.Lock()
        self._paused_until = self._answered_at = 0.0
        self.trouble: str | None = None
        """What the last request to which the store did not answer as it should failed with, until one succeeds."""
        self._client(0)

    def head(self, key: str) -> Object | None:
        """Look at an object; None where there is none."""
        obs = _obstore()
        try:
            return _object(self._asked(lambda: obs.head(self._client(0), key)))
        except FileNotFoundError:
            return None

    def pieces(self, found: Object) -> Iterator[bytes]:
        """Give the content of an object piece by piece, as it was when it was found; without an etag, as it is.

        Raises `ChangedMeanwhile` where it is another by now, or gone.
        """
        obs = _obstore()
        options = {"if_match": found.etag} if found.etag else None
        try:
            answer = self._asked(lambda: obs.get(self._client(found.size), found.key, options=options))
            is_another = found.etag and _object(answer.meta).etag != found.etag
            if is_another or answer.meta["size"] != found.size:
                raise ChangedMeanwhile(_changed(found.key))
            stream = iter(answer.stream(min_chunk_size=1024 * 1024))
            had = 0
            while (piece := self._asked(lambda: next(stream, None))) is not None:
                had += len(piece)
                yield bytes(piece)
            if had != found.size:
                raise Unavailable(f"The object store sent {had} of {found.size} bytes. Try again.")
        except (FileNotFoundError, _exceptions().PreconditionError):
            raise ChangedMeanwhile(_changed(found.key)) from None

    def put(self, key: str, content: bytes | mmap.mmap) -> None:
        """Write an object by one request."""
        obs, client = _obstore(), self._client(len(content))
        self._written(lambda: obs.put(client, key, content, use_multipart=False))

    def put_file(self, key: str, handle: int, size: int) -> None:
        """Write a file, which nobody changes meanwhile, without holding it in memory."""
        if size == 0:
            self.put(key, b"")
        elif size <= SINGLE_BYTES_MAX:
            with mmap.mmap(handle, size, access=mmap.ACCESS_READ) as content:
                self.put(key, content)
        else:
            obs, client = _obstore(), self._client(size)
            parts = {"use_multipart": True, "chunk_size": PART_BYTES, "max_concurrency": PARTS_AT_ONCE}
            with open(os.dup(handle), "rb") as file:
                file.seek(0)
                self._written(lambda: obs.put(client, key, file, **parts))

    def delete_all(self, keys: list[str]) -> None:
        """Delete many objects, up to `PAGE` of them in a request."""
        obs = _obstore()
        for start in range(0, len(keys), PAGE):
            some = keys[start : start + PAGE] if len(keys) > 1 else keys[0]
            with contextlib.suppress(FileNotFoundError):
                self._asked(partial(obs.delete, self._client(0), some))

    def copy(self, found: Object, key: str) -> None:
        """Copy an object in the store. Raises `ChangedMeanwhile` for one that is gone."""
        obs, client = _obstore(), self._client(found.size)
        try:
            self._asked(lambda: obs.copy(client, found.key, key))
        except FileNotFoundError:
            raise ChangedMeanwhile(_changed(found.key)) from None

    def walk(self, prefix: str = "") -> Iterator[Object]:
        """Give every object below a prefix that is a folder's, in pages, sorted by key.

        Raises `Unavailable` at a page that holds a key which is no path (`a//b`, `../c`): the client cannot list it.
        """
        obs = _obstore()
        start = f"{prefix}/" if prefix else ""
        stream = iter(obs.list(self._client(PAGE * 1000), prefix or None, chunk_size=PAGE))
        while (page := self._asked(lambda: next(stream, None))) is not None:
            yield from (_object(each) for each in page if each["path"].startswith(start))

    def top(self) -> tuple[list[Object], list[str]]:
        """Return the objects at the top, and the names of the prefixes there. Raises `Unavailable` as `walk` does."""
        found = self._asked(lambda: _obstore().list_with_delimiter(self._client(PAGE * 1000)))
        return [_object(each) for each in found["objects"]], list(found["common_prefixes"])

    def _written(self, write: Callable[[], object]) -> None:
        try:
            self._asked(write)
        except FileNotFoundError:
            raise Unavailable(f"{self.url} has no such bucket. Make it, or correct WORKSPACE_URL.") from None

    def _asked(self, ask: Callable[[], _T]) -> _T:
        """Ask the store, and turn what the client raises into an error of this folder, but for what callers expect."""
        obs = _exceptions()
        if time.monotonic() < self._paused_until:
            raise Unavailable(self._silent())
        begun = time.monotonic()
        try:
            answer = ask()
        except (FileNotFoundError, obs.PreconditionError):
            raise
        except obs.InvalidPathError as error:
            raise Unavailable(
                f"The object store holds an object whose name no file can have: {str(error).splitlines()[0]}. "
                "Rename or remove it with the store's own tools."
            ) from None
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
            if "status code: 4" in text:
                reason = _CODE.search(text)
                raise Unavailable(
                    f"The object store at {self.url} refused this ({reason[1] if reason else 'no reason given'}). "
                    "Use another name, or ask the operator."
                ) from None
            if self._answered_at < begun:  # else the store is back, and this was asked before
                self._paused_until = time.monotonic() + PAUSE_SECONDS
                self.trouble = self._silent()
            raise Unavailable(self._silent()) from None
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
                client_options={
                    "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
                    "timeout": timedelta(seconds=seconds),
                    "allow_http": self.url.allows_http(),
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


def _object(found: ObjectMeta) -> Object:
    modified_ns = int(found["last_modified"].timestamp() * 1000) * 1_000_000
    return Object(found["path"], found["size"], _etag(found["e_tag"]), modified_ns)


def _etag(etag: str | None) -> str:
    """Return an etag as RFC 9110, 8.8.3 has it: Azure lists them without their quotes, and answers with them."""
    if not etag or etag.endswith('"'):
        return etag or ""
    return f'"{etag}"'


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
