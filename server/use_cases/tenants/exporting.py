"""Writes one zip of what a tenant has: its files, its skills, and what its runs were, never a secret.

The workspace is read through its own boundary (`workspace.paths`), so a link that is put in the place of a file while
this reads is not followed. What cannot be read is named in the manifest, and stops nothing.
"""

from __future__ import annotations

import json
import os
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, BinaryIO

from ....skills_db.backup import backup
from ....skills_db.engine import Database
from ....skills_db.workspace_files import WorkspaceFiles
from ....workspace.errors import Unavailable, WorkspaceError
from ....workspace.names import Name
from ....workspace.objects.blobs import Blobs
from ....workspace.objects.stored_names import StoredNames
from ....workspace.paths import Root, WalkedEntry
from ...base.errors import UsageError
from ...base.home import Home
from ...base.settings import Settings
from ...base.storage.opening import bucket_of, shown_folder
from ...privacy.of_home import privacy_of
from ..journal.journal import Journal
from ..runs.background.background_listing import LISTED_TEXTS, RunFilter, listed_runs
from .contents import database_if_there

if TYPE_CHECKING:
    from ....workspace.objects.bucket import Bucket

_FIRST_DATE = (1980, 1, 1, 0, 0, 0)
_LAST_DATE = (2107, 12, 31, 23, 59, 58)
"""The first and the last moment that a zip can say (APPNOTE.TXT 4.4.6)."""
_PIECE_BYTES = 1 << 20
_RUNS_MAX = 1_000_000
_WHAT = {
    "workspace/": "the files of the workspace as they are, with the values that were written in place of tokens",
    "skills-and-runs.zip": "all skills with their versions, and the records of runs; `sealab skills restore` reads it",
    "runs.json": "when each journaled run began, how it ended, and which tools it called",
    "not in it": "tokens, keys, values of the vault, programs and answers in journals, sign-ins to upstream servers",
}


def export_tenant(settings: Settings, home: Home, operators: Database, target: Path) -> Mapping[str, object]:
    """Write the zip, which is there whole or not at all, readable by its owner alone; return its manifest. Blocks.

    Raises `UsageError` where the file is there already or cannot be written.
    """
    part = target.with_name(f".{target.name}.part")
    try:
        if target.exists():
            raise UsageError(f"{target} is there already. Name another file, or remove it.")
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            with open(handle, "wb") as file:
                manifest = _written(settings, home, operators, file)
            os.link(part, target)  # unlike a rename, never over what is there
        finally:
            os.unlink(part)
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}. Name a file in a folder of yours.") from error
    return manifest


def _written(settings: Settings, home: Home, operators: Database, file: BinaryIO) -> Mapping[str, object]:
    manifest: dict[str, object] = {"tenant": home.tenant, "exported": time.time(), "holds": _WHAT}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        with database_if_there(settings, home, operators) as database:
            if database is not None:
                with TemporaryDirectory() as folder:
                    skills = backup(database, Path(folder) / "skills.zip")
                    archive.write(skills.path, "skills-and-runs.zip", zipfile.ZIP_STORED)
                runs = _runs(settings, home, database, operators)
                manifest |= {"skills": skills.skills, "skill_versions": skills.versions, "run_records": skills.runs}
        if database is not None:
            archive.writestr("runs.json", json.dumps(runs, ensure_ascii=False))
            manifest["runs"] = len(runs)
        bucket = bucket_of(settings, home)
        if bucket is None:
            manifest |= _files(settings, home, archive)
        elif database is not None:
            manifest |= _objects(bucket, WorkspaceFiles(lambda: database, Unavailable), archive)
        archive.writestr("manifest.json", json.dumps(manifest, indent=2))
    return manifest


def _runs(settings: Settings, home: Home, database: Database, operators: Database) -> list[dict[str, object]]:
    privacy = privacy_of(settings, home, lambda: database, operators=lambda: operators)
    journal = Journal(settings, lambda: database, privacy.key, keeps=False)
    found = listed_runs(journal.store(), journal.background(), RunFilter(limit=_RUNS_MAX))
    return [{name: each for name, each in run.summary.items() if name not in LISTED_TEXTS} for run in found]


def _objects(bucket: Bucket, table: WorkspaceFiles, archive: zipfile.ZipFile) -> dict[str, object]:
    """Write the workspace's files out of an object store, and return how many there are and which were left out."""
    written = 0
    left_out: dict[str, str] = {}
    blobs = Blobs(bucket, table)
    for row in StoredNames(table, quota_bytes=0, files_max=0).below():
        if row.is_folder:
            continue
        info = zipfile.ZipInfo(f"workspace/{_as_text(row.path)}", _date(row.modified_ns / 1e9))
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = 0o600 << 16
        with archive.open(info, "w", force_zip64=True) as target:
            try:
                for piece in blobs.pieces(row):
                    target.write(piece)
            except WorkspaceError as error:
                left_out[row.path] = str(error)
                continue
        written += 1
    return {"files": written, "renamed": {}, "left_out": left_out}


def _files(settings: Settings, home: Home, archive: zipfile.ZipFile) -> dict[str, object]:
    """Write the workspace's files, and return how many there are and which were left out."""
    written = 0
    renamed: dict[str, str] = {}
    left_out: dict[str, str] = {}
    used: set[str] = set()
    folder = shown_folder(settings, home)
    if folder.is_dir():
        with closing(Root(folder)) as root:
            for found in root.walk():
                name = "/".join(found.parts)
                if found.is_folder:
                    continue
                said = _as_text(name)
                while said in used:
                    said += "~"
                used.add(said)
                try:
                    _write(root, found, archive, f"workspace/{said}")
                except (WorkspaceError, OSError) as error:
                    left_out[said] = str(error)
                    continue
                written += 1
                if said != name:
                    renamed[said] = os.fsencode(name).hex()
    return {"files": written, "renamed": renamed, "left_out": left_out}


def _write(root: Root, found: WalkedEntry, archive: zipfile.ZipFile, name: str) -> None:
    handle, status = root.open_file(Name(found.parts))
    with open(handle, "rb") as source:
        info = zipfile.ZipInfo(name, _date(status.st_mtime))
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = 0o600 << 16
        with archive.open(info, "w", force_zip64=True) as target:
            for piece in _pieces(source):
                target.write(piece)


def _pieces(source: BinaryIO) -> Iterator[bytes]:
    while piece := source.read(_PIECE_BYTES):
        yield piece


def _date(seconds: float) -> tuple[int, int, int, int, int, int]:
    """Return a moment as a zip can say it."""
    try:
        found = time.gmtime(seconds)[:6]
    except (OverflowError, ValueError, OSError):
        return _FIRST_DATE
    return max(_FIRST_DATE, min(_LAST_DATE, found))


def _as_text(name: str) -> str:
    """Return a name as UTF-8 can say it: bytes that are none become %XX, and so does the sign itself where some do."""
    try:
        name.encode()
    except UnicodeEncodeError:
        escaped = name.replace("%", "%25")
        return "".join(f"%{ord(each) - 0xDC00:02X}" if 0xDC80 <= ord(each) <= 0xDCFF else each for each in escaped)  # noqa: PLR2004 - PEP 383
    return name
