"""Small documents that several servers share: what is known of upstream servers, by name.

Every call blocks: make it from a thread. Changes of one database are made one after another, and each gives the
database's revision of documents the next number, which is also the version of the document that it changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from ..engine import Database
from ..sql import sa


@dataclass(slots=True)
class DocumentDraft:
    """A document while it is changed; `data` is None where there is none, and what is put there is stored."""

    data: bytes | None
    version: int = 0
    """The version that storing it gave; 0 where nothing was stored."""


class DocumentStore:
    """The documents of one database. Any number of stores, threads and programs may share one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def revision(self) -> int:
        """Return a number that grows with each change of any document: one read of one row."""
        with self._database.read() as session:
            return int(session.execute(_REVISION).scalar_one())

    def versions(self) -> tuple[int, Mapping[str, int]]:
        """Return the revision and the version of each document, by name, of the same moment."""
        with self._database.read() as session:
            revision = int(session.execute(_REVISION).scalar_one())
            return revision, {str(name): int(version) for name, version in session.execute(_VERSIONS)}

    def read(self, names: Collection[str]) -> Mapping[str, tuple[int, bytes]]:
        """Return version and content of the documents of some names that there are."""
        if not names:
            return {}
        with self._database.read() as session:
            found = session.execute(_READ, {"names": list(names)})
            return {str(name): (int(version), bytes(content)) for name, version, content in found}

    @contextmanager
    def editing(self, name: str) -> Iterator[DocumentDraft]:
        """Give a document to be changed, as it is now; what has changed is stored when the block ends well.

        The others wait meanwhile. Where nothing has changed nothing is stored, and nobody is notified.
        """
        with self._database.transaction() as session:
            number = int(session.execute(_LOCKED).scalar_one())
            row = session.execute(_ONE, {"name": name}).one_or_none()
            before = None if row is None else bytes(row[0])
            draft = DocumentDraft(before)
            yield draft
            if draft.data is not None and draft.data != before:
                draft.version = number + 1
                session.execute(_NEXT)
                session.execute(_PUT, {"name": name, "version": draft.version, "content": draft.data})

    def remove(self, name: str) -> None:
        """Drop a document, where it is there."""
        with self._database.transaction() as session:
            session.execute(_LOCKED)
            if session.execute(_DROP, {"name": name}).rowcount:  # type: ignore[attr-defined]  # a statement that changes
                session.execute(_NEXT)


_REVISION = sa.text("SELECT number FROM sealab_document_revision WHERE id = 1")
_LOCKED = sa.text("UPDATE sealab_document_revision SET number = number WHERE id = 1 RETURNING number")
_NEXT = sa.text("UPDATE sealab_document_revision SET number = number + 1 WHERE id = 1")
_VERSIONS = sa.text("SELECT name, version FROM sealab_document")
_READ = sa.text("SELECT name, version, content FROM sealab_document WHERE name IN :names").bindparams(
    sa.bindparam("names", expanding=True)
)
_ONE = sa.text("SELECT content FROM sealab_document WHERE name = :name")
_PUT = sa.text(
    "INSERT INTO sealab_document (name, version, content) VALUES (:name, :version, :content) "
    "ON CONFLICT (name) DO UPDATE SET version = excluded.version, content = excluded.content"
)
_DROP = sa.text("DELETE FROM sealab_document WHERE name = :name")
