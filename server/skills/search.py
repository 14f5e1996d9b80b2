"""Lets searches for tools find skills too, in the category `skills`, ranked by the same index."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ...sandbox.run import Json
from ...skills_db.errors import SkillsDbError
from ..errors import HostWorkBusy
from ..host_work import Kind, in_thread
from .shelf import SkillShelf

if TYPE_CHECKING:
    from ...skills_db.content import SkillDraft
    from ...skills_db.skills import SkillStore
    from ..extras import Extra

CATEGORY = "skills"
WAIT_SECONDS = 3.0
"""How long a search waits for what has changed."""
FIRST_WAIT_SECONDS = 15.0
"""How long it waits where no skill is known yet."""
_LOG = logging.getLogger(__name__)


class SkillDocuments:
    """The newest versions of all skills as documents, as of the last `refresh`."""

    def __init__(self, shelf: SkillShelf) -> None:
        self._shelf = shelf
        self._revision: int | None = None
        self._documents: Sequence[Extra] = ()
        self._late: asyncio.Task[tuple[int, Sequence[Extra] | None]] | None = None

    async def refresh(self) -> None:
        """Learn what has changed, whoever changed it. Without a database the skills are those that were known.

        A database that does not answer is waited for by one caller, and not for long.
        """
        if self._late is not None and not self._late.done():
            return
        asked = asyncio.create_task(self._shelf.ask(self._read))
        try:
            await asyncio.wait({asked}, timeout=FIRST_WAIT_SECONDS if self._revision is None else WAIT_SECONDS)
        except asyncio.CancelledError:
            asked.cancel()
            raise
        if not asked.done():
            _LOG.warning("The skills that searches find may be old: the database has not answered yet.")
            self._late = asked
            asked.add_done_callback(_forgotten)
            return
        try:
            revision, documents = asked.result()
        except (SkillsDbError, HostWorkBusy) as error:
            _LOG.warning("Skills cannot be searched: %s", error)
            return
        if documents is not None:
            self._revision, self._documents = revision, documents

    def __call__(self) -> tuple[object, Sequence[Extra]]:
        """Return them, with the number of the last change."""
        return self._revision, self._documents

    def _read(self, store: SkillStore) -> tuple[int, Sequence[Extra] | None]:
        revision = store.revision()
        if revision == self._revision:
            return revision, None
        return revision, self._documents_of(store)

    def _documents_of(self, store: SkillStore) -> list[Extra]:
        from ...tools_registry.search.indexing import Searchable  # noqa: PLC0415 - nothing of the search is needed to start
        from ..extras import Extra  # noqa: PLC0415 - as above

        page = store.list(limit=None)
        return [
            Extra(
                Searchable(
                    key=f"{CATEGORY}.{each.name}",
                    name=each.name,
                    server=CATEGORY,
                    category=CATEGORY,
                    description=f"{each.description} {' '.join(each.tags)}".strip(),
                    parameters=tuple((name, "") for name in _parameters(each.signature)),
                ),
                each.signature,
                each.description.partition("\n\n")[0],
                partial(self._details, each.name),
            )
            for each in page.skills
        ]

    async def _details(self, name: str) -> Mapping[str, Json]:
        skill = await self._shelf.ask(lambda store: store.load(name))
        return await in_thread(Kind.SEARCH, partial(_definition, skill.draft))


def _forgotten(asked: asyncio.Task[tuple[int, Sequence[Extra] | None]]) -> None:
    """Take what nobody waits for any more, so that its failure is not reported as overlooked."""
    if not asked.cancelled():
        asked.exception()


def _definition(draft: SkillDraft) -> Mapping[str, Json]:
    """Return what a tool's definition has beside its name and signature."""
    from ...tools_registry.describing.examples import example_call  # noqa: PLC0415 - nothing of the registry is needed to start
    from ...tools_registry.models import Tool  # noqa: PLC0415 - as above

    tool = Tool(draft.name, CATEGORY, CATEGORY, input_schema=draft.parameters)
    example = example_call(tool, f"{CATEGORY}.{draft.name}")
    return {
        "description": draft.description,
        "input_schema": dict(draft.parameters),
        "output_schema": None,
        "annotations": {},
        "example": example if draft.extra.get("is_async") else example.removeprefix("await "),
    }


def _parameters(signature: str) -> Mapping[str, None]:
    """Return the names of the parameters in a signature, as far as words before a colon or an equals sign tell."""
    inner = signature.partition("(")[2].rpartition(")")[0]
    names = (part.strip().lstrip("*").partition(":")[0].partition("=")[0].strip() for part in inner.split(","))
    return dict.fromkeys(name for name in names if name.isidentifier())
