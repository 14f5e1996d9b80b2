"""Finds skills: among tools, in the category `skills` of one index over all, and alone, for lists."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from ....sandbox.job import Json
from ....skills_db.content import SkillPage
from ....skills_db.errors import SkillsDbError
from ....tools_registry.models import Tool
from ...base.errors import HostWorkBusy
from ...base.host_work import Kind, in_thread
from ..upstream_tools.extras import Extra
from .service import SkillService

if TYPE_CHECKING:
    from ....skills_db.content import SkillDraft, SkillSummary
    from ....skills_db.skills import SkillStore
    from ....tools_registry.search.ranking import DocumentReader, Searchable, SearchIndex

CATEGORY = "skills"
WAIT_SECONDS = 3.0
"""How long a search waits for what has changed."""
FIRST_WAIT_SECONDS = 15.0
"""How long it waits where no skill is known yet."""
MEANT_MAX = 10
"""Skills that a list finds by their meaning alone."""
ABOUT_CHARS_MAX = 300
"""How much of a description stands in lists and searches."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """All skills at one moment, and the documents of each: among tools, and among skills alone.

    `summaries` is the store's own, another object after every change.
    """

    summaries: Mapping[str, SkillSummary]
    documents: Mapping[str, tuple[Extra, Searchable]]
    extras: Sequence[Extra]


class SkillIndex:
    """The newest versions of all skills: documents for searches of tools, and an index over them alone for lists.

    The documents are those of the last look at the store; a list looks first. It finds the skills that have a word of
    the query, by an index without what words mean, and those whose meaning is not weakly like it, by one with that,
    which orders them.
    """

    def __init__(self, service: SkillService) -> None:
        self._service = service
        self._looking = threading.Lock()
        self._seen: _Seen | None = None
        self._reader: DocumentReader | None = None
        self._index: tuple[_Seen, SearchIndex, SearchIndex] | None = None
        self._late: asyncio.Task[_Seen] | None = None

    async def refresh(self) -> None:
        """Read what has changed. Without a database the skills are those that were known.

        A database that does not answer is waited for by one caller, and not for long.
        """
        if self._late is not None and not self._late.done():
            return
        asked = asyncio.create_task(self._service.ask(self._look))
        try:
            await asyncio.wait({asked}, timeout=FIRST_WAIT_SECONDS if self._seen is None else WAIT_SECONDS)
        except asyncio.CancelledError:
            asked.cancel()
            raise
        if not asked.done():
            _LOG.warning("The skills that searches find may be old: the database has not answered yet.")
            self._late = asked
            asked.add_done_callback(_log_failure)
            return
        try:
            asked.result()
        except (SkillsDbError, HostWorkBusy) as error:
            _LOG.warning("Skills cannot be searched: %s", error)

    def known(self) -> Mapping[str, SkillSummary]:
        """Return the skills as they were at the last look, by name."""
        return {} if self._seen is None else self._seen.summaries

    def __call__(self) -> tuple[object, Sequence[Extra]]:
        """Return the documents, with something that is another after every change."""
        seen = self._seen
        return (None, ()) if seen is None else (seen, seen.extras)

    async def page(self, query: str | None, tag: str | None, limit: int) -> SkillPage:
        """Return the skills that fit a query, best first, or all by name; with the tag, if one is given.

        Raises `SkillsDbError`.
        """
        if query is None or not query.strip():
            return await self._service.ask(lambda store: store.list(tag, limit))
        return await self._service.ask(partial(self._page, query, tag, limit))

    def _page(self, query: str, tag: str | None, limit: int, store: SkillStore) -> SkillPage:
        seen, by_words, by_meaning = self._indexed(store)
        if any(map(str.isalnum, query)):
            matches = by_words.matches(query)
            matched = set(matches)
            hits = by_meaning.search(query, limit=max(len(matched), MEANT_MAX))
            ordered = [each.key for each in hits if each.key in matched or not each.weak]
            names = list(dict.fromkeys([*ordered, *matches]))
        else:
            names = _with_signs(query.strip(), seen.summaries)
        if tag is not None:
            names = [name for name in names if seen.summaries[name].has_tag(tag)]
        return SkillPage(len(names), store.with_runs([seen.summaries[name] for name in names[:limit]]))

    def _indexed(self, store: SkillStore) -> tuple[_Seen, SearchIndex, SearchIndex]:
        from ....tools_registry.search.ranking import DocumentReader, SearchIndex

        with self._looking:
            seen = self._looked(store)
            if self._index is None or self._index[0] is not seen:
                self._reader = self._reader or DocumentReader()
                alone = [document for _, document in seen.documents.values()]
                self._index = seen, SearchIndex(alone, vectors=False, reader=self._reader), SearchIndex(alone)
            return self._index

    def _look(self, store: SkillStore) -> _Seen:
        with self._looking:
            return self._looked(store)

    def _looked(self, store: SkillStore) -> _Seen:
        """Return all skills as they are now; documents of those that have not changed are kept."""
        seen, summaries = self._seen, store.summaries()
        if seen is None or seen.summaries is not summaries:
            before, known = ({}, {}) if seen is None else (seen.summaries, seen.documents)
            documents = {
                name: known[name] if before.get(name) is each else self._documents_of(each)
                for name, each in summaries.items()
            }
            seen = self._seen = _Seen(summaries, documents, [extra for extra, _ in documents.values()])
        return seen

    def _documents_of(self, skill: SkillSummary) -> tuple[Extra, Searchable]:
        from ....tools_registry.search.indexing import Searchable

        text = " ".join((*skill.tags, skill.description))
        among_tools = Searchable(
            key=f"{CATEGORY}.{skill.name}",
            name=skill.name,
            server=CATEGORY,
            category=CATEGORY,
            description=text,
            parameters=tuple((name, "") for name in _parameters(skill.signature)),
        )
        # No word that all skills share; and the name twice, so that it counts more than a description.
        alone = replace(among_tools, key=skill.name, server="", category="", description=f"{skill.name} {text}")
        about = about_of(skill.description)
        return Extra(among_tools, call_of(skill.signature), about, partial(self._details, skill.name)), alone

    async def _details(self, name: str) -> Mapping[str, Json]:
        skill = await self._service.ask(lambda store: store.load(name))
        return await in_thread(Kind.SEARCH, partial(_definition, skill.draft))


def call_of(signature: str) -> str:
    """Return a signature as a line that runs as it stands, once it has arguments: `await skills.fetch(url: str)`."""
    plain = signature.removeprefix("async ")
    return f"skills.{plain}" if plain == signature else f"await skills.{plain}"


def about_of(description: str) -> str:
    """Return what lists and searches show of a description: its first paragraph, cut with … where it is long."""
    first = description[: ABOUT_CHARS_MAX + 1].partition("\n\n")[0]
    return first if len(first) <= ABOUT_CHARS_MAX else f"{first[:ABOUT_CHARS_MAX]}…"


def _log_failure(asked: asyncio.Task[_Seen]) -> None:
    """Take the failure of a task that is no longer awaited, so that asyncio does not report it."""
    if not asked.cancelled():
        asked.exception()


def _with_signs(signs: str, summaries: Mapping[str, SkillSummary]) -> list[str]:
    """Return the skills that have a query without any letter or digit as it stands, such as an emoji."""
    return [
        name
        for name, each in summaries.items()
        if any(signs in text for text in (name, each.description, each.signature, *each.tags))
    ]


def _definition(draft: SkillDraft) -> Mapping[str, Json]:
    from ....tools_registry.describing.examples import example_call

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
    inner = signature.partition("(")[2].rpartition(")")[0]
    names = (part.strip().lstrip("*").partition(":")[0].partition("=")[0].strip() for part in inner.split(","))
    return dict.fromkeys(name for name in names if name.isidentifier())
