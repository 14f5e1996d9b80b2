"""What a tenant has: its files and what its database holds, looked at without making anything."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from ....skills_db import DATABASE_FILE
from ....skills_db.engine import Database, place_of
from ....skills_db.tenants.contents import TenantCounts, contents_of, tokens_of_tenant
from ....skills_db.tenants.schemas import is_there, schema_of
from ....workspace.names import TENANTS
from ....workspace.objects.cache_place import FOLDER as CACHE_FOLDER
from ...base.database import database_of
from ...base.home import Home
from ...base.settings import Settings
from ...base.storage.opening import bucket_of

if TYPE_CHECKING:
    from ....workspace.objects.bucket import Bucket


@dataclass(frozen=True, slots=True)
class Files:
    """The files below a tenant's home, and a hash of their names and sizes (SHA-256 of sorted lines)."""

    files: int
    bytes: int
    sha256: str


@contextmanager
def operators_database(settings: Settings, home: Home) -> Iterator[Database]:
    """Give the operator's database, of whichever home. Raises what opening it raises."""
    operators = Home(home.operators_root)
    operators.prepare()
    opening = database_of(settings.database_url, operators)
    try:
        yield opening()
    finally:
        opening.close()


def has_database(settings: Settings, home: Home, operators: Database) -> bool:
    """Return whether a tenant has a database yet."""
    _, file = place_of(settings.database_url, home.root, tenant=home.tenant)
    if file is not None:
        return (home.root / DATABASE_FILE).exists()
    return is_there(operators.migrating, schema_of(home.tenant))


@contextmanager
def database_if_there(settings: Settings, home: Home, operators: Database) -> Iterator[Database | None]:
    """Give the database of a tenant, or None where it has none yet."""
    if home.operators is None:
        yield operators
        return
    if not has_database(settings, home, operators):
        yield None
        return
    opening = database_of(settings.database_url, home)
    try:
        yield opening()
    finally:
        opening.close()


def counts_of(settings: Settings, home: Home, operators: Database) -> dict[str, object]:
    """Count what a tenant has, in its database, in its files, and among the operator's tokens. Blocks."""
    with database_if_there(settings, home, operators) as database:
        contents = TenantCounts() if database is None else contents_of(database)
    tokens = tokens_of_tenant(operators, home.tenant, time.time())
    return {**asdict(contents), "tokens": tokens, **asdict(files_of(home, bucket_of(settings, home)))}


def files_of(home: Home, bucket: Bucket | None = None) -> Files:
    """Look at all files below a tenant's home, and at its objects where it has a bucket. Blocks.

    Links are not followed, not even ones that appear meanwhile. Copies of objects do not count.
    """
    lines: list[bytes] = []
    total = 0
    if home.root.is_dir():
        for folder, folders, names, handle in os.fwalk(os.fsencode(home.root)):
            if home.operators is None and folder == os.fsencode(home.root):
                folders[:] = [each for each in folders if each != os.fsencode(home.tenants.name)]
            if folder == os.fsencode(home.root):
                folders[:] = [each for each in folders if each != os.fsencode(CACHE_FOLDER)]
            for name in names:
                try:
                    status = os.stat(name, dir_fd=handle, follow_symlinks=False)
                except FileNotFoundError:
                    continue
                size = status.st_size if stat.S_ISREG(status.st_mode) else 0
                total += size
                lines.append(os.path.join(folder, name).removeprefix(os.fsencode(home.root)) + b"\0%d\n" % size)
    for found in () if bucket is None else bucket.walk():
        if not (home.operators is None and found.key.startswith(f"{TENANTS}/")):
            total += found.size
            lines.append(b"object " + os.fsencode(found.key) + b"\0%d\n" % found.size)
    return Files(len(lines), total, hashlib.sha256(b"".join(sorted(lines))).hexdigest())
