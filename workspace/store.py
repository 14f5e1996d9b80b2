"""The files of an agent: written whole or not at all, never past the quota, never outside the workspace.

**Durability.** A write goes to a file of another name in the same folder and takes its place by `rename(2)`, so a
reader or a crash sees the old content or the new one. Content that replaces something is synced first: after a power
loss the old or the new is there. A new file is left to the kernel's write-back (seconds). `append` adds in place: a
crash may keep a part of what was being added, never lose what stood there.

**Time.** All methods are plain calls that block: reads and small writes take well under a millisecond; replacing waits
for the disk (milliseconds); listing takes about 20 ms for a thousand files; a text slice is found by reading the file
up to it. A server calls them in a thread. Any thread may, and several processes may on one root.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import contextlib
import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, Self, TypeAlias

from .errors import ContentRefused, NameRefused, NotAFile, NotFound, Reserved, Unavailable, WorkspaceError
from .names import (
    LANDING_PREFIX,
    PART_PREFIX,
    RUNS,
    TEMPORARY_PREFIX,
    Name,
    is_run_of,
    run_folder,
    run_in,
    shown,
    speakable,
)
from .paths import Folder, Root, WalkedEntry, judge, read_at, refusing, write_all
from .quota import Ledger

Encoding: TypeAlias = Literal["utf-8", "base64"]

READ_BYTES_MAX = 32 * 1024 * 1024
"""A slice holds no more of the file than this, whatever was asked for; `truncated` says so."""

Settle: TypeAlias = Callable[[str | None, str | None], None]
"""Has runs kept that ended: all, those of an owner, or the one of an owner that a folder's name says."""

BESIDE = ".runs"
"""What is added to the name of the workspace's folder for the one beside it."""

_CHUNK_BYTES = 256 * 1024
_TEMPORARY_SECONDS = 24 * 3600.0
"""After so long nobody uses a run's temporary folder any more."""
_sync = getattr(os, "fdatasync", os.fsync)


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What `write` did: `size` is the whole file's, in bytes."""

    filename: str
    size: int


@dataclass(frozen=True, slots=True)
class FileSlice:
    """A slice of a file. `size` is the whole file's in bytes; `truncated` says that more follows this slice."""

    filename: str
    content: str
    size: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class File:
    """One file: its name from the workspace's root, bytes, and last change (ISO 8601, UTC)."""

    name: str
    size: int
    modified: str

    @classmethod
    def of(cls, found: WalkedEntry) -> File:
        """Describe what was found."""
        return cls("/".join(found.parts), found.size, _iso(found.modified_ns))


@dataclass(frozen=True, slots=True)
class Listing:
    """The files below `path`, sorted by name. `count` is all of them, also when fewer were asked for."""

    path: str
    files: tuple[File, ...]
    count: int
    used_bytes: int
    quota_bytes: int


@dataclass(frozen=True, slots=True)
class Deleted:
    """What `delete` did."""

    filename: str
    deleted: bool


@dataclass(frozen=True, slots=True)
class Usage:
    """How full the workspace is; `entries` counts files and folders together."""

    used_bytes: int
    quota_bytes: int
    entries: int
    files_max: int


class _OpenFiles(Protocol):
    """The files that a run has open: see `run_files`."""

    def close(self) -> None: ...

    def removed_bytes(self) -> int: ...

    def holds(self, inode: int) -> bool: ...


class Workspace:
    """Files below one root, which is made when missing.

    `quota_bytes` bounds the sum of all sizes (a sparse file counts as long as it says), `files_max` the files and
    folders together. What `RunArchive` keeps has a budget of its own: a full workspace loses no report, and reports
    take nothing from the quota. It can be read and listed by the name `.runs/<run_id>`, by the run's owner alone, and
    not be changed. It lies in `beside`, with the runs' temporary files and all that the host locks or trusts, since
    native code of any caller may see the workspace itself.
    """

    is_stored: ClassVar[bool] = False
    """Whether the files are in an object store, and the folder is a copy."""

    def __init__(self, root: str | os.PathLike[str], *, quota_bytes: int, files_max: int = 50_000) -> None:
        self.root = Root(root)
        self.beside = Root(os.path.abspath(root) + BESIDE)
        self.live: set[_OpenFiles] = set()
        self._settle_runs: Settle = lambda _owner, _folder: None
        try:
            self.ledger = self._ledger(quota_bytes, files_max)
            self._begin()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        self._remove_old_temporary()
        with self.ledger.locked():
            self.ledger.recount()

    def trouble(self) -> str | None:
        """Return what keeps files from being had, where they are kept elsewhere; None while nothing does."""
        return None

    def check(self) -> None:
        """Ask whatever keeps the files whether it answers. Raises `Unavailable`."""

    def _ledger(self, quota_bytes: int, files_max: int) -> Ledger:
        return Ledger(
            self.root, self.beside, quota_bytes=quota_bytes, files_max=files_max, removed_bytes=self._removed_bytes
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def bring(self, parts: tuple[str, ...], *, content: bool = False) -> None:
        """Bring into the folder what the workspace has at a name, with its content or without: a folder has it."""

    def bring_folder(self, parts: tuple[str, ...]) -> None:
        """Bring into the folder what the workspace has directly below a name: a folder has it."""

    @contextlib.contextmanager
    def brought_whole(self) -> Iterator[None]:
        """Bring into the folder all files with their content, for code that reads it by itself: a folder has them."""
        yield

    def bring_kept(self, parts: tuple[str, ...]) -> None:
        """Bring into the folder beside what is kept of the run at a place there: a folder has it."""

    def close(self) -> None:
        """Close the folder. May be called twice."""
        for files in list(self.live):
            files.close()
        if hasattr(self, "ledger"):
            self.ledger.close()
        self.beside.close()
        self.root.close()

    def before_runs_are_read(self, settle: Settle) -> None:
        """Call `settle` before anything in `.runs` is read or listed: the archive sets it."""
        self._settle_runs = settle

    def write(
        self,
        filename: str,
        content: str | bytes,
        *,
        encoding: Encoding = "utf-8",
        append: bool = False,
    ) -> WriteResult:
        """Write a file, making its folders; `append` adds to what is there.

        `content` is text, or base64 text with that encoding, or bytes, which are taken as they are. Raises
        `NameRefused`, `Reserved`, `ContentRefused`, `NotAFile`, `QuotaFull` or `Unavailable`; then the workspace is as
        it was.
        """
        name = changeable(filename)
        data = content if isinstance(content, bytes) else encoded(content, encoding)
        with self.ledger.locked(), refusing(name), contextlib.ExitStack() as stack:
            folder, missing = self.root.nearest_folder(name.folder)
            stack.enter_context(folder)
            current = None if missing else folder.status(name.leaf)
            if current is not None:
                judge(current, name)
            before = current.st_size if current is not None else 0
            size = len(data) + (before if append else 0)
            more_entries = len(missing) + (current is None)
            with self.ledger.change(more_bytes=size - before, more_entries=more_entries):
                try:
                    if append and current is not None:
                        self._append(name, data)
                    else:
                        _put(_deeper(folder, missing, stack), name.leaf, data, sync=current is not None)
                except FileNotFoundError:
                    raise Unavailable("A folder was removed while it was written to. Try again.") from None
                except OSError:
                    self._prune(name.folder)
                    raise
        return WriteResult(str(name), size)

    def _append(self, name: Name, data: bytes) -> None:
        handle, status = self.root.open_file(name, os.O_WRONLY | os.O_APPEND)
        try:
            write_all(handle, data)
        except BaseException:
            os.ftruncate(handle, status.st_size)
            raise
        finally:
            os.close(handle)

    def read(
        self,
        filename: str,
        offset: int = 0,
        limit: int | None = None,
        *,
        encoding: Encoding = "utf-8",
        owner: str | None = None,
    ) -> FileSlice:
        """Read a slice of a file as text or as base64.

        `offset` and `limit` count characters of a text, and bytes with base64; None is all that follows, up to
        `READ_BYTES_MAX`. `owner` is whose runs are found below `.runs`; None finds nobody's. Raises `NameRefused`,
        `NotFound`, `NotAFile`, `ContentRefused` or `Unavailable`.
        """
        name = Name.parse(filename)
        _judge_slice(offset, limit, encoding)
        if name.reserved:
            kept_at = self.settled_at(name, owner)
            self.bring_kept(kept_at)
            handle, status = self.beside.open_file(Name(kept_at), shown_as=name)
        else:
            self.bring(name.parts, content=True)
            handle, status = self.root.open_file(name)
        try:
            with refusing(name):
                if encoding == "base64":
                    content, truncated = _read_base64(handle, status.st_size, offset, limit)
                else:
                    self._judge_text_offset(offset, status.st_size, name)
                    content, truncated = _read_text(handle, status.st_size, offset, limit, name)
                if name.reserved and os.fstat(handle).st_mtime_ns != status.st_mtime_ns:
                    raise NotFound(f"{shown(filename)} was dropped while it was read. Only the last runs are kept.")
        finally:
            os.close(handle)
        return FileSlice(filename, content, status.st_size, truncated)

    def settle_runs(self) -> None:
        """Archive all runs that ended, whoever's they are."""
        self._settle_runs(None, None)

    def settled_at(self, name: Name, owner: str | None) -> tuple[str, ...]:
        """Return where beside the workspace a reserved name lies, once the runs that it names are kept.

        Raises `NotFound` for what the owner has not.
        """
        at = _kept_at(name, owner)
        self._settle_runs(owner, at[0] if at else None)
        return at

    def remove_temporary(self, name: str) -> None:
        """Remove a run's temporary folder and all that is in it; what cannot be removed stays. Blocks."""
        with contextlib.suppress(WorkspaceError, OSError), self.ledger.locked():
            found = sorted(self.beside.walk((name,)), key=lambda entry: -len(entry.parts))
            gone_bytes = gone = 0
            for entry in (*found, WalkedEntry((name,), 0, 0, is_folder=True, is_plain=False)):
                with contextlib.suppress(WorkspaceError, OSError), self.beside.open_folder(entry.parts[:-1]) as folder:
                    (folder.remove if entry.is_folder else folder.unlink)(entry.parts[-1])
                    gone_bytes += entry.size
                    gone += 1
            self.ledger.give_back(bytes_=gone_bytes, entries=gone)

    def remove_landing(self, name: str) -> None:
        """Remove a folder of what was taking its place, and what is left in it; what cannot be removed stays."""
        with contextlib.suppress(WorkspaceError, OSError), self.beside.open_folder(()) as top:
            with top.enter(name) as inside:
                for leaf in inside.names():
                    inside.unlink(leaf)
            top.remove(name)

    def _remove_old_temporary(self) -> None:
        """Remove what runs left that ended together with their server."""
        with self.beside.open_folder(()) as top:
            old = [
                name
                for name, status in top.entries()
                if name.startswith((TEMPORARY_PREFIX, LANDING_PREFIX))
                and time.time() - status.st_mtime > _TEMPORARY_SECONDS
            ]
        for name in old:
            if name.startswith(TEMPORARY_PREFIX):
                self.remove_temporary(name)
            else:
                self.remove_landing(name)

    def _removed_bytes(self) -> int:
        return sum(files.removed_bytes() for files in list(self.live))

    def _judge_text_offset(self, offset: int, size: int, name: Name) -> None:
        """Refuse to look for a character further on than any file written here can have it."""
        if self.ledger.quota_bytes < offset < size:
            raise ContentRefused(
                f"{shown(str(name))} is too large to count its characters. Read it with encoding='base64', in bytes."
            )

    def list(self, subpath: str = ".", *, limit: int | None = None, owner: str | None = None) -> Listing:
        """List the files below a folder and its folders, at most `limit` of them (None: all), sorted by name.

        `.runs` is left out unless it is asked for, and then holds the runs of `owner`. What cannot be read here (links,
        devices, names no caller can spell) is left out too. Raises `NameRefused`, `NotFound`, `NotAFile` or
        `Unavailable`.
        """
        name = Name.parse_folder(subpath)
        kept_at = self.settled_at(name, owner) if name.reserved else ()
        found: list[WalkedEntry] = []
        with self.ledger.locked():
            if name.reserved:
                found.extend(self._kept(kept_at, name, owner))
            elif name.parts:
                found.extend(self.root.walk(name.parts))
            else:
                self.ledger.recount(found.append)
            used_bytes = self.ledger.used_bytes
        files = sorted(filter(_listable, found), key=lambda entry: "/".join(entry.parts))
        return Listing(
            path=str(name),
            files=tuple(map(File.of, files[:limit])),
            count=len(files),
            used_bytes=used_bytes,
            quota_bytes=self.ledger.quota_bytes,
        )

    def _kept(self, at: tuple[str, ...], name: Name, owner: str | None) -> Iterator[WalkedEntry]:
        """Visit what is kept of the owner's runs at a place beside the workspace."""
        for entry in self.beside.walk(at, shown_as=name):
            run_id = run_in(entry.parts[0])
            if run_id is not None and is_run_of(owner, entry.parts[0]):
                yield entry._replace(parts=(RUNS, run_id, *entry.parts[1:]))

    def delete(self, filename: str) -> Deleted:
        """Delete a file, and the folders it leaves empty.

        Raises `NameRefused`, `Reserved`, `NotFound`, `NotAFile` or `Unavailable`.
        """
        name = changeable(filename)
        with self.ledger.locked(), refusing(name):
            with self.root.open_folder(name.folder) as folder:
                current = folder.status(name.leaf)
                if current is None:
                    raise NotFound(f"There is no {shown(filename)} to delete. List the files to see what there is.")
                judge(current, name)
                with self.ledger.change(more_bytes=-current.st_size, more_entries=-1):
                    folder.unlink(name.leaf)
            self.ledger.give_back(entries=self._prune(name.folder))
        return Deleted(str(name), deleted=True)

    def usage(self) -> Usage:
        """How full the workspace is."""
        ledger = self.ledger
        with ledger.locked():
            return Usage(ledger.used_bytes, ledger.quota_bytes, ledger.entries, ledger.files_max)

    def _prune(self, parts: Sequence[str]) -> int:
        """Remove the folders of `parts` that are empty, the deepest first, and say how many they were."""
        gone = 0
        for depth in range(len(parts), 0, -1):
            try:
                with self.root.open_folder(parts[: depth - 1]) as folder:
                    folder.remove(parts[depth - 1])
            except FileNotFoundError:
                continue
            except (OSError, NotFound, NotAFile):
                break
            gone += 1
        return gone


def changeable(filename: str) -> Name:
    """Judge the name of a file that is to be written or deleted. Raises `NameRefused` or `Reserved`."""
    name = Name.parse(filename)
    if name.reserved:
        raise Reserved(f"{shown(filename)} is kept by sealab and cannot be changed. Write to a name outside {RUNS!r}.")
    return name


def _kept_at(name: Name, owner: str | None) -> tuple[str, ...]:
    """Return where beside the workspace a reserved name lies. Raises `NotFound` for what the owner has not."""
    if owner is not None and name.parts[0] == RUNS:
        if len(name.parts) == 1:
            return ()
        with contextlib.suppress(NameRefused):
            return (run_folder(owner, name.parts[1]), *name.parts[2:])
    raise NotFound(f"There is no {shown(str(name))} in the workspace. List the files to see what there is.")


def encoded(content: str, encoding: Encoding) -> bytes:
    """Return the bytes that a content of that encoding stands for. Raises `ContentRefused`."""
    _judge_encoding(encoding)
    if not isinstance(content, str):
        raise ContentRefused(f"The content has to be text or bytes, not {type(content).__name__}. Convert it first.")
    if encoding == "base64":
        try:
            data = base64.b64decode(content, validate=True)
        except (binascii.Error, ValueError) as error:
            reason = str(error) or "bad data"
        else:
            if base64.b64encode(data).decode() == content:
                return data
            reason = "its last character has bits that mean nothing"
        raise ContentRefused(
            f"The content is not base64 ({reason}). Send standard base64 in one line, with its padding."
        ) from None
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise ContentRefused(
            f"The text has a lone surrogate at character {error.start}, which UTF-8 cannot hold. "
            "Remove it, or send bytes with encoding='base64'."
        ) from None


def _deeper(folder: Folder, missing: Sequence[str], stack: contextlib.ExitStack) -> Folder:
    for part in missing:
        folder.make(part)
        folder = stack.enter_context(folder.enter(part))
    return folder


def _put(folder: Folder, leaf: str, data: bytes, *, sync: bool) -> None:
    """Write a whole file under another name and let it take its place. Raises `OSError`, leaving nothing."""
    part = PART_PREFIX + secrets.token_hex(8)
    handle = folder.create(part)
    try:
        try:
            write_all(handle, data)
            if sync:
                _sync(handle)
        finally:
            os.close(handle)
        folder.rename(part, leaf)
    except BaseException:
        with contextlib.suppress(OSError):
            folder.unlink(part)
        raise


def _judge_encoding(encoding: str) -> None:
    if encoding not in {"utf-8", "base64"}:
        raise ContentRefused(f"The encoding {shown(str(encoding))} is unknown. Use 'utf-8' or 'base64'.")


def _judge_slice(offset: int, limit: int | None, encoding: str) -> None:
    _judge_encoding(encoding)
    for key, number in (("offset", offset), ("limit", limit)):
        if number is not None and (type(number) is not int or number < 0):
            raise ContentRefused(f"{key} has to be a whole number from 0 up. Leave it out to read from the start.")


def _read_base64(handle: int, size: int, offset: int, limit: int | None) -> tuple[str, bool]:
    wanted = max(0, min(size - offset, READ_BYTES_MAX if limit is None else min(limit, READ_BYTES_MAX)))
    data = read_at(handle, wanted, offset) if wanted else b""
    return base64.b64encode(data).decode(), offset + len(data) < size


def _read_text(handle: int, size: int, offset: int, limit: int | None, name: Name) -> tuple[str, bool]:
    """Decode from the start, since only that says where character `offset` is; what is skipped is not kept."""
    if offset >= size:
        return "", False
    decoder = codecs.getincrementaldecoder("utf-8")()
    skip, wanted = offset, limit
    pieces: list[str] = []
    position = skipped_bytes = 0
    while True:
        chunk = os.pread(handle, _CHUNK_BYTES, position)
        position += len(chunk)
        try:
            text = decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            raise ContentRefused(
                f"{shown(str(name))} is not UTF-8 text ({error.reason}). Read it with encoding='base64', or in code "
                "with open(name, 'rb')."
            ) from None
        if skip:
            skipped = min(skip, len(text))
            skip -= skipped
            text = text[skipped:]
            skipped_bytes = position
        if wanted is not None and len(text) > wanted:
            pieces.append(text[:wanted])
            return "".join(pieces), True
        pieces.append(text)
        if wanted is not None:
            wanted -= len(text)
        if not chunk:
            return "".join(pieces), False
        if position - skipped_bytes >= READ_BYTES_MAX:
            return "".join(pieces), position < size


def _listable(entry: WalkedEntry) -> bool:
    return entry.is_plain and speakable("/".join(entry.parts))


def _iso(modified_ns: int) -> str:
    seconds, rest = divmod(modified_ns, 10**9)
    try:
        moment = time.gmtime(seconds)
    except (OverflowError, ValueError, OSError):
        moment = time.gmtime(0)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', moment)}.{rest // 10**6:03d}Z"
