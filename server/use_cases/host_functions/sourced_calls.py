"""Where the values of a run's calls come from: what it reads is noted, the arguments of its writes are looked up."""

from __future__ import annotations

import base64
import json
import logging
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, cast

from ....sandbox.errors import HostCallError
from ....sandbox.job import Json
from ....sandbox.wire.bounded_json import is_light
from ....tools_registry.errors import Refusal
from ...base.host_call import Answer, Answers, HostCall
from ...base.host_work import Kind, in_thread
from ...base.settings import Profile
from ...governance.provenance.judging import UNJUDGED, JudgedCall, judged
from ...governance.provenance.reading import Digest, Found, glanced, loose, number, read
from ...governance.provenance.sightings import (
    WINDOW_SECONDS,
    Conversation,
    ProgramTexts,
    Sighted,
    Unread,
    leaves,
    literals_of,
    shown_call,
)

if TYPE_CHECKING:
    from ....tools_registry.configuration import ServerConfig
    from ....tools_registry.models import Tool
    from ..journal.earlier_answers import EarlierAnswers
    from ..journal.replaying import RecordedCall

_LOG = logging.getLogger(__name__)
_FILES = frozenset({"read_file", "file_open", "file_read"})
_READING = _FILES | {"call_tool", "read_resource", "list_files", "list_folder", "list_resources", "list_prompts"}
_UNTRUSTED = frozenset({"untrusted", "low"})
"""What a label says of the integrity of what anybody may have written: all of it counts as text."""
FROM_TEXTS = "from_texts"
"""Where a stored skill has which of its literals stand only in texts: by the literal, the call that gave the text."""


@dataclass(slots=True)
class RunSources:
    """The provenance of one run: its conversation, and what its program names by itself."""

    conversation: Conversation
    profile: Profile
    run_id: str
    session: str | None = None
    program: ProgramTexts = field(default_factory=ProgramTexts)
    earlier: Callable[[Mapping[str, float]], EarlierAnswers] | None = None
    """Reads what runs were answered beyond what is known of them; None where no run is journaled. Blocks."""
    writes: dict[tuple[str, str, str], None] = field(default_factory=dict)
    """The tool, the argument and the source of each argument of a write that names something."""
    label: dict[str, str] = field(default_factory=dict)
    """What servers say of the flow of what the run was given (`_meta.ifc`), all together."""
    orders: dict[str, None] = field(default_factory=dict)
    """The calls of this run whose answers gave orders to an assistant."""
    _in_skills: tuple[tuple[str, ...], Callable[[str], bool]] = ((), lambda _: False)
    """The codes of the skills that the program names, and whether these hold a text."""

    async def begun(self, code: str, values: Mapping[str, Json], *, is_full: bool) -> None:
        """Take what the program names. Full Python reads files without asking for them: all may be free text."""
        self.conversation.drop_before(time.time() - WINDOW_SECONDS)
        self.conversation.know({self.run_id: math.inf})
        if is_full:
            sighted = Sighted("the workspace", self.run_id, self.session)
            self.conversation.note(sighted, Found(has_text=True))
        if self.session is not None:  # what it names may be written by the next program of the session
            self.conversation.name([*literals_of(code), *leaves(dict(values))])

    def around(self, answer: Answers) -> Answers:
        """Return what answers the run's host calls, and notes what it gives."""

        async def noted(call: HostCall) -> Answer:
            if call.name not in _READING:
                return await answer(call)
            try:
                answered = await answer(call)
            except HostCallError as error:
                if isinstance(error.__cause__, Refusal):
                    await self.note(call.name, call.arguments, [str(error), error.details], is_text=True)
                raise
            is_text = answered.label.get("integrity") in _UNTRUSTED
            await self.note(call.name, call.arguments, answered.value, tool=answered.tool, is_text=is_text)
            self._join(answered.label)
            return answered

        return noted

    async def note(
        self,
        name: str,
        arguments: Mapping[str, Json],
        given: object,
        *,
        tool: str = "",
        is_text: bool = False,
        at: float | None = None,
    ) -> None:
        """Note what a call gave. What the call itself was given is not new in it."""
        value = cast("Json", given)
        asked = arguments
        if name == "call_tool":
            tool, asked = (
                tool or str(arguments.get("name")),
                cast("Mapping[str, Json]", arguments.get("arguments") or {}),
            )
        elif name == "read_resource":
            tool, asked = f"{arguments.get('server')}.{name}", {"uri": arguments.get("uri")}
        elif name in _FILES:
            tool, asked, is_text = "read_file", {"filename": arguments.get("filename")}, True
            value = _text_of(value, arguments)
        at = time.time() if at is None else at
        look = partial(_looked_at, value, tool or name, asked, self.conversation.digest, is_text=is_text)
        is_small = is_light(cast("Json", [value, asked]))
        called, found, unread = look() if is_small else await in_thread(Kind.ANSWERS, look, charged=False)
        sighted = Sighted(called, self.run_id, self.session, at)
        if found.gives_orders:
            self.orders[sighted.called] = None
        if unread is None:
            self.conversation.note(sighted, found)
        else:
            await self.conversation.note_unread(sighted, found, unread)

    async def note_recorded(self, call: RecordedCall, at: float | None = None) -> None:
        """Note what a call gave of which the journal has the answer."""
        error = None if call.reply is None else call.reply.get("error")
        if call.name not in _READING or call.reply is None:
            return
        if call.succeeded:
            is_text = call.label.get("integrity") in _UNTRUSTED
            await self.note(call.name, call.arguments, call.answer, is_text=is_text, at=at)
            self._join(call.label)
        elif isinstance(error, Mapping) and error.get("type") == "ToolError":
            given = [error.get("message"), error.get("details")]
            await self.note(call.name, call.arguments, given, is_text=True, at=at)

    def _join(self, label: Mapping[str, str]) -> None:
        """Take a label into that of the run: the less trusted, and the more confidential."""
        for key, value in label.items():
            if key not in self.label or value in _UNTRUSTED or (key == "confidentiality" and value != "public"):
                self.label[key] = value

    def note_skill(self, name: str, extra: Mapping[str, Json]) -> None:
        """Note that the run has a skill: what of its code was taken out of texts counts as standing in these."""
        for text, called in cast("Mapping[str, str]", extra.get(FROM_TEXTS) or {}).items():
            found = Found(texts={self.conversation.digest(loose(text)): 0})
            before = self.program.sent - 1  # it was read by whoever wrote the skill
            sighted = Sighted(f"{called}, in the skill {name}", self.run_id, self.session, before)
            self.conversation.note(sighted, found)

    async def caught_up(self) -> None:
        """Take what other processes journaled of the conversation, and drop what was erased: once in a while.

        Then what was not read yet is read. Where the journal cannot be read, what is not known counts as text.
        """
        if self.earlier is not None:
            await self.conversation.caught_up(partial(self._journaled_since, self.earlier))
        await self.conversation.read_up()

    async def _journaled_since(self, read: Callable[[Mapping[str, float]], EarlierAnswers]) -> None:
        known = self.conversation.known_runs
        try:
            earlier = await in_thread(Kind.DATABASE, partial(read, known), charged=False)
        except Exception as error:  # noqa: BLE001 - whatever the database raises, the call is judged all the same
            _LOG.warning("What was read before could not be found in the journal: %s", error)
            self.conversation.cut()
            return
        for each in earlier.answers:
            of_run = replace(self, run_id=each.run_id, session=each.session, orders={}, label={})
            await of_run.note_recorded(each.call, each.at)
        self.conversation.know(earlier.known)
        if not earlier.is_whole:
            self.conversation.cut()
        self.conversation.erase(earlier.erased)

    async def judge(
        self,
        tool: Tool,
        server: ServerConfig,
        arguments: Mapping[str, Json],
        skills: Mapping[str, str],
        *,
        is_made: bool = True,
    ) -> JudgedCall:
        """Return the sources of the arguments of a call, and whether it is asked about by itself.

        `skills` are the codes of skills that the program names. Those of a write that `is_made` go into the report.
        """
        if server.only_reads(tool) and self.profile is not Profile.STRICT and not self.conversation.orders:
            return UNJUDGED
        named = self.program
        if skills:
            codes = tuple(skills.values())
            if codes != self._in_skills[0]:
                self._in_skills = codes, text_of(*codes)
            in_skills = self._in_skills[1]
            named = replace(named, has=lambda text: self.program.has(text) or in_skills(text))
        look = partial(
            judged,
            self.conversation,
            self.session,
            named,
            self.profile,
            tool=tool,
            server=server,
            arguments=arguments,
        )
        call = await in_thread(Kind.SEARCH, look)  # the program may be large where the arguments are not
        if is_made and not server.only_reads(tool):
            for each in call.arguments:
                self.writes[tool.full_name, each.name, each.source.value] = None
        return call


def text_of(*texts: str, values: Sequence[Json] = ()) -> Callable[[str], bool]:
    """Return what says whether texts, or some values as JSON, hold a text, in either case.

    They are put together when it is first asked.
    """
    folded: list[str] = []

    def has(text: str) -> bool:
        if not folded:
            all_texts = [*texts, *(json.dumps(each, ensure_ascii=False) for each in values if each)]
            folded.append("\n".join(all_texts).casefold())
        return text.casefold() in folded[0]

    return has


def _looked_at(
    value: Json, tool: str, asked: Mapping[str, Json], digest: Digest, *, is_text: bool
) -> tuple[str, Found, Unread | None]:
    """Return a call as it is shown and what its answer names; of a text without orders what reads it later, too."""
    called = shown_call(tool, asked)
    forms = (form for each in leaves(dict(asked)) for form in (loose(str(each)), number(each)))
    given = frozenset(digest(form) for form in forms if form is not None)
    if isinstance(value, str) and not (found := glanced(value)).gives_orders:
        look = partial(_new_in, value, given, digest, is_text=is_text, is_glanced=True)
        return called, found, Unread.of(called, value, given, digest, look)
    return called, _new_in(value, given, digest, is_text=is_text), None


def _new_in(value: Json, given: Collection[int], digest: Digest, *, is_text: bool, is_glanced: bool = False) -> Found:
    """Return what an answer names, without what the call was given, of which these are the digests."""
    found = read(value, digest, is_text=is_text, is_glanced=is_glanced)
    for each in given:
        found.texts.pop(each, None)
        found.ordering.pop(each, None)
    return found


def _text_of(value: Json, arguments: Mapping[str, Json]) -> Json:
    """Return what a file holds, of an answer with its content as text or as base64."""
    if not isinstance(value, Mapping):
        return value
    text = str(value.get("content", value.get("data")) or "")
    if value.get("encoding", arguments.get("encoding")) == "base64":
        with suppress(ValueError):
            return base64.b64decode(text).decode("utf-8", "replace")
    return text
