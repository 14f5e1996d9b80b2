"""What full Python reads of the workspace, and what code unpacks, under `PRIVACY=auto`: learned before the code has it.

A security boundary for programs as they are written, not for hostile ones: a worker with full Python says itself what
it opens, and the libraries that it knows how to ask say so too. What others open in native code goes unseen.
"""

from __future__ import annotations

import hashlib
import io
from contextlib import suppress
from functools import partial
from typing import IO, cast

from ....sandbox.job import Json
from ....workspace.run_files import PathStatus, RunFiles
from ...base.host_work import Kind, in_thread
from ...base.lru import Lru
from ..privacy import Privacy
from ..tokens.run_tokens import RunTokens

_READ_BYTES = 1024 * 1024


LEARNED_FILES_MAX = 10_000
"""Files that a run need not learn again; of more, those that were read longest ago are learned anew."""


class LearnedFiles:
    """The contents of files that a run has learned, by digests of what tells one from another."""

    def __init__(self) -> None:
        self._marks: Lru[bytes, bool] = Lru(LEARNED_FILES_MAX)

    def __len__(self) -> int:
        return len(self._marks)

    def has(self, mark: str) -> bool:
        """Return whether a content was learned."""
        return self._marks.used(_digest(mark)) is not None

    def add(self, mark: str) -> None:
        """Note that a content was learned."""
        self._marks[_digest(mark)] = True


def _digest(mark: str) -> bytes:
    return hashlib.blake2b(mark.encode("utf-8", "surrogatepass"), digest_size=16).digest()


async def learn_path(
    privacy: Privacy, scope: str, files: RunFiles, path: str, known: LearnedFiles, *, run_tokens: RunTokens | None
) -> None:
    """Learn what is personal in a file, or in the names of a folder, before code has it; once for each content.

    `known` holds what the run has learned so far. Raises `PrivacyFailed`, and what the workspace raises.
    """
    status = await in_thread(Kind.FILES, partial(files.status, path))
    if status.is_folder:
        names: Json = [entry.name for entry in await in_thread(Kind.FILES, partial(files.list, path))]
        await privacy.learn(scope, names, run_tokens)
        return
    mark = f"{path}\0{status.identity}\0{status.size}\0{status.modified_ns}"
    if known.has(mark):
        return
    file = await in_thread(Kind.FILES, partial(_File, files, path, status))
    await learn_file(privacy, scope, cast("IO[bytes]", file), run_tokens=run_tokens)
    known.add(mark)


async def learn_file(privacy: Privacy, scope: str, file: IO[bytes], *, run_tokens: RunTokens | None) -> None:
    """Learn what is personal in a file, also where it is packed. Raises `PrivacyFailed`."""
    texts = privacy.detectors.texts_of(file)
    try:
        while (text := await in_thread(Kind.FILES, partial(next, texts, None))) is not None:
            await privacy.learn(scope, text, run_tokens)
    finally:
        with suppress(ValueError):  # a thread still reads, and ends with the account of the run
            texts.close()


class _File(io.RawIOBase):
    def __init__(self, files: RunFiles, path: str, status: PathStatus) -> None:
        super().__init__()
        self._files, self._path = files, path
        self._status = files.open(path, "r")
        self._size = status.size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        wanted = self._size - self._at if size < 0 else size
        read = bytearray()
        while len(read) < wanted:
            some = self._files.read(self._path, self._status.identity, self._at, min(wanted - len(read), _READ_BYTES))
            if not some:
                break
            read += some
            self._at += len(some)
        return bytes(read)
