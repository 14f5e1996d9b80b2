"""Small documents that several servers share: what is known of upstream servers, by name.

Every call blocks: make it from a thread. Changes of one database are made one after another, and each gives the
database's revision of documents the next number, which is also the version of the document that it changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from ..engine import Database
from ..sql import insert, sa
from ..tables import DOCUMENT, DOCUMENT_REVISION


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
        with self._database.read() as connection:
            return int(connection.execute(_REVISION).scalar_one())

    def versions(self) -> tuple[int, Mapping[str, int]]:
        """Return the revision and the version of each document, by name, of the same moment."""
        with self._database.read() as connection:
            revision = int(connection.execute(_REVISION).scalar_one())
            found = connection.execute(sa.select(DOCUMENT.c.name, DOCUMENT.c.version))
            return revision, {name: version for name, version in found}  # noqa: C416 - rows are not typed

    def read(self, names: Collection[str]) -> Mapping[str, tuple[int, bytes]]:
        """Return version and content of the documents of some names that there are."""
        if not names:
            return {}
        with self._database.read() as connection:
            found = connection.execute(sa.select(DOCUMENT).where(DOCUMENT.c.name.in_(names)))
            return {row.name: (row.version, row.content) for row in found}

    @contextmanager
    def editing(self, name: str) -> Iterator[DocumentDraft]:
        """Give a document to be changed, as it is now; what has changed is stored when the block ends well.

        The others wait meanwhile. Where nothing has changed nothing is stored, and nobody is notified.
        """
        own = sa.select(DOCUMENT.c.content).where(DOCUMENT.c.name == name)
        with self._database.transaction() as connection:
            connection.execute(_count(0))
            draft = DocumentDraft(connection.execute(own).scalar())
            before = draft.data
            yield draft
            if draft.data is not None and draft.data != before:
                draft.version = connection.execute(_count(1)).scalar_one()
                put = insert(DOCUMENT).values(name=name, version=draft.version, content=draft.data)
                values = {"version": put.excluded.version, "content": put.excluded.content}
                connection.execute(put.on_conflict_do_update(index_elements=["name"], set_=values))

    def remove(self, name: str) -> None:
        """Drop a document, where it is there."""
        with self._database.transaction() as connection:
            connection.execute(_count(0))
            if connection.execute(sa.delete(DOCUMENT).where(DOCUMENT.c.name == name)).rowcount:
                connection.execute(_count(1))


_REVISION = sa.select(DOCUMENT_REVISION.c.number)


def _count(changes: int) -> sa.Executable:
    """Return what counts changes; even of none it holds back all others until the transaction ends."""
    number = DOCUMENT_REVISION.c.number
    return sa.update(DOCUMENT_REVISION).values(number=number + changes).returning(number)
