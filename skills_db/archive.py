"""The file of a backup: a zip of JSON lines that no database's own format is part of.

`skills.jsonl`, `versions.jsonl` and `runs.jsonl` hold one record a line; `manifest.json` names the format, its number,
the program, and the SHA-256 and line count of each. Reading checks all of them before it gives out a single line.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .content import json_text
from .errors import BackupRefused

FORMAT = "sealab-backup"
FORMAT_VERSION = 1
SKILLS, VERSIONS, RUNS = "skills.jsonl", "versions.jsonl", "runs.jsonl"
_MEMBERS = (SKILLS, VERSIONS, RUNS)
_MANIFEST = "manifest.json"
_MANIFEST_MAX_BYTES = 100_000
_LINE_MAX_BYTES = 100_000_000

Record = dict[str, Any]


def write_archive(target: Path, members: Mapping[str, Iterable[Record]], *, overwrite: bool) -> dict[str, int]:
    """Write the records of each member and return how many; the file appears at `target` whole or not at all.

    Raises `BackupRefused` when it exists and may not be overwritten, or cannot be written.
    """
    if not overwrite and target.exists():
        raise _exists(target)
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with _removed_afterwards(part), open(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                entries = {name: _write_lines(archive, name, records) for name, records in members.items()}
                written = {"format": FORMAT, "version": FORMAT_VERSION, "program": version("sealab")}
                written |= {"created_at": datetime.now(UTC).isoformat(), "members": entries}
                archive.writestr(_MANIFEST, json.dumps(written, indent=2))
            file.flush()
            os.fsync(file.fileno())
            with reading(part):
                pass
            if overwrite:
                os.replace(part, target)
            else:
                os.link(part, target)
            _sync_folder(target.parent)
    except FileExistsError:
        raise _exists(target) from None
    except OSError as error:
        raise BackupRefused(f"{target} cannot be written: {error.strerror}. Name a place that can be.") from error
    return {name: entry["lines"] for name, entry in entries.items()}


class Archive:
    """An archive whose checksums were found right."""

    def __init__(self, path: Path, file: zipfile.ZipFile) -> None:
        self.path = path
        self._file = file

    def records(self, member: str) -> Iterator[Record]:
        """Give the records of a member, in their order."""
        with self._file.open(member) as lines:
            for number, line in enumerate(iter(lambda: lines.readline(_LINE_MAX_BYTES), b""), start=1):
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError):
                    record = None
                if not isinstance(record, dict):
                    raise self.damaged(f"line {number} of {member} is not a record")
                yield record

    def damaged(self, how: str) -> BackupRefused:
        """Return the error for an archive that is not as it was written."""
        return BackupRefused(f"{self.path} is not a complete backup: {how}. Take another one; nothing was changed.")

    def check(self) -> None:
        """Raise `BackupRefused` unless everything is there as it was written, in a format that is known."""
        manifest = self._manifest()
        for name in _MEMBERS:
            entry = manifest["members"].get(name)
            if not isinstance(entry, dict):
                raise self.damaged(f"it lacks {name}")
            digest, lines = hashlib.sha256(), 0
            with self._file.open(name) as content:
                while chunk := content.read(1 << 20):
                    digest.update(chunk)
                    lines += chunk.count(b"\n")
            if digest.hexdigest() != entry.get("sha256") or lines != entry.get("lines"):
                raise self.damaged(f"{name} is not as it was written")

    def _manifest(self) -> Record:
        with self._file.open(_MANIFEST) as content:
            try:
                manifest = json.loads(content.read(_MANIFEST_MAX_BYTES))
            except (ValueError, RecursionError):
                manifest = None
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise self.damaged(f"its {_MANIFEST} does not say that it is one")
        if manifest.get("version") != FORMAT_VERSION:
            raise BackupRefused(
                f"{self.path} has format {manifest.get('version')}, written by sealab {manifest.get('program')}; this "
                f"one, {version('sealab')}, knows format {FORMAT_VERSION}. Use that version or a later one."
            )
        if not isinstance(manifest.get("members"), dict):
            raise self.damaged(f"its {_MANIFEST} names no members")
        return manifest


@contextmanager
def reading(source: Path) -> Iterator[Archive]:
    """Open an archive and check all of it. Raises `BackupRefused`."""
    try:
        with zipfile.ZipFile(source) as file:
            archive = Archive(source, file)
            archive.check()
            yield archive
    except FileNotFoundError:
        raise BackupRefused(f"There is no file {source}. Name an archive that a backup wrote.") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError, RuntimeError) as error:
        raise BackupRefused(
            f"{source} is not a complete backup: {error}. Take another one; nothing was changed."
        ) from error
    except OSError as error:
        raise BackupRefused(f"{source} cannot be read: {error.strerror}. Correct its permissions.") from error


def _write_lines(archive: zipfile.ZipFile, name: str, records: Iterable[Record]) -> dict[str, Any]:
    digest, lines = hashlib.sha256(), 0
    with archive.open(name, "w", force_zip64=True) as member:
        for lines, record in enumerate(records, start=1):  # noqa: B007 - the count is wanted
            line = json_text(record).encode() + b"\n"
            digest.update(line)
            member.write(line)
    return {"sha256": digest.hexdigest(), "lines": lines}


def _exists(target: Path) -> BackupRefused:
    return BackupRefused(f"{target} exists already. Name another file, or say that it may be overwritten.")


@contextmanager
def _removed_afterwards(part: Path) -> Iterator[None]:
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(part)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
